"""The bodies of /release and /release/table."""

from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema
from typing_extensions import TypeAliasType

from app.accounting.schemas.intervals import INTERVALS_EXAMPLE, IntervalsOut, Level
from app.releases.schemas.certificate import CERTIFICATE_EXAMPLE, Certificate
from app.releases.schemas.certified import Certified
from app.releases.schemas.described import Described
from app.schemas.costs import COST_EXAMPLE, CostOut
from app.schemas.scalars import MOST_COLUMNS, BudgetName, ColumnName
from app.schemas.strict import OrAbsent, Strict
from gsh.histogram.apply import MOST_COUNT
from gsh.histogram.csv_format import CsvType

__all__ = [
    "DryBudget",
    "DryRunAnswer",
    "GroupsIn",
    "GroupsOut",
    "Payable",
    "ReleaseAnswer",
    "ReleaseRequest",
    "TableRequest",
]

CsvColumnType = TypeAliasType(
    "CsvColumnType", Annotated[CsvType, Field(description="The type of the values in a column of CSV.")]
)
CsvTypes = TypeAliasType(
    "CsvTypes",
    Annotated[
        dict[str, CsvColumnType],
        Field(min_length=1, max_length=3 * MOST_COLUMNS, description="The type of each column of a table in CSV."),
    ],
)

_PART = {"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "null"}]}
_GROUP_KEY = {"anyOf": [*_PART["anyOf"], {"type": "array", "items": _PART, "minItems": 1, "maxItems": 100}]}
_GROUP_KEYS = WithJsonSchema({"type": "array", "items": _GROUP_KEY})
_EXAMPLE_KEYS = [["a.org", "US"], ["b.org", "FR"]]


class Payable(Certified, Described):
    """The same, the budget that pays for it, and what people should know about it."""

    budget: BudgetName | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        title="Budget",
        description="The budget to charge; needs an Idempotency-Key. Without it nothing is charged.",
        examples=["web"],
    )
    dry_run: bool = Field(
        default=False,
        title="Dry run",
        description="Check everything, and say whether the budget would pay. With an Idempotency-Key, also say whether "
        "it is used. No noise is drawn, nothing is charged and nothing is stored.",
        examples=[False],
    )

    intervals: Level | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        title="Intervals",
        description="Add intervals for the true numbers, at this level. They are made from the published numbers, and "
        "cost no privacy.",
        examples=[0.95],
    )

    @property
    def asked_intervals(self) -> dict[str, float]:
        """What the request says about intervals. They change the answer, so they are part of what it means."""
        return {} if self.intervals is None else {"intervals": self.intervals}


class GroupsIn(Strict):
    """A table of groups, by columns of equal length."""

    # The types of group keys are checked when they become columns. A union would take longer than all the rest.
    keys: Annotated[list[Any], _GROUP_KEYS] = Field(
        title="Keys",
        description="What identifies each group: a string, a number, null or a list of these; unique.",
        examples=[_EXAMPLE_KEYS],
    )
    counts: list[Annotated[int, Field(ge=0, le=MOST_COUNT)]] = Field(
        fail_fast=True, title="C", description="The true number of users of each group.", examples=[[48211, 3]]
    )
    values: dict[str, Annotated[list[float], Field(fail_fast=True)]] = Field(
        default={},
        max_length=MOST_COLUMNS,
        title="Values",
        description="For each of aggregates/names its column of true values; absent for counts only.",
        examples=[{"likes": [812, 1], "shares": [40, 0]}],
    )


class ReleaseRequest(Payable):
    """A mechanism, and the groups to run it on."""

    groups: GroupsIn = Field(
        title="Groups",
        description="One row per group that has at least one user.",
        examples=[{"keys": _EXAMPLE_KEYS, "counts": [48211, 3]}],
    )


class TableRequest(Payable):
    """A mechanism, and which columns of the table are what. Those of aggregates/names are the further columns."""

    count_column: ColumnName = Field(
        title="Count column", description="The column with the true numbers of users; integers.", examples=["users"]
    )
    key_columns: Annotated[list[ColumnName], Field(min_length=1, max_length=MOST_COLUMNS)] = Field(
        title="Key columns",
        description="The columns that together identify a group, in the order to sort by; of any scalar type.",
        examples=[["url", "country"]],
    )
    csv_types: CsvTypes | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        title="CSV types",
        description="For a table in CSV, in UTF-8 with a header line: the type of each column. Other formats say it "
        "themselves.",
        examples=[{"url": "string", "country": "string", "users": "int64"}],
    )


class GroupsOut(Strict):
    """The groups that were kept, sorted by key, in the shape in which groups are posted."""

    keys: Annotated[list[Any], _GROUP_KEYS] = Field(
        title="Keys", description="The keys of the groups kept, sorted.", examples=[[["a.org", "US"]]]
    )
    counts: list[int | float] = Field(
        title="C + v", description="Their noisy numbers of users.", examples=[[50173.984375]]
    )
    values: dict[str, list[int | float]] = Field(
        title="Noisy values",
        description="Their noisy values, a column per name.",
        examples=[{"likes": [790.5], "shares": [46]}],
    )


class ReleaseAnswer(Strict):
    """What may be published, and what it costs."""

    groups: GroupsOut = Field(
        title="Groups",
        description="What was kept. Of what was dropped, nothing is said.",
        examples=[{"keys": [["a.org", "US"]], "counts": [50173.984375], "values": {}}],
    )
    intervals: OrAbsent[IntervalsOut] = Field(
        title="Intervals",
        description="For each group, in the order of the groups; absent unless asked for.",
        examples=[INTERVALS_EXAMPLE],
    )
    certificate: Certificate = Field(
        title="Certificate",
        description="The certified privacy of this release. It does not depend on the data.",
        examples=[CERTIFICATE_EXAMPLE | {"idempotency_key": None, "budget": None}],
    )


class DryBudget(Strict):
    """What a budget would have spent."""

    id: str = Field(title="Budget", description="The name of the budget.", examples=["web"])
    after: CostOut = Field(
        title="After", description="What would be spent, this release included.", examples=[COST_EXAMPLE]
    )
    used: float = Field(
        title="Used", description="The share that would be used, as in the budget itself.", examples=[0.1309]
    )


class DryRunAnswer(Strict):
    """The result of a dry run: the request is in order, and the budget would pay."""

    dry_run: Literal[True] = Field(
        title="Dry run", description="Nothing was drawn, charged or stored.", examples=[True]
    )
    certificate: Certificate = Field(
        title="Certificate",
        description="The certificate that the release would have.",
        examples=[CERTIFICATE_EXAMPLE],
    )
    budget: DryBudget | None = Field(
        title="Budget",
        description="What the budget would have spent; null without a budget.",
        examples=[None],
    )
    released_at: str | None = Field(
        title="Released at",
        description="When the release was made that has this Idempotency-Key and this content already: it would be "
        "replayed, with the certificate shown here, and nothing would be charged. Null if the release would be new.",
        examples=[None],
    )
