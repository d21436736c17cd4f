"""The change Δ that one user can make to the further columns of one group.

``box``, ``l1``, ``l2`` and ``vectors`` make it, from Python and numpy values. column_costs.py says what it costs.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn, TypeVar

from gsh.arguments import Integer, Matrix, Real, Reals, integer, is_several, matrix, real, reals
from gsh.errors import InvalidParameter, renamed

__all__ = [
    "MOST_BOX_COLUMNS",
    "MOST_C_U",
    "Box",
    "L1Norm",
    "L2Norm",
    "Sensitivity",
    "Vectors",
    "box",
    "caps",
    "check_sensitivity",
    "l1",
    "l2",
    "user_range",
    "vectors",
]

MOST_BOX_COLUMNS = 20
MOST_C_U = 10**18


# The repr of each is the call of the library that makes it.
@dataclass(frozen=True, slots=True, repr=False)
class Box:
    """lower ≤ Δ ≤ upper, per column. ``groups`` is the cap of each column; None: it may change in all C_u groups."""

    lower: tuple[float, ...]
    upper: tuple[float, ...]
    groups: tuple[int | None, ...] | None = None

    def __repr__(self) -> str:
        caps = "" if self.groups is None else f", groups={self.groups!r}"
        return f"box(lower={self.lower!r}, upper={self.upper!r}{caps})"

    def part(self, columns: Sequence[int]) -> "Box":
        """The box of some of its columns, without caps."""
        return Box(tuple(self.lower[j] for j in columns), tuple(self.upper[j] for j in columns))

    def without_caps(self) -> "Box":
        """The box if one user could change every column in all groups."""
        return Box(self.lower, self.upper)


@dataclass(frozen=True, slots=True, repr=False)
class L2Norm:
    """‖Δ‖₂ ≤ bound."""

    bound: float

    def __repr__(self) -> str:
        return f"l2({self.bound!r})"


@dataclass(frozen=True, slots=True, repr=False)
class L1Norm:
    """‖Δ‖₁ ≤ bound."""

    bound: float

    def __repr__(self) -> str:
        return f"l1({self.bound!r})"


@dataclass(frozen=True, slots=True, repr=False)
class Vectors:
    """Δ is one of these."""

    vectors: tuple[tuple[float, ...], ...]

    def __repr__(self) -> str:
        return f"vectors({self.vectors!r})"


Sensitivity = Box | L2Norm | L1Norm | Vectors

S = TypeVar("S", Box, L1Norm, L2Norm, Vectors)


def box(*, lower: Reals, upper: Reals, groups: Sequence[Integer | None] | None = None) -> Box:
    """lower ≤ Δ ≤ upper in each column: Boolean columns, or sums clipped per user.

    ``groups`` says in how many groups one user changes each column at most; None: in up to C_u.

    >>> import gsh
    >>> gsh.box(lower=[0, 0], upper=[1, 5])
    box(lower=(0.0, 0.0), upper=(1.0, 5.0))
    >>> gsh.box(lower=[0, 0], upper=[1, 5], groups=[None, 100])
    box(lower=(0.0, 0.0), upper=(1.0, 5.0), groups=(None, 100))
    """
    made = Box(reals("lower", lower), reals("upper", upper), caps(groups))
    return _valid(made, len(made.lower) or 1)


def l1(bound: Real) -> L1Norm:
    """‖Δ‖₁ ≤ bound: the absolute changes of one user's columns add up to at most the bound.

    >>> import gsh
    >>> gsh.l1(2)
    l1(2.0)
    """
    return _valid(L1Norm(real("bound", bound)), columns=1)


def l2(bound: Real) -> L2Norm:
    """‖Δ‖₂ ≤ bound: the Euclidean norm of one user's change is at most the bound.

    >>> import gsh
    >>> gsh.l2(1.5)
    l2(1.5)
    """
    return _valid(L2Norm(real("bound", bound)), columns=1)


def vectors(changes: Matrix) -> Vectors:
    """Δ is one of these rows: the full list of changes that one user can make to one group.

    >>> import gsh
    >>> gsh.vectors([[1, 0], [1, 1]])
    vectors(((1.0, 0.0), (1.0, 1.0)))
    """
    made = Vectors(matrix("changes", changes))
    columns = len(made.vectors[0]) or 1 if made.vectors else 1
    return _valid(made, columns, ("sensitivity/vectors", "changes"))


def caps(groups: Sequence[Integer | None] | None) -> tuple[int | None, ...] | None:
    """The cap of each column, or None if no column has one."""
    if groups is None:
        return None
    if not is_several(groups):
        raise InvalidParameter("groups", f"must be a list of integers or None, not {type(groups).__name__}")
    return tuple(None if cap is None else integer(f"groups/{j}", cap) for j, cap in enumerate(groups))


def user_range(sensitivity: Sensitivity, place: int) -> tuple[float, float]:
    """What one user adds to a column of one group, at least and at most."""
    match sensitivity:
        case Box(lower, upper, groups):
            is_capped = groups is not None and groups[place] is not None
            zero = (0.0,) if is_capped else ()  # beyond its cap
            return min((lower[place], *zero)), max((upper[place], *zero))
        case L2Norm(bound) | L1Norm(bound):
            return -bound, bound
        case Vectors(listed):
            column = [vector[place] for vector in listed]
            return min(column), max(column)


def _valid(made: S, columns: int, name: tuple[str, str] = ("sensitivity", "")) -> S:
    """The sensitivity, if it is one of so many columns. An error names the parameter of the call."""
    with renamed(name):
        check_sensitivity(made, columns, diagonal=True)
    return made


def check_sensitivity(sensitivity: Sensitivity, columns: int, *, diagonal: bool) -> None:
    """Refuse an invalid sensitivity, and one for another number of columns. ``diagonal``: whether Σ is diagonal."""
    match sensitivity:
        case Box(lower, upper, groups):
            _check_row("lower", lower, columns)
            _check_row("upper", upper, columns)
            for j, (low, high) in enumerate(zip(lower, upper, strict=True)):
                if low > high:
                    _refuse(f"lower/{j}", "must be at most upper")
            if columns > MOST_BOX_COLUMNS and not diagonal:
                _refuse("kind", f"box allows at most {MOST_BOX_COLUMNS} columns unless the covariance is diagonal")
            if groups is not None:
                _check_caps(groups, columns, diagonal=diagonal)
        case L2Norm(bound) | L1Norm(bound):
            if not 0 <= bound < math.inf:
                _refuse("bound", "must be at least 0 and finite")
        case Vectors(listed):
            if not listed:
                _refuse("vectors", "must list at least one vector")
            for i, vector in enumerate(listed):
                _check_row(f"vectors/{i}", vector, columns)


def _check_row(name: str, row: tuple[float, ...], columns: int) -> None:
    if len(row) != columns:
        _refuse(name, "must have one number per column")
    if not all(map(math.isfinite, row)):
        _refuse(name, "must be finite")


def _check_caps(groups: tuple[int | None, ...], columns: int, *, diagonal: bool) -> None:
    if len(groups) != columns:
        _refuse("groups", "must have one number per column, or null for a column without a cap")
    for j, cap in enumerate(groups):
        if cap is not None and (isinstance(cap, bool) or not isinstance(cap, int) or not 1 <= cap <= MOST_C_U):
            _refuse(f"groups/{j}", "must be an integer from 1 to c_u, or null for a column without a cap")
    if not diagonal:
        _refuse("groups", "must be omitted unless the covariance is diagonal")


def _refuse(name: str, detail: str) -> NoReturn:
    raise InvalidParameter(f"sensitivity/{name}", detail)
