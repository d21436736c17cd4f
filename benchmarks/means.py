"""``python -m benchmarks.means``: how often intervals of means and ratios, and of rounded numbers, cover the true ones.

All draws have fixed seeds: every run prints the tables of docs/accuracy.md.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from benchmarks.coverage import drawn_counts
from benchmarks.markdown import table
from benchmarks.timing import duration, medians
from gsh.accounting.mechanism import Aggregates, Mechanism, PlainGaussian
from gsh.accounting.sensitivity import Box
from gsh.accuracy.intervals import Interval, count_intervals
from gsh.accuracy.means import Range, mean_intervals
from gsh.accuracy.ratios import ratio_intervals
from gsh.accuracy.totals import normal_totals

__all__ = ["main"]

Doubles = NDArray[np.float64]

SIGMA, TAU, TAU_STAR = 20.0, 20, 120.0
RANGE = Range(-1.0, 1.0)
"""The range of what one user has, and its half: h = 1."""
RATIOS, MEANS, PLACES = (0.3, 1.0, 3.0), (0.0, 0.5, 0.95), (-3, 0, 2, 4, 20)
LEVELS = (0.5, 0.95, 0.99, 0.999)
DRAWS, MANY_DRAWS = 20_000, 100_000


def main() -> None:
    for title, made in (
        (f"Means at level 0.95: τ = {TAU}, σ = {SIGMA:g}, τ* = {TAU_STAR:g}, a range of ±1", means()),
        ("The lowest coverage of means, and their longest length", lowest()),
        ("Ratios of two columns at level 0.95", ratios()),
        ("Rounded counts with C = τ* − σ, and τ* = 1 + 8 σ", counts()),
        ("Rounded means at level 0.95: τ* = 1 + 6 σ, a mean of half the range", rounded_means()),
        ("Totals of rounded counts at level 0.95: τ* = 1 + 6 σ", totals()),
        ("Time", times()),
    ):
        print(f"\n## {title}\n\n{made}")


def means() -> str:
    """Each cell: Fieller's interval covers, this one covers, and its mean length."""
    rows = []
    for ratio in RATIOS:
        for mean in MEANS:
            cells = []
            for at in PLACES:
                group = _Group(ratio * SIGMA, mean, TAU_STAR + at * SIGMA)
                drawn = group.drawn(DRAWS)
                found, plain = group.interval(*drawn, 0.95), group.fieller(*drawn, 0.95)
                shares = f"{_share(plain, mean):.3f}, {_share(found, mean):.3f}"
                cells.append(f"{shares}, {np.mean(found.high - found.low):.2f}")
            rows.append((f"{ratio:g}", f"{mean:g}", *cells))
    return table(("s/σ", "mean", *(f"C = τ* {at:+g} σ".replace("-", "−").replace(" +0 σ", "") for at in PLACES)), rows)


def lowest() -> str:
    """Over all settings of the table above, with more draws.

    "One in twenty" is the share below which the lowest would be in one of twenty tables, if every setting covered with
    exactly the level.
    """
    groups = [_Group(ratio * SIGMA, mean, TAU_STAR + at * SIGMA) for ratio in RATIOS for mean in MEANS for at in PLACES]
    shares: dict[float, list[float]] = {level: [] for level in LEVELS}
    lengths: dict[tuple[float, int], list[float]] = {(level, at): [] for level in LEVELS for at in (4, 20)}
    for group in groups:
        drawn = group.drawn(MANY_DRAWS)
        for level in LEVELS:
            found, plain = group.interval(*drawn, level), group.fieller(*drawn, level)
            shares[level].append(_share(found, group.mean))
            at = round((group.count - TAU_STAR) / SIGMA)
            if (level, at) in lengths:
                lengths[level, at].append(float(np.mean(found.high - found.low) / np.mean(plain.high - plain.low)))
    rows = [
        (
            f"{level:g}",
            f"{min(shares[level]):.5f}",
            f"{binom.ppf(1 - 0.95 ** (1 / len(groups)), MANY_DRAWS, level) / MANY_DRAWS:.5f}",
            *(f"{max(lengths[level, at]):.3f}" for at in (4, 20)),
        )
        for level in LEVELS
    ]
    header = ("level", "lowest coverage", "one in twenty by chance")
    return table((*header, "longest at τ* +4 σ, in lengths of Fieller's", "at τ* +20 σ"), rows)


