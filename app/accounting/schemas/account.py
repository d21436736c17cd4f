"""Requests and answers of /account/exact and /account/add-deltas."""

from typing import Annotated, Any, Self

from pydantic import ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError
from typing_extensions import TypeAliasType

from app.schemas.case_study import PAPER
from app.schemas.mechanism import (
    TABLES,
    AnyMechanismIn,
    MechanismOrTables,
    MechanismOut,
    TableIn,
    Tables,
    stated_at,
)
from app.schemas.scalars import Delta, Deltas, Epsilon, Epsilons
from app.schemas.strict import OneOrMany, OrAbsent, Strict
from app.schemas.survey import SURVEY, Survey
from gsh.accounting import accountings, case_study
from gsh.accounting.curve_cache import Variable

__all__ = [
    "ACCOUNT_EXAMPLES",
    "EXACT_EXAMPLES",
    "FEWER_COLUMNS",
    "FEWER_TABLES",
    "AccountAnswer",
    "AccountRequest",
    "Accounting",
    "CertifiedPoint",
    "ExactRequest",
    "PointOut",
    "TargetPoint",
    "TermOut",
    "TheoremOut",
]

FEWER_COLUMNS = "give fewer columns or vectors, or mu_0"
FEWER_TABLES = "give fewer tables, or fewer columns, vectors or caps"

Accounting = TypeAliasType(
    "Accounting", Annotated[accountings.AccountingName, Field(description="The name of an accounting.")]
)
Binding = TypeAliasType(
    "Binding",
    Annotated[
        accountings.Binding,
        Field(description="Which part decides δ: the noise, the threshold, a mix of both, or their sum."),
    ],
)


class AccountRequest(MechanismOrTables):
    """A mechanism, or several tables in one release, and the ε or the δ at which to account for it."""

    mechanism: AnyMechanismIn | None = Field(
        default=None,
        title="Mechanism",
        description="The mechanism to account for. Without tau and tau_star: Gaussian noise on public groups.",
        examples=[PAPER],
    )
    tables: Tables | None = Field(default=None, **TABLES)
    survey: Survey | None = Field(default=None, **SURVEY)
    epsilon: OneOrMany[Epsilon, Epsilons] | None = Field(
        default=None, title="ε", description="The ε at which to compute δ; a list gives a curve.", examples=[0.349]
    )
    delta: OneOrMany[Delta, Deltas] | None = Field(
        default=None,
        title="δ",
        description="The δ at which to compute the smallest ε; a list gives a curve.",
        examples=[1e-5],
    )

    @model_validator(mode="after")
    def _one_variable(self) -> Self:
        if (self.epsilon is None) == (self.delta is None):
            raise PydanticCustomError("stated", "", {"stated": "must have exactly one of epsilon and delta"})
        return self

    def query(self) -> tuple[Variable, list[float]]:
        """The given variable, and its values."""
        if self.epsilon is not None:
            # The sum turns −0 into 0: they are equal, and so share a place in the cache.
            return "epsilon", [value + 0.0 for value in _listed(self.epsilon)]
        assert self.delta is not None
        return "delta", _listed(self.delta)


def _listed(values: float | list[float]) -> list[float]:
    return values if isinstance(values, list) else [values]


class ExactRequest(AccountRequest):
    """The same, with the choice to evaluate the paper's theorem literally as well."""

    theorem: bool = Field(
        default=False,
        title="Theorem 5.4",
        description="Also evaluate the paper's three terms over every split of the C_u groups, in O(C_u). With several "
        "tables: over every split of all tables, in the product of all C_u + 1. Not after a survey.",
        examples=[False],
    )

    @model_validator(mode="after")
    def _no_theorem_of_surveys(self) -> Self:
        if self.theorem and self.survey is not None:
            raise stated_at(self, "theorem", "must be omitted with a survey")
        return self


class TermOut(Strict):
    """One term of the theorem, at its worst split of the C_u groups."""

    model_config = ConfigDict(from_attributes=True)

    value: float = Field(title="T", description="The term, rounded up.", examples=[1.003103848512688e-05])
    a_plus: int = Field(title="a₊", description="Groups above τ in the worst case.", examples=[case_study.C_U])
    a_equal: int = Field(title="a₌", description="Groups exactly at τ in the worst case.", examples=[0])


_TERM = {"value": 1.003103848512688e-05, "a_plus": case_study.C_U, "a_equal": 0}


