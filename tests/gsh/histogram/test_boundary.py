"""How often a group is kept. (test_judged_counts checks draw by draw that the real number decides.)"""

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom

from gsh.accounting.mechanism import Mechanism
from gsh.histogram.noise import Noise, Noisy
from tests.gsh.histogram.recorded import Recorded

TRIALS = 400_000
UNLIKELY = 1e-6


def release(mechanism: Mechanism, count: int, groups: int, seed: str) -> Noisy:
    return Noise(mechanism).add(np.full(groups, count), np.empty((groups, 0)), Recorded(seed))


@pytest.mark.parametrize("tau_star", [10.0, 10.25])
@pytest.mark.parametrize("count", [4, 5, 8, 9, 10, 11, 14])
def test_a_group_is_kept_with_the_theoretical_probability(count: int, tau_star: float) -> None:
    """C ≥ τ and C + v ≥ τ*; a group at τ − 1 never."""
    mechanism = Mechanism(c_u=1, tau=5, tau_star=tau_star, sigma=2.0)
    kept = int(release(mechanism, count, TRIALS, f"boundary {count} {tau_star}").kept.sum())
    chance = float(ndtr((count - tau_star) / 2.0)) if count >= 5 else 0.0

    assert binom.cdf(kept, TRIALS, chance) > UNLIKELY
    assert binom.sf(kept - 1, TRIALS, chance) > UNLIKELY