def ratios() -> str:
    """s₁ = s₂ = 1, and independent noise. No user adds less than 0, so a ratio is at least 0."""
    columns = Aggregates(names=("a", "b"), covariance=((1, 0), (0, 1)), sensitivity=Box((0.0, 0.0), (1.0, 1.0)))
    mechanism, rng, rows = PlainGaussian(c_u=1, sigma=1, aggregates=columns), np.random.default_rng(7), []
    for second in (0.5, 2, 3, 5, 20):
        for ratio in (0.2, 0.9):
            numbers = rng.normal(ratio * second, 1, MANY_DRAWS), rng.normal(second, 1, MANY_DRAWS)
            found = ratio_intervals(mechanism, (0, 1), numbers, 0.95)
            known, bounded = np.mean(~np.isnan(found.estimate)), np.mean(np.isfinite(found.high))
            medians_of_ends = (f"{np.median(end):.3f}".replace("inf", "∞") for end in (found.low, found.high))
            rows.append(
                (
                    f"{second:g}",
                    f"{ratio:g}",
                    f"{_share(found, ratio):.4f}",
                    f"{known:.3f}",
                    f"{bounded:.3f}",
                    *medians_of_ends,
                )
            )
    header = ("A₂/s₂", "ratio", "covers", "has an estimate", "has an upper end")
    return table((*header, "median of the lower ends", "of the upper ends"), rows)


def counts() -> str:
    rows = []
    for sigma in (1.0, 2.0, 5.0, 20.0):
        mechanism = Mechanism(c_u=1, tau=1, tau_star=1 + 8 * sigma, sigma=sigma)
        true = mechanism.tau_star - sigma
        exact = drawn_counts(mechanism, np.array([true]), MANY_DRAWS, 3)[:, 0]
        rounded, cells = np.rint(exact), []
        for level in (0.95, 0.999):
            before, as_exact, widened = (
                count_intervals(mechanism, numbers, level, unit)
                for numbers, unit in ((exact, 0.0), (rounded, 0.0), (rounded, 1.0))
            )
            cells += [f"{_share(as_exact, true):.4f}", f"{_share(widened, true):.4f}"]
            cells.append(f"{np.median(widened.high - widened.low) / np.median(before.high - before.low):.2f}")
        rows.append((f"{sigma:g}", *cells))
    header = [f"{what} at {level}" for level in (0.95, 0.999) for what in ("not widened", "widened", "length")]
    return table(("σ", *header), rows)


def rounded_means() -> str:
    rows = []
    for sigma in (1.0, 5.0, 20.0):
        for ratio in (0.3, 1.0):
            for at in (-2, 2, 10):
                columns = Aggregates(
                    names=("a",), covariance=(((ratio * sigma) ** 2,),), sensitivity=Box((-1.0,), (1.0,))
                )
                mechanism = Mechanism(c_u=1, tau=1, tau_star=1 + 6 * sigma, sigma=sigma, aggregates=columns)
                true = mechanism.tau_star + at * sigma
                numbers = drawn_counts(mechanism, np.array([true]), DRAWS, 5)[:, 0]
                sums = true / 2 + ratio * sigma * np.random.default_rng(6).standard_normal(DRAWS)
                before = mean_intervals(mechanism, 0, numbers, sums, RANGE, 0.95)
                as_exact, widened = (
                    mean_intervals(mechanism, 0, np.rint(numbers), np.rint(sums), RANGE, 0.95, (unit, unit))
                    for unit in (0.0, 1.0)
                )
                length = np.mean(widened.high - widened.low) / np.mean(before.high - before.low)
                shares = f"{_share(as_exact, 0.5):.4f}", f"{_share(widened, 0.5):.4f}"
                rows.append((f"{sigma:g}", f"{ratio:g}", f"τ* {at:+g} σ".replace("-", "−"), *shares, f"{length:.2f}"))
    return table(("σ", "s/σ", "count", "not widened", "widened", "length"), rows)


