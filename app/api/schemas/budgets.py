"""Requests and answers of /budgets."""

from collections.abc import Callable
from typing import Any, Self, TypeVar

from pydantic import Field
from typing_extensions import TypeAliasType

from app.api.schemas.case_study import CASE_STUDY, WHOLE
from app.api.schemas.costs import CostOut, LimitOut, PromiseOut, RemainingOut, SpentOut
from app.api.schemas.mechanism import AnyMechanismIn, GaussianIn, MechanismIn, Mechanisms
from app.api.schemas.strict import OneOrMany, Strict
from app.ledger import state
from app.ledger.state import Budget, Entry, HistoryFault
from app.service.errors import LimitExceeded
from app.service.work_bounds import check_work
from gsh.accounting.composition import Part
from gsh.accounting.errors import InvalidParameter

__all__ = [
    "CHARGE_EXAMPLES",
    "PREVIEW_EXAMPLES",
    "PUT_EXAMPLES",
    "BudgetIn",
    "BudgetOut",
    "BudgetSummary",
    "BudgetsOut",
    "ChargeIn",
    "ChargeOut",
    "EntryOut",
    "HistoryOut",
    "PreviewIn",
    "PreviewOut",
    "VerificationOut",
]

T = TypeVar("T")
EntryKind = TypeAliasType("EntryKind", state.EntryKind)

_MOST_PLANNED = 1000
_LIMIT = {"epsilon": 1.0, "delta": 1e-4, "mu_squared": 0.0798, "hazard": 7.69e-05}
_COST = {
    "releases": 1,
    "mu_squared": 0.010448747960489898,
    "hazard": 9.99e-06,
    "epsilon": 0.27,
    "delta": 9.99e-06,
}
_SPENT = _COST | {"epsilon_lower": 0.27, "delta_lower": 9.98e-06}
_REMAINING = {"mu_squared": 0.061, "hazard": 9e-05, "delta": 9e-05}


class BudgetIn(Strict):
    """A limit on the privacy cost of all releases about the same users together."""

    epsilon: float = Field(ge=0, title="ε", description="The ε that all releases together may reach.", examples=[1.0])
    delta: float = Field(
        gt=0, lt=1, title="δ", description="The δ that all releases together may reach at that ε.", examples=[1e-4]
    )
    description: str = Field(
        default="",
        max_length=1000,
        pattern=r"^[^\x00]*$",
        title="Description",
        description="A text for people: which data, which users.",
        examples=["page views, all users"],
    )
    mechanism: AnyMechanismIn | None = Field(
        default=None,
        title="Mechanism",
        description="A typical release: noise and thresholds share the budget in its proportion. If it is omitted, the "
        "first charge decides. After the first charge only the same proportion is accepted.",
        examples=[CASE_STUDY],
    )


class BudgetSummary(Strict):
    """A budget: its limit, what is spent and what remains."""

    id: str = Field(title="Budget", description="The name of the budget.", examples=["web"])
    description: str = Field(title="Description", description="A text for people.", examples=["page views, all users"])
    limit: LimitOut = Field(title="Limit", description="What the budget allows.", examples=[_LIMIT])
    spent: CostOut = Field(
        title="Spent",
        description="The cost of the releases so far, by composition; exact for a single release.",
        examples=[_COST],
    )
    used: float = Field(
        title="Used",
        description="From 0 to 1: the used share of the budget cap of mu_squared or of hazard, whichever is larger; "
        "rounded up. If N equal releases fit, n of them use n/N.",
        examples=[0.1309],
    )
    remaining: RemainingOut = Field(title="Remaining", description="What remains of the budget.", examples=[_REMAINING])
    promise: PromiseOut | None = Field(
        title="Promise",
        description="The (ε, δ) that holds for all releases under the budget's limits; null before the first charge.",
        examples=[{"epsilon": 1.0, "delta": 1e-4}],
    )

    @classmethod
    def summary(cls, budget: Budget) -> Self:
        return cls(**_of(budget), spent=CostOut.of(budget.spent, budget.limit))


class BudgetsOut(Strict):
    """All budgets that the access key may see."""

    budgets: list[BudgetSummary] = Field(title="Budgets", description="Sorted by name.", examples=[[]])


