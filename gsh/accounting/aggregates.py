"""The columns released with the count: their names, the covariance of their noise, and the change of one user."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from gsh.accounting.column_costs import Capped, ColumnCosts, column_costs
from gsh.accounting.covariance import Matrix
from gsh.accounting.sensitivity import Box, Sensitivity
from gsh.arguments import Matrix as Rows
from gsh.arguments import matrix, texts
from gsh.errors import InfeasibleTarget, InvalidParameter, renamed

__all__ = ["Aggregates", "RelativeAggregates", "check_caps"]

_KIND = ("sensitivity/kind", "sensitivity")
"""The kind of a sensitivity is no parameter of a call: the function that makes it is."""


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Aggregates:
    """The columns released with the count, the covariance Σ of their noise, and the change Δ that one user can make.

        μ₀² = max over Δ of  Δᵀ Σ⁻¹ Δ                                      [KKWZ Sec. 5]

    ``mu_0`` is rounded up. Making the object proves that Σ is positive definite. Columns with caps of their own
    (``groups`` of ``gsh.box``) have their μ₀ in ``capped``: pairs of a cap and its μ₀.

    >>> import gsh
    >>> columns = gsh.Aggregates(
    ...     names=["likes", "shares"],
    ...     covariance=[[400, 0], [0, 100]],
    ...     sensitivity=gsh.box(lower=[0, 0], upper=[1, 1]),
    ... )
    >>> columns.mu_0
    0.1118033988749895
    """

    names: tuple[str, ...]
    covariance: Matrix
    sensitivity: Sensitivity
    costs: ColumnCosts = field(init=False, compare=False)
    """μ₀ of the columns without a cap, and of those with each cap."""

    def __init__(self, *, names: Sequence[str], covariance: Rows, sensitivity: Sensitivity) -> None:
        _keep(self, names, "covariance", covariance, sensitivity, "costs")
        if not all(map(math.isfinite, (self.mu_0, *(part.mu_0 for part in self.capped)))):
            raise InvalidParameter("covariance", "must be large enough that μ₀ is a finite double")

    @property
    def mu_0(self) -> float:
        """μ₀ of the columns without a cap of their own."""
        return self.costs.mu_0

    @property
    def capped(self) -> tuple[Capped, ...]:
        """The columns with caps of their own."""
        return self.costs.capped

    def __repr__(self) -> str:
        """The call that makes it."""
        return f"Aggregates(names={self.names!r}, covariance={self.covariance!r}, sensitivity={self.sensitivity!r})"


@dataclass(frozen=True, slots=True, init=False)
class RelativeAggregates:
    """Columns whose noise scales with σ: Σ = σ² · ``relative_covariance``. For ``calibrate`` and ``compare``.

    Each entry of Σ is rounded to a double.

    >>> import gsh
    >>> columns = gsh.RelativeAggregates(
    ...     names=["likes"], relative_covariance=[[0.25]], sensitivity=gsh.box(lower=[0], upper=[1])
    ... )
    >>> found = gsh.calibrate(c_u=10, epsilon=1, delta=1e-6, aggregates=columns)
    >>> found.mechanism.aggregates.covariance[0][0] / found.mechanism.sigma**2
    0.25
    """

    names: tuple[str, ...]
    relative_covariance: Matrix
    sensitivity: Sensitivity
    relative_costs: ColumnCosts = field(init=False, compare=False, repr=False)
    """Each μ₀ times σ, certified upward."""
    weights: tuple[float, ...] | None = field(init=False, compare=False, repr=False)
    """The weights if the noise is balanced, else None. ``balanced`` gives them, and replace() drops them."""

    def __init__(
        self,
        *,
        names: Sequence[str],
        relative_covariance: Rows,
        sensitivity: Sensitivity,
        weights: tuple[float, ...] | None = None,
    ) -> None:
        _keep(self, names, "relative_covariance", relative_covariance, sensitivity, "relative_costs")
        object.__setattr__(self, "weights", weights)

    def at(self, sigma: float) -> Aggregates:
        try:
            scaled = tuple(tuple(_scaled(entry, sigma) for entry in row) for row in self.relative_covariance)
            return Aggregates(names=self.names, covariance=scaled, sensitivity=self.sensitivity)
        except OverflowError:
            detail = "must be smaller: multiplied by σ² it exceeds the largest double"
            raise InfeasibleTarget("aggregates/relative_covariance", detail) from None
        except InvalidParameter as error:
            if error.pointer != "covariance":
                raise
            detail = f"multiplied by σ² {error.detail}"
            raise InvalidParameter("aggregates/relative_covariance", detail) from None


def _keep(
    columns: Aggregates | RelativeAggregates,
    names: Sequence[str],
    noise: str,
    covariance: Rows,
    sensitivity: Sensitivity,
    costs: str,
) -> None:
    """Check the columns and keep them. ``noise`` and ``costs`` are the fields of the covariance and of the costs."""
    rows, listed = matrix(noise, covariance), texts("names", names)
    if not isinstance(sensitivity, Sensitivity):
        detail = f"must come from gsh.box, gsh.l1, gsh.l2 or gsh.vectors, not {type(sensitivity).__name__}"
        raise InvalidParameter("sensitivity", detail)
    if len(set(listed)) != len(listed):
        raise InvalidParameter("names", "must be unique")
    if {"key", "count"} & set(listed):
        raise InvalidParameter("names", "must not contain key or count")
    if len(rows) != len(listed):
        raise InvalidParameter(noise, "must have one row and one column per name")
    with renamed(_KIND):
        found = column_costs(rows, sensitivity, noise)
    for name, value in (("names", listed), (noise, rows), ("sensitivity", sensitivity), (costs, found)):
        object.__setattr__(columns, name, value)


def check_caps(sensitivity: Sensitivity, c_u: int, pointer: str = "aggregates/sensitivity/groups") -> None:
    """Refuse a cap above C_u, by the place of its column. ``pointer`` names the caps in errors."""
    caps = sensitivity.groups if isinstance(sensitivity, Box) else None
    for j, cap in enumerate(caps or ()):
        if cap is not None and cap > c_u:
            raise InvalidParameter(f"{pointer}/{j}", "must be at most c_u")


def _scaled(entry: float, sigma: float) -> float:
    """entry · σ², to the nearest double."""
    return float(Fraction(entry) * Fraction(sigma) ** 2)
