"""/budgets over HTTP, on both databases: limits, remaining and spent amounts, previews, charges, histories."""

import hashlib
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from app.ledger.budget_rows import add_entry, find_budget, set_budget
from app.ledger.databases import Execute
from app.ledger.errors import LedgerUnavailable
from app.ledger.lineage import Lineage, Use
from app.ledger.store import Ledger
from gsh.accounting.budget_limits import Limit
from gsh.accounting.case_study import PRINTED
from gsh.accounting.composition import NOTHING, Cost, Spent, cost_of, delta_at
from gsh.accounting.mechanism import PlainGaussian
from gsh.accounting.numerics.doubles import double_below
from tests.app.client import CASE_STUDY, Client, Json, problem_errors

URLS = PRINTED
SETTLED = Limit(1.0, 1e-4).settled_by(cost_of(URLS))
LIMIT = {"epsilon": 1.0, "delta": 1e-4, "description": "page views"}
SECRET = "thirty-two characters at least, or more"


class Bank(Client):
    """A client with its own ledger and a budget in it."""

    def __init__(self, ledger_url: str, **settings: Any) -> None:
        super().__init__(ledger=ledger_url, ledger_secret=SECRET, **settings)
        assert self.put("web", LIMIT).status_code == 200

    def put(self, name: str, limit: Json) -> httpx.Response:
        """With a reason, which a change needs."""
        return self.request("PUT", f"/budgets/{name}", json={"reason": "a test"} | limit)

    def charge(self, key: str, mechanism: Json = CASE_STUDY, name: str = "web", **further: Any) -> httpx.Response:
        headers, body = {"idempotency-key": key}, {"mechanism": mechanism} | further
        return self.request("POST", f"/budgets/{name}/charges", json=body, headers=headers)

    def budget(self) -> Json:
        response = self.get("/budgets/web")
        assert response.status_code == 200, response.text
        document: Json = response.json()
        return document


@pytest.fixture
def bank(ledger_url: str) -> Any:
    made = Bank(ledger_url)
    yield made
    made.app.state.services.ledger_pool.close()


def after(times: int) -> Spent:
    return NOTHING.plus(URLS, cost_of(URLS), times)


def test_a_new_budget_has_spent_nothing(bank: Bank) -> None:
    budget = bank.budget()

    assert (budget["id"], budget["description"]) == ("web", "page views")
    assert budget["limit"] == {"epsilon": 1.0, "delta": 1e-4, "mu_squared": None, "hazard": None}
    assert budget["spent"] == {
        "releases": 0,
        "mu_squared": 0,
        "hazard": 0,
        "epsilon": 0,
        "delta": 0,
        "epsilon_lower": 0,
        "delta_lower": 0,
    }
    assert budget["remaining"]["delta"] == 1e-4
    assert budget["more"] is None
    assert budget["used"] == 0


def test_one_charge_costs_the_exact_delta_and_several_are_composed(bank: Bank) -> None:
    assert bank.charge("a").status_code == 200
    assert bank.budget()["spent"]["delta"] == bank.point(CASE_STUDY, 1.0)["delta"]

    answer = bank.charge("b").json()

    spent = bank.budget()["spent"]
    assert answer["spent"]["delta"] == spent["delta"] == delta_at(after(2), 1.0)
    assert (answer["number"], spent["releases"]) == (3, 2)
    assert spent["delta_lower"] <= spent["delta"]
    assert spent["epsilon_lower"] <= spent["epsilon"]


def test_a_repeated_charge_gets_the_same_answer_and_a_changed_one_is_refused(bank: Bank) -> None:
    first, again = bank.charge("a"), bank.charge("a")

    assert first.content == again.content
    assert bank.budget()["spent"]["releases"] == 1
    problem_errors(bank.charge("a", CASE_STUDY | {"sigma": 3000}), 422, "key-reused")
    bank.put("ads", LIMIT)
    problem_errors(bank.charge("a", name="ads"), 422, "key-reused")


