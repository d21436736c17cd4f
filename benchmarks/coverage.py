"""``python -m benchmarks.coverage``: how often intervals of published numbers cover the true ones, and their lengths.

The counts of the first table are drawn by the mechanism itself, as in a release, but from seeded bits: every run prints
the tables of docs/accuracy.md.
"""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr, ndtri_exp
from scipy.stats import binom

from benchmarks.markdown import table
from benchmarks.timing import duration, medians
from gsh.accounting.mechanism import Mechanism, PlainGaussian
from gsh.accuracy.intervals import count_intervals, z_of
from gsh.accuracy.rest import count_rest
from gsh.accuracy.totals import MANY as FEWEST
from gsh.accuracy.totals import count_total, normal_totals
from gsh.histogram.noise import Noise

__all__ = ["drawn_counts", "main"]

Doubles = NDArray[np.float64]

SIGMA, TAU_STAR, LEVEL = 84.5, 495.0, 0.95
MECHANISM = Mechanism(c_u=10, tau=1, tau_star=TAU_STAR, sigma=SIGMA)
COUNTS = (250, 300, 350, 400, 450, 495, 550, 600, 700, 1000)
WANTED, MOST_DRAWS, AT_ONCE = 100_000, 20_000_000, 1_000_000
DRAWS, MANY_DRAWS = 2000, 100_000
LEVELS = (0.5, 0.95, 0.99, 0.999)


def main() -> None:
    print(f"\n## Published counts: σ = {SIGMA}, τ* = {TAU_STAR:g}, level {LEVEL}\n")
    print(coverage())
    print("\n## Length of an interval, and the estimate, by the distance to τ*\n")
    print(lengths())
    print(f"\n## Totals over published groups: level {LEVEL}\n")
    print(totals())
    print(f"\n## The lowest coverage of totals over {FEWEST} groups, by the normal method\n")
    print(lowest())
    print("\n## The rest of a parent without a threshold, with the same σ\n")
    print(rests())
    print("\n## Time\n")
    print(times())


def coverage() -> str:
    rows = []
    for true in COUNTS:
        counts = np.concatenate(list(_published(true)))
        found = count_intervals(MECHANISM, counts, LEVEL)
        naive = np.mean(np.abs(counts - true) <= z_of(LEVEL) * SIGMA)
        conditional = np.mean((found.low <= true) & (true <= found.high))
        rows.append(
            (
                str(true),
                f"{ndtr((true - TAU_STAR) / SIGMA):.3g}",
                f"{naive:.3f}",
                f"{conditional:.3f}",
                f"{np.median(found.high - found.low) / SIGMA:.2f}",
                f"{_signed(np.median(counts) - true, 0)}, {_signed(counts.mean() - true, 0)}",
                f"{_signed(np.median(found.estimate) - true, 0)}, {_signed(found.estimate.mean() - true, 0)}",
            )
        )
    header = ("true count n", "P(published)", "y ± 1.96 σ covers", "the interval covers", "median length/σ")
    return table((*header, "y − n: median, mean", "estimate − n: median, mean"), rows)


def _signed(value: float, places: int) -> str:
    """With a sign, unless it is shown as 0."""
    shown = f"{value:+.{places}f}".replace("-", "−")
    return shown if shown.strip("+−0.") else shown[1:]


def _published(true: int) -> Iterator[Doubles]:
    """The noisy counts of published groups with this true count."""
    noise, bits, drawn, published = Noise(MECHANISM), np.random.default_rng(true).bytes, 0, 0
    while published < WANTED and drawn < MOST_DRAWS:
        noisy = noise.add(np.full(AT_ONCE, true), np.empty((AT_ONCE, 0)), bits)
        kept = noisy.counts[noisy.kept]
        drawn, published = drawn + AT_ONCE, published + len(kept)
        yield kept


def lengths() -> str:
    t = np.array([0.01, 0.05, 0.1, 0.25, 0.5, 1, 1.5, 2, 3, 4, 6, 10])
    mechanism = Mechanism(c_u=1, tau=1, tau_star=1e6, sigma=1.0)
    found = count_intervals(mechanism, 1e6 + t, LEVEL)
    low, estimate, high = (column - 1e6 - t for column in (found.low, found.estimate, found.high))
    rows = [
        (f"{each:g}", *(_signed(column[i], 2) for column in (low, estimate, high)), f"{high[i] - low[i]:.2f}")
        for i, each in enumerate(t)
    ]
    return table(("(y − τ*)/σ", "(low − y)/σ", "(estimate − y)/σ", "(high − y)/σ", "length/σ"), rows)


def totals() -> str:
    """True counts at some distances from τ*, in units of σ; a mixture goes from −2.3 to +20."""
    rows = []
    for groups in (1, 3, 29, 30, 1000):
        settings = {f"all at {_near(at)}": np.full(groups, float(at)) for at in (-4, -1, 0, 1, 2, 6)}
        settings["from −2.3 σ to +20 σ"] = np.linspace(-2.3, 20, groups)
        settings["one at −1.5 σ, others far"] = np.array([-1.5] + [20.0] * (groups - 1))
        for seed, (name, distances) in enumerate(settings.items()):
            rows.append((str(groups), name, *_total_row(TAU_STAR + SIGMA * distances, seed)))
    header = ("groups k", "true counts", "method", "Σ y ± 1.96 σ √k covers", "the interval covers")
    biases = ("mean of Σ y − T, in σ √k", "mean of estimate − T, in σ √k")
    return table((*header, "median length/(σ √k)", *biases), rows)


def _near(at: float) -> str:
    return f"τ* {at:+g} σ".replace(" +0 σ", "").replace("-", "−")


