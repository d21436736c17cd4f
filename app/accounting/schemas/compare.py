"""Requests and answers of /compare."""

from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypeAliasType

from app.accounting.schemas.account import TargetPoint
from app.schemas.case_study import OUTLINE
from app.schemas.mechanism import (
    SHARES,
    TABLE_DRAFTS,
    MechanismIn,
    MechanismOrTables,
    OutlineIn,
    Shares,
    TableDrafts,
    TableIn,
)
from app.schemas.scalars import Delta, Epsilon
from app.schemas.strict import OrAbsent, Strict
from gsh.accounting.calibration.compared_tables import WayName
from gsh.accounting.calibration.comparison import ComparedName

__all__ = [
    "COMPARE_EXAMPLES",
    "EXPLANATIONS",
    "WAY_EXPLANATIONS",
    "ColumnNoise",
    "CompareAnswer",
    "CompareRequest",
    "ComparedOut",
    "PriceOut",
    "TablesPriceOut",
    "WayOut",
    "WithoutCaps",
]

ComparedAccounting = TypeAliasType(
    "ComparedAccounting", Annotated[ComparedName, Field(description="The name of an accounting in a comparison.")]
)

EXPLANATIONS: dict[ComparedName, str] = {
    "exact": "δ = max(δ_infinite, δ_gaussian): the smallest σ and the smallest τ*, both at once. If columns have caps, "
    "δ may be a mixed case, and τ* is the smallest at any σ.",
    "add-deltas": "δ = δ_infinite + δ_gaussian, shared so that τ* is the smallest at any σ.",
    "half-split": "δ/2 for the noise and δ/2 for the threshold: the smallest σ and τ* for each half.",
    "zcdp": "δ = δ_infinite + the δ that zCDP has for the noise, shared so that τ* is the smallest at any σ.",
}


Way = TypeAliasType("Way", Annotated[WayName, Field(description="A way to account for several tables.")])

WAY_EXPLANATIONS: dict[WayName, str] = {
    "shares": "One release of all tables: each has its share of the noise cost and of the threshold cost, the smallest "
    "σ and then the smallest τ*. Together they have exactly the privacy of one table.",
    "composition": "Each table is a release of its own, chosen after seeing the others: the costs are added up, and "
    "divided so that the highest τ* is the smallest.",
    "zcdp": "δ_infinite of all tables + the δ that zCDP has for their noise, divided so that the highest τ* is the "
    "smallest.",
    "separate": "Each table has a certificate of its own at its share of ε and of δ, with the smallest σ and τ*; these "
    "add up.",
}


class CompareRequest(MechanismOrTables):
    """A mechanism without noise and threshold, or several tables with their shares, and the (ε, δ) to meet."""

    mechanism: OutlineIn | None = Field(
        default=None,
        title="Mechanism",
        description="The fields that do not depend on the accounting; each accounting solves for sigma and tau_star.",
        examples=[OUTLINE],
    )
    tables: TableDrafts | None = Field(default=None, **TABLE_DRAFTS)
    shares: Shares | None = Field(default=None, **SHARES)
    epsilon: Epsilon = Field(title="ε", description="The ε to meet.", examples=[0.349])
    delta: Delta = Field(title="δ", description="The δ to meet.", examples=[1e-5])


class PriceOut(TargetPoint):
    """The noise and the threshold that an accounting needs, certified by that accounting."""

    mechanism: MechanismIn = Field(
        title="Mechanism",
        description="Complete, with the accounting's sigma and tau_star; the next smaller double of tau_star fails.",
        examples=[OUTLINE | {"tau_star": 14866.52624169108, "sigma": 2334.737917977292}],
    )
    least_sigma: float = Field(
        title="σ_min",
        description="The smallest σ whose noise alone fits; with less noise, no threshold meets the target.",
        examples=[2334.737917977292],
    )
    sigma_ratio: float = Field(
        title="σ/σ_exact", description="The noise, as a multiple of that of exact accounting.", examples=[1.0476805]
    )
    tau_star_ratio: float = Field(
        title="τ*/τ*_exact",
        description="The threshold, as a multiple of that of exact accounting.",
        examples=[1.0656205],
    )


_PRICE = {name: (field.examples or [None])[0] for name, field in PriceOut.model_fields.items()} | {
    "delta": 9.999999999999977e-06,
    "delta_gaussian": 4.99999999999999e-06,
    "delta_infinite": 4.999999999999986e-06,
    "binding": "both",
    "mu": 0.09758972849215386,
}


class ComparedOut(Strict):
    """One accounting, and the noise and the threshold that it needs."""

    accounting: ComparedAccounting = Field(
        title="Accounting", description="The name of the accounting.", examples=["half-split"]
    )
    explanation: str = Field(
        title="Explanation",
        description="How the accounting makes δ from its two parts, and what is smallest in its answer.",
        examples=[EXPLANATIONS["half-split"]],
    )
    price: PriceOut | None = Field(
        title="Price", description="Null if the accounting cannot meet the target at all.", examples=[_PRICE]
    )


class ColumnNoise(Strict):
    """The noise on one column, with and without the caps of the columns."""

    name: str = Field(title="Name", description="The name of the column.", examples=["shares"])
    noise: float = Field(title="s", description="Standard deviation of the noise, with the caps.", examples=[169.2])
    noise_without_caps: float | None = Field(
        title="s without caps",
        description="The same if no column had a cap of its own; null if the target cannot be met then.",
        examples=[3860],
    )
    ratio: float | None = Field(title="Ratio", description="The second divided by the first.", examples=[22.8])


