"""The fields of a certificate, for the OpenAPI document and for its JSON Schema: version 2, and 3 for named tables.

Run as a program, it prints the schema: openapi/certificate.schema.json.
"""

import json
import sys
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Discriminator, Field, RootModel, Tag
from typing_extensions import TypeAliasType

from app.releases.schemas.bounds import BoundsOut
from app.releases.schemas.stated import ABOUT, UNPROTECTED, About, Choices
from app.schemas.aggregates import CAPPED, CappedIn, Ratios
from app.schemas.case_study import CASE_STUDY
from app.schemas.ledger_record import PaidBy, Period, Record
from app.schemas.mechanism import AnyMechanismIn
from app.schemas.scalars import Digest
from app.schemas.strict import OrNull, Strict
from app.schemas.survey import SurveyOut
from app.version import VERSION
from gsh.accounting.mechanism import MOST_TABLES
from gsh.certificate_words import (
    ADJACENCY,
    COUNTS_ONLY,
    CURVE,
    CURVE_OF_TABLES,
    NO_THRESHOLD,
    NOISE,
    RELEASE_TYPE,
    SCHEMA,
    SCHEMA_OF_TABLES,
    TIE_RULE,
    TRUST_MODEL,
    intervals_cover,
)

__all__ = [
    "CASE_STUDY",
    "CERTIFICATE_EXAMPLE",
    "SCHEMA",
    "TABLES_CERTIFICATE_EXAMPLE",
    "AnyCertificate",
    "Certificate",
    "Record",
    "TablesCertificate",
    "json_schema",
]


def _bounds(c_u: int) -> dict[str, Any]:
    bounds = {"c_u": c_u, "per_group": COUNTS_ONLY, "columns": None, "norm": None, "vectors": None}
    return bounds | {"intervals_cover": intervals_cover(bounds), "enforced_by": "caller", "plan_digest": None}


CERTIFICATE_EXAMPLE: dict[str, Any] = {
    "schema": SCHEMA,
    "release_id": "5f0c66f2-1d5c-4d5e-9a6b-3b1f0c8f7a10",
    "idempotency_key": "web-2026-46",
    "released_at": "2026-11-16T12:00:00Z",
    "service_version": VERSION,
    "python": "3.11.7",
    "flint": "3.6.0",
    "privacy_unit": "user",
    "period": None,
    "adjacency": ADJACENCY,
    "bounds": _bounds(CASE_STUDY["c_u"]),
    "mechanism": CASE_STUDY,
    "tie_rule": TIE_RULE,
    "noise": NOISE,
    "grid": {"count": 0.001953125, "values": {}},
    "accounting": "exact",
    "mu_0": 0.0,
    "mu": 0.1022428607685887,
    "mu_squared": 0.010453602578145014,
    "hazard": 1.0000050000333334e-05,
    "delta_infinite": 9.999999999999999e-06,
    "epsilon": 0.349,
    "delta": 9.999999999999999e-06,
    "curve": CURVE,
    "budget": {
        "id": "web",
        "promise": {"epsilon": 1.0, "delta": 1e-4},
        "limit": {"epsilon": 1.0, "delta": 1e-4},
    },
    "unprotected": None,
    "trust_model": TRUST_MODEL,
    "release_type": RELEASE_TYPE,
    "record": None,
}


