"""Requests and answers of /bound."""

from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypeAliasType

from app.schemas.mechanism import MechanismIn
from app.schemas.scalars import MOST_COLUMNS, ColumnName, GroupsPerUser
from app.schemas.strict import Strict, without_default
from gsh.events.dialects import DialectName

__all__ = ["BOUND_EXAMPLES", "BoundAnswer", "BoundRequest", "EventsIn", "MeanIn", "NeededColumn", "SumIn"]

SqlDialect = TypeAliasType(
    "SqlDialect",
    Annotated[DialectName, Field(description="The SQL of an engine.")],
)
ColumnRole = TypeAliasType(
    "ColumnRole", Annotated[Literal["user", "key", "sum"], Field(description="What a column of the events is for.")]
)
KeyColumns = TypeAliasType(
    "KeyColumns",
    Annotated[
        list[ColumnName], Field(min_length=1, max_length=MOST_COLUMNS, description="The columns of a group key.")
    ],
)
ColumnTypes = TypeAliasType(
    "ColumnTypes",
    Annotated[
        dict[str, Annotated[str, Field(max_length=20)]],
        Field(max_length=2 * MOST_COLUMNS, description="The types of columns, by their names."),
    ],
)
_LIKES = {"name": "likes", "lower": 0, "upper": 1, "groups": 4}


class SumIn(Strict):
    """A column of the events that is added up: what one user adds to one group, and in how many groups."""

    name: ColumnName = Field(title="Name", description="The name of the column.", examples=["likes"])
    lower: float = Field(title="Lower", description="The least that one user adds to one group.", examples=[0])
    upper: float = Field(title="Upper", description="The most that one user adds to one group.", examples=[1])
    unit: float | None = Field(
        default=None,
        title="Unit",
        description="The sum is a whole number of it: a power of two, or 0.01 and the like for decimals. "
        "Null: 1, for a column of whole numbers.",
        examples=[0.0009765625],
    )
    groups: GroupsPerUser | None = Field(
        default=None,
        title="n",
        description="In how many groups one user can change the column, at most C_u; null: in all of them.",
        examples=[4],
    )


class MeanIn(SumIn):
    """A column of the events whose mean per user is wanted: it is added up around the middle of its range."""

    name: ColumnName = Field(title="Name", description="The name of the column.", examples=["seconds"])
    lower: float = Field(title="Lower", description="The least that one user has in one group.", examples=[0])
    upper: float = Field(title="Upper", description="The most that one user has in one group.", examples=[600])


class EventsIn(Strict):
    """A column with the number of events: each record counts 1. The events need no column for it."""

    name: ColumnName = Field(title="Name", description="The name of the column.", examples=["views"])
    most: int = Field(
        ge=1, le=2**52, title="Most", description="The most events of one user in one group.", examples=[20]
    )
    groups: GroupsPerUser | None = Field(
        default=None,
        title="n",
        description="In how many groups the events of one user count, at most C_u; null: in all of them.",
        examples=[4],
    )


