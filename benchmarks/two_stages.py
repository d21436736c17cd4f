"""A survey of the users and then tables chosen from it, against other ways: ``python -m benchmarks.two_stages``.

docs/math/two-stages.md has these numbers.
"""

import functools
import math
from collections.abc import Callable
from itertools import count

from flint import arb
from scipy.optimize import minimize_scalar
from scipy.special import ndtri

from benchmarks.markdown import places_up, table
from benchmarks.timing import duration, medians
from gsh.accounting import gaussian, two_stages
from gsh.accounting.accountings import EXACT, at_delta, at_epsilon
from gsh.accounting.calibration.after_survey import Bound, SurveyPlan, SurveyShare, calibrate_one_after, plan_of
from gsh.accounting.calibration.draft import Draft, Target
from gsh.accounting.calibration.shares import largest_hazard, largest_square
from gsh.accounting.calibration.target import calibrate
from gsh.accounting.chords import mixture_of
from gsh.accounting.mechanism import Joint, Mechanism, PlainGaussian, Surveyed, SurveyNoise
from gsh.accounting.numerics.balls import approximate, round_up

TARGETS = ((Target(1.0, 1e-6), 16), (Target(0.349, 1e-5), 51914))
SHARES = (0.001, 0.002, 0.01, 0.05)
C_US = (1, 16, 64, 1000, 10**6)
_NEW = 1e-9
"""So much do parameters differ that a cache must not know."""


def main() -> None:
    for title, tabulate in (
        ("What a survey costs: more σ and more τ*, against one release that spends all", costs),
        ("δ if S* − S_h and D* follow a survey, as if they were fixed: divided by δ", adaptivity),
        ("How much lower τ* − τ could be with the best θ for a C_u than with that for 64", other_thetas),
        ("How far the chords are above the exact δ", chords),
        ("Times", times),
    ):
        print(f"## {title}\n\n{tabulate()}\n")


def costs() -> str:
    rows = []
    for target, c_u in TARGETS:
        alone = calibrate(EXACT, _draft(c_u), target).mechanism
        square, gap = float(largest_square(target)), alone.tau_star - 1
        for share in SHARES:
            found, plan = calibrate_one_after(_draft(c_u), target, [SurveyShare(share)])
            theta = -math.expm1(-plan.hazard) / target.delta
            composed = _composed(target, share * square, c_u)
            together = _threshold(c_u, (1 - share) * square, _hazard_next_to(target, share * square))
            rows.append(
                [
                    f"({target.epsilon:g}, {target.delta:g}), C_u = {c_u}",
                    f"{100 * share:g} %",
                    places_up(plan.survey[0].sigma, 2),
                    f"{theta:.3f}",
                    f"{plan.mu_squared / square:.5f}",
                    _more(found.mechanism.sigma / alone.sigma),
                    _more(found.mechanism.tau_star / alone.tau_star),
                    _more(math.sqrt(square / composed[0])),
                    _more((1 + composed[1]) / (1 + gap)),
                    _more(math.sqrt(1 / (1 - share))),
                    _more((1 + together) / (1 + gap)),
                ]
            )
    ways = ("after the survey", "composition", "fixed before")
    header = ["target", "S_h/S*", "σ_h", "θ", "S/S*", *(f"{way}: {name}" for way in ways for name in ("σ", "τ*"))]
    return table(header, rows)


def _draft(c_u: int) -> Draft:
    return Draft(c_u=c_u, tau=1, tau_star=None, sigma=None)


def _more(ratio: float) -> str:
    return f"+{100 * (ratio - 1):.2f} %"


def _threshold(c_u: int, square: float, hazard: float) -> float:
    """τ* − τ = √(C/S) Φ⁻¹(e^(−D/C))"""
    return -math.sqrt(c_u / square) * float(ndtri(-math.expm1(-hazard / c_u)))


def _composed(target: Target, survey: float, c_u: int) -> tuple[float, float]:
    """S and τ* − τ if composition adds the costs up, at the division with the lowest threshold."""

    def square(theta: float) -> float:
        hazard = -math.log1p(-theta * target.delta)
        rest = (1 - theta) * target.delta / (1 - theta * target.delta)
        return float(approximate(lambda: gaussian.mu_at(arb(target.epsilon + hazard), arb(rest)) ** 2)) - survey

    def gap(theta: float) -> float:
        left = square(theta)
        return _threshold(c_u, left, -math.log1p(-theta * target.delta)) if left > 0 else math.inf

    theta = minimize_scalar(gap, bounds=(1e-4, 1 - 1e-4), method="bounded", options={"xatol": 1e-6}).x
    return square(theta), gap(theta)


def _hazard_next_to(target: Target, survey: float) -> float:
    """The D that public groups with S_h leave to a table that is fixed together with them."""
    low, high = 0.0, float(largest_hazard(target))
    for _ in range(60):
        middle = (low + high) / 2
        fits = _delta(two_stages.composed, target, survey, 0.0, middle) <= target.delta
        low, high = (middle, high) if fits else (low, middle)
    return low


