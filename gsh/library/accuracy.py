"""What published numbers mean, which costs no privacy, and what a mechanism would publish of groups of given sizes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Generic, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from gsh.accounting.mechanism import AnyMechanism, Mechanism, checked_mechanism
from gsh.accuracy import utility as published
from gsh.accuracy.intervals import Interval, count_intervals, value_intervals
from gsh.accuracy.rest import count_rest, value_rest
from gsh.accuracy.totals import Total, count_total, value_total
from gsh.accuracy.utility import Utility
from gsh.arguments import ColumnLike, Integer, Real, Reals, instance, is_several, real, reals
from gsh.errors import InvalidParameter, pointer_part, renamed
from gsh.library.published_numbers import level_of, published_numbers

__all__ = [
    "Integers",
    "Interval",
    "Intervals",
    "Total",
    "Totals",
    "integers",
    "intervals",
    "rest",
    "total",
    "utility",
]

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class _Numbers(Generic[T]):
    """Something about published counts, and about each published column of values, at one level."""

    level: float
    counts: T
    values: Mapping[str, T]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", MappingProxyType(dict(self.values)))

    def __reduce__(self) -> tuple[type[Self], tuple[object, ...]]:
        return type(self), (self.level, self.counts, dict(self.values))


class Intervals(_Numbers[Interval]):
    """The intervals of published counts, and of each published column of values, at one level."""

    __slots__ = ()


class Totals(_Numbers[Total]):
    """The totals over some published groups: of their counts, and of each column of values."""

    __slots__ = ()


def intervals(
    mechanism: AnyMechanism,
    *,
    counts: Reals,
    values: Mapping[str, Reals] | None = None,
    level: Real = 0.95,
    is_rounded: bool = False,
    units: Mapping[str, Real] | None = None,
) -> Intervals:
    """Where the true numbers of published groups are, at a level of confidence.  [docs/accuracy.md, section 4]

        { C ≥ max(τ, 1) :  α/2 ≤ Φ̄((y − C)/σ) / Φ̄((τ* − C)/σ) ≤ 1 − α/2 },   α = 1 − level

    Near τ* only counts that noise has raised are published, so y ± 1.96 σ is wrong there. These intervals cover the
    true count of a published group with the stated probability, wherever it is. Other columns have y ± z s, cut to the
    sums that are possible. So have the counts of public groups (``gsh.PlainGaussian``): to add up many of them, take
    ``gsh.total``.

    Give the published numbers and the mechanism that made them. It costs no privacy. If they were rounded to integers
    (``is_rounded``), the intervals are wider by what that may have changed. ``units`` are of columns that were rounded
    to another multiple, such as ``{"price": 0.01}``.

    >>> import gsh
    >>> mechanism = gsh.Mechanism(c_u=3, tau=1, tau_star=120, sigma=20)
    >>> found = gsh.intervals(mechanism, counts=[121, 150, 400])
    >>> found.counts.low.round(1)
    array([  1. ,  93.2, 360.8])
    >>> found.counts.estimate.round(1)
    array([  1., 148., 400.])
    >>> found.counts.high.round(1)
    array([130.6, 189.1, 439.2])
    """
    chosen = level_of(level)
    checked_mechanism("mechanism", mechanism)
    given = published_numbers(mechanism, counts, values, is_rounded, units)
    return Intervals(
        chosen,
        count_intervals(mechanism, given.counts, chosen, given.unit),
        {
            name: value_intervals(mechanism, each.place, each.numbers, chosen, each.unit)
            for name, each in given.values.items()
        },
    )


def total(
    mechanism: AnyMechanism,
    *,
    counts: Reals,
    values: Mapping[str, Reals] | None = None,
    level: Real = 0.95,
    is_rounded: bool = False,
    units: Mapping[str, Real] | None = None,
) -> Totals:
    """The sum of the true numbers of some published groups, such as all of one country.  [docs/accuracy.md, section 6]

    Each ``Total`` has ``estimate``, ``standard_error``, ``low`` and ``high``. It is the total of the published groups:
    dropped groups are missing, and the table cannot say how large they are. It costs no privacy.

    >>> import gsh
    >>> mechanism = gsh.Mechanism(c_u=3, tau=1, tau_star=120, sigma=20)
    >>> found = gsh.total(mechanism, counts=[180, 300, 400]).counts
    >>> round(found.estimate, 1), round(found.standard_error, 1)
    (880.0, 34.6)
    >>> round(found.low, 1), round(found.high, 1)
    (810.5, 949.4)
    """
    chosen = level_of(level)
    checked_mechanism("mechanism", mechanism)
    given = published_numbers(mechanism, counts, values, is_rounded, units)
    return Totals(
        chosen,
        count_total(mechanism, given.counts, chosen, "counts", given.unit),
        {
            name: value_total(mechanism, each.place, each.numbers, chosen, f"values/{pointer_part(name)}", each.unit)
            for name, each in given.values.items()
        },
    )


def rest(
    parent: AnyMechanism,
    children: AnyMechanism,
    *,
    count: Real,
    counts: Reals,
    values: Mapping[str, tuple[Real, Reals]] | None = None,
    level: Real = 0.95,
    is_rounded: bool = False,
    units: Mapping[str, Real] | None = None,
) -> Totals:
    """What a parent has beyond its published children: a country beyond its cities.  [docs/accuracy.md, section 7]

    Give the published ``count`` of the parent and the published ``counts`` of its children, and the mechanisms of their
    tables. ``values`` are columns that both tables have: the value of the parent, and those of the children. The two
    tables must be released together, with independent noise, and every published child must be given. The rest may
    be negative if one user is in several children. It costs no privacy.

    >>> import gsh
    >>> country = gsh.PlainGaussian(c_u=1, sigma=7.5)
    >>> city = gsh.Mechanism(c_u=3, tau=1, tau_star=120, sigma=20)
    >>> found = gsh.rest(country, city, count=1000, counts=[300, 400]).counts
    >>> round(found.estimate, 1), round(found.low, 1), round(found.high, 1)
    (300.0, 241.3, 358.7)
    """
    chosen = level_of(level)
    for name, table in (("parent", parent), ("children", children)):
        checked_mechanism(name, table)
    if not isinstance(values, Mapping | None):
        raise InvalidParameter("values", f"must map each name to a pair, and {type(values).__name__} does not")
    pairs = {}
    for name, numbers in (values or {}).items():
        pointer = f"values/{pointer_part(str(name))}"
        if any(name not in table.column_names for table in (parent, children)):
            raise InvalidParameter(pointer, "must be a column of both mechanisms")
        if not isinstance(numbers, tuple | list) or len(numbers) != 2:
            raise InvalidParameter(pointer, "must be a pair: the value of the parent, and those of the children")
        pairs[name] = [real(pointer, numbers[0])], numbers[1]
    with renamed(("counts", "count")):
        own = published_numbers(
            parent, [real("count", count)], {name: pair[0] for name, pair in pairs.items()}, is_rounded, units
        )
    theirs = published_numbers(children, counts, {name: pair[1] for name, pair in pairs.items()}, is_rounded, units)
    found = {
        name: value_rest(
            parent,
            children,
            (one.place, theirs.values[name].place),
            float(one.numbers[0]),
            theirs.values[name].numbers,
            chosen,
            one.unit,
        )
        for name, one in own.values.items()
    }
    return Totals(chosen, count_rest(parent, children, float(own.counts[0]), theirs.counts, chosen, own.unit), found)


Integers: TypeAlias = Sequence[Integer] | NDArray[np.integer[Any]] | ColumnLike


def utility(
    mechanism: Mechanism,
    *,
    sizes: Integers,
    times: Integers | None = None,
    below: Real | None = None,
    quantiles: Reals = (0.5, 0.9, 0.95),
) -> Utility:
    """What the mechanism would publish of groups of these sizes: how many, and with which error.

        P(published | n) = Φ((n − τ*)/σ)  for n ≥ max(τ, 1),   and 0 for smaller groups     [KKWZ Algorithm 1]

    ``sizes`` are the true sizes of all groups. Or they are a histogram, and ``times`` says how many groups have each
    size. ``false_share`` is the share of the published groups that have fewer than ``below`` users (τ* if omitted):
    only noise lifted them. ``relative_errors`` are quantiles of |published − true| / true over the published groups.

    Nothing is released, and no noise is drawn. The result depends on the sizes exactly. So use public or made-up sizes,
    or keep the result to yourself.

    >>> import gsh
    >>> mechanism = gsh.Mechanism(c_u=3, tau=1, tau_star=120, sigma=20)
    >>> gsh.utility(mechanism, sizes=[20, 80, 110, 125, 300], times=[900, 40, 9, 5, 2])
    groups          8.68063 of 956 (0.908 %), standard deviation 2
    volume          1352.45 of 23415 (5.78 %)
    false share     42.5 % have fewer than 120 users
    relative error  12.5 % at 0.5, 50.8 % at 0.9, 57.6 % at 0.95
    """
    return published.utility(
        instance("mechanism", mechanism, Mechanism),
        integers("sizes", sizes),
        None if times is None else integers("times", times),
        None if below is None else real("below", below),
        reals("quantiles", quantiles),
    )


def integers(pointer: str, value: object) -> NDArray[np.integer[Any]]:
    """An array of integers. A Boolean is not an integer, also in a list of integers."""
    if not is_several(value):
        raise InvalidParameter(pointer, f"must be a list or an array of integers, not {type(value).__name__}")
    if isinstance(value, Sequence) and not all(_is_integer(kind) for kind in set(map(type, value))):
        raise InvalidParameter(pointer, "must be integers from 1 to 2^53")
    try:
        array = np.asarray(value) if len(value) else np.empty(0, np.int64)  # type: ignore[arg-type]
    except OverflowError:
        raise InvalidParameter(pointer, "must be integers from 1 to 2^53") from None
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InvalidParameter(pointer, "must be integers from 1 to 2^53")
    return array


def _is_integer(kind: type) -> bool:
    return issubclass(kind, int | np.integer) and kind is not bool
