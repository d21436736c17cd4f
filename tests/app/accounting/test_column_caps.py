"""Columns that a user changes in fewer groups: every endpoint knows their caps."""

import hashlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gsh.accounting.accountings import EXACT, at_epsilon
from gsh.accounting.column_costs import Capped
from gsh.accounting.composition import cost_of
from gsh.accounting.mechanism import Aggregates, Mechanism
from gsh.accounting.sensitivity import Box
from gsh.histogram.noise import Noise
from tests.app.budgets.test_budgets import Bank
from tests.app.client import Client, Json, problem_errors

BOX: Json = {"kind": "box", "lower": [0, 0], "upper": [6, 1], "groups": [None, 5]}
COLUMNS: Json = {"names": ["seconds", "shares"], "covariance": [[1440000, 0], [0, 2000]], "sensitivity": BOX}
BALANCED: Json = {"names": ["seconds", "shares"], "sensitivity": BOX, "noise": "balanced"}
MECHANISM: Json = {"c_u": 100, "tau": 1, "tau_star": 1400, "sigma": 200, "aggregates": COLUMNS}
CORE = Mechanism(
    c_u=100,
    tau=1,
    tau_star=1400.0,
    sigma=200.0,
    aggregates=Aggregates(
        names=("seconds", "shares"),
        covariance=((1440000.0, 0.0), (0.0, 2000.0)),
        sensitivity=Box((0.0, 0.0), (6.0, 1.0), (None, 5)),
    ),
)
# The worst split is inside a piece here: tests/gsh/accounting/test_column_caps.py.
MIXED: Json = {
    "c_u": 500,
    "tau": 1,
    "tau_star": 937.3622011699247,
    "sigma": 240.39822380458756,
    "aggregates": {"mu_0": 0, "capped": [{"groups": 20, "mu_0": 0.02294544666316427}]},
}


@pytest.fixture
def bank(ledger_url: str) -> Any:
    made = Bank(ledger_url)
    yield made
    made.app.state.services.ledger_pool.close()


def with_caps(groups: Any, **changes: Any) -> Json:
    return MECHANISM | {"aggregates": COLUMNS | {"sensitivity": BOX | {"groups": groups}} | changes}


def test_the_account_states_the_caps_and_what_they_cost(client: Client) -> None:
    answer = client.answer("/account/exact", {"mechanism": MECHANISM, "epsilon": [0.01, 1]})
    shown = answer["mechanism"]

    assert (shown["mu_0"], shown["capped"]) == (CORE.costs.mu_0, [{"groups": 5, "mu_0": CORE.costs.capped[0].mu_0}])
    assert [point["delta"] for point in answer["points"]] == [at_epsilon(EXACT, CORE, e).delta for e in (0.01, 1.0)]


def test_the_costs_alone_account_for_the_same(client: Client) -> None:
    whole = client.answer("/account/exact", {"mechanism": MECHANISM, "epsilon": 1})
    shown = {name: whole["mechanism"][name] for name in ("mu_0", "capped")}

    bare = client.answer("/account/exact", {"mechanism": MECHANISM | {"aggregates": shown}, "epsilon": 1})

    assert bare == whole


def test_without_caps_nothing_is_said_about_them(client: Client) -> None:
    answer = client.answer("/account/exact", {"mechanism": with_caps(None), "epsilon": 1})

    assert "capped" not in answer["mechanism"]


def test_a_mixed_worst_case_is_named_and_the_theorem_agrees(client: Client) -> None:
    """The theorem is scanned literally, and finds the worst split at no end and at no cap."""
    body = {"mechanism": MIXED, "epsilon": 0.016846241716740335, "theorem": True}
    (point,) = client.answer("/account/exact", body)["points"]
    worst = point["theorem"]["t2"]

    assert point["binding"] == "mixed"
    assert point["theorem"]["agrees"] is True
    assert (point["delta"], worst["a_plus"], worst["a_equal"]) == (worst["value"], 187, 313)
    (inverse,) = client.answer("/account/exact", {"mechanism": MIXED, "delta": point["delta"], "theorem": True})[
        "points"
    ]
    assert inverse["epsilon"] <= 0.016846241716740335
    assert inverse["theorem"]["agrees"] is True


