"""Budgets with parents: a charge is admitted by all levels or by none, and every level keeps its own promise."""

import json
from collections.abc import Callable
from contextlib import closing
from itertools import pairwise

import pytest

from app.ledger.answers import Staged
from app.ledger.budget_rows import add_entry, set_budget
from app.ledger.databases import Execute
from app.ledger.errors import BudgetExceeded, DivisionSettled, InvalidParent, KeyReused, ParentSettled, ReasonMissing
from app.ledger.lineage import MOST_LEVELS, Lineage, least_remaining
from app.ledger.opening import open_ledger
from app.ledger.state import Budget
from app.ledger.store import Ledger
from gsh.accounting.budget_limits import Limit
from gsh.accounting.composition import NOTHING, Cost, cost_of
from gsh.accounting.mechanism import PlainGaussian
from gsh.wire import charged_from_json
from tests.app.ledger.examples import AT, GAUSSIAN, SMALL, URLS, charge, paid, store
from tests.app.ledger.test_store import race
from tests.gsh.accounting.test_budget_limits import adaptive_delta

WIDE, LIMIT = Limit(10.0, 1e-3), Limit(1.0, 1e-4)
TREE = {"company": None, "division": "company", "web": "division", "ads": "company"}
BELOW_WEB = ("web", "division", "company")


def put(ledger: Ledger, name: str, parent: str | None, limit: Limit = WIDE, reason: str = "a test") -> Budget:
    return ledger.put_budget(name, limit, "", AT, settings={"parent": parent}, reason=reason)


@pytest.fixture
def tree(ledger: Ledger) -> Ledger:
    """A company with a division, which has one team, and with a team of its own."""
    for name, parent in TREE.items():
        put(ledger, name, parent)
    return ledger


def faults(ledger: Ledger) -> dict[str, tuple[int, str]]:
    found = {name: ledger.verify(name)[1] for name in ledger.names()}
    return {name: (fault.number, fault.detail) for name, fault in found.items() if fault is not None}


def test_a_charge_is_recorded_at_all_levels_and_each_entry_names_the_others(tree: Ledger) -> None:
    after: list[tuple[Lineage, int]] = []

    def answer(lineage: Lineage, number: int) -> Staged:
        after.append((lineage, number))
        return store(tree, b"42")

    charge(tree, paid("ads", "before", release=SMALL))
    release = tree.charge(paid("web", "first", release=URLS), AT, answer).release
    cost = cost_of(URLS)

    assert (release.budget, release.number) == ("web", 2)
    assert release.ancestors == tree.release("first").ancestors == (("division", 2), ("company", 3))
    assert [(each.id, each.spent, each.entries + 1) for each in after[0][0]] == [
        (name, tree.standing(name).spent, tree.standing(name).entries) for name in BELOW_WEB
    ]
    assert tree.standing("web").spent == NOTHING.plus(URLS, cost) == tree.standing("division").spent
    assert tree.standing("company").spent == NOTHING.plus(SMALL, cost_of(SMALL)).plus(URLS, cost)
    through = {"budget": "web", "number": 2, "hash": release.head, "key": "first"}
    assert [tree.history(each.budget, None, 1)[0].details["through"] for each in release.ancestors] == [through] * 2
    assert [part.times for part in tree.budget("company").parts] == [1, 1]
    assert faults(tree) == {}


def test_the_same_request_again_is_charged_at_no_level(tree: Ledger) -> None:
    assert charge(tree, paid(), b"one") == charge(tree, paid(), b"two") == b"one"
    with pytest.raises(KeyReused):
        charge(tree, paid("division", request="r2"))

    assert [tree.standing(name).spent.releases for name in TREE] == [1, 1, 1, 0]


@pytest.mark.parametrize("short", BELOW_WEB)
def test_a_charge_that_one_level_cannot_pay_is_charged_at_none(tree: Ledger, short: str) -> None:
    charge(tree, paid(key="a"))
    tree.put_budget(short, Limit(0.3, 1e-5), None, AT, reason="less")
    before = [tree.standing(name) for name in TREE]

    for attempt in (lambda: charge(tree, paid(key="b")), lambda: tree.check(paid(key="b"), AT)):
        with pytest.raises(BudgetExceeded) as refused:
            attempt()
        assert (refused.value.budget.id, refused.value.is_ancestor) == (short, short != "web")
    assert [tree.standing(name) for name in TREE] == before
    assert charge(tree, paid(key="a")) == b"42"  # the stored answer is still there
    assert faults(tree) == {}


def test_each_level_is_divided_by_its_own_first_release_and_keeps_its_promise(tree: Ledger) -> None:
    """A typical mechanism, named before, decides instead."""
    tree.put_budget("division", Limit(10.0, 1e-3, cost_of(SMALL)), None, AT, reason="typical")
    charge(tree, paid("ads", "a", release=GAUSSIAN))
    charge(tree, paid("web", "b", release=URLS))

    proportions = {name: tree.standing(name).limit.proportion for name in TREE}
    first = {"company": GAUSSIAN, "division": SMALL, "web": URLS, "ads": GAUSSIAN}
    assert proportions == {name: cost_of(release) for name, release in first.items()}
    with pytest.raises(DivisionSettled):
        tree.put_budget("company", Limit(10.0, 1e-3, cost_of(URLS)), None, AT, reason="typical")
    assert tree.put_budget("company", Limit(10.0, 1e-4), None, AT, reason="less").promise == pytest.approx(1e-3)
    assert tree.standing("web").promise == pytest.approx(1e-3)
    assert faults(tree) == {}


