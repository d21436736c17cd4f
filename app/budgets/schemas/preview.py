"""Requests and answers of /budgets/{id}/preview: planned releases."""

from typing import Any

from pydantic import Field

from app.schemas.case_study import CASE_STUDY
from app.schemas.costs import COST_EXAMPLE, REMAINING_EXAMPLE, CostOut, RemainingOut, ShortageOut
from app.schemas.ledger_record import PERIOD_PAYS, PeriodName
from app.schemas.mechanism import TABLES, AnyMechanismIn, MechanismOrTables, Mechanisms, Tables
from app.schemas.strict import OneOrMany, Strict

__all__ = ["PLANNED_EXAMPLES", "PREVIEW_EXAMPLES", "PreviewIn", "PreviewOut"]


class PreviewIn(MechanismOrTables):
    """Planned releases: one, several in order, or one of several tables."""

    mechanism: OneOrMany[AnyMechanismIn, Mechanisms] | None = Field(
        default=None,
        title="Mechanism",
        description="The planned release; a list is a batch of at most 1000. Without tau and tau_star: Gaussian noise.",
        examples=[CASE_STUDY],
    )
    tables: Tables | None = Field(default=None, **TABLES)
    period: PeriodName | None = Field(**PERIOD_PAYS)


class PreviewOut(Strict):
    """Whether planned releases fit, and what would remain. Nothing is charged."""

    fits: bool = Field(
        title="Fits", description="Whether all of the releases fit the remaining budget.", examples=[True]
    )
    fitting: int = Field(title="Fitting", description="How many of the releases fit, in order.", examples=[1])
    more: int = Field(
        title="More",
        description="How many more releases like the first one fit, at most 10¹⁸.",
        examples=[6],
    )
    asked: CostOut = Field(
        title="Asked",
        description="What the planned releases would cost by themselves.",
        examples=[COST_EXAMPLE],
    )
    after: CostOut = Field(
        title="After",
        description="What would be spent after them.",
        examples=[{"releases": 2, "mu_squared": 0.021, "hazard": 2e-05, "epsilon": 0.45, "delta": 2.1e-05}],
    )
    used: float = Field(
        title="Used", description="The share that would be used, as in the budget itself.", examples=[0.2617]
    )
    remaining: RemainingOut | None = Field(
        title="Remaining",
        description="What would remain; null if not all of the releases fit.",
        examples=[REMAINING_EXAMPLE],
    )
    shortage: ShortageOut | None = Field(
        title="Shortage", description="What is short if not all of the releases fit; null if they do.", examples=[None]
    )


_COLUMNS = {"c_u": 3, "tau": 1, "tau_star": 140, "sigma": 20, "aggregates": {"mu_0": 0.01}}
_GAUSSIAN = {"c_u": 1, "sigma": 50}
PLANNED_EXAMPLES: dict[str, Any] = {
    "one": {"summary": "One release", "value": {"mechanism": CASE_STUDY}},
    "columns": {"summary": "With further columns", "value": {"mechanism": _COLUMNS}},
    "gaussian": {"summary": "Plain Gaussian noise, without thresholds", "value": {"mechanism": _GAUSSIAN}},
    "tables": {
        "summary": "Several tables in one release",
        "value": {"tables": [{"name": "by_url"} | _COLUMNS, {"name": "by_country"} | _GAUSSIAN]},
    },
    "small": {"summary": "A small app", "value": {"mechanism": {"c_u": 1, "tau": 1, "tau_star": 99, "sigma": 15}}},
}
PREVIEW_EXAMPLES: dict[str, Any] = {
    **PLANNED_EXAMPLES,
    "batch": {"summary": "A batch, in order", "value": {"mechanism": [CASE_STUDY, _COLUMNS, _GAUSSIAN]}},
}
