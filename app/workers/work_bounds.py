"""How much work a request asks for, estimated from its public parameters before any of it is done.

The unit is about a millisecond of one core. The estimates follow what the parts of the accounting core cost:

    prove Σ and invert it       k³/1600                       k columns
    screen the extreme points   n (k + 10)/20 000             n = 2^k corners of a box, or n vectors
    settle those that tie       min(n, 1000) k²/1000          more if Σ is nearly singular
    a Euclidean bound           k²/10 + k³/1000               the smallest eigenvalue, at rising precision

    an error quantile           n/250                         n sizes of groups: some ten evaluations of a distribution

    caps on columns             c/30 an evaluation            c different caps; a search of σ or τ* takes about 100
    several tables              c/30 an evaluation            c cuts: one for each table, and one for each of its caps
    a point after a survey      2, or 40 by δ                 one integral, or a search
                                100, or 400 by δ              by chords, and once 200 + 60 c for c cuts
    the theorem                 s (2 + n)/10 000              s splits of n tables

If Σ scales with σ, each σ that is tried has a Σ of its own.
"""

import math
from collections.abc import Sequence
from typing import TypeAlias

from app.errors import LimitExceeded
from app.schemas.aggregates import BalancedColumnsIn, BoxIn, ColumnsIn, L2In, MuZeroIn, RelativeColumnsIn, VectorsIn
from app.schemas.mechanism import DraftIn, OutlineIn, PostedMechanism, TableDraftIn, TableIn
from gsh.accounting.covariance import is_diagonal
from gsh.accounting.engines.noise import NoiseKind
from gsh.accounting.frontier import ENOUGH_EPSILON
from gsh.accounting.mechanism import Mechanism, Release, Surveyed, mechanisms_of
from gsh.accounting.sensitivity import MOST_BOX_COLUMNS
from gsh.accounting.two_stages import is_exact

__all__ = [
    "AT_ONCE",
    "calibration_work",
    "caps_of",
    "check_work",
    "columns_work",
    "comparison_work",
    "cuts_of",
    "engine_work",
    "frontier_work",
    "is_relative",
    "needs_search",
    "points_work",
    "posted_cuts",
    "remaining_work",
    "solves_sigma",
    "surveyed_calibration_work",
    "surveyed_points_work",
    "surveyed_work",
    "tables_calibration_work",
    "tables_comparison_work",
    "take_long",
    "theorem_work",
    "utility_work",
    "work_of",
]

AT_ONCE = 1.0
"""The most work, in milliseconds, that the event loop does without a pause."""

WithColumns: TypeAlias = PostedMechanism | DraftIn | OutlineIn | TableIn | TableDraftIn

_LEAST_COLUMNS_WORK = 0.3
_MOST_TIES = 1000
_MOST_TIED_SPLITS = 5000
# How many Σ are tried, at most or nearly so, if Σ scales with σ.
_PER_CAP, _EVALUATIONS, _FOR_COMPARED_CAPS = 1 / 30, 100, 1200
_PER_TABLE = 0.3
_FOR_PLAN, _FACTORS = 300, 8
_SEARCHED_POINTS = 60
_CUTS_AT_ONCE = 10
_FOR_SIGMA, _FOR_ANOTHER, _PER_FRONTIER_POINT, _FOR_COMPARISON, _FOR_REMAINDER = 40, 10, 8, 16, 250


def columns_work(columns: int, points: int | None) -> float:
    """For μ₀ of one Σ. ``points`` is the number of extreme points of Δ; None for a Euclidean bound."""
    if points is None:
        return _LEAST_COLUMNS_WORK + columns**2 / 10 + columns**3 / 1000
    screening = points * (columns + 10) / 20_000
    return _LEAST_COLUMNS_WORK + columns**3 / 1600 + screening + min(points, _MOST_TIES) * columns**2 / 1000


def work_of(described: WithColumns) -> float:
    """For the columns of a mechanism: one μ₀, or one relative to σ."""
    match described.aggregates:
        case ColumnsIn(covariance=rows) | RelativeColumnsIn(relative_covariance=rows) as columns:
            return columns_work(len(columns.names), _points(columns.sensitivity, len(columns.names), rows))
        case BalancedColumnsIn(names=names):
            return columns_work(len(names), len(names))
        case _:
            return 0.0


def _points(sensitivity: object, columns: int, covariance: list[list[float]]) -> int | None:
    """The number of extreme points of Δ; None for a Euclidean bound."""
    match sensitivity:
        case L2In():
            return None
        case VectorsIn(vectors=vectors):
            return len(vectors)
        case BoxIn() if not is_diagonal(covariance):
            return 1 << min(columns, MOST_BOX_COLUMNS)
        case _:
            return columns


def caps_of(described: WithColumns) -> int:
    """How many caps the columns of a mechanism have."""
    match described.aggregates:
        case MuZeroIn(capped=capped):
            return len(capped or ())
        case ColumnsIn() | RelativeColumnsIn() | BalancedColumnsIn() as columns:
            groups = columns.sensitivity.groups if isinstance(columns.sensitivity, BoxIn) else None
            return len(set(groups or ()) - {None})
        case _:
            return 0


def is_relative(described: WithColumns) -> bool:
    """Whether the noise on the columns scales with σ."""
    return isinstance(described.aggregates, RelativeColumnsIn | BalancedColumnsIn)


def cuts_of(release: Release) -> int:
    """How many splits the exact δ of a release compares, between all groups above τ and all of them at τ."""
    tables = mechanisms_of(release)
    secret = [table for table in tables if isinstance(table, Mechanism)]
    pieces = sum(1 + len(table.caps) for table in secret)
    return pieces - (len(secret) == len(tables))


