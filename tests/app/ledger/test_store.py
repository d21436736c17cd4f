"""The ledger on SQLite and on PostgreSQL: a request is charged once, budgets are never overspent, changes are found."""

import hashlib
import threading
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.ledger.answers import PART_BYTES, SMALL_BYTES, Staged
from app.ledger.budget_rows import add_entry, find_budget, set_budget
from app.ledger.errors import BudgetExceeded, KeyReused, UnknownBudget
from app.ledger.opening import connections_of, is_postgres, open_ledger
from app.ledger.releases import Notes
from app.ledger.state import Budget, By, HistoryFault, check_history
from app.ledger.store import Ledger
from gsh.accounting.accountings import EXACT, at_epsilon
from gsh.accounting.budget_limits import Limit
from gsh.accounting.composition import NOTHING, Part, cost_of, delta_at
from tests.app.ledger.examples import AT, GAUSSIAN, SMALL, URLS, charge, paid, store


@pytest.fixture(autouse=True)
def web(ledger: Ledger) -> None:
    ledger.put_budget("web", Limit(1.0, 1e-4), "page views", AT)


def test_a_budget_is_made_once_and_changed_by_a_recorded_act(ledger: Ledger) -> None:
    assert ledger.put_budget("web", Limit(1.0, 1e-4), "page views", AT).entries == 1
    assert ledger.put_budget("web", Limit(2.0, 1e-4), "page views", AT, reason="a test").entries == 2
    assert ledger.put_budget("ads", Limit(2.0, 1e-4), "", AT).entries == 1

    assert [budget.id for budget in ledger.budgets()] == ["ads", "web"]
    assert ledger.budget("web")[0].limit == Limit(2.0, 1e-4)
    assert [(entry.number, entry.kind) for entry in ledger.history("web", None, 10)] == [(2, "changed"), (1, "created")]
    assert ledger.verify("web")[1] is None


def test_one_charge_costs_the_exact_delta(ledger: Ledger) -> None:
    charge(ledger, paid())
    account = ledger.budget("web")

    assert delta_at(account.budget.spent, 0.349) == at_epsilon(EXACT, URLS, 0.349).delta
    assert account.parts == [Part(cost_of(URLS), 1)]


def test_the_same_key_and_request_give_the_stored_answer_and_one_charge(ledger: Ledger) -> None:
    first = charge(ledger, paid(), b"the first noise")

    assert charge(ledger, paid(), b"other noise") == first == b"the first noise"
    assert ledger.check(paid(), AT) is None
    assert b"".join(ledger.content(ledger.recall(paid(), AT))) == first
    assert ledger.budget("web")[0].spent.releases == 1


def test_the_same_key_with_another_request_is_refused(ledger: Ledger) -> None:
    ledger.put_budget("ads", Limit(1.0, 1e-4), "", AT)
    charge(ledger, paid())

    for other in (paid(request="r2"), paid(budget="ads", request="r2")):
        assert ledger.check(other, AT) is None
        with pytest.raises(KeyReused):
            ledger.recall(other, AT)
        with pytest.raises(KeyReused):
            charge(ledger, other)
    assert ledger.budget("ads")[0].spent.releases == 0


def test_exactly_the_number_allowed_by_composition_fits(ledger: Ledger) -> None:
    many = Limit(1.0, 1e-4).how_many_fit(NOTHING, URLS, cost_of(URLS))
    for number in range(many):
        charge(ledger, paid(key=str(number)))

    drawn: list[int] = []
    with pytest.raises(BudgetExceeded) as refused:
        ledger.check(paid(key="one more"), AT)
    with pytest.raises(BudgetExceeded):
        ledger.charge(paid(key="one more"), AT, lambda _budget, number: drawn.append(number) or store(ledger, b"42"))
    assert drawn == []
    assert refused.value.budget.spent.releases == many == 7
    assert refused.value.asked == URLS
    assert ledger.check(paid(key="0"), AT) is None  # the stored answer is still available


