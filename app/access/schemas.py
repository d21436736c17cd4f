"""Requests and answers of /access-keys."""

from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypeAliasType

from app.ledger.access.access_history import AccessEvent
from app.ledger.access.access_keys import KeyState
from app.ledger.access.patterns import BUDGET_PATTERN
from app.ledger.access.scopes import SCOPES
from app.schemas.ledger_record import ByOut
from app.schemas.strict import OrAbsent, Strict

__all__ = [
    "CREATE_EXAMPLES",
    "ROTATE_EXAMPLES",
    "AccessEntryOut",
    "AccessHistoryOut",
    "AccessKeyIn",
    "AccessKeyMadeOut",
    "AccessKeyOut",
    "AccessKeysOut",
    "RotationIn",
]

ScopeName = TypeAliasType(
    "ScopeName",
    Annotated[
        Literal["account", "release", "audit", "admin"],
        Field(
            description="What an access key may do: account; release and read budgets; read everything and change "
            "nothing; or everything but releases."
        ),
    ],
)
assert set(SCOPES) == set(ScopeName.__value__.__origin__.__args__)
BudgetPattern = TypeAliasType(
    "BudgetPattern",
    Annotated[str, Field(pattern=BUDGET_PATTERN, description="The name of a budget; * stands for any characters.")],
)
AccessKeyState = TypeAliasType(
    "AccessKeyState", Annotated[KeyState, Field(description="Whether an access key is accepted, or why not.")]
)
AccessEventKind = TypeAliasType(
    "AccessEventKind", Annotated[AccessEvent, Field(description="What happened to an access key, or what it read.")]
)
_AT = "2026-11-16T12:00:00Z"
_EXPIRES: dict[str, Any] = {
    "default": None,
    "max_length": 40,
    "title": "Expires at",
    "description": "A date or a time in ISO 8601, in UTC without an offset. From then on the access key is refused. "
    "If it is omitted: never; after a rotation, after the time that the old one was made for.",
    "examples": ["2027-01-31"],
}
_KEY: dict[str, Any] = {
    "title": "Access key",
    "description": "The access key itself. It is shown once: the service keeps its hash alone.",
    "examples": ["gsh_4f1c2a9b_…"],
}


class AccessKeyIn(Strict):
    """A new access key."""

    scopes: list[ScopeName] = Field(
        min_length=1, max_length=len(SCOPES), title="Scopes", description="What it may do.", examples=[["release"]]
    )
    budgets: list[BudgetPattern] = Field(
        default=[],
        max_length=100,
        title="Budgets",
        description="The budgets that it is bound to, with their periods: names, or patterns such as web@* and "
        "team-a-*. Without any it may use all. An access key that is bound can make no others than bound ones.",
        examples=[["web"]],
    )
    note: str = Field(
        default="",
        max_length=1000,
        pattern=r"^[^\x00]*$",
        title="Note",
        description="A text for people, which histories show.",
        examples=["weekly job"],
    )
    expires_at: str | None = Field(**_EXPIRES)


class RotationIn(Strict):
    """A new access key in place of another."""

    overlap_seconds: int = Field(
        default=86_400,
        ge=0,
        le=864_000_000,
        title="Overlap",
        description="How long the old one still works, in seconds, but never longer than it would have.",
        examples=[86_400],
    )
    expires_at: str | None = Field(**_EXPIRES)


class AccessKeyOut(Strict):
    """An access key, without what proves it."""

    id: str = Field(title="Id", description="The id of the access key, which histories name.", examples=["4f1c2a9b"])
    state: AccessKeyState = Field(
        title="State",
        description="Only an active one is accepted. An unsealed one is not as this service has made it.",
        examples=["active"],
    )
    scopes: list[str] = Field(title="Scopes", description="What it may do.", examples=[["release"]])
    budgets: list[str] = Field(
        title="Budgets", description="The patterns of budgets that it is bound to; none: all.", examples=[["web"]]
    )
    note: str = Field(title="Note", description="A text for people.", examples=["weekly job"])
    made_at: str = Field(title="Made at", description="When it was made.", examples=[_AT])
    expires_at: str | None = Field(title="Expires at", description="When it ends; null: never.", examples=[None])
    revoked_at: str | None = Field(title="Revoked at", description="When it was revoked.", examples=[None])
    replaces: str | None = Field(
        title="Replaces", description="The id of the access key that was rotated to this one.", examples=[None]
    )
    replaced_by: str | None = Field(
        title="Replaced by", description="The id of the access key that this one was rotated to.", examples=[None]
    )


