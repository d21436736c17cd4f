"""What a client says about a release for people: it is stored and listed, and nothing depends on it."""

from typing import Annotated

from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from app.releases.schemas.certified import AnyCertified, Stated

__all__ = ["Described", "DescribedRelease"]

Label = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[^\x00]*$")]


class DescribedRelease(Stated):
    """A release and its certificate, with a description and labels."""

    description: str = Field(
        default="",
        max_length=1000,
        pattern=r"^[^\x00]*$",
        title="Description",
        description="A text for people. It is stored and listed, so it must not depend on the data.",
        examples=["views per URL and country, week 46"],
    )
    labels: Annotated[list[Label], Field(max_length=16)] = Field(
        default=[],
        title="Labels",
        description="At most 16 different short texts to find the release by. They must not depend on the data.",
        examples=[["weekly", "views"]],
    )

    @field_validator("labels")
    @classmethod
    def _are_different(cls, labels: list[str]) -> list[str]:
        if len(set(labels)) != len(labels):
            raise PydanticCustomError("stated", "", {"stated": "must be different from each other"})
        return labels


class Described(DescribedRelease, AnyCertified):
    """The same, for one mechanism."""
