"""Balanced noise: every column takes the same share of μ² as the count, so nobody writes a covariance by hand.

One user changes column j by at most b_j in each of n_j groups. Noise of standard deviation s_j = r_j σ on it gives

    μ² = (C_u + Σ n_j b_j²/r_j²)/σ²,        r_j = b_j √(n_j/(C_u w_j))

so column j takes w_j times the share of the count. The weights w_j are 1 unless given.  [docs/math/column-caps.md]
"""

import math
from collections.abc import Sequence
from fractions import Fraction

from gsh.accounting.aggregates import RelativeAggregates, check_caps
from gsh.accounting.sensitivity import Box, check_sensitivity
from gsh.errors import InvalidParameter

__all__ = ["balanced"]


def balanced(
    names: tuple[str, ...], box: Box, c_u: int | None, weights: Sequence[float] | None = None
) -> RelativeAggregates:
    """Columns with balanced noise, relative to σ. Without caps they do not depend on C_u, which may be None then."""
    columns = len(names)
    check_sensitivity(box, columns, diagonal=True)
    shares = tuple(weights) if weights is not None else (1.0,) * columns
    if len(shares) != columns:
        raise InvalidParameter("weights", "must have one number per column")
    for j, share in enumerate(shares):
        if not 0 < share < math.inf:
            raise InvalidParameter(f"weights/{j}", "must be greater than 0 and finite")
    if c_u is None and box.groups is not None and any(cap is not None for cap in box.groups):
        raise InvalidParameter("c_u", "must be given: the balanced noise of columns with caps depends on it")
    if c_u is not None:
        check_caps(box, c_u, "sensitivity/groups")
    variances = [_variance(box, j, c_u, share) for j, share in enumerate(shares)]
    matrix = tuple(tuple(v if i == j else 0.0 for j in range(columns)) for i, v in enumerate(variances))
    return RelativeAggregates(names=names, relative_covariance=matrix, sensitivity=box, weights=shares)


def _variance(box: Box, column: int, c_u: int | None, weight: float) -> float:
    """r_j², to the nearest double."""
    reach = max(abs(box.lower[column]), abs(box.upper[column]))
    if reach == 0:
        detail = "must allow a change in every column: a column that never changes would get no noise"
        raise InvalidParameter(f"sensitivity/upper/{column}", detail)
    cap = None if box.groups is None else box.groups[column]
    part = Fraction(1) if cap is None or c_u is None else Fraction(cap, c_u)
    try:
        variance = float(Fraction(reach) ** 2 * part / Fraction(weight))
    except OverflowError:
        variance = math.inf
    if not 0 < variance < math.inf:
        detail = "must be a size whose square is a double, also divided by its weight"
        raise InvalidParameter(f"sensitivity/upper/{column}", detail)
    return variance
