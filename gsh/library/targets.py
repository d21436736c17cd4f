"""Mechanisms that meet a target (ε, δ): by one accounting, or by all of them for comparison."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar

from gsh.accounting.accountings import ADD_DELTAS, EXACT
from gsh.accounting.aggregates import Aggregates, RelativeAggregates
from gsh.accounting.calibration import comparison, draft, target
from gsh.accounting.calibration.after_survey import SurveyPlan, SurveyShare, calibrate_one_after
from gsh.accounting.calibration.balanced import balanced
from gsh.accounting.calibration.comparison import ComparedName
from gsh.accounting.calibration.draft import Parameter
from gsh.accounting.column_costs import Capped, ColumnCaps, capped_of
from gsh.accounting.mechanism import Mechanism, SurveyNoise
from gsh.accounting.sensitivity import Box
from gsh.arguments import Integer, Real, integer, real, reals, texts
from gsh.errors import InvalidParameter, renamed
from gsh.library.privacy import Privacy, privacy_of, survey_places

__all__ = [
    "Calibration",
    "Columns",
    "Comparison",
    "Price",
    "SurveyWanted",
    "calibrate",
    "compare",
    "draft_of",
    "survey_wanted",
    "target_of",
]

V = TypeVar("V")
SurveyWanted: TypeAlias = SurveyNoise | SurveyShare | SurveyPlan | Sequence[SurveyNoise | SurveyShare] | None
"""A survey by its noise, by its share of the noise cost, or by the plan of an earlier answer."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The parameters that describe further columns. At most one way of describing them is given."""

    mu_0: Real = 0.0
    capped: ColumnCaps | None = None
    aggregates: Aggregates | RelativeAggregates | None = None
    sums: Mapping[str, tuple[Real, Real]] | None = None
    caps: Mapping[str, Integer] | None = None
    weights: Mapping[str, Real] | None = None

    def described(self, c_u: int | None) -> tuple[Aggregates | RelativeAggregates | float, tuple[Capped, ...]]:
        """The columns of a draft."""
        if not isinstance(self.aggregates, Aggregates | RelativeAggregates | None):
            detail = f"must be gsh.Aggregates or gsh.RelativeAggregates, not {type(self.aggregates).__name__}"
            raise InvalidParameter("aggregates", detail)
        number, capped = real("mu_0", self.mu_0), capped_of(self.capped)
        if self.sums is None:
            for name, given in (("caps", self.caps), ("weights", self.weights)):
                if given is not None:
                    raise InvalidParameter(name, "must be omitted unless sums are given")
        described = "aggregates" if self.aggregates is not None else "sums" if self.sums is not None else None
        for name, is_given in (("mu_0", number != 0), ("capped", bool(capped))):
            if is_given and described is not None:
                raise InvalidParameter(name, f"must be omitted if {described} are given")
        if self.sums is None:
            return number if self.aggregates is None else self.aggregates, capped
        if self.aggregates is not None:
            raise InvalidParameter("aggregates", "must be omitted if sums are given")
        return self._balanced(self.sums, c_u), ()

    def _balanced(self, sums: Mapping[str, tuple[Real, Real]], c_u: int | None) -> RelativeAggregates:
        if not (isinstance(sums, Mapping) and sums):
            raise InvalidParameter("sums", "must be a mapping from names of columns to (lower, upper)")
        names = texts("sums", list(sums))
        ranges = [reals(f"sums/{name}", sums[name]) for name in names]
        for name, bounds in zip(names, ranges, strict=True):
            if len(bounds) != 2:
                raise InvalidParameter(f"sums/{name}", "must be a pair: lower, upper")
        lower, upper = zip(*ranges, strict=True)
        caps, weights = _listed("caps", self.caps, names), _listed("weights", self.weights, names)
        groups = tuple(None if cap is None else integer(f"caps/{names[j]}", cap) for j, cap in enumerate(caps))
        shares = [1.0 if share is None else real(f"weights/{names[j]}", share) for j, share in enumerate(weights)]
        by_place = [
            (f"{part}/{j}", f"{parameter}/{name}")
            for part, parameter in _PARTS.items()
            for j, name in reversed(list(enumerate(names)))
        ]
        box = Box(lower, upper, None if all(cap is None for cap in groups) else groups)
        # The rest is about all sums together.
        parts = ("names", "relative_covariance", "sensitivity/lower", "sensitivity/upper")
        with renamed(*by_place, *((part, "sums") for part in parts)):
            return balanced(names, box, c_u, shares)