def test_a_charge_over_budget_is_refused_with_the_spent_and_the_asked_cost(bank: Bank) -> None:
    fitting = SETTLED.how_many_fit(NOTHING, URLS, cost_of(URLS))
    assert [bank.charge(str(number)).status_code for number in range(fitting)] == [200] * fitting
    foreseen = bank.budget()

    refused = bank.charge("one-more")

    assert refused.status_code == 409
    assert refused.headers["content-type"] == "application/problem+json"
    problem = refused.json()
    assert problem["type"] == "/problems/budget-exceeded"
    s, d = double_below(SETTLED.caps.mu_squared), double_below(SETTLED.caps.hazard)
    assert problem["limit"] == {"epsilon": 1.0, "delta": 1e-4, "mu_squared": s, "hazard": d}
    assert problem["spent"]["releases"] == fitting
    assert problem["spent"]["delta"] == delta_at(after(fitting), 1.0)
    assert problem["asked"]["delta"] == bank.point(CASE_STUDY, 1.0)["delta"]
    assert bank.budget()["spent"]["releases"] == fitting
    assert (foreseen["more"], foreseen["shortage"]["budget"]) == (0, "web")
    assert foreseen["shortage"]["detail"] in problem["detail"]


@pytest.mark.parametrize("lowered", [{"delta": 8e-6}, {"epsilon": 0.01}, {"epsilon": 0.01, "delta": 1e-9}], ids=str)
@pytest.mark.parametrize("asked", [{"c_u": 1, "sigma": 1000}, CASE_STUDY], ids=["plain noise", "histogram"])
def test_below_what_is_spent_every_release_is_refused_in_words(bank: Bank, lowered: Json, asked: Json) -> None:
    """Plain noise costs no hazard. It does not fit either, if the limit was lowered below the hazard that is spent."""
    assert bank.put("web", LIMIT | {"mechanism": {"c_u": 1, "sigma": 50}}).status_code == 200  # most of it is for noise
    assert bank.charge("a").status_code == 200
    bank.put("web", LIMIT | lowered)

    refused = bank.charge("b", asked)

    assert refused.status_code == 409
    errors = {each["pointer"]: each["detail"] for each in refused.json()["errors"]}
    assert errors
    assert ("is spent already, and the limit allows" in errors.get("/mechanism", "")) == (asked != CASE_STUDY)
    preview = bank.answer("/budgets/web/preview", {"mechanism": asked})
    assert preview["shortage"]["detail"] in refused.json()["detail"]


def test_a_preview_has_the_number_of_further_releases(bank: Bank) -> None:
    bank.charge("a")

    preview = bank.answer("/budgets/web/preview", {"mechanism": CASE_STUDY})
    assert preview["more"] == SETTLED.how_many_fit(after(1), URLS, cost_of(URLS))
    gaussian = PlainGaussian(c_u=1, sigma=100.0, mu_0=0.01)
    more = SETTLED.how_many_fit(after(1), gaussian, cost_of(gaussian))
    planned = {"c_u": 1, "sigma": 100, "aggregates": {"mu_0": 0.01}}
    assert bank.answer("/budgets/web/preview", {"mechanism": [planned, CASE_STUDY]})["more"] == more


def test_a_budget_has_the_number_of_further_releases_like_the_last_one(bank: Bank) -> None:
    """Before the first charge like the typical one. An ancestor may admit fewer."""
    bank.put("typical", LIMIT | {"mechanism": CASE_STUDY})
    assert bank.get("/budgets/typical").json()["more"] == SETTLED.how_many_cost(NOTHING, cost_of(URLS))
    bank.charge("a")
    assert bank.budget()["more"] == SETTLED.how_many_fit(after(1), URLS, cost_of(URLS))
    gaussian = {"c_u": 1, "sigma": 100}
    bank.charge("b", gaussian)
    plain = PlainGaussian(c_u=1, sigma=100.0)
    spent = after(1).plus(plain, cost_of(plain))
    assert bank.budget()["more"] == SETTLED.how_many_fit(spent, plain, cost_of(plain)) > 10

    bank.put("child", LIMIT | {"parent": "web"})
    bank.charge("c", CASE_STUDY, "child")
    assert bank.get("/budgets/child").json()["more"] == SETTLED.how_many_fit(
        spent.plus(URLS, cost_of(URLS)), URLS, cost_of(URLS)
    )


def used_in(response: httpx.Response) -> str:
    assert response.is_success, response.text
    return str(response.headers["budget-used"])


