"""The mechanism object: the same in every request, and in the answer of /calibrate."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias

from pydantic import Discriminator, Field, Tag, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError
from typing_extensions import TypeAliasType

from app.schemas.aggregates import (
    AGGREGATES,
    CAPPED,
    BalancedColumnsIn,
    CappedIn,
    ColumnsIn,
    MuZeroIn,
    RelativeColumnsIn,
)
from app.schemas.case_study import CASE_STUDY
from app.schemas.scalars import GroupsPerUser, Sigma, Sigmas, TauStar, a_list
from app.schemas.strict import OneOrMany, OrAbsent, Strict
from gsh.accounting import case_study
from gsh.accounting.calibration.draft import Draft
from gsh.accounting.calibration.shares import TableDraft
from gsh.accounting.mechanism import MOST_TABLES, AnyMechanism, FixedTables, Mechanism, release_of
from gsh.wire import (
    TABLE_NAME,
    draft_from_json,
    mechanism_from_json,
    mechanism_to_json,
    priced_tables_to_json,
    release_from_json,
    table_drafts_from_json,
    table_name_fault,
    tables_from_json,
)

__all__ = [
    "SHARES",
    "TABLES",
    "TABLE_DRAFTS",
    "AnyMechanismIn",
    "DraftIn",
    "GaussianIn",
    "MechanismIn",
    "MechanismOrTables",
    "MechanismOut",
    "Mechanisms",
    "OutlineIn",
    "PostedMechanism",
    "Shares",
    "TableDraftIn",
    "TableDrafts",
    "TableIn",
    "TableName",
    "Tables",
    "read_release",
    "read_table_drafts",
    "stated_at",
    "tables_out",
]

C_U: dict[str, Any] = {
    "title": "C_u",
    "description": "The most groups that one user can touch.",
    "examples": [CASE_STUDY["c_u"]],
}
TAU: dict[str, Any] = {
    "title": "τ",
    "description": "Groups with fewer users than this are dropped before noise is drawn; 0 acts as 1.",
    "examples": [CASE_STUDY["tau"]],
}
TAU_STAR: dict[str, Any] = {
    "title": "τ*",
    "description": "Groups whose noisy count is below this are dropped; greater than τ. A count equal to it is kept.",
    "examples": [CASE_STUDY["tau_star"]],
}
SIGMA: dict[str, Any] = {
    "title": "σ",
    "description": "Standard deviation of the Gaussian noise on counts.",
    "examples": [CASE_STUDY["sigma"]],
}


def _has(value: Any, name: str) -> bool:
    return name in value if isinstance(value, dict) else hasattr(value, name)


def _shape(value: Any) -> str:
    return "<mu_0>" if _has(value, "mu_0") else "<columns>"


def _draft_shape(value: Any) -> str:
    if _has(value, "noise"):
        return "<balanced>"
    return "<relative>" if _has(value, "relative_covariance") else _shape(value)


_Columns = Annotated[ColumnsIn, Tag("<columns>")]
_RelativeColumns = Annotated[RelativeColumnsIn, Tag("<relative>")]
_BalancedColumns = Annotated[BalancedColumnsIn, Tag("<balanced>")]
_MuZero = Annotated[MuZeroIn, Tag("<mu_0>")]
_FurtherColumns = Annotated[
    Annotated[_Columns | _MuZero, Discriminator(_shape)] | None,
    Field(default=None, exclude_if=lambda value: value is None, **AGGREGATES),
]
_DraftColumns = Annotated[
    Annotated[_Columns | _RelativeColumns | _BalancedColumns | _MuZero, Discriminator(_draft_shape)] | None,
    Field(default=None, **AGGREGATES),
]


class MechanismIn(Strict):
    """A complete Gaussian sparse histogram mechanism."""

    c_u: GroupsPerUser = Field(**C_U)
    tau: int = Field(ge=0, **TAU)
    tau_star: TauStar = Field(**TAU_STAR)
    sigma: Sigma = Field(**SIGMA)
    aggregates: _FurtherColumns

    @classmethod
    def of(cls, mechanism: Mechanism) -> Self:
        return cls.model_validate(mechanism_to_json(mechanism))

    def to_domain(self) -> Mechanism:
        return mechanism_from_json(self.model_dump())


class GaussianIn(Strict):
    """Gaussian noise without thresholds, on public groups."""

    c_u: GroupsPerUser = Field(**C_U)
    sigma: Sigma = Field(**SIGMA)
    aggregates: _FurtherColumns

    def to_domain(self) -> AnyMechanism:
        return release_from_json(self.model_dump())


def _thresholded(value: Any) -> str:
    return "<threshold>" if _has(value, "tau") or _has(value, "tau_star") else "<plain>"


AnyMechanismIn = Annotated[
    Annotated[MechanismIn, Tag("<threshold>")] | Annotated[GaussianIn, Tag("<plain>")], Discriminator(_thresholded)
]
"""A mechanism. Without tau and tau_star it is plain Gaussian noise on public groups."""
PostedMechanism: TypeAlias = MechanismIn | GaussianIn
Mechanisms = TypeAliasType("Mechanisms", Annotated[list[AnyMechanismIn], a_list("Several mechanisms, in order.")])


class DraftIn(Strict):
    """A mechanism without the fields to solve for."""

    c_u: GroupsPerUser | None = Field(default=None, **C_U)
    tau: int = Field(ge=0, **TAU)
    tau_star: TauStar | None = Field(default=None, **TAU_STAR)
    sigma: OneOrMany[Sigma, Sigmas] | None = Field(default=None, **SIGMA)
    aggregates: _DraftColumns

    def to_domain(self) -> Draft:
        """Without σ, if there are several."""
        several = {"sigma"} if isinstance(self.sigma, list) else None
        return draft_from_json(self.model_dump(exclude_none=True, exclude=several))


class OutlineIn(Strict):
    """A mechanism before its noise and its threshold are chosen."""

    c_u: GroupsPerUser = Field(**C_U)
    tau: int = Field(ge=0, **TAU)
    aggregates: _DraftColumns

    def to_domain(self) -> Draft:
        return draft_from_json(self.model_dump(exclude_none=True))


TableName = TypeAliasType(
    "TableName",
    Annotated[
        str,
        Field(
            pattern=f"^{TABLE_NAME.pattern}$",
            description=(
                "The name of a table: 1 to 64 letters, digits, dots, hyphens and underscores. It begins with a letter "
                "or a digit, and does not end with a dot."
            ),
        ),
    ],
)
_NAME: dict[str, Any] = {
    "title": "Name",
    "description": "The name of the table: letters, digits, dots, hyphens, underscores. Unique, whatever its case.",
    "examples": ["by_url"],
}


def _is_absent(value: Any) -> bool:
    return value is None


class TableIn(Strict):
    """One table of a release: a complete mechanism with a name. Without tau and tau_star its groups are public."""

    name: TableName = Field(**_NAME)
    c_u: GroupsPerUser = Field(**C_U)
    tau: Annotated[int, Field(ge=0)] | None = Field(default=None, exclude_if=_is_absent, **TAU)
    tau_star: TauStar | None = Field(default=None, exclude_if=_is_absent, **TAU_STAR)
    sigma: Sigma = Field(**SIGMA)
    aggregates: _FurtherColumns
    mu_squared: float | None = Field(
        default=None,
        exclude_if=_is_absent,
        title="μ²",
        description="Noise cost: what the table adds to the sum of μ²; rounded up. Answers have it, and requests need "
        "not: it is computed again.",
        examples=[0.018678],
    )
    hazard: float | None = Field(
        default=None,
        exclude_if=_is_absent,
        title="−C_u ln p",
        description="Threshold cost: what the table adds to the sum of −C_u ln p; rounded up. Answers have it, and "
        "requests need not: it is computed again.",
        examples=[3.3e-07],
    )

    def to_domain(self) -> AnyMechanism:
        """Errors name fields of the table."""
        return release_from_json(self.model_dump(exclude={"name", "mu_squared", "hazard"}))


class TableDraftIn(Strict):
    """One table of a release before its noise and its threshold are chosen. Without tau its groups are public."""

    name: TableName = Field(**_NAME)
    c_u: GroupsPerUser = Field(**C_U)
    tau: Annotated[int, Field(ge=0)] | None = Field(default=None, exclude_if=_is_absent, **TAU)
    share: float = Field(
        default=1.0,
        gt=0,
        title="w",
        description="The table's share of the privacy, relative to the shares of the other tables.",
        examples=[2.0],
    )
    aggregates: _DraftColumns


Tables = TypeAliasType(
    "Tables",
    Annotated[
        list[TableIn],
        Field(min_length=1, max_length=MOST_TABLES, description="The tables of one release, fixed together."),
    ],
)
TableDrafts = TypeAliasType(
    "TableDrafts",
    Annotated[
        list[TableDraftIn],
        Field(min_length=1, max_length=MOST_TABLES, description="The tables of one release, before their noise."),
    ],
)
Shares = TypeAliasType(
    "Shares",
    Annotated[Literal["balanced"], Field(description="balanced: shares with which the sum of all σ² is the smallest.")],
)
TABLES: dict[str, Any] = {
    "title": "Tables",
    "description": "Several tables in one release, in place of the mechanism: fixed together, before any noise is "
    "drawn. A table without tau and tau_star has public groups.",
    "examples": [[{"name": "by_url", "c_u": 16, "tau": 1, "tau_star": 161.5, "sigma": 29.27}]],
}
TABLE_DRAFTS: dict[str, Any] = {
    "title": "Tables",
    "description": "Several tables in one release, in place of the mechanism. Each gets its share of the privacy: of "
    "the noise cost, and the same of the threshold cost. A table without tau has public groups.",
    "examples": [[{"name": "by_url", "c_u": 16, "tau": 1, "share": 2}, {"name": "by_country", "c_u": 1, "tau": 1}]],
}
SHARES: dict[str, Any] = {
    "title": "w",
    "description": "balanced, in place of the share of each table: in proportion to √C_u, more for tables with further "
    "columns, with which the sum of all σ² is the smallest.",
    "examples": ["balanced"],
}


class MechanismOrTables(Strict):
    """A request about one table, whose fields are in the request itself, or about several in ``tables``; not both."""

    needed: ClassVar[tuple[str, ...]] = ("mechanism",)
    """The fields of one table that are needed without ``tables``."""
    optional: ClassVar[tuple[str, ...]] = ()

    @model_validator(mode="after")
    def _one_or_several(self) -> Self:
        if faults := list(self._faults()):
            raise ValidationError.from_exception_data(type(self).__name__, faults)
        return self

    def _faults(self) -> Iterator[InitErrorDetails]:
        tables = getattr(self, "tables", None)
        if tables is None:
            for name in self.needed:
                if getattr(self, name) is None:
                    yield InitErrorDetails(type="missing", loc=(name,), input=None)
            if getattr(self, "shares", None) is not None:
                yield _fault("must be omitted without tables", "shares")
            return
        for name in (*self.needed, *self.optional):
            if getattr(self, name) not in (None, False, {}):
                yield _fault("must be omitted if tables are given", name)
        names = [table.name for table in tables]
        for k, name in enumerate(names):
            if fault := table_name_fault(name, names[:k]):
                yield _fault(fault, "tables", k, "name")


def stated_at(model: Strict, field: str, detail: str) -> ValidationError:
    """An error at one field, from a validator of the whole object."""
    return ValidationError.from_exception_data(type(model).__name__, [_fault(detail, field)])


def _fault(stated: str, *place: str | int) -> InitErrorDetails:
    return InitErrorDetails(type=PydanticCustomError("stated", "", {"stated": stated}), loc=place, input=None)


def read_release(mechanism: PostedMechanism | None, tables: Sequence[TableIn] | None) -> FixedTables:
    """The release of a request that has one of the two. Errors name ``tables/1/sigma``."""
    if tables is None:
        assert mechanism is not None
        return mechanism.to_domain()
    return release_of(list(tables_from_json([table.model_dump() for table in tables]).values()))


def read_table_drafts(tables: Sequence[TableDraftIn]) -> tuple[dict[str, TableDraft], list[float]]:
    """The drafts of a request by their names, and their shares."""
    return table_drafts_from_json([table.model_dump(exclude_none=True) for table in tables])


def tables_out(names: Iterable[str], tables: Iterable[AnyMechanism]) -> list[TableIn]:
    """The tables of an answer, each with its costs."""
    priced = priced_tables_to_json(dict(zip(names, tables, strict=True)))
    return [TableIn.model_validate(table) for table in priced]


class MechanismOut(Strict):
    """The mechanism of the request, and the numbers that follow from it."""

    c_u: int = Field(**C_U)
    tau: OrAbsent[int] = Field(**TAU)
    tau_star: OrAbsent[float] = Field(**TAU_STAR)
    sigma: float = Field(**SIGMA)
    tau_gap: OrAbsent[float] = Field(
        title="τ* − τ",
        description="Privacy depends on the thresholds through this difference only; rounded down. Absent, as tau and "
        "tau_star are, if the groups are public.",
        examples=[case_study.CASE_STUDY.tau_gap],
    )
    mu_0: float = Field(
        title="μ₀", description="What the further columns add to μ, per group; rounded up.", examples=[0.0]
    )
    capped: list[CappedIn] | None = Field(default=None, exclude_if=lambda value: value is None, **CAPPED)
    mu: float = Field(title="μ", description="μ of the equivalent Gaussian mechanism; rounded up.", examples=[0.1022])