def test_levels_may_protect_different_units(ledger: Ledger) -> None:
    """A user in one week below, and a user in all weeks above."""
    put(ledger, "users", None)
    ledger.put_budget("week", WIDE, "", AT, settings={"parent": "users", "period": "week"})
    charge(ledger, paid("week"))

    assert [(each.privacy_unit, each.period) for each in ledger.lineage("week")] == [("user", "week"), ("user", None)]
    assert all(each.promise is not None for each in ledger.lineage("week"))


def test_a_parent_is_a_budget_above_and_the_tree_has_few_levels(ledger: Ledger) -> None:
    names = [f"level-{number}" for number in range(MOST_LEVELS)]
    put(ledger, names[0], None)
    for above, name in pairwise(names):
        put(ledger, name, above)
    put(ledger, "other", None)

    for name, parent in (
        *((each, "none") for each in ("new", "other")),
        *((names[0], each) for each in (names[0], names[1], names[-1])),
        *((each, names[-1]) for each in ("new", "other")),
        (names[0], "other"),
    ):
        with pytest.raises(InvalidParent):
            put(ledger, name, parent)
    assert put(ledger, "other", names[-2]).parent == names[-2]
    assert ledger.names() == sorted([*names, "other"])
    charge(ledger, paid(names[-1]))
    assert [each.spent.releases for each in ledger.lineage(names[-1])] == [1] * MOST_LEVELS
    assert faults(ledger) == {}


def test_the_first_charge_fixes_the_parent_and_before_it_a_change_needs_a_reason(tree: Ledger) -> None:
    with pytest.raises(ReasonMissing):
        put(tree, "ads", "division", reason="")
    assert put(tree, "ads", "division").parent == "division"
    assert put(tree, "ads", None).parent is None
    assert put(tree, "ads", "company").entries == 4
    assert tree.put_budget("ads", LIMIT, None, AT, reason="kept").parent == "company"
    changed = tree.history("ads", None, 10)[-2].shown
    assert changed["changes"] == [{"field": "parent", "before": "company", "after": "division"}]
    charge(tree, paid("web"))

    for name in BELOW_WEB:
        for parent in {None, "ads"} - {tree.standing(name).parent}:
            with pytest.raises(ParentSettled):
                put(tree, name, parent)
    assert put(tree, "ads", "division").parent == "division"  # it has no charge yet
    assert faults(tree) == {}


def test_what_remains_is_the_least_of_all_levels(tree: Ledger) -> None:
    charge(tree, paid("web", "a", release=URLS))
    charge(tree, paid("ads", "b", release=GAUSSIAN))
    rooms = [each.limit.remaining(each.spent) for each in tree.lineage("web")]

    assert least_remaining(tree.lineage("web")) == Cost(
        min(room.mu_squared for room in rooms), min(room.hazard for room in rooms)
    )
    assert least_remaining(tree.lineage("web")) != rooms[0]


def test_an_analyst_with_two_children_of_other_proportions_stays_within_the_promise_of_the_parent(
    ledger: Ledger,
) -> None:
    """After noise through one child, the rest goes to noise or, through the other child, to a threshold.

    Each child alone keeps its limit on each path. Without the parent, both together could cost far more than 10⁻⁴.
    """
    noise, thresholds = cost_of(PlainGaussian(c_u=1, sigma=10.0)), Cost(1.0, 1.6e-3)
    put(ledger, "company", None, LIMIT)
    for name, proportion in (("noise", noise), ("thresholds", thresholds)):
        put(ledger, name, "company", Limit(1.0, 1e-4, proportion))
    first = PlainGaussian(c_u=1, sigma=(0.6 * Limit(1.0, 1e-4, noise).remaining(NOTHING).mu_squared) ** -0.5)
    charge(ledger, paid("noise", release=first))

    def cost(rooms: tuple[Cost, Cost]) -> float:
        return adaptive_delta(cost_of(first).mu_squared, rooms[0].mu_squared, rooms[1].hazard, 0.402, 1.0)

    alone = [ledger.standing(name) for name in ("noise", "thresholds")]
    own = [each.limit.remaining(each.spent) for each in alone]
    least = [least_remaining(ledger.lineage(name)) for name in ("noise", "thresholds")]
    promise = ledger.standing("company").promise
    assert promise is not None
    assert promise <= 1e-4
    assert least[0].mu_squared > 0
    assert least[1].hazard > 0
    assert cost((least[0], least[1])) <= promise
    assert cost((own[0], own[1])) > 1.5e-4


