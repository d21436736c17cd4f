"""How fast is noise drawn, compared with other libraries?

Run ``python -m benchmarks.noise`` with the ``bench`` extra installed.

The mechanism is the case study's; the counts are spread so that about one group in ten is kept.
"""

import itertools
import math
import tracemalloc
from collections.abc import Callable
from importlib.metadata import version

import numpy as np
import opendp.prelude as dp
from numpy.typing import NDArray
from pydp.algorithms import partition_selection
from pydp.algorithms.numerical_mechanisms import GaussianMechanism

from benchmarks.markdown import table
from benchmarks.setting import C_U, DELTA, EPSILON, TAU, best
from benchmarks.timing import duration, medians
from gsh.accounting.mechanism import Aggregates, Mechanism
from gsh.accounting.sensitivity import L2Norm
from gsh.histogram.entropy import operating_system
from gsh.histogram.noise import Noise, Noisy

SIZES = (10**4, 10**5, 10**6)
COLUMNS = (0, 1, 3)
COVARIANCE = ((400.0, 150.0, 0.0), (150.0, 100.0, -20.0), (0.0, -20.0, 900.0))
PEER_GROUPS = 50_000

Doubles = NDArray[np.float64]
Counts = NDArray[np.int64]
Histogram = dict[str, int]


def main() -> None:
    print(
        f"σ = {best().sigma:.4f}, τ* = {best().tau_star:.4f}; random bits from the operating system; one process.\n"
        "With columns, run it with OPENBLAS_NUM_THREADS=1 for figures of one core.\n"
    )
    speed()
    steadiness()
    peers()


def speed() -> None:
    """Groups per second, compared with simple floating-point noise, which is fast and not private."""
    rows = []
    for columns in COLUMNS:
        mechanism = with_columns(columns)
        noise = Noise(mechanism)
        for size in SIZES:
            counts, values = some_counts(size), np.full((size, columns), 0.1)
            calls = {
                "ours": added(noise, counts, values),
                "numpy": insecure(mechanism, counts, values),
                "bits": lambda size=size, columns=columns: operating_system(8 * size * (1 + columns)),
            }
            times = medians(calls, rounds=9)
            rows.append(
                (
                    f"{size:,}",
                    f"{1 + columns}",
                    f"{size / times['ours'] / 1e6:.1f} million",
                    f"{times['ours'] / size * 1e9:.0f} ns",
                    f"{times['ours'] / times['numpy']:.1f}",
                    f"{times['bits'] / times['ours']:.2f}",
                    f"{extra_memory(added(noise, counts, values)) / 1e6:.1f} MB",
                )
            )
    header = ("groups", "numbers each", "groups/s", "a group", "to numpy", "random bits", "memory")
    print(table(header, rows))
    print(
        "\n- to numpy: our time over that of `count + rng.normal(0, σ)`, `≥ τ*` and `values + normals @ Lᵀ` on the "
        "same counts. Its low bits leak the counts; it is the limit of what noise can cost in numpy.\n"
        "- random bits: the share of our time that the operating system takes for them.\n"
        "- memory: the peak beyond input and output.\n"
    )


def steadiness() -> None:
    """The time must not depend on the counts."""
    mechanism = best()
    noise, size = Noise(mechanism), 10**6
    tables = {
        "1": np.full(size, 1),
        "at τ*": np.full(size, round(mechanism.tau_star)),
        "2^40": np.full(size, 2**40),
        "2^53": np.full(size, 2**53),
        "spread": some_counts(size),
    }
    times = medians({name: added(noise, counts, np.empty((size, 0))) for name, counts in tables.items()}, rounds=25)
    rows = [(name, duration(seconds), f"{seconds / times['1']:.3f}") for name, seconds in times.items()]
    print(table(("every count", f"{size:,} groups", "ratio"), rows) + "\n")


def peers() -> None:
    """The same histogram to what each library would publish of it, each in the form that it takes."""
    histogram = {f"https://site-{i}.example/": count for i, count in enumerate(some_counts(PEER_GROUPS).tolist())}
    calls = {
        "this project": ours_in_columns(histogram),
        "this project, from a dictionary": ours(histogram),
        "numpy, insecure, from a dictionary": loose(histogram),
        f"python-dp {version('python-dp')}, its strategy": python_dp_strategy(histogram),
        f"python-dp {version('python-dp')}, its noise": python_dp_noise(histogram),
        f"OpenDP {version('opendp')}, floats": open_dp(histogram, float),
        f"OpenDP {version('opendp')}, integers": open_dp(histogram, int),
    }
    times = medians(calls, rounds=5)
    rows = [
        (name, duration(seconds), f"{seconds / times['this project']:.2f}", f"{PEER_GROUPS / seconds:,.0f}")
        for name, seconds in times.items()
    ]
    print(table(("library", f"{PEER_GROUPS:,} groups", "ratio", "groups/s"), rows))
    print(
        "\n- this project: an array of keys and one of counts, noise and threshold, the same of those kept. From a "
        "dictionary, here and for numpy: its counts to an array, noise and threshold, the kept ones to a dictionary.\n"
        "- python-dp, its strategy: `create_gaussian_partition_strategy(ε, δ, C_u)`, with a σ and a threshold of its "
        "own, and `noised_value_if_should_keep` for each group.\n"
        "- python-dp, its noise: `GaussianMechanism.create_from_standard_deviation(σ)`, `add_noise` for each group, "
        "compared with τ* in Python: our σ and τ*.\n"
        "- python-dp and OpenDP take and give Python's numbers, one by one or as a dictionary, within their times.\n"
        "- OpenDP: one call of `make_gaussian_threshold(scale=σ, threshold=τ*)` on the dictionary: of floats, as a "
        "real τ* needs, or of integers with τ* rounded up and discrete noise."
    )


