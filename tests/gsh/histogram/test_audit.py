"""An audit: can an attacker show that the certified δ is too small?

Neighbouring tables are released many times: one user more, or fewer, in a₌ groups that then sit exactly at τ and in a₊
groups far above the thresholds. The event that best distinguishes the two bounds δ from below, with confidence. An
honest mechanism stays under its certified δ, and reaches most of the theorem's δ for these neighbours; one whose
σ is 10 % off is detected.
"""

import math
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import log_ndtr
from scipy.stats import beta

from gsh.accounting.accountings import EXACT, at_epsilon
from gsh.accounting.mechanism import Mechanism
from gsh.histogram.apply import apply_mechanism
from gsh.histogram.noise import Noise
from tests import reference
from tests.gsh.histogram.recorded import Recorded

pytestmark = pytest.mark.slow

TRIALS = 400_000
DOUBT = 1e-6
MANY = 10_000
"""Users of a group far above the thresholds, the one in question not counted."""

Direction = Literal["added", "removed"]
NEAR = Mechanism(c_u=4, tau=2, tau_star=12.0, sigma=3.0)
"""Its δ at ε = 0.5 is that of the noise."""
LOW = Mechanism(c_u=3, tau=2, tau_star=8.0, sigma=3.0)
"""Its δ at ε = 2 is that of groups which exist for one user alone."""


def lower_bound(hits: int) -> float:
    """Clopper–Pearson, from below."""
    return float(beta.ppf(DOUBT, hits, TRIALS - hits + 1)) if hits else 0.0


def upper_bound(hits: int) -> float:
    return float(beta.ppf(1 - DOUBT, hits + 1, TRIALS - hits))


def released(run: Mechanism, counts: list[int], seed: str) -> NDArray[np.float64]:
    """The noisy counts of these groups in each trial; NaN for a dropped group."""
    answer = apply_mechanism(Noise(run), np.tile(counts, TRIALS), [], np.arange(TRIALS * len(counts)), Recorded(seed))
    table = np.full(TRIALS * len(counts), np.nan)
    table[answer.rows] = answer.counts
    return table.reshape(TRIALS, len(counts))


def event(claimed: Mechanism, outcomes: NDArray[np.float64], a_equal: int, epsilon: float, direction: Direction) -> int:
    """How often the likelihood ratio of the two tables, if σ is as claimed, is at least e^ε."""
    seen = ~np.isnan(outcomes[:, :a_equal]).all(axis=1) if a_equal else np.zeros(TRIALS, np.bool_)
    towards = (outcomes[:, a_equal:] - MANY - 0.5).sum(axis=1) / claimed.sigma**2
    log_p = float(log_ndtr((claimed.tau_star - claimed.tau) / claimed.sigma))
    if direction == "added":
        return int((seen | (towards >= epsilon - a_equal * log_p)).sum())
    return int((~seen & (-towards >= epsilon + a_equal * log_p)).sum())


def audited(claimed: Mechanism, run: Mechanism, a_equal: int, epsilon: float, direction: Direction) -> float:
    """The δ at ε that these neighbours reveal, from below."""
    a_plus = claimed.c_u - a_equal
    with_user = released(run, [run.tau] * a_equal + [MANY + 1] * a_plus, "with")
    without = released(run, [run.tau - 1] * a_equal + [MANY] * a_plus, "without")
    likely, unlikely = (with_user, without) if direction == "added" else (without, with_user)
    hits, false = (event(claimed, table, a_equal, epsilon, direction) for table in (likely, unlikely))
    return lower_bound(hits) - math.exp(epsilon) * upper_bound(false)


def theory(mechanism: Mechanism, a_equal: int, epsilon: float, direction: Direction) -> float:
    """The δ of the theorem for these neighbours.  [KKWZ Thm. 5.4]"""
    log_p = float(log_ndtr((mechanism.tau_star - mechanism.tau) / mechanism.sigma))
    mu = math.sqrt(mechanism.c_u - a_equal) / mechanism.sigma
    if direction == "removed":
        return float(reference.gaussian(mu, epsilon + a_equal * log_p))
    withheld = a_equal * log_p
    return float(-math.expm1(withheld) + math.exp(withheld) * reference.gaussian(mu, epsilon - withheld))


@pytest.mark.parametrize("direction", ["added", "removed"])
@pytest.mark.parametrize("a_equal", range(NEAR.c_u))
def test_neighbours_reveal_the_theoretical_delta_and_no_more_than_the_certified_one(
    a_equal: int, direction: Direction
) -> None:
    """Groups at τ and above it, in every mixture; with none at τ the event is the optimal one."""
    certified = at_epsilon(EXACT, NEAR, 0.5)
    found = audited(NEAR, NEAR, a_equal, 0.5, direction)

    assert certified.binding == "gaussian"
    assert found <= certified.delta
    assert found > theory(NEAR, a_equal, 0.5, direction) / 2
    if a_equal == 0:
        assert found > certified.delta / 2


def test_groups_of_a_single_user_reveal_no_more_than_the_certified_delta() -> None:
    """All C_u groups at τ: that any is released is the optimal event."""
    certified = at_epsilon(EXACT, LOW, 2.0)
    found = audited(LOW, LOW, LOW.c_u, 2.0, "added")

    assert certified.binding == "infinite"
    assert certified.delta / 2 < found <= certified.delta


@pytest.mark.parametrize("direction", ["added", "removed"])
def test_the_audit_detects_a_sigma_ten_per_cent_too_small(direction: Direction) -> None:
    run = Mechanism(c_u=NEAR.c_u, tau=NEAR.tau, tau_star=NEAR.tau_star, sigma=0.9 * NEAR.sigma)

    assert audited(NEAR, run, 0, 0.5, direction) > at_epsilon(EXACT, NEAR, 0.5).delta


def test_the_audit_detects_a_sigma_ten_per_cent_too_large_at_the_threshold() -> None:
    """There more noise lifts more groups over τ*."""
    run = Mechanism(c_u=LOW.c_u, tau=LOW.tau, tau_star=LOW.tau_star, sigma=1.1 * LOW.sigma)

    assert audited(LOW, run, LOW.c_u, 2.0, "added") > at_epsilon(EXACT, LOW, 2.0).delta
