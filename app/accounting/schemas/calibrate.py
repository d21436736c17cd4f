"""Requests and answers of /calibrate."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError
from typing_extensions import TypeAliasType

from app.accounting.schemas.account import Accounting, TargetPoint
from app.schemas.case_study import CASE_STUDY, OUTLINE
from app.schemas.mechanism import (
    SHARES,
    TABLE_DRAFTS,
    DraftIn,
    MechanismIn,
    MechanismOrTables,
    Shares,
    TableDrafts,
    TableIn,
    stated_at,
)
from app.schemas.scalars import BudgetName, Delta, Epsilon
from app.schemas.strict import OrAbsent, Strict
from app.schemas.survey import AFTER_SURVEY, SURVEY_DRAFT, AfterSurvey, Survey, SurveyDraft, SurveyNoiseIn
from gsh.accounting.calibration import draft
from gsh.accounting.calibration.draft import Target

__all__ = [
    "CALIBRATE_EXAMPLES",
    "CalibrateAnswer",
    "CalibrateRequest",
    "FrontierAnswer",
    "FrontierPoint",
    "RemainingAnswer",
    "RemainingTablesAnswer",
    "Solution",
    "TablesSolution",
]

Parameter = TypeAliasType(
    "Parameter", Annotated[draft.Parameter, Field(description="A field of a mechanism that can be solved for.")]
)


class CalibrateRequest(MechanismOrTables):
    """A mechanism without the fields to solve for, or several tables with their shares, and the target.

    The target is an (ε, δ), or the remaining part of a budget.
    """

    mechanism: DraftIn | None = Field(
        default=None,
        title="Mechanism",
        description="Omit the fields to solve for: sigma and tau_star, one of them, or c_u. A list of sigma without "
        "tau_star gives a frontier. Balanced noise on further columns needs no covariance. Or give relative_covariance "
        "for noise that scales with sigma.",
        examples=[OUTLINE],
    )
    tables: TableDrafts | None = Field(default=None, **TABLE_DRAFTS)
    shares: Shares | None = Field(default=None, **SHARES)
    survey: SurveyDraft | None = Field(default=None, **SURVEY_DRAFT)
    after_survey: AfterSurvey | None = Field(default=None, **AFTER_SURVEY)
    epsilon: Epsilon | None = Field(
        default=None, title="ε", description="The ε to meet; omit it if a budget is given.", examples=[0.349]
    )
    delta: Delta | None = Field(
        default=None, title="δ", description="The δ to meet; omit it if a budget is given.", examples=[1e-5]
    )
    budget: BudgetName | None = Field(
        default=None,
        title="Budget",
        description="Instead of epsilon and delta: fit the remaining part of this budget.",
        examples=["web"],
    )
    releases: int = Field(
        default=1,
        ge=1,
        le=10**9,
        title="k",
        description="The number of equal releases that must fit: the budget, or epsilon and delta in all.",
        examples=[4],
    )
    most_sigma: float | None = Field(
        default=None,
        gt=0,
        title="σ, most",
        description="With a budget: refuse a larger σ. If it is omitted, refuse a σ above 1e6, and any release if less "
        "than half of the average cost of a release so far is left.",
        examples=[None],
    )
    accounting: Accounting = Field(
        default="exact",
        title="Accounting",
        description="The accounting to calibrate with. Shares of several tables need the exact one.",
        examples=["exact"],
    )

    @model_validator(mode="after")
    def _one_target(self) -> Self:
        if self.most_sigma is not None and self.budget is None:
            raise PydanticCustomError("stated", "", {"stated": "must have a budget if most_sigma is given"})
        given = (self.epsilon is not None, self.delta is not None)
        if given != ((True, True) if self.budget is None else (False, False)):
            raise PydanticCustomError("stated", "", {"stated": "must have epsilon and delta, or a budget instead"})
        if self.tables is not None and self.accounting != "exact":
            raise stated_at(self, "accounting", "must be exact with tables; /compare has other accountings")
        return self

    @model_validator(mode="after")
    def _survey_first(self) -> Self:
        if self.survey is None:
            if self.after_survey is not None:
                raise stated_at(self, "after_survey", "must be omitted without a survey")
            return self
        listed = self.survey if isinstance(self.survey, list) else [self.survey]
        if self.after_survey is not None and not all(isinstance(each, SurveyNoiseIn) for each in listed):
            raise stated_at(self, "survey", "must have the noise of every histogram if after_survey is given")
        if self.accounting != "exact":
            raise stated_at(self, "accounting", "must be exact with a survey")
        if self.budget is not None:
            raise stated_at(self, "budget", "must be omitted with a survey: give epsilon and delta")
        if self.releases > 1:
            raise stated_at(self, "releases", "must be 1 with a survey")
        return self

    @property
    def target(self) -> Target:
        assert self.epsilon is not None
        assert self.delta is not None
        return Target(self.epsilon, self.delta)


_ACCOUNTING: dict[str, Any] = {
    "title": "Accounting",
    "description": "The accounting that certifies this answer.",
    "examples": ["exact"],
}
_COMPARISON: dict[str, Any] = {
    "title": "Comparison",
    "description": "The same target under the other accounting; null if that accounting cannot meet it, or after a "
    "survey.",
    "examples": [None],
}
_SOLVED: dict[str, Any] = {
    "title": "Solved",
    "description": "The fields that were omitted and solved for.",
    "examples": [["sigma", "tau_star"]],
}
_COMPLETE: dict[str, Any] = {
    "title": "Mechanism",
    "description": "The complete mechanism, ready for the next request.",
    "examples": [CASE_STUDY],
}


_SURVEY: dict[str, Any] = {
    "title": "Survey",
    "description": "The noise of the survey; absent without one.",
    "examples": [{"sigma": 42.25}],
}
_AFTER_SURVEY: dict[str, Any] = {
    "title": "After the survey",
    "description": "What is fixed before the survey: give it to the request for the C_u that the survey suggests. "
    "Absent without a survey.",
    "examples": [{"mu_squared": 0.054845, "hazard": 7.94e-07}],
}


class Solution(TargetPoint):
    """A complete mechanism that meets the target, and the certified point it reaches."""

    accounting: Accounting = Field(**_ACCOUNTING)
    mechanism: MechanismIn = Field(**_COMPLETE)
    largest_sigma: float | None = Field(
        title="σ_max",
        description="If σ alone was solved: the largest σ that meets the target too. Null if there is no largest σ.",
        examples=[2380.0745932894934],
    )


class CalibrateAnswer(Solution):
    """The calibrated mechanism."""

    kind: Literal["solution"] = Field(title="Kind", description="One solution.", examples=["solution"])
    solved: list[Parameter] = Field(**_SOLVED)
    comparison: Solution | None = Field(**_COMPARISON)
    survey: OrAbsent[Survey] = Field(**_SURVEY)
    after_survey: OrAbsent[AfterSurvey] = Field(**_AFTER_SURVEY)


class FrontierPoint(Strict):
    """The smallest τ* at one σ."""

    sigma: float = Field(title="σ", description="The σ of the request.", examples=[2300])
    solution: Solution | None = Field(
        title="Solution", description="Null if no τ* meets the target at this σ.", examples=[None]
    )
    comparison: Solution | None = Field(**_COMPARISON)


class FrontierAnswer(Strict):
    """The smallest τ* at each σ of a list, in the order of the request."""

    kind: Literal["frontier"] = Field(title="Kind", description="A solution for each σ.", examples=["frontier"])
    accounting: Accounting = Field(**_ACCOUNTING)
    solved: list[Literal["tau_star"]] = Field(**_SOLVED | {"examples": [["tau_star"]]})
    frontier: list[FrontierPoint] = Field(
        title="Frontier", description="One point for each σ of the request.", examples=[[]]
    )


_BUDGET: dict[str, Any] = {
    "title": "Budget",
    "description": "The budget that the releases fit; null without one.",
    "examples": ["web"],
}
_RELEASES: dict[str, Any] = {"title": "k", "description": "The number of equal releases that fit.", "examples": [4]}
_LIMIT_EPSILON: dict[str, Any] = {
    "title": "ε",
    "description": "The ε of the budget, or of the target.",
    "examples": [1.0],
}
_LIMIT_DELTA: dict[str, Any] = {
    "title": "δ",
    "description": "The δ at ε that would be spent after all of the releases, at most the δ of the budget or of the "
    "target; rounded up.",
    "examples": [9.999e-05],
}


class RemainingAnswer(Strict):
    """A mechanism whose releases together fit the remaining budget, or the target."""

    kind: Literal["remaining"] = Field(
        title="Kind", description="A solution for several releases together, or for a budget.", examples=["remaining"]
    )
    accounting: Literal["composition"] = Field(**_ACCOUNTING | {"examples": ["composition"]})
    budget: str | None = Field(**_BUDGET)
    releases: int = Field(**_RELEASES)
    mechanism: MechanismIn = Field(**_COMPLETE)
    epsilon: float = Field(**_LIMIT_EPSILON)
    delta: float = Field(**_LIMIT_DELTA)
    solved: list[Parameter] = Field(**_SOLVED)


_TABLES: dict[str, Any] = {
    "title": "Tables",
    "description": "The complete tables in order, ready for the next request, each with its costs.",
    "examples": [
        [
            {
                "name": "by_url",
                "c_u": 16,
                "tau": 1,
                "tau_star": 112.2,
                "sigma": 20.697,
                "mu_squared": 0.03735,
                "hazard": 6.67e-07,
            }
        ]
    ],
}
_SHARES: dict[str, Any] = {
    "title": "w",
    "description": "The share of each table in order; they add up to 1.",
    "examples": [[0.6666666666666666]],
}


class TablesSolution(TargetPoint):
    """Several tables that together meet the target, and the certified point that they reach."""

    kind: Literal["tables"] = Field(title="Kind", description="Tables that share the target.", examples=["tables"])
    accounting: Literal["exact"] = Field(**_ACCOUNTING)
    tables: list[TableIn] = Field(**_TABLES)
    shares: list[float] = Field(**_SHARES)
    survey: OrAbsent[Survey] = Field(**_SURVEY)
    after_survey: OrAbsent[AfterSurvey] = Field(**_AFTER_SURVEY)


class RemainingTablesAnswer(Strict):
    """Several tables whose releases together fit the remaining budget, or the target."""

    kind: Literal["remaining-tables"] = Field(
        title="Kind", description="Tables that share a budget, or several releases.", examples=["remaining-tables"]
    )
    accounting: Literal["composition"] = Field(**_ACCOUNTING | {"examples": ["composition"]})
    budget: str | None = Field(**_BUDGET)
    releases: int = Field(**_RELEASES)
    tables: list[TableIn] = Field(**_TABLES)
    shares: list[float] = Field(**_SHARES)
    epsilon: float = Field(**_LIMIT_EPSILON)
    delta: float = Field(**_LIMIT_DELTA)


CALIBRATE_EXAMPLES: dict[str, Any] = {
    "both": {
        "summary": "The smallest σ, then the smallest τ*",
        "value": {"mechanism": OUTLINE, "epsilon": 0.349, "delta": 1e-05},
    },
    "tau_star": {
        "summary": "The smallest τ* at a σ",
        "value": {"mechanism": OUTLINE | {"sigma": 2396}, "epsilon": 0.349, "delta": 1e-05},
    },
    "frontier": {
        "summary": "The frontier over several σ",
        "description": "Nothing meets the target at the first σ. At the others exact accounting needs a smaller τ*.",
        "value": {
            "mechanism": OUTLINE | {"sigma": [2228, 2240, 2300]},
            "epsilon": 0.349,
            "delta": 1e-05,
        },
    },
    "sigma": {
        "summary": "The smallest σ at a τ*",
        "value": {"mechanism": OUTLINE | {"tau_star": 14900}, "epsilon": 0.349, "delta": 1e-05},
    },
    "c_u": {
        "summary": "The largest C_u",
        "value": {"mechanism": {"tau": 1, "tau_star": 15000, "sigma": 2300}, "epsilon": 0.349, "delta": 1e-05},
    },
    "balanced": {
        "summary": "With further columns and balanced noise",
        "description": "One user adds up to 20 views to a group, and likes in at most 4 of its 16 groups.",
        "value": {
            "mechanism": {
                "c_u": 16,
                "tau": 1,
                "aggregates": {
                    "names": ["views", "likes"],
                    "sensitivity": {"kind": "box", "lower": [0, 0], "upper": [20, 5], "groups": [None, 4]},
                    "noise": "balanced",
                },
            },
            "epsilon": 1,
            "delta": 1e-06,
        },
    },
    "survey": {
        "summary": "Before a survey",
        "description": "The survey gets 1 % of the noise cost. The answer has its noise, and what is fixed for the "
        "mechanism at any c_u.",
        "value": {
            "mechanism": {"c_u": 64, "tau": 1},
            "survey": {"share": 0.01},
            "epsilon": 1,
            "delta": 1e-06,
        },
    },
    "after_survey": {
        "summary": "After a survey",
        "description": "The survey suggests a c_u of 256. Noise and after_survey are those of the answer before it.",
        "value": {
            "mechanism": {"c_u": 256, "tau": 1},
            "survey": {"sigma": 42.24678889326836},
            "after_survey": {"mu_squared": 0.05484558028175809, "hazard": 7.939456276747464e-07},
            "epsilon": 1,
            "delta": 1e-06,
        },
    },
    "tables": {
        "summary": "Several tables in one release, by shares",
        "description": "The table by URL gets twice the share of the other. The countries are a public list.",
        "value": {
            "tables": [{"name": "by_url", "c_u": 16, "tau": 1, "share": 2}, {"name": "by_country", "c_u": 1}],
            "epsilon": 1,
            "delta": 1e-06,
        },
    },
    "balanced_shares": {
        "summary": "Several tables, with the smallest sum of σ²",
        "value": {
            "tables": [{"name": "by_url", "c_u": 16, "tau": 1}, {"name": "by_country", "c_u": 1, "tau": 1}],
            "shares": "balanced",
            "epsilon": 1,
            "delta": 1e-06,
            "releases": 4,
        },
    },
    "columns": {
        "summary": "With further columns, whose noise scales with σ",
        "value": {
            "mechanism": OUTLINE
            | {
                "aggregates": {
                    "names": ["likes", "shares"],
                    "relative_covariance": [[1, 0], [0, 0.25]],
                    "sensitivity": {"kind": "box", "lower": [0, 0], "upper": [1, 1]},
                },
            },
            "epsilon": 0.349,
            "delta": 1e-05,
        },
    },
}
