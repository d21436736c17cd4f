"""What further columns add to μ: a μ₀ per group, and less for columns that one user changes in fewer groups.

μ₀ is the most that one user can change the columns of one group, measured against their noise:

    μ₀² = max over Δ of  Δᵀ Σ⁻¹ Δ = max ‖L⁻¹ Δ‖²,   Σ = L Lᵀ                                  [KKWZ Sec. 5]

The maximum of this convex function is at an extreme point of the set of possible Δ. `box`, `l1` and `vectors` have
finitely many. Doubles with an error bound discard those that cannot be the largest, and balls decide among the rest.
For `l2` the maximum is the squared bound divided by the smallest eigenvalue of Σ.

A column of a box may have a cap of its own: one user changes it in at most n of its C_u groups. Columns with the same
cap share a μ₀. This needs a diagonal Σ, whose columns are independent.  [docs/math/column-caps.md]
"""

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np
from flint import arb
from numpy.typing import NDArray

from gsh.accounting.covariance import (
    Matrix,
    cholesky,
    dot,
    is_diagonal,
    prove_positive_definite,
    smallest_eigenvalue,
    solve_lower,
)
from gsh.accounting.numerics import balls
from gsh.accounting.sensitivity import MOST_C_U, Box, L1Norm, L2Norm, Sensitivity, Vectors, check_sensitivity
from gsh.arguments import Real, integer, real
from gsh.errors import InvalidParameter

__all__ = ["Capped", "ColumnCaps", "ColumnCosts", "capped_of", "column_costs", "mu_0"]

_CHUNK = 1 << 14
# Symmetric inputs have thousands of ties. Beyond this many, μ₀ is the certified bound from doubles.
_MOST_CONTENDERS = 1000
_ULP = 2.0**-52

Doubles = NDArray[np.float64]
ColumnCaps: TypeAlias = Mapping[int, Real] | tuple[tuple[int, Real], ...]
"""By cap: μ₀ of the columns that one user changes in at most this many groups."""


class Capped(NamedTuple):
    """Columns that one user changes in at most ``groups`` groups, and the μ₀ of these columns, rounded up."""

    groups: int
    mu_0: float


@dataclass(frozen=True, slots=True)
class ColumnCosts:
    """μ₀ of the columns without a cap, and of those with each cap, by rising caps."""

    mu_0: float = 0.0
    capped: tuple[Capped, ...] = ()

    def squared(self, groups: int) -> arb:
        """The most that the columns add to μ² in so many groups, as a ball:  a μ₀² + Σ min(a, n) μ_n²."""
        total = groups * arb(self.mu_0) ** 2
        for part in self.capped:
            total += min(groups, part.groups) * arb(part.mu_0) ** 2
        return total

    @property
    def uncapped(self) -> "ColumnCosts":
        """The costs if one user could change every column in all groups, rounded up."""
        if not self.capped:
            return self
        return ColumnCosts(balls.round_up(lambda: [self.squared(1).sqrt()])[0])

    @property
    def capped_squared(self) -> arb:
        """The most that the columns with caps add to μ² in any number of groups, as a ball."""
        return replace(self, mu_0=0.0).squared(MOST_C_U)

    def cut(self, c_u: int) -> "ColumnCosts":
        """The same with caps of at most C_u. A larger cap bounds nothing."""
        if all(part.groups <= c_u for part in self.capped):
            return self
        return replace(self, capped=tuple(Capped(min(part.groups, c_u), part.mu_0) for part in self.capped))

    def divided(self, sigma: float) -> "ColumnCosts":
        """Approximately the costs with σ times the noise."""
        parts = tuple(Capped(part.groups, part.mu_0 / sigma) for part in self.capped)
        return ColumnCosts(self.mu_0 / sigma, parts)


def column_costs(covariance: Matrix, sensitivity: Sensitivity, pointer: str = "covariance") -> ColumnCosts:
    """What the columns add to μ, after a proof that Σ is positive definite. ``pointer`` names Σ in errors."""
    if not isinstance(sensitivity, Box) or sensitivity.groups is None:
        return ColumnCosts(mu_0(covariance, sensitivity, pointer))
    prove_positive_definite(covariance, pointer)
    check_sensitivity(sensitivity, columns=len(covariance), diagonal=is_diagonal(covariance))

    def cost(cap: int | None) -> float:
        columns = [j for j, groups in enumerate(sensitivity.groups or ()) if groups == cap]
        variances = tuple(tuple(covariance[i][j] for j in columns) for i in columns)
        return mu_0(variances, sensitivity.part(columns), pointer) if columns else 0.0

    caps = sorted({cap for cap in sensitivity.groups if cap is not None})
    return ColumnCosts(cost(None), tuple(Capped(cap, cost(cap)) for cap in caps))


def capped_of(capped: ColumnCaps | None) -> tuple[Capped, ...]:
    """The columns with caps of their own, by rising caps."""
    if capped is None or capped == ():
        return ()
    if not isinstance(capped, tuple):
        if not isinstance(capped, Mapping):
            raise InvalidParameter("capped", f"must be a mapping from a cap to its mu_0, not {type(capped).__name__}")
        capped = tuple(capped.items())
    parts = [Capped(integer("capped", cap), real(f"capped/{cap}", cost)) for cap, cost in capped]
    return tuple(sorted(parts, key=lambda part: part.groups))


