"""Answers about the history of a budget: its entries, and whether they are as they were recorded."""

from typing import Annotated, Any, Literal

from pydantic import Field

from app.schemas.aggregates import CAPPED, CappedIn
from app.schemas.approvals import ApprovalKind, ApprovalRule, ChangeOut, ProportionOut
from app.schemas.case_study import CASE_STUDY, WHOLE
from app.schemas.ledger_record import ANCESTOR_ENTRIES, ByOut, EntryNameOut, ReleaseState, Renewal
from app.schemas.strict import OrAbsent, Strict
from app.schemas.survey import SurveyNoiseIn

__all__ = ["EntryOut", "FaultOut", "HistoryOut", "VerificationOut"]

_PROPORTION = {"mu_squared": 0.010448747960489898, "hazard": 9.99e-06}
_LIMIT = {"epsilon": 1.0, "delta": 1e-4, "description": "page views, all users"}
_RELEASE = CASE_STUDY | {"mu_0": 0.0}


_BY: Any = {
    "title": "By",
    "description": "The access key that made the entry; absent without access keys, and in entries of version 0.1.",
    "examples": [{"id": "4f1c2a9b", "note": "weekly job"}],
}


_APPROVAL_ID: Any = {
    "title": "Request",
    "description": "The request that another access key has approved: GET /approvals/{id}.",
    "examples": ["9c2f0a7be1d44c50"],
}
_ANSWER_SEAL: Any = {
    "title": "Answer seal",
    "description": "A keyed hash of the SHA-256 and the size of the answer, by which a verification checks both.",
    "examples": ["9f2c…"],
}


class LimitDetails(Strict):
    """The limit that an entry records."""

    epsilon: float = Field(title="ε", description="The ε of the budget from here on.", examples=[1.0])
    delta: float = Field(title="δ", description="The δ of the budget from here on.", examples=[1e-4])
    description: str = Field(title="Description", description="A text for people.", examples=["page views, all users"])
    proportion: OrAbsent[ProportionOut] = Field(
        title="Proportion",
        description="How noise and thresholds share the budget; absent if that is not decided yet, and in entries of "
        "version 0.1.",
        examples=[_PROPORTION],
    )
    privacy_unit: OrAbsent[str] = Field(
        title="Privacy unit", description="Whose records are protected together.", examples=["user"]
    )
    period: str | None = Field(
        default=None, title="Period", description="The period of the privacy unit, if it has one.", examples=[None]
    )
    parent: OrAbsent[str] = Field(
        title="Parent",
        description="The budget that is charged for every release of this one too; absent without one.",
        examples=["company"],
    )
    renews: OrAbsent[Renewal] = Field(title="Renews", description="How often it is renewed.", examples=["week"])
    closes_after: OrAbsent[int] = Field(
        title="Closes after", description="How many days after its end a period can be charged.", examples=[14]
    )
    most_sigma: OrAbsent[float] = Field(
        title="Largest σ", description="The largest σ that is calibrated to what remains.", examples=[5000.0]
    )
    period_of: OrAbsent[str] = Field(
        title="Period of", description="The renewed budget that this one is a period of.", examples=["web"]
    )
    renewed_entry: OrAbsent[int] = Field(
        title="Entry of the renewed budget",
        description="The last entry of the renewed budget when the period was made: the period has the limit and the "
        "settings of that moment.",
        examples=[1],
    )
    changes: OrAbsent[list[ChangeOut]] = Field(
        title="Changes",
        description="The fields that were changed; absent in the first entry, and in entries before version 0.3.",
        examples=[[{"field": "epsilon", "before": 0.5, "after": 1.0}]],
    )
    approval: OrAbsent[ApprovalRule] = Field(
        title="Approval", description="What another access key must approve; absent: nothing.", examples=["limits"]
    )
    reason: OrAbsent[str] = Field(
        title="Reason", description="Why the budget was changed.", examples=["the yearly review allows it"]
    )
    approval_id: OrAbsent[str] = Field(**_APPROVAL_ID)
    by: OrAbsent[ByOut] = Field(**_BY)


_SURVEY: dict[str, Any] = {
    "title": "Survey",
    "description": "The noise of the histograms from which the bounds were chosen; absent without a survey.",
    "examples": [[{"sigma": 42.25}]],
}


class ChargedGaussian(Strict):
    """Gaussian noise without thresholds, as it was charged."""

    c_u: int = Field(title="C_u", description="The most groups that one user can touch.", examples=[WHOLE["c_u"]])
    sigma: float = Field(title="σ", description="Standard deviation of the noise on counts.", examples=[WHOLE["sigma"]])
    mu_0: float = Field(
        title="μ₀", description="What the further columns add to μ, per group; rounded up.", examples=[0.0]
    )
    capped: OrAbsent[list[CappedIn]] = Field(**CAPPED)
    survey: OrAbsent[list[SurveyNoiseIn]] = Field(**_SURVEY)


