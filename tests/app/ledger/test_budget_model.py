"""Trees of budgets, periods, limits, approvals and charges in any order, against a small reference.

The reference keeps lists, adds fractions, and counts days with the calendar. It knows no database and no histories.
"""

import itertools
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from app.ledger.charges import Charge
from app.ledger.clock import after
from app.ledger.errors import (
    AwaitsApproval,
    BudgetExceeded,
    InvalidParent,
    LedgerError,
    OutdatedRequest,
    ParentSettled,
    PeriodClosed,
    UnknownBudget,
)
from app.ledger.lineage import MOST_LEVELS
from app.ledger.opening import open_ledger
from app.ledger.releases import Notes
from app.ledger.state import ApprovalRule, By
from gsh.accounting.budget_limits import Caps, Limit
from gsh.accounting.composition import Cost, Release, Spent, cost_of, delta_at, fits
from gsh.accounting.mechanism import Mechanism, PlainGaussian
from tests.app.ledger.examples import AT, charge, paid
from tests.surroundings import some_of

NAMES = st.sampled_from(["a", "b", "c", "d", "e"])
WEEKLY = "w"
"""The budget that is renewed each week, and closed a week after the end of each."""
RULES: st.SearchStrategy[ApprovalRule | None] = st.sampled_from([None, None, None, None, "limits", "releases"])
ASKER, OFFICER = By("4f1c2a9b", "operations"), By("7d0e55aa", "officer")
LIMITS = [(1.0, 1e-4), (0.5, 1e-5), (2.0, 1e-4), (1.0, 1e-3)]
FOUR_LIMITS = st.lists(st.sampled_from(LIMITS), min_size=4, max_size=4)
RELEASES: list[Release] = [
    PlainGaussian(c_u=1, sigma=12.0),
    PlainGaussian(c_u=1, sigma=4.0),
    Mechanism(c_u=3, tau=1, tau_star=120.0, sigma=20.0),
    Mechanism(c_u=1, tau=1, tau_star=41.0, sigma=10.0),
]


@dataclass
class Level:
    """One budget as the reference knows it: its settings, and every release that it was charged for, in order."""

    epsilon: float
    delta: float
    parent: str | None
    approval: ApprovalRule | None = None
    charged: list[Release] = field(default_factory=list)
    vector: Caps | None = None
    """The caps when the first release was charged: all later caps are multiples of them."""
    hull: Fraction = Fraction(0)
    """The largest multiple so far."""

    @property
    def settings(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("epsilon", "delta", "parent", "approval")}

    def admits(self, release: Release) -> bool:
        cost, spent = cost_of(release), self.sums(release)
        if not self.charged and fits(Spent(releases=1, only=release), self.epsilon, self.delta):
            return True
        caps = self.first_caps(cost) if self.vector is None else self.vector.times(self.multiple())
        return spent[0] <= caps.mu_squared and spent[1] <= caps.hazard

    def charge(self, release: Release) -> None:
        if self.vector is None:
            self.vector = self.first_caps(cost_of(release))
        self.hull = max(self.hull, self.multiple())
        self.charged.append(release)

    def limit_to(self, epsilon: float, delta: float) -> None:
        self.epsilon, self.delta = epsilon, delta
        if self.vector is not None:
            self.hull = max(self.hull, self.multiple())

    def sums(self, *more: Release) -> tuple[Fraction, Fraction]:
        costs = [cost_of(release) for release in (*self.charged, *more)]
        return sum((Fraction(c.mu_squared) for c in costs), Fraction(0)), sum(
            (Fraction(c.hazard) for c in costs), Fraction(0)
        )

    def first_caps(self, cost: Cost) -> Caps:
        return Limit(self.epsilon, self.delta, cost).caps

    def multiple(self) -> Fraction:
        """How far the limit reaches along the vector, found by bisection instead of by the ledger's search."""
        assert self.vector is not None
        low, high = Fraction(0), Fraction(1)
        while self.vector.times(high).fit(self.epsilon, self.delta):
            low, high = high, 2 * high
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if self.vector.times(middle).fit(self.epsilon, self.delta) else (low, middle)
        return low