def test_balanced_noise_needs_no_covariance(client: Client) -> None:
    """The answer is complete: it has the covariance, and can be part of the next request."""
    draft = {"c_u": 100, "tau": 1, "aggregates": BALANCED}
    answer = client.answer("/calibrate", {"mechanism": draft, "epsilon": 1, "delta": 1e-6})
    found = answer["mechanism"]
    (seconds, _), (_, shares) = found["aggregates"]["covariance"]

    assert seconds / found["sigma"] ** 2 == pytest.approx(36)
    assert shares / found["sigma"] ** 2 == pytest.approx(5 / 100)
    assert "noise" not in found["aggregates"]
    assert client.point(found, 1)["delta"] == answer["delta"] <= 1e-6
    weighted = client.answer(
        "/calibrate", {"mechanism": draft | {"aggregates": BALANCED | {"weights": [1, 4]}}, "epsilon": 1, "delta": 1e-6}
    )["mechanism"]
    assert weighted["aggregates"]["covariance"][1][1] / weighted["sigma"] ** 2 == pytest.approx(5 / 400)


def test_compare_says_how_much_noise_the_caps_save(client: Client) -> None:
    """A user views 51 914 URLs and shares 100: 23 times less noise on shares at the same privacy."""
    box = {"kind": "box", "lower": [0, 0], "upper": [1, 1], "groups": [None, 100]}
    outline = {
        "c_u": 51914,
        "tau": 1,
        "aggregates": {"names": ["likes", "shares"], "sensitivity": box, "noise": "balanced"},
    }
    answer = client.answer("/compare", {"mechanism": outline, "epsilon": 0.349, "delta": 1e-5})
    without = answer["without_caps"]
    likes, shares = without["columns"]

    assert likes["ratio"] == pytest.approx(1)
    assert shares["ratio"] == pytest.approx((51914 / 100) ** 0.5)
    assert shares["noise"] * shares["ratio"] == shares["noise_without_caps"]
    assert "groups" not in without["price"]["mechanism"]["aggregates"]["sensitivity"]
    assert without["price"]["delta"] <= 1e-5
    assert [each["accounting"] for each in answer["accountings"]] == ["exact", "add-deltas", "half-split", "zcdp"]


def test_compare_says_if_the_target_needs_the_caps(client: Client) -> None:
    """With fixed noise on shares, nothing but the cap makes the target possible."""
    columns = {"names": ["shares"], "covariance": [[2500]], "sensitivity": {"kind": "box", "lower": [0], "upper": [1]}}
    columns["sensitivity"]["groups"] = [1]  # type: ignore[index]
    body = {"mechanism": {"c_u": 1000, "tau": 1, "aggregates": columns}, "epsilon": 1, "delta": 1e-6}

    without = client.answer("/compare", body)["without_caps"]

    assert without == {
        "price": None,
        "columns": [{"name": "shares", "noise": 50, "noise_without_caps": None, "ratio": None}],
    }


def test_compare_says_nothing_about_caps_if_there_are_none(client: Client) -> None:
    outline = {"c_u": 100, "tau": 1, "aggregates": BALANCED | {"sensitivity": BOX | {"groups": [None, None]}}}

    assert "without_caps" not in client.answer("/compare", {"mechanism": outline, "epsilon": 1, "delta": 1e-6})


def test_a_release_states_the_caps(client: Client) -> None:
    groups = {"keys": ["a"], "counts": [10**6], "values": {"seconds": [600], "shares": [4]}}
    certificate = client.answer("/release", {"mechanism": MECHANISM, "epsilon": 1, "groups": groups})["certificate"]

    assert [column.get("groups") for column in certificate["bounds"]["columns"]] == [None, 5]
    assert "in at most as many groups as the column says" in certificate["bounds"]["per_group"]
    assert certificate["capped"] == [{"groups": 5, "mu_0": CORE.costs.capped[0].mu_0}]
    assert certificate["mu_squared"] == cost_of(CORE).mu_squared
    assert certificate["delta"] == at_epsilon(EXACT, CORE, 1.0).delta
    assert certificate["curve"].startswith("δ(ε) is the largest")


def test_the_noise_does_not_depend_on_the_caps() -> None:
    """Caps are accounting. Bounding is the caller's."""
    counts, values = np.array([10**6, 3]), np.array([[600.0, 4.0], [1.0, 1.0]])
    uniform = replace(CORE.aggregates, sensitivity=Box((0.0, 0.0), (6.0, 1.0)))  # type: ignore[type-var]
    drawn = [
        Noise(mechanism).add(counts, values, lambda size: hashlib.shake_256(b"same bits").digest(size))
        for mechanism in (CORE, replace(CORE, mu_0=0.0, capped=(), aggregates=uniform))
    ]

    for field in ("kept", "counts", "values"):
        first, second = (getattr(each, field) for each in drawn)
        assert np.array_equal(first, second)


