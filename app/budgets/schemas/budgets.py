"""Requests and answers of /budgets: a limit, what is spent and what remains."""

from typing import Any

from pydantic import Field

from app.ledger.lineage import MOST_LEVELS
from app.ledger.state import Settings
from app.schemas.approvals import ApprovalRule
from app.schemas.case_study import CASE_STUDY
from app.schemas.costs import (
    COST_EXAMPLE,
    REMAINING_EXAMPLE,
    CostOut,
    LimitOut,
    PromiseOut,
    RemainingOut,
    ShortageOut,
    SpentOut,
)
from app.schemas.ledger_record import Period, Renewal
from app.schemas.mechanism import TABLES, AnyMechanismIn, MechanismOrTables, Tables
from app.schemas.scalars import BudgetName, Delta, Epsilon, Sigma
from app.schemas.strict import Strict

__all__ = ["PUT_EXAMPLES", "BudgetIn", "BudgetOut", "BudgetSummary", "BudgetsOut"]

_LIMIT = {"epsilon": 1.0, "delta": 1e-4, "mu_squared": 0.0798, "hazard": 7.69e-05}
_SPENT = COST_EXAMPLE | {"epsilon_lower": 0.27, "delta_lower": 9.98e-06}


class BudgetIn(MechanismOrTables):
    """A limit on the privacy cost of all releases about the same users together."""

    needed = ()
    optional = ("mechanism",)

    epsilon: Epsilon = Field(title="ε", description="The ε that all releases together may reach.", examples=[1.0])
    delta: Delta = Field(
        title="δ", description="The δ that all releases together may reach at that ε.", examples=[1e-4]
    )
    description: str | None = Field(
        default=None,
        max_length=1000,
        pattern=r"^[^\x00]*$",
        title="Description",
        description="A text for people: which data, which users. Omit it to keep it.",
        examples=["page views, all users"],
    )
    reason: str = Field(
        default="",
        max_length=1000,
        pattern=r"^[^\x00]*$",
        title="Reason",
        description="Why the budget is changed; required to change the limit, the unit or the period of a budget. It "
        "is recorded in the history.",
        examples=["the yearly review allows it"],
    )
    privacy_unit: str | None = Field(
        default=None,
        min_length=1,
        max_length=100,
        pattern=r"^[^\x00]*$",
        title="Privacy unit",
        description="Whose records are protected together; user in a new budget. Omit it to keep it. The first charge "
        "fixes it.",
        examples=["user"],
    )
    period: Period | None = Field(
        default=None,
        title="Period",
        description="If the promise is for the records of one unit in one period, such as a week: the kind of period. "
        "Make a budget for each period, with the period in its name, or let it renew. Omit it to keep it; null removes "
        "it.",
        examples=[None],
    )
    parent: BudgetName | None = Field(
        default=None,
        title="Parent",
        description="A budget that pays too: a release is charged to this budget and to all its ancestors, or to none. "
        f"Omit it to keep it; null removes it. The first charge fixes it. At most {MOST_LEVELS} levels.",
        examples=["company"],
    )
    renews: Renewal | None = Field(
        default=None,
        title="Renews",
        description="How often the budget is renewed. Each week, month, quarter or year (UTC) then has a budget of its "
        "own with the same limit, unit and parent, made by its first charge: web@2026-W46, web@2026-11, web@2026-Q4, "
        "web@2026. A charge to web is one to the present period. Omit it to keep it; null removes it. The first charge "
        "fixes it.",
        examples=["week"],
    )
    closes_after: int | None = Field(
        default=None,
        ge=0,
        le=36_500,
        title="Closes after",
        description="The number of days after its end in which a period can still be charged, for periods from now on. "
        "Omit it to keep it; null: a period is never closed.",
        examples=[14],
    )
    most_sigma: Sigma | None = Field(
        default=None,
        title="Largest σ",
        description="The largest σ that POST /calibrate may give for what remains of the budget, if the request says "
        "no other. It replaces the rules about half of a usual release and 10⁶. Omit it to keep it; null removes it.",
        examples=[5000.0],
    )
    approval: ApprovalRule | None = Field(
        default=None,
        title="Approval",
        description="What waits until another access key with the scope admin approves it: limits, every change of the "
        "budget except its description; releases, each release too, also of the budgets below it; none. It needs "
        "access keys, and a change of it waits too. Omit it to keep it.",
        examples=["limits"],
    )
    mechanism: AnyMechanismIn | None = Field(
        default=None,
        title="Mechanism",
        description="A typical release: noise and thresholds share the budget in its proportion. If it is omitted, the "
        "first charge decides. After the first charge only the same proportion is accepted.",
        examples=[CASE_STUDY],
    )
    tables: Tables | None = Field(
        default=None,
        **TABLES | {"description": "A typical release of several tables, in place of the mechanism."},
    )

    @property
    def settings(self) -> Settings:
        """The settings that are given. Only a period and a parent can be removed by null."""
        given: Settings = {}
        if self.description is not None:
            given["description"] = self.description
        if self.privacy_unit is not None:
            given["privacy_unit"] = self.privacy_unit
        if "period" in self.model_fields_set:
            given["period"] = self.period
        if "parent" in self.model_fields_set:
            given["parent"] = self.parent
        if "renews" in self.model_fields_set:
            given["renews"] = self.renews
        if "closes_after" in self.model_fields_set:
            given["closes_after"] = self.closes_after
        if "most_sigma" in self.model_fields_set:
            given["most_sigma"] = self.most_sigma
        if self.approval is not None:
            given["approval"] = None if self.approval == "none" else self.approval
        return given


