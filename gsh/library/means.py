"""Means per user, and ratios of two columns, with intervals. They cost no privacy: they come from published numbers."""

import math
from collections.abc import Mapping
from types import MappingProxyType

from gsh.accounting.mechanism import AnyMechanism, checked_mechanism
from gsh.accounting.sensitivity import Box, user_range
from gsh.accuracy.bounds import centred
from gsh.accuracy.intervals import Interval
from gsh.accuracy.means import Range, mean_intervals
from gsh.accuracy.ratios import ratio_intervals
from gsh.arguments import Real, Reals, real
from gsh.errors import InvalidParameter, pointer_part
from gsh.library.measures import COUNT
from gsh.library.published_numbers import PublishedColumn, PublishedNumbers, level_of, published_numbers

__all__ = ["mean_columns", "means", "ratio_columns", "ratios"]

_CLOSE = 1e-9


def means(
    mechanism: AnyMechanism,
    *,
    counts: Reals,
    values: Mapping[str, Reals],
    means: Mapping[str, tuple[Real, Real]],
    level: Real = 0.95,
    is_rounded: bool = False,
    units: Mapping[str, Real] | None = None,
) -> Mapping[str, Interval]:
    """The means per user of published groups, at a level of confidence.  [docs/accuracy.md, section 8]

    ``means`` has the range of each: what one user has, at least and at most. The mean of ``seconds`` comes from the
    column ``seconds_centred`` of the mechanism: the sum of what each user has, less the middle of the range. (If there
    is no such column, from the sum ``seconds``.) The intervals take into account that only groups with a count of at
    least τ* are published. The mean of a public group has an estimate if its count is clearly not 0, and else NaN.

    >>> import gsh
    >>> columns = gsh.Aggregates(
    ...     names=["seconds_centred"], covariance=[[6000**2]], sensitivity=gsh.box(lower=[-300], upper=[300])
    ... )
    >>> mechanism = gsh.Mechanism(c_u=3, tau=1, tau_star=120, sigma=20, aggregates=columns)
    >>> published = {"seconds_centred": [-9000, -60000]}
    >>> found = gsh.means(mechanism, counts=[150, 400], values=published, means={"seconds": (0, 600)})["seconds"]
    >>> found.low.round(1), found.estimate.round(1), found.high.round(1)
    (array([149.7, 115.2]), array([239.2, 150. ]), array([319.3, 181.9]))
    """
    chosen = level_of(level)
    checked_mechanism("mechanism", mechanism)
    given = published_numbers(mechanism, counts, values, is_rounded, units)
    found = {
        name: _mean(mechanism, given, column, of, chosen)
        for name, (column, of) in mean_columns(mechanism, given, means).items()
    }
    return MappingProxyType(found)


def ratios(
    mechanism: AnyMechanism,
    *,
    counts: Reals,
    values: Mapping[str, Reals],
    ratios: Mapping[str, tuple[str, str]],
    level: Real = 0.95,
    is_rounded: bool = False,
    units: Mapping[str, Real] | None = None,
) -> Mapping[str, Interval]:
    """The ratios of the sums of two columns, at a level of confidence.  [docs/accuracy.md, section 9]

    ``ratios`` has two columns for each name, such as ``{"likes_per_view": ("likes", "views")}``. The second may be
    ``count``, the number of users. If the second sum may be 0, an end may be infinite, and there is no estimate (NaN).

    >>> import gsh
    >>> columns = gsh.Aggregates(
    ...     names=["likes", "views"], covariance=[[400, 0], [0, 900]], sensitivity=gsh.box(lower=[0, 0], upper=[5, 20])
    ... )
    >>> mechanism = gsh.Mechanism(c_u=3, tau=1, tau_star=120, sigma=20, aggregates=columns)
    >>> numbers = {"likes": [310, 95], "views": [1240, 50]}
    >>> found = gsh.ratios(mechanism, counts=[150, 400], values=numbers, ratios={"per_view": ("likes", "views")})
    >>> found["per_view"].low.round(3), found["per_view"].estimate.round(3), found["per_view"].high.round(3)
    (array([0.217, 0.734]), array([0.25,  nan]), array([0.284,   inf]))
    """
    chosen = level_of(level)
    checked_mechanism("mechanism", mechanism)
    given = published_numbers(mechanism, counts, values, is_rounded, units)
    found = {}
    for name, (one, other) in ratio_columns(mechanism, given, ratios).items():
        if isinstance(other, Range):
            found[name] = _mean(mechanism, given, one, other, chosen)
        else:
            places, numbers, steps = zip(*((each.place, each.numbers, each.unit) for each in (one, other)), strict=True)
            found[name] = ratio_intervals(mechanism, places, numbers, chosen, steps)
    return MappingProxyType(found)