class ChargedMechanism(ChargedGaussian):
    """A Gaussian sparse histogram, as it was charged: all that its privacy depends on."""

    tau: int = Field(
        title="τ", description="Groups with fewer users were dropped before the noise.", examples=[WHOLE["tau"]]
    )
    tau_star: float = Field(
        title="τ*", description="Groups with a noisy count below this were dropped.", examples=[WHOLE["tau_star"]]
    )


class ChargedTables(Strict):
    """Several tables in one release, as they were charged together."""

    tables: list[ChargedMechanism | ChargedGaussian] = Field(
        title="Tables", description="All that the privacy of each table depends on.", examples=[[_RELEASE]]
    )
    survey: OrAbsent[list[SurveyNoiseIn]] = Field(**_SURVEY)


class ThroughOut(EntryNameOut):
    """The charge of a descendant, for which this budget was charged too."""

    hash: str = Field(title="Hash", description="The hash of that entry.", examples=["9f2c…"])
    idempotency_key: str = Field(title="Idempotency key", description="The name of the release.", examples=["web-46"])


class ChargeDetails(Strict):
    """The release that an entry charges, its cost, and its stored answer."""

    release: ChargedMechanism | ChargedGaussian | ChargedTables = Field(
        title="Release", description="The parameters that the cost depends on.", examples=[_RELEASE]
    )
    mu_squared: float = Field(
        title="μ²", description="Noise cost: what the release added to the sum of μ².", examples=[0.010448747960489898]
    )
    hazard: float = Field(
        title="−C_u ln p",
        description="Threshold cost: what the release added to the sum of −C_u ln p.",
        examples=[9.99e-06],
    )
    idempotency_key: OrAbsent[str] = Field(
        title="Idempotency key",
        description="The idempotency key of the request, which names the release: GET /releases/{key}.",
        examples=["weekly-2026-46"],
    )
    approval_id: OrAbsent[str] = Field(**_APPROVAL_ID)
    ancestors: OrAbsent[list[EntryNameOut]] = Field(**ANCESTOR_ENTRIES)
    through: OrAbsent[ThroughOut] = Field(
        title="Through",
        description="The entry of the descendant that the release was charged to; absent if it was this budget. The "
        "release, its idempotency key and its answer are there.",
        examples=[{"budget": "web", "number": 2, "hash": "9f2c…", "idempotency_key": "web-2026-46"}],
    )
    release_id: OrAbsent[str] = Field(
        title="Release",
        description="The identifier of the release in its certificate.",
        examples=["5f0c66f2-1d5c-4d5e-9a6b-3b1f0c8f7a10"],
    )
    state: OrAbsent[ReleaseState] = Field(
        title="State", description="The state of the release when it was charged.", examples=["made"]
    )
    description: OrAbsent[str] = Field(title="Description", description="The client's description.", examples=[""])
    labels: OrAbsent[list[str]] = Field(title="Labels", description="The client's labels.", examples=[["weekly"]])
    certificate_sha256: OrAbsent[str] = Field(
        title="Certificate", description="The SHA-256 of the stored certificate.", examples=["9f2c…"]
    )
    provenance_sha256: OrAbsent[str] = Field(
        title="Provenance", description="The SHA-256 of the stored provenance.", examples=["9f2c…"]
    )
    layout_sha256: OrAbsent[str] = Field(
        title="Layout", description="The SHA-256 of the roles of a table's columns.", examples=["9f2c…"]
    )
    by: OrAbsent[ByOut] = Field(**_BY)
    answer: OrAbsent[str] = Field(
        title="Answer",
        description="The SHA-256 of the stored answer, if it has no noise, or if version 0.2 or 0.1 made it. "
        "GET /releases/{key} says it for every release.",
        examples=["9f2c…"],
    )
    answer_seal: OrAbsent[str] = Field(**_ANSWER_SEAL)
    media_type: OrAbsent[str] = Field(
        title="Media type",
        description="The media type of the answer; absent in entries of version 0.1.",
        examples=["application/json"],
    )
    size: OrAbsent[int] = Field(
        title="Size",
        description="The number of bytes of the answer, if its SHA-256 is here; absent in entries of version 0.1.",
        examples=[731],
    )