def test_compare_with_bare_costs_says_what_the_caps_save(client: Client) -> None:
    bare = {"mu_0": 0.0001, "capped": [{"groups": 10, "mu_0": 0.001}]}
    body = {"mechanism": {"c_u": 1000, "tau": 1, "aggregates": bare}, "epsilon": 1, "delta": 1e-6}
    without = client.answer("/compare", body)["without_caps"]

    assert without["columns"] == []
    assert without["price"]["mechanism"]["aggregates"] == {"mu_0": pytest.approx(0.00100499, rel=1e-5)}
    assert without["price"]["sigma_ratio"] > 1


def test_costs_alone_draw_no_noise(client: Client) -> None:
    bare = {"mu_0": 0, "capped": [{"groups": 5, "mu_0": 0.1}]}
    groups = {"keys": ["a"], "counts": [10**6], "values": {"shares": [4]}}

    response = client.post("/release", {"mechanism": MECHANISM | {"aggregates": bare}, "groups": groups})

    assert response.status_code == 422


def test_a_budget_is_charged_for_the_whole_of_s(bank: Bank) -> None:
    """The history keeps the caps, verifies with them, and a preview counts further releases with them."""
    charged = bank.charge("one", MECHANISM)

    assert charged.status_code == 200, charged.text
    assert charged.json()["mu_squared"] == cost_of(CORE).mu_squared
    bank.charge("two", {name: MECHANISM[name] for name in ("c_u", "sigma", "aggregates")})
    entries = bank.get("/budgets/web/charges").json()["entries"]
    releases = [entry["details"]["release"] for entry in entries if entry["kind"] == "charge"]
    assert [release["capped"] for release in releases] == [[{"groups": 5, "mu_0": CORE.costs.capped[0].mu_0}]] * 2
    assert bank.get("/budgets/web/verify").json()["intact"] is True
    own = CORE.costs
    costs = [{"mu_0": own.mu_0, "capped": [{"groups": 5, "mu_0": own.capped[0].mu_0}]}, {"mu_0": own.mu_0}]
    capped, uncapped = (
        bank.answer("/budgets/web/preview", {"mechanism": MECHANISM | {"aggregates": each}})["more"] for each in costs
    )
    assert 0 < capped < uncapped


def test_a_certificate_without_its_caps_does_not_verify(bank: Bank) -> None:
    body = {"mechanism": MECHANISM, "budget": "web", "groups": {"keys": [], "counts": [], "values": {}}}
    body["groups"]["values"] = {"seconds": [], "shares": []}  # type: ignore[index]
    headers = {"idempotency-key": "week"}
    certificate = bank.request("POST", "/release", json=body, headers=headers).json()["certificate"]
    without = {name: value for name, value in certificate.items() if name != "capped"}

    assert bank.answer("/releases/verify", certificate)["made_here"] is True
    assert bank.answer("/releases/verify", without)["differences"] == ["capped"]


@pytest.mark.parametrize(
    ("mechanism", "pointer", "bound"),
    [
        (with_caps([0, 1]), "sensitivity/groups/0", "at least 1"),
        (with_caps([1, 1.5]), "sensitivity/groups/1", "an integer"),
        (with_caps([1, "2"]), "sensitivity/groups/1", "an integer"),
        (with_caps([1, True]), "sensitivity/groups/1", "an integer"),
        (with_caps([1]), "sensitivity/groups", "one number per column"),
        (with_caps([101, None]), "sensitivity/groups/0", "at most c_u"),
        (with_caps([5, 5], covariance=[[2, 1], [1, 2]]), "sensitivity/groups", "unless the covariance is diagonal"),
        (MECHANISM | {"aggregates": {"mu_0": 0, "capped": [{"groups": 101, "mu_0": 1}]}}, "capped/0/groups", "to c_u"),
        (MECHANISM | {"aggregates": {"mu_0": 0, "capped": [{"groups": 1, "mu_0": -1}]}}, "capped/0/mu_0", "at least 0"),
    ],
)
def test_an_invalid_cap_is_refused_by_its_place(client: Client, mechanism: Json, pointer: str, bound: str) -> None:
    for path in ("/account/exact", "/account/add-deltas"):
        errors = problem_errors(client.post(path, {"mechanism": mechanism, "epsilon": 1}), 422, "invalid-request")
        assert list(errors) == [f"/mechanism/aggregates/{pointer}"]
        assert bound in errors[f"/mechanism/aggregates/{pointer}"]


