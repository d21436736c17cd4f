"""Releases as resources: what the ledger says about them, releases made elsewhere, and the check of a certificate."""

from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypeAliasType

from app.budgets.schemas.preview import PLANNED_EXAMPLES as CHARGE_EXAMPLES
from app.releases.schemas.certificate import CERTIFICATE_EXAMPLE, TABLES_CERTIFICATE_EXAMPLE, AnyCertificate, ContentOut
from app.releases.schemas.stated import CHOSEN, Choices, ProvenanceIn, Stated
from app.schemas.case_study import CASE_STUDY
from app.schemas.costs import COST_EXAMPLE, CostOut
from app.schemas.ledger_record import ANCESTOR_ENTRIES, PERIOD_PAYS, ByOut, EntryNameOut, PeriodName, ReleaseState
from app.schemas.mechanism import TABLES, AnyMechanismIn, MechanismOrTables, Tables
from app.schemas.scalars import BudgetName, Digest
from app.schemas.strict import OrAbsent, Strict, without_default
from gsh.accounting.mechanism import MOST_TABLES
from gsh.wire import mechanism_from_json

__all__ = [
    "CHARGE_EXAMPLES",
    "COMMIT_EXAMPLES",
    "OPEN_EXAMPLES",
    "SURVEYED_EXAMPLES",
    "VERIFY_EXAMPLES",
    "ChargeIn",
    "ChargeOut",
    "CommitIn",
    "MadeElsewhereIn",
    "OpenIn",
    "OpenOut",
    "ReleaseOut",
    "ReleasesOut",
    "SurveyedIn",
    "VerifiedOut",
]

_DIGEST = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
_MOST_ROWS = 2**53
_ANSWER = {"media_type": "application/json", "size": 812, "sha256": _DIGEST, "erased_at": None}
Contents = TypeAliasType(
    "Contents",
    Annotated[
        dict[str, ContentOut],
        Field(max_length=MOST_TABLES, description="The digest of the rows of each table by its name."),
    ],
)


class AnswerOut(Strict):
    """The stored answer of a release."""

    media_type: str = Field(title="Media type", description="Its media type.", examples=["application/json"])
    size: int = Field(title="Size", description="Its number of bytes.", examples=[812])
    sha256: str = Field(title="SHA-256", description="The SHA-256 of its bytes.", examples=[_DIGEST])
    erased_at: str | None = Field(
        title="Erased at",
        description="When it was erased, because answers are kept for some days only; null if it is there.",
        examples=[None],
    )


class CommittedOut(Strict):
    """What another engine published."""

    digest: str = Field(title="Digest", description="The SHA-256 of the published output.", examples=[_DIGEST])
    rows: int | None = Field(
        title="Rows", description="The number of published rows; null if not given.", examples=[12]
    )
    at: str = Field(title="Time", description="When it was committed.", examples=["2026-11-16T12:05:00Z"])


class ReleaseOut(Strict):
    """A release that a budget paid for."""

    key: str = Field(title="Key", description="The idempotency key: the name of the release.", examples=["web-2026-46"])
    state: ReleaseState = Field(
        title="State",
        description="made: by this service, with an answer. open: another engine makes it. committed: another engine "
        "has made it. charged: only the charge is known.",
        examples=["made"],
    )
    budget: str = Field(title="Budget", description="The budget that paid for it.", examples=["web"])
    entry: int = Field(title="Entry", description="The number of its entry in the budget's history.", examples=[2])
    head: str = Field(title="Head", description="The hash of that entry.", examples=[_DIGEST])
    ancestors: list[EntryNameOut] = Field(**ANCESTOR_ENTRIES)
    at: str = Field(title="Time", description="When it was charged.", examples=["2026-11-16T12:00:00Z"])
    release_id: str | None = Field(
        title="Release",
        description="The identifier in its certificate; null for releases of version 0.1.",
        examples=["5f0c66f2-1d5c-4d5e-9a6b-3b1f0c8f7a10"],
    )
    description: str = Field(
        title="Description", description="The client's description.", examples=["views per URL and country, week 46"]
    )
    labels: list[str] = Field(title="Labels", description="The client's labels.", examples=[["weekly"]])
    by: ByOut | None = Field(
        title="By",
        description="The access key that charged it; null without access keys.",
        examples=[{"id": "4f1c2a9b", "note": "weekly job"}],
    )
    mu_squared: float = Field(title="μ²", description="Its noise cost.", examples=[0.010448747960489898])
    hazard: float = Field(title="−C_u ln p", description="Its threshold cost.", examples=[9.99e-06])
    answer: AnswerOut | None = Field(
        title="Answer",
        description="The stored answer; null if this service did not make the release, or stopped before the answer "
        "was stored: then send the same request again.",
        examples=[_ANSWER],
    )
    committed: CommittedOut | None = Field(
        title="Committed", description="What another engine published; null if nothing was committed.", examples=[None]
    )