@dataclass
class Request:
    """What waits for the officer, or waited: a change of some settings, or a release by its idempotency key."""

    budget: str
    before: dict[str, Any] = field(default_factory=dict)
    after: dict[str, Any] = field(default_factory=dict)
    key: str | None = None
    state: str = "waiting"


class Budgets(RuleBasedStateMachine):
    """The ledger and the reference admit the same, refuse the same, and have the same sums."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.ledger = open_ledger(str(Path(self.folder.name) / "ledger.sqlite3"), "a secret for tests")
        self.levels: dict[str, Level] = {}
        self.keys: dict[str, tuple[str, Release]] = {}
        self.unpaid: dict[str, tuple[str, Release]] = {}
        self.requests: dict[str, Request] = {}
        self.numbers = itertools.count()
        self.days = 0

    @property
    def now(self) -> str:
        """Each step is a minute after the one before: guesses about requests are limited to some in a minute."""
        return after(AT, self.days * 86_400.0 + 60.0 * next(self.numbers))

    def lineage(self, name: str) -> list[str]:
        found = [name]
        while (parent := self.levels[found[-1]].parent) is not None:
            found.append(parent)
        return found

    def parent_error(self, name: str, parent: str | None) -> type[LedgerError] | None:
        now = self.levels.get(name)
        if parent == (None if now is None else now.parent):
            return None
        if now is not None and (now.charged or any(each.startswith(f"{name}@") for each in self.levels)):
            return ParentSettled
        if parent is not None and (parent not in self.levels or name in self.lineage(parent) or parent == WEEKLY):
            return InvalidParent
        return None  # six names are never more than MOST_LEVELS

    @initialize(
        parents=st.tuples(st.just("a"), st.sampled_from("ab"), st.sampled_from("abc")),
        limits=FOUR_LIMITS,
        above=st.sampled_from([None, "a", "b", "c"]),
        approvals=st.lists(RULES, min_size=4, max_size=4),
    )
    def plant(
        self,
        parents: tuple[str, ...],
        limits: list[tuple[float, float]],
        above: str | None,
        approvals: list[ApprovalRule | None],
    ) -> None:
        """Four budgets below each other, or next to each other, and one that is renewed."""
        for name, parent, limit, approval in zip("abcd", (None, *parents), limits, approvals, strict=True):
            self.put(name, limit, {"parent": parent, "approval": approval})
        renewed: Any = {"parent": above, "renews": "week", "closes_after": 7}
        self.ledger.put_budget(WEEKLY, Limit(*limits[0]), "", AT, settings=renewed, by=ASKER, client=ASKER.id)
        self.levels[WEEKLY] = Level(*limits[0], above)

    @rule(days=st.sampled_from([1, 4, 7]))
    def wait(self, days: int) -> None:
        self.days += days

    @rule(name=NAMES | st.just(WEEKLY), limit=st.sampled_from(LIMITS), parent=st.none() | NAMES | st.just(WEEKLY))
    def move(self, name: str, limit: tuple[float, float], parent: str | None) -> None:
        self.put(name, limit, {"parent": parent})

    @precondition(lambda self: self.levels)
    @rule(data=st.data(), limit=st.sampled_from(LIMITS))
    def raise_or_lower(self, data: st.DataObject, limit: tuple[float, float]) -> None:
        """Also of a period. Several changes that wait for the same budget: only one of them can be made."""
        waiting = sorted({each.budget for each in self.requests.values() if each.state == "waiting"})
        self.put(data.draw(st.sampled_from(waiting or sorted(self.levels))), limit, {})

    @precondition(lambda self: self.levels)
    @rule(data=st.data(), approval=RULES)
    def demand(self, data: st.DataObject, approval: ApprovalRule | None) -> None:
        """From now on a second access key must approve, or no longer."""
        name = data.draw(st.sampled_from(sorted(self.levels)))
        level = self.levels[name]
        self.put(name, (level.epsilon, level.delta), {"approval": approval})

    def put(self, name: str, limit: tuple[float, float], settings: dict[str, Any]) -> None:
        now = self.levels.get(name)
        wanted = {"epsilon": limit[0], "delta": limit[1]} | settings
        expected = self.parent_error(name, settings["parent"]) if "parent" in settings else None
        changed = {} if now is None else {each: wanted[each] for each in wanted if wanted[each] != now.settings[each]}
        if expected is None and now is not None and now.approval is not None and changed:
            expected = AwaitsApproval
        raised: LedgerError | None = None
        given: Any = {"settings": settings, "reason": "a test", "by": ASKER, "client": ASKER.id}
        try:
            self.ledger.put_budget(name, Limit(*limit), None, self.now, **given)
        except (InvalidParent, ParentSettled, AwaitsApproval) as error:
            raised = error
        assert (None if raised is None else type(raised)) == expected
        if raised is None:
            self.change(name, wanted)
        elif isinstance(raised, AwaitsApproval):
            assert now is not None
            asked = Request(name, {each: now.settings[each] for each in changed}, changed)
            found = [each for each in self.requests.items() if each[1] == asked]
            assert not found or found[0][0] == raised.approval.id
            self.requests[raised.approval.id] = asked

    def change(self, name: str, wanted: dict[str, Any]) -> None:
        level = self.levels.setdefault(name, Level(0.0, 0.0, None))
        for each, value in wanted.items():
            setattr(level, each, value)
        level.limit_to(level.epsilon, level.delta)

    @rule(name=NAMES, release=st.sampled_from(RELEASES))
    def charge(self, name: str, release: Release) -> None:
        self.unpaid[f"release-{next(self.numbers)}"] = name, release
        self.pay([*self.unpaid][-1])

    @rule(weeks=st.sampled_from([0, 0, 1, 2, 3]), is_named=st.booleans(), release=st.sampled_from(RELEASES))
    def charge_a_week(self, weeks: int, is_named: bool, release: Release) -> None:
        """The present one, which needs no name, or a late one."""
        today = date.fromisoformat(self.now[:10])
        year, week, _ = (today - timedelta(weeks=weeks)).isocalendar()
        name, key = f"{WEEKLY}@{year}-W{week:02}", f"release-{next(self.numbers)}"
        self.unpaid[key] = name, release
        self.pay(key, WEEKLY if is_named and weeks == 0 else name)

    @precondition(lambda self: self.unpaid)
    @rule(data=st.data())
    def pay_again(self, data: st.DataObject) -> None:
        """What was refused may fit now, and what waited may be approved."""
        approved = [each.key for each in self.requests.values() if each.key in self.unpaid and each.state == "approved"]
        self.pay(data.draw(st.sampled_from(approved or sorted(self.unpaid))))

    def pay(self, key: str, asked_of: str | None = None) -> None:
        """As a request does it: check, perhaps wait for an approval, charge."""
        name, release = self.unpaid[key]
        at = self.now
        asked = self.asked(asked_of or name, key, release)
        if name.partition("@")[0] not in self.levels:
            with suppress(UnknownBudget):
                self.ledger.check(asked, at)
                raise AssertionError("there is no such budget")
            return
        made = self.levels.get(name) or replace(self.levels[WEEKLY], charged=[])
        names = [name, *(self.lineage(made.parent) if made.parent else [])]
        levels = [made, *(self.levels[each] for each in names[1:])]
        expected = PeriodClosed if self.is_closed(name, at) else None
        short = next((each for each, level in zip(names, levels, strict=True) if not level.admits(release)), None)
        refused: LedgerError | None = None
        try:
            checked = self.ledger.check(asked, at)
        except (PeriodClosed, BudgetExceeded) as error:
            refused = error
        if expected is PeriodClosed or short is not None:
            assert type(refused) is (expected or BudgetExceeded)
            assert not isinstance(refused, BudgetExceeded) or refused.budget.id == short
            return
        assert (refused, checked is None) == (None, False)
        needs = any(level.approval == "releases" for level in levels)
        assert checked.needs_approval is needs
        if needs:
            found = self.ledger.request_release(asked, at)
            self.levels[name] = made
            request = self.requests.setdefault(found.id, Request(name, key=key))
            assert (found.budget, found.key, found.state) == (request.budget, request.key, request.state)
            if request.state != "approved":
                return
            request.state = "done"
        assert charge(self.ledger, asked, at=at) == b"42"
        self.levels[name] = made
        for level in levels:
            level.charge(release)
        self.keys[key] = self.unpaid.pop(key)

    def asked(self, name: str, key: str, release: Release) -> Charge:
        return replace(paid(name, key, release=release, client=ASKER.id), content=key, notes=Notes(by=ASKER))

    def is_closed(self, name: str, at: str) -> bool:
        label = name.partition("@")[2]
        if not label:
            return False
        monday = date.fromisocalendar(int(label[:4]), int(label[6:]), 1)
        return date.fromisoformat(at[:10]) >= monday + timedelta(days=7 + 7)

    @precondition(lambda self: any(each.state == "waiting" for each in self.requests.values()))
    @rule(data=st.data(), is_approved=st.sampled_from([True, True, False]))
    def decide(self, data: st.DataObject, is_approved: bool) -> None:
        waiting = [name for name, each in self.requests.items() if each.state == "waiting"]  # the oldest first
        name = data.draw(st.sampled_from(waiting))
        request = self.requests[name]
        now, expected = self.levels[request.budget], None
        if is_approved and request.key is None:
            if "parent" in request.after:
                expected = self.parent_error(request.budget, request.after["parent"])
            if expected is None and any(now.settings[each] != value for each, value in request.before.items()):
                expected = OutdatedRequest
        raised = None
        given: Any = {"by": OFFICER, "client": OFFICER.id, "reason": "as planned", "is_approved": is_approved}
        try:
            self.ledger.decide(name, self.now, **given)
        except (OutdatedRequest, InvalidParent, ParentSettled) as error:
            raised = type(error)
        assert raised == expected
        if raised is not None:
            return
        request.state = "refused" if not is_approved else "approved" if request.key else "done"
        if request.state == "done":
            self.change(request.budget, request.after)
        if request.state == "approved" and request.key in self.unpaid and data.draw(st.booleans()):
            self.pay(request.key)

    @precondition(lambda self: self.keys)
    @rule(data=st.data())
    def again(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.keys)))
        name, release = self.keys[key]
        assert charge(self.ledger, self.asked(name, key, release), b"other noise", self.now) == b"42"

    @invariant()
    def sums_are_those_of_the_reference(self) -> None:
        budgets = {budget.id: budget for budget in self.ledger.budgets()}
        assert budgets.keys() == self.levels.keys()
        for name, level in self.levels.items():
            spent = budgets[name].spent
            assert (spent.mu_squared, spent.hazard, spent.releases) == (*level.sums(), len(level.charged))
            assert (budgets[name].parent, budgets[name].approval) == (level.parent, level.approval)
            assert (budgets[name].limit.epsilon, budgets[name].limit.delta) == (level.epsilon, level.delta)
        assert {each.id: each.state for each in self.ledger.approvals()} == {
            name: request.state for name, request in self.requests.items()
        }

    def teardown(self) -> None:
        """Histories are intact, and each promise covers what was charged, and all that any limit allowed."""
        for name, level in self.levels.items():
            budget, fault = self.ledger.verify(name)
            assert fault is None
            if level.vector is None:
                assert budget.promise is None
                continue
            assert budget.promise is not None
            assert (
                delta_at(Spent(*level.sums(), releases=2), level.epsilon) <= budget.promise or len(level.charged) == 1
            )
            hull = level.vector.times(level.hull)
            assert delta_at(Spent(hull.mu_squared, hull.hazard, releases=2), level.epsilon) <= budget.promise
            assert len(self.ledger.lineage(name)) == len(self.lineage(name)) <= MOST_LEVELS
        self.ledger.close()
        self.folder.cleanup()


Budgets.TestCase.settings = settings(
    max_examples=some_of(240),
    stateful_step_count=40,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestBudgets = Budgets.TestCase
