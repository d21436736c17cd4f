"""The mechanism and its columns, made from Python and numpy values.

These are the core's own classes with arguments that are easier to give. Their instances work everywhere in the core.
"""

import dataclasses
from collections.abc import Sequence
from typing import TypeVar

from gsh.accounting import mechanism as core
from gsh.accounting.calibration import draft
from gsh.accounting.errors import InvalidParameter
from gsh.accounting.sensitivity import Box, L1Norm, L2Norm, Sensitivity, Vectors
from gsh.library.arguments import Integer, Matrix, Real, Reals, integer, matrix, real, reals, texts

__all__ = ["Aggregates", "Mechanism", "RelativeAggregates", "as_mechanism", "box", "l1", "l2", "vectors"]

T = TypeVar("T")


class Aggregates(core.Aggregates):
    """The columns released with the count, the covariance Σ of their noise, and the change Δ that one user can make.

        μ₀² = max over Δ of  Δᵀ Σ⁻¹ Δ                                      [KKWZ Sec. 5]

    ``mu_0`` is rounded up. Making the object proves that Σ is positive definite.

    >>> import gsh
    >>> columns = gsh.Aggregates(
    ...     names=["likes", "shares"],
    ...     covariance=[[400, 0], [0, 100]],
    ...     sensitivity=gsh.box(lower=[0, 0], upper=[1, 1]),
    ... )
    >>> columns.mu_0
    0.1118033988749895
    """

    __slots__ = ()

    def __init__(self, *, names: Sequence[str], covariance: Matrix, sensitivity: Sensitivity) -> None:
        super().__init__(
            names=texts("aggregates/names", names),
            covariance=matrix("aggregates/covariance", covariance),
            sensitivity=_checked(sensitivity),
        )


class RelativeAggregates(draft.RelativeAggregates):
    """Columns whose noise scales with σ: Σ = σ² · ``relative_covariance``. For ``calibrate`` and ``compare``.

    >>> import gsh
    >>> columns = gsh.RelativeAggregates(
    ...     names=["likes"], relative_covariance=[[0.25]], sensitivity=gsh.box(lower=[0], upper=[1])
    ... )
    >>> found = gsh.calibrate(c_u=10, epsilon=1, delta=1e-6, aggregates=columns)
    >>> found.mechanism.aggregates.covariance[0][0] / found.mechanism.sigma**2
    0.25
    """

    __slots__ = ()

    def __init__(self, *, names: Sequence[str], relative_covariance: Matrix, sensitivity: Sensitivity) -> None:
        super().__init__(
            names=texts("aggregates/names", names),
            relative_covariance=matrix("aggregates/relative_covariance", relative_covariance),
            sensitivity=_checked(sensitivity),
        )


class Mechanism(core.Mechanism):
    """The Gaussian sparse histogram mechanism.  [KKWZ Algorithm 1]

    It drops groups with fewer than ``tau`` users, adds Gaussian noise of standard deviation ``sigma`` to the counts,
    and drops groups with a noisy count below ``tau_star``. ``c_u`` is the most groups that one user can touch.
    Further columns are ``aggregates``. For accounting alone, their ``mu_0`` is enough.

    >>> import gsh
    >>> gsh.Mechanism(c_u=51914, tau=1, tau_star=13948, sigma=2228)
    Mechanism(c_u=51914, tau=1, tau_star=13948.0, sigma=2228.0)
    """

    __slots__ = ()

    def __init__(
        self,
        *,
        c_u: Integer,
        tau: Integer = 1,
        tau_star: Real,
        sigma: Real,
        mu_0: Real = 0.0,
        aggregates: core.Aggregates | None = None,
    ) -> None:
        if not isinstance(aggregates, core.Aggregates | None):
            raise InvalidParameter("aggregates", f"must be gsh.Aggregates, not {type(aggregates).__name__}")
        number = real("mu_0", mu_0)
        super().__init__(
            c_u=integer("c_u", c_u),
            tau=integer("tau", tau),
            tau_star=real("tau_star", tau_star),
            sigma=real("sigma", sigma),
            # dataclasses.replace gives both: the columns, and the μ₀ that follows from them.
            mu_0=0.0 if aggregates is not None and number == aggregates.mu_0 else number,
            aggregates=aggregates,
        )

    def __repr__(self) -> str:
        """The call that makes it."""
        given = f"c_u={self.c_u}, tau={self.tau}, tau_star={self.tau_star!r}, sigma={self.sigma!r}"
        if self.aggregates is not None:
            given += f", aggregates={self.aggregates!r}"
        elif self.mu_0:
            given += f", mu_0={self.mu_0!r}"
        return f"Mechanism({given})"


def as_mechanism(value: core.Mechanism) -> Mechanism:
    """The same mechanism as an object of this library. Its μ₀ is certified already and is not computed again."""
    if isinstance(value, Mechanism):
        return value
    if not isinstance(value, core.Mechanism):
        raise InvalidParameter("mechanism", f"must be a gsh.Mechanism, not {type(value).__name__}")
    mechanism = _as(Mechanism, value)
    if value.aggregates is not None and not isinstance(value.aggregates, Aggregates):
        object.__setattr__(mechanism, "aggregates", _as(Aggregates, value.aggregates))
    return mechanism


def box(*, lower: Reals, upper: Reals) -> Box:
    """lower ≤ Δ ≤ upper in each column: Boolean columns, or sums clipped per user.

    >>> import gsh
    >>> gsh.box(lower=[0, 0], upper=[1, 5])
    Box(lower=(0.0, 0.0), upper=(1.0, 5.0))
    """
    return Box(reals("aggregates/sensitivity/lower", lower), reals("aggregates/sensitivity/upper", upper))


def l1(bound: Real) -> L1Norm:
    """‖Δ‖₁ ≤ bound: the absolute changes of one user's columns add up to at most the bound.

    >>> import gsh
    >>> gsh.l1(2)
    L1Norm(bound=2.0)
    """
    return L1Norm(real("aggregates/sensitivity/bound", bound))


def l2(bound: Real) -> L2Norm:
    """‖Δ‖₂ ≤ bound: the Euclidean norm of one user's change is at most the bound.

    >>> import gsh
    >>> gsh.l2(1.5)
    L2Norm(bound=1.5)
    """
    return L2Norm(real("aggregates/sensitivity/bound", bound))


def vectors(changes: Matrix) -> Vectors:
    """Δ is one of these rows: the full list of changes that one user can make to one group.

    >>> import gsh
    >>> gsh.vectors([[1, 0], [1, 1]])
    Vectors(vectors=((1.0, 0.0), (1.0, 1.0)))
    """
    return Vectors(matrix("aggregates/sensitivity/vectors", changes))


def _checked(sensitivity: Sensitivity) -> Sensitivity:
    if not isinstance(sensitivity, Sensitivity):
        detail = f"must come from gsh.box, gsh.l1, gsh.l2 or gsh.vectors, not {type(sensitivity).__name__}"
        raise InvalidParameter("aggregates/sensitivity", detail)
    return sensitivity


def _as(kind: type[T], value: core.Mechanism | core.Aggregates) -> T:
    """The fields of the value, in an object of a subclass."""
    made = object.__new__(kind)
    for field in dataclasses.fields(value):
        object.__setattr__(made, field.name, getattr(value, field.name))
    return made
