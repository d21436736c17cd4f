"""Intervals of published numbers: /intervals, and the intervals of a release."""

from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypeAliasType

from app.schemas.aggregates import Ratios
from app.schemas.case_study import CASE_STUDY
from app.schemas.mechanism import AnyMechanismIn
from app.schemas.scalars import MOST_COLUMNS
from app.schemas.strict import OrAbsent, Strict, without_default
from gsh.accounting.mechanism import Mechanism
from gsh.accuracy.bounds import LARGEST_LEVEL, LEAST_LEVEL
from gsh.certificate import bounds_of
from gsh.certificate_words import intervals_cover

__all__ = [
    "INTERVALS_EXAMPLE",
    "INTERVALS_EXAMPLES",
    "IntervalOut",
    "IntervalsAnswer",
    "IntervalsOut",
    "IntervalsRequest",
    "Level",
    "RatioOut",
    "TotalOut",
    "TotalsOut",
    "Units",
]

Level = TypeAliasType(
    "Level",
    Annotated[
        float,
        Field(
            ge=LEAST_LEVEL,
            le=LARGEST_LEVEL,
            description="The probability with which an interval must cover the true number.",
        ),
    ],
)
PublishedValues = TypeAliasType(
    "PublishedValues",
    Annotated[
        dict[str, Annotated[list[float], Field(fail_fast=True)]],
        Field(max_length=MOST_COLUMNS, description="Published values, a column per name."),
    ],
)
Unit = Annotated[float, Field(gt=0, description="What a published number is a multiple of.")]
Units = TypeAliasType(
    "Units",
    Annotated[
        dict[str, Unit], Field(max_length=MOST_COLUMNS, description="The units of rounded columns, if they are not 1.")
    ],
)
MeanRange = TypeAliasType(
    "MeanRange",
    Annotated[
        list[float],
        Field(min_length=2, max_length=2, description="What one user has: at least, and at most."),
    ],
)
MeanRanges = TypeAliasType(
    "MeanRanges",
    Annotated[dict[str, MeanRange], Field(max_length=MOST_COLUMNS, description="The range of each mean, by its name.")],
)
TotalMethod = TypeAliasType(
    "TotalMethod", Annotated[Literal["exact", "normal"], Field(description="How a total is estimated.")]
)
LEVEL: dict[str, Any] = {
    "title": "Level",
    "description": "The probability with which each interval covers the true number.",
    "examples": [0.95],
}
_INTERVAL = {"low": [45806.238], "estimate": [50173.984], "high": [54541.731]}
_MEAN = {"low": [112.6, None], "estimate": [150.0, None], "high": [182.6, 600.0]}
INTERVALS_EXAMPLE: dict[str, Any] = {"level": 0.95, "counts": _INTERVAL, "values": {}}
_TOTAL = {
    "estimate": 68573.984,
    "standard_error": 3151.55,
    "low": 61899.509,
    "high": 74891.716,
    "method": "exact",
}


INTERVALS_COVER = intervals_cover(bounds_of(Mechanism(**CASE_STUDY)))


class IntervalsRequest(Strict):
    """Published numbers, and the mechanism that made them."""

    mechanism: AnyMechanismIn = Field(
        title="Mechanism",
        description="The mechanism of the release. Without tau and tau_star the groups are public.",
        examples=[CASE_STUDY],
    )
    level: Level = Field(default=0.95, **LEVEL)
    counts: list[float] = Field(
        fail_fast=True,
        title="C + v",
        description="The published counts, as the release gave them: at least tau_star, if there is one.",
        examples=[[50173.984375, 18400]],
    )
    values: PublishedValues = Field(
        default={},
        json_schema_extra=without_default,  # generated models cannot make an object of it
        title="Noisy values",
        description="Published values, a column per name; some or all of aggregates/names.",
        examples=[{"likes": [790.5, 12]}],
    )
    total: bool = Field(
        default=False,
        title="Total",
        description="Also give the total of each column over these groups.",
        examples=[False],
    )
    means: MeanRanges = Field(
        default={},
        json_schema_extra=without_default,
        title="Means",
        description=(
            "Also give means per user: by name, the least and the most that one user has. The values must have the "
            "column <name>_centred, the sum of what each user has less the middle of the range; or <name>, a plain sum."
        ),
        examples=[{"seconds": [0, 600]}],
    )
    ratios: Ratios = Field(
        default={},
        json_schema_extra=without_default,
        title="Ratios",
        description="Also give ratios of the sums of two columns, by name. The second column may be count.",
        examples=[{"likes_per_view": ["likes", "views"]}],
    )
    is_rounded: bool = Field(
        default=False,
        title="Rounded",
        description="Whether the numbers were rounded to integers, or to the units of their columns.",
        examples=[True],
    )
    units: Units = Field(
        default={},
        json_schema_extra=without_default,
        title="Units",
        description="What columns of rounded values are multiples of, if not of 1.",
        examples=[{"price": 0.01}],
    )


class IntervalOut(Strict):
    """The intervals of one column: an item for each number."""

    low: list[float] = Field(title="Low", description="The lower ends.", examples=[_INTERVAL["low"]])
    estimate: list[float] = Field(
        title="Estimate",
        description="Of counts the median-unbiased estimates, of other columns the published values.",
        examples=[_INTERVAL["estimate"]],
    )
    high: list[float] = Field(title="High", description="The upper ends.", examples=[_INTERVAL["high"]])