def test_an_answer_that_a_budget_paid_for_says_what_was_used_of_it(bank: Bank) -> None:
    """Also if it is replayed, and then as the budget is now. n of N equal releases use n/N."""
    groups = {"groups": {"keys": ["a"], "counts": [70000]}, "mechanism": CASE_STUDY, "budget": "web"}
    whole = SETTLED.how_many_cost(NOTHING, cost_of(URLS))

    def expected(charges: int) -> str:
        return f'"web";of={whole};more={whole - charges};used={SETTLED.used(after(charges)):.6g}'

    def post(path: str, body: Json, key: str | None = None) -> httpx.Response:
        return bank.request("POST", path, json=body, headers={} if key is None else {"idempotency-key": key})

    first = post("/release", groups, "r1")
    assert used_in(first) == expected(1)
    assert used_in(bank.charge("r2")) == expected(2)
    opened = post("/releases", {"mechanism": CASE_STUDY, "budget": "web"}, "r3")
    assert used_in(opened) == expected(3)
    again = post("/release", groups, "r1")
    assert (again.content, used_in(again)) == (first.content, expected(3))
    assert used_in(bank.get("/releases/r1")) == expected(3)
    assert "budget-used" not in post("/release", groups | {"budget": None}).headers
    assert "budget-used" not in post("/release", groups | {"dry_run": True}).headers


def test_an_answer_without_what_was_used_is_an_answer(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_lineage: Lineage, _cost: Cost) -> Use:
        raise LedgerUnavailable("gone")

    monkeypatch.setattr(Use, "of_release", staticmethod(fails))

    assert bank.charge("a").status_code == 200
    assert "budget-used" not in bank.charge("b").headers


def test_budgets_and_previews_have_the_used_share(bank: Bank) -> None:
    bank.charge("a")
    bank.charge("b")
    preview = bank.answer("/budgets/web/preview", {"mechanism": CASE_STUDY})

    (listed,) = bank.get("/budgets").json()["budgets"]
    assert bank.budget()["used"] == listed["used"] == SETTLED.used(after(2))
    assert preview["used"] == SETTLED.used(after(3))


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ("?c_u=1", "c_u"),
        ("/charges?limit=0", "limit"),
        ("/charges?limit=one", "limit"),
        ("/charges?limit=3&before=nan", "before"),
        ("/charges?limit=3&befor=1", "befor"),
    ],
)
def test_an_error_in_the_query_names_its_parameter(bank: Bank, query: str, parameter: str) -> None:
    """There is no body for a pointer."""
    response = bank.get(f"/budgets/web{query}")

    errors = problem_errors(response, 422, "invalid-request")
    assert set(errors) == {f"parameter {parameter}"}
    assert "is not valid" not in errors.values()
    assert response.json()["detail"].startswith(f"The parameter {parameter} ")


@pytest.mark.parametrize("padding", ["", "p" * 20_000], ids=["read at once", "read by a worker"])
@pytest.mark.parametrize(
    ("mechanism", "pointer"),
    [
        (CASE_STUDY | {"tau": 10**6}, "/mechanism/tau_star"),
        ([CASE_STUDY, CASE_STUDY | {"tau": 10**6}], "/mechanism/1/tau_star"),
        ([CASE_STUDY | {"sigma": 1e-200}], "/mechanism/0/sigma"),
        ([{"c_u": 1, "sigma": 3}, {"c_u": 0, "sigma": 3}], "/mechanism/1/c_u"),
    ],
)
def test_an_error_in_a_batch_names_its_place(bank: Bank, mechanism: Json, pointer: str, padding: str) -> None:
    body = json.dumps({"mechanism": mechanism}).replace(" ", " " * (1 + len(padding))).encode()
    assert (len(body) > 16 * 1024) == bool(padding)

    assert set(problem_errors(bank.post("/budgets/web/preview", body), 422, "invalid-request")) == {pointer}


def test_exactly_the_remaining_budget_can_be_spent(bank: Bank) -> None:
    bank.charge("a")
    room = bank.budget()["remaining"]["mu_squared"]
    fits = {"c_u": 1, "sigma": (room * (1 - 1e-9)) ** -0.5}
    exceeds = {"c_u": 1, "sigma": (room * (1 + 1e-9)) ** -0.5}

    assert bank.charge("b", exceeds).status_code == 409
    assert bank.charge("c", fits).status_code == 200


