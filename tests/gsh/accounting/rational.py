"""An independent μ₀: the same maxima in exact rational arithmetic, without any rounding of Σ⁻¹ and Δᵀ Σ⁻¹ Δ."""

from collections.abc import Iterable
from itertools import product

from flint import fmpq, fmpq_mat
from mpmath import mpf

from gsh.accounting.covariance import Matrix
from gsh.accounting.sensitivity import Box, L1Norm, Vectors
from tests import reference

__all__ = ["exact", "is_positive_definite", "largest_square", "smallest_eigenvalue"]


def exact(x: float) -> fmpq:
    return fmpq(*x.as_integer_ratio())


def is_positive_definite(matrix: Matrix) -> bool:
    """Every leading minor is positive (Sylvester)."""
    return all(_rational([row[:size] for row in matrix[:size]]).det() > 0 for size in range(1, len(matrix) + 1))


def largest_square(matrix: Matrix, sensitivity: Box | L1Norm | Vectors) -> fmpq:
    """max over the extreme points Δ of  Δᵀ Σ⁻¹ Δ"""
    inverse = _rational(matrix).inv()
    return max(_square(inverse, point) for point in _extreme_points(sensitivity, len(matrix)))


def smallest_eigenvalue(matrix: Matrix) -> mpf:
    """λ_min of Σ, from the reference's 150 digits."""
    return min(reference.mp.eigsy(reference.mp.matrix([list(row) for row in matrix]), eigvals_only=True))


def _square(inverse: fmpq_mat, point: tuple[float, ...]) -> fmpq:
    row = _rational([point])
    return (row * inverse * row.transpose())[0, 0]


def _extreme_points(sensitivity: Box | L1Norm | Vectors, size: int) -> Iterable[tuple[float, ...]]:
    match sensitivity:
        case Box(lower, upper):
            return product(*zip(lower, upper, strict=True))
        case L1Norm(bound):
            return (tuple(bound if i == j else 0.0 for j in range(size)) for i in range(size))
        case Vectors(vectors):
            return vectors


def _rational(rows: Iterable[Iterable[float]]) -> fmpq_mat:
    return fmpq_mat([[exact(entry) for entry in row] for row in rows])