_PARTS = {
    "sensitivity/groups": "caps",
    "sensitivity/lower": "sums",
    "sensitivity/upper": "sums",
    "weights": "weights",
}


def _listed(parameter: str, given: Mapping[str, V] | None, names: tuple[str, ...]) -> list[V | None]:
    """The value of each column, or None."""
    if given is None:
        return [None] * len(names)
    if not isinstance(given, Mapping):
        detail = f"must be a mapping from names of columns, not {type(given).__name__}"
        raise InvalidParameter(parameter, detail)
    for name in given:
        if name not in names:
            raise InvalidParameter(parameter, "must name only columns of sums")
    return [given.get(name) for name in names]


_ACCOUNTINGS = {accounting.name: accounting for accounting in (EXACT, ADD_DELTAS)}


@dataclass(frozen=True, slots=True)
class Calibration:
    """A complete mechanism that meets the target, and the certified (ε, δ) that it reaches."""

    mechanism: Mechanism
    solved: tuple[Parameter, ...]
    """The parameters that were omitted and solved for."""
    privacy: Privacy
    largest_sigma: float | None = None
    """If σ alone was solved for: the largest σ that also meets the target. None if there is no largest."""
    survey: SurveyPlan | None = None
    """After a survey: its noise, and what was fixed for the mechanism before it."""


@dataclass(frozen=True, slots=True)
class Price:
    """The noise and the threshold that one accounting asks for the target."""

    mechanism: Mechanism
    privacy: Privacy
    least_sigma: float
    """The smallest σ whose noise alone meets the target. Below it no τ* helps."""
    sigma_ratio: float
    """σ divided by the σ of exact accounting."""
    tau_star_ratio: float
    """τ* divided by the τ* of exact accounting."""
    column_ratios: tuple[float, ...] = ()
    """The noise on each further column divided by that of exact accounting."""


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Mapping[ComparedName, Price | None]):
    """The price of each accounting at one target, cheapest first. None: that accounting cannot meet the target."""

    epsilon: float
    delta: float
    prices: tuple[tuple[ComparedName, Price | None], ...]
    """Pairs and not a dictionary: a comparison is hashable and can be pickled."""
    without_caps: Price | None = None
    """If columns have caps of their own: the price by exact accounting without them, or None if it cannot be met."""
    has_caps: bool = False
    """Whether some column has a cap of its own."""

    def __getitem__(self, accounting: ComparedName) -> Price | None:
        return dict(self.prices)[accounting]

    def __iter__(self) -> Iterator[ComparedName]:
        return iter(dict(self.prices))

    def __len__(self) -> int:
        return len(self.prices)

    def __repr__(self) -> str:
        """A table to read."""
        lines = [f"{'accounting':<13}{'sigma':>13}{'tau_star':>14}{'sigma ratio':>14}{'tau_star ratio':>16}"]
        rows: list[tuple[str, Price | None]] = list(self.prices)
        if self.has_caps:
            rows.append(("without caps", self.without_caps))
        for accounting, price in rows:
            if price is None:
                lines.append(f"{accounting:<13}{'cannot meet the target':>27}")
                continue
            numbers = f"{price.mechanism.sigma:>13.8g}{price.mechanism.tau_star:>14.8g}"
            lines.append(f"{accounting:<13}{numbers}{price.sigma_ratio:>14.5f}{price.tau_star_ratio:>16.5f}")
        if self.without_caps is not None and self.without_caps.column_ratios:
            ratios = ", ".join(f"{ratio:.5f}" for ratio in self.without_caps.column_ratios)
            lines.append(f"noise on the columns without caps, divided by that with caps: {ratios}")
        return "\n".join(lines)