def test_a_preview_charges_nothing(bank: Bank) -> None:
    gaussian = {"c_u": 1, "sigma": 50}
    one = bank.answer("/budgets/web/preview", {"mechanism": CASE_STUDY})
    plan = bank.answer("/budgets/web/preview", {"mechanism": [gaussian, CASE_STUDY] + [CASE_STUDY] * 9})

    assert (one["fits"], one["fitting"]) == (True, 1)
    assert one["after"]["delta"] == bank.point(CASE_STUDY, 1.0)["delta"]
    assert one["remaining"]["delta"] == 1e-4 - one["after"]["delta"]
    assert (plan["fits"], plan["remaining"]) == (False, None)
    assert 1 < plan["fitting"] < 11
    assert plan["asked"]["releases"] == plan["after"]["releases"] == 11
    assert bank.budget()["spent"]["releases"] == 0


def test_a_plan_has_a_limit(bank: Bank) -> None:
    response = bank.post("/budgets/web/preview", {"mechanism": [{"c_u": 1, "sigma": 50}] * 1001})

    assert problem_errors(response, 422, "limit-exceeded") == {"/mechanism": "must have at most 1000 items"}


def test_changes_of_the_limit_are_recorded_and_hold_at_once(bank: Bank) -> None:
    bank.charge("a")
    assert bank.put("web", LIMIT).json()["entries"] == 2
    assert bank.put("web", LIMIT | {"delta": 1e-6}).json()["entries"] == 3
    assert bank.charge("b").status_code == 409
    bank.put("web", LIMIT | {"epsilon": 3.0})
    assert bank.charge("b").status_code == 200

    history = bank.get("/budgets/web/charges").json()["entries"]
    assert [entry["kind"] for entry in history] == ["charge", "changed", "changed", "charge", "created"]
    cost = cost_of(URLS)
    assert history[2]["details"] == LIMIT | {
        "delta": 1e-6,
        "privacy_unit": "user",
        "period": None,
        "reason": "a test",
        "changes": [{"field": "delta", "before": 1e-4, "after": 1e-6}],
        "proportion": {"mu_squared": cost.mu_squared, "hazard": cost.hazard},
    }
    assert history[0]["details"]["release"] == CASE_STUDY | {"mu_0": 0.0}
    assert bank.get("/budgets/web/verify").json()["intact"] is True


def test_a_typical_release_divides_a_budget_before_the_first(bank: Bank) -> None:
    """Otherwise the first release would: here plain Gaussian noise, which leaves an eighth of δ for thresholds."""
    s, d = double_below(SETTLED.caps.mu_squared), double_below(SETTLED.caps.hazard)
    for name in ("divided", "undivided"):
        bank.put(name, LIMIT | ({"mechanism": CASE_STUDY} if name == "divided" else {}))
        assert bank.charge(f"{name}-first", {"c_u": 1, "sigma": 50}, name).status_code == 200

    divided, undivided = (bank.get(f"/budgets/{name}").json()["limit"] for name in ("divided", "undivided"))
    assert (divided["mu_squared"], divided["hazard"]) == (s, d)
    assert undivided["hazard"] == pytest.approx(1e-4 / 8, rel=1e-4)
    assert undivided["mu_squared"] > divided["mu_squared"]
    assert bank.put("divided", LIMIT | {"epsilon": 2.0}).json()["limit"]["hazard"] > d  # in the same proportion
    for name in ("divided", "undivided"):
        assert bank.get(f"/budgets/{name}/verify").json()["intact"] is True


def test_after_the_first_charge_a_budget_is_not_divided_again(bank: Bank) -> None:
    gaussian = {"c_u": 1, "sigma": 50}
    assert bank.put("web", LIMIT | {"mechanism": gaussian}).status_code == 200
    assert bank.budget()["promise"] is None
    bank.charge("a", gaussian)

    promise = bank.budget()["promise"]
    assert promise["epsilon"] == 1.0
    assert promise["delta"] == pytest.approx(1e-4)
    assert promise["delta"] <= 1e-4
    assert bank.get("/budgets").json()["budgets"][0]["promise"] == promise
    other = problem_errors(bank.put("web", LIMIT | {"mechanism": CASE_STUDY}), 409, "division-settled")
    assert "omit it" in other["/mechanism"]
    assert bank.budget()["entries"] == 3
    assert bank.put("web", LIMIT | {"mechanism": gaussian, "epsilon": 2.0}).status_code == 200
    assert bank.put("web", LIMIT | {"delta": 1e-6}).json()["promise"]["delta"] > 1e-4  # the limit before


