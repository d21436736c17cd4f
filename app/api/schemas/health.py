"""Answers of the service about itself."""

from pydantic import Field

from app.api.schemas.strict import Strict
from app.version import VERSION

__all__ = ["Health", "ProblemType", "ProblemTypes", "Readiness", "Version"]


class Health(Strict):
    """The process answers."""

    status: str = Field(title="Status", description="Always ok.", examples=["ok"])


class Readiness(Strict):
    """The service can do its work."""

    status: str = Field(title="Status", description="Always ok.", examples=["ok"])
    ledger: str = Field(title="Ledger", description="ok if the ledger answers, or not asked.", examples=["ok"])


class Version(Strict):
    """The versions of the service and of its arithmetic."""

    service: str = Field(title="Service", description="The version of this service.", examples=[VERSION])
    python: str = Field(title="Python", description="The version of Python.", examples=["3.11.7"])
    flint: str = Field(title="FLINT", description="The version of the ball arithmetic.", examples=["3.6.0"])


class ProblemType(Strict):
    """One kind of problem, in words."""

    type: str = Field(title="Type", description="The type of such problems.", examples=["/problems/budget-exceeded"])
    title: str = Field(title="Title", description="The title of such problems.", examples=["Budget exceeded"])
    status: int = Field(title="Status", description="The HTTP status of such problems.", examples=[409])
    what_happened: str = Field(
        title="What happened",
        description="What the service found, and whether anything was charged.",
        examples=["The release would cost more privacy than the budget has remaining."],
    )
    what_to_do: str = Field(
        title="What to do", description="How to avoid the problem.", examples=["Ask for less, or raise the limit."]
    )


class ProblemTypes(Strict):
    """All kinds of problem."""

    problems: list[ProblemType] = Field(title="Problems", description="Sorted by status.", examples=[[]])