def _mean(
    mechanism: AnyMechanism, given: PublishedNumbers, column: PublishedColumn, of: Range, level: float
) -> Interval:
    units = given.unit, column.unit
    return mean_intervals(mechanism, column.place, given.counts, column.numbers, of, level, units)


def mean_columns(
    mechanism: AnyMechanism, given: PublishedNumbers, means: object
) -> dict[str, tuple[PublishedColumn, Range]]:
    """The column of each mean, and its range."""
    found = {}
    for name, bounds in _mapping("means", means, "a range").items():
        pointer = f"means/{pointer_part(name)}"
        column = centred(name) if centred(name) in mechanism.column_names else name
        one = _given(mechanism, given, pointer, column)
        found[name] = one, _range(mechanism, one.place, pointer, bounds)
    return found


def ratio_columns(
    mechanism: AnyMechanism, given: PublishedNumbers, ratios: object
) -> dict[str, tuple[PublishedColumn, PublishedColumn | Range]]:
    """The two columns of each ratio. A ratio to the count is a mean: it has a range in place of the second one."""
    found: dict[str, tuple[PublishedColumn, PublishedColumn | Range]] = {}
    for name, pair in _mapping("ratios", ratios, "two columns").items():
        pointer = f"ratios/{pointer_part(name)}"
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise InvalidParameter(pointer, "must be a pair of columns, of which the second may be count")
        one = _given(mechanism, given, f"{pointer}/0", pair[0])
        if pair[1] == COUNT:
            assert mechanism.aggregates is not None
            found[name] = one, Range(*user_range(mechanism.aggregates.sensitivity, one.place))
            continue
        other = _given(mechanism, given, f"{pointer}/1", pair[1])
        if one.place == other.place:
            raise InvalidParameter(pointer, "must be two different columns")
        found[name] = one, other
    return found


def _mapping(pointer: str, given: object, what: str) -> Mapping[str, tuple[object, ...]]:
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise InvalidParameter(pointer, f"must map names to {what} each")
    return given


def _given(mechanism: AnyMechanism, given: PublishedNumbers, pointer: str, column: object) -> PublishedColumn:
    """The published numbers of a column."""
    if column not in mechanism.column_names:
        raise InvalidParameter(pointer, f"must be of a column of the mechanism: {', '.join(mechanism.column_names)}")
    if column not in given.values:
        raise InvalidParameter("values", f"must have {column}")
    return given.values[str(column)]


def _range(mechanism: AnyMechanism, place: int, pointer: str, bounds: object) -> Range:
    """The range of a mean, with the middle that the column is around: its box is [lower − middle, upper − middle]."""
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise InvalidParameter(pointer, "must be a pair: lower, upper")
    lower, upper = (real(pointer, bound) for bound in bounds)
    if not (math.isfinite(lower) and math.isfinite(upper) and lower <= upper):
        raise InvalidParameter(pointer, "must be two finite bounds, the lower one first")
    assert mechanism.aggregates is not None
    sensitivity = mechanism.aggregates.sensitivity
    if not isinstance(sensitivity, Box):
        raise InvalidParameter(pointer, "must be of a mechanism with a box as its sensitivity")
    width = sensitivity.upper[place] - sensitivity.lower[place]
    if abs(width - (upper - lower)) > _CLOSE * max(width, upper - lower):
        raise InvalidParameter(pointer, "must be as wide as the box of its column")
    middle = lower - sensitivity.lower[place]
    is_capped = sensitivity.groups is not None and sensitivity.groups[place] is not None
    # Beyond its cap a user counts as the middle.
    return Range(min(lower, middle), max(upper, middle), middle) if is_capped else Range(lower, upper, middle)