def test_a_history_comes_in_pages(bank: Bank) -> None:
    for number in range(4):
        bank.charge(str(number), {"c_u": 1, "sigma": 1000})
    numbers: list[int] = []
    page = bank.get("/budgets/web/charges?limit=2").json()
    while True:
        numbers += [entry["number"] for entry in page["entries"]]
        if page["before"] is None:
            break
        page = bank.get(f"/budgets/web/charges?limit=2&before={page['before']}").json()

    assert numbers == [5, 4, 3, 2, 1]


def in_transaction(bank: Bank, change: Callable[[Ledger, Execute], None]) -> None:
    """Change the database behind the back of the service."""

    def work(ledger: Ledger) -> None:
        with ledger._connections.transaction() as execute:
            change(ledger, execute)

    bank.app.state.services.ledger_pool._work(work)


def test_a_history_has_a_schema_for_each_kind_of_entry(bank: Bank) -> None:
    bank.charge("a")
    bank.charge("b", {"c_u": 1, "sigma": 1000})

    plain, charged, created = bank.get("/budgets/web/charges").json()["entries"]

    assert created["details"] == LIMIT | {"privacy_unit": "user", "period": None}
    cost = cost_of(URLS)
    assert charged["details"] == {
        "release": CASE_STUDY | {"mu_0": 0.0},
        "mu_squared": cost.mu_squared,
        "hazard": cost.hazard,
        "idempotency_key": "a",
        "state": "charged",
        "description": "",
        "labels": [],
        **{name: charged["details"][name] for name in ("release_id", "certificate_sha256", "provenance_sha256")},
        "answer": charged["details"]["answer"],
        "media_type": "application/json",
        "size": charged["details"]["size"],
    }
    assert plain["details"]["release"] == {"c_u": 1, "sigma": 1000, "mu_0": 0.0}


def test_a_history_shows_entries_of_earlier_versions(bank: Bank) -> None:
    """They record neither the type nor the size of the answer, and a limit has no proportion."""
    cost, digest = cost_of(URLS), hashlib.sha256(b"42").hexdigest()

    def add_old_entry(ledger: Ledger, execute: Execute) -> None:
        budget = find_budget(execute, ledger._sql, "web")
        assert budget is not None
        further = {"key": "old", "answer": digest}
        charged, entry = budget.charged(budget.spent.plus(URLS, cost), URLS, cost, "2026-01-01T00:00:00Z", further)
        set_budget(execute, ledger._sql, charged)
        stored = (cost.mu_squared, cost.hazard, "old", "r1", None, "application/json", 2, b"42")
        add_entry(execute, ledger._sql, entry, stored)

    in_transaction(bank, add_old_entry)

    (charged, _) = bank.get("/budgets/web/charges").json()["entries"]
    assert charged["details"] == {
        "release": CASE_STUDY | {"mu_0": 0.0},
        "mu_squared": cost.mu_squared,
        "hazard": cost.hazard,
        "idempotency_key": "old",
        "answer": digest,
    }


@pytest.mark.parametrize("payload", ["{", "[]", "{}", '{"release": "none"}'])
def test_an_entry_that_cannot_be_read_is_a_problem_of_the_ledger(bank: Bank, payload: str) -> None:
    bank.charge("a")
    in_transaction(bank, lambda _, execute: execute(f"UPDATE entries SET payload = '{payload}' WHERE number = 2"))

    problem_errors(bank.get("/budgets/web/charges"), 503, "ledger-unavailable")


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ("s = s / 2", "mu_squared"),
        ("d = d / 2", "hazard"),
        ("request = 'c'", "hash of the request"),
        ("media_type = 'text/html'", "media type of the answer"),
    ],
)
def test_a_fault_names_what_differs_as_the_api_does(bank: Bank, change: str, name: str) -> None:
    bank.charge("a")
    in_transaction(bank, lambda _, execute: execute(f"UPDATE entries SET {change} WHERE number = 2"))

    verified = bank.get("/budgets/web/verify").json()

    detail = f"has another {name} in its row of the database than in the record that is hashed"
    assert (verified["intact"], verified["fault"]) == (False, {"number": 2, "detail": detail})


def test_all_budgets_are_listed(bank: Bank) -> None:
    bank.put("ads", LIMIT)
    bank.charge("a")

    listed = bank.get("/budgets").json()["budgets"]

    assert [budget["id"] for budget in listed] == ["ads", "web"]
    assert [budget["spent"]["releases"] for budget in listed] == [0, 1]
    assert listed[1]["remaining"] == bank.budget()["remaining"]