class BudgetOut(BudgetSummary):
    """A budget in full."""

    spent: SpentOut = Field(
        title="Spent", description="The cost of the releases so far, with upper and lower bounds.", examples=[_SPENT]
    )
    more: int | None = Field(
        title="More",
        description="How many more releases of the mechanism in the query fit; null without a mechanism.",
        examples=[6],
    )
    entries: int = Field(title="Entries", description="The number of entries in the history.", examples=[2])
    head: str = Field(
        title="Head", description="The hash of the last entry. Keep a copy elsewhere.", examples=["9f2c…"]
    )

    @classmethod
    def of(cls, budget: Budget, parts: list[Part], more: int | None = None) -> Self:
        return cls(
            **_of(budget),
            spent=SpentOut.with_bounds(budget.spent, parts, budget.limit),
            more=more,
            entries=budget.entries,
            head=budget.head,
        )


class PreviewIn(Strict):
    """A plan: one release, or several in order."""

    mechanism: OneOrMany[AnyMechanismIn, Mechanisms] = Field(
        title="Mechanism",
        description="The planned release; a list is a batch of at most 1000. Without tau and tau_star: Gaussian noise.",
        examples=[CASE_STUDY],
    )

    def planned(self, most_work: int) -> list[MechanismIn | GaussianIn]:
        """The mechanisms in order, after a check of their number and their work."""
        planned = self.mechanism if isinstance(self.mechanism, list) else [self.mechanism]
        if len(planned) > _MOST_PLANNED:
            raise LimitExceeded("/mechanism", f"must have at most {_MOST_PLANNED} items")
        work = [1 + each.work for each in planned]
        check_work(most_work, "/mechanism", work, "give fewer mechanisms, or fewer columns, or mu_0")
        return planned

    def each(self, function: Callable[[MechanismIn | GaussianIn], T]) -> list[T]:
        """The function of each planned mechanism. An error names the place in the list."""
        if not isinstance(self.mechanism, list):
            return [function(self.mechanism)]
        return [_at(place, function, each) for place, each in enumerate(self.mechanism)]

    def slimmed(self, most_work: int) -> Self:
        self.planned(most_work)
        bare = self.each(lambda each: each.bare())
        return self.model_copy(update={"mechanism": bare if isinstance(self.mechanism, list) else bare[0]})


def _at(place: int, function: Callable[[MechanismIn | GaussianIn], T], mechanism: MechanismIn | GaussianIn) -> T:
    try:
        return function(mechanism)
    except InvalidParameter as error:
        raise InvalidParameter(f"{place}/{error.pointer}", error.detail) from None


class PreviewOut(Strict):
    """Whether a plan fits, and what would remain. Nothing is charged."""

    fits: bool = Field(title="Fits", description="Whether the whole plan fits the remaining budget.", examples=[True])
    fitting: int = Field(title="Fitting", description="How many of the releases fit, in order.", examples=[1])
    asked: CostOut = Field(
        title="Asked",
        description="What the plan would cost by itself.",
        examples=[_COST],
    )
    after: CostOut = Field(
        title="After",
        description="What would be spent after the plan.",
        examples=[{"releases": 2, "mu_squared": 0.021, "hazard": 2e-05, "epsilon": 0.45, "delta": 2.1e-05}],
    )
    used: float = Field(
        title="Used", description="The share that would be used, as in the budget itself.", examples=[0.2617]
    )
    remaining: RemainingOut | None = Field(
        title="Remaining", description="What would remain; null if the plan does not fit.", examples=[_REMAINING]
    )


class ChargeIn(Strict):
    """A charge for a release that is made elsewhere."""

    mechanism: AnyMechanismIn = Field(
        title="Mechanism",
        description="The mechanism of that release. Without tau and tau_star: plain Gaussian noise on public groups.",
        examples=[CASE_STUDY],
    )


class ChargeOut(Strict):
    """A recorded charge."""

    budget: str = Field(title="Budget", description="The name of the charged budget.", examples=["web"])
    number: int = Field(title="Number", description="The number of its entry in the history.", examples=[2])
    at: str = Field(title="Time", description="When it was charged.", examples=["2026-11-16T12:00:00Z"])
    mu_squared: float = Field(
        title="μ²", description="Noise cost: what the release added to the sum of μ².", examples=[0.010448747960489898]
    )
    hazard: float = Field(
        title="−C_u ln p",
        description="Threshold cost: what the release added to the sum of −C_u ln p.",
        examples=[9.99e-06],
    )
    spent: CostOut = Field(
        title="Spent",
        description="What is spent, this charge included.",
        examples=[_COST],
    )


