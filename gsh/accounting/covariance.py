"""Σ, the covariance of the noise on the other columns: a symmetric matrix, proven positive definite."""

import itertools
import math
from collections.abc import Sequence

import numpy as np
from flint import arb, ctx

from gsh.accounting.numerics import balls
from gsh.errors import InvalidParameter

__all__ = [
    "Matrix",
    "Triangle",
    "cholesky",
    "dot",
    "is_diagonal",
    "prove_positive_definite",
    "smallest_eigenvalue",
    "solve_lower",
]

Matrix = tuple[tuple[float, ...], ...]
Triangle = list[list[arb]]

# A matrix that needs more bits than this for the proof is singular for every practical purpose.
_MOST_BITS = 640
# The lower bound on λ_min is tried this close, after half the precision: another eigenvalue may be closer still.
_COARSER_BITS = (52, 40, 30)


def prove_positive_definite(matrix: Matrix, pointer: str) -> int:
    """The precision that proves Σ = L Lᵀ with a real L and a positive diagonal, or an error."""
    size = len(matrix)
    if size == 0 or any(len(row) != size for row in matrix):
        raise InvalidParameter(pointer, "must be a square matrix with one row and one column per name")
    if not all(map(math.isfinite, itertools.chain.from_iterable(matrix))):
        raise InvalidParameter(pointer, "must be finite")
    if any(matrix[i][j] != matrix[j][i] for i in range(size) for j in range(i)):
        raise InvalidParameter(pointer, "must be symmetric")
    for bits in balls.PRECISIONS:
        if bits > _MOST_BITS:
            break
        factor, certainly_not = balls.at_precision(bits, lambda: _factorise(matrix))
        if factor is not None:
            return bits
        if certainly_not:
            break
    raise InvalidParameter(pointer, "must be positive definite, provably so in interval arithmetic")


def cholesky(matrix: Sequence[Sequence[float | arb]]) -> Triangle | None:
    """L with Σ = L Lᵀ, in balls; None if the present precision cannot prove that L exists."""
    return _factorise(matrix)[0]


def dot(left: list[arb], right: list[arb]) -> arb:
    return sum((x * y for x, y in zip(left, right, strict=True)), arb(0))


def solve_lower(factor: Triangle, right: list[arb]) -> list[arb]:
    """The x with L x = right, by forward substitution."""
    solution: list[arb] = []
    for row, value in zip(factor, right, strict=True):
        solution.append((value - dot(row[:-1], solution)) / row[-1])
    return solution


def smallest_eigenvalue(matrix: Matrix) -> arb:
    """λ_min(Σ), as a ball that is valid even if eigenvalues are close together.

    The upper bound is a Rayleigh quotient, after inverse iteration. The lower bound t has a Cholesky factor of Σ − t I.
    """
    if is_diagonal(matrix):
        return arb(min(row[i] for i, row in enumerate(matrix)))
    factor = cholesky(matrix)
    if factor is None:
        return balls.ANYTHING
    vector = [arb(entry) for entry in _smallest_eigenvector(matrix)]
    for _ in range(8 + ctx.prec // 20):
        vector = [entry.mid() for entry in _solve_upper(factor, solve_lower(factor, vector))]
        length = dot(vector, vector).sqrt()
        vector = [(entry / length).mid() for entry in vector]
    image = [dot([arb(entry) for entry in row], vector) for row in matrix]
    above = (dot(vector, image) / dot(vector, vector)).upper()
    for bits in (ctx.prec // 2, *_COARSER_BITS):
        below = (above * (1 - arb(2) ** -bits)).lower()
        if cholesky(_shifted(matrix, below)) is not None:
            return below.union(above)
    return balls.ANYTHING


def is_diagonal(matrix: Sequence[Sequence[float]]) -> bool:
    return all(entry == 0 for i, row in enumerate(matrix) for j, entry in enumerate(row) if i != j)


def _shifted(matrix: Matrix, shift: arb) -> list[list[float | arb]]:
    """Σ − shift · I."""
    return [[entry - shift if i == j else entry for j, entry in enumerate(row)] for i, row in enumerate(matrix)]


def _solve_upper(factor: Triangle, right: list[arb]) -> list[arb]:
    """The x with Lᵀ x = right, by back substitution."""
    solution = [arb(0)] * len(right)
    for i in reversed(range(len(right))):
        column = [row[i] for row in factor[i + 1 :]]
        solution[i] = (right[i] - dot(column, solution[i + 1 :])) / factor[i][i]
    return solution


def _smallest_eigenvector(matrix: Matrix) -> list[float]:
    """The eigenvector of λ_min, roughly. If doubles fail, any vector is a valid start."""
    try:
        vector = np.linalg.eigh(np.array(matrix))[1][:, 0]
    except np.linalg.LinAlgError:
        vector = np.full(len(matrix), np.nan)
    return vector.tolist() if np.isfinite(vector).all() else [1.0] * len(matrix)


def _factorise(matrix: Sequence[Sequence[float | arb]]) -> tuple[Triangle | None, bool]:
    """L, or None; and whether a pivot is certainly not positive."""
    factor: Triangle = []
    for i, entries in enumerate(matrix):
        row = solve_lower(factor, [arb(entry) for entry in entries[:i]])
        pivot = arb(entries[i]) - dot(row, row)
        if not pivot > 0:
            return None, bool(pivot <= 0)
        factor.append([*row, pivot.sqrt()])
    return factor, False