def mu_0(covariance: Matrix, sensitivity: Sensitivity, pointer: str = "covariance") -> float:
    """μ₀, rounded up, after a proof that Σ is positive definite. ``pointer`` names Σ in errors."""
    bits = prove_positive_definite(covariance, pointer)
    check_sensitivity(sensitivity, columns=len(covariance), diagonal=is_diagonal(covariance))
    if isinstance(sensitivity, L2Norm):
        return _l2(covariance, sensitivity.bound)
    reach = _reach(sensitivity, columns=len(covariance))
    if not reach.any():
        return 0.0
    contenders, bound = _screen(covariance, _extreme_points(sensitivity, covariance), reach, bits)
    if len(contenders) > _MOST_CONTENDERS:
        return balls.round_up(lambda: [bound])[0]
    return balls.round_up(lambda: [_largest_norm(covariance, contenders)])[0]


def _extreme_points(sensitivity: Box | L1Norm | Vectors, covariance: Matrix) -> Iterator[Doubles]:
    """The extreme points Δ, in chunks of rows."""
    columns = len(covariance)
    match sensitivity:
        case L1Norm(bound):
            yield bound * np.eye(columns)
        case Vectors(vectors):
            yield np.array(vectors)
        case Box(lower, upper) if is_diagonal(covariance):
            yield np.array([[max(abs(low), abs(high)) for low, high in zip(lower, upper, strict=True)]])
        case Box(lower, upper):
            bit = np.arange(columns)
            for start in range(0, 1 << columns, _CHUNK):
                corner = np.arange(start, min(start + _CHUNK, 1 << columns))
                yield np.where((corner[:, None] >> bit) & 1, np.array(upper), np.array(lower))


def _reach(sensitivity: Box | L1Norm | Vectors, columns: int) -> Doubles:
    """The largest |Δ| of each column."""
    match sensitivity:
        case L1Norm(bound):
            return np.full(columns, bound)
        case Vectors(vectors):
            return np.asarray(np.abs(np.array(vectors)).max(axis=0))
        case Box(lower, upper):
            return np.maximum(np.abs(lower), np.abs(upper))


def _screen(covariance: Matrix, points: Iterator[Doubles], reach: Doubles, bits: int) -> tuple[Doubles, arb]:
    """The Δ that may have the largest ‖L⁻¹Δ‖, and an upper bound on it, from doubles with an error bound.

    Columns are measured in units of their reach and L⁻¹ in units of its largest entry, so nothing overflows.
    """
    units = np.where(reach > 0, reach, 1.0)
    inverse, radius, scale = _scaled_inverse(covariance, units, bits)
    columns = len(reach)
    # |L⁻¹Δ − fl(MΔ)| ≤ slack, row by row: the radius of M, one rounding of Δ/units, and k + 1 of the sum; with margin.
    size = np.abs(inverse).sum(axis=1)
    slack = radius.sum(axis=1) + (columns + 4) * _ULP * size
    allowance = float(np.sum(2 * size * slack + slack**2) + (columns + 2) * _ULP * np.sum(size**2))

    best = 0.0
    kept: list[tuple[Doubles, Doubles]] = []
    for rows in points:
        images = (rows / units) @ inverse.T
        squares = np.einsum("ij,ij->i", images, images)
        best = max(best, float(squares.max()))
        close = squares >= best - 2 * allowance
        kept.append((rows[close], squares[close]))
    contenders = [rows[squares >= best - 2 * allowance] for rows, squares in kept]
    bound = balls.at_precision(bits, lambda: (arb(best) + arb(allowance)).sqrt() * scale)
    return np.concatenate(contenders), bound


def _scaled_inverse(covariance: Matrix, units: Doubles, bits: int) -> tuple[Doubles, Doubles, arb]:
    """M, its entrywise error, and the scale, with L⁻¹ diag(units) = M · scale and every |M| ≤ 1."""

    def compute() -> tuple[Doubles, Doubles, arb]:
        factor = cholesky(covariance)
        assert factor is not None  # the proof holds at these bits
        indices = range(len(covariance))
        unit = [arb(float(u)) for u in units]
        by_column = [solve_lower(factor, [unit[j] if i == j else arb(0) for i in indices]) for j in indices]
        scale = functools.reduce(arb.max, (abs(entry).upper() for column in by_column for entry in column))
        inverse = [[by_column[j][i] / scale for j in indices] for i in indices]
        middle = np.array([[float(entry.mid()) for entry in row] for row in inverse])
        radius = np.array([[float(entry.rad().upper()) for entry in row] for row in inverse])
        # Rounding midpoints and radii to doubles errs by half an ulp of each, or of the smallest double.
        return middle, radius * (1 + _ULP) + np.abs(middle) * _ULP + np.finfo(float).tiny, scale

    return balls.at_precision(bits, compute)


def _largest_norm(covariance: Matrix, rows: Doubles) -> arb:
    """max ‖L⁻¹Δ‖ over the rows Δ, as a ball."""
    factor = cholesky(covariance)
    if factor is None:
        return balls.ANYTHING
    largest = arb(0)
    for row in rows.tolist():
        image = solve_lower(factor, [arb(entry) for entry in row])
        largest = largest.max(dot(image, image))
    return largest.sqrt()


def _l2(covariance: Matrix, bound: float) -> float:
    """bound/√λ_min(Σ), rounded up."""

    def ball() -> list[arb]:
        smallest = smallest_eigenvalue(covariance)
        return [arb(bound) / smallest.sqrt() if smallest > 0 else balls.ANYTHING]

    return balls.round_up(ball)[0] if bound > 0 else 0.0