class RedrawDetails(Strict):
    """The second draw of an answer that was charged, and whose first draw nobody could read."""

    idempotency_key: str = Field(
        title="Idempotency key", description="The name of the release.", examples=["web-2026-46"]
    )
    release_id: str = Field(
        title="Release",
        description="The identifier of the release in the certificate of this draw.",
        examples=["5f0c66f2-1d5c-4d5e-9a6b-3b1f0c8f7a10"],
    )
    certificate_sha256: str = Field(
        title="Certificate", description="The SHA-256 of the certificate of this draw.", examples=["9f2c…"]
    )
    layout_sha256: OrAbsent[str] = Field(
        title="Layout", description="The SHA-256 of the roles of a table's columns.", examples=["9f2c…"]
    )
    answer_seal: str = Field(**_ANSWER_SEAL)
    media_type: str = Field(
        title="Media type", description="The media type of the answer.", examples=["application/json"]
    )
    by: OrAbsent[ByOut] = Field(**_BY)


class CommitDetails(Strict):
    """What another engine published under an open release."""

    idempotency_key: str = Field(
        title="Idempotency key", description="The name of the release.", examples=["web-2026-46"]
    )
    sha256: str = Field(title="SHA-256", description="The SHA-256 of the published output.", examples=["9f2c…"])
    rows: int | None = Field(title="Rows", description="The number of published rows, if it was given.", examples=[12])
    contents_sha256: OrAbsent[str] = Field(
        title="SHA-256 of the contents",
        description="The SHA-256 of the digests of the rows, as the ledger keeps them; absent if none were given.",
        examples=["9f2c…"],
    )
    by: OrAbsent[ByOut] = Field(**_BY)


class SurveyDetails(Strict):
    """What an open release chose from its survey."""

    idempotency_key: str = Field(
        title="Idempotency key", description="The name of the release.", examples=["web-2026-46"]
    )
    digest: str = Field(title="Digest", description="The SHA-256 of the noisy histograms.", examples=["9f2c…"])
    certificate_sha256: str = Field(
        title="SHA-256 of the certificate", description="That with the chosen bounds.", examples=["9f2c…"]
    )
    provenance_sha256: str = Field(
        title="SHA-256 of the provenance", description="That with the chosen plan.", examples=["9f2c…"]
    )
    by: OrAbsent[ByOut] = Field(**_BY)


class RequestDetails(Strict):
    """What somebody asked for, and another access key must approve: a change of the budget, or a release."""

    approval_id: str = Field(**_APPROVAL_ID)
    kind: ApprovalKind = Field(title="Kind", description="A change of the budget, or a release.", examples=["change"])
    changes: OrAbsent[list[ChangeOut]] = Field(
        title="Changes",
        description="Of a change: each field before and after.",
        examples=[[{"field": "epsilon", "before": 0.5, "after": 1.0}]],
    )
    reason: OrAbsent[str] = Field(title="Reason", description="Of a change: why.", examples=["the yearly review"])
    idempotency_key: OrAbsent[str] = Field(
        title="Idempotency key", description="Of a release: its name.", examples=["web-2026-46"]
    )
    release: OrAbsent[ChargedMechanism | ChargedGaussian | ChargedTables] = Field(
        title="Release", description="Of a release: the parameters that its cost depends on.", examples=[_RELEASE]
    )
    mu_squared: OrAbsent[float] = Field(title="μ²", description="Of a release: its noise cost.", examples=[0.0104])
    hazard: OrAbsent[float] = Field(
        title="−C_u ln p", description="Of a release: its threshold cost.", examples=[9.99e-06]
    )
    state: OrAbsent[ReleaseState] = Field(
        title="State", description="Of a release: the state that it will have.", examples=["made"]
    )
    description: OrAbsent[str] = Field(title="Description", description="Of a release: a text.", examples=[""])
    labels: OrAbsent[list[str]] = Field(
        title="Labels", description="Of a release: the client's labels.", examples=[["weekly"]]
    )
    by: ByOut = Field(**_BY)


class DecisionDetails(Strict):
    """That another access key approved or refused a request."""

    approval_id: str = Field(**_APPROVAL_ID)
    reason: str = Field(title="Reason", description="Why.", examples=["as planned for this year"])
    by: ByOut = Field(**_BY)


class _Entry(Strict):
    number: int = Field(title="Number", description="The number of the entry, from 1.", examples=[2])
    at: str = Field(title="Time", description="When it was recorded.", examples=["2026-11-16T12:00:00Z"])
    hash: str = Field(title="Hash", description="The hash of this entry and of the hash before it.", examples=["9f2c…"])


class CreatedEntry(_Entry):
    """The budget was made: always the first entry."""

    kind: Literal["created"] = Field(title="Kind", description="The budget was made.", examples=["created"])
    details: LimitDetails = Field(title="Details", description="The first limit.", examples=[_LIMIT])


class ChangedEntry(_Entry):
    """The limit, the description or the proportion was changed."""

    kind: Literal["changed"] = Field(title="Kind", description="The budget was changed.", examples=["changed"])
    details: LimitDetails = Field(
        title="Details", description="The new limit.", examples=[_LIMIT | {"proportion": _PROPORTION}]
    )


