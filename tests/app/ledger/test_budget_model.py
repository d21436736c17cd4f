"""Trees of budgets, limits and charges in any order, against a small reference that keeps lists and adds fractions."""

import itertools
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from app.ledger.errors import BudgetExceeded, InvalidParent, LedgerError, ParentSettled, UnknownBudget
from app.ledger.lineage import MOST_LEVELS
from app.ledger.opening import open_ledger
from gsh.accounting.budget_limits import Caps, Limit
from gsh.accounting.composition import Cost, Release, Spent, cost_of, delta_at, fits
from gsh.accounting.mechanism import Mechanism, PlainGaussian
from tests.app.ledger.examples import AT, charge, paid
from tests.surroundings import some_of

NAMES = st.sampled_from(["a", "b", "c", "d", "e"])
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
    charged: list[Release] = field(default_factory=list)
    vector: Caps | None = None
    """The caps when the first release was charged: all later caps are multiples of them."""
    hull: Fraction = Fraction(0)
    """The largest multiple so far."""

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


class Budgets(RuleBasedStateMachine):
    """The ledger and the reference admit the same, refuse the same, and have the same sums."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.ledger = open_ledger(str(Path(self.folder.name) / "ledger.sqlite3"), "a secret for tests")
        self.levels: dict[str, Level] = {}
        self.keys: dict[str, tuple[str, Release]] = {}
        self.numbers = itertools.count()

    def lineage(self, name: str) -> list[str]:
        found = [name]
        while (parent := self.levels[found[-1]].parent) is not None:
            found.append(parent)
        return found

    def parent_error(self, name: str, parent: str | None) -> type[LedgerError] | None:
        now = self.levels.get(name)
        if parent == (None if now is None else now.parent):
            return None
        if now is not None and now.charged:
            return ParentSettled
        if parent is not None and (parent not in self.levels or name in self.lineage(parent)):
            return InvalidParent
        return None  # five names are never more than MOST_LEVELS

    @initialize(parents=st.tuples(st.just("a"), st.sampled_from("ab"), st.sampled_from("abc")), limits=FOUR_LIMITS)
    def plant(self, parents: tuple[str, ...], limits: list[tuple[float, float]]) -> None:
        """Four budgets below each other, or next to each other."""
        for name, parent, limit in zip("abcd", (None, *parents), limits, strict=True):
            self.put(name, limit, parent)

    @rule(name=NAMES, limit=st.sampled_from(LIMITS), parent=st.none() | NAMES)
    def move(self, name: str, limit: tuple[float, float], parent: str | None) -> None:
        self.put(name, limit, parent)

    def put(self, name: str, limit: tuple[float, float], parent: str | None) -> None:
        expected = self.parent_error(name, parent)
        raised = None
        try:
            self.ledger.put_budget(name, Limit(*limit), "", AT, settings={"parent": parent}, reason="a test")
        except (InvalidParent, ParentSettled) as error:
            raised = type(error)
        assert raised == expected
        if raised is None:
            self.levels.setdefault(name, Level(*limit, parent)).parent = parent
            self.levels[name].limit_to(*limit)

    @precondition(lambda self: self.levels)
    @rule(data=st.data(), limit=st.sampled_from(LIMITS))
    def raise_or_lower(self, data: st.DataObject, limit: tuple[float, float]) -> None:
        name = data.draw(st.sampled_from(sorted(self.levels)))
        self.ledger.put_budget(name, Limit(*limit), None, AT, reason="a test")
        self.levels[name].limit_to(*limit)

    @rule(name=NAMES, release=st.sampled_from(RELEASES))
    def charge(self, name: str, release: Release) -> None:
        key = f"release-{next(self.numbers)}"
        if name not in self.levels:
            with suppress(UnknownBudget):
                charge(self.ledger, paid(name, key, release=release))
                raise AssertionError("there is no such budget")
            return
        levels = [self.levels[each] for each in self.lineage(name)]
        expected = next((each for each in self.lineage(name) if not self.levels[each].admits(release)), None)
        short = None
        try:
            charge(self.ledger, paid(name, key, release=release))
        except BudgetExceeded as refused:
            short = refused.budget.id
        assert short == expected
        if short is not None:
            return
        self.keys[key] = name, release
        for level in levels:
            level.charge(release)

    @precondition(lambda self: self.keys)
    @rule(data=st.data())
    def again(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.keys)))
        name, release = self.keys[key]
        assert charge(self.ledger, paid(name, key, release=release), b"other noise") == b"42"

    @invariant()
    def sums_are_those_of_the_reference(self) -> None:
        budgets = {budget.id: budget for budget in self.ledger.budgets()}
        assert budgets.keys() == self.levels.keys()
        for name, level in self.levels.items():
            spent = budgets[name].spent
            assert (spent.mu_squared, spent.hazard, spent.releases) == (*level.sums(), len(level.charged))
            assert budgets[name].parent == level.parent

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
    max_examples=some_of(60),
    stateful_step_count=25,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestBudgets = Budgets.TestCase
