"""Requests and answers of /utility."""

from typing import Annotated, Any, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError
from typing_extensions import TypeAliasType

from app.accounting.schemas.account import Accounting
from app.accounting.schemas.compare import COMPARE_EXAMPLES
from app.schemas.case_study import CASE_STUDY, OUTLINE
from app.schemas.mechanism import DraftIn, MechanismIn
from app.schemas.scalars import Delta, Epsilon
from app.schemas.strict import Strict, without_default
from gsh.accounting.calibration.draft import Target
from gsh.accuracy.bounds import LARGEST

__all__ = [
    "UTILITY_EXAMPLES",
    "ColumnNoiseOut",
    "FalseGroups",
    "PublishedGroups",
    "PublishedVolume",
    "RelativeError",
    "SizeOut",
    "TargetIn",
    "UtilityAnswer",
    "UtilityRequest",
]

MOST_QUANTILES = 100

# The service checks the number of sizes later, and says so by a problem of its own: it depends on the settings.
_LIST: dict[str, Any] = {"min_length": 1, "fail_fast": True, "json_schema_extra": {"maxItems": 100_000}}
GroupSize = TypeAliasType(
    "GroupSize", Annotated[int, Field(ge=1, le=LARGEST, description="The true number of users of a group.")]
)
GroupSizes = TypeAliasType("GroupSizes", Annotated[list[GroupSize], Field(**_LIST, description="Sizes of groups.")])
Times = TypeAliasType("Times", Annotated[int, Field(ge=1, le=LARGEST, description="How many groups have a size.")])
TimesOfSizes = TypeAliasType(
    "TimesOfSizes", Annotated[list[Times], Field(**_LIST, description="How many groups have each size.")]
)
Quantile = TypeAliasType(
    "Quantile", Annotated[float, Field(ge=0.001, le=0.999, description="A quantile of a distribution.")]
)


class TargetIn(Strict):
    """An (ε, δ), and a mechanism without the fields to solve for, as /calibrate takes them."""

    mechanism: DraftIn = Field(
        title="Mechanism",
        description="Omit the fields to solve for: sigma and tau_star, one of them, or c_u.",
        examples=[OUTLINE],
    )
    epsilon: Epsilon = Field(title="ε", description="The ε to meet.", examples=[0.349])
    delta: Delta = Field(title="δ", description="The δ to meet.", examples=[1e-5])
    accounting: Accounting = Field(
        default="exact", title="Accounting", description="The accounting to calibrate with.", examples=["exact"]
    )

    @property
    def target(self) -> Target:
        return Target(self.epsilon, self.delta)


class UtilityRequest(Strict):
    """A mechanism, or a target that a mechanism is calibrated for, and the sizes of groups."""

    mechanism: MechanismIn | None = Field(
        default=None,
        title="Mechanism",
        description="The mechanism; omit it if a target is given.",
        examples=[CASE_STUDY],
    )
    target: TargetIn | None = Field(
        default=None,
        title="Target",
        description="Instead of a mechanism: calibrate one first. The answer has it.",
        examples=[{"mechanism": OUTLINE, "epsilon": 0.349, "delta": 1e-5}],
    )
    sizes: GroupSizes = Field(
        title="n",
        description="The sizes of all groups; with times, the sizes of a histogram. Use public or made-up sizes.",
        examples=[[10, 1000, 5000, 10000, 14000, 20000, 100000]],
    )
    times: TimesOfSizes | None = Field(
        default=None,
        title="Times",
        description="How many groups have each size; omitted, it is 1 for each.",
        examples=[[1000000, 20000, 900, 200, 90, 60, 8]],
    )
    below: float | None = Field(
        default=None,
        gt=0,
        title="n₀",
        description="Published groups with fewer users than this are counted as false; omitted, it is τ*.",
        examples=[10000],
    )
    quantiles: list[Quantile] = Field(
        default=[0.5, 0.9, 0.95],
        max_length=MOST_QUANTILES,
        title="q",
        description="The quantiles of the relative error to answer; omitted, they are 0.5, 0.9 and 0.95.",
        examples=[[0.5, 0.95]],
        json_schema_extra=without_default,  # client generators have no default for a list of bounded numbers
    )

    @model_validator(mode="after")
    def _one_mechanism(self) -> Self:
        if (self.mechanism is None) == (self.target is None):
            raise PydanticCustomError("stated", "", {"stated": "must have exactly one of mechanism and target"})
        return self


class PublishedGroups(Strict):
    """How many groups the mechanism would publish."""

    total: int = Field(title="All", description="The groups of the request.", examples=[1021258])
    expected: float = Field(
        title="Expected", description="The expected number of published groups.", examples=[121.239]
    )
    share: float = Field(title="Share", description="The expected share of all groups.", examples=[0.0001187])
    standard_deviation: float = Field(
        title="Standard deviation",
        description="The standard deviation of the number of published groups.",
        examples=[5.482],
    )