class ReleasesOut(Strict):
    """A page of releases, the newest first."""

    releases: list[ReleaseOut] = Field(title="Releases", description="The newest first.", examples=[[]])
    before: str | None = Field(
        title="Before",
        description="The value of the parameter before for the next page; null on the last page.",
        examples=[None],
    )


class MadeElsewhereIn(Stated, MechanismOrTables):
    """A release that another engine makes: its mechanism, or several tables."""

    mechanism: AnyMechanismIn | None = Field(
        default=None,
        title="Mechanism",
        description="The mechanism of the release. Without tau and tau_star: plain Gaussian noise on public groups.",
        examples=[CASE_STUDY],
    )
    tables: Tables | None = Field(default=None, **TABLES)
    period: PeriodName | None = Field(**PERIOD_PAYS)


class OpenIn(MadeElsewhereIn):
    """A release that another engine will make: its mechanism, and the budget that pays."""

    budget: BudgetName = Field(title="Budget", description="The budget to charge.", examples=["web"])


class OpenOut(ReleaseOut):
    """A release that another engine makes, with the seed of its noise."""

    seed: OrAbsent[str] = Field(
        title="Seed",
        description="32 secret bytes in base64, from which the engine draws its noise; the same for every retry, "
        "absent after the commit. Who has it can remove the noise: keep it as secret as the raw data.",
        examples=["q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA="],
    )
    provenance: ProvenanceIn = Field(
        title="Provenance", description="As given when the release was opened.", examples=[{}]
    )
    certificate: AnyCertificate = Field(
        title="Certificate", description="The certificate of the release.", examples=[CERTIFICATE_EXAMPLE]
    )


class ChargeIn(MadeElsewhereIn):
    """A charge for a release that is made elsewhere."""


class ChargeOut(Strict):
    """A recorded charge."""

    budget: str = Field(title="Budget", description="The name of the charged budget.", examples=["web"])
    number: int = Field(title="Number", description="The number of its entry in the history.", examples=[2])
    ancestors: list[EntryNameOut] = Field(**ANCESTOR_ENTRIES)
    at: str = Field(title="Time", description="When it was charged.", examples=["2026-11-16T12:00:00Z"])
    mu_squared: float = Field(
        title="μ²", description="Noise cost: what the release added to the sum of μ².", examples=[0.010448747960489898]
    )
    hazard: float = Field(
        title="−C_u ln p",
        description="Threshold cost: what the release added to the sum of −C_u ln p.",
        examples=[9.99e-06],
    )
    spent: CostOut = Field(
        title="Spent",
        description="What is spent, this charge included.",
        examples=[COST_EXAMPLE],
    )


class CommitIn(Strict):
    """What was published."""

    digest: Digest = Field(
        title="Digest",
        description="The SHA-256 of the published output in hexadecimal digits.",
        examples=[_DIGEST],
    )
    rows: int | None = Field(
        default=None,
        ge=0,
        le=_MOST_ROWS,
        title="Rows",
        description="The number of published rows.",
        examples=[12],
    )
    contents: Contents | None = Field(
        default=None,
        title="Contents",
        description="The digest of the rows of each table by its name, for the certificate. The only table has the "
        "empty name.",
        examples=[None],
    )


class SurveyedIn(MechanismOrTables):
    """What was chosen from the survey of an open release: its digest, the tables with their bounds, and why."""

    digest: Digest = Field(
        title="Digest", description="The SHA-256 of the noisy histograms in hexadecimal digits.", examples=[_DIGEST]
    )
    chosen: Choices = Field(default=[], **CHOSEN)
    mechanism: AnyMechanismIn | None = Field(
        default=None,
        title="Mechanism",
        description="The mechanism with the chosen bounds. It costs what was fixed before the survey.",
        examples=[CASE_STUDY],
    )
    tables: Tables | None = Field(default=None, **TABLES)
    provenance: ProvenanceIn = Field(
        default=ProvenanceIn(),
        json_schema_extra=without_default,
        title="Provenance",
        description="The plan with the chosen bounds. It replaces that of the opening.",
        examples=[{"enforced_by": "caller"}],
    )


