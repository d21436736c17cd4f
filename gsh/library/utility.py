"""What a mechanism would publish of groups of given sizes, from Python and numpy values."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gsh.accounting.mechanism import Mechanism
from gsh.accuracy import utility as core
from gsh.accuracy.utility import Utility
from gsh.arguments import Column, Integer, Real, Reals, instance, is_several, real, reals
from gsh.errors import InvalidParameter

__all__ = ["Integers", "integers", "utility"]

Integers: TypeAlias = Sequence[Integer] | NDArray[np.integer[Any]] | Column


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
    return core.utility(
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
