"""To what published numbers are, or were, rounded: counts to integers, and each other column to its unit."""

import math
from collections.abc import Mapping

from gsh.accounting.mechanism import AnyMechanism
from gsh.arguments import Real, flag, real
from gsh.errors import InvalidParameter, pointer_part

__all__ = ["rounded_to"]


def rounded_to(
    mechanism: AnyMechanism, is_rounded: object, units: Mapping[str, Real] | None, argument: str = "is_rounded"
) -> tuple[float, ...] | None:
    """The units of the count and of each other column, 1 unless they are given; None without rounding."""
    if not isinstance(units, Mapping | None):
        raise InvalidParameter("units", f"must map names to units, and {type(units).__name__} does not")
    if not flag(argument, is_rounded):
        if units:
            raise InvalidParameter("units", "must be omitted unless the numbers are rounded")
        return None
    found = dict.fromkeys(mechanism.column_names, 1.0)
    for name, unit in (units or {}).items():
        pointer = f"units/{pointer_part(str(name))}"
        if name not in found:
            raise InvalidParameter(pointer, "must be of one of the names of the mechanism's aggregates")
        found[name] = real(pointer, unit)
        if not 0 < found[name] < math.inf:
            raise InvalidParameter(pointer, "must be greater than 0 and finite")
    return 1.0, *found.values()