class BudgetSummary(Strict):
    """A budget: its limit, what is spent and what remains."""

    id: str = Field(title="Budget", description="The name of the budget.", examples=["web"])
    description: str = Field(title="Description", description="A text for people.", examples=["page views, all users"])
    privacy_unit: str = Field(
        title="Privacy unit", description="Whose records are protected together.", examples=["user"]
    )
    period: Period | None = Field(
        title="Period",
        description="If it is set, the promise is for the records of one unit in one such period, and the budget is "
        "for one period.",
        examples=[None],
    )
    parent: str | None = Field(
        title="Parent",
        description="The budget that is charged for every release of this one too; null without one.",
        examples=[None],
    )
    renews: Renewal | None = Field(
        title="Renews",
        description="How often it is renewed; null if it is not. Nothing is charged to a renewed budget, but to the "
        "budgets of its periods.",
        examples=[None],
    )
    closes_after: int | None = Field(
        title="Closes after",
        description="How many days after its end a period can be charged; null if it is never closed.",
        examples=[None],
    )
    most_sigma: float | None = Field(
        title="Largest σ",
        description="The largest σ that is calibrated to what remains; null for the usual rules.",
        examples=[None],
    )
    period_of: str | None = Field(
        title="Period of", description="The renewed budget that this one is a period of; else null.", examples=[None]
    )
    approval: ApprovalRule = Field(
        title="Approval", description="What another access key must approve.", examples=["none"]
    )
    limit: LimitOut = Field(title="Limit", description="What the budget allows.", examples=[_LIMIT])
    spent: CostOut = Field(
        title="Spent",
        description="The cost of the releases so far, by composition; exact for a single release.",
        examples=[COST_EXAMPLE],
    )
    used: float = Field(
        title="Used",
        description="From 0 to 1: the used share of the budget cap of mu_squared or of hazard, whichever is larger; "
        "rounded up. If N equal releases fit, n of them use n/N.",
        examples=[0.1309],
    )
    remaining: RemainingOut = Field(
        title="Remaining",
        description="What can still be charged: the least that the budget or an ancestor has left.",
        examples=[REMAINING_EXAMPLE],
    )
    promise: PromiseOut | None = Field(
        title="Promise",
        description="The (ε, δ) that holds for all releases under the budget's limits; null before the first charge.",
        examples=[{"epsilon": 1.0, "delta": 1e-4}],
    )


class BudgetsOut(Strict):
    """All budgets that the access key may see."""

    budgets: list[BudgetSummary] = Field(title="Budgets", description="Sorted by name.", examples=[[]])


class BudgetOut(BudgetSummary):
    """A budget in full."""

    spent: SpentOut = Field(
        title="Spent", description="The cost of the releases so far, with upper and lower bounds.", examples=[_SPENT]
    )
    ancestors: list[BudgetSummary] = Field(
        title="Ancestors",
        description="The parent, the parent of that one, and so on. A release must fit all of them, and each has a "
        "promise of its own, for its own privacy unit and period.",
        examples=[[]],
    )
    periods: list[BudgetSummary] = Field(
        title="Periods",
        description="Of a renewed budget: the budgets of its periods so far, the earliest first. Each promises for the "
        "records of one unit in its period; only an ancestor promises for several periods together.",
        examples=[[]],
    )
    more: int | None = Field(
        title="More",
        description="How many more releases like the last one fit, also into the ancestors; before the first one, how "
        "many like the typical release that divided the budget. Null if there is neither. At most 10¹⁸.",
        examples=[6],
    )
    shortage: ShortageOut | None = Field(
        title="Shortage", description="What is short for one more like it; null if it fits.", examples=[None]
    )
    days_left: float | None = Field(
        title="Days left",
        description="The days until one of the caps of this budget is full, at the rate of the last 28 days. Null if "
        "nothing was charged in them, and for a renewed budget and its periods.",
        examples=[42.5],
    )
    entries: int = Field(title="Entries", description="The number of entries in the history.", examples=[2])
    head: str = Field(
        title="Head", description="The hash of the last entry. Keep a copy elsewhere.", examples=["9f2c…"]
    )


PUT_EXAMPLES: dict[str, Any] = {
    "new": {"summary": "A new budget", "value": {"epsilon": 1.0, "delta": 1e-4, "description": "page views"}},
    "raise": {
        "summary": "Raised",
        "value": {"epsilon": 2.0, "delta": 1e-4, "description": "page views", "reason": "the yearly review"},
    },
    "lower": {
        "summary": "Lowered; past charges stay",
        "value": {"epsilon": 0.5, "delta": 1e-4, "description": "page views", "reason": "less is enough"},
    },
    "typical": {
        "summary": "Divided between noise and thresholds for releases like this one",
        "value": {
            "epsilon": 1.0,
            "delta": 1e-4,
            "description": "page views",
            "mechanism": CASE_STUDY,
            "reason": "divided for the weekly table",
        },
    },
    "tables": {
        "summary": "Divided for releases of several tables",
        "value": {
            "epsilon": 1.0,
            "delta": 1e-4,
            "tables": [
                {"name": "by_url", "c_u": 16, "tau": 1, "tau_star": 161.5, "sigma": 29.27},
                {"name": "by_country", "c_u": 1, "sigma": 7.3},
            ],
        },
    },
    "parent": {
        "summary": "Below a budget of the company",
        "value": {"epsilon": 1.0, "delta": 1e-4, "description": "page views", "parent": "company"},
    },
    "renewed": {
        "summary": "A budget for each week",
        "value": {"epsilon": 1.0, "delta": 1e-6, "description": "page views", "renews": "week", "closes_after": 14},
    },
    "undescribed": {"summary": "Without a description", "value": {"epsilon": 1, "delta": 1e-4}},
}