def _delta(bound: Bound, target: Target, survey: float, square: float, hazard: float) -> float:
    def found() -> arb:
        return bound(two_stages.Costs(arb(survey), arb(square), arb(hazard)), arb(target.epsilon))

    return float(approximate(found))


def adaptivity() -> str:
    rows = []
    for target, _ in TARGETS:
        square, hazard = largest_square(target), largest_hazard(target)
        cells = []
        for share in SHARES:
            survey = share * float(square)
            found = _delta(two_stages.delta, target, survey, float(square) - survey, float(hazard))
            cells.append(f"{found / target.delta:.3f}")
        rows.append([f"({target.epsilon:g}, {target.delta:g})", *cells])
    return table(("S_h/S* =", *(f"{100 * share:g} %" for share in SHARES)), rows)


def other_thetas() -> str:
    rows = []
    for target, _ in TARGETS:
        for share in (SHARES[0], SHARES[-1]):
            plan = plan_of(target, (SurveyShare(share),))
            cells = [f"{100 * (_gap(plan, c_u) / _best_gap(target, plan, c_u) - 1):.3f} %" for c_u in C_US]
            rows.append([f"({target.epsilon:g}, {target.delta:g})", f"{100 * share:g} %", *cells])
    return table(("target", "S_h/S*", *(f"C_u = {c_u}" for c_u in C_US)), rows)


def _gap(plan: SurveyPlan, c_u: int) -> float:
    return _threshold(c_u, plan.mu_squared, plan.hazard)


def _best_gap(target: Target, plan: SurveyPlan, c_u: int) -> float:
    survey = 1 / plan.survey[0].sigma ** 2
    most = float(largest_square(target)) - survey

    def square(hazard: float) -> float:
        low, high = 0.0, most
        for _ in range(30):
            middle = (low + high) / 2
            fits = _delta(two_stages.delta, target, survey, middle, hazard) <= target.delta
            low, high = (middle, high) if fits else (low, middle)
        return low

    def gap(theta: float) -> float:
        hazard = -math.log1p(-theta * target.delta)
        return _threshold(c_u, square(hazard), hazard)

    here = -math.expm1(-plan.hazard) / target.delta
    bounds = (max(here - 0.15, 0.01), min(here + 0.15, 0.999))
    return float(minimize_scalar(gap, bounds=bounds, method="bounded", options={"xatol": 1e-3}).fun)


def chords() -> str:
    rows = []
    for target, c_u in TARGETS:
        cells = []
        for share in SHARES:
            found, plan = calibrate_one_after(_draft(c_u), target, [SurveyShare(share)])
            release = Surveyed(plan.survey, found.mechanism)
            cells.append(f"{_by_chords(release, target.epsilon) / found.point.delta - 1:.1e}")
        rows.append([f"({target.epsilon:g}, {target.delta:g}), C_u = {c_u}", *cells])
    return table(("S_h/S* =", *(f"{100 * share:g} %" for share in SHARES)), rows)


def _by_chords(release: Surveyed, epsilon: float) -> float:
    mixture = mixture_of(release, epsilon)
    return round_up(lambda: [mixture.largest(epsilon)])[0]


def times() -> str:
    target, c_u = TARGETS[0]
    numbers = count(1)

    def new(tables: Mechanism | Joint) -> Surveyed:
        return Surveyed([SurveyNoise(42.25 * (1 + next(numbers) * _NEW))], tables)

    found, plan = calibrate_one_after(_draft(c_u), target, [SurveyShare(0.01)])
    one = found.mechanism
    capped = Mechanism(c_u=c_u, tau_star=one.tau_star, sigma=one.sigma, capped={4: 0.01})
    public = Joint([one, PlainGaussian(c_u=1, sigma=40.0)])
    calls: dict[str, Callable[[], object]] = {
        "δ of one table": functools.partial(at_epsilon, EXACT, one, target.epsilon),
        "δ after a survey": lambda: at_epsilon(EXACT, new(one), target.epsilon),
        "ε after a survey": lambda: at_delta(EXACT, new(one), target.delta),
        "δ after a survey, by chords: caps": lambda: at_epsilon(EXACT, new(capped), target.epsilon),
        "δ after a survey, by chords: public groups": lambda: at_epsilon(EXACT, new(public), target.epsilon),
        "calibration, before the survey": lambda: calibrate_one_after(_draft(c_u), target, new(one).survey),
        "calibration, after the survey": functools.partial(calibrate_one_after, _draft(c_u), target, plan),
    }
    measured = medians(calls, rounds=7)
    rows = [
        (name, duration(seconds), f"{seconds / measured['δ of one table']:.0f}") for name, seconds in measured.items()
    ]
    return table(("what", "median", "ratio to δ of one table"), rows)


if __name__ == "__main__":
    main()
