"""Other libraries on the case study: ``python -m benchmarks.peers``, with the ``bench`` extra installed.

Each is called through its public interface for its δ, its noise and its threshold. It uses none of our code, unless a
note says so. If a library has no calibration, bisection replaces it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import version

import opendp.prelude as dp
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.pld.common import DifferentialPrivacyParameters
from pydp.algorithms import partition_selection
from scipy.special import ndtri

from benchmarks.markdown import short, table
from benchmarks.prices import Price, prices
from benchmarks.search import bisect, minimise
from benchmarks.setting import C_U, DELTA, EPSILON, TAU, best
from benchmarks.timing import duration, medians
from gsh.accounting.accountings import EXACT, at_epsilon
from gsh.accounting.mechanism import Mechanism

LARGEST_SIGMA = 3000.0
LEAST_TAU_STAR, MOST_TAU_STAR = 12_000.0, 20_000.0
FINE = 1e-6


@dataclass(frozen=True, slots=True)
class Peer:
    """The answers of a library, one evaluation to be timed, and how its question differs from ours."""

    price: Price
    evaluate: Callable[[], object]
    notes: tuple[str, ...]


def main() -> None:
    peers = [ours(), open_dp(), dp_accounting(), python_dp()]
    times = medians({peer.price.name: peer.evaluate for peer in peers}, rounds=9)
    first = peers[0].price
    charges, needs = [], []
    for price, seconds in ((peer.price, times[peer.price.name]) for peer in peers):
        charges.append(
            (
                price.name,
                duration(seconds),
                f"{seconds / times[first.name]:.2f}",
                f"{price.delta_charged:.4e}",
                f"{price.delta_charged / first.delta_charged:.3f}",
            )
        )
        needs.append(
            (
                price.name,
                f"{price.least_sigma:.2f}",
                f"{price.least_sigma / first.least_sigma:.4f}",
                f"{price.tau_star:.2f}",
                f"{price.sigma:.1f}",
                f"{price.tau_star / first.tau_star:.4f}",
            )
        )
    print(f"σ = {first.sigma:.4f}, τ* = {first.tau_star:.4f}, C_u = {C_U}: δ charged at ε = {EPSILON}\n")
    print(table(("library", "one evaluation", "ratio", "δ charged", "ratio"), charges))
    print(f"\nTo be ({EPSILON}, {short(DELTA)})-private\n")
    print(table(("library", "σ at least", "ratio", "smallest τ*", "at σ", "ratio of τ*"), needs))
    print("\n" + "\n".join(f"- {note}" for peer in peers for note in peer.notes))


def ours() -> Peer:
    mechanism = best()
    price = replace(prices()[0], name="this project, exact")
    return Peer(
        price,
        lambda: at_epsilon(EXACT, mechanism, EPSILON),
        ("this project: certified in ball arithmetic and rounded up; a group exists from τ = 1 user on.",),
    )


def open_dp() -> Peer:
    """The Gaussian threshold measurement on floats, through approximate zCDP to (ε, δ)."""
    dp.enable_features("contrib")
    domain = dp.map_domain(dp.atom_domain(T=str), dp.atom_domain(T=float, nan=False))
    metric = dp.l02inf_distance(dp.absolute_distance(T=float))

    def epsilon(sigma: float, tau_star: float, delta: float) -> float:
        measurement = dp.m.make_gaussian_threshold(domain, metric, scale=sigma, threshold=tau_star)
        fixed = dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(measurement), delta)
        try:
            # It takes the smaller of the L2 bound given and √L0 · L∞.
            answer: float = fixed.map((C_U, float(C_U), 1.0))[0]
        except dp.OpenDPException:
            return math.inf  # the threshold alone has spent more than δ
        return answer

    def tau_star_at(sigma: float) -> float:
        return _smallest_tau_star(lambda tau_star: epsilon(sigma, tau_star, DELTA) <= EPSILON)

    exact = best()
    least = bisect(lambda sigma: epsilon(sigma, 1e6, DELTA) <= EPSILON, exact.sigma, LARGEST_SIGMA, FINE)
    charged = bisect(lambda delta: epsilon(exact.sigma, exact.tau_star, delta) <= EPSILON, DELTA / 10, 1e-3, 1e-12)
    name = f"OpenDP {version('opendp')}"
    return Peer(
        Price(name, least, *_best_share(least, tau_star_at), charged),
        lambda: epsilon(exact.sigma, exact.tau_star, 10 * DELTA),
        (
            f"{name}: `make_gaussian_threshold` on float counts, `make_zCDP_to_approxDP`, `make_fix_delta`; L0 = C_u, "
            "L∞ = 1; a group exists from one user on. One evaluation builds the measurement and asks for ε at a δ; "
            "δ charged is found by bisection on that.",
            _integer_note(metric=dp.l02inf_distance(dp.absolute_distance(T=int))),
        ),
    )


def _integer_note(metric: dp.Metric) -> str:
    """Its measurement on integers, counted: how often a group of one user passes, and what the map says."""
    domain = dp.map_domain(dp.atom_domain(T=str), dp.atom_domain(T=int))
    measurement = dp.m.make_gaussian_threshold(domain, metric, scale=1.0, threshold=3)
    groups = 200_000
    seen = len(measurement({str(group): 1 for group in range(groups)})) / groups
    return (
        f"OpenDP on integer counts is left out: at scale 1 and threshold 3 its map charges a group of one user "
        f"δ = {measurement.map((1, 1, 1))[1]:.4f}, and {seen:.4f} of {groups} such groups were released in this run."
    )


def dp_accounting() -> Peer:
    """The privacy loss distribution of the noise, composed with one that holds δ_infinite at infinity."""

    def noise(sigma: float) -> pld.PrivacyLossDistribution:
        return pld.from_gaussian_mechanism(sigma / math.sqrt(C_U))

    def delta(of_noise: pld.PrivacyLossDistribution, sigma: float, tau_star: float) -> float:
        infinite = at_epsilon(
            EXACT, Mechanism(c_u=C_U, tau=TAU, tau_star=tau_star, sigma=sigma), EPSILON
        ).delta_infinite
        threshold = pld.from_privacy_parameters(DifferentialPrivacyParameters(0.0, infinite))
        return float(of_noise.compose(threshold).get_delta_for_epsilon(EPSILON))

    def tau_star_at(sigma: float) -> float:
        of_noise = noise(sigma)
        return _smallest_tau_star(lambda tau_star: delta(of_noise, sigma, tau_star) <= DELTA)

    exact = best()
    least = bisect(
        lambda sigma: float(noise(sigma).get_delta_for_epsilon(EPSILON)) <= DELTA, 2000.0, LARGEST_SIGMA, 1e-4
    )
    name = f"dp-accounting {version('dp-accounting')}"
    return Peer(
        Price(name, least, *_best_share(least, tau_star_at), delta(noise(exact.sigma), exact.sigma, exact.tau_star)),
        lambda: delta(noise(exact.sigma), exact.sigma, exact.tau_star),
        (
            f"{name}: it has no thresholds. δ_infinite is ours, put at infinity in a second privacy loss distribution "
            "and composed with the noise's, pessimistic and with the default discretisation of 1e-4. "
            "One evaluation makes both and composes them.",
        ),
    )


def python_dp() -> Peer:
    """The Gaussian partition selection, which chooses σ and the threshold itself."""

    def strategy(delta: float) -> partition_selection.PartitionSelectionStrategy:
        return partition_selection.create_gaussian_partition_strategy(EPSILON, delta, C_U)

    def sigma_of(delta: float) -> float:
        """From the chance that a group of one user is kept, Φ((1 − threshold)/σ)."""
        chosen = strategy(delta)
        return float((1 - chosen.threshold) / ndtri(chosen.probability_of_keep(1)))

    exact = best()
    charged = bisect(lambda delta: strategy(delta).threshold <= exact.tau_star, DELTA, 10 * DELTA, 1e-12)
    geometric = partition_selection.create_truncated_geometric_partition_strategy(EPSILON, DELTA, C_U)
    users = bisect(lambda count: geometric.probability_of_keep(int(count)) >= 0.5, 1.0, 1e8, 0.5)
    name = f"python-dp {version('python-dp')}"
    return Peer(
        Price(name, sigma_of(DELTA), sigma_of(DELTA), strategy(DELTA).threshold, charged),
        lambda: strategy(DELTA).threshold,
        (
            f"{name}: `create_gaussian_partition_strategy` takes (ε, δ, C_u) and shares δ by itself; σ is read off its "
            "probability of keeping one user. δ charged is the δ at which its threshold comes down to our τ*; its σ "
            f"is then {sigma_of(charged):.2f}. One evaluation makes the strategy.",
            f"{name}: its truncated geometric strategy releases no counts, so it has no σ or τ* to compare; it keeps a "
            f"group with probability ½ from {users:.0f} users on, our mechanism from τ*.",
        ),
    )


def _best_share(least_sigma: float, tau_star: Callable[[float], float]) -> tuple[float, float]:
    """The σ at which the τ* that it needs is smallest, and that τ*."""
    sigma = minimise(tau_star, least_sigma + 1e-3, LARGEST_SIGMA, 1e-3)
    return sigma, tau_star(sigma)


def _smallest_tau_star(enough: Callable[[float], bool]) -> float:
    return bisect(enough, LEAST_TAU_STAR, MOST_TAU_STAR, FINE) if enough(MOST_TAU_STAR) else math.inf


if __name__ == "__main__":
    main()