def totals() -> str:
    rows = []
    for sigma in (1.0, 5.0, 20.0):
        for groups in (30, 300):
            settings = {"far": np.full(groups, 12.0), "from −2 σ to +15 σ": np.linspace(-2, 15, groups)}
            for name, places in (settings | {"all at τ*": np.zeros(groups)}).items():
                mechanism = Mechanism(c_u=1, tau=1, tau_star=1 + 6 * sigma, sigma=sigma)
                true, draws = np.rint(mechanism.tau_star + places * sigma), DRAWS
                exact = drawn_counts(mechanism, true, draws, groups)
                shares, lengths = [], []
                for numbers, unit in ((exact, 0.0), (np.rint(exact), 1.0)):
                    _, _, low, high = normal_totals(mechanism, numbers, 0.95, unit)
                    shares.append(f"{np.mean((low <= true.sum()) & (true.sum() <= high)):.4f}")
                    lengths.append(np.median(high - low))
                rows.append((f"{sigma:g}", str(groups), name, *shares, f"{lengths[1] / lengths[0]:.2f}"))
    return table(("σ", "groups", "true counts", "before rounding", "rounded", "length"), rows)


class _Group(NamedTuple):
    """A group with a true count and a true mean, and the deviation of the noise of its sum."""

    deviation: float
    mean: float
    count: float

    @property
    def mechanism(self) -> Mechanism:
        columns = Aggregates(names=("a",), covariance=((self.deviation**2,),), sensitivity=Box((-1.0,), (1.0,)))
        return Mechanism(c_u=3, tau=TAU, tau_star=TAU_STAR, sigma=SIGMA, aggregates=columns)

    def drawn(self, size: int) -> tuple[Doubles, Doubles]:
        """The published counts and sums."""
        noise = np.random.default_rng(2).standard_normal(size)
        published = drawn_counts(self.mechanism, np.array([self.count]), size, 1)[:, 0]
        return published, self.count * self.mean + self.deviation * noise

    def interval(self, numbers: Doubles, sums: Doubles, level: float) -> Interval:
        return mean_intervals(self.mechanism, 0, numbers, sums, RANGE, level)

    def fieller(self, numbers: Doubles, sums: Doubles, level: float) -> Interval:
        """As if the count had no threshold."""
        public = PlainGaussian(c_u=3, sigma=SIGMA, aggregates=self.mechanism.aggregates)
        return mean_intervals(public, 0, numbers, sums, RANGE, level)


def _share(found: Interval, truth: float) -> float:
    return float(np.mean((found.low <= truth) & (truth <= found.high)))


def times() -> str:
    rng = np.random.default_rng(1)
    numbers = TAU_STAR + SIGMA * np.abs(rng.normal(size=10**6)) * 3
    sums = 0.3 * numbers + SIGMA * rng.normal(size=10**6)
    group = _Group(SIGMA, 0.3, 0.0)
    columns = Aggregates(names=("a", "b"), covariance=((1, 0), (0, 1)), sensitivity=Box((0.0, 0.0), (1.0, 1.0)))
    public = PlainGaussian(c_u=1, sigma=1, aggregates=columns)
    found = medians(
        {
            "means of a million groups": lambda: group.interval(numbers, sums, 0.95),
            "ratios of a million groups": lambda: ratio_intervals(public, (0, 1), (sums, numbers), 0.95),
        },
        rounds=3,
    )
    return table(("task", "time"), [(name, duration(seconds)) for name, seconds in found.items()])


if __name__ == "__main__":
    main()