class PublishedVolume(Strict):
    """How many users are in the published groups. A user of several groups is counted in each."""

    total: float = Field(title="All", description="The users of all groups.", examples=[39760000])
    expected: float = Field(
        title="Expected",
        description="The expected number of users in published groups, without noise.",
        examples=[2713421.4],
    )
    share: float = Field(title="Share", description="The expected share of all users.", examples=[0.06825])


class FalseGroups(Strict):
    """Published groups with fewer users than a size: only noise lifted them to the threshold."""

    below: float = Field(title="n₀", description="The size of the request, or τ*.", examples=[13951.051])
    expected: float = Field(
        title="Expected", description="The expected number of published groups below that size.", examples=[7.65]
    )
    share: float | None = Field(
        title="Share",
        description="Their share of the published groups; null if no group can be published.",
        examples=[0.0631],
    )


class RelativeError(Strict):
    """A quantile of |published − true| / true over the published groups."""

    quantile: float = Field(title="q", description="The quantile of the request.", examples=[0.95])
    error: float | None = Field(
        title="|y − n|/n",
        description="This share of the published groups has at most this error; null if no group can be published.",
        examples=[0.4244],
    )


class ColumnNoiseOut(Strict):
    """The noise on a further column."""

    name: str = Field(title="Name", description="The name of the column.", examples=["likes"])
    standard_deviation: float = Field(
        title="√Σ_jj", description="The standard deviation of the noise in one group.", examples=[73.17]
    )
    total_standard_deviation: float = Field(
        title="√(Σ_jj · groups)",
        description="The standard deviation of the noise in the sum over all published groups.",
        examples=[663.9],
    )


class SizeOut(Strict):
    """One size, and how probable the publication of a group of that size is."""

    size: int = Field(title="n", description="A size of the request.", examples=[14000])
    times: int = Field(title="Times", description="How many groups have this size.", examples=[90])
    probability: float = Field(
        title="P(published | n)",
        description="The probability that a group of this size is published: Φ((n − τ*)/σ) from τ on, 0 below.",
        examples=[0.50876],
    )


class UtilityAnswer(Strict):
    """What the mechanism would publish."""

    mechanism: MechanismIn = Field(
        title="Mechanism", description="The complete mechanism, ready for the next request.", examples=[CASE_STUDY]
    )
    groups: PublishedGroups = Field(
        title="Groups",
        description="How many groups would be published.",
        examples=[{"total": 1021258, "expected": 121.239, "share": 0.0001187, "standard_deviation": 5.482}],
    )
    volume: PublishedVolume = Field(
        title="Volume",
        description="How many users are in them.",
        examples=[{"total": 39760000, "expected": 2713421.4, "share": 0.06825}],
    )
    false_groups: FalseGroups = Field(
        title="False groups",
        description="How many of them are below a size.",
        examples=[{"below": 13951.051, "expected": 7.65, "share": 0.0631}],
    )
    relative_errors: list[RelativeError] = Field(
        title="Relative errors",
        description="One for each quantile of the request, in order.",
        examples=[[{"quantile": 0.5, "error": 0.0855}, {"quantile": 0.95, "error": 0.4244}]],
    )
    columns: list[ColumnNoiseOut] = Field(
        title="Columns",
        description="The noise on each further column; empty for counts only.",
        examples=[[{"name": "likes", "standard_deviation": 73.17, "total_standard_deviation": 663.9}]],
    )
    sizes: list[SizeOut] = Field(
        title="Sizes",
        description="One for each distinct size of the request, the smallest first.",
        examples=[[{"size": 14000, "times": 90, "probability": 0.50876}]],
    )


_SIZES: dict[str, Any] = {
    "sizes": [10, 1000, 5000, 10000, 14000, 20000, 100000],
    "times": [1000000, 20000, 900, 200, 90, 60, 8],
}
_APP = {"c_u": 3, "tau": 1, "tau_star": 120, "sigma": 20}
UTILITY_EXAMPLES: dict[str, Any] = {
    "mechanism": {
        "summary": "A mechanism, and a histogram of sizes",
        "description": "A long tail, as URLs have it: very few groups are published, and most errors are moderate.",
        "value": {"mechanism": CASE_STUDY} | _SIZES,
    },
    "target": {
        "summary": "A target, which a mechanism is calibrated for first",
        "value": {"target": {"mechanism": OUTLINE, "epsilon": 0.349, "delta": 1e-05}} | _SIZES,
    },
    "sizes": {
        "summary": "The sizes of all groups, one by one",
        "value": {"mechanism": _APP, "sizes": [812, 440, 131, 118, 97, 60, 60, 4], "quantiles": [0.5, 0.95]},
    },
    "below": {
        "summary": "How many published groups are much too small",
        "value": {"mechanism": _APP, "sizes": [20, 80, 110, 300], "times": [900, 40, 9, 2], "below": 90},
    },
    "columns": {
        "summary": "With further columns, whose noise scales with σ",
        "value": {
            "target": COMPARE_EXAMPLES["columns"]["value"],
            "sizes": [5, 50, 400, 900],
            "times": [20000, 3000, 120, 30],
        },
    },
}