def test_an_unknown_budget_is_404(bank: Bank) -> None:
    for path in ("/budgets/none", "/budgets/none/charges", "/budgets/none/verify"):
        problem_errors(bank.get(path), 404, "unknown-budget")
    problem_errors(bank.charge("a", name="none"), 404, "unknown-budget")
    problem_errors(bank.post("/budgets/none/preview", {"mechanism": CASE_STUDY}), 404, "unknown-budget")
    calibrate = {"mechanism": {"c_u": 3, "tau": 1}, "budget": "none"}
    problem_errors(bank.post("/calibrate", calibrate), 404, "unknown-budget")


@pytest.mark.parametrize("name", ["a:b", "é", "a b", "-", "a" * 101])
def test_names_need_no_quoting(bank: Bank, name: str) -> None:
    problem_errors(bank.put(name, LIMIT), 422, "invalid-request")
    problem_errors(bank.get(f"/budgets/{name}"), 422, "invalid-request")


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"epsilon": -1}, "/epsilon"),
        ({"delta": 0}, "/delta"),
        ({"delta": 1}, "/delta"),
        ({"description": "a" * 1001}, "/description"),
        ({"description": "a\0b"}, "/description"),
        ({"limit": 3}, "/limit"),
    ],
)
def test_an_invalid_limit_is_refused(bank: Bank, change: Json, pointer: str) -> None:
    assert pointer in problem_errors(bank.put("web", LIMIT | change), 422, "invalid-request")


@pytest.mark.parametrize("key", [None, "", "a" * 256, "a b", "ä", "a/b", ".", "..", '"a', '"a""', "a,b", "a\t"])
def test_a_charge_needs_a_valid_idempotency_key(bank: Bank, key: str | None) -> None:
    headers = {} if key is None else {"idempotency-key": key.encode()}
    response = bank.request("POST", "/budgets/web/charges", json={"mechanism": CASE_STUDY}, headers=headers)

    expected = (400, "idempotency-key-missing") if key is None else (422, "invalid-request")
    assert set(problem_errors(response, *expected)) == {"header Idempotency-Key"}
    assert "Idempotency-Key" in response.json()["detail"]
    assert bank.budget()["spent"]["releases"] == 0


@pytest.mark.parametrize("releases", [1, 4])
def test_calibrate_uses_exactly_the_remaining_budget(bank: Bank, releases: int) -> None:
    """The answer can be charged exactly ``releases`` times."""
    bank.charge("a")
    solved = bank.answer("/calibrate", {"mechanism": {"c_u": 51914, "tau": 1}, "budget": "web", "releases": releases})

    statuses = [bank.charge(f"k{number}", solved["mechanism"]).status_code for number in range(releases + 1)]

    assert statuses == [200] * releases + [409]
    assert solved["delta"] == bank.budget()["spent"]["delta"] <= 1e-4


@pytest.mark.parametrize("releases", [2, 52])
def test_calibrate_divides_a_limit_before_there_is_a_budget(bank: Bank, releases: int) -> None:
    """A new budget with this limit, divided for the answer, pays for exactly so many releases."""
    limit = {"epsilon": 2.0, "delta": 1e-6}
    solved = bank.answer("/calibrate", {"mechanism": {"c_u": 8, "tau": 1}, "releases": releases} | limit)
    bank.put("year", limit | {"mechanism": solved["mechanism"]})

    assert (solved["kind"], solved["budget"], solved["releases"]) == ("remaining", None, releases)
    fitting = [bank.charge(f"y{number}", solved["mechanism"], "year").status_code for number in range(releases + 1)]
    assert fitting == [200] * releases + [409]
    assert solved["delta"] == bank.get("/budgets/year").json()["spent"]["delta"] <= limit["delta"]


