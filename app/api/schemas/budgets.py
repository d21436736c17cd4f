"""What is said of budgets, in requests and answers."""

from typing import Any, Self

from pydantic import Field

from app.api.schemas.costs import CostOut, LimitOut, PromiseOut, RemainingOut, SpentOut
from app.api.schemas.mechanism import AnyMechanismIn, GaussianIn, MechanismIn, OneOrMany, Strict
from app.ledger.state import Budget, Entry, Fault, Kind
from app.service.errors import LimitExceeded
from app.service.work_bounds import check_work
from gsh.accounting import case_study
from gsh.accounting.composition import Part

__all__ = [
    "CASE_STUDY",
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

CASE_STUDY = {name: int(getattr(case_study.WHOLE, name)) for name in ("c_u", "tau", "tau_star", "sigma")}
_MOST_PLANNED = 1000
_LIMIT = {"epsilon": 1.0, "delta": 1e-4, "mu_squared": 0.0798, "hazard": 7.69e-05}
_BALANCE = {
    "releases": 1,
    "mu_squared": 0.010448747960489898,
    "hazard": 9.99e-06,
    "epsilon": 0.27,
    "delta": 9.99e-06,
}
_SPENT = _BALANCE | {"epsilon_lower": 0.27, "delta_lower": 9.98e-06}
_REMAINING = {"mu_squared": 0.061, "hazard": 9e-05, "delta": 9e-05}


class BudgetIn(Strict):
    """A limit on what all releases about the same users may cost together."""

    epsilon: float = Field(ge=0, title="ε", description="The ε that they may reach together.", examples=[1.0])
    delta: float = Field(gt=0, lt=1, title="δ", description="The δ that they may reach at that ε.", examples=[1e-4])
    description: str = Field(
        default="",
        max_length=1000,
        pattern=r"^[^\x00]*$",
        title="Description",
        description="For people: which data, which users.",
        examples=["page views, all users"],
    )
    mechanism: AnyMechanismIn | None = Field(
        default=None,
        title="Mechanism",
        description="A typical release: noise and thresholds share the budget in its proportion. Where it is left out "
        "the first release settles that. After the first charge only the same proportion is accepted.",
        examples=[CASE_STUDY],
    )


class BudgetSummary(Strict):
    """A budget, what is spent of it and what is left."""

    id: str = Field(title="Budget", description="Its name.", examples=["web"])
    description: str = Field(title="Description", description="For people.", examples=["page views, all users"])
    limit: LimitOut = Field(title="Limit", description="What it allows.", examples=[_LIMIT])
    spent: CostOut = Field(
        title="Spent",
        description="What is spent of it, by composition; exact for a single release.",
        examples=[_BALANCE],
    )
    used: float = Field(
        title="Used",
        description="From 0 to 1: the share of S, or of D if that is larger, that is gone; rounded up. "
        "Of N equal releases that fit, n use n/N.",
        examples=[0.1309],
    )
    remaining: RemainingOut = Field(title="Remaining", description="What is left of it.", examples=[_REMAINING])
    promise: PromiseOut | None = Field(
        title="Promise",
        description="What holds whatever is released under the budget's limits; null before the first charge.",
        examples=[{"epsilon": 1.0, "delta": 1e-4}],
    )

    @classmethod
    def summary(cls, budget: Budget) -> Self:
        return cls(**_of(budget), spent=CostOut.of(budget.spent, budget.limit))


class BudgetsOut(Strict):
    """All budgets that the caller may see."""

    budgets: list[BudgetSummary] = Field(title="Budgets", description="Sorted by name.", examples=[[]])


class BudgetOut(BudgetSummary):
    """A budget in full."""

    spent: SpentOut = Field(title="Spent", description="What is spent of it, from both sides.", examples=[_SPENT])
    more: int | None = Field(
        title="More",
        description="How many more releases like the mechanism of the query fit; null where it has none.",
        examples=[6],
    )
    entries: int = Field(title="Entries", description="The length of its history.", examples=[2])
    head: str = Field(title="Head", description="The hash of the last entry: note it elsewhere.", examples=["9f2c…"])

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

    mechanism: OneOrMany[AnyMechanismIn] = Field(
        title="Mechanism",
        description="What is planned; a list is a batch, 1000 at most. Without tau and tau_star: plain Gaussian noise.",
        examples=[CASE_STUDY],
    )

    def planned(self, most_work: int) -> list[MechanismIn | GaussianIn]:
        """In order, within the bounds on their number and their work."""
        planned = self.mechanism if isinstance(self.mechanism, list) else [self.mechanism]
        if len(planned) > _MOST_PLANNED:
            raise LimitExceeded("/mechanism", f"must have at most {_MOST_PLANNED} items")
        work = [1 + each.work for each in planned]
        check_work(most_work, "/mechanism", work, "give fewer mechanisms, or fewer columns, or mu_0")
        return planned

    def slimmed(self, most_work: int) -> Self:
        return self.model_copy(update={"mechanism": [each.bare() for each in self.planned(most_work)]})


class PreviewOut(Strict):
    """Whether a plan fits, and what it would leave. Nothing is charged."""

    fits: bool = Field(title="Fits", description="Whether all of it fits what is left.", examples=[True])
    fitting: int = Field(title="Fitting", description="How many of the releases fit, in order.", examples=[1])
    asked: CostOut = Field(
        title="Asked",
        description="What the plan would cost by itself.",
        examples=[_BALANCE],
    )
    after: CostOut = Field(
        title="After",
        description="What would be spent after it.",
        examples=[{"releases": 2, "mu_squared": 0.021, "hazard": 2e-05, "epsilon": 0.45, "delta": 2.1e-05}],
    )
    used: float = Field(
        title="Used", description="The share that would be gone, as in the budget itself.", examples=[0.2617]
    )
    remaining: RemainingOut | None = Field(
        title="Remaining", description="What would be left; null where it does not fit.", examples=[_REMAINING]
    )


class ChargeIn(Strict):
    """A release that is made elsewhere, to be charged."""

    mechanism: AnyMechanismIn = Field(
        title="Mechanism",
        description="What is run there. Without tau and tau_star: plain Gaussian noise on public groups.",
        examples=[CASE_STUDY],
    )


class ChargeOut(Strict):
    """A charge as it was recorded."""

    budget: str = Field(title="Budget", description="What was charged.", examples=["web"])
    number: int = Field(title="Number", description="Its place in the history.", examples=[2])
    at: str = Field(title="Time", description="When it was charged.", examples=["2026-11-16T12:00:00Z"])
    mu_squared: float = Field(
        title="μ²", description="What it added to the sum of μ².", examples=[0.010448747960489898]
    )
    hazard: float = Field(title="−C_u ln p", description="What it added to the sum of −C_u ln p.", examples=[9.99e-06])
    spent: CostOut = Field(
        title="Spent",
        description="What is spent with it.",
        examples=[_BALANCE],
    )


class EntryOut(Strict):
    """One line of a history."""

    number: int = Field(title="Number", description="Its place, from 1.", examples=[2])
    kind: Kind = Field(
        title="Kind", description="Whether the budget was made, changed or charged.", examples=["charge"]
    )
    at: str = Field(title="Time", description="When it was recorded.", examples=["2026-11-16T12:00:00Z"])
    details: dict[str, Any] = Field(
        title="Details",
        description="The new limit; or the release, its cost, its key and the hash of the answer it paid for.",
        examples=[{"release": {"c_u": 51914, "tau": 1, "tau_star": 13952.0, "sigma": 2229.0, "mu_0": 0.0}}],
    )
    hash: str = Field(title="Hash", description="Of the entry and the hash before it.", examples=["9f2c…"])

    @classmethod
    def of(cls, entry: Entry, *, shows_keys: bool) -> Self:
        hidden = set() if shows_keys else {"key"}
        details = {name: value for name, value in entry.shown.items() if name not in hidden}
        return cls(number=entry.number, kind=entry.kind, at=entry.at, details=details, hash=entry.hash)


class HistoryOut(Strict):
    """A page of a history, the latest entry first."""

    entries: list[EntryOut] = Field(title="Entries", description="The latest first.", examples=[[]])
    before: int | None = Field(
        title="Before", description="For the next page; null where this is the last.", examples=[1]
    )


class FaultOut(Strict):
    """Where a history is not what it must be."""

    number: int = Field(title="Number", description="The entry; 0 for the budget itself.", examples=[3])
    detail: str = Field(title="Detail", description="What is wrong with it.", examples=["is missing"])


class VerificationOut(Strict):
    """Whether the chain holds and the charges add up."""

    intact: bool = Field(title="Intact", description="Whether all is as it was recorded.", examples=[True])
    entries: int = Field(title="Entries", description="How many entries there should be.", examples=[2])
    head: str = Field(title="Head", description="The hash of the last entry.", examples=["9f2c…"])
    fault: FaultOut | None = Field(title="Fault", description="The first fault, if any.", examples=[None])

    @classmethod
    def of(cls, budget: Budget, fault: Fault | None) -> Self:
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
