"""The change that one user can make to the further columns of one group, made from Python and numpy values."""

from collections.abc import Sequence
from typing import TypeVar

from gsh.accounting.errors import InvalidParameter
from gsh.accounting.sensitivity import Box, L1Norm, L2Norm, Vectors, check_sensitivity
from gsh.library.arguments import Integer, Matrix, Real, Reals, integer, is_several, matrix, real, reals, renamed

__all__ = ["box", "l1", "l2", "vectors"]

S = TypeVar("S", Box, L1Norm, L2Norm, Vectors)

_SENSITIVITY = ("aggregates/sensitivity/", "")


def box(*, lower: Reals, upper: Reals, groups: Sequence[Integer | None] | None = None) -> Box:
    """lower ≤ Δ ≤ upper in each column: Boolean columns, or sums clipped per user.

    ``groups`` says in how many groups one user changes each column at most; None: in up to C_u.

    >>> import gsh
    >>> gsh.box(lower=[0, 0], upper=[1, 5])
    box(lower=(0.0, 0.0), upper=(1.0, 5.0))
    >>> gsh.box(lower=[0, 0], upper=[1, 5], groups=[None, 100])
    box(lower=(0.0, 0.0), upper=(1.0, 5.0), groups=(None, 100))
    """
    made = Box(reals("lower", lower), reals("upper", upper), _caps(groups))
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
    return _valid(made, columns, ("aggregates/sensitivity/vectors", "changes"))


def _caps(groups: Sequence[Integer | None] | None) -> tuple[int | None, ...] | None:
    if groups is None:
        return None
    if not is_several(groups):
        raise InvalidParameter("groups", f"must be a list of integers or None, not {type(groups).__name__}")
    return tuple(None if cap is None else integer(f"groups/{j}", cap) for j, cap in enumerate(groups))


def _valid(made: S, columns: int, name: tuple[str, str] = _SENSITIVITY) -> S:
    """The sensitivity, if it is one of so many columns. An error names the parameter of the call."""
    with renamed(name):
        check_sensitivity(made, columns, diagonal=True)
    return made