def calibrate(
    *,
    epsilon: Real,
    delta: Real,
    c_u: Integer | None = None,
    tau: Integer = 1,
    tau_star: Real | None = None,
    sigma: Real | None = None,
    mu_0: Real = 0.0,
    aggregates: Aggregates | RelativeAggregates | None = None,
    sums: Mapping[str, tuple[Real, Real]] | None = None,
    caps: Mapping[str, Integer] | None = None,
    weights: Mapping[str, Real] | None = None,
    capped: ColumnCaps | None = None,
    accounting: Literal["exact", "add-deltas"] = "exact",
    survey: SurveyWanted = None,
) -> Calibration:
    """Solve for the omitted parameters, so that the mechanism meets (ε, δ).  [docs/math/closed-form.md]

        omit sigma and tau_star    the smallest σ with f(μ, ε) ≤ δ, then the smallest τ*
        omit tau_star              the smallest τ*:  τ* − τ = σ Φ⁻¹((1 − δ)^(1/C_u))
        omit sigma                 the smallest σ at that τ*, and the largest
        omit c_u                   the largest C_u

    The formulas are those of exact accounting. The answer meets the target, and the next double below it does not (for
    C_u: the next integer above it). ``InfeasibleTarget`` says what would make an impossible target possible.

    >>> import gsh
    >>> found = gsh.calibrate(c_u=51914, epsilon=0.349, delta=1e-5)
    >>> found.mechanism
    Mechanism(c_u=51914, tau=1, tau_star=13951.051328063842, sigma=2228.482632459166)
    >>> found.privacy.delta
    9.999999999999999e-06
    >>> gsh.calibrate(tau_star=15000, sigma=2300, epsilon=0.349, delta=1e-5).mechanism.c_u
    55299

    ``sums`` are further columns: the least and the most that one user adds to each in one group. ``caps`` says in how
    many groups one user changes a column at most, if in fewer than C_u. Each column gets the same share of μ² as the
    count, or a multiple of it (``weights``).  [docs/math/column-caps.md]

    >>> sums = {"views": (0, 20), "likes": (0, 5)}
    >>> found = gsh.calibrate(c_u=16, epsilon=1, delta=1e-6, sums=sums, caps={"likes": 4})
    >>> [round(row[j] ** 0.5 / found.mechanism.sigma, 6) for j, row in enumerate(found.mechanism.aggregates.covariance)]
    [20.0, 2.5]

    ``survey`` is a histogram over the users that is published first, and from which C_u is then chosen. Give its noise
    (``gsh.SurveyNoise``) or its share of the noise cost (``gsh.SurveyShare``), several as a list. The answer's
    ``survey`` has its noise, and the costs that are fixed for the mechanism before the survey. Give it to the call
    with the C_u that the survey suggests. Both mechanisms meet the target.  [docs/math/two-stages.md]

    >>> found = gsh.calibrate(c_u=64, epsilon=1, delta=1e-6, survey=gsh.SurveyShare(0.01))
    >>> found.survey.survey
    (SurveyNoise(sigma=42.24678889326836),)
    >>> found.mechanism.sigma, gsh.calibrate(c_u=256, epsilon=1, delta=1e-6, survey=found.survey).mechanism.sigma
    (34.160102809779055, 68.32020561955811)
    """
    if not isinstance(accounting, str) or accounting not in _ACCOUNTINGS:
        raise InvalidParameter("accounting", "must be 'exact' or 'add-deltas'")
    columns = Columns(mu_0, capped, aggregates, sums, caps, weights)
    start = draft_of(columns, c_u=c_u, tau=tau, tau_star=tau_star, sigma=sigma)
    goal = target_of(epsilon=epsilon, delta=delta)
    if survey is not None:
        return _after_survey(survey, start, goal, accounting)
    try:
        found = target.calibrate(_ACCOUNTINGS[accounting], start, goal)
    except InvalidParameter as error:
        if error.pointer:
            raise
        # Not one parameter is wrong, but the choice of those that are omitted.
        detail = "omit sigma, tau_star, both, or c_u: exactly the parameters to solve for"
        raise InvalidParameter("sigma", detail) from None
    return Calibration(found.mechanism, found.solved, privacy_of(accounting, found.point), found.largest_sigma)