def _total_row(true: Doubles, seed: int) -> tuple[str, ...]:
    unit, truth = SIGMA * math.sqrt(len(true)), float(true.sum())
    counts = drawn_counts(MECHANISM, true, DRAWS, seed)
    found = [count_total(MECHANISM, row, LEVEL, "counts") for row in counts]
    errors = counts.sum(axis=1) - truth
    return (
        found[0].method,
        f"{np.mean(np.abs(errors) <= z_of(LEVEL) * unit):.3f}",
        f"{np.mean([each.low <= truth <= each.high for each in found]):.3f}",
        f"{np.median([each.high - each.low for each in found]) / unit:.2f}",
        _signed(errors.mean() / unit, 2),
        _signed(np.mean([each.estimate - truth for each in found]) / unit, 2),
    )


def lowest() -> str:
    """Where it is hardest: as few groups as the normal method takes, and a few or all of them near τ*.

    The lowest of many measured coverages is below the level by chance. "One in twenty" is the share below which the
    lowest would be in one of twenty tables, if every setting covered with exactly the level. "One window" is the
    method without the wider window of the lower end.
    """
    rows = []
    for most_s in (1, 6, 20):
        mechanism = Mechanism(c_u=10, tau=1, tau_star=1 + most_s * SIGMA, sigma=SIGMA)
        covered: dict[tuple[float, int], dict[str, float]] = {}
        for near in (1, 8, FEWEST):
            for s in sorted({-2.5, -1.5, -1, 0, 1, most_s}):
                true = mechanism.tau_star + SIGMA * np.array([float(-s)] * near + [20.0] * (FEWEST - near))
                drawn = drawn_counts(mechanism, true, MANY_DRAWS, most_s)
                for level in LEVELS:
                    for window in (1, 2):
                        _, _, low, high = normal_totals(mechanism, drawn, level, window=window)
                        share = float(np.mean((low <= true.sum()) & (true.sum() <= high)))
                        covered.setdefault((level, window), {})[f"{near} at {_near(-s)}"] = share
        for level in LEVELS:
            found = covered[level, 2]
            worst = min(found, key=found.__getitem__)
            chance = binom.ppf(1 - 0.95 ** (1 / len(found)), MANY_DRAWS, level) / MANY_DRAWS
            shares = (min(covered[level, 1].values()), found[worst], chance)
            rows.append((f"{level:g}", f"{most_s} σ", *(f"{share:.5f}" for share in shares), worst))
    header = ("level", "τ* − τ", "with one window", "lowest coverage", "one in twenty by chance")
    return table((*header, "groups near τ*; the others are far above"), sorted(rows, key=lambda row: float(row[0])))


def rests() -> str:
    rows = []
    for children in (1, 5, 30, 1000):
        settings = {f"all at {_near(at)}": np.full(children, float(at)) for at in (-2, 0, 10)}
        settings["half at τ*, half far"] = np.array([0.0] * (children // 2) + [10.0] * (children - children // 2))
        if children == 1:
            del settings["half at τ*, half far"]
        for seed, (name, distances) in enumerate(settings.items()):
            rows.append((str(children), name, *_rest_row(TAU_STAR + SIGMA * distances, seed)))
    header = ("children k", "true counts", "method", "D ± 1.96 ν covers")
    return table((*header, *(f"covers {level:g}" for level in LEVELS[1:]), "median length/ν at 0.95"), rows)


def _rest_row(true: Doubles, seed: int) -> tuple[str, ...]:
    parent, size = PlainGaussian(c_u=1, sigma=SIGMA), DRAWS if len(true) > FEWEST else 5 * DRAWS
    rows, truth = drawn_counts(MECHANISM, true, size, seed), -float(true.sum())
    own = SIGMA * np.random.default_rng(seed).standard_normal(size)
    deviation = SIGMA * math.sqrt(1 + len(true))
    found = {
        level: [count_rest(parent, MECHANISM, count, row, level) for count, row in zip(own, rows, strict=True)]
        for level in LEVELS[1:]
    }
    naive = np.mean(np.abs(own - rows.sum(axis=1) - truth) <= z_of(LEVEL) * deviation)
    covers = [f"{np.mean([each.low <= truth <= each.high for each in found[level]]):.4f}" for level in found]
    length = np.median([each.high - each.low for each in found[LEVEL]]) / deviation
    return found[LEVEL][0].method, f"{naive:.3f}", *covers, f"{length:.2f}"


def drawn_counts(mechanism: Mechanism, true: Doubles, size: int, seed: int) -> Doubles:
    """Rows of noisy counts, given that all groups are published."""
    uniform = np.random.default_rng((len(true), seed)).random((size, len(true)))
    least = (mechanism.tau_star - true) / mechanism.sigma
    noise = -ndtri_exp(log_ndtr(-least) + np.log1p(-uniform))
    return np.maximum(true + mechanism.sigma * noise, mechanism.tau_star)


def times() -> str:
    counts = TAU_STAR + SIGMA * np.abs(np.random.default_rng(1).normal(size=10**6)) * 3
    found = medians(
        {
            "intervals of a million counts": lambda: count_intervals(MECHANISM, counts, LEVEL),
            "total of a million counts": lambda: count_total(MECHANISM, counts, LEVEL, "counts"),
        },
        rounds=5,
    )
    goals = ("< 500 ms", "")
    return table(
        ("task", "time", "goal"),
        [(name, duration(seconds), goal) for (name, seconds), goal in zip(found.items(), goals, strict=True)],
    )


if __name__ == "__main__":
    main()
