"""The rules that choose bounds from a survey: right without noise, and rarely far off with it, whatever the data."""

import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsh.events.choosing import BINS, Choice, best_share, chosen_c_u, chosen_clip, edges, kept_pairs, top_bin
from tests.gsh.accounting.draws import examples

SIGMA, DEFAULT = 40.0, 32
DRAWS = 20_000
PHI = NormalDist().cdf


def surveyed(users: list[float], seed: int, draws: int = DRAWS) -> list[list[float]]:
    """Surveys of users in units of the noise: every bin has noise."""
    whole = np.zeros(BINS)
    whole[: len(users)] = users
    found: list[list[float]] = (SIGMA * (whole + np.random.default_rng(seed).standard_normal((draws, BINS)))).tolist()
    return found


def tau_star(c_u: int) -> float:
    return 1 + 25 * math.sqrt(c_u)


def chosen(bins: list[float]) -> Choice:
    return chosen_c_u(bins, SIGMA, tau_star, DEFAULT)


def allowed(probability: float) -> float:
    """A rate that draws exceed about once in 10⁵ runs, if this is the probability."""
    return probability + 4.3 * math.sqrt(probability / DRAWS)


@pytest.mark.parametrize("last", [0, 5, 18])
def test_noise_in_empty_bins_hardly_ever_makes_a_top(last: int) -> None:
    """P(two bins too high) ≤ Φ(−2)² + 2.3 · 10⁻⁴. The worst data: all users in one bin."""
    tops = [top_bin(bins, SIGMA) for bins in surveyed([0.0] * last + [150.0], seed=last)]

    assert None not in tops
    too_high = np.mean([top is not None and top >= last + 2 for top in tops])
    assert too_high <= allowed(PHI(-2) ** 2 + 2.3e-4)


def test_the_top_is_too_low_only_if_a_bin_was_small() -> None:
    """P(top < j) ≤ Σ Φ(2 − n_i/σ_h) over the bins after the fullest one, up to j."""
    users = [50.0, 200.0, 20.0, 6.0, 4.5, 3.5]
    tops = [top_bin(bins, SIGMA) or 0 for bins in surveyed(users, seed=3)]

    for j in range(2, len(users)):
        assert np.mean([top < j for top in tops]) <= allowed(sum(PHI(2 - users[i]) for i in range(2, j + 1)))
    assert np.mean([top < 5 for top in tops]) > 0.05  # the bound is not empty


def test_the_choice_is_one_that_so_little_noise_can_make_the_best() -> None:
    """With probability 1 − 2 · 21 · Φ(−ζ), its score with ζ more noise is at least that of all with ζ less."""
    users = [60.0, 150, 300, 200, 120, 60, 25, 12, 7]
    zeta, ends = 3.0, edges(len(users))
    slack = [zeta * SIGMA * math.sqrt(sum(_weight(i, end) ** 2 for i in range(len(users)))) for end in ends]
    kept = [kept_pairs([SIGMA * each for each in users], end) for end in ends]
    least = max(_score(k - s, end) for k, s, end in zip(kept, slack, ends, strict=True))
    possible = {end for k, s, end in zip(kept, slack, ends, strict=True) if _score(k + s, end) >= least}
    assert 1 < len(possible) < len(ends)

    picks = [chosen(bins).bound for bins in surveyed(users, seed=5, draws=4000)]

    assert np.mean([pick not in possible for pick in picks]) <= 2 * BINS * PHI(-zeta)
    assert len(set(picks)) > 1


def _weight(place: int, c_u: int) -> float:
    return kept_pairs([float(i == place) for i in range(BINS)], c_u)


def _score(kept: float, c_u: int) -> float:
    return kept * math.log(kept / (20 * tau_star(c_u)))


@examples(60)
@given(st.lists(st.integers(0, 10**6), min_size=BINS, max_size=BINS))
def test_without_noise_the_choice_has_the_largest_score(users: list[int]) -> None:
    users[0] += 10**4
    sigma = 1e-6
    top = top_bin([float(each) for each in users], sigma)
    assert top is not None

    found = chosen_c_u([float(each) for each in users], sigma, tau_star, DEFAULT)

    kept = {end: kept_pairs([float(each) for each in users[: top + 1]], end) for end in edges(top + 1)}
    sure = {end: _score(k, end) for end, k in kept.items() if k > 20 * tau_star(end)}
    best = max(sure.values()) if sure else None
    assert not found.is_default
    if best is not None:
        assert sure[int(found.bound)] == best
    else:
        assert kept[int(found.bound)] / tau_star(int(found.bound)) == max(k / tau_star(end) for end, k in kept.items())


def test_users_above_the_noise_alone_decide() -> None:
    """A single wrong user of 2²⁰ groups, or noise there, would outweigh all others."""
    users = [40.0, 90, 300, 900, 800, 500, 300, 150]
    quiet = [SIGMA * each for each in users] + [0.0] * (BINS - len(users))
    loud = [*quiet[:-1], 5 * SIGMA]

    assert chosen(loud) == chosen(quiet)


@pytest.mark.parametrize("users", [[0.0], [2.9], [60.0, 30.0], [-3.0] * BINS])
def test_a_survey_that_says_too_little_leads_to_the_default(users: list[float]) -> None:
    bins = [SIGMA * each for each in users] + [0.0] * (BINS - len(users))

    found = chosen(bins)

    assert (found.bound, found.is_default) == (DEFAULT, True)
    assert "the default: the survey shows fewer than 4000 users" in found.reason


def test_the_reason_says_what_is_dropped_and_what_more_would_cost() -> None:
    found = chosen([SIGMA * each for each in (100.0, 200, 400, 800, 800, 400, 200, 100, 50)] + [0.0] * 12)

    assert found.reason == f"C_u = {found.bound}: about {_dropped(found):.1%} of pairs are dropped; " + (
        f"{2 * found.bound:.0f} would cost 41 % more noise"
    )


def _dropped(found: Choice) -> float:
    users = [100.0, 200, 400, 800, 800, 400, 200, 100, 50]
    return 1 - kept_pairs(users, int(found.bound)) / kept_pairs(users, 256)


def test_the_clip_has_at_most_the_share_above_it() -> None:
    users = [5000.0, 3000, 1000, 500, 200, 50]
    bins = [*users, *[0.0] * 47]
    ends = edges(53)

    found = {share: chosen_clip(bins, 1.0, ends, share, 1.0).bound for share in (0.9, 0.3, 0.06, 0.006, 0.001)}

    assert found == {0.9: 1, 0.3: 2, 0.06: 8, 0.006: 16, 0.001: 32}
    assert chosen_clip(bins, 1.0, ends, 0.03, 1.0).reason == "8: about 2.6% of values are clipped"
    assert chosen_clip(bins, 1000.0, ends, 0.03, 7.0).is_default


def test_the_best_share_balances_what_is_clipped_and_the_noise() -> None:
    """The derivative of m E(x − b)₊ + √(2/π) b √(n/S) is 0, for exponential values."""
    groups, square, users = 16, 0.03, 1000.0
    bound = -math.log(best_share(groups, square, users))

    def error(b: float) -> float:
        return users * math.exp(-b) + math.sqrt(2 / math.pi) * b * math.sqrt(groups / square)

    assert error(bound) <= min(error(bound * 0.999), error(bound * 1.001))
