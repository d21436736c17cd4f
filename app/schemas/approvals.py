"""What is said of a request that waits for a second access key."""

from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypeAliasType

from app.ledger import approvals
from app.ledger.approvals import Approval
from app.schemas.ledger_record import ByOut
from app.schemas.strict import OrAbsent, Strict

__all__ = [
    "WAITING_RESPONSE",
    "ApprovalKind",
    "ApprovalOut",
    "ApprovalRule",
    "ApprovalState",
    "ChangeOut",
    "DecisionOut",
    "ProportionOut",
]

ApprovalKind = TypeAliasType(
    "ApprovalKind", Annotated[Literal["change", "release"], Field(description="What waits for another access key.")]
)
ApprovalState = TypeAliasType(
    "ApprovalState", Annotated[approvals.ApprovalState, Field(description="What became of a request.")]
)
ApprovalRule = TypeAliasType(
    "ApprovalRule",
    Annotated[Literal["none", "limits", "releases"], Field(description="What waits for a second access key.")],
)
_PROPORTION = {"mu_squared": 0.010448747960489898, "hazard": 9.99e-06}
_AT = "2026-11-16T12:00:00Z"


class ProportionOut(Strict):
    """The cost of one release. Noise and thresholds share the budget in the proportion of its two numbers."""

    mu_squared: float = Field(title="μ²", description="Its noise cost.", examples=[_PROPORTION["mu_squared"]])
    hazard: float = Field(title="−C_u ln p", description="Its threshold cost.", examples=[_PROPORTION["hazard"]])


class ChangeOut(Strict):
    """A field that was changed, with its values before and after."""

    field: str = Field(title="Field", description="The name of the field.", examples=["epsilon"])
    before: int | float | str | ProportionOut | None = Field(
        title="Before", description="Its value before; null if it was not set.", examples=[0.5]
    )
    after: int | float | str | ProportionOut | None = Field(
        title="After", description="Its value after; null if it is not set.", examples=[1.0]
    )


class DecisionOut(Strict):
    """That a request was approved or refused."""

    at: str = Field(title="Time", description="When it was decided.", examples=[_AT])
    by: ByOut = Field(
        title="By", description="The access key that decided.", examples=[{"id": "7d0e55aa", "note": "data officer"}]
    )
    reason: str = Field(title="Reason", description="Why.", examples=["as planned for this year"])
    number: int = Field(title="Entry", description="The entry of the history that records it.", examples=[8])


class ApprovalOut(Strict):
    """A request that waits for a second access key, or waited for one."""

    id: str = Field(title="Id", description="The id of the request.", examples=["9c2f0a7be1d44c50"])
    kind: ApprovalKind = Field(title="Kind", description="A change of a budget, or a release.", examples=["change"])
    budget: str = Field(title="Budget", description="The budget that it is about.", examples=["web"])
    state: ApprovalState = Field(
        title="State",
        description="Waiting; approved: the release may be requested again; refused; done: the change is made, or the "
        "release is charged.",
        examples=["waiting"],
    )
    at: str = Field(title="Time", description="When somebody asked.", examples=[_AT])
    by: ByOut = Field(
        title="By", description="The access key that asked.", examples=[{"id": "4f1c2a9b", "note": "operations"}]
    )
    number: int = Field(title="Entry", description="The entry of the history that records it.", examples=[7])
    changes: OrAbsent[list[ChangeOut]] = Field(
        title="Changes",
        description="Of a change: each field before and after.",
        examples=[[{"field": "epsilon", "before": 0.5, "after": 1.0}]],
    )
    reason: OrAbsent[str] = Field(
        title="Reason", description="Of a change: why.", examples=["the yearly review allows it"]
    )
    idempotency_key: OrAbsent[str] = Field(
        title="Idempotency key", description="Of a release: its name.", examples=["web-2026-46"]
    )
    release: OrAbsent[dict[str, Any]] = Field(
        title="Release",
        description="Of a release: the parameters that its cost depends on, as in the history.",
        examples=[{"c_u": 16, "tau": 1, "tau_star": 161.5, "sigma": 29.27, "mu_0": 0.0}],
    )
    mu_squared: OrAbsent[float] = Field(
        title="μ²", description="Of a release: its noise cost.", examples=[_PROPORTION["mu_squared"]]
    )
    hazard: OrAbsent[float] = Field(
        title="−C_u ln p", description="Of a release: its threshold cost.", examples=[_PROPORTION["hazard"]]
    )
    description: OrAbsent[str] = Field(
        title="Description", description="Of a release: the client's text.", examples=["page views"]
    )
    labels: OrAbsent[list[str]] = Field(
        title="Labels", description="Of a release: the client's labels.", examples=[["weekly"]]
    )
    decision: DecisionOut | None = Field(
        title="Decision", description="Who decided, and why; null while it waits.", examples=[None]
    )

    @classmethod
    def of(cls, found: Approval) -> "ApprovalOut":
        shown, decided = found.asked.shown, found.decided
        fields = {name: value for name, value in shown.items() if name in cls.model_fields}
        own = {"id": found.id, "kind": found.kind, "budget": found.budget, "state": found.state}
        decision = None
        if decided is not None:
            said = {name: decided.details[name] for name in ("by", "reason")}
            decision = said | {"at": decided.at, "number": decided.number}
        return cls.model_validate(fields | own | {"at": found.asked.at, "number": found.number, "decision": decision})


WAITING_RESPONSE: dict[int | str, dict[str, Any]] = {
    202: {
        "model": ApprovalOut,
        "description": "Nothing is done yet: another access key must approve the request in Location.",
        "headers": {
            "Location": {
                "description": "The path of the request for an approval.",
                "schema": {"type": "string"},
                "example": "/approvals/9c2f0a7be1d44c50",
            }
        },
    }
}
"""The further response of an operation on a budget that demands approvals."""