@pytest.mark.parametrize(
    ("draft", "pointer"),
    [
        ({"c_u": 100, "tau": 1, "aggregates": BALANCED | {"noise": "even"}}, "aggregates/noise"),
        ({"c_u": 100, "tau": 1, "aggregates": BALANCED | {"weights": [1]}}, "aggregates/weights"),
        ({"c_u": 100, "tau": 1, "aggregates": BALANCED | {"weights": [1, 0]}}, "aggregates/weights/1"),
        ({"c_u": 100, "tau": 1, "aggregates": BALANCED | {"covariance": [[1, 0], [0, 1]]}}, "aggregates/covariance"),
        ({"c_u": 4, "tau": 1, "aggregates": BALANCED}, "aggregates/sensitivity/groups/1"),
        ({"tau": 1, "tau_star": 1400, "sigma": 200, "aggregates": BALANCED}, "c_u"),
    ],
)
def test_balanced_noise_that_cannot_be_is_refused(client: Client, draft: Json, pointer: str) -> None:
    response = client.post("/calibrate", {"mechanism": draft, "epsilon": 1, "delta": 1e-6})

    assert f"/mechanism/{pointer}" in problem_errors(response, 422, "invalid-request")


@pytest.mark.parametrize(
    ("columns", "pointer"),
    [
        (BALANCED | {"sensitivity": BOX | {"groups": [None, 0]}}, "sensitivity/groups/1"),
        (BALANCED | {"sensitivity": BOX | {"groups": ["few", 1.5]}}, "sensitivity/groups/0"),
        (BALANCED | {"sensitivity": BOX | {"lower": ["low", 0]}}, "sensitivity/lower/0"),
        (BALANCED | {"sensitivity": BOX | {"kind": "ball"}}, "sensitivity/kind"),
        (BALANCED | {"sensitivity": BOX | {"box": 1}}, "sensitivity/box"),
        (COLUMNS | {"sensitivity": BOX | {"groups": [None, 0]}}, "sensitivity/groups/1"),
        (COLUMNS | {"sensitivity": BOX | {"groups": [None, 101]}}, "sensitivity/groups/1"),
        (
            COLUMNS | {"sensitivity": BOX | {"groups": [None, 101]}, "covariance": [[1, 0], [0, 1]]},
            "sensitivity/groups/1",
        ),
    ],
)
def test_a_fault_in_a_draft_is_named_by_its_place(client: Client, columns: Json, pointer: str) -> None:
    """With balanced noise as with a covariance. A cap above C_u comes before noise that is too small."""
    for path in ("/calibrate", "/compare"):
        draft = {"c_u": 100, "tau": 1, "aggregates": columns}
        response = client.post(path, {"mechanism": draft, "epsilon": 1, "delta": 1e-6})
        assert f"/mechanism/aggregates/{pointer}" in problem_errors(response, 422, "invalid-request")


def test_many_caps_near_epsilon_zero_do_not_hold_up_other_requests(client: Client) -> None:
    """They are evaluated by a worker. The answer is that of the core."""
    capped = [{"groups": 10 * (k + 1), "mu_0": 0.01} for k in range(40)]
    mechanism = {"c_u": 1000, "tau": 1, "tau_star": 700, "sigma": 200, "aggregates": {"mu_0": 0, "capped": capped}}
    core = Mechanism(
        c_u=1000, tau=1, tau_star=700.0, sigma=200.0, capped=tuple(Capped(part["groups"], 0.01) for part in capped)
    )
    answer = client.answer("/account/exact", {"mechanism": mechanism, "epsilon": [0, 0.01, 1]})

    assert [point["delta"] for point in answer["points"]] == [
        at_epsilon(EXACT, core, e).delta for e in (0.0, 0.01, 1.0)
    ]


def test_more_points_with_caps_than_a_worker_can_do_are_refused(client: Client) -> None:
    capped = [{"groups": k + 1, "mu_0": 0.01} for k in range(100)]
    mechanism = {"c_u": 1000, "tau": 1, "tau_star": 700, "sigma": 200, "aggregates": {"mu_0": 0, "capped": capped}}
    response = client.post("/account/exact", {"mechanism": mechanism, "delta": [0.3 + k * 1e-6 for k in range(1000)]})

    assert set(problem_errors(response, 422, "limit-exceeded")) == {"/delta"}


def test_splits_that_tie_are_too_many_for_the_theorem(client: Client) -> None:
    """σ is so large that S does not depend on the split: ten million balls would be evaluated."""
    capped = {"mu_0": 0, "capped": [{"groups": 1, "mu_0": 1.0}]}
    mechanism = {"c_u": 10**6, "tau": 1, "tau_star": 1e250, "sigma": 1e200, "aggregates": capped}
    response = client.post("/account/exact", {"mechanism": mechanism, "epsilon": 1, "theorem": True})

    assert set(problem_errors(response, 422, "invalid-request")) == {"/theorem"}