CONTENT_EXAMPLE: dict[str, Any] = {
    "algorithm": "gsh table 1",
    "sha256": "dadf435890cabad9a6cae362519b61101f6d3a0570924d2a523f1aa00f72f5ce",
    "rows": 1,
    "columns": [
        {"name": "url", "role": "key", "kind": "text"},
        {"name": "country", "role": "key", "kind": "text"},
        {"name": "count", "role": "count", "kind": "float"},
    ],
}
ROLES_EXAMPLE = {"keys": ["url", "country"], "count": "users", "values": []}
_DESCRIBED = ("bounds", "mechanism", "tie_rule", "grid", "mu_0")
_PUBLIC = {"c_u": 1, "sigma": 50}
TABLES_CERTIFICATE_EXAMPLE: dict[str, Any] = {
    **{name: value for name, value in CERTIFICATE_EXAMPLE.items() if name not in _DESCRIBED},
    "schema": SCHEMA_OF_TABLES,
    "tables": [
        {"name": "by_url"} | {name: CERTIFICATE_EXAMPLE[name] for name in (*_DESCRIBED, "mu_squared", "hazard")},
        {
            "name": "by_country",
            "bounds": _bounds(1),
            "mechanism": _PUBLIC,
            "tie_rule": NO_THRESHOLD,
            "grid": {"count": 3.0517578125e-05, "values": {}},
            "mu_0": 0.0,
            "mu_squared": 0.0004,
            "hazard": 0.0,
        },
    ],
    "mu": 0.10418062477325146,
    "mu_squared": 0.010853602578145015,
    "delta": 1.3028317998813217e-05,
    "curve": CURVE_OF_TABLES,
}


class GridOut(Strict):
    """The steps to which released numbers are rounded: powers of two that depend only on σ and Σ."""

    count: float = Field(title="Count", description="The step of counts.", examples=[0.001953125])
    values: dict[str, float] = Field(
        title="Values", description="The step of each further column.", examples=[{"likes": 1.52587890625e-05}]
    )


ReleasedRole = TypeAliasType(
    "ReleasedRole", Annotated[Literal["key", "count", "value"], Field(description="What a released column holds.")]
)


class RoundedOut(Strict):
    """What published numbers were rounded to, after the noise and after the threshold."""

    count: float = Field(title="Count", description="The unit of counts.", examples=[1])
    values: dict[str, float] = Field(
        title="Values", description="The unit of each further column.", examples=[{"likes": 1, "price": 0.01}]
    )


class RolesOut(Strict):
    """The columns of the table, as it was released."""

    keys: list[str] = Field(title="Keys", description="The columns of the group key.", examples=[["url", "country"]])
    count: str = Field(title="Count", description="The column of the noisy counts.", examples=["count"])
    values: list[str] = Field(title="Values", description="The further columns, in the order of Σ.", examples=[[]])


class ReleasedColumnOut(Strict):
    """A column of the released rows."""

    name: str = Field(title="Name", description="Its name.", examples=["url"])
    role: ReleasedRole = Field(title="Role", description="What it holds.", examples=["key"])
    kind: str = Field(title="Kind", description="How its values are written for the digest.", examples=["text"])


class ContentOut(Strict):
    """A digest of the released rows: the same in every format, whatever their order."""

    algorithm: Literal["gsh table 1"] = Field(
        title="Algorithm", description="How the digest is computed (docs/certificate.md).", examples=["gsh table 1"]
    )
    sha256: Digest = Field(title="SHA-256", description="The digest.", examples=[CONTENT_EXAMPLE["sha256"]])
    rows: int = Field(ge=0, title="Rows", description="The number of rows.", examples=[1])
    columns: list[ReleasedColumnOut] = Field(
        title="Columns",
        description="The columns that the digest covers: keys, count, values. Intervals follow from them.",
        examples=[CONTENT_EXAMPLE["columns"]],
    )
    intervals: float | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        title="Intervals",
        description="The level of the intervals that were added to the rows; absent without them.",
        examples=[0.95],
    )


