"""POST /compare: each accounting's answer works in the next request, and exact accounting needs the least."""

import pytest

from tests.app.client import Client, Json, problem_errors

BODY: Json = {"mechanism": {"c_u": 51914, "tau": 1}, "epsilon": 0.349, "delta": 1e-05}
RELATIVE: Json = {
    "names": ["likes"],
    "relative_covariance": [[0.25]],
    "sensitivity": {"kind": "box", "lower": [0], "upper": [1]},
}


def asks(client: Client, body: Json) -> dict[str, Json]:
    return {each["accounting"]: each["price"] for each in client.answer("/compare", body)["accountings"]}


def test_exact_accounting_comes_first_and_equals_calibrate(client: Client) -> None:
    answer = client.answer("/compare", BODY)
    first = answer["accountings"][0]

    assert (answer["epsilon"], answer["delta"]) == (0.349, 1e-05)
    assert [each["accounting"] for each in answer["accountings"]] == ["exact", "add-deltas", "half-split", "zcdp"]
    assert first["price"]["mechanism"] == client.answer("/calibrate", BODY)["mechanism"]
    assert (first["price"]["sigma_ratio"], first["price"]["tau_star_ratio"]) == (1, 1)


def test_the_other_accountings_need_more_noise_and_a_higher_threshold(client: Client) -> None:
    """The figures of docs/math/case-study.md."""
    found = asks(client, BODY)

    ratios = {route: (round(ask["sigma_ratio"], 4), round(ask["tau_star_ratio"], 4)) for route, ask in found.items()}
    assert ratios == {
        "exact": (1, 1),
        "add-deltas": (1.0206, 1.0546),
        "half-split": (1.0477, 1.0656),
        "zcdp": (1.1158, 1.1508),
    }
    assert found["zcdp"]["least_sigma"] == pytest.approx(2436.8056, abs=1e-4)


@pytest.mark.parametrize("aggregates", [None, {"mu_0": 0.0001}, RELATIVE], ids=["counts", "mu_0", "relative"])
@pytest.mark.parametrize("route", ["exact", "add-deltas"])
def test_an_answer_meets_the_target_by_its_own_accounting(client: Client, route: str, aggregates: Json | None) -> None:
    outline = {"c_u": 500, "tau": 3} | ({} if aggregates is None else {"aggregates": aggregates})
    ask = asks(client, BODY | {"mechanism": outline})[route]

    point = client.point(ask["mechanism"], 0.349, accounting=route)

    assert point["delta"] == ask["delta"] <= 1e-05
    assert point == {name: ask[name] for name in point}  # the whole point


def test_every_accounting_explains_its_optimum(client: Client) -> None:
    for route in client.answer("/compare", BODY)["accountings"]:
        assert "smallest" in route["explanation"]


def test_an_accounting_that_cannot_meet_the_target_has_no_price(client: Client) -> None:
    outline = {"c_u": 100, "tau": 1, "aggregates": {"mu_0": 0.0236}}
    found = asks(client, {"mechanism": outline, "epsilon": 1, "delta": 1e-06})

    assert found["exact"] is not None
    assert found["half-split"] is None


def test_a_target_that_not_even_exact_accounting_meets_is_infeasible(client: Client) -> None:
    body = BODY | {"mechanism": {"c_u": 100, "tau": 1, "aggregates": {"mu_0": 1}}}

    assert set(problem_errors(client.post("/compare", body), 422, "infeasible-target")) == {"/mechanism/aggregates"}


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"mechanism": {"tau": 1}}, "/mechanism/c_u"),
        ({"mechanism": {"c_u": 5, "tau": 1, "sigma": 3}}, "/mechanism/sigma"),
        ({"mechanism": {"c_u": 5, "tau": 1, "tau_star": 30}}, "/mechanism/tau_star"),
        ({"epsilon": -1}, "/epsilon"),
        ({"delta": 1}, "/delta"),
        ({"accounting": "exact"}, "/accounting"),
    ],
)
def test_an_invalid_field_is_named(client: Client, change: Json, pointer: str) -> None:
    assert set(problem_errors(client.post("/compare", BODY | change), 422, "invalid-request")) == {pointer}


def test_a_worker_compares_many_columns(client: Client) -> None:
    """Five columns go to another process; the answer has Σ absolute."""
    size = 5
    wide = {
        "names": [f"column {k}" for k in range(size)],
        "relative_covariance": [[float(row == column) for column in range(size)] for row in range(size)],
        "sensitivity": {"kind": "l2", "bound": 1},
    }
    found = asks(client, BODY | {"mechanism": {"c_u": 10, "tau": 1, "aggregates": wide}})

    for ask in found.values():
        assert ask["mechanism"]["aggregates"]["covariance"][0][0] == pytest.approx(ask["mechanism"]["sigma"] ** 2)
