"""What the columns of a table mean, beyond their bounds: so that a reader of the file gets means and intervals right.

    column               what it adds up                          in a certificate
    sum, events          what each user has                       kind, unit
    mean                 the same, less the middle of its range   kind, unit, of, middle

A certificate also names the ratios that are to be made of the columns, and what published numbers were rounded to.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

__all__ = ["ColumnMeaning", "Meaning", "mean_column"]

_Kind = Literal["sum", "events", "mean"]


@dataclass(frozen=True, slots=True)
class ColumnMeaning:
    """What one further column adds up."""

    kind: _Kind
    unit: float
    """What it is counted in."""
    of: str | None = None
    """Of a mean: what the mean is of."""
    middle: float = 0.0
    """Of a mean: what is taken from each user."""

    def to_json(self) -> dict[str, Any]:
        around = {"of": self.of, "middle": self.middle} if self.kind == "mean" else {}
        return {"kind": self.kind, "unit": self.unit, **around}

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> "ColumnMeaning":
        """Raises ``ValueError``, ``TypeError`` or ``LookupError`` if it is none."""
        kind, unit, of, middle = given["kind"], given["unit"], given.get("of"), given.get("middle", 0.0)
        if kind not in get_args(_Kind) or isinstance(of, str) != (kind == "mean"):
            raise ValueError("must be of another kind")
        return cls(kind, _positive(unit), of, _number(middle))


@dataclass(frozen=True, slots=True)
class Meaning:
    """What the further columns of a table mean, what follows from them, and how the numbers were rounded."""

    columns: Mapping[str, ColumnMeaning] = field(default_factory=dict)
    ratios: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Two columns for each name, or a column and ``count``, the number of users."""
    rounded: tuple[float, ...] | None = None
    """What the count and then each further column was rounded to. None: to the grid of the noise alone."""

    @property
    def averages(self) -> tuple[str, ...]:
        """The columns of means and ratios that follow from the table: each with its interval."""
        means = (mean_column(each.of) for each in self.columns.values() if each.of is not None)
        return tuple(f"{name}{end}" for name in (*means, *self.ratios) for end in ("", "_low", "_high"))

    def without_averages(self, names: Sequence[str]) -> tuple[str, ...]:
        """The names of the columns of a table, without those of means and ratios at its end."""
        averages = self.averages
        is_there = bool(averages) and tuple(names[-len(averages) :]) == averages
        return tuple(names[: -len(averages)] if is_there else names)

    def members(self, names: Sequence[str]) -> dict[str, Any]:
        """The members of a certificate about a table whose further columns have these names."""
        found: dict[str, Any] = {}
        if self.ratios:
            found["ratios"] = {name: list(pair) for name, pair in self.ratios.items()}
        if self.rounded is not None:
            values = dict(zip(names, self.rounded[1:], strict=True))
            found["rounded"] = {"count": self.rounded[0], "values": values}
        return found

    @classmethod
    def from_members(cls, described: Mapping[str, Any], names: Sequence[str]) -> "Meaning":
        """Raises ``ValueError``, ``TypeError`` or ``LookupError`` if members of a certificate are not understood."""
        bounds = described.get("bounds") or {}
        columns = {
            each["name"]: ColumnMeaning.from_json(each) for each in bounds.get("columns") or () if "kind" in each
        }
        ratios = {name: _pair(pair) for name, pair in (described.get("ratios") or {}).items()}
        known = {*names, "count"}
        if not columns.keys() <= known or any(not known.issuperset(pair) for pair in ratios.values()):
            raise ValueError("must be of the columns of the table")
        rounded = described.get("rounded")
        return cls(columns, ratios, None if rounded is None else _rounded(rounded, names))


def mean_column(name: str) -> str:
    """The column with the mean per user."""
    return f"{name}_mean"


def _rounded(given: Mapping[str, Any], names: Sequence[str]) -> tuple[float, ...]:
    values = given["values"]
    if set(values) != set(names):
        raise ValueError("must be of the columns of the table")
    return _positive(given["count"]), *(_positive(values[name]) for name in names)


def _pair(given: Any) -> tuple[str, str]:
    above, below = given
    if not isinstance(above, str) or not isinstance(below, str):
        raise TypeError("must be two names")
    return above, below


def _number(given: Any) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not math.isfinite(given):
        raise TypeError("must be a finite number")
    return float(given)


def _positive(given: Any) -> float:
    number = _number(given)
    if number <= 0:
        raise ValueError("must be greater than 0")
    return number