class _Table(Strict):
    """What a certificate says about one table."""

    roles: RolesOut | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        title="Roles",
        description="Which columns are keys, count and values; absent if that is not known, as for groups in JSON.",
        examples=[ROLES_EXAMPLE],
    )
    content: ContentOut | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        title="Content",
        description="The digest of the released rows; absent before they are drawn, or if another engine drew them and "
        "did not give it.",
        examples=[CONTENT_EXAMPLE],
    )
    bounds: BoundsOut = Field(
        title="Bounds",
        description="The most that one unit can change in the table, and what enforced it.",
        examples=[CERTIFICATE_EXAMPLE["bounds"]],
    )
    ratios: OrNull[Ratios] = Field(
        title="Ratios",
        description="The ratios that follow from the table: the names of two columns for each; count is the number of "
        "units.",
        examples=[{"likes_per_view": ["likes", "views"]}],
    )
    mechanism: AnyMechanismIn = Field(
        title="Mechanism", description="The mechanism that was run.", examples=[CASE_STUDY]
    )
    tie_rule: str = Field(
        title="Tie rule", description="What happens to a noisy count that equals τ*.", examples=[TIE_RULE]
    )
    grid: GridOut | None = Field(
        title="Grid",
        description="The steps to which the released numbers are rounded; null if another engine draws the noise.",
        examples=[CERTIFICATE_EXAMPLE["grid"]],
    )
    rounded: OrNull[RoundedOut] = Field(
        title="Rounded",
        description="What the released numbers were then rounded to; absent if they were not. Intervals widen by it.",
        examples=[{"count": 1, "values": {}}],
    )
    mu_0: float = Field(title="μ₀", description="What further columns add to μ, per group; rounded up.", examples=[0.0])
    capped: list[CappedIn] | None = Field(default=None, exclude_if=lambda value: value is None, **CAPPED)


class _Release(Strict):
    """What a certificate says about a release as a whole."""

    model_config = ConfigDict(serialize_by_alias=True)

    release_id: str = Field(
        title="Release",
        description="The random identifier of this release.",
        examples=["5f0c66f2-1d5c-4d5e-9a6b-3b1f0c8f7a10"],
    )
    idempotency_key: str | None = Field(
        title="Idempotency key",
        description="The client's own name for this release; null if it was not charged to a budget.",
        examples=["web-2026-46"],
    )
    released_at: datetime = Field(title="Time", description="When it was made.", examples=["2026-11-16T12:00:00Z"])
    service_version: str = Field(
        title="Version", description="The version of the service that made it.", examples=[VERSION]
    )
    python: str = Field(title="Python", description="The version of Python that computed it.", examples=["3.11.7"])
    flint: str = Field(
        title="FLINT", description="The version of the ball arithmetic that proves the numbers.", examples=["3.6.0"]
    )
    privacy_unit: str = Field(
        title="Privacy unit",
        description="Whose records are protected together, such as a user or a household.",
        examples=["user"],
    )
    period: Period | None = Field(
        title="Period",
        description="If it is set, the unit is one unit in one such period, and the budget is for one period.",
        examples=["week"],
    )
    adjacency: Literal["add or remove all records of one unit"] = Field(
        title="Adjacency",
        description="How two neighbouring tables differ: the guarantee is about such tables.",
        examples=[ADJACENCY],
    )
    noise: str = Field(title="Noise", description="How the noise is made.", examples=[NOISE])
    accounting: Literal["exact"] = Field(title="Accounting", description="How δ was computed.", examples=["exact"])
    mu: float = Field(
        title="μ",
        description="μ of the equivalent Gaussian mechanism; rounded up.",
        examples=[CERTIFICATE_EXAMPLE["mu"]],
    )
    mu_squared: float = Field(
        title="μ²",
        description="Noise cost: what this release adds to the sum of μ² of a budget; rounded up.",
        examples=[CERTIFICATE_EXAMPLE["mu_squared"]],
    )
    hazard: float = Field(
        title="−C_u ln p",
        description="Threshold cost: what this release adds to the sum of −C_u ln p of a budget; rounded up.",
        examples=[CERTIFICATE_EXAMPLE["hazard"]],
    )
    delta_infinite: float = Field(
        title="δ_infinite",
        description="The probability that a group of one user alone is released; rounded up.",
        examples=[CERTIFICATE_EXAMPLE["delta_infinite"]],
    )
    epsilon: float | None = Field(
        title="ε",
        description="The ε of the request, or the smallest ε at δ; null if the request has neither.",
        examples=[0.349],
    )
    delta: float | None = Field(
        title="δ",
        description="The δ of the request, or the smallest δ at ε; null if the request has neither.",
        examples=[CERTIFICATE_EXAMPLE["delta"]],
    )
    curve: str = Field(title="δ(ε)", description="The whole privacy curve as a formula.", examples=[CURVE])
    survey: SurveyOut | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        title="Survey",
        description="The survey from which the bounds were chosen, which δ covers; absent without one.",
        examples=[
            {"histograms": [{"sigma": 42.25}], "mu_squared": 0.054845, "hazard": 7.94e-07, "chosen": ["c_u = 64"]}
        ],
    )
    budget: PaidBy | None = Field(
        title="Budget",
        description="The budget that paid for it; null: nothing keeps count of this release.",
        examples=[CERTIFICATE_EXAMPLE["budget"]],
    )
    unprotected: Choices | None = Field(**UNPROTECTED)
    about: OrNull[About] = Field(**ABOUT)
    trust_model: str = Field(
        title="Trust model", description="Who sees the true data, and who does not.", examples=[TRUST_MODEL]
    )
    release_type: str = Field(
        title="Release type", description="Whether it is one release or one of many.", examples=[RELEASE_TYPE]
    )
    record: Record | None = Field(
        title="Record",
        description="What the ledger says about it. Null inside an answer, which cannot contain its own hash.",
        examples=[None],
    )