def test_a_lowered_limit_holds_at_once_and_a_raised_one_lets_through_again(ledger: Ledger) -> None:
    charge(ledger, paid(key="a"))
    ledger.put_budget("web", Limit(1.0, 1e-5), "", AT, reason="a test")
    with pytest.raises(BudgetExceeded):
        charge(ledger, paid(key="b"))
    ledger.put_budget("web", Limit(1.0, 1e-3), "", AT, reason="a test")

    assert charge(ledger, paid(key="b")) == b"42"
    assert ledger.verify("web")[1] is None


def test_nothing_can_be_charged_to_an_unknown_budget(ledger: Ledger) -> None:
    for attempt in (
        lambda: ledger.check(paid(budget="none"), AT),
        lambda: charge(ledger, paid(budget="none")),
        lambda: ledger.budget("none"),
        lambda: ledger.history("none", None, 10),
        lambda: ledger.verify("none"),
    ):
        with pytest.raises(UnknownBudget):
            attempt()


def test_sums_are_exact_across_the_database(ledger: Ledger) -> None:
    for number, release in enumerate((URLS, SMALL, GAUSSIAN)):
        charge(ledger, paid(key=str(number), release=release))
    spent = ledger.budget("web")[0].spent
    costs = [cost_of(release) for release in (URLS, SMALL, GAUSSIAN)]

    assert spent.mu_squared == sum(Fraction(cost.mu_squared) for cost in costs)
    assert spent.hazard == sum(Fraction(cost.hazard) for cost in costs)