def test_racing_clients_on_two_children_never_exceed_the_parent(ledger: Ledger, ledger_url: str) -> None:
    """Exactly as many fit as without a race; meanwhile somebody moves other budgets in the tree."""
    many = LIMIT.how_many_fit(NOTHING, URLS, cost_of(URLS))
    put(ledger, "company", None, LIMIT)
    for name in ("web", "ads", "one", "two"):
        put(ledger, name, "company")

    def attempt(number: int) -> object:
        with closing(open_ledger(ledger_url, "a secret for tests")) as mine:
            if number % 16 == 15:
                return put(mine, *[("one", "two"), ("two", "one")][number // 16 % 2])
            return charge(mine, paid(("web", "ads")[number % 2], str(number)))

    outcomes = race(64, attempt)

    assert outcomes.count(b"42") == many
    assert outcomes.count(BudgetExceeded) == 60 - many
    moved = [each for each in outcomes if isinstance(each, Budget)]
    assert len(moved) + outcomes.count(InvalidParent) == 4
    assert ledger.standing("company").spent == NOTHING.plus(URLS, cost_of(URLS), many)
    assert sum(ledger.standing(name).spent.releases for name in ("web", "ads")) == many
    assert len(ledger.lineage("one")) + len(ledger.lineage("two")) == 5  # one is below the other, and there is no cycle
    assert faults(ledger) == {}


# Changes of the database by somebody who restores a whole level to an earlier state, or adds a charge to one.


def undo(ledger: Ledger, name: str, before: Budget) -> None:
    """Set one level back to before its last charge, with all hashes and sums as they were then."""
    with ledger._connections.transaction() as execute:
        restored(execute, ledger, name, before)


def restored(execute: Execute, ledger: Ledger, name: str, before: Budget) -> None:
    for table in ("answer_keys", "releases"):
        if name == "web":
            execute(f"DELETE FROM {table}")
    execute(ledger._sql._adapt("DELETE FROM entries WHERE budget = %s AND number > %s"), (name, before.entries))
    set_budget(execute, ledger._sql, before)


@pytest.mark.parametrize("level", BELOW_WEB)
def test_a_charge_that_is_missing_at_one_level_is_found_from_every_other_one(tree: Ledger, level: str) -> None:
    before = {name: tree.standing(name) for name in TREE}
    charge(tree, paid("web"))
    undo(tree, level, before[level])

    found = faults(tree)
    assert "web" in found or level == "web"
    assert {"company", "division"} - {level} <= found.keys() or level != "web"
    if level != "web":
        assert found["web"] == (2, f"is not charged in entry 2 of the budget {level}, which it names")
    if level == "company":
        assert found["company"] == (0, "does not have as many charges as its children have")


FORGERIES: dict[str, Callable[[dict[str, object]], dict[str, object]]] = {
    "another release": lambda details: details | {"release": {"c_u": 1, "sigma": 50.0, "mu_0": 0.0}},
    "another cost": lambda details: details | {"s": float(str(details["s"])) * 2},
    "another budget": lambda details: details | {"through": dict(details["through"], budget="ads")},  # type: ignore[call-overload]
    "another entry": lambda details: details | {"through": dict(details["through"], number=1)},  # type: ignore[call-overload]
    "another name": lambda details: details | {"through": dict(details["through"], key="x")},  # type: ignore[call-overload]
    "no descendant": lambda details: {name: value for name, value in details.items() if name != "through"},
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_an_entry_of_an_ancestor_that_was_written_anew_is_found(tree: Ledger, forgery: str) -> None:
    """With all hashes and sums of its level computed again."""
    before = tree.standing("company")
    charge(tree, paid("web"))
    entry = tree.history("company", None, 1)[0]
    details = json.loads(json.dumps(FORGERIES[forgery](entry.details)))
    release, cost = charged_from_json(details.pop("release")), Cost(details["s"], details["d"])
    further = {name: value for name, value in details.items() if name not in ("s", "d")}
    after, forged = before.charged(before.spent.plus(release, cost), release, cost, AT, further)
    with tree._connections.transaction() as execute:
        restored(execute, tree, "company", before)
        set_budget(execute, tree._sql, after)
        add_entry(execute, tree._sql, forged, (cost.mu_squared, cost.hazard, *[None] * 6))

    found = faults(tree)
    assert {"web", "company"} <= found.keys()
    assert "division" not in found


def test_a_parent_that_was_removed_in_the_database_is_found_and_a_cycle_is_no_endless_loop(tree: Ledger) -> None:
    charge(tree, paid("web"))
    with tree._connections.transaction() as execute:
        execute("UPDATE budgets SET parent = NULL WHERE id = 'web'")
    assert faults(tree)["web"] == (0, "does not match its history")
    assert "division" in faults(tree)
    with tree._connections.transaction() as execute:
        execute("UPDATE budgets SET parent = 'web' WHERE id = 'company'")
        execute("UPDATE budgets SET parent = 'division' WHERE id = 'web'")
    assert {"company"} <= faults(tree).keys()
    with pytest.raises(Exception, match="ancestors"):
        charge(tree, paid("web", "next"))
