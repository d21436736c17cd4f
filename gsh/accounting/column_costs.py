"""What further columns add to μ: a μ₀ per group, and less for columns that one user changes in fewer groups.

A column of a box may have a cap of its own: one user changes it in at most n of its C_u groups. Columns with the same
cap share a μ₀. This needs a diagonal Σ, whose columns are independent.  [docs/math/column-caps.md]
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

from flint import arb

from gsh.accounting.covariance import Matrix, is_diagonal, prove_positive_definite
from gsh.accounting.mu_zero import mu_0
from gsh.accounting.numerics.balls import round_up
from gsh.accounting.sensitivity import MOST_C_U, Box, Sensitivity, check_sensitivity
from gsh.arguments import Real, integer, real
from gsh.errors import InvalidParameter

__all__ = ["Capped", "Caps", "ColumnCosts", "capped_of", "column_costs"]

Caps: TypeAlias = Mapping[int, Real] | tuple[tuple[int, Real], ...]
"""μ₀ of the columns that one user changes in at most so many groups, by this cap."""


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
        return ColumnCosts(round_up(lambda: [self.squared(1).sqrt()])[0])

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
        """About the costs with σ times the noise."""
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


def capped_of(capped: Caps | None) -> tuple[Capped, ...]:
    """The columns with caps of their own, by rising caps."""
    if capped is None or capped == ():
        return ()
    if not isinstance(capped, tuple):
        if not isinstance(capped, Mapping):
            raise InvalidParameter("capped", f"must be a mapping from a cap to its mu_0, not {type(capped).__name__}")
        capped = tuple(capped.items())
    parts = [Capped(integer("capped", cap), real(f"capped/{cap}", cost)) for cap, cost in capped]
    return tuple(sorted(parts, key=lambda part: part.groups))
