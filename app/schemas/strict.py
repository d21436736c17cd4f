"""What all schemas share: strict reading, and a field that takes one value or a list."""

from typing import Annotated, Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag
from pydantic.json_schema import SkipJsonSchema

__all__ = ["NUMBER", "NUMBERS", "OneOrMany", "OrAbsent", "Strict", "without_default"]


class Strict(BaseModel):
    """No coercion, no unknown fields, no NaN: a number that was not meant is not accepted."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)

    def slimmed(self, _most_work: int) -> Self:
        """A worker that has parsed a long body sends back only this, after a check of the bound on work."""
        return self


# Tags of a union that is told apart by shape. They appear in pydantic's locations but not in the body.
NUMBER, NUMBERS = "<number>", "<numbers>"


def _one_or_many(value: Any) -> str:
    return NUMBERS if isinstance(value, list) else NUMBER


One = TypeVar("One")
Many = TypeVar("Many")
OneOrMany = Annotated[
    Annotated[One, Tag(NUMBER)] | Annotated[Many, Tag(NUMBERS)],
    Discriminator(_one_or_many),
]
"""One value, or a list of values (a curve); errors point at the value."""


def without_default(schema: dict[str, Any]) -> None:
    """For ``json_schema_extra``: the schema does not say the default."""
    schema.pop("default", None)


Value = TypeVar("Value")
OrAbsent = Annotated[
    Value | SkipJsonSchema[None],
    Field(default=None, exclude_if=lambda value: value is None, json_schema_extra=without_default),
]
"""A field of an answer that may be absent, and is never null."""