class RatioOut(Strict):
    """The intervals of a mean or a ratio: an item for each group, null where the numbers do not say it."""

    low: list[float | None] = Field(title="Low", description="The lower ends.", examples=[_MEAN["low"]])
    estimate: list[float | None] = Field(
        title="Estimate",
        description="The estimates; null if the denominator may be 0.",
        examples=[_MEAN["estimate"]],
    )
    high: list[float | None] = Field(title="High", description="The upper ends.", examples=[_MEAN["high"]])


IntervalsOfRatios = TypeAliasType(
    "IntervalsOfRatios",
    Annotated[dict[str, RatioOut], Field(description="The intervals of each mean or ratio, by its name.")],
)
IntervalsOfValues = TypeAliasType(
    "IntervalsOfValues",
    Annotated[dict[str, IntervalOut], Field(description="The intervals of each column of values, by its name.")],
)


class IntervalsOut(Strict):
    """Intervals for the true numbers of published groups, given that they were published."""

    level: float = Field(**LEVEL)
    counts: IntervalOut = Field(
        title="Counts", description="The intervals of the counts, in their order.", examples=[_INTERVAL]
    )
    values: IntervalsOfValues = Field(
        title="Values", description="The intervals of each column of values.", examples=[{"likes": _INTERVAL}]
    )


class TotalOut(Strict):
    """The total of one column over the published groups of the request. Dropped groups are not in it."""

    estimate: float = Field(title="Estimate", description="The estimated total.", examples=[_TOTAL["estimate"]])
    standard_error: float = Field(
        title="Standard error",
        description="Its standard error, by the normal approximation.",
        examples=[_TOTAL["standard_error"]],
    )
    low: float = Field(title="Low", description="The lower end.", examples=[_TOTAL["low"]])
    high: float = Field(title="High", description="The upper end.", examples=[_TOTAL["high"]])
    method: TotalMethod = Field(
        title="Method",
        description="Whether the coverage is proven, or that of a normal approximation for many groups.",
        examples=["exact"],
    )


TotalsOfValues = TypeAliasType(
    "TotalsOfValues",
    Annotated[dict[str, TotalOut], Field(description="The total of each column of values, by its name.")],
)


class TotalsOut(Strict):
    """The totals over the published groups of the request."""

    counts: TotalOut = Field(title="Counts", description="The total of the counts.", examples=[_TOTAL])
    values: TotalsOfValues = Field(
        title="Values", description="The total of each column of values.", examples=[{"likes": _TOTAL}]
    )


class IntervalsAnswer(IntervalsOut):
    """The same with what they cover, and totals, means and ratios if they are asked for."""

    intervals_cover: str = Field(
        title="Intervals cover",
        description="What the intervals cover, in words: the numbers after bounding.",
        examples=[INTERVALS_COVER],
    )

    total: OrAbsent[TotalsOut] = Field(
        title="Total",
        description="The totals over these groups; absent unless asked for.",
        examples=[{"counts": _TOTAL, "values": {}}],
    )
    means: OrAbsent[IntervalsOfRatios] = Field(
        title="Means", description="The means per user; absent unless asked for.", examples=[{"seconds": _MEAN}]
    )
    ratios: OrAbsent[IntervalsOfRatios] = Field(
        title="Ratios", description="The ratios; absent unless asked for.", examples=[{"likes_per_view": _MEAN}]
    )


_COLUMNS = {
    "names": ["likes", "shares"],
    "covariance": [[400, 0], [0, 100]],
    "sensitivity": {"kind": "box", "lower": [0, 0], "upper": [1, 1]},
}
_MEANS = {
    "names": ["seconds_centred", "likes", "views"],
    "covariance": [[36000000, 0, 0], [0, 400, 0], [0, 0, 900]],
    "sensitivity": {"kind": "box", "lower": [-300, 0, 0], "upper": [300, 5, 20]},
}
INTERVALS_EXAMPLES: dict[str, Any] = {
    "counts": {
        "summary": "Published counts",
        "description": "The second count is near τ*, so noise has probably raised it, and its interval is long.",
        "value": {"mechanism": CASE_STUDY, "counts": [50173.984375, 15000]},
    },
    "total": {
        "summary": "With the total over these groups",
        "value": {"mechanism": CASE_STUDY, "counts": [50173.984375, 18400], "total": True},
    },
    "level": {
        "summary": "One error in a million",
        "value": {"mechanism": CASE_STUDY, "level": 0.999999, "counts": [50173.984375]},
    },
    "columns": {
        "summary": "With another column, another level and totals",
        "value": {
            "mechanism": {"c_u": 3, "tau": 1, "tau_star": 120, "sigma": 20, "aggregates": _COLUMNS},
            "level": 0.99,
            "counts": [812.5, 440],
            "values": {"likes": [300.25, 77]},
            "total": True,
        },
    },
    "means": {
        "summary": "The mean per user, and a ratio of two columns, of numbers that were rounded",
        "value": {
            "mechanism": {"c_u": 3, "tau": 1, "tau_star": 120, "sigma": 20, "aggregates": _MEANS},
            "counts": [150, 400],
            "values": {"seconds_centred": [-9000, -60000], "likes": [310, 95], "views": [1240, 50]},
            "means": {"seconds": [0, 600]},
            "ratios": {"likes_per_view": ["likes", "views"]},
            "is_rounded": True,
        },
    },
}