@pytest.mark.parametrize("size", [0, 1, SMALL_BYTES, SMALL_BYTES + 1, PART_BYTES - 1, PART_BYTES, 2 * PART_BYTES + 17])
def test_answers_of_any_size_are_stored_byte_for_byte(ledger: Ledger, size: int) -> None:
    content = bytes(range(256)) * (size // 256 + 1)
    staged = store(ledger, content[:size], "x/y")
    release = ledger.charge(paid(), AT, lambda _budget, _number: staged).release

    assert b"".join(ledger.content(release)) == content[:size]
    assert (release.media_type, release.size) == ("x/y", size)
    assert ledger.release("first") == release
    assert ledger.verify("web")[1] is None


def test_a_failure_while_an_answer_is_charged_leaves_nothing(ledger: Ledger) -> None:
    """The charge and its answer are one transaction."""

    def broken(_budget: Budget, _number: int) -> Staged:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        ledger.charge(paid(), AT, broken)

    assert ledger.budget("web")[0].spent == NOTHING
    assert charge(ledger, paid()) == b"42"


def test_histories_are_paged_from_the_latest(ledger: Ledger) -> None:
    for number in range(5):
        charge(ledger, paid(key=str(number), release=GAUSSIAN))

    first = ledger.history("web", None, 4)
    second = ledger.history("web", first[-1].number, 4)

    assert [entry.number for entry in first + second] == [6, 5, 4, 3, 2, 1]
    assert [entry.details.get("key") for entry in first] == ["4", "3", "2", "1"]


TAMPERING = {
    "a charge made cheaper": "UPDATE entries SET payload = replace(payload, '2228.0', '9999.0') WHERE number = 2",
    "a charge taken out": "DELETE FROM entries WHERE number = 2",
    "the last charge taken out": "DELETE FROM entries WHERE number = 3",
    "a time changed": "UPDATE entries SET at = '2020-01-01T00:00:00Z' WHERE number = 3",
    "a sum made smaller": "UPDATE budgets SET s = '1/1024'",
    "a limit raised": "UPDATE budgets SET epsilon = 5",
    "a count changed": "UPDATE budgets SET charges = 1",
    "a small answer changed": "UPDATE entries SET content = substr(content, 1, 1) WHERE key = 'b'",
    "a large answer changed": "UPDATE parts SET content = substr(content, 1, 1)",
    "a request that would be recognised": "UPDATE entries SET request = 'another' WHERE key = 'b'",
    "another type of answer": "UPDATE entries SET media_type = 'text/html' WHERE key = 'b'",
    "another size": "UPDATE entries SET size = 1 WHERE key = 'b'",
    "another cost to bound from below": "UPDATE entries SET s = s / 2 WHERE key = 'b'",
    "another D": "UPDATE entries SET d = d / 2 WHERE key = 'b'",
    "another owner": "UPDATE entries SET client = 'another' WHERE key = 'b'",
    "another key": "UPDATE entries SET key = 'c' WHERE key = 'b'",
    "no cost": "UPDATE entries SET s = NULL WHERE key = 'b'",
    "an answer that nobody paid for": "UPDATE entries SET key = 'c', request = 'r' WHERE number = 1",
    "a sum that is no fraction": "UPDATE budgets SET s = 'nothing'",
    "a sum that is no number": "UPDATE budgets SET s = '1/0'",
    "a release that is none": "UPDATE budgets SET only_release = '[]'",
    "a release that is impossible": """UPDATE budgets SET only_release = '{"c_u": 0, "sigma": 1.0}'""",
    "a payload that is no JSON": "UPDATE entries SET payload = '{' WHERE number = 2",
    "another unit": "UPDATE budgets SET privacy_unit = 'household'",
    "another period": "UPDATE budgets SET period = 'week'",
    "another certificate": "UPDATE releases SET certificate = 'x' WHERE key = 'b'",
    "another layout": "UPDATE releases SET layout = 'x' WHERE key = 'b'",
    "another plan": "UPDATE releases SET provenance = 'x' WHERE key = 'b'",
    "another description": "UPDATE releases SET description = 'x' WHERE key = 'b'",
    "another label": """UPDATE releases SET labels = '["x"]' WHERE key = 'b'""",
    "another release id": "UPDATE releases SET release_id = 'x' WHERE key = 'b'",
    "another content that would be recognised": "UPDATE releases SET content_hash = 'x' WHERE key = 'b'",
    "another state": "UPDATE releases SET state = 'open' WHERE key = 'b'",
    "a commit of a release that was made here": """UPDATE releases SET committed = '{"sha256": ""}' WHERE key = 'b'""",
    "another owner without a seal": "UPDATE releases SET seal = NULL WHERE key = 'b'",
    "another way of encryption": "UPDATE releases SET version = 1 WHERE key = 'b'",
    "another draw": "UPDATE releases SET answer = (SELECT answer FROM releases WHERE key = 'a') WHERE key = 'b'",
    "the key of an answer": "DELETE FROM answer_keys",
    "a release that is gone": "DELETE FROM releases WHERE key = 'b'",
    "an answer that is said to be erased": "UPDATE releases SET erased_at = '2026-11-17T12:00:00Z' WHERE key = 'b'",
    "labels that are no JSON": "UPDATE releases SET labels = '[' WHERE key = 'b'",
}


@pytest.mark.parametrize("tampering", TAMPERING)
def test_the_chain_shows_every_change_made_in_the_database(ledger: Ledger, ledger_url: str, tampering: str) -> None:
    charge(ledger, paid(key="a"), bytes(SMALL_BYTES + 1))
    told = {"release_id": "an id", "description": "views", "labels": ("weekly",), "by": By("4f", "the job")}
    notes = Notes(**told, certificate="{}", provenance="[]", layout="1")
    charge(ledger, replace(paid(key="b"), content="c1", notes=notes))
    assert ledger.verify("web")[1] is None
    with ledger._connections.transaction() as execute:
        if tampering.endswith("out") or tampering == "another key":
            execute("DELETE FROM releases")
        execute(TAMPERING[tampering])

    assert ledger.verify("web")[1] is not None


def test_an_entry_of_an_earlier_version_is_verified_by_its_recorded_fields(ledger: Ledger) -> None:
    """Neither the request nor the type and size of the answer were in the payload."""
    cost, digest = cost_of(URLS), hashlib.sha256(b"42").hexdigest()
    with ledger._connections.transaction() as execute:
        budget = find_budget(execute, ledger._sql, "web")
        assert budget is not None
        after = budget.spent.plus(URLS, cost)
        charged, entry = budget.charged(after, URLS, cost, AT, {"key": "old", "answer": digest})
        set_budget(execute, ledger._sql, charged)
        stored = (cost.mu_squared, cost.hazard, "old", "r1", None, "application/json", 2, b"42")
        add_entry(execute, ledger._sql, entry, stored)
        execute(
            "INSERT INTO releases (key, budget, number, at, state, description, labels) "
            f"VALUES ('old', 'web', 2, '{AT}', 'made', '', '[]')"
        )
    ledger.seal()  # as a migration does
    assert ledger.verify("web")[1] is None
    assert charge(ledger, paid(key="old")) == b"42"

    with ledger._connections.transaction() as execute:
        execute("UPDATE entries SET size = 3 WHERE key = 'old'")
    assert ledger.verify("web")[1] == HistoryFault(2, "has another answer than the one that was paid for")


def test_a_history_without_its_budget_is_found(ledger: Ledger, ledger_url: str) -> None:
    charge(ledger, paid())
    with ledger._connections.transaction() as execute:
        for statement in ("DELETE FROM releases", "DELETE FROM entries", "DELETE FROM budgets"):
            execute(statement)
    connections = connections_of(ledger_url)
    with connections.transaction() as execute:
        if is_postgres(ledger_url):
            execute("ALTER TABLE entries DROP CONSTRAINT entries_budget_fkey")
    with connections.reading() as execute:
        if not is_postgres(ledger_url):
            execute("COMMIT")
            execute("PRAGMA foreign_keys = OFF")
            execute("BEGIN")
    with connections.transaction() as execute:
        execute(connections.statements.add_entry, ("web", 1, "created", AT, "{}", "0" * 64, *(None,) * 8))
    connections.close()

    assert ledger.budgets() == []
    assert ledger.names() == ["web"]
    fault = ledger.verify("web")[1]
    assert fault == HistoryFault(0, "is gone, though there are entries of its history")


def test_bytes_in_a_text_column_are_a_fault(tmp_path: Path) -> None:
    """SQLite stores values of any type."""
    ledger = open_ledger(str(tmp_path / "other.sqlite3"), "a secret for tests")
    ledger.put_budget("web", Limit(1.0, 1e-4), "", AT)
    charge(ledger, paid())
    for column, value in (("payload", b"{}"), ("content", 5), ("at", b"now")):
        with ledger._connections.transaction() as execute:
            ((before,),) = execute(f"SELECT {column} FROM entries WHERE number = 2")
            execute(f"UPDATE entries SET {column} = ? WHERE number = 2", (value,))
        fault = ledger.verify("web")[1]
        assert fault is not None
        assert fault.number == 2
        with ledger._connections.transaction() as execute:
            execute(f"UPDATE entries SET {column} = ? WHERE number = 2", (before,))
    assert ledger.verify("web")[1] is None
    ledger.close()


def test_the_hash_of_a_request_is_recorded_and_not_shown(ledger: Ledger) -> None:
    charge(ledger, paid(request="a keyed hash"))
    (entry,) = ledger.history("web", None, 1)

    assert entry.details["request"] == "a keyed hash"
    assert set(entry.shown) == {
        *("release", "mu_squared", "hazard", "idempotency_key", "answer_seal", "media_type"),
        *("state", "description", "labels"),
    }


def test_a_charge_below_its_cost_is_found_even_with_recomputed_hashes(ledger: Ledger) -> None:
    """A database writer can recompute hashes, but cannot lower a cost."""
    limit = Limit(1.0, 1e-4)
    budget = Budget("web", limit, "").changed_to(limit, AT)
    cheap = cost_of(GAUSSIAN)
    forged, entry = budget[0].charged(NOTHING.plus(URLS, cheap), URLS, cheap, AT, {})
    assert check_history(forged, [budget[1], entry]) is not None
    cost = cost_of(URLS)
    honest, entry = budget[0].charged(NOTHING.plus(URLS, cost), URLS, cost, AT, {})
    assert check_history(honest, [budget[1], entry]) is None


def race(count: int, attempt: object) -> list[object]:
    """The outcomes of ``count`` threads that start together."""
    outcomes: list[object] = []
    gate = threading.Barrier(count)

    def run(number: int) -> None:
        gate.wait()
        try:
            outcomes.append(attempt(number))  # type: ignore[operator]
        except Exception as error:
            outcomes.append(type(error))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def test_racing_threads_never_overspend(ledger: Ledger, ledger_url: str) -> None:
    def attempt(number: int) -> bytes:
        mine = open_ledger(ledger_url, "a secret for tests")
        try:
            return charge(mine, paid(key=str(number)), b"%d" % number)
        finally:
            mine.close()

    outcomes = race(12, attempt)

    assert outcomes.count(BudgetExceeded) == 5
    assert ledger.budget("web")[0].spent.releases == 7
    assert ledger.verify("web")[1] is None


def test_racing_retries_of_one_request_share_one_answer(ledger: Ledger, ledger_url: str) -> None:
    def attempt(number: int) -> bytes:
        mine = open_ledger(ledger_url, "a secret for tests")
        try:
            return charge(mine, paid(), b"noise %d" % number)
        finally:
            mine.close()

    outcomes = race(8, attempt)

    assert len(set(outcomes)) == 1
    assert ledger.budget("web")[0].spent.releases == 1


def test_a_budget_whose_last_charge_was_changed_is_shown_without_what_fits(ledger: Ledger) -> None:
    """A verification says what is wrong. Before, there is the release that the budget was charged for."""
    ledger.put_budget("web", Limit(1.0, 1e-4), "", AT)
    charge(ledger, paid())
    assert ledger.budget("web").like == (cost_of(URLS), URLS)

    with ledger._connections.transaction() as execute:
        execute("UPDATE entries SET payload = '{' WHERE kind = 'charge'")

    assert ledger.budget("web").like is None
    fault = ledger.verify("web")[1]
    assert fault is not None
    assert fault.number == ledger.standing("web").entries


def test_a_budget_made_by_several_at_once_is_made_once(ledger: Ledger, ledger_url: str) -> None:
    def attempt(_number: int) -> int:
        mine = open_ledger(ledger_url, "a secret for tests")
        try:
            return mine.put_budget("new", Limit(1.0, 1e-5), "", AT).entries
        finally:
            mine.close()

    assert race(8, attempt) == [1] * 8
    assert ledger.verify("new")[1] is None


@settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 1), st.sampled_from([URLS, SMALL, GAUSSIAN])), max_size=12))
def test_any_history_of_requests_is_charged_once_each(ledger: Ledger, requests: list[tuple[int, int, object]]) -> None:
    """Compared with a dictionary: the first request is charged, its repetitions are answered, others are refused."""
    name = f"b{len(ledger.budgets())}"
    ledger.put_budget(name, Limit(50.0, 0.5), "", AT)
    model: dict[str, str] = {}
    for number, (key, request, release) in enumerate(requests):
        at = f"2026-11-16T12:{number:02}:00Z"  # a minute later, so each may be compared
        asked = paid(name, f"{name}-{key}", f"{request}", release)  # type: ignore[arg-type]
        if model.setdefault(asked.idempotency_key, asked.request) == asked.request:
            assert charge(ledger, asked, asked.idempotency_key.encode(), at) == asked.idempotency_key.encode()
        else:
            with pytest.raises(KeyReused):
                charge(ledger, asked, at=at)

    assert ledger.budget(name)[0].spent.releases == len(model)
    assert ledger.verify(name)[1] is None