def test_a_refusal_names_what_is_used_up_and_a_limit_that_fits(bank: Bank) -> None:
    """In ``errors`` of the 409, in a preview, and a change to that limit lets the release through."""
    mechanism = bank.answer("/calibrate", {"mechanism": {"c_u": 8, "tau": 1}, "epsilon": 1, "delta": 1e-6})["mechanism"]
    limit = {"epsilon": 2.0, "delta": 1e-6}
    bank.put("small", limit)
    assert bank.charge("s1", mechanism, "small").status_code == 200
    preview = bank.answer("/budgets/small/preview", {"mechanism": mechanism})

    sentence = (
        "the threshold needs 100 % of its cap (1e-6 of δ), and nothing remains; the noise needs 100 % of its cap, and "
        "nothing remains; a limit of δ = 2.1e-6 would fit two"
    )
    refused = bank.charge("s2", mechanism, "small")
    assert refused.status_code == 409
    first = refused.json()["errors"][0]
    assert first["pointer"] == "/mechanism/tau_star"
    assert first["detail"].endswith(f"a higher threshold costs less; {sentence}")
    assert (preview["fits"], preview["shortage"]["detail"]) == (False, sentence)
    assert (preview["shortage"]["binding"], preview["shortage"]["releases"]) == ("threshold", 2)
    bank.put("small", limit | {"delta": preview["shortage"]["delta"], "reason": "a test"})
    assert bank.charge("s2", mechanism, "small").status_code == 200


@pytest.mark.parametrize(
    "change",
    [{"epsilon": 1.0}, {"delta": 1e-5}, {"releases": 0}, {"budget": None, "releases": 2}, {"budget": None}],
    ids=str,
)
def test_calibrate_takes_a_target_or_a_budget(bank: Bank, change: Json) -> None:
    body = {"mechanism": {"c_u": 51914, "tau": 1}, "budget": "web"} | change

    problem_errors(bank.post("/calibrate", body), 422, "invalid-request")


def test_calibrate_is_infeasible_if_nothing_remains(bank: Bank) -> None:
    bank.charge("a")
    bank.put("web", LIMIT | {"delta": 1e-6})
    asked = {"mechanism": {"c_u": 51914, "tau": 1}, "budget": "web"}

    problem_errors(bank.post("/calibrate", asked), 409, "too-little-left")
    response = bank.post("/calibrate", asked | {"most_sigma": 1e300})
    assert "nothing is left" in problem_errors(response, 409, "too-little-left")["/releases"]
    fixed = {"mechanism": {"c_u": 51914, "tau": 1, "sigma": 2300}, "budget": "web"}
    assert "used up" in problem_errors(bank.post("/calibrate", fixed), 422, "infeasible-target")["/mechanism"]


@pytest.mark.parametrize(
    "draft", [{"c_u": 51914, "tau": 1}, {"c_u": 51914, "tau": 1, "tau_star": 1e15}, {"c_u": 1, "tau": 1}], ids=str
)
def test_a_sliver_of_a_budget_is_refused_before_anything_is_charged(bank: Bank, draft: Json) -> None:
    """Without the rule, the answer is a σ of 10⁸ or so, for a table that is empty."""
    for number in range(7):
        bank.charge(str(number))
    sliver = bank.budget()["remaining"]["mu_squared"] - 1e-9
    assert bank.charge("nearly-all", {"c_u": 1, "sigma": sliver**-0.5}).status_code == 200
    asked = {"mechanism": draft, "budget": "web"}

    errors = problem_errors(bank.post("/calibrate", asked), 409, "too-little-left")
    assert "on average" in errors["/releases"]
    assert "most_sigma" in errors["/releases"]
    bound = problem_errors(bank.post("/calibrate", asked | {"most_sigma": 1e3}), 409, "too-little-left")
    assert "most_sigma is 1000" in bound["/releases"]
    assert bank.answer("/calibrate", asked | {"most_sigma": 1e12})["mechanism"]["sigma"] > 1e4


def test_the_most_noise_of_a_share_needs_a_budget_and_is_a_positive_number(bank: Bank) -> None:
    target = {"mechanism": {"c_u": 8, "tau": 1}, "epsilon": 1.0, "delta": 1e-6, "releases": 2}

    problem_errors(bank.post("/calibrate", target | {"most_sigma": 10.0}), 422, "invalid-request")
    share = {"mechanism": {"c_u": 51914, "tau": 1}, "budget": "web"}
    problem_errors(bank.post("/calibrate", share | {"most_sigma": 0}), 422, "invalid-request")
    tiny = problem_errors(bank.post("/calibrate", share | {"releases": 10**9}), 409, "too-little-left")
    assert "most_sigma is 1e+06" in tiny["/releases"]


def test_a_ledger_that_cannot_be_opened_is_503_and_accounting_goes_on(tmp_path: Any) -> None:
    client = Client(ledger=str(tmp_path / "missing" / "ledger.sqlite3"))

    problem_errors(client.get("/budgets"), 503, "ledger-unavailable")
    assert client.point(CASE_STUDY, 0.349)["delta"] == 1.003103848512688e-05
