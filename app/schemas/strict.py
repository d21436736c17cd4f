"""What all schemas share: strict reading, and a field that takes one value or a list."""

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag
from pydantic.json_schema import SkipJsonSchema

__all__ = ["OneOrMany", "OrAbsent", "OrNull", "Strict", "is_tag", "without_default"]


class Strict(BaseModel):
    """No coercion, no unknown fields, no NaN: a number that was not meant is not accepted."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


_NUMBER, _NUMBERS = "<number>", "<numbers>"


def is_tag(part: str | int) -> bool:
    """Whether a part of pydantic's location is the tag of a union, which is in angle brackets, and no field."""
    return isinstance(part, str) and part.startswith("<") and part.endswith(">")


def _one_or_many(value: Any) -> str:
    return _NUMBERS if isinstance(value, list) else _NUMBER


One = TypeVar("One")
Many = TypeVar("Many")
OneOrMany = Annotated[
    Annotated[One, Tag(_NUMBER)] | Annotated[Many, Tag(_NUMBERS)],
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

OrNull = Annotated[Value | None, Field(default=None, exclude_if=lambda value: value is None)]
"""A field that is absent if it has no value. Null means the same where it is read."""