class BoundRequest(Strict):
    """A table of events, and the bounds on one user."""

    dialect: SqlDialect = Field(title="Dialect", description="The engine that will run the query.", examples=["duckdb"])
    source: str = Field(
        min_length=1, max_length=200, title="Source", description="The table with the events.", examples=["views"]
    )
    user: ColumnName = Field(title="User", description="The column with the privacy unit.", examples=["user_id"])
    by: KeyColumns = Field(title="By", description="The columns of the group key.", examples=[["url", "country"]])
    c_u: GroupsPerUser = Field(title="C_u", description="The most groups that one user can touch.", examples=[16])
    tau: int = Field(
        default=1, ge=0, le=2**53, title="τ", description="Groups with fewer users are dropped.", examples=[1]
    )
    sums: list[SumIn] = Field(
        default=[],
        max_length=MOST_COLUMNS,
        json_schema_extra=without_default,
        title="Sums",
        description="The columns that are added up.",
        examples=[[_LIKES]],
    )
    events: list[EventsIn] = Field(
        default=[],
        max_length=MOST_COLUMNS,
        json_schema_extra=without_default,
        title="Events",
        description="Columns with the number of events. They come after the sums.",
        examples=[[{"name": "views", "most": 20}]],
    )
    means: list[MeanIn] = Field(
        default=[],
        max_length=MOST_COLUMNS,
        json_schema_extra=without_default,
        title="Means",
        description="Columns for means per user: seconds_centred has the sum of what each user has, less the middle "
        "of the range, in halves of the unit. They come last.",
        examples=[[{"name": "seconds", "lower": 0, "upper": 600}]],
    )
    types: ColumnTypes = Field(
        default={},
        json_schema_extra=without_default,
        title="Types",
        description="Types of columns, if they are other ones: users and keys are string, sums are integer, or double "
        "with a unit.",
        examples=[{"user_id": "integer"}],
    )
    salt: str | None = Field(
        default=None,
        json_schema_extra={"pattern": "^[0-9a-f]{32}$"},  # the library checks it, in plain words
        title="Salt",
        description="32 hexadecimal digits: the same salt keeps the same groups. Null: a new one.",
        examples=["00112233445566778899aabbccddeeff"],
    )
    mechanism: MechanismIn | None = Field(
        default=None,
        title="Mechanism",
        description="The noise that the engine adds itself, and its threshold: only presto can. Null: the query adds "
        "no noise.",
        examples=[{"c_u": 16, "tau": 1, "tau_star": 90.5, "sigma": 17}],
    )


class NeededColumn(Strict):
    """A column that the events must have."""

    name: str = Field(title="Name", description="The name of the column.", examples=["likes"])
    role: ColumnRole = Field(title="Role", description="What the query uses it for.", examples=["sum"])
    type: str = Field(title="Type", description="The type that the query takes it as.", examples=["integer"])
    unit: float | None = Field(
        title="Unit",
        description="The query gives whole numbers of this, or in a mean of its half; null unless it is added up.",
        examples=[1],
    )


class BoundAnswer(Strict):
    """The bounding query, and the columns that it needs."""

    dialect: SqlDialect = Field(title="Dialect", description="The engine that the query is for.", examples=["duckdb"])
    is_executed: bool = Field(
        title="Executed",
        description="Whether our tests run such queries on this engine. Otherwise the first line of the query says how "
        "it was tested.",
        examples=[True],
    )
    query: str = Field(title="Query", description="The query, with comments.", examples=["-- For duckdb …\nWITH …;\n"])
    columns: list[NeededColumn] = Field(
        title="Columns",
        description="The columns that the events must have.",
        examples=[[{"name": "user_id", "role": "user", "type": "string", "unit": None}]],
    )
    salt: str = Field(title="Salt", description="The salt of the query.", examples=["00112233445566778899aabbccddeeff"])
    plan_digest: str = Field(
        title="Digest", description="The SHA-256 of what the query does, for a certificate.", examples=["0" * 64]
    )


_SALT = "00112233445566778899aabbccddeeff"
_VIEWS = {"source": "views", "user": "user_id", "by": ["url", "country"], "c_u": 16, "salt": _SALT}
BOUND_EXAMPLES: dict[str, Any] = {
    "counts": {"summary": "Users per URL and country", "value": {"dialect": "duckdb", **_VIEWS}},
    "caps": {
        "summary": "With a sum that a user changes in 4 groups only",
        "value": {"dialect": "postgres", **_VIEWS, "tau": 20, "sums": [_LIKES]},
    },
    "events": {
        "summary": "With the number of events",
        "value": {"dialect": "spark", **_VIEWS, "events": [{"name": "views", "most": 20}]},
    },
    "units": {
        "summary": "With a sum that is not of whole numbers",
        "value": {
            "dialect": "snowflake",
            **_VIEWS,
            "sums": [{"name": "seconds", "lower": 0, "upper": 600, "unit": 0.0009765625}],
        },
    },
    "types": {
        "summary": "With users and keys that are not texts",
        "value": {"dialect": "bigquery", **_VIEWS, "by": ["day"], "types": {"user_id": "integer", "day": "date"}},
    },
}
