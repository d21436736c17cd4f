"""The mechanism as a value: all that its privacy depends on, checked once.

    Mechanism        groups are secret: noise, and a threshold                              [KKWZ Algorithm 1]
    PlainGaussian    groups are public: noise alone, and nothing is dropped
    Joint            several tables in one release, each one of these two                   [docs/math/joint-tables.md]
    Surveyed         a survey of the users, and then one of these three                     [docs/math/two-stages.md]

The functions of the core compute with balls. Properties of a mechanism are doubles, rounded up.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self, TypeAlias

from flint import arb

from gsh.accounting.aggregates import Aggregates, RelativeAggregates, check_caps
from gsh.accounting.column_costs import Capped, ColumnCaps, ColumnCosts, capped_of
from gsh.accounting.numerics.balls import round_up
from gsh.accounting.numerics.doubles import LARGEST_DOUBLE, double_below
from gsh.accounting.numerics.normal_tail import tail
from gsh.accounting.sensitivity import MOST_C_U
from gsh.arguments import Integer, Real, instance, integer, real
from gsh.errors import InvalidParameter

__all__ = [
    "MOST_C_U",
    "MOST_PIECES",
    "MOST_SURVEYS",
    "MOST_TABLES",
    "Aggregates",
    "AnyMechanism",
    "FixedTables",
    "Joint",
    "Mechanism",
    "PlainGaussian",
    "RelativeAggregates",
    "Release",
    "SurveyNoise",
    "Surveyed",
    "checked_mechanism",
    "effective_tau",
    "hazard_ball",
    "log_p_ball",
    "mechanisms_of",
    "mu_ball",
    "mu_squared_ball",
    "release_of",
    "survey_ball",
    "surveyed",
]

MOST_TABLES = 64
"""The most tables of one release."""
MOST_PIECES = 512
"""The most tables and caps on columns of one release together: δ takes an evaluation for each of them."""
MOST_SURVEYS = 64
"""The most histograms over users of one survey."""


def effective_tau(tau: int) -> int:
    """max(τ, 1): τ = 0 acts as τ = 1, because empty groups are never listed.  [KKWZ Algorithm 1]"""
    return max(tau, 1)


class _NoiseCost:
    """What noise costs, in doubles."""

    __slots__ = ()

    @property
    def mu(self) -> float:
        """μ of the equivalent Gaussian mechanism, rounded up."""
        return round_up(lambda: [mu_ball(self._release)])[0]

    @property
    def mu_squared(self) -> float:
        """μ² = C_u (1/σ² + μ₀²), less with caps on columns, rounded up: the noise cost in a budget.

        Of several tables it is the sum.
        """
        return round_up(lambda: [mu_squared_ball(self._release)])[0]

    @property
    def _release(self) -> "Release":
        assert isinstance(self, AnyMechanism | Joint | Surveyed)
        return self


class Certified(Protocol):
    """A certificate, or a result that has one."""

    @property
    def mechanisms(self) -> Mapping[str, Any]:
        """The mechanism of each table, by its name."""


class _GaussianNoise(_NoiseCost):
    """Gaussian noise on the counts and the other columns of at most C_u groups per user."""

    __slots__ = ()
    c_u: int
    sigma: float
    mu_0: float | None
    aggregates: Aggregates | None
    capped: tuple[Capped, ...]
    costs: ColumnCosts

    @classmethod
    def from_certificate(cls, certificate: "Certified", table: str | None = None) -> Self:
        """The mechanism in a certificate, or in a result that has one. Of several tables, ``table`` names one.

        ``gsh.read_certificate`` reads a certificate. Its ``mechanisms`` are those of all tables by their names.
        """
        mechanisms = getattr(certificate, "mechanisms", None)
        if not isinstance(mechanisms, Mapping):
            detail = "must be a certificate, or a result with one; gsh.read_certificate(path) reads one"
            raise InvalidParameter("certificate", detail)
        name = next(iter(mechanisms)) if table is None and len(mechanisms) == 1 else table
        if name not in mechanisms:
            raise InvalidParameter("table", f"must be one of the tables of the certificate: {', '.join(mechanisms)}")
        found = mechanisms[name]
        if not isinstance(found, cls):
            detail = f"must be of another table: this one has a gsh.{type(found).__name__}"
            raise InvalidParameter("certificate" if table is None else "table", detail)
        return found

    def _keep(
        self, c_u: Integer, sigma: Real, mu_0: Real | None, aggregates: Aggregates | None, capped: ColumnCaps | None
    ) -> None:
        """Check the noise and keep it."""
        groups, deviation = integer("c_u", c_u), real("sigma", sigma)
        if not 1 <= groups <= MOST_C_U:
            raise InvalidParameter("c_u", "must be an integer from 1 to 10^18")
        if not 0 < deviation <= LARGEST_DOUBLE:
            raise InvalidParameter("sigma", "must be greater than 0 and finite")
        number = 0.0 if mu_0 is None else real("mu_0", mu_0)
        parts = capped_of(capped)
        if aggregates is not None:
            instance("aggregates", aggregates, Aggregates)
            if number != 0:
                raise InvalidParameter("mu_0", "must be omitted if aggregates are given")
            if parts:
                raise InvalidParameter("capped", "must be omitted if aggregates are given")
            check_caps(aggregates.sensitivity, groups)
            costs = aggregates.costs
        else:
            costs = _checked_costs(number, parts, groups)
        keep = object.__setattr__
        keep(self, "c_u", groups)
        keep(self, "sigma", deviation)
        # Not the μ₀ of the columns: dataclasses.replace would carry it over to other columns.
        keep(self, "mu_0", number if aggregates is None else None)
        keep(self, "aggregates", aggregates)
        keep(self, "capped", parts)
        keep(self, "costs", costs)

    @property
    def column_names(self) -> tuple[str, ...]:
        """The names of the columns that are released with the count."""
        return () if self.aggregates is None else self.aggregates.names

    @property
    def caps(self) -> tuple[int, ...]:
        """The caps below C_u, where S(a) changes its slope."""
        if not self.costs.capped:
            return ()
        return tuple(sorted({part.groups for part in self.costs.capped if part.groups < self.c_u}))

    def _columns_shown(self) -> str:
        shown = "" if self.aggregates is None else f", aggregates={self.aggregates!r}"
        shown += f", mu_0={self.mu_0!r}" if self.mu_0 else ""
        return shown + (f", capped={ {part.groups: part.mu_0 for part in self.capped}!r}" if self.capped else "")


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Mechanism(_GaussianNoise):
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
    capped: tuple[Capped, ...]
    """Pairs of a cap and the μ₀ of the columns that have it; empty if there are aggregates: they have their own."""
    costs: ColumnCosts = field(init=False, compare=False)
    """What the other columns add to μ, whether they are given as aggregates or by their μ₀."""

    def __init__(
        self,
        *,
        c_u: Integer,
        tau: Integer = 1,
        tau_star: Real,
        sigma: Real,
        mu_0: Real | None = None,
        aggregates: Aggregates | None = None,
        capped: ColumnCaps | None = None,
    ) -> None:
        self._keep(c_u, sigma, mu_0, aggregates, capped)
        least, threshold = integer("tau", tau), real("tau_star", tau_star)
        if least < 0:
            raise InvalidParameter("tau", "must be an integer, at least 0")
        if not effective_tau(least) < threshold <= LARGEST_DOUBLE:
            raise InvalidParameter("tau_star", "must be greater than tau, greater than 1 and finite")
        object.__setattr__(self, "tau", least)
        object.__setattr__(self, "tau_star", threshold)

    @property
    def hazard(self) -> float:
        """−C_u ln Φ((τ* − τ)/σ), rounded up: the threshold cost of one release in a budget."""
        return round_up(lambda: [hazard_ball(self)])[0]

    @property
    def without_columns(self) -> "Mechanism":
        """The same privacy with the costs of the columns in place of the columns: a small value that compares fast."""
        if self.aggregates is None:
            return self
        costs = self.costs
        return Mechanism(
            c_u=self.c_u,
            tau=self.tau,
            tau_star=self.tau_star,
            sigma=self.sigma,
            mu_0=costs.mu_0,
            capped=costs.capped,
        )

    @property
    def without_thresholds(self) -> "PlainGaussian":
        """The same noise for groups that are public."""
        caps = self.capped or None
        return PlainGaussian(c_u=self.c_u, sigma=self.sigma, mu_0=self.mu_0, aggregates=self.aggregates, capped=caps)

    @property
    def effective_tau(self) -> int:
        """max(τ, 1)."""
        return effective_tau(self.tau)

    @property
    def tau_gap(self) -> float:
        """τ* − τ, rounded down, because a smaller gap is less private."""
        tau = self.effective_tau
        if self.tau_star < 2**53:
            return self.tau_star - tau  # exact: a multiple of ulp(τ*) ≤ 1 that is no larger than τ*
        return double_below(int(self.tau_star) - tau)

    def __repr__(self) -> str:
        """The call that makes it."""
        thresholds = f"tau={self.tau}, tau_star={self.tau_star!r}"
        return f"Mechanism(c_u={self.c_u}, {thresholds}, sigma={self.sigma!r}{self._columns_shown()})"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class PlainGaussian(_GaussianNoise):
    """Gaussian noise on groups that are public: the mechanism without thresholds, which drops nothing."""

    c_u: int
    sigma: float
    mu_0: float | None
    aggregates: Aggregates | None
    capped: tuple[Capped, ...]
    costs: ColumnCosts = field(init=False, compare=False)

    def __init__(
        self,
        *,
        c_u: Integer,
        sigma: Real,
        mu_0: Real | None = None,
        aggregates: Aggregates | None = None,
        capped: ColumnCaps | None = None,
    ) -> None:
        self._keep(c_u, sigma, mu_0, aggregates, capped)

    @property
    def without_columns(self) -> "PlainGaussian":
        """The same privacy with the costs of the columns in place of the columns."""
        if self.aggregates is None:
            return self
        return PlainGaussian(c_u=self.c_u, sigma=self.sigma, mu_0=self.costs.mu_0, capped=self.costs.capped)

    def __repr__(self) -> str:
        """The call that makes it."""
        return f"PlainGaussian(c_u={self.c_u}, sigma={self.sigma!r}{self._columns_shown()})"


AnyMechanism: TypeAlias = Mechanism | PlainGaussian
"""The mechanism of one table: with a threshold, or of public groups."""


def checked_mechanism(pointer: str, value: object) -> AnyMechanism:
    """The value, which must be the mechanism of one table."""
    if not isinstance(value, AnyMechanism):
        raise InvalidParameter(pointer, f"must be a gsh.Mechanism or a gsh.PlainGaussian, not {type(value).__name__}")
    return value


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Joint(_NoiseCost):
    """Several tables that are fixed together before any noise is drawn, and released at once.

    Tables that are chosen one after the other are releases of their own.
    """

    mechanisms: tuple[AnyMechanism, ...]
    """One for each table."""

    def __init__(self, mechanisms: Sequence[AnyMechanism]) -> None:
        listed = tuple(mechanisms)
        if not 1 <= len(listed) <= MOST_TABLES:
            raise InvalidParameter("tables", f"must be 1 to {MOST_TABLES} tables")
        for i, mechanism in enumerate(listed):
            checked_mechanism(f"tables/{i}", mechanism)
        if sum(1 + len(mechanism.caps) for mechanism in listed) > MOST_PIECES:
            raise InvalidParameter("tables", f"must have fewer caps on columns: {MOST_PIECES} tables and caps at most")
        object.__setattr__(self, "mechanisms", listed)

    @property
    def hazard(self) -> float:
        """The sum of the threshold costs of all tables, rounded up."""
        return round_up(lambda: [hazard_ball(self)])[0]

    @property
    def without_columns(self) -> "Joint":
        """The same privacy with the costs of the columns in place of the columns."""
        return Joint([mechanism.without_columns for mechanism in self.mechanisms])

    def __repr__(self) -> str:
        """The call that makes it."""
        return f"Joint({list(self.mechanisms)!r})"


FixedTables: TypeAlias = AnyMechanism | Joint
"""One or more tables that are fixed together, before any of their noise is drawn."""


@dataclass(frozen=True, slots=True)
class SurveyNoise:
    """Gaussian noise on a histogram over the users: its bins are public, and each user is in one of them.

    Every bin has noise, also the empty ones.

    >>> import gsh
    >>> gsh.SurveyNoise(42.25)
    SurveyNoise(sigma=42.25)
    """

    sigma: float

    def __post_init__(self) -> None:
        sigma = real("sigma", self.sigma)
        if not 0 < sigma <= LARGEST_DOUBLE:
            raise InvalidParameter("sigma", "must be greater than 0 and finite")
        object.__setattr__(self, "sigma", sigma)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Surveyed(_NoiseCost):
    """A survey of the users, and tables whose bounds may be chosen from it.

    Fixed before the survey: ``mu_squared`` and ``hazard`` of each table, and what its columns with caps add to
    ``mu_squared``. All the rest may depend on what the survey shows: C_u, σ, τ, τ*, clips, caps, and the query itself.
    """

    survey: tuple[SurveyNoise, ...]
    tables: FixedTables

    def __init__(self, survey: Sequence[SurveyNoise], tables: FixedTables) -> None:
        listed = tuple(survey)
        if not 1 <= len(listed) <= MOST_SURVEYS:
            raise InvalidParameter("survey", f"must be 1 to {MOST_SURVEYS} histograms")
        for i, noise in enumerate(listed):
            instance(f"survey/{i}", noise, SurveyNoise)
        object.__setattr__(self, "survey", listed)
        object.__setattr__(self, "tables", tables)

    @property
    def hazard(self) -> float:
        """The threshold cost of the tables, rounded up. A survey has none."""
        return round_up(lambda: [hazard_ball(self)])[0]

    @property
    def without_columns(self) -> "Surveyed":
        """The same privacy with the costs of the columns in place of the columns."""
        return Surveyed(self.survey, self.tables.without_columns)

    def __repr__(self) -> str:
        """The call that makes it."""
        return f"Surveyed({list(self.survey)!r}, {self.tables!r})"


Release: TypeAlias = FixedTables | Surveyed
"""What is charged once, under one name: tables, or a survey and then tables."""


def mechanisms_of(release: Release) -> tuple[AnyMechanism, ...]:
    """The mechanism of each table of a release."""
    if isinstance(release, Surveyed):
        return mechanisms_of(release.tables)
    return release.mechanisms if isinstance(release, Joint) else (release,)


def release_of(mechanisms: Sequence[AnyMechanism]) -> FixedTables:
    """The release of tables with these mechanisms. A single table is a release by itself."""
    return mechanisms[0] if len(mechanisms) == 1 else Joint(mechanisms)


def surveyed(survey: Sequence[SurveyNoise], tables: FixedTables) -> Release:
    """The tables after a survey, if there is one."""
    return Surveyed(survey, tables) if survey else tables


def mu_squared_ball(release: Release, groups: int | None = None) -> arb:
    """The most that one user changes, in squared standard deviations: the sum over all tables.

    In one table, in this many ``groups`` above τ, or in C_u groups if None:  [docs/math/column-caps.md]

    S(a) = a (1/σ² + μ₀²) + Σ min(a, n) μ_n²,   n the caps of columns that have one
    """
    if isinstance(release, Surveyed):
        return survey_ball(release.survey) + mu_squared_ball(release.tables)
    if isinstance(release, Joint):
        return _sum(mu_squared_ball(mechanism) for mechanism in release.mechanisms)
    groups = release.c_u if groups is None else groups
    sigma, costs = arb(release.sigma), release.costs
    count = groups / (sigma * sigma)
    return count + costs.squared(groups) if costs.mu_0 or costs.capped else count


def survey_ball(survey: Iterable[SurveyNoise]) -> arb:
    """S_h = Σ 1/σ_h², the noise cost of a survey."""
    return _sum(1 / arb(noise.sigma) ** 2 for noise in survey)


def mu_ball(release: Release) -> arb:
    """μ of the equivalent Gaussian mechanism."""
    return mu_squared_ball(release).sqrt()


def log_p_ball(mechanism: Mechanism) -> arb:
    """ln p, p = Φ((τ* − τ)/σ). It comes from the upper tail, because 1 − p would cancel.

    The gap is a ball too: in doubles the difference of large thresholds would be rounded.
    """
    gap = arb(mechanism.tau_star) - mechanism.effective_tau
    return (-tail(gap / mechanism.sigma)).log1p()


def hazard_ball(release: Release) -> arb:
    """−C_u ln p, the threshold cost: the sum over all tables, and 0 for public groups.  [docs/math/composition.md]"""
    match release:
        case Mechanism():
            return -release.c_u * log_p_ball(release)
        case Joint():
            return _sum(hazard_ball(mechanism) for mechanism in release.mechanisms)
        case Surveyed():
            return hazard_ball(release.tables)
        case _:
            return arb(0)


def _sum(balls: Iterable[arb]) -> arb:
    return sum(balls, arb(0))


_NO_COSTS = ColumnCosts()


def _checked_costs(mu_0: float, capped: tuple[Capped, ...], c_u: int) -> ColumnCosts:
    """What columns add to μ that are given by their μ₀ alone."""
    if not (mu_0 or capped):
        return _NO_COSTS
    if not 0 <= mu_0 <= LARGEST_DOUBLE:
        raise InvalidParameter("mu_0", "must be at least 0 and finite")
    for i, part in enumerate(capped):
        if not 1 <= part.groups <= c_u:
            raise InvalidParameter(f"capped/{i}/groups", "must be an integer from 1 to c_u")
        if not 0 <= part.mu_0 <= LARGEST_DOUBLE:
            raise InvalidParameter(f"capped/{i}/mu_0", "must be at least 0 and finite")
    return ColumnCosts(mu_0, capped)