class EntryOut(Strict):
    """One entry of a history."""

    number: int = Field(title="Number", description="The number of the entry, from 1.", examples=[2])
    kind: EntryKind = Field(
        title="Kind", description="Whether the entry made, changed or charged the budget.", examples=["charge"]
    )
    at: str = Field(title="Time", description="When it was recorded.", examples=["2026-11-16T12:00:00Z"])
    details: dict[str, Any] = Field(
        title="Details",
        description="The new limit; or the release, its cost, its idempotency key and the hash of its answer.",
        examples=[{"release": WHOLE | {"mu_0": 0.0}}],
    )
    hash: str = Field(title="Hash", description="The hash of this entry and of the hash before it.", examples=["9f2c…"])

    @classmethod
    def of(cls, entry: Entry, *, shows_keys: bool) -> Self:
        hidden = set() if shows_keys else {"key"}
        details = {name: value for name, value in entry.shown.items() if name not in hidden}
        return cls(number=entry.number, kind=entry.kind, at=entry.at, details=details, hash=entry.hash)


class HistoryOut(Strict):
    """A page of a history, the latest entry first."""

    entries: list[EntryOut] = Field(
        title="Entries", description="The entries of this page, the latest first.", examples=[[]]
    )
    before: int | None = Field(
        title="Before",
        description="The value of the parameter before for the next page; null on the last page.",
        examples=[1],
    )


class FaultOut(Strict):
    """The first entry that does not match the history."""

    number: int = Field(title="Number", description="The number of the entry; 0 for the budget itself.", examples=[3])
    detail: str = Field(title="Detail", description="What is wrong with the entry.", examples=["is missing"])


class VerificationOut(Strict):
    """Whether the chain of hashes is intact and the charges add up."""

    intact: bool = Field(title="Intact", description="Whether the history is as it was recorded.", examples=[True])
    entries: int = Field(title="Entries", description="How many entries the history must have.", examples=[2])
    head: str = Field(title="Head", description="The hash of the last entry.", examples=["9f2c…"])
    fault: FaultOut | None = Field(
        title="Fault", description="The first fault; null if the history is intact.", examples=[None]
    )

    @classmethod
    def of(cls, budget: Budget, fault: HistoryFault | None) -> Self:
        shown = None if fault is None else FaultOut(number=fault.number, detail=fault.detail)
        return cls(intact=fault is None, entries=budget.entries, head=budget.head, fault=shown)


def _of(budget: Budget) -> dict[str, Any]:
    promise = budget.promise
    return {
        "id": budget.id,
        "description": budget.description,
        "limit": LimitOut.of(budget.limit),
        "used": budget.limit.used(budget.spent),
        "remaining": RemainingOut.of(budget.spent, budget.limit),
        "promise": None if promise is None else PromiseOut(epsilon=budget.limit.epsilon, delta=promise),
    }


_COLUMNS = {"c_u": 3, "tau": 1, "tau_star": 140, "sigma": 20, "aggregates": {"mu_0": 0.01}}
_GAUSSIAN = {"c_u": 1, "sigma": 50}
PUT_EXAMPLES: dict[str, Any] = {
    "new": {"summary": "A new budget", "value": {"epsilon": 1.0, "delta": 1e-4, "description": "page views"}},
    "raise": {"summary": "Raised", "value": {"epsilon": 2.0, "delta": 1e-4, "description": "page views"}},
    "lower": {
        "summary": "Lowered; past charges stay",
        "value": {"epsilon": 0.5, "delta": 1e-4, "description": "page views"},
    },
    "typical": {
        "summary": "Divided between noise and thresholds for releases like this one",
        "value": {"epsilon": 1.0, "delta": 1e-4, "description": "page views", "mechanism": CASE_STUDY},
    },
    "undescribed": {"summary": "Without a description", "value": {"epsilon": 1, "delta": 1e-4}},
}
CHARGE_EXAMPLES: dict[str, Any] = {
    "one": {"summary": "One release", "value": {"mechanism": CASE_STUDY}},
    "columns": {"summary": "With further columns", "value": {"mechanism": _COLUMNS}},
    "gaussian": {"summary": "Plain Gaussian noise, without thresholds", "value": {"mechanism": _GAUSSIAN}},
    "small": {"summary": "A small app", "value": {"mechanism": {"c_u": 1, "tau": 1, "tau_star": 99, "sigma": 15}}},
}
PREVIEW_EXAMPLES: dict[str, Any] = {
    **CHARGE_EXAMPLES,
    "batch": {"summary": "A batch, in order", "value": {"mechanism": [CASE_STUDY, _COLUMNS, _GAUSSIAN]}},
}