class TheoremOut(Strict):
    """Theorem 5.4 of the paper, evaluated literally."""

    t1: TermOut = Field(title="T1", description="Every group of the user is exactly at τ.", examples=[_TERM])
    t2: TermOut = Field(title="T2", description="The user is added.", examples=[_TERM])
    t3: TermOut = Field(title="T3", description="The user is removed.", examples=[_TERM])
    delta: float = Field(title="δ", description="The largest of the three.", examples=[1.003103848512688e-05])
    agrees: bool = Field(title="Agrees", description="Whether exact accounting gives the same double.", examples=[True])


class TablesTermOut(Strict):
    """The largest δ over all splits of several tables, at its worst split."""

    model_config = ConfigDict(from_attributes=True)

    value: float = Field(title="T", description="The largest value, rounded up.", examples=[1e-06])
    a_equal: list[int] = Field(
        title="a₌", description="Groups exactly at τ in the worst case, in each table in order.", examples=[[0, 0]]
    )


_TABLES_TERM = {"value": 1e-06, "a_equal": [0, 0]}


class TablesTheoremOut(Strict):
    """All splits of all tables, evaluated literally."""

    added: TablesTermOut = Field(title="T2", description="The user is added.", examples=[_TABLES_TERM])
    removed: TablesTermOut = Field(title="T3", description="The user is removed.", examples=[_TABLES_TERM])
    delta: float = Field(title="δ", description="The larger of the two.", examples=[1e-06])
    agrees: bool = Field(
        title="Agrees",
        description="Whether exact accounting gives the same double. With several tables at an ε near 0 it may be a "
        "little larger, and then it is an upper bound.",
        examples=[True],
    )


class CertifiedPoint(Strict):
    """One certified point of a privacy curve: every δ and ε is rounded up."""

    model_config = ConfigDict(from_attributes=True)

    epsilon: float | None = Field(
        title="ε",
        description="The ε of the request, or the smallest ε at δ; null if no finite ε exists.",
        examples=[0.349],
    )
    delta: float = Field(
        title="δ", description="The δ of the request, or the smallest δ at ε.", examples=[9.999999999999999e-06]
    )
    delta_gaussian: float | None = Field(
        title="δ_gaussian",
        description="The δ at ε of the noise, for groups that exist without the user; null if ε is null.",
        examples=[9.999999999999992e-06],
    )
    delta_infinite: float = Field(
        title="δ_infinite",
        description="The probability that a group of one user alone is released.",
        examples=[9.999999999999999e-06],
    )
    binding: Binding = Field(
        title="Binding",
        description="Which of the two decides δ; mixed if the worst case has some groups at τ and the others above it, "
        "which columns with caps, several tables and a survey can cause; both if the accounting adds them.",
        examples=["infinite"],
    )


class PointOut(CertifiedPoint):
    """One certified point of the privacy curve: every δ and ε is rounded up."""

    theorem: TheoremOut | TablesTheoremOut | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        title="Theorem 5.4",
        description="The paper's three terms at ε, or all splits of several tables; absent unless asked for, and "
        "absent if no finite ε exists.",
        examples=[{"t1": _TERM, "t2": _TERM, "t3": _TERM, "delta": 1.003103848512688e-05, "agrees": True}],
    )


class TargetPoint(CertifiedPoint):
    """The certified point at the ε of a target, which is finite."""

    epsilon: float = Field(title="ε", description="The ε of the target.", examples=[0.349])
    delta: float = Field(
        title="δ",
        description="The δ at ε by this accounting, at most the δ of the target; rounded up.",
        examples=[9.999999999999999e-06],
    )
    delta_gaussian: float = Field(
        title="δ_gaussian",
        description="The δ at ε of the noise, for groups that exist without the user; rounded up.",
        examples=[9.999999999999992e-06],
    )
    mu: float = Field(
        title="μ", description="μ of the equivalent Gaussian mechanism; rounded up.", examples=[0.1022428607685887]
    )


_TABLE = {"name": "by_url", "c_u": 16, "tau": 1, "tau_star": 161.5, "sigma": 29.27}


