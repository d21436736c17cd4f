"""What the ledger adds to a certificate: the budget that paid, and the record of the stored release."""

from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypeAliasType

from app.ledger import releases
from app.ledger.periods import PERIOD_LABEL, Renews
from app.schemas.scalars import Digest
from app.schemas.strict import Strict

__all__ = [
    "ANCESTOR_ENTRIES",
    "PERIOD_PAYS",
    "ByOut",
    "EntryNameOut",
    "PaidBy",
    "Period",
    "PeriodName",
    "Record",
    "ReleaseState",
    "Renewal",
]

Period = TypeAliasType(
    "Period",
    Annotated[
        Literal["day", "week", "month", "quarter", "year"],
        Field(description="The time that a budget is for: the privacy unit is one unit in one such period."),
    ],
)
Renewal = TypeAliasType("Renewal", Annotated[Renews, Field(description="How often a budget is renewed, in UTC.")])
PeriodName = TypeAliasType(
    "PeriodName",
    Annotated[str, Field(pattern=f"^{PERIOD_LABEL}$", description="One period, such as 2026-W46, 2026-11, or 2026.")],
)
PERIOD_PAYS: dict[str, Any] = {
    "default": None,
    "exclude_if": lambda value: value is None,
    "title": "Period",
    "description": "Of a renewed budget: the period that pays, such as 2026-W46, 2026-11, 2026-Q4 or 2026. If it is "
    "omitted, the present one (UTC). A late release names its own.",
    "examples": ["2026-W46"],
}
ReleaseState = TypeAliasType(
    "ReleaseState",
    Annotated[
        releases.ReleaseState,
        Field(description="Made by the service; open or committed by another engine; or charged only."),
    ],
)


class ByOut(Strict):
    """The access key that made an entry."""

    id: str = Field(title="Access key", description="The id of the access key.", examples=["4f1c2a9b"])
    note: str = Field(title="Note", description="The note of the access key, for people.", examples=["weekly job"])


class EntryNameOut(Strict):
    """An entry of the history of a budget."""

    budget: str = Field(title="Budget", description="The name of the budget.", examples=["company"])
    number: int = Field(title="Number", description="The number of the entry in its history.", examples=[7])


ANCESTOR_ENTRIES: Any = {
    "title": "Ancestors",
    "description": "The entries of the same charge in the histories of the budget's ancestors, the parent first.",
    "examples": [[{"budget": "company", "number": 7}]],
}


class PaidPoint(Strict):
    """An (ε, δ) for all releases of a budget together."""

    epsilon: float = Field(title="ε", description="The ε of the budget.", examples=[1.0])
    delta: float = Field(title="δ", description="The δ at this ε.", examples=[1e-4])


class PaidToo(Strict):
    """An ancestor of the budget that a release was charged to: it was charged too, and promises for its own unit."""

    id: str = Field(title="Budget", description="The name of the ancestor.", examples=["company"])
    privacy_unit: str = Field(
        title="Privacy unit", description="Whose records its promise protects together.", examples=["user"]
    )
    period: Period | None = Field(
        title="Period", description="The period of its privacy unit, if it has one.", examples=[None]
    )
    promise: PaidPoint = Field(
        title="Promise",
        description="The (ε, δ) for all releases of the ancestor and of the budgets below it.",
        examples=[{"epsilon": 1.0, "delta": 1e-4}],
    )
    limit: PaidPoint = Field(
        title="Limit", description="The limit that was in force.", examples=[{"epsilon": 1.0, "delta": 1e-4}]
    )


class PaidBy(Strict):
    """The budget that a release was charged to."""

    id: str = Field(title="Budget", description="The name of the budget.", examples=["web"])
    promise: PaidPoint | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        title="Promise",
        description="The (ε, δ) that held for all releases of the budget when this one was charged: those made, and "
        "those that were possible. It grows if the limit is raised later. Missing in certificates before version 0.3.",
        examples=[{"epsilon": 1.0, "delta": 1e-4}],
    )
    limit: PaidPoint = Field(
        title="Limit",
        description="The limit that was in force. It may be smaller than the promise: a limit that is lowered does "
        "not undo releases.",
        examples=[{"epsilon": 1.0, "delta": 1e-4}],
    )
    ancestors: list[PaidToo] | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        title="Ancestors",
        description="The parent of the budget, the parent of that one, and so on; absent without a parent. All of them "
        "were charged, and each promises for all releases of the budgets below it together.",
        examples=[[]],
    )


class Record(Strict):
    """What the ledger says about a release after it was stored."""

    state: ReleaseState = Field(
        title="State",
        description="What has become of the release.",
        examples=["made"],
    )
    entry: int = Field(title="Entry", description="The number of its entry in the budget's history.", examples=[2])
    head: Digest = Field(
        title="Head",
        description="The hash of that entry, which covers all entries before it.",
        examples=["c3ab8ff13720e8ad9047dd39466b3c8974e592c2fa383d4a3960714caef0c4f2"],
    )
    at: str = Field(title="Time", description="When it was charged.", examples=["2026-11-16T12:00:00Z"])
    answer_sha256: Digest | None = Field(
        title="SHA-256",
        description="The SHA-256 of the stored answer's bytes; null if the service made no answer.",
        examples=["9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"],
    )
    media_type: str | None = Field(
        title="Media type", description="The media type of the stored answer.", examples=["application/json"]
    )
    size: int | None = Field(title="Size", description="The number of bytes of the stored answer.", examples=[812])
    committed_digest: Digest | None = Field(
        title="Committed digest",
        description="The SHA-256 of the output that another engine committed; null if there is none.",
        examples=["ef2d127de37b942baad06145e54b0c619a1f22327b2ebbcfbec78f5564afe39d"],
    )
