"""Who is kept, how often; and whether an attacker could tell that the claimed δ is too small.

The audit releases neighbouring tables many times and bounds from below, with confidence, the δ that the optimal event
reveals. An honest mechanism stays under its certified δ; one with a σ 10 % too small does not.
"""

import math

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import beta, binom

from app.accounting.mechanism import Mechanism
from app.accounting.methods import EXACT, at_epsilon
from app.release.noise import Noise, Noisy
from tests.release.recorded import Recorded

TRIALS = 400_000
UNLIKELY = 1e-6
CONFIDENCE = 1 - 1e-6


def release(mechanism: Mechanism, count: int, groups: int, seed: str) -> Noisy:
    return Noise(mechanism).add(np.full(groups, count), np.empty((groups, 0)), Recorded(seed))


@pytest.mark.parametrize("tau_star", [10.0, 10.25])
@pytest.mark.parametrize("count", [4, 5, 8, 9, 10, 11, 14])
def test_a_group_is_kept_as_often_as_theory_says(count: int, tau_star: float) -> None:
    """C ≥ τ and C + v ≥ τ*; a group at τ − 1 never."""
    mechanism = Mechanism(1, 5, tau_star, 2.0)
    kept = int(release(mechanism, count, TRIALS, f"boundary {count} {tau_star}").kept.sum())
    chance = float(ndtr((count - tau_star) / 2.0)) if count >= 5 else 0.0

    assert binom.cdf(kept, TRIALS, chance) > UNLIKELY
    assert binom.sf(kept - 1, TRIALS, chance) > UNLIKELY


def test_a_real_number_just_below_the_threshold_is_dropped_even_if_it_rounds_to_it() -> None:
    """With τ* on the grid, half of those that round to it are below it and dropped."""
    mechanism = Mechanism(1, 1, 10.0, 1.5 * 2**18)
    noisy = release(mechanism, 10, TRIALS, "between")
    at_threshold = noisy.counts == 10.0
    grid = Noise(mechanism).count_grid
    coarse = Mechanism(1, 1, 10.0 + grid / 4, 1.5 * 2**18)

    assert not noisy.kept[noisy.counts < 10.0].any()
    assert noisy.kept[noisy.counts > 10.0].all()
    assert at_threshold.sum() < TRIALS
    assert (release(coarse, 10, TRIALS, "between").kept <= noisy.kept).all()


def lower_bound(hits: int, trials: int) -> float:
    """Clopper–Pearson, from below."""
    return float(beta.ppf(1 - CONFIDENCE, hits, trials - hits + 1)) if hits else 0.0


def upper_bound(hits: int, trials: int) -> float:
    return float(beta.ppf(CONFIDENCE, hits + 1, trials - hits))


def audited_at_threshold(claimed: Mechanism, run: Mechanism) -> float:
    """δ revealed by «some group is released» when all C_u groups exist for one user alone: never without the user."""
    kept = release(run, run.tau, TRIALS * run.c_u, "at threshold").kept.reshape(TRIALS, run.c_u)
    assert claimed.c_u == run.c_u
    return lower_bound(int(kept.any(axis=1).sum()), TRIALS)


def audited_above(claimed: Mechanism, run: Mechanism, epsilon: float) -> float:
    """δ revealed by the likelihood-ratio event on C_u groups far above the thresholds, user added."""
    count = 10_000
    shape = (TRIALS, run.c_u)
    with_user = release(run, count + 1, TRIALS * run.c_u, "with").counts.reshape(shape)
    without = release(run, count, TRIALS * run.c_u, "without").counts.reshape(shape)
    # Σ(y − C − ½)/σ² ≥ ε is the event, for the σ that was claimed.
    threshold = epsilon * claimed.sigma**2 + run.c_u * (count + 0.5)
    hits, false = int((with_user.sum(axis=1) >= threshold).sum()), int((without.sum(axis=1) >= threshold).sum())
    return lower_bound(hits, TRIALS) - math.exp(epsilon) * upper_bound(false, TRIALS)


def test_the_audit_of_groups_at_the_threshold_finds_no_more_than_was_certified() -> None:
    claimed = Mechanism(3, 2, 8.0, 3.0)
    certified = at_epsilon(EXACT, claimed, 5.0)
    found = audited_at_threshold(claimed, claimed)

    assert certified.binding == "infinite"
    assert certified.delta / 2 < found <= certified.delta


def test_the_audit_of_groups_above_the_threshold_finds_no_more_than_was_certified() -> None:
    claimed = Mechanism(4, 1, 60.0, 2.0)
    certified = at_epsilon(EXACT, claimed, 0.5)
    found = audited_above(claimed, claimed, 0.5)

    assert certified.binding == "gaussian"
    assert certified.delta / 2 < found <= certified.delta


def test_the_audit_finds_out_a_sigma_that_is_ten_per_cent_off() -> None:
    """Ten per cent too small above the thresholds, too large at them, which is where each does harm."""
    above = Mechanism(4, 1, 60.0, 2.0)
    at_threshold = Mechanism(3, 2, 8.0, 3.0)

    assert audited_above(above, Mechanism(4, 1, 60.0, 1.8), 0.5) > at_epsilon(EXACT, above, 0.5).delta
    assert audited_at_threshold(at_threshold, Mechanism(3, 2, 8.0, 3.3)) > at_epsilon(EXACT, at_threshold, 5.0).delta