def _after_survey(survey: SurveyWanted, start: draft.Draft, goal: draft.Target, accounting: str) -> Calibration:
    if accounting != "exact":
        raise InvalidParameter("accounting", "must be 'exact' with a survey")
    found, plan = calibrate_one_after(start, goal, survey_wanted(survey))
    return Calibration(found.mechanism, found.solved, privacy_of("exact", found.point), survey=plan)


def survey_wanted(given: SurveyWanted) -> tuple[SurveyNoise | SurveyShare, ...] | SurveyPlan:
    """The histograms of a survey, or what is fixed already."""
    if isinstance(given, SurveyPlan):
        return given
    wanted = []
    for place, each in survey_places(given):
        if not isinstance(each, SurveyNoise | SurveyShare):
            detail = f"must be a gsh.SurveyNoise or a gsh.SurveyShare, not {type(each).__name__}"
            raise InvalidParameter(place, detail)
        wanted.append(each)
    return tuple(wanted)


def compare(
    *,
    c_u: Integer,
    epsilon: Real,
    delta: Real,
    tau: Integer = 1,
    mu_0: Real = 0.0,
    aggregates: Aggregates | RelativeAggregates | None = None,
    sums: Mapping[str, tuple[Real, Real]] | None = None,
    caps: Mapping[str, Integer] | None = None,
    weights: Mapping[str, Real] | None = None,
    capped: ColumnCaps | None = None,
) -> Comparison:
    """The noise and the threshold that each accounting asks for the same target.  [docs/math/other-accountings.md]

        exact         max(δ_infinite, δ_gaussian) ≤ δ
        add-deltas    δ_infinite + δ_gaussian ≤ δ, at the σ with the smallest τ*
        half-split    δ_infinite ≤ δ/2 and δ_gaussian ≤ δ/2
        zcdp          as add-deltas, with δ_gaussian from ρ-zCDP

    >>> import gsh
    >>> gsh.compare(c_u=51914, epsilon=0.349, delta=1e-5)
    accounting           sigma      tau_star   sigma ratio  tau_star ratio
    exact            2228.4826     13951.051       1.00000         1.00000
    add-deltas       2274.4331     14713.036       1.02062         1.05462
    half-split       2334.7379     14866.526       1.04768         1.06562
    zcdp             2486.5062     16054.911       1.11578         1.15080
    """
    columns = Columns(mu_0, capped, aggregates, sums, caps, weights)
    start = draft_of(columns, c_u=integer("c_u", c_u), tau=tau)
    goal = target_of(epsilon=epsilon, delta=delta)
    found = comparison.compare(start, goal)
    exact = found["exact"]
    assert exact is not None  # it raises if exact accounting cannot meet the target
    has_caps = bool(exact.mechanism.costs.capped)
    without = comparison.price_without_caps(start, goal, exact.mechanism) if has_caps else None
    prices = tuple((name, _price(name, price)) for name, price in found.items())
    return Comparison(goal.epsilon, goal.delta, prices, _price("exact", without), has_caps=has_caps)


def _price(accounting: ComparedName, found: comparison.PricedMechanism | None) -> Price | None:
    if found is None:
        return None
    return Price(
        mechanism=found.mechanism,
        privacy=privacy_of(accounting, found.point),
        least_sigma=found.least_sigma,
        sigma_ratio=found.sigma_ratio,
        tau_star_ratio=found.tau_star_ratio,
        column_ratios=found.column_ratios,
    )


def draft_of(
    columns: Columns,
    *,
    c_u: Integer | None = None,
    tau: Integer = 1,
    tau_star: Real | None = None,
    sigma: Real | None = None,
) -> draft.Draft:
    """A mechanism with None for each parameter to solve for."""
    most_groups = None if c_u is None else integer("c_u", c_u)
    further, capped = columns.described(most_groups)
    return draft.Draft(
        c_u=most_groups,
        tau=integer("tau", tau),
        tau_star=None if tau_star is None else real("tau_star", tau_star),
        sigma=None if sigma is None else real("sigma", sigma),
        columns=further,
        capped=capped,
    )


def target_of(*, epsilon: Real, delta: Real) -> draft.Target:
    """The (ε, δ) to meet."""
    return draft.Target(real("epsilon", epsilon) + 0.0, real("delta", delta))