def posted_cuts(posted: Sequence[WithColumns]) -> int:
    """The same for the tables of a request, before anything of them is computed; perhaps more."""
    secret = [each for each in posted if getattr(each, "tau", None) is not None]
    return sum(1 + caps_of(each) for each in secret) - (len(secret) == len(posted))


def needs_search(delta: float | None, epsilon: float | None) -> bool:
    """Whether a point of a curve with cuts takes a search: by δ, or at ε near 0. Without both, ε is 0."""
    return delta is not None or (epsilon or 0.0) < ENOUGH_EPSILON


def take_long(cuts: int, *, needs_search: bool) -> bool:
    """Whether a point of a curve with cuts takes too long for the event loop."""
    return cuts > (0 if needs_search else _CUTS_AT_ONCE)


def points_work(cuts: int, points: int, *, needs_search: bool = True) -> float:
    """For points of a curve with cuts, such as those of caps on columns: by δ, or at ε near 0, each takes a search."""
    return (_EVALUATIONS if needs_search else 1) * _PER_CAP * cuts * points


def surveyed_points_work(release: Surveyed, points: int, *, by_delta: bool) -> float:
    """For points of a curve after a survey."""
    if is_exact(release):
        return (40 if by_delta else 2) * points
    return _chords_work(cuts_of(release)) + (400 if by_delta else 100) * points


def surveyed_work(posted: Sequence[PostedMechanism | TableIn], *, by_delta: bool) -> float:
    """For a certificate after a survey: chords, if there can be cuts."""
    points = 400 if by_delta else 100
    return _chords_work(posted_cuts(posted)) + points if len(posted) > 1 or posted_cuts(posted) else points / 10


def surveyed_calibration_work(posted: Sequence[DraftIn | TableDraftIn]) -> float:
    """For a calibration before a survey. Caps and public groups need a search of the factor of all thresholds."""
    columns = sum(_tried(each, _FOR_ANOTHER) for each in posted)
    is_mixed = any(each.tau is None or caps_of(each) for each in posted)
    return _FOR_PLAN + columns + (_FACTORS * _chords_work(posted_cuts(posted)) if is_mixed else 0.0)


def _chords_work(cuts: int) -> float:
    return 200 + 60 * cuts


def calibration_work(draft: DraftIn) -> float:
    """For a calibration and its comparison."""
    return 10 + _tried(draft, _FOR_SIGMA if solves_sigma(draft) else _FOR_ANOTHER) + points_work(caps_of(draft), 2)


def frontier_work(draft: DraftIn, sigmas: int) -> float:
    return 1.5 * sigmas + _tried(draft, _PER_FRONTIER_POINT * sigmas) + points_work(caps_of(draft), sigmas) / 8


def comparison_work(outline: OutlineIn) -> float:
    return 20 + _tried(outline, _FOR_COMPARISON) + _FOR_COMPARED_CAPS * _PER_CAP * caps_of(outline)


def remaining_work(draft: DraftIn) -> float:
    return 50 + _tried(draft, _FOR_REMAINDER) + points_work(caps_of(draft), 4)


def solves_sigma(draft: DraftIn) -> bool:
    """Whether σ is searched at a given τ*. Without τ*, the smallest σ is found at once."""
    return draft.sigma is None and draft.tau_star is not None


def _tried(described: DraftIn | OutlineIn | TableDraftIn, trials: int) -> float:
    """For μ₀ of every Σ that is tried."""
    return work_of(described) * (trials if is_relative(described) else 1)


def tables_calibration_work(tables: Sequence[TableDraftIn]) -> float:
    """For shares of a target. Caps and public groups need a search of the factor of all thresholds."""
    columns = sum(_tried(table, _FOR_ANOTHER) for table in tables)
    cuts = sum(1 + caps_of(table) for table in tables)
    is_mixed = any(table.tau is None or caps_of(table) for table in tables)
    return _PER_TABLE * len(tables) + columns + (points_work(cuts, 1) if is_mixed else 0.0)


def tables_comparison_work(tables: Sequence[TableDraftIn]) -> float:
    """For the ways to account for several tables: two searches over all of them, and each table by itself."""
    alone = sum(5 + points_work(caps_of(table), 2) + _tried(table, _FOR_SIGMA) for table in tables)
    return tables_calibration_work(tables) + alone


def theorem_work(splits: int, points: int, caps: Sequence[int]) -> float:
    """For a scan of all splits of some tables, each with a number of caps. Each table adds arrays to the scan.

    Of n tables that are alike, as many splits tie as there are choices of half of them. Balls decide among them.
    """
    tables = len(caps)
    scan = splits * (2 + math.fsum(1 + each / 50 for each in caps)) / 10_000
    ties = min(splits, _MOST_TIED_SPLITS, math.comb(tables, tables // 2))
    return points * (5 + scan + ties * (0.025 + tables / 400))


def utility_work(sizes: int, quantiles: int) -> float:
    return 5 + sizes * (1 + quantiles) / 250


def engine_work(kind: NoiseKind, c_u: int, *, needs_search: bool) -> float:
    """Measured: up to 3 ms for each group while terms are summed, then a few seconds at most."""
    point = {"gaussian": 5.0, "rounded-gaussian": 5.0, "discrete-gaussian": 20 + min(2.0 * c_u, 4000)}.get(
        kind, 10 + min(0.1 * c_u, 2000)
    )
    return point * (_SEARCHED_POINTS if needs_search else 1)


def check_work(most: int, pointer: str, work: float | Sequence[float], advice: str) -> None:
    """Refuse a request of more than ``most``; ``advice`` says how to make it smaller."""
    total = work if isinstance(work, float | int) else sum(work)
    if total > most:
        raise LimitExceeded(
            pointer, f"needs about {total:.0f} ms of work; at most {most} are allowed (GSH_MAX_WORK): {advice}"
        )
