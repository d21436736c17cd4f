"""How much work a request asks for, estimated from its public parameters before any of it is done.

The unit is about a millisecond of one core. The estimates follow what the parts of the accounting core cost:

    prove Σ and invert it       k³/1600                       k columns
    screen the extreme points   n (k + 10)/20 000             n = 2^k corners of a box, or n vectors
    settle those that tie       min(n, 1000) k²/1000          more if Σ is nearly singular
    a Euclidean bound           k²/10 + k³/1000               the smallest eigenvalue, at rising precision

    an error quantile           n/250                         n sizes of groups: some ten evaluations of a distribution

    caps on columns             c/30 an evaluation            c different caps; a search of σ or τ* takes about 100

If Σ scales with σ, each σ that is tried has a Σ of its own.
"""

from collections.abc import Sequence

from app.errors import LimitExceeded

__all__ = [
    "calibration_work",
    "check_work",
    "columns_work",
    "comparison_work",
    "frontier_work",
    "points_work",
    "remaining_work",
    "theorem_work",
    "utility_work",
]

_LEAST_COLUMNS_WORK = 0.3
_MOST_TIES = 1000
# How many Σ are tried, at most or nearly so, if Σ scales with σ.
_PER_CAP, _EVALUATIONS, _FOR_COMPARED_CAPS = 1 / 30, 100, 1200
_FOR_SIGMA, _FOR_ANOTHER, _PER_FRONTIER_POINT, _FOR_COMPARISON, _FOR_REMAINDER = 40, 10, 8, 16, 250


def columns_work(columns: int, points: int | None) -> float:
    """For μ₀ of one Σ. ``points`` is the number of extreme points of Δ; None for a Euclidean bound."""
    if points is None:
        return _LEAST_COLUMNS_WORK + columns**2 / 10 + columns**3 / 1000
    screening = points * (columns + 10) / 20_000
    return _LEAST_COLUMNS_WORK + columns**3 / 1600 + screening + min(points, _MOST_TIES) * columns**2 / 1000


def points_work(caps: int, points: int) -> float:
    """For points of a curve of a mechanism with caps on columns: by δ, or at ε near 0, each takes a search."""
    return _EVALUATIONS * _PER_CAP * caps * points


def calibration_work(columns: float, caps: int, *, is_relative: bool, solves_sigma: bool) -> float:
    """For a calibration and its comparison; ``columns`` is the work for one μ₀."""
    trials = _FOR_SIGMA if solves_sigma else _FOR_ANOTHER
    return 10 + columns * (trials if is_relative else 1) + points_work(caps, 2)


def frontier_work(columns: float, caps: int, sigmas: int, *, is_relative: bool) -> float:
    return 1.5 * sigmas + columns * (_PER_FRONTIER_POINT * sigmas if is_relative else 1) + points_work(caps, sigmas) / 8


def comparison_work(columns: float, caps: int, *, is_relative: bool) -> float:
    return 20 + columns * (_FOR_COMPARISON if is_relative else 1) + _FOR_COMPARED_CAPS * _PER_CAP * caps


def remaining_work(columns: float, caps: int, *, is_relative: bool) -> float:
    return 50 + columns * (_FOR_REMAINDER if is_relative else 1) + points_work(caps, 4)


def theorem_work(c_u: int, points: int, caps: int) -> float:
    return points * (5 + c_u * (1 + caps / 50) / 10_000)


def utility_work(sizes: int, quantiles: int) -> float:
    return 5 + sizes * (1 + quantiles) / 250


def check_work(most: int, pointer: str, work: float | Sequence[float], advice: str) -> None:
    """Refuse a request of more than ``most``; ``advice`` says how to make it smaller."""
    total = work if isinstance(work, float | int) else sum(work)
    if total > most:
        raise LimitExceeded(
            pointer, f"needs about {total:.0f} ms of work; at most {most} are allowed (GSH_MAX_WORK): {advice}"
        )