class ChargeEntry(_Entry):
    """A release was charged."""

    kind: Literal["charge"] = Field(title="Kind", description="A release was charged.", examples=["charge"])
    details: ChargeDetails = Field(
        title="Details",
        description="The release, its cost, its idempotency key and the seal of its answer.",
        examples=[{"release": _RELEASE, **_PROPORTION, "answer_seal": "9f2c…"}],
    )


class CommittedEntry(_Entry):
    """Another engine committed what it published."""

    kind: Literal["committed"] = Field(title="Kind", description="An output was committed.", examples=["committed"])
    details: CommitDetails = Field(
        title="Details",
        description="The release, and the digest of its output.",
        examples=[{"idempotency_key": "web-2026-46", "sha256": "9f2c…", "rows": 12}],
    )


class SurveyedEntry(_Entry):
    """The bounds of an open release were chosen from its survey."""

    kind: Literal["surveyed"] = Field(title="Kind", description="Bounds were chosen.", examples=["surveyed"])
    details: SurveyDetails = Field(
        title="Details",
        description="The release, the digest of its survey, and its certificate with the chosen bounds.",
        examples=[
            {
                "idempotency_key": "web-2026-46",
                "digest": "9f2c…",
                "certificate_sha256": "9f2c…",
                "provenance_sha256": "9f2c…",
            }
        ],
    )


class RedrawnEntry(_Entry):
    """A release that was charged before is drawn again, because the service stopped before its answer was stored."""

    kind: Literal["redrawn"] = Field(
        title="Kind", description="An answer that nobody could read was drawn again.", examples=["redrawn"]
    )
    details: RedrawDetails = Field(
        title="Details",
        description="The release, its new certificate and the seal of its answer. It costs nothing.",
        examples=[
            {
                "idempotency_key": "web-2026-46",
                "release_id": "5f0c66f2-1d5c-4d5e-9a6b-3b1f0c8f7a10",
                "certificate_sha256": "9f2c…",
                "answer_seal": "9f2c…",
                "media_type": "application/json",
            }
        ],
    )


_DECISION = {"approval_id": "9c2f0a7be1d44c50", "reason": "as planned", "by": {"id": "7d0e55aa", "note": "officer"}}


class RequestedEntry(_Entry):
    """Somebody asked for what another access key must approve."""

    kind: Literal["requested"] = Field(title="Kind", description="An approval was asked for.", examples=["requested"])
    details: RequestDetails = Field(
        title="Details",
        description="What it would do.",
        examples=[
            {
                "approval_id": "9c2f0a7be1d44c50",
                "kind": "change",
                "changes": [{"field": "epsilon", "before": 0.5, "after": 1.0}],
                "reason": "the yearly review",
                "by": {"id": "4f1c2a9b", "note": "operations"},
            }
        ],
    )


class ApprovedEntry(_Entry):
    """Another access key approved a request."""

    kind: Literal["approved"] = Field(title="Kind", description="A request was approved.", examples=["approved"])
    details: DecisionDetails = Field(title="Details", description="Which, by whom, and why.", examples=[_DECISION])


class RefusedEntry(_Entry):
    """Another access key refused a request."""

    kind: Literal["refused"] = Field(title="Kind", description="A request was refused.", examples=["refused"])
    details: DecisionDetails = Field(title="Details", description="Which, by whom, and why.", examples=[_DECISION])


EntryOut = Annotated[
    CreatedEntry
    | ChangedEntry
    | ChargeEntry
    | RedrawnEntry
    | SurveyedEntry
    | CommittedEntry
    | RequestedEntry
    | ApprovedEntry
    | RefusedEntry,
    Field(discriminator="kind"),
]


class HistoryOut(Strict):
    """A page of a history, the latest entry first."""

    entries: list[EntryOut] = Field(
        title="Entries", description="The entries of this page, the latest first.", examples=[[]]
    )
    before: int | None = Field(
        title="Before",
        description="The value of the parameter before for the next page; null on the last page.",
        examples=[1],
    )


class FaultOut(Strict):
    """The first entry that does not match the history."""

    number: int = Field(title="Number", description="The number of the entry; 0 for the budget itself.", examples=[3])
    detail: str = Field(title="Detail", description="What is wrong with the entry.", examples=["is missing"])


class VerificationOut(Strict):
    """Whether the chain of hashes is intact and the charges add up."""

    intact: bool = Field(title="Intact", description="Whether the history is as it was recorded.", examples=[True])
    entries: int = Field(title="Entries", description="How many entries the history must have.", examples=[2])
    head: str = Field(title="Head", description="The hash of the last entry.", examples=["9f2c…"])
    fault: FaultOut | None = Field(
        title="Fault", description="The first fault; null if the history is intact.", examples=[None]
    )