class Certificate(_Table, _Release):
    """The privacy of one release. It depends on the mechanism and on what the caller declares, never on the data.

    Only ``content`` is about the rows that were released.
    """

    # The attribute cannot be called schema: every pydantic model has a method of that name.
    schema_: Literal["urn:gsh:certificate:2"] = Field(
        alias="schema", title="Schema", description="The name and the version of this format.", examples=[SCHEMA]
    )


class CertifiedTable(_Table):
    """One table of a release of several, and what it costs."""

    name: str = Field(title="Name", description="The name of the table.", examples=["by_url"])
    mu_squared: float = Field(
        title="μ²", description="Noise cost of this table; rounded up.", examples=[CERTIFICATE_EXAMPLE["mu_squared"]]
    )
    hazard: float = Field(
        title="−C_u ln p",
        description="Threshold cost of this table, 0 for public groups; rounded up.",
        examples=[CERTIFICATE_EXAMPLE["hazard"]],
    )


class TablesCertificate(_Release):
    """The privacy of one release of several tables, which were fixed together before any noise was drawn."""

    schema_: Literal["urn:gsh:certificate:3"] = Field(
        alias="schema",
        title="Schema",
        description="The name and the version of this format.",
        examples=[SCHEMA_OF_TABLES],
    )
    tables: Annotated[list[CertifiedTable], Field(min_length=1, max_length=MOST_TABLES)] = Field(
        title="Tables",
        description="The tables in the order of the request, each with its bounds, its mechanism and its costs.",
        examples=[TABLES_CERTIFICATE_EXAMPLE["tables"]],
    )


def _version(value: Any) -> str:
    named = value.get("schema") if isinstance(value, dict) else getattr(value, "schema_", None)
    return "<tables>" if named == SCHEMA_OF_TABLES else "<table>"


class AnyCertificate(
    RootModel[
        Annotated[
            Annotated[Certificate, Tag("<table>")] | Annotated[TablesCertificate, Tag("<tables>")],
            Discriminator(_version),
        ]
    ]
):
    """The certificate of a release: version 2 for one table, and version 3 for named tables."""


def json_schema() -> dict[str, Any]:
    """The schema by which any program can check a certificate."""
    described = AnyCertificate.model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:gsh:certificate", **described}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n")
