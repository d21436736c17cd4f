"""The mechanism and its columns, made from Python and numpy values.

Each object checks its arguments when it is made, and keeps the core's object for the functions of the library.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from gsh.accounting import mechanism as core
from gsh.accounting.calibration import draft
from gsh.accounting.column_costs import Capped
from gsh.accounting.errors import InvalidParameter
from gsh.accounting.numerics.balls import round_up
from gsh.accounting.sensitivity import Sensitivity
from gsh.library.arguments import Integer, Matrix, Real, integer, matrix, real, renamed, texts

__all__ = [
    "CAPPED",
    "MU_0",
    "Aggregates",
    "Caps",
    "Mechanism",
    "RelativeAggregates",
    "capped_of",
    "columns_of",
    "core_of",
    "mechanism_of",
]

Caps: TypeAlias = Mapping[int, Real] | tuple[tuple[int, Real], ...]

MU_0 = ("aggregates/mu_0", "mu_0")
"""μ₀ is a parameter of its own here, and a part of the aggregates in the core."""
CAPPED = ("aggregates/capped", "capped")
_COLUMNS = (("aggregates/sensitivity/kind", "sensitivity"), ("aggregates/", ""))


@dataclass(frozen=True, init=False, repr=False)
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
    covariance: tuple[tuple[float, ...], ...]
    sensitivity: Sensitivity
    mu_0: float = field(init=False, compare=False)
    capped: tuple[tuple[int, float], ...] = field(init=False, compare=False)

    def __init__(self, *, names: Sequence[str], covariance: Matrix, sensitivity: Sensitivity) -> None:
        rows = matrix("covariance", covariance)
        with renamed(*_COLUMNS):
            self._keep(core.Aggregates(texts("names", names), rows, _checked(sensitivity)))

    @classmethod
    def _of(cls, proven: core.Aggregates) -> "Aggregates":
        """The columns of a calibrated mechanism. The proof takes long and is not repeated."""
        columns = cls.__new__(cls)
        columns._keep(proven)
        return columns

    def _keep(self, proven: core.Aggregates) -> None:
        vars(self).update(
            names=proven.names,
            covariance=proven.covariance,
            sensitivity=proven.sensitivity,
            mu_0=proven.mu_0,
            capped=_by_cap(proven.capped),
            _core=proven,
        )

    def __repr__(self) -> str:
        """The call that makes it."""
        return f"Aggregates(names={self.names!r}, covariance={self.covariance!r}, sensitivity={self.sensitivity!r})"


@dataclass(frozen=True, init=False)
class RelativeAggregates:
    """Columns whose noise scales with σ: Σ = σ² · ``relative_covariance``. For ``calibrate`` and ``compare``.

    >>> import gsh
    >>> columns = gsh.RelativeAggregates(
    ...     names=["likes"], relative_covariance=[[0.25]], sensitivity=gsh.box(lower=[0], upper=[1])
    ... )
    >>> found = gsh.calibrate(c_u=10, epsilon=1, delta=1e-6, aggregates=columns)
    >>> found.mechanism.aggregates.covariance[0][0] / found.mechanism.sigma**2
    0.25
    """

    names: tuple[str, ...]
    relative_covariance: tuple[tuple[float, ...], ...]
    sensitivity: Sensitivity

    def __init__(self, *, names: Sequence[str], relative_covariance: Matrix, sensitivity: Sensitivity) -> None:
        rows = matrix("relative_covariance", relative_covariance)
        with renamed(*_COLUMNS):
            proven = draft.RelativeAggregates(texts("names", names), rows, _checked(sensitivity))
        vars(self).update(
            names=proven.names,
            relative_covariance=proven.relative_covariance,
            sensitivity=proven.sensitivity,
            _core=proven,
        )


@dataclass(frozen=True, init=False, repr=False)
class Mechanism:
    """The Gaussian sparse histogram mechanism.  [KKWZ Algorithm 1]

    It drops groups with fewer than ``tau`` users, adds Gaussian noise of standard deviation ``sigma`` to the counts,
    and drops groups with a noisy count below ``tau_star``. ``c_u`` is the most groups that one user can touch.
    Further columns are ``aggregates``. For accounting alone, their ``mu_0`` is enough, and for columns that one user
    changes in at most n groups ``capped={n: mu_0}``.

    >>> import gsh
    >>> gsh.Mechanism(c_u=51914, tau=1, tau_star=13948, sigma=2228)
    Mechanism(c_u=51914, tau=1, tau_star=13948.0, sigma=2228.0)
    """

    c_u: int
    tau: int
    tau_star: float
    sigma: float
    mu_0: float | None
    """None if there are aggregates: they have their own μ₀."""
    aggregates: Aggregates | None
    capped: tuple[tuple[int, float], ...]
    """Pairs of a cap and the μ₀ of the columns that have it; empty if there are aggregates: they have their own."""

    def __init__(
        self,
        *,
        c_u: Integer,
        tau: Integer = 1,
        tau_star: Real,
        sigma: Real,
        mu_0: Real | None = None,
        aggregates: Aggregates | None = None,
        capped: Caps | None = None,
    ) -> None:
        if not isinstance(aggregates, Aggregates | None):
            raise InvalidParameter("aggregates", f"must be gsh.Aggregates, not {type(aggregates).__name__}")
        number = 0.0 if mu_0 is None else real("mu_0", mu_0)
        if aggregates is not None and number != 0:
            raise InvalidParameter("mu_0", "must be omitted if aggregates are given")
        if aggregates is not None and capped:
            raise InvalidParameter("capped", "must be omitted if aggregates are given")
        parts = capped_of(capped)
        with renamed(MU_0, CAPPED):
            checked = core.Mechanism(
                c_u=integer("c_u", c_u),
                tau=integer("tau", tau),
                tau_star=real("tau_star", tau_star),
                sigma=real("sigma", sigma),
                mu_0=number,
                aggregates=None if aggregates is None else vars(aggregates)["_core"],
                capped=parts,
            )
        vars(self).update(
            c_u=checked.c_u,
            tau=checked.tau,
            tau_star=checked.tau_star,
            sigma=checked.sigma,
            # Not the μ₀ of the columns: dataclasses.replace would carry it over to other columns.
            mu_0=number if aggregates is None else None,
            aggregates=aggregates,
            capped=_by_cap(parts),
            _core=checked,
        )

    @property
    def mu(self) -> float:
        """μ of the equivalent Gaussian mechanism, rounded up."""
        return round_up(lambda: [core_of(self).mu])[0]

    @property
    def mu_squared(self) -> float:
        """μ² = C_u (1/σ² + μ₀²), less with caps on columns, rounded up: the noise cost of one release in a budget."""
        return round_up(lambda: [core_of(self).mu_squared])[0]

    @property
    def hazard(self) -> float:
        """−C_u ln Φ((τ* − τ)/σ), rounded up: the threshold cost of one release in a budget."""
        return round_up(lambda: [core_of(self).hazard])[0]

    def __repr__(self) -> str:
        """The call that makes it."""
        given = f"c_u={self.c_u}, tau={self.tau}, tau_star={self.tau_star!r}, sigma={self.sigma!r}"
        if self.aggregates is not None:
            given += f", aggregates={self.aggregates!r}"
        elif self.mu_0:
            given += f", mu_0={self.mu_0!r}"
        if self.capped:
            given += f", capped={dict(self.capped)!r}"
        return f"Mechanism({given})"


def core_of(mechanism: Mechanism) -> core.Mechanism:
    """The core's mechanism, for calls into the core."""
    if not isinstance(mechanism, Mechanism):
        raise InvalidParameter("mechanism", f"must be a gsh.Mechanism, not {type(mechanism).__name__}")
    found: core.Mechanism = vars(mechanism)["_core"]
    return found


