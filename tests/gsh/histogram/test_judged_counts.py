"""The threshold is tested on the real number and counts are rounded right, with draws chosen to make both hardest.

Going back from a number to the bits that give it, the words are chosen so that C + v is within a unit of the last bit
of τ*, or of a point half-way between two of the grid; the judge of whole groups computes the expected result.
"""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from gsh.accounting.mechanism import Mechanism
from gsh.accounting.numerics.doubles import next_below
from gsh.histogram.noise import Noise, Noisy
from tests.gsh.histogram.ideal import assert_as_judged, tail
from tests.gsh.histogram.recorded import Recorded

pytestmark = pytest.mark.slow

# In units of q's 64th bit: next to the number, and at the distances where doubles begin to tell.
OFFSETS = sorted({0, *(sign * (2**j + odd) for j in range(0, 45, 2) for sign in (1, -1) for odd in (0, 1))})


def words_near(number: Fraction, sigma: float) -> list[int]:
    """Words whose σ z is next to a number: below, above, and so close that only further bits decide."""
    first = bits_of(number, sigma, 64)
    magnitudes = {first + offset for offset in OFFSETS if 0 <= first + offset < 2**63}
    return [magnitude - (2**63 if number < 0 else 0) for magnitude in sorted(magnitudes)]


def bits_of(number: Fraction, sigma: float, bits: int) -> int:
    """The first bits of the q with σ Q(q) = |number|."""
    with mpmath.workdps(120):
        ratio = abs(number) / Fraction(sigma)
        q = tail(mpmath.mpf(ratio.numerator) / ratio.denominator)
        return int(mpmath.floor(mpmath.ldexp(q, bits)))


def judged(mechanism: Mechanism, counts: list[int], words: list[int]) -> tuple[Noisy, Recorded]:
    entropy = Recorded("counts", np.array(words))
    return assert_as_judged(mechanism, np.array(counts), np.empty((len(counts), 0)), entropy), entropy


GRID = 2.0**-9  # of σ = 2229
THRESHOLDS = {
    "on the grid": (1000.0, 2229.0, (1, 2, 500, 999, 1000, 1001, 5000, 15_000)),
    "between two points of the grid": (1000 + 0.3 * GRID, 2229.0, (1, 2, 500, 999, 1000, 1001, 5000, 15_000)),
    "half-way between two points": (1000 + 0.5 * GRID, 2229.0, (1, 2, 500, 999, 1000, 1001, 5000, 15_000)),
    "just below a point": (next_below(1000.0), 2229.0, (1, 500, 999, 1000, 1001, 15_000)),
    "a fraction among small counts": (10.1, 2.0, (1, 2, 5, 10, 11, 20)),
    "many steps of a fine grid": (1e6 + 1e-6, 3e-7, (1_000_000,)),
    "below a coarse grid": (1000.1, 7e12, (1, 1000, 1001, 10**12, 10**13)),
    "counts of 2^53": (2.0**53 - 3, 2229.0, (2**53 - 9000, 2**53 - 4, 2**53 - 3, 2**53 - 2, 2**53)),
    "counts of 2^53, a difference that is rounded": (2.0**20 + 2.0**-32, 2e15, (2**53 - 1, 2**53 - 2)),
    "counts of 2^53 where multiples of the grid are no doubles": (2.0**53 - 3, 0.7, (2**53 - 4, 2**53 - 2)),
}


@pytest.mark.parametrize("name", THRESHOLDS)
def test_a_draw_next_to_the_threshold_is_kept_if_the_real_number_reaches_it(name: str) -> None:
    tau_star, sigma, counts = THRESHOLDS[name]
    mechanism = Mechanism(c_u=3, tau=2, tau_star=tau_star, sigma=sigma)
    chosen = [
        (count, word)
        for count in counts
        if abs(Fraction(tau_star) - count) < 9 * Fraction(sigma)
        for word in words_near(Fraction(tau_star) - count, sigma)
    ]
    published, _ = judged(mechanism, [count for count, _ in chosen], [word for _, word in chosen])

    assert published.kept.any()
    assert not published.kept.all()


def test_the_rounded_count_does_not_decide() -> None:
    """With τ* at a grid point or slightly above it, some numbers that round to that point are dropped and some kept."""
    for tau_star in (1000.0, 1000 + GRID / 4):
        words = words_near(Fraction(tau_star) - 500, 2229.0)
        published, _ = judged(Mechanism(c_u=3, tau=2, tau_star=tau_star, sigma=2229.0), [500] * len(words), words)

        assert (published.counts[~published.kept] == 1000).any()
        assert (published.counts[published.kept] == 1000).any()


@pytest.mark.parametrize("sigma", [1.0, 2229.0, 0.1, 3e-7, 1.5 * 2**20, 7e12, 2.0**-400, 2.0**399])
def test_a_draw_next_to_a_half_way_point_is_rounded_right(sigma: float) -> None:
    """At the middle, in the shoulders and far out, for small counts, odd ones, and the largest."""
    mechanism = Mechanism(c_u=3, tau=2, tau_star=1000.0, sigma=sigma)
    grid = Fraction(Noise(mechanism).count_grid)
    counts, words = [], []
    for count in (3, 997, 2**53 - 1):
        for deviations in (-6.5, -6.0, -1.7, -0.01, 0.0, 0.3, 2.5, 5.9, 8.2):
            steps = round((count + Fraction(deviations) * Fraction(sigma)) / grid) + Fraction(1, 2)
            chosen = words_near(steps * grid - count, sigma)
            counts += [count] * len(chosen)
            words += chosen
    judged(mechanism, counts, words)


@pytest.mark.parametrize("number", ["threshold", "half-way point"])
def test_further_words_are_drawn_until_the_answer_is_certain(number: str) -> None:
    """Words that agree with the number to 192 bits do not decide; the fourth word does."""
    tau_star, sigma, count = 1000.3, 2229.0, 500
    halfway = (round(1500 / Fraction(GRID)) + Fraction(1, 2)) * Fraction(GRID)
    difference = (Fraction(tau_star) if number == "threshold" else halfway) - count
    bits = bits_of(difference, sigma, 192)
    words = np.array([bits >> 128, bits >> 64 & (2**64 - 1), bits & (2**64 - 1)], np.uint64).view(np.int64)
    for last in (0, -1):
        published, entropy = judged(
            Mechanism(c_u=3, tau=2, tau_star=tau_star, sigma=sigma), [count], [*words.tolist(), last]
        )
        reached = published.kept[0] if number == "threshold" else published.counts[0] > halfway

        assert len(entropy.given) == 4
        assert reached == (last == 0)  # more of q is less of z


def test_a_threshold_beyond_all_noise_leaves_nothing_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """In steps of the grid it is beyond all doubles too; balls for every group would take hours."""
    settled = []
    monkeypatch.setattr(Noise, "_settle", lambda *group: settled.append(group) or (False, 0.0, []))
    published = Noise(Mechanism(c_u=3, tau=2, tau_star=1e308, sigma=1.0)).add(
        np.full(4096, 5), np.empty((4096, 0)), Recorded("beyond")
    )

    assert not published.kept.any()
    assert not settled