class AccessKeyMadeOut(AccessKeyOut):
    """A new access key, with what proves it."""

    key: str = Field(**_KEY)


class AccessKeysOut(Strict):
    """The access keys that the client may see."""

    access_keys: list[AccessKeyOut] = Field(
        title="Access keys", description="In the order they were made, also revoked ones.", examples=[[]]
    )


class AccessEntryOut(Strict):
    """One entry of the history of access."""

    number: int = Field(title="Number", description="The number of the entry, from 1.", examples=[2])
    kind: AccessEventKind = Field(
        title="Kind",
        description="An access key was made, rotated or revoked; or the stored answer of a release was read. The "
        "history began with the access keys of its first entry; sealed: an operator has changed the secret.",
        examples=["made"],
    )
    at: str = Field(title="Time", description="When it was recorded.", examples=[_AT])
    hash: str = Field(title="Hash", description="The hash of this entry and of the hash before it.", examples=["9f2c…"])
    key: OrAbsent[str] = Field(title="Access key", description="The id of the access key.", examples=["4f1c2a9b"])
    keys: OrAbsent[list[str]] = Field(
        title="Access keys", description="The ids of the access keys that were there.", examples=[["4f1c2a9b"]]
    )
    scopes: OrAbsent[list[str]] = Field(title="Scopes", description="What it may do.", examples=[["release"]])
    budgets: OrAbsent[list[str]] = Field(
        title="Budgets", description="The patterns of budgets that it is bound to.", examples=[["web"]]
    )
    note: OrAbsent[str] = Field(title="Note", description="A text for people.", examples=["weekly job"])
    replaces: OrAbsent[str] = Field(
        title="Replaces", description="The id of the access key that was rotated.", examples=["3f9a1c07"]
    )
    until: OrAbsent[str] = Field(title="Until", description="How long the old one still works.", examples=[_AT])
    expires_at: OrAbsent[str] = Field(title="Expires at", description="When it ends.", examples=[_AT])
    release: OrAbsent[str] = Field(
        title="Release", description="The release whose answer was read.", examples=["web-2026-46"]
    )
    budget: OrAbsent[str] = Field(title="Budget", description="The budget of this release.", examples=["web"])
    by: OrAbsent[ByOut] = Field(
        title="By",
        description="The access key that did it; absent for a command at the ledger, and at the start of the service.",
        examples=[{"id": "4f1c2a9b", "note": "operations"}],
    )


class AccessHistoryOut(Strict):
    """A page of the history of access, the latest entry first."""

    entries: list[AccessEntryOut] = Field(title="Entries", description="The latest first.", examples=[[]])
    before: int | None = Field(
        title="Before",
        description="The value of the parameter before for the next page; null on the last page.",
        examples=[1],
    )


CREATE_EXAMPLES: dict[str, Any] = {
    "job": {"summary": "For a weekly job", "value": {"scopes": ["release"], "budgets": ["web"], "note": "weekly job"}},
    "audit": {"summary": "For an auditor", "value": {"scopes": ["audit"], "expires_at": "2099-01-31"}},
    "team": {"summary": "For a team", "value": {"scopes": ["release", "admin"], "budgets": ["team-a-*"]}},
}
ROTATE_EXAMPLES: dict[str, Any] = {
    "day": {"summary": "The old one works for a day", "value": {}},
    "now": {"summary": "The old one ends now", "value": {"overlap_seconds": 0}},
}