def columns_of(aggregates: Aggregates | RelativeAggregates) -> core.Aggregates | draft.RelativeAggregates:
    """The core's columns, for calls into the core."""
    found: core.Aggregates | draft.RelativeAggregates = vars(aggregates)["_core"]
    return found


def mechanism_of(found: core.Mechanism) -> Mechanism:
    """The mechanism that the core found, for people."""
    return Mechanism(
        c_u=found.c_u,
        tau=found.tau,
        tau_star=found.tau_star,
        sigma=found.sigma,
        mu_0=found.mu_0 if found.aggregates is None else None,
        aggregates=None if found.aggregates is None else Aggregates._of(found.aggregates),
        capped=None if found.aggregates is not None else _by_cap(found.capped),
    )


def capped_of(capped: Caps | None) -> tuple[Capped, ...]:
    """The columns with caps of their own, for calls into the core."""
    if capped is None:
        return ()
    if not isinstance(capped, Mapping | tuple):
        raise InvalidParameter("capped", f"must be a mapping from a cap to its mu_0, not {type(capped).__name__}")
    pairs = tuple(capped.items() if isinstance(capped, Mapping) else capped)
    parts = [Capped(integer("capped", cap), real(f"capped/{cap}", cost)) for cap, cost in pairs]
    return tuple(sorted(parts, key=lambda part: part.groups))


def _by_cap(capped: tuple[Capped, ...]) -> tuple[tuple[int, float], ...]:
    return tuple((part.groups, part.mu_0) for part in capped)


def _checked(sensitivity: Sensitivity) -> Sensitivity:
    if not isinstance(sensitivity, Sensitivity):
        detail = f"must come from gsh.box, gsh.l1, gsh.l2 or gsh.vectors, not {type(sensitivity).__name__}"
        raise InvalidParameter("sensitivity", detail)
    return sensitivity