class VerifiedOut(Strict):
    """Whether this ledger made a certificate, and for which bytes."""

    made_here: bool = Field(
        title="Made here",
        description="Whether this ledger has a release with this certificate, unchanged.",
        examples=[True],
    )
    key: OrAbsent[str] = Field(title="Key", description="Its idempotency key.", examples=["web-2026-46"])
    budget: OrAbsent[str] = Field(title="Budget", description="The budget that paid for it.", examples=["web"])
    entry: OrAbsent[int] = Field(title="Entry", description="The number of its entry.", examples=[2])
    answer_sha256: OrAbsent[str] = Field(
        title="SHA-256", description="The SHA-256 of the bytes that were released.", examples=[_DIGEST]
    )
    committed_digest: OrAbsent[str] = Field(
        title="Committed digest", description="The SHA-256 of what another engine has published.", examples=[_DIGEST]
    )
    differences: list[str] = Field(
        title="Differences",
        description="The fields of the certificate that differ from the recorded ones.",
        examples=[[]],
    )


_MECHANISM = CERTIFICATE_EXAMPLE["mechanism"]
_RECORD = {
    "state": "made",
    "entry": 2,
    "head": _DIGEST,
    "at": "2026-11-16T12:00:00Z",
    "answer_sha256": _DIGEST,
    "media_type": "application/json",
    "size": 812,
    "committed_digest": None,
}
_COST = mechanism_from_json(_MECHANISM)
OPEN_EXAMPLES: dict[str, Any] = {
    "survey": {
        "summary": "A histogram that Spark will make, with bounds that a survey chooses",
        "value": {
            "mechanism": _MECHANISM,
            "budget": "web",
            "epsilon": 0.349,
            "survey": {"sigma": 1000},
            "after_survey": {"mu_squared": _COST.mu_squared, "hazard": _COST.hazard},
        },
    },
    "histogram": {
        "summary": "The same with bounds that are known before",
        "value": {
            "mechanism": _MECHANISM,
            "budget": "web",
            "epsilon": 0.349,
            "description": "views per URL and country, week 46",
            "labels": ["weekly"],
            "provenance": {"enforced_by": "gsh.spark", "plan_digest": _DIGEST},
        },
    },
    "by_delta": {
        "summary": "A certificate of ε at δ",
        "value": {"mechanism": _MECHANISM, "budget": "web", "delta": 1e-5, "labels": ["weekly", "views"]},
    },
    "gaussian": {
        "summary": "Plain Gaussian noise on public groups",
        "value": {"mechanism": {"c_u": 1, "sigma": 50}, "budget": "web", "unprotected": ["sigma"]},
    },
    "tables": {
        "summary": "Several tables in one release",
        "value": {
            "tables": [{"name": "by_url"} | _MECHANISM, {"name": "by_country", "c_u": 1, "sigma": 500}],
            "budget": "web",
            "epsilon": 0.349,
        },
    },
    "bare": {"summary": "Only what is needed", "value": {"mechanism": _MECHANISM, "budget": "web"}},
}
COMMIT_EXAMPLES: dict[str, Any] = {
    "rows": {"summary": "With the number of rows", "value": {"digest": _DIGEST, "rows": 12}},
    "bare": {"summary": "The digest alone", "value": {"digest": _DIGEST}},
}
SURVEYED_EXAMPLES: dict[str, Any] = {
    "c_u": {
        "summary": "C_u was chosen",
        "value": {"digest": _DIGEST, "chosen": ["C_u = 64"], "mechanism": _MECHANISM},
    },
    "bare": {"summary": "Without a reason", "value": {"digest": _DIGEST, "mechanism": _MECHANISM}},
}
VERIFY_EXAMPLES: dict[str, Any] = {
    "embedded": {"summary": "From inside an answer", "value": CERTIFICATE_EXAMPLE},
    "recorded": {"summary": "From GET /releases/{key}/certificate", "value": CERTIFICATE_EXAMPLE | {"record": _RECORD}},
    "tables": {"summary": "Of several tables in one release", "value": TABLES_CERTIFICATE_EXAMPLE},
    "unbudgeted": {
        "summary": "Of a release that no budget paid for: no ledger knows it",
        "value": CERTIFICATE_EXAMPLE | {"budget": None, "idempotency_key": None},
    },
}
