"""The privacy of a mechanism: certified points of its privacy curve, by two accountings."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeGuard, overload

import numpy as np
from numpy.typing import NDArray

from gsh.accounting.accountings import ADD_DELTAS, EXACT, Accounting, Binding, Point, at_delta, at_epsilon
from gsh.accounting.calibration.after_survey import SurveyPlan
from gsh.accounting.calibration.comparison import ComparedName
from gsh.accounting.mechanism import (
    AnyMechanism,
    FixedTables,
    Release,
    SurveyNoise,
    checked_mechanism,
    release_of,
    surveyed,
)
from gsh.arguments import Real, Reals, instance, is_several, real, reals
from gsh.errors import InvalidParameter, pointer_part
from gsh.wire import check_table_names

__all__ = [
    "Curve",
    "Privacy",
    "Released",
    "SurveyGiven",
    "accounted",
    "add_deltas",
    "asked_points",
    "exact",
    "is_several_tables",
    "privacy_of",
    "survey_noise",
    "survey_places",
]

Doubles: TypeAlias = NDArray[np.float64]
Released: TypeAlias = AnyMechanism | Mapping[str, AnyMechanism]
"""What is released together: one table, or several by their names."""
SurveyGiven: TypeAlias = SurveyNoise | SurveyPlan | Sequence[SurveyNoise] | None
"""The noise of a survey, of several histograms, or of a plan; None without a survey."""


@dataclass(frozen=True, slots=True)
class Privacy:
    """One certified point (ε, δ) of a privacy curve: every number is rounded to the safe side.

    ``epsilon`` is infinite if no finite ε exists at the δ asked for.
    """

    epsilon: float
    delta: float
    delta_gaussian: float
    """The cost at ε of the noise on groups that exist without the user."""
    delta_infinite: float
    """The probability that a group of one user alone is released."""
    binding: Binding
    """What decides δ: ``gaussian``, ``infinite``, ``mixed`` (a split between them), or ``both`` if they are added."""
    mu: float
    """μ of the equivalent Gaussian mechanism."""
    accounting: ComparedName


@dataclass(frozen=True, slots=True, repr=False)
class Curve(Sequence[Privacy]):
    """Points of a privacy curve, in the order asked for. Each variable of the points is a numpy array as well.

    >>> import gsh
    >>> mechanism = gsh.Mechanism(c_u=51914, tau=1, tau_star=13948, sigma=2228)
    >>> curve = gsh.exact(mechanism, epsilon=[0.1, 0.349])
    >>> curve
    <Curve of 2 points by exact accounting: epsilon 0.1 to 0.349, delta 0.009334 to 1.003e-05>
    >>> curve.delta
    array([9.33361713e-03, 1.00310385e-05])
    """

    points: tuple[Privacy, ...]

    @overload
    def __getitem__(self, place: int) -> Privacy: ...
    @overload
    def __getitem__(self, place: slice) -> "Curve": ...
    def __getitem__(self, place: int | slice) -> "Privacy | Curve":
        return Curve(self.points[place]) if isinstance(place, slice) else self.points[place]

    def __iter__(self) -> Iterator[Privacy]:
        return iter(self.points)

    def __len__(self) -> int:
        return len(self.points)

    @property
    def epsilon(self) -> Doubles:
        return np.array([point.epsilon for point in self.points])

    @property
    def delta(self) -> Doubles:
        return np.array([point.delta for point in self.points])

    @property
    def delta_gaussian(self) -> Doubles:
        return np.array([point.delta_gaussian for point in self.points])

    @property
    def delta_infinite(self) -> Doubles:
        return np.array([point.delta_infinite for point in self.points])

    @property
    def binding(self) -> NDArray[np.str_]:
        return np.array([point.binding for point in self.points], np.str_)

    @property
    def mu(self) -> Doubles:
        return np.array([point.mu for point in self.points])

    def __repr__(self) -> str:
        if not self.points:
            return "<Curve of 0 points>"
        first, last = self.points[0], self.points[-1]
        return (
            f"<Curve of {len(self)} points by {first.accounting} accounting: "
            f"epsilon {first.epsilon:.4g} to {last.epsilon:.4g}, delta {first.delta:.4g} to {last.delta:.4g}>"
        )


@overload
def exact(mechanism: Released, *, epsilon: Real, survey: SurveyGiven = None) -> Privacy: ...
@overload
def exact(mechanism: Released, *, delta: Real, survey: SurveyGiven = None) -> Privacy: ...
@overload
def exact(mechanism: Released, *, epsilon: Reals, survey: SurveyGiven = None) -> Curve: ...
@overload
def exact(mechanism: Released, *, delta: Reals, survey: SurveyGiven = None) -> Curve: ...
def exact(
    mechanism: Released,
    *,
    epsilon: Real | Reals | None = None,
    delta: Real | Reals | None = None,
    survey: SurveyGiven = None,
) -> Privacy | Curve:
    """The smallest δ at ε, or the smallest ε at δ, that the mechanism has.  [KKWZ Thm. 5.4; docs/math/closed-form.md]

        δ(ε) = max(1 − Φ((τ* − τ)/σ)^C_u,  f(μ, ε)),   μ² = C_u (1/σ² + μ₀²)

    f is the δ of the Gaussian mechanism [Balle & Wang 2018, Thm. 8]. A list or an array gives a ``Curve``. Several
    tables that are released together are a mapping from names to mechanisms.  [docs/math/joint-tables.md]

    >>> import gsh
    >>> mechanism = gsh.Mechanism(c_u=51914, tau=1, tau_star=13948, sigma=2228)
    >>> gsh.exact(mechanism, epsilon=0.349).delta
    1.003103848512688e-05
    >>> gsh.exact(mechanism, delta=1.1e-5).epsilon
    0.3465426812690822

    ``survey`` is the noise of a histogram over the users that was published first, and from which C_u, σ and τ* were
    chosen; several are a list. Fixed before it are ``mu_squared`` and ``hazard`` of each table (``gsh.calibrate``
    finds such mechanisms). Then ``mu`` and ``delta_gaussian`` are those of all noise.  [docs/math/two-stages.md]

    >>> gsh.exact(mechanism, epsilon=0.349, survey=gsh.SurveyNoise(97.81)).delta
    1.1990072857513553e-05
    """
    return _account(EXACT, mechanism, epsilon, delta, survey)


@overload
def add_deltas(mechanism: Released, *, epsilon: Real, survey: SurveyGiven = None) -> Privacy: ...
@overload
def add_deltas(mechanism: Released, *, delta: Real, survey: SurveyGiven = None) -> Privacy: ...
@overload
def add_deltas(mechanism: Released, *, epsilon: Reals, survey: SurveyGiven = None) -> Curve: ...
@overload
def add_deltas(mechanism: Released, *, delta: Reals, survey: SurveyGiven = None) -> Curve: ...
def add_deltas(
    mechanism: Released,
    *,
    epsilon: Real | Reals | None = None,
    delta: Real | Reals | None = None,
    survey: SurveyGiven = None,
) -> Privacy | Curve:
    """The over-estimate of earlier work, which adds the two δ.  [KKWZ Thm. 4.1, Cor. 5.4.1]

        δ(ε) = 1 − Φ((τ* − τ)/σ)^C_u + f(μ, ε)

    With a ``survey``, μ is that of all noise.

    >>> import gsh
    >>> mechanism = gsh.Mechanism(c_u=51914, tau=1, tau_star=13948, sigma=2228)
    >>> gsh.add_deltas(mechanism, epsilon=0.349).delta
    2.003190490602837e-05
    """
    return _account(ADD_DELTAS, mechanism, epsilon, delta, survey)


def privacy_of(accounting: ComparedName, point: Point) -> Privacy:
    """A point of the core. It has None for an ε that is not finite; the noise costs nothing there."""
    return Privacy(
        epsilon=math.inf if point.epsilon is None else point.epsilon,
        delta=point.delta,
        delta_gaussian=0.0 if point.delta_gaussian is None else point.delta_gaussian,
        delta_infinite=point.delta_infinite,
        binding=point.binding,
        mu=point.mu,
        accounting=accounting,
    )


def _account(
    accounting: Accounting,
    mechanism: Released,
    epsilon: Real | Reals | None,
    delta: Real | Reals | None,
    survey: SurveyGiven,
) -> Privacy | Curve:
    costs = surveyed(survey_noise(survey), accounted(mechanism)).without_columns
    name, values, are_several = asked_points(epsilon, delta)
    evaluate = at_epsilon if name == "epsilon" else at_delta
    points = tuple(_point(evaluate, accounting, costs, value) for value in values)
    return Curve(points) if are_several else points[0]


def asked_points(
    epsilon: Real | Reals | None, delta: Real | Reals | None
) -> tuple[Literal["epsilon", "delta"], tuple[float, ...], bool]:
    """Which of ε and δ is given, its values, and whether they came as a list: then the result is a curve."""
    if (epsilon is None) == (delta is None):
        raise InvalidParameter("epsilon", "give exactly one of epsilon and delta")
    name: Literal["epsilon", "delta"] = "epsilon" if delta is None else "delta"
    asked = epsilon if delta is None else delta
    are_several = is_several(asked)
    return name, reals(name, asked) if are_several else (real(name, asked),), are_several


def _point(
    evaluate: Callable[[Accounting, Release, float], Point],
    accounting: Accounting,
    release: Release,
    value: float,
) -> Privacy:
    return privacy_of(accounting.name, evaluate(accounting, release, value + 0.0))  # −0 becomes 0


def survey_noise(given: SurveyGiven) -> tuple[SurveyNoise, ...]:
    """The noise of each histogram of a survey: none if there is no survey."""
    return tuple(instance(place, each, SurveyNoise) for place, each in survey_places(given))


def survey_places(given: object) -> list[tuple[str, object]]:
    """The histograms of a survey, each with its place in errors."""
    if given is None:
        return []
    if isinstance(given, SurveyPlan):
        return [("survey", noise) for noise in given.survey]
    if isinstance(given, list | tuple):
        if not given:
            raise InvalidParameter("survey", "must have at least one histogram, or be omitted")
        return [(f"survey/{place}", noise) for place, noise in enumerate(given)]
    return [("survey", given)]


def accounted(given: Released) -> FixedTables:
    """The tables, checked. A mapping is several tables by their names."""
    if not isinstance(given, Mapping):
        return checked_mechanism("mechanism", given)
    check_table_names(given)
    return release_of([checked_mechanism(f"tables/{pointer_part(str(name))}", table) for name, table in given.items()])


def is_several_tables(given: object) -> TypeGuard[Mapping[str, AnyMechanism]]:
    """Not so the JSON of a mechanism: it is a mapping too."""
    return isinstance(given, Mapping) and any(isinstance(each, AnyMechanism) for each in given.values())
