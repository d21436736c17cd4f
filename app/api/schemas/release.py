"""The bodies of /release and /release/table."""

from typing import Annotated, Any

from pydantic import Field, WithJsonSchema

from app.api.schemas.certificate import CASE_STUDY, Certificate, Certified
from app.api.schemas.scalars import MOST_COLUMNS, BudgetName, ColumnName
from app.api.schemas.strict import Strict
from app.version import VERSION
from gsh.histogram.apply import MOST_COUNT

__all__ = ["GroupsIn", "GroupsOut", "Payable", "ReleaseAnswer", "ReleaseRequest", "TableRequest"]

_PART = {"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "null"}]}
_GROUP_KEY = {"anyOf": [*_PART["anyOf"], {"type": "array", "items": _PART, "minItems": 1, "maxItems": 100}]}
_GROUP_KEYS = WithJsonSchema({"type": "array", "items": _GROUP_KEY})
_EXAMPLE_KEYS = [["a.org", "US"], ["b.org", "FR"]]


class Payable(Certified):
    """The same, and the budget that pays for it."""

    budget: BudgetName | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        title="Budget",
        description="The budget to charge; needs an Idempotency-Key. Without it nothing is charged.",
        examples=["web"],
    )


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
    certificate: Certificate = Field(
        title="Certificate",
        description="The certified privacy of this release. It does not depend on the data.",
        examples=[
            {
                "release_id": "5f0c66f2-1d5c-4d5e-9a6b-3b1f0c8f7a10",
                "released_at": "2026-11-16T12:00:00Z",
                "service_version": VERSION,
                "accounting": "exact",
                "mechanism": CASE_STUDY,
                "mu_0": 0.0,
                "mu": 0.10224286368,
                "delta_infinite": 9.999999999999999e-06,
                "epsilon": 0.349,
                "delta": 9.999999999999999e-06,
                "grid": {"count": 0.001953125, "values": {}},
            }
        ],
    )
