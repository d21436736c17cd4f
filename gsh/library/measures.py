"""Measures: what is added up in each group besides its users. One shape for all kinds, for every engine.

kind      a record counts         one user adds to one group
sum       ⌊x/unit + 1/2⌋          the total of the user's records, clipped to [least, most]
events    1                       the same
mean      ⌊x/unit + 1/2⌋          the same, less the middle of [least, most]

A mean per user is a sum around the middle of its range: so one user changes it by half of the range at most, and half
of the noise is enough. Its column is ``seconds_centred``, and ``gsh.means`` makes the mean of it.

A unit is a power of two, or a power of ten such as 0.01 for columns of decimals. All of it is exact: totals are
integers in units, those of a mean in halves of its unit, because its middle may be one. The double 0.01 stands for the
number that it shows, in a unit and in its bounds. Only the range in a mechanism is of doubles: the smallest range of
doubles that has all of it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from gsh.accounting.numerics.doubles import double_above, double_below
from gsh.accuracy.bounds import centred
from gsh.arguments import Integer, Real, integer, real
from gsh.errors import InvalidParameter
from gsh.histogram.meanings import ColumnMeaning

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ARGUMENTS", "CENTRED", "COUNT", "MOST_UNITS", "Measure", "MeasureKind", "Ratio", "measures_of", "ratios_of"]

MeasureKind: TypeAlias = Literal["sum", "events", "mean"]

ARGUMENTS: Final[Mapping[MeasureKind, str]] = {"sum": "sums", "events": "events", "mean": "means"}
"""The argument that has the measures of a kind."""

COUNT: Final = "count"
"""The column with the numbers of users, unless the caller names it; and in a ratio always."""

CENTRED: Final = centred("")
"""How the column of a mean ends."""

MOST_UNITS = 2**52
"""So large may a bound be, in units: then sums stay within 2⁵³."""
_UNIT_EXPONENTS = 60
_POWERS_OF_TEN = {float(f"1e-{digits}"): digits for digits in range(1, 13)}
_INTEGER_DIGITS = 19
"""Of integers of 64 bits."""


@dataclass(frozen=True, slots=True)
class Measure:
    """What one user adds to one group, in units, and in how many groups."""

    name: str
    """What the caller calls it: the column of the events, or of a number of events."""
    kind: MeasureKind
    lower: float
    upper: float
    unit: float | None = None
    """A power of two, or of ten. None: 1, and then the column must be of whole numbers."""
    groups: int | None = None
    """The cap: the most groups of one user with a value other than 0. None: C_u."""

    @property
    def source(self) -> str | None:
        """The column of the events that is added up. None: each record counts 1."""
        return None if self.kind == "events" else self.name

    @property
    def column(self) -> str:
        """The column of the result."""
        return centred(self.name) if self.kind == "mean" else self.name

    @property
    def pointer(self) -> str:
        """The place of the measure in the arguments."""
        return f"{ARGUMENTS[self.kind]}/{self.name}"

    @property
    def scale(self) -> float:
        """The unit, also if it is the default."""
        return 1.0 if self.unit is None else self.unit

    @property
    def digits(self) -> int | None:
        """The digits after the point of a unit that is a power of ten: 2 for 0.01. None for a power of two."""
        return _POWERS_OF_TEN.get(self.scale)

    @property
    def least(self) -> int:
        """The lower bound in units, rounded inwards."""
        return math.ceil(self._in_units(self.lower))

    @property
    def most(self) -> int:
        """The upper bound in units, rounded inwards."""
        return math.floor(self._in_units(self.upper))

    @property
    def meaning(self) -> ColumnMeaning:
        """What a certificate says of the column."""
        of = self.name if self.kind == "mean" else None
        return ColumnMeaning(self.kind, self.scale, of, self.middle)

    @property
    def middle(self) -> float:
        """What is taken from the total of each user: 0, but in a mean the middle of its range."""
        return float(self._doubled_middle * self._unit / 2)

    @property
    def _doubled_middle(self) -> int:
        return self.least + self.most if self.kind == "mean" else 0

    @property
    def steps(self) -> tuple[int, int]:
        """What one user adds to one group at least and at most, in steps: units, or in a mean halves of them."""
        if self.kind != "mean":
            return self.least, self.most
        return self.least - self.most, self.most - self.least

    def in_steps(self, clipped: str) -> str:
        """What a user adds to a group, as SQL: from the clipped total in units to steps."""
        if self.kind != "mean":
            return clipped
        sign = "-" if self._doubled_middle >= 0 else "+"
        return f"2 * {clipped} {sign} {abs(self._doubled_middle)}"

    @property
    def _unit(self) -> Fraction:
        return Fraction(self.scale) if self.digits is None else Fraction(1, 10**self.digits)

    @property
    def step(self) -> float:
        """What the whole numbers of an engine are counted in."""
        return float(self._step)

    @property
    def _step(self) -> Fraction:
        return self._unit / 2 if self.kind == "mean" else self._unit

    def _in_units(self, bound: float) -> Fraction:
        if self.digits is None:
            return Fraction(bound) / Fraction(self.scale)
        return Fraction(repr(bound)) * Fraction(10**self.digits)

    @property
    def range(self) -> tuple[float, float]:
        """What one user adds to one group at least and at most: doubles, farther apart if need be."""
        least, most = self.steps
        return double_below(least * self._step), double_above(most * self._step)

    def between(self, least: int, most: int) -> "Measure":
        """What a user adds to a group with other bounds, in units; not centred, and without a cap."""
        kind: MeasureKind = "events" if self.kind == "events" else "sum"
        return replace(self, kind=kind, lower=least * self.scale, upper=most * self.scale, groups=None)

    def numbers(self, steps: "pa.Array") -> "pa.Array":
        """Integers in steps as numbers: integers, doubles or decimals, exactly. They are at most 2⁵³."""
        import pyarrow as pa  # noqa: PLC0415 - a plan needs none of it
        import pyarrow.compute as pc  # noqa: PLC0415

        whole = steps.cast(pa.int64())
        if self.digits is None:
            return whole if self._step == 1 else pc.multiply(whole.cast(pa.float64()), float(self._step))
        digits = self.digits
        if self.kind == "mean":  # a half of 0.01 is 5 times 0.001
            whole, digits = pc.multiply(whole, 5), digits + 1
        decimals = whole.cast(pa.decimal128(_INTEGER_DIGITS, 0))
        kind = pa.decimal128(_INTEGER_DIGITS, digits)
        return pa.Array.from_buffers(kind, len(decimals), decimals.buffers(), offset=decimals.offset)


@dataclass(frozen=True, slots=True)
class Ratio:
    """The ratio of two published columns, or of one to the number of users."""

    name: str
    above: str
    below: str
    """``count`` is the number of users, whatever its column is called."""

    @property
    def pointer(self) -> str:
        """The place of the ratio in the arguments."""
        return f"ratios/{self.name}"


def measures_of(
    c_u: int,
    *,
    sums: Mapping[str, tuple[Real, Real]] | None = None,
    events: Mapping[str, Integer] | None = None,
    means: Mapping[str, tuple[Real, Real]] | None = None,
    units: Mapping[str, Real] | None = None,
    caps: Mapping[str, Integer] | None = None,
) -> tuple[Measure, ...]:
    """The measures of the arguments, in their order: first the sums, then the events, then the means."""
    given: list[tuple[MeasureKind, Mapping[str, Any]]] = [
        ("sum", _mapping("sums", sums)),
        ("events", _bounds(events)),
        ("mean", _mapping("means", means)),
    ]
    kinds: dict[str, MeasureKind] = {}
    for kind, named in given:
        for name in named:
            if name in kinds:
                raise InvalidParameter(
                    f"{ARGUMENTS[kind]}/{name}", f"must be a name that {ARGUMENTS[kinds[name]]} lack"
                )
            kinds[name] = kind
    scales, most_groups = _mapping("units", units), _mapping("caps", caps)
    if any(kinds.get(name) not in ("sum", "mean") for name in scales):
        raise InvalidParameter("units", "must name only columns of sums and means")
    if set(most_groups) - set(kinds):
        raise InvalidParameter("caps", "must name only columns of sums, events and means")
    return tuple(
        _measure(name, kind, bounds, scales.get(name), most_groups.get(name), c_u)
        for kind, named in given
        for name, bounds in named.items()
    )


def ratios_of(
    given: Mapping[str, tuple[str, str]] | None, measures: Sequence[Measure], count: str
) -> tuple[Ratio, ...]:
    """The ratios of the argument ``ratios``, in their order. The name of the count is ``count`` in them too."""
    columns = [each.name for each in measures if each.kind != "mean"]
    there = f"must be of columns of sums and events, and the second may be {COUNT}; there are"
    found = []
    for name, pair in _mapping("ratios", given).items():
        pointer = f"ratios/{name}"
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise InvalidParameter(pointer, "must be a pair of columns, such as ('likes', 'views')")
        above, below = pair
        below = COUNT if below == count else below
        if above not in columns or below not in (*columns, COUNT):
            raise InvalidParameter(pointer, f"{there} {', '.join(columns) or 'none'}")
        if above == below:
            raise InvalidParameter(pointer, "must be of two different columns")
        found.append(Ratio(name, above, below))
    return tuple(found)


def _mapping(pointer: str, given: object) -> Mapping[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise InvalidParameter(pointer, "must be a mapping from names of columns")
    return given


def _bounds(events: object) -> dict[str, tuple[int, int]]:
    """Nothing but the caller can say a bound: one that follows from the data would not be private."""
    if events is None:
        return {}
    if not isinstance(events, Mapping) or not all(isinstance(name, str) for name in events):
        name = events if isinstance(events, str) else "views"
        detail = f"must map a name to the most events of one user in one group, such as {{{name!r}: 20}}"
        raise InvalidParameter("events", detail)
    found = {}
    for name, most in events.items():
        found[name] = 0, integer(f"events/{name}", most)
        if most < 1:
            raise InvalidParameter(f"events/{name}", "must be at least 1: the most events of one user in one group")
    return found


def _measure(name: str, kind: MeasureKind, bounds: object, unit: object, cap: object, c_u: int) -> Measure:
    pointer = f"{ARGUMENTS[kind]}/{name}"
    if not isinstance(bounds, Sequence) or isinstance(bounds, str | bytes) or len(bounds) != 2:
        raise InvalidParameter(pointer, "must be a pair: lower, upper")
    lower, upper = (real(pointer, bound) + 0.0 for bound in bounds)
    if not (math.isfinite(lower) and math.isfinite(upper)):
        raise InvalidParameter(pointer, "must have finite bounds")
    if lower > upper:
        raise InvalidParameter(pointer, "must have a lower bound that is at most the upper bound")
    scale = None if unit is None else real(f"units/{name}", unit)
    if scale is not None and scale not in _POWERS_OF_TEN:
        fraction, exponent = math.frexp(scale)
        if fraction != 0.5 or abs(exponent - 1) > _UNIT_EXPONENTS:
            detail = f"must be a power of two from 2^-60 to 2^60, such as {2**-10}, or of ten, from 1e-12 to 0.1"
            raise InvalidParameter(f"units/{name}", detail)
    cap = None if cap is None else integer(f"caps/{name}", cap)
    if cap is not None and not 1 <= cap <= c_u:
        raise InvalidParameter(f"caps/{name}", "must be from 1 to c_u")
    made = Measure(name, kind, lower, upper, scale, cap)
    if max(abs(made.least), abs(made.most)) > MOST_UNITS:
        raise InvalidParameter(pointer, "must stay within 2^52 units: sums could leave 2^53; take a larger unit")
    if made.least > made.most:
        raise InvalidParameter(pointer, "must have a whole number of units between the bounds")
    if kind == "mean":
        if made.least == made.most:
            raise InvalidParameter(pointer, "must have bounds that are at least one unit apart")
        if made.most - made.least > MOST_UNITS:
            raise InvalidParameter(
                pointer, "must be at most 2^52 units wide, as sums stay within 2^53; take a larger unit"
            )
    if made.least == made.most == 0:
        raise InvalidParameter(pointer, "must have a bound of at least one unit other than 0")
    return made
