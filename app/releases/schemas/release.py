"""The bodies of /release and /release/table."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError
from typing_extensions import TypeAliasType

from app.accounting.schemas.intervals import INTERVALS_EXAMPLE, IntervalsOut, Level, Units
from app.ledger.errors import InvalidSetting
from app.ledger.renewing import named_period
from app.releases.schemas.certificate import (
    CERTIFICATE_EXAMPLE,
    TABLES_CERTIFICATE_EXAMPLE,
    AnyCertificate,
    Certificate,
    TablesCertificate,
)
from app.releases.schemas.stated import Stated
from app.schemas.case_study import CASE_STUDY
from app.schemas.costs import COST_EXAMPLE, CostOut
from app.schemas.ledger_record import PERIOD_PAYS, PeriodName
from app.schemas.mechanism import AnyMechanismIn, MechanismOrTables, TableName
from app.schemas.scalars import MOST_COLUMNS, BudgetName, ColumnName
from app.schemas.strict import OrAbsent, Strict, without_default
from gsh.accounting.mechanism import MOST_TABLES, AnyMechanism
from gsh.errors import renamed
from gsh.histogram.apply import MOST_COUNT
from gsh.histogram.csv_format import CsvType
from gsh.histogram.noise import Noise
from gsh.histogram.public_keys import POSTED
from gsh.library.rounding import rounded_to

__all__ = [
    "ColumnsTableIn",
    "DryBudget",
    "DryRunAnswer",
    "GroupsIn",
    "GroupsOut",
    "GroupsTableIn",
    "Payable",
    "ReleaseAnswer",
    "ReleaseRequest",
    "TableAnswer",
    "TableName",
    "TableRequest",
    "TablesAnswer",
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


def _listed(public: Any) -> Any:
    """A list, or the word: a union would read a long list twice. Its items are checked when they become columns."""
    if not isinstance(public, list | None) and public != POSTED:
        raise PydanticCustomError("stated", "", {"stated": f'must be a list of group keys, or "{POSTED}"'})
    return public


_PublicKeys = Annotated[
    Any,
    AfterValidator(_listed),
    WithJsonSchema({"anyOf": [{"type": "array", "items": _GROUP_KEY}, {"const": POSTED}, {"type": "null"}]}),
]
_MECHANISM: dict[str, Any] = {
    "title": "Mechanism",
    "description": "The complete mechanism to run, as /calibrate returns it. Without tau and tau_star the groups are "
    "public: public_keys lists them, and all of them are published.",
    "examples": [CASE_STUDY],
}
_PUBLIC_KEYS: dict[str, Any] = {
    "default": None,
    "exclude_if": lambda value: value is None,
    "title": "Public keys",
    "description": "For a mechanism without thresholds: the keys of all groups to publish, from public knowledge and "
    f'not from the data. A listed group that is not posted counts 0. "{POSTED}": the posted groups are this list.',
    "examples": [["FR", "US"], POSTED],
}
_TABLES: dict[str, Any] = {
    "default": None,
    "exclude_if": lambda value: value is None,
    "title": "Tables",
}
_GROUPS: dict[str, Any] = {
    "title": "Groups",
    "description": "One row per group that has at least one user. Public groups may also have none.",
    "examples": [{"keys": _EXAMPLE_KEYS, "counts": [48211, 3]}],
}
_COUNT_COLUMN: dict[str, Any] = {
    "title": "Count column",
    "description": "The column with the true numbers of users; integers.",
    "examples": ["users"],
}
KeyColumns = TypeAliasType(
    "KeyColumns",
    Annotated[
        list[ColumnName],
        Field(min_length=1, max_length=MOST_COLUMNS, description="The columns that together identify a group."),
    ],
)
_KEY_COLUMNS: dict[str, Any] = {
    "title": "Key columns",
    "description": "The columns that together identify a group, in the order to sort by; of any scalar type.",
    "examples": [["url", "country"]],
}
_CSV_TYPES: dict[str, Any] = {
    "default": None,
    "exclude_if": lambda value: value is None,
    "title": "CSV types",
    "description": "For a table in CSV, in UTF-8 with a header line: the type of each column. Other formats say it "
    "themselves.",
    "examples": [{"url": "string", "country": "string", "users": "int64"}],
}
_ROUND: dict[str, Any] = {
    "default": False,
    "exclude_if": lambda value: not value,
    "title": "Round",
    "description": "Round counts to integers, and other columns to integers or to their units, after the noise and the "
    "threshold. The certificate says it, and intervals are wider by what it may change.",
    "examples": [True],
}
_UNITS: dict[str, Any] = {
    "default": {},
    "exclude_if": lambda value: not value,
    "json_schema_extra": without_default,
    "title": "Units",
    "description": "With round: what columns are rounded to, if not to integers.",
    "examples": [{"price": 0.01}],
}
_ONE: dict[str, Any] = {"default": None, "exclude_if": lambda value: value is None}


class Payable(Stated):
    """What a release states, the budget that pays for it, and what people should know about it."""

    budget: BudgetName | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        title="Budget",
        description="The budget to charge; needs an Idempotency-Key. Without it nothing is charged.",
        examples=["web"],
    )
    period: PeriodName | None = Field(**PERIOD_PAYS)
    dry_run: bool = Field(
        default=False,
        title="Dry run",
        description="Check everything, and say whether the budget would pay. With an Idempotency-Key, also say whether "
        "it is used. No noise is drawn, nothing is charged and nothing is stored.",
        examples=[False],
    )

    @property
    def paying(self) -> str | None:
        """The budget that pays, with the period if one is named."""
        if self.budget is not None:
            return named_period(self.budget, self.period)
        if self.period is not None:
            raise InvalidSetting("period", "needs a budget: it says which of its periods pays")
        return None

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


_NAME: dict[str, Any] = {
    "title": "Name",
    "description": "The name of the table; unique, whatever its case.",
    "examples": ["by_url"],
}


class Rounding(Strict):
    """Whether published numbers are rounded, and to what."""

    round: bool = Field(**_ROUND)
    units: Units = Field(**_UNITS)

    def noise(self, mechanism: AnyMechanism) -> Noise:
        """The noise of a mechanism, rounded as asked."""
        with renamed(("units", "/units")):
            return Noise(mechanism, rounded_to(mechanism, self.round, self.units, "round"))

    @property
    def asked_rounding(self) -> dict[str, Any]:
        """What the request says about rounding. It changes the answer, so it is part of what it means."""
        return {"round": True, "units": self.units} if self.round else {}


class GroupsTableIn(Rounding):
    """One of several tables: its name, its mechanism, and its groups."""

    name: TableName = Field(**_NAME)
    mechanism: AnyMechanismIn = Field(**_MECHANISM)
    groups: GroupsIn = Field(**_GROUPS)
    public_keys: _PublicKeys = Field(**_PUBLIC_KEYS)


class ColumnsTableIn(Rounding):
    """One of several tables: its name, its mechanism, and which of its columns are what."""

    name: TableName = Field(**_NAME)
    mechanism: AnyMechanismIn = Field(**_MECHANISM)
    count_column: ColumnName = Field(**_COUNT_COLUMN)
    key_columns: KeyColumns = Field(**_KEY_COLUMNS)
    csv_types: CsvTypes | None = Field(**_CSV_TYPES)
    public_keys: _PublicKeys = Field(**_PUBLIC_KEYS)


_SEVERAL: dict[str, Any] = {"min_length": 1, "max_length": MOST_TABLES, "description": "The tables of one release."}
GroupsTables = TypeAliasType("GroupsTables", Annotated[list[GroupsTableIn], Field(**_SEVERAL)])
ColumnsTables = TypeAliasType("ColumnsTables", Annotated[list[ColumnsTableIn], Field(**_SEVERAL)])


class ReleaseRequest(Payable, MechanismOrTables):
    """A mechanism and the groups to run it on; or several tables, each with its mechanism and its groups."""

    needed = ("mechanism", "groups")
    optional = ("public_keys", "round", "units")

    mechanism: AnyMechanismIn | None = Field(**_ONE, **_MECHANISM)
    groups: GroupsIn | None = Field(**_ONE, **_GROUPS)
    public_keys: _PublicKeys = Field(**_PUBLIC_KEYS)
    round: bool = Field(**_ROUND)
    units: Units = Field(**_UNITS)
    tables: GroupsTables | None = Field(
        **_TABLES,
        description="Several tables in one release, in place of mechanism and groups: fixed together before any noise "
        "is drawn, charged once, with one certificate.",
        examples=[
            [{"name": "by_url", "mechanism": CASE_STUDY, "groups": {"keys": _EXAMPLE_KEYS, "counts": [48211, 3]}}]
        ],
    )

    @property
    def posted(self) -> dict[str, GroupsTableIn]:
        """The tables by their pointers in the request. The only table of a request has the empty pointer."""
        if self.tables is not None:
            return {f"/tables/{k}": table for k, table in enumerate(self.tables)}
        fields = {name: getattr(self, name) for name in (*self.needed, *self.optional)}
        return {"": GroupsTableIn.model_construct(name="", **fields)}


class TableRequest(Payable, MechanismOrTables):
    """A mechanism, and which columns of the table are what; or several tables. The other columns are the aggregates."""

    needed = ("mechanism", "count_column", "key_columns")
    optional = ("csv_types", "public_keys", "round", "units")

    mechanism: AnyMechanismIn | None = Field(**_ONE, **_MECHANISM)
    count_column: ColumnName | None = Field(**_ONE, **_COUNT_COLUMN)
    key_columns: KeyColumns | None = Field(**_ONE, **_KEY_COLUMNS)
    csv_types: CsvTypes | None = Field(**_CSV_TYPES)
    public_keys: _PublicKeys = Field(**_PUBLIC_KEYS)
    round: bool = Field(**_ROUND)
    units: Units = Field(**_UNITS)
    tables: ColumnsTables | None = Field(
        **_TABLES,
        description="Several tables in one release, in place of the fields of one. For each there is one part table in "
        "the form; its file name is the name of the table, with or without an ending such as .parquet.",
        examples=[
            [{"name": "by_url", "mechanism": CASE_STUDY, "count_column": "users", "key_columns": ["url", "country"]}]
        ],
    )

    @property
    def posted(self) -> dict[str, ColumnsTableIn]:
        """The tables by their pointers in the request. The only table of a request has the empty pointer."""
        if self.tables is not None:
            return {f"/tables/{k}": table for k, table in enumerate(self.tables)}
        fields = {name: getattr(self, name) for name in (*self.needed, *self.optional)}
        return {"": ColumnsTableIn.model_construct(name="", **fields)}


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


_KEPT: dict[str, Any] = {
    "title": "Groups",
    "description": "The kept groups. The answer says nothing about dropped groups.",
    "examples": [{"keys": [["a.org", "US"]], "counts": [50173.984375], "values": {}}],
}
_INTERVALS: dict[str, Any] = {
    "title": "Intervals",
    "description": "For each group, in the order of the groups; absent unless asked for.",
    "examples": [INTERVALS_EXAMPLE],
}


class SignatureOut(Strict):
    """A signature and its key."""

    keyid: str = Field(
        title="Key", description="The id of the key.", examples=["kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"]
    )
    sig: str = Field(title="Signature", description="64 bytes (Ed25519) as base64.", examples=["Jas9cS9AaPOq…"])


class EnvelopeOut(Strict):
    """A signed certificate: an in-toto statement in a DSSE envelope."""

    payloadType: str = Field(  # noqa: N815 - the name of the standard
        title="Type", description="Always that of an in-toto statement.", examples=["application/vnd.in-toto+json"]
    )
    payload: str = Field(
        title="Statement",
        description="The statement as base64: its predicate is the certificate, its subject the digests of the rows.",
        examples=["eyJfdHlwZSI6Imh0dHBzOi8v…"],
    )
    signatures: list[SignatureOut] = Field(
        title="Signatures",
        description="The signature of the service.",
        examples=[[{"keyid": "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k", "sig": "Jas9cS9AaPOq…"}]],
    )


_SIGNATURE: dict[str, Any] = {
    "title": "Signature",
    "description": "The certificate, signed by the service. Absent if no budget paid, or if the service has no key.",
    "examples": [
        {
            "payloadType": "application/vnd.in-toto+json",
            "payload": "eyJfdHlwZSI6Imh0dHBzOi8v…",
            "signatures": [{"keyid": "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k", "sig": "Jas9cS9AaPOq…"}],
        }
    ],
}


class ReleaseAnswer(Strict):
    """What may be published, and what it costs."""

    groups: GroupsOut = Field(**_KEPT)
    intervals: OrAbsent[IntervalsOut] = Field(**_INTERVALS)
    certificate: Certificate = Field(
        title="Certificate",
        description="The certified privacy of this release. It does not depend on the data.",
        examples=[CERTIFICATE_EXAMPLE | {"idempotency_key": None, "budget": None}],
    )
    signature: OrAbsent[EnvelopeOut] = Field(**_SIGNATURE)


class TableOut(Strict):
    """One of several tables: what may be published."""

    name: str = Field(title="Name", description="The name of the table.", examples=["by_url"])
    groups: GroupsOut = Field(**_KEPT)
    intervals: OrAbsent[IntervalsOut] = Field(**_INTERVALS)


class TablesAnswer(Strict):
    """What may be published of several tables, and what they cost together."""

    tables: list[TableOut] = Field(
        title="Tables",
        description="The tables in the order of the request.",
        examples=[[{"name": "by_url", "groups": _KEPT["examples"][0]}]],
    )
    certificate: TablesCertificate = Field(
        title="Certificate",
        description="The certified privacy of all tables together. It does not depend on the data.",
        examples=[TABLES_CERTIFICATE_EXAMPLE | {"idempotency_key": None, "budget": None}],
    )
    signature: OrAbsent[EnvelopeOut] = Field(**_SIGNATURE)


class TableAnswer(TableOut):
    """One of several tables, and what they cost together."""

    certificate: TablesCertificate = Field(
        title="Certificate",
        description="The certified privacy of all tables of the release together. It does not depend on the data.",
        examples=[TABLES_CERTIFICATE_EXAMPLE | {"idempotency_key": None, "budget": None}],
    )
    signature: OrAbsent[EnvelopeOut] = Field(**_SIGNATURE)


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
    certificate: AnyCertificate = Field(
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