def with_columns(columns: int) -> Mechanism:
    if columns == 0:
        return best()
    names = tuple(f"column {j}" for j in range(columns))
    covariance = tuple(row[:columns] for row in COVARIANCE[:columns])
    return Mechanism(
        c_u=C_U,
        tau=TAU,
        tau_star=best().tau_star,
        sigma=best().sigma,
        aggregates=Aggregates(names=names, covariance=covariance, sensitivity=L2Norm(1.0)),
    )


def some_counts(size: int) -> Counts:
    generator = np.random.default_rng(3)
    return 1 + (generator.pareto(1.0, size) * 1500).astype(np.int64)


def added(noise: Noise, counts: Counts, values: Doubles) -> Callable[[], Noisy]:
    return lambda: noise.add(counts, values, operating_system)


def insecure(mechanism: Mechanism, counts: Counts, values: Doubles) -> Callable[[], object]:
    """Noise of doubles, which is fast and not private."""
    generator = np.random.default_rng()
    columns = values.shape[1]
    factor = np.linalg.cholesky(np.array(COVARIANCE)[:columns, :columns])

    def call() -> tuple[NDArray[np.bool_], Doubles, Doubles]:
        noisy = counts + generator.normal(0.0, mechanism.sigma, len(counts))
        columns_too = values + generator.standard_normal(values.shape) @ factor.T if columns else values
        return (noisy >= mechanism.tau_star) & (counts >= mechanism.tau), noisy, columns_too

    return call


def ours_in_columns(histogram: Histogram) -> Callable[[], object]:
    noise = Noise(best())
    keys, counts = np.array(list(histogram), object), np.array(list(histogram.values()))

    def call() -> tuple[NDArray[np.object_], Doubles]:
        noisy = noise.add(counts, np.empty((len(counts), 0)), operating_system)
        return keys[noisy.kept], noisy.counts[noisy.kept]

    return call


def ours(histogram: Histogram) -> Callable[[], dict[str, float]]:
    noise = Noise(best())

    def call() -> dict[str, float]:
        counts = np.fromiter(histogram.values(), np.int64, len(histogram))
        return kept_of(histogram, noise.add(counts, np.empty((len(counts), 0)), operating_system))

    return call


def loose(histogram: Histogram) -> Callable[[], dict[str, float]]:
    mechanism, generator = best(), np.random.default_rng()

    def call() -> dict[str, float]:
        counts = np.fromiter(histogram.values(), np.int64, len(histogram))
        noisy = counts + generator.normal(0.0, mechanism.sigma, len(counts))
        return kept_of(histogram, Noisy(noisy >= mechanism.tau_star, noisy, np.empty((len(counts), 0))))

    return call


def kept_of(histogram: Histogram, noisy: Noisy) -> dict[str, float]:
    keys = itertools.compress(histogram, noisy.kept.tolist())
    return dict(zip(keys, noisy.counts[noisy.kept].tolist(), strict=True))


def python_dp_strategy(histogram: Histogram) -> Callable[[], dict[str, float]]:
    strategy = partition_selection.create_gaussian_partition_strategy(EPSILON, DELTA, C_U)

    def call() -> dict[str, float]:
        noisy = ((key, strategy.noised_value_if_should_keep(count)) for key, count in histogram.items())
        return {key: number for key, number in noisy if number is not None}

    return call


def python_dp_noise(histogram: Histogram) -> Callable[[], dict[str, float]]:
    mechanism = best()
    gaussian = GaussianMechanism.create_from_standard_deviation(mechanism.sigma)

    def call() -> dict[str, float]:
        noisy = ((key, gaussian.add_noise(float(count))) for key, count in histogram.items())
        return {key: number for key, number in noisy if number >= mechanism.tau_star}

    return call


def open_dp(histogram: Histogram, number: type[float] | type[int]) -> Callable[[], dict[str, float]]:
    dp.enable_features("contrib")
    mechanism = best()
    atoms = dp.atom_domain(T=float, nan=False) if number is float else dp.atom_domain(T=int)
    threshold = mechanism.tau_star if number is float else math.ceil(mechanism.tau_star)
    measurement = dp.m.make_gaussian_threshold(
        dp.map_domain(dp.atom_domain(T=str), atoms),
        dp.l02inf_distance(dp.absolute_distance(T=number)),
        scale=mechanism.sigma,
        threshold=threshold,
    )
    table_of_its_own = {key: number(count) for key, count in histogram.items()}

    def call() -> dict[str, float]:
        released: dict[str, float] = measurement(table_of_its_own)
        return released

    return call


def extra_memory(call: Callable[[], Noisy]) -> int:
    """The most bytes in use during a call, beyond what it returns."""
    tracemalloc.start()
    try:
        noisy = call()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    return peak - noisy.kept.nbytes - noisy.counts.nbytes - noisy.values.nbytes


if __name__ == "__main__":
    main()
