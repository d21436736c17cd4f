"""Σ, the covariance of the noise on the aggregate columns: a matrix proven symmetric and positive definite."""

from flint import arb

from app.accounting import balls
from app.accounting.errors import InvalidParameter

__all__ = ["Matrix", "Triangle", "cholesky", "is_diagonal", "prove_positive_definite", "solve_lower"]

Matrix = tuple[tuple[float, ...], ...]
Triangle = list[list[arb]]

# Doubles whose positive definiteness needs more bits than this are singular for every practical purpose.
_MOST_BITS = 640


def prove_positive_definite(matrix: Matrix, pointer: str) -> int:
    """The precision at which Σ = L Lᵀ is proven to have real L with a positive diagonal, else an error."""
    size = len(matrix)
    if size == 0 or any(len(row) != size for row in matrix):
        raise InvalidParameter(pointer, "must be a square matrix with one row and one column per name")
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


def cholesky(matrix: Matrix) -> Triangle | None:
    """The balls of L with Σ = L Lᵀ, or None where the present precision cannot prove that there is one."""
    return _factorise(matrix)[0]


def solve_lower(factor: Triangle, right: list[arb]) -> list[arb]:
    """The x with L x = right, by forward substitution."""
    solution: list[arb] = []
    for row, value in zip(factor, right, strict=True):
        known = sum((entry * x for entry, x in zip(row, solution, strict=False)), arb(0))
        solution.append((value - known) / row[-1])
    return solution


def is_diagonal(matrix: Matrix) -> bool:
    return all(entry == 0 for i, row in enumerate(matrix) for j, entry in enumerate(row) if i != j)


def _factorise(matrix: Matrix) -> tuple[Triangle | None, bool]:
    """L, or None and whether a pivot is certainly not positive."""
    factor: Triangle = []
    for i, entries in enumerate(matrix):
        row = solve_lower(factor, [arb(entry) for entry in entries[:i]])
        pivot = arb(entries[i]) - sum((x * x for x in row), arb(0))
        if not pivot > 0:
            return None, bool(pivot <= 0)
        factor.append([*row, pivot.sqrt()])
    return factor, False
