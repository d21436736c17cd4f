"""What a mechanism would publish: against the reference, against releases, in its limits, and refused by name."""

import copy
import math
import pickle
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

import gsh
from gsh.accounting.mechanism import Aggregates, Mechanism
from gsh.accounting.sensitivity import L2Norm
from gsh.accuracy.utility import Utility, _Mixture, utility
from gsh.errors import InvalidParameter
from tests.gsh.accounting.draws import examples
from tests.reference import mp
from tests.reference.utility import Published

pytestmark = pytest.mark.slow

QUANTILES = (0.001, 0.05, 0.5, 0.9, 0.95, 0.999)
LONG_TAIL = {max(1, round(280_000 / k)): 1 + k // 7 for k in range(1, 60)}
CASES: dict[str, tuple[Mechanism, Mapping[int, int]]] = {
    "case study": (Mechanism(c_u=51914, tau=1, tau_star=13951.051328063842, sigma=2228.482632459166), LONG_TAIL),
    "small": (
        Mechanism(c_u=1, tau=1, tau_star=24.5, sigma=4.75),
        {1: 4000, 3: 900, 12: 80, 24: 9, 25: 8, 31: 4, 400: 2},
    ),
    "a high tau": (Mechanism(c_u=5, tau=20, tau_star=25.0, sigma=10.0), {1: 10**9, 19: 50, 20: 40, 26: 3, 90: 1}),
    "all far above": (Mechanism(c_u=5, tau=1, tau_star=100.0, sigma=10.0), {10_000: 3, 10**6: 2}),
    "all far below": (Mechanism(c_u=5, tau=1, tau_star=10_000.0, sigma=10.0), {5: 70, 100: 3, 9_000: 1}),
    "two scales": (Mechanism(c_u=5, tau=1, tau_star=50.0, sigma=10.0), {60: 2, 10**9: 3}),
    "one at the threshold": (Mechanism(c_u=5, tau=1, tau_star=50.0, sigma=10.0), {50: 1}),
    "the largest": (Mechanism(c_u=5, tau=1, tau_star=2.0**52, sigma=2.0**49), {2**53: 2**40, 2**51: 2**52}),
}


def of(
    mechanism: Mechanism, times: Mapping[int, int], below: float | None = None, quantiles: Any = QUANTILES
) -> Utility:
    return utility(mechanism, np.array(list(times)), np.array(list(times.values())), below, quantiles)


def reference(mechanism: Mechanism, times: Mapping[int, int]) -> Published:
    return Published(mechanism.tau, mechanism.tau_star, mechanism.sigma, times)


@pytest.mark.parametrize(("mechanism", "times"), CASES.values(), ids=CASES)
def test_expected_numbers_are_those_of_the_reference(mechanism: Mechanism, times: Mapping[int, int]) -> None:
    found, truth = of(mechanism, times), reference(mechanism, times)
    # Doubles know (n − τ*)/σ to a relative 1e-16, and far out the tail is that much more sensitive.
    far = max(abs((n - mechanism.tau_star) / mechanism.sigma) for n in times)
    close = {"rel": 1e-13 + 1e-15 * min(far, 40.0) ** 2, "abs": 1e-300}

    assert found.groups == pytest.approx(float(truth.groups()), **close)
    assert found.volume == pytest.approx(float(truth.volume()), **close)
    assert found.groups_deviation == pytest.approx(float(truth.deviation()), **close)
    assert found.all_groups == sum(times.values())
    assert found.all_volume == pytest.approx(float(sum(n * k for n, k in times.items())))
    assert found.groups_share == found.groups / found.all_groups
    for n, k, probability in zip(found.sizes, found.times, found.probabilities, strict=True):
        assert k == times[int(n)]
        assert probability == pytest.approx(float(truth.probability(int(n))), **close)


@pytest.mark.parametrize("below", [None, 1.0, 26.0, 30.5, 1e6])
@pytest.mark.parametrize(("mechanism", "times"), CASES.values(), ids=CASES)
def test_the_false_share_is_that_of_the_reference(
    mechanism: Mechanism, times: Mapping[int, int], below: float | None
) -> None:
    """Also where the expected number of groups is below the smallest double."""
    found, truth = of(mechanism, times, below), reference(mechanism, times)
    size = mechanism.tau_star if below is None else below

    share = float(truth.false_share(size))
    assert found.below == size
    assert found.false_share == pytest.approx(share, rel=1e-8, abs=1e-300)
    assert found.false_groups == pytest.approx(share * found.groups, rel=1e-8, abs=1e-300)


@pytest.mark.parametrize(("mechanism", "times"), CASES.values(), ids=CASES)
def test_an_error_quantile_is_where_the_mixture_reaches_it(mechanism: Mechanism, times: Mapping[int, int]) -> None:
    """Just below it fewer published groups have that error, and just above it more: the root is there."""
    found, truth = of(mechanism, times), reference(mechanism, times)

    assert found.relative_errors is not None
    for quantile, error in zip(QUANTILES, found.relative_errors, strict=True):
        assert truth.error_share(mp.mpf(error) * (1 - mp.mpf(10) ** -10)) < quantile
        assert truth.error_share(mp.mpf(error) * (1 + mp.mpf(10) ** -10)) > quantile


def test_a_quantile_takes_few_evaluations(monkeypatch: pytest.MonkeyPatch) -> None:
    """The service bounds its work by their number. With a wrong density, Newton's method would take 12 on average."""
    evaluate, asked = _Mixture._exceeded, Counter[str]()

    def counted(mixture: _Mixture, rho: float) -> tuple[float, float]:
        asked[name] += 1
        return evaluate(mixture, rho)

    monkeypatch.setattr(_Mixture, "_exceeded", counted)
    for name, (mechanism, times) in CASES.items():  # noqa: B007
        of(mechanism, times)

    assert asked.total() <= 10 * len(QUANTILES) * len(CASES), asked
    assert max(asked.values()) <= 20 * len(QUANTILES), asked


def test_the_real_release_publishes_what_is_expected() -> None:
    """12 000 groups, released once. Each bound fails once in a million."""
    mechanism = Mechanism(c_u=3, tau=5, tau_star=60.0, sigma=12.0)
    times = {3: 1000, 5: 3000, 35: 2000, 50: 2000, 58: 1000, 63: 1000, 80: 1000, 150: 1000}
    true = np.repeat(list(times), list(times.values()))
    found = of(mechanism, times, below=51.0)
    released = gsh.release(mechanism, keys=list(range(len(true))), counts=true)
    kept = true[list(released.keys)]
    errors = np.abs(released.counts - kept) / kept

    def is_likely(seen: int, among: int, expected: float) -> bool:
        """For a sum of independent indicators: the binomial distribution of this mean has wider tails.

        [Hoeffding 1956, Thm. 4]
        """
        low, high = binom.ppf([5e-7, 1 - 5e-7], among, expected / among)
        return bool(low <= seen <= high)

    published = Counter(kept.tolist())
    for n, k, probability in zip(found.sizes.tolist(), found.times.tolist(), found.probabilities.tolist(), strict=True):
        assert is_likely(published[n], k, k * probability), n
    assert is_likely(len(released), len(true), found.groups)
    assert is_likely(int((kept < 51).sum()), len(true), found.false_groups)
    assert abs(len(released) - found.groups) < 6 * found.groups_deviation
    assert found.relative_errors is not None
    for quantile, error in zip(QUANTILES, found.relative_errors, strict=True):
        assert is_likely(int((errors <= error).sum()), len(true), quantile * found.groups), quantile


def test_without_noise_the_threshold_decides() -> None:
    found = of(Mechanism(c_u=1, tau=1, tau_star=10.5, sigma=1e-300), {10: 7, 11: 2, 30: 1})

    assert found.probabilities.tolist() == [0, 1, 1]
    assert (found.groups, found.volume, found.groups_deviation, found.false_share) == (3, 52, 0, 0)
    assert found.relative_errors is not None
    assert max(found.relative_errors) < 1e-299


def test_far_above_the_threshold_the_error_is_that_of_the_noise() -> None:
    found = of(Mechanism(c_u=1, tau=1, tau_star=100.0, sigma=10.0), {100_000: 5}, quantiles=(0.5, 0.95))

    assert found.groups == 5
    assert found.relative_errors == pytest.approx((0.6744897501960817e-4, 1.9599639845400545e-4), rel=1e-13)


def test_far_below_the_threshold_a_published_count_is_just_above_it() -> None:
    found = of(Mechanism(c_u=1, tau=1, tau_star=1000.0, sigma=1.0), {100: 5}, quantiles=(0.001, 0.999))

    assert found.groups == 0
    assert found.false_share == 1
    assert found.relative_errors == pytest.approx((9.0, 9.0), rel=1e-3)
    assert min(found.relative_errors) >= 9


@pytest.mark.parametrize(
    ("tau_star", "sigma"), [(1e300, 1e-5), (1e300, 1e290), (1e308, 1e308), (2.0, 1e308), (2.0, 5e-324)]
)
def test_extreme_mechanisms_have_finite_numbers(tau_star: float, sigma: float) -> None:
    found = of(Mechanism(c_u=1, tau=1, tau_star=tau_star, sigma=sigma), {1: 1, 2: 2, 7: 4, 2**53: 2**50})

    numbers = [found.groups, found.groups_deviation, found.volume, found.false_groups, *(found.relative_errors or ())]
    assert all(map(math.isfinite, numbers))
    assert (found.false_share is None) == (found.relative_errors is None)


def test_if_no_group_can_be_published_there_is_no_error() -> None:
    found = of(Mechanism(c_u=1, tau=20, tau_star=30.0, sigma=5.0), {1: 5, 19: 2})

    assert (found.groups, found.volume, found.groups_deviation, found.false_groups) == (0, 0, 0, 0)
    assert (found.false_share, found.relative_errors) == (None, None)
    assert "0 of 7" in repr(found)


SIZES = st.dictionaries(st.integers(1, 500), st.integers(1, 10**6), min_size=1, max_size=8)


@examples(60)
@given(SIZES, st.integers(0, 60), st.floats(1, 200), st.floats(0.5, 100), st.floats(1, 50))
def test_numbers_move_in_the_right_direction(
    times: dict[int, int], tau: int, gap: float, sigma: float, more: float
) -> None:
    """A higher threshold publishes less, a larger bound calls more groups false, and quantiles rise."""
    tau_star = max(tau, 1) + gap
    found = of(Mechanism(c_u=3, tau=tau, tau_star=tau_star, sigma=sigma), times)
    higher = of(Mechanism(c_u=3, tau=tau, tau_star=tau_star + more, sigma=sigma), times, below=tau_star + more)
    further = of(Mechanism(c_u=3, tau=tau, tau_star=tau_star, sigma=sigma), times, below=tau_star + more)

    assert higher.groups <= found.groups <= found.all_groups
    assert higher.volume <= found.volume <= found.all_volume
    if found.false_share is None or found.relative_errors is None:
        assert max(times) < tau
        return
    assert further.false_share is not None
    assert 0 <= found.false_share <= further.false_share <= 1
    assert list(found.relative_errors) == sorted(found.relative_errors)
    assert found.relative_errors[0] > 0


@examples(30)
@given(SIZES, st.integers(2, 50))
def test_how_sizes_are_given_does_not_matter(times: dict[int, int], copies: int) -> None:
    """Each size once or several times, in any order; and more groups of the same sizes change no share."""
    mechanism = Mechanism(c_u=3, tau=2, tau_star=40.0, sigma=9.0)
    once = of(mechanism, times)
    mixed = utility(
        mechanism,
        np.array([*times, *reversed(times)], np.uint16),
        np.array([1] * len(times) + [k * copies - 1 for k in reversed(times.values())]),
        None,
        QUANTILES,
    )

    assert mixed.sizes.tolist() == sorted(times)
    assert mixed.times.tolist() == [copies * times[n] for n in sorted(times)]
    assert mixed.groups_share == pytest.approx(once.groups_share)
    assert mixed.false_share == (None if once.false_share is None else pytest.approx(once.false_share))
    if once.relative_errors is not None:
        assert mixed.relative_errors == pytest.approx(once.relative_errors, rel=1e-10)


def test_the_noise_of_columns_is_told() -> None:
    columns = Aggregates(names=("likes", "shares"), covariance=((400.0, 30.0), (30.0, 100.0)), sensitivity=L2Norm(1.0))
    found = of(Mechanism(c_u=3, tau=1, tau_star=60.0, sigma=12.0, aggregates=columns), {1000: 16})

    assert [(each.name, each.deviation, each.total_deviation) for each in found.columns] == [
        ("likes", 20, 80),
        ("shares", 10, 40),
    ]


def test_a_result_cannot_be_changed_and_can_be_copied() -> None:
    found = of(*CASES["small"])

    for each in (found, pickle.loads(pickle.dumps(found)), copy.deepcopy(found)):
        assert each.relative_errors == found.relative_errors
        assert each.probabilities.tolist() == found.probabilities.tolist()
        assert not any(array.flags.writeable for array in (each.sizes, each.times, each.probabilities))
        with pytest.raises(AttributeError):
            each.groups = 1.0  # type: ignore[misc]


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"sizes": np.array([], int)}, "sizes"),
        ({"sizes": np.array([5, 0])}, "sizes"),
        ({"sizes": np.array([-1, 5])}, "sizes"),
        ({"sizes": np.array([2**53 + 1, 5])}, "sizes"),
        ({"times": np.array([1, 0])}, "times"),
        ({"times": np.array([1])}, "times"),
        ({"times": np.array([2**53, 1])}, "times"),
        ({"below": 0.0}, "below"),
        ({"below": math.inf}, "below"),
        ({"below": math.nan}, "below"),
        ({"quantiles": [0.5, 1.0]}, "quantiles/1"),
        ({"quantiles": [0.0]}, "quantiles/0"),
        ({"quantiles": [math.nan]}, "quantiles/0"),
    ],
)
def test_an_invalid_argument_is_named(change: dict[str, Any], pointer: str) -> None:
    arguments = {"sizes": np.array([5, 7]), "times": np.array([1, 2]), "below": None, "quantiles": (0.5,)} | change

    with pytest.raises(InvalidParameter) as raised:
        utility(CASES["small"][0], **arguments)

    assert raised.value.pointer == pointer
