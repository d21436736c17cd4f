"""For every draw the published number is the ideal one, correctly rounded, with the threshold applied first."""

from fractions import Fraction

import numpy as np
import pytest

from gsh.accounting.mechanism import Mechanism
from gsh.histogram.noise import Noise
from tests.gsh.histogram.exact import ideal_is_at_least, ideal_is_within
from tests.gsh.histogram.recorded import Recorded, awkward_words

pytestmark = pytest.mark.slow

SIGMAS = [1.0, 2229.0, 0.1, 3e-7, 1.5 * 2**20, 2.0**20, 7e12]


@pytest.mark.parametrize("sigma", SIGMAS)
def test_the_published_count_is_the_ideal_one_correctly_rounded(sigma: float) -> None:
    """Awkward words and ordinary ones; in one chunk, so that further bits follow in order."""
    noise = Noise(Mechanism(c_u=3, tau=1, tau_star=1000.0, sigma=sigma))
    entropy = Recorded(f"exact {sigma}", awkward_words())
    on_grid = [count for count in (1, 2, 3, 997, 1000, 10**6, 2**40 + 1) if count < 2**50 * noise.count_grid]
    counts = np.resize(np.array(on_grid), 15_000)
    noisy = noise.add(counts, np.empty((len(counts), 0)), entropy)
    drawn = np.frombuffer(entropy.given[0], np.int64).tolist()
    further = iter(entropy.given[1:])
    half = Fraction(noise.count_grid) / 2

    for i, (count, word) in enumerate(zip(counts.tolist(), drawn, strict=True)):
        published = Fraction(float(noisy.counts[i])) - count
        more, bits = 0, 0
        while (
            not ideal_is_within(published - half, published + half, sigma, word, more, bits)
            or ideal_is_at_least(Fraction(1000) - count, sigma, word, more, bits) is None
        ):
            # Only an open group has drawn more than 64 bits. The test fails if the recorded bits run out.
            more, bits = more << 64 | int.from_bytes(next(further), "little"), bits + 64
        assert bool(noisy.kept[i]) == ideal_is_at_least(Fraction(1000) - count, sigma, word, more, bits)
    assert next(further, None) is None