class AccountAnswer(Strict):
    """The privacy of a mechanism, or of several tables: one point for each value of the request, in the same order."""

    accounting: Accounting = Field(title="Accounting", description="How δ was computed.", examples=["exact"])
    mechanism: OrAbsent[MechanismOut] = Field(
        title="Mechanism",
        description="The mechanism as the service understood it; absent if the request has tables.",
        examples=[PAPER | {"tau_gap": 13947, "mu_0": 0, "mu": 0.10226500875930904}],
    )
    tables: OrAbsent[list[TableIn]] = Field(
        title="Tables",
        description="The tables of the request in order, each with its costs, and with μ₀ in place of its columns.",
        examples=[[_TABLE | {"mu_squared": 0.018676, "hazard": 3.3e-07}]],
    )
    mu: OrAbsent[float] = Field(
        title="μ",
        description="μ of the Gaussian mechanism that all tables together are equivalent to; rounded up. Absent "
        "without tables: the mechanism has it.",
        examples=[0.1933],
    )
    survey: OrAbsent[Survey] = Field(
        title="Survey",
        description="The survey of the request, absent without one. μ and δ_gaussian are then those of all noise.",
        examples=[{"sigma": 42.25}],
    )
    points: list[PointOut] = Field(
        title="Points",
        description="One for each ε or δ of the request.",
        examples=[
            [
                {
                    "epsilon": 0.349,
                    "delta": 1.003103848512688e-05,
                    "delta_gaussian": 1.003103848512688e-05,
                    "delta_infinite": 1.0000866420901491e-05,
                    "binding": "gaussian",
                }
            ]
        ],
    )


_WITH_COLUMNS = {
    "c_u": 100,
    "tau": 1,
    "tau_star": 1400,
    "sigma": 200,
    "aggregates": {
        "names": ["likes", "shares"],
        "covariance": [[40000, 5000], [5000, 10000]],
        "sensitivity": {"kind": "box", "lower": [0, 0], "upper": [1, 1]},
    },
}
_WITH_CAPS = _WITH_COLUMNS | {
    "aggregates": {
        "names": ["seconds", "shares"],
        "covariance": [[1440000, 0], [0, 2000]],
        "sensitivity": {"kind": "box", "lower": [0, 0], "upper": [6, 1], "groups": [None, 5]},
    }
}
ACCOUNT_EXAMPLES: dict[str, Any] = {
    "point": {
        "summary": "δ at one ε",
        "description": "The URL case study of the paper: its σ and τ* are rounded, and miss 10⁻⁵ by 0.3 %.",
        "value": {"mechanism": PAPER, "epsilon": 0.349},
    },
    "curve": {"summary": "A curve", "value": {"mechanism": PAPER, "epsilon": [0.1, 0.2, 0.349, 0.5]}},
    "inverse": {
        "summary": "The smallest ε at δ",
        "description": "No finite ε reaches the smaller δ: a group of one user is released too often.",
        "value": {"mechanism": PAPER, "delta": [1.1e-05, 1e-06]},
    },
    "columns": {"summary": "With further columns", "value": {"mechanism": _WITH_COLUMNS, "epsilon": 1}},
    "caps": {
        "summary": "With a column that a user changes in fewer groups",
        "description": "One user views up to 100 pages, and shares up to 5 of them.",
        "value": {"mechanism": _WITH_CAPS, "epsilon": 1},
    },
    "tables": {
        "summary": "Several tables in one release",
        "description": "Views per URL, and per country for a public list of countries. Both are fixed together.",
        "value": {"tables": [_TABLE, {"name": "by_country", "c_u": 1, "sigma": 7.3}], "epsilon": 1},
    },
    "survey": {
        "summary": "After a survey",
        "description": "A noisy histogram over the users was published first, and C_u was chosen from it.",
        "value": {
            "mechanism": {"c_u": 64, "tau": 1, "tau_star": 191.5, "sigma": 34.17},
            "survey": {"sigma": 42.25},
            "epsilon": 1,
        },
    },
    "public": {
        "summary": "Public groups",
        "description": "Without thresholds every group of a public list is published.",
        "value": {"mechanism": {"c_u": 1, "sigma": 7.3}, "epsilon": 1},
    },
}
EXACT_EXAMPLES: dict[str, Any] = ACCOUNT_EXAMPLES | {
    "theorem": {
        "summary": "With the paper's theorem, term by term",
        "value": {"mechanism": PAPER, "epsilon": 0.349, "theorem": True},
    },
    "tables_theorem": {
        "summary": "Several tables, with all splits",
        "value": {
            "tables": [_TABLE, {"name": "by_country", "c_u": 1, "tau": 1, "tau_star": 40, "sigma": 7.3}],
            "epsilon": 1,
            "theorem": True,
        },
    },
}