class WithoutCaps(Strict):
    """What the caps of columns save: the same target with exact accounting, if no column had a cap of its own."""

    price: PriceOut | None = Field(
        title="Price", description="Null if the target cannot be met without the caps.", examples=[None]
    )
    columns: list[ColumnNoise] = Field(
        title="Columns",
        description="The noise on each column, with and without the caps.",
        examples=[[{"name": "shares", "noise": 169.2, "noise_without_caps": 3860, "ratio": 22.8}]],
    )


_TABLE = {
    "name": "by_url",
    "c_u": 16,
    "tau": 1,
    "tau_star": 170.24,
    "sigma": 29.98,
    "mu_squared": 0.0178,
    "hazard": 1.6e-07,
}


class TablesPriceOut(Strict):
    """The noise and the thresholds that one way to account for several tables needs, certified by that way."""

    tables: list[TableIn] = Field(
        title="Tables", description="The complete tables in order, each with its costs.", examples=[[_TABLE]]
    )
    delta: float = Field(
        title="δ",
        description="The δ at ε that the way claims for all tables, at most the δ of the target; rounded up.",
        examples=[9.999999999999998e-07],
    )
    sigma_ratios: list[float] = Field(
        title="σ/σ_shares", description="The noise of each table, as a multiple of that by shares.", examples=[[1.0246]]
    )
    tau_star_ratios: list[float | None] = Field(
        title="τ*/τ*_shares",
        description="The threshold of each table, as a multiple of that by shares; null if its groups are public.",
        examples=[[1.054]],
    )


_TABLES_PRICE = {name: (field.examples or [None])[0] for name, field in TablesPriceOut.model_fields.items()}


class WayOut(Strict):
    """One way to account for several tables, and the noise and the thresholds that it needs."""

    way: Way = Field(title="Way", description="The name of the way.", examples=["composition"])
    explanation: str = Field(
        title="Explanation",
        description="How the way certifies the tables, and what is smallest in its answer.",
        examples=[WAY_EXPLANATIONS["composition"]],
    )
    price: TablesPriceOut | None = Field(
        title="Price", description="Null if the way cannot meet the target at all.", examples=[_TABLES_PRICE]
    )


class CompareAnswer(Strict):
    """The accountings, with the exact one first; for several tables the ways, with shares first."""

    epsilon: float = Field(title="ε", description="The ε of the target.", examples=[0.349])
    delta: float = Field(title="δ", description="The δ of the target.", examples=[1e-5])
    accountings: OrAbsent[list[ComparedOut]] = Field(
        title="Accountings", description="One for each accounting; absent if the request has tables.", examples=[[]]
    )
    ways: OrAbsent[list[WayOut]] = Field(
        title="Ways",
        description="One for each way to account for several tables; absent if the request has a mechanism.",
        examples=[[]],
    )
    without_caps: WithoutCaps | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        title="Without caps",
        description="What the caps of columns save; absent unless a column has one.",
        examples=[{"price": None, "columns": []}],
    )


COMPARE_EXAMPLES: dict[str, Any] = {
    "case study": {
        "summary": "The URL case study of the paper",
        "value": {"mechanism": OUTLINE, "epsilon": 0.349, "delta": 1e-05},
    },
    "small app": {
        "summary": "A user is in one group only",
        "value": {"mechanism": {"c_u": 1, "tau": 1}, "epsilon": 1, "delta": 1e-06},
    },
    "columns": {
        "summary": "With further columns, whose noise scales with σ",
        "value": {
            "mechanism": {
                "c_u": 50,
                "tau": 10,
                "aggregates": {
                    "names": ["likes", "shares"],
                    "relative_covariance": [[1, 0], [0, 0.25]],
                    "sensitivity": {"kind": "box", "lower": [0, 0], "upper": [1, 1]},
                },
            },
            "epsilon": 1,
            "delta": 1e-06,
        },
    },
    "caps": {
        "summary": "With balanced noise, and a column that a user changes in 100 groups only",
        "value": {
            "mechanism": OUTLINE
            | {
                "aggregates": {
                    "names": ["likes", "shares"],
                    "sensitivity": {"kind": "box", "lower": [0, 0], "upper": [1, 1], "groups": [None, 100]},
                    "noise": "balanced",
                },
            },
            "epsilon": 0.349,
            "delta": 1e-05,
        },
    },
    "tables": {
        "summary": "Three tables in one release",
        "value": {
            "tables": [
                {"name": "by_country", "c_u": 1, "tau": 1},
                {"name": "by_url", "c_u": 16, "tau": 1},
                {"name": "by_url_and_country", "c_u": 16, "tau": 1},
            ],
            "epsilon": 1,
            "delta": 1e-06,
        },
    },
    "fixed": {
        "summary": "With columns whose noise is fixed, so that little of δ remains",
        "description": "Two of the accountings cannot meet the target: the noise of the columns alone exceeds their "
        "share.",
        "value": {"mechanism": {"c_u": 100, "tau": 1, "aggregates": {"mu_0": 0.0236}}, "epsilon": 1, "delta": 1e-06},
    },
}
