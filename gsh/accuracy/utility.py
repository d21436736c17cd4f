"""What a mechanism would publish of groups of given sizes: how many, how much of the volume, and with which error.

A group of n ≥ max(τ, 1) users is published if n + v ≥ τ*, v ~ N(0, σ²)  [KKWZ Algorithm 1]:

    P(published | n) = Φ((n − τ*)/σ)

Groups are independent, so that expected numbers are sums over the groups. The error of a published count is v, given
that v ≥ τ* − n: near τ* only counts raised by noise appear. For t = (τ* − n)/σ and x = rn/σ

    P(|v|/n > r | n published) = (Φ(−x) + max(0, Φ(−x) − Φ(t))) / Φ(−t)    if t ≤ 0
                               = Φ(−max(x, t)) / Φ(−t)                     if t > 0

A published group is drawn with weight P(published | n), so that its relative error has the mixture of these
distributions. Far below τ* the weights are tiny, and computed as logarithms. These numbers describe data and not
privacy: they are doubles, and not certified.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr, ndtri

from gsh.accounting.mechanism import Mechanism
from gsh.accounting.numerics.doubles import LARGEST_DOUBLE
from gsh.accuracy.bounds import Integers, counted
from gsh.errors import InvalidParameter

__all__ = ["QUANTILES", "ColumnNoise", "Utility", "utility"]

Doubles = NDArray[np.float64]
Whole = NDArray[np.integer[Any]]

QUANTILES = (0.001, 0.999)
"""The least and the greatest quantile. Outside, doubles have too few digits for the error."""
_CLOSE_ENOUGH = 1e-12
_MOST_STEPS = 300
_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)


@dataclass(frozen=True, slots=True)
class ColumnNoise:
    """The noise of a further column: its standard deviation in one group, and in the total of all published groups."""

    name: str
    deviation: float
    total_deviation: float
    """√(expected groups) times as large: the noise of groups is independent."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Utility:
    """What a mechanism would publish. ``sizes``, ``times`` and ``probabilities`` have a row for each distinct size."""

    sizes: Integers
    times: Integers
    """How many groups have each size."""
    probabilities: Doubles
    """The probability that a group of each size is published."""
    all_groups: int
    groups: float
    """The expected number of published groups."""
    groups_deviation: float
    """The standard deviation of the number of published groups."""
    all_volume: float
    """The users of all groups, a user of several groups counted in each."""
    volume: float
    """The expected number of users in published groups: their true number, without noise."""
    below: float
    false_groups: float
    """The expected number of published groups whose true size is less than ``below``."""
    false_share: float | None
    """Their share of the published groups. None if no group can be published."""
    quantiles: tuple[float, ...]
    relative_errors: tuple[float, ...] | None
    """|published − true| / true of a published group, at each of ``quantiles``. None if no group can be published."""
    columns: tuple[ColumnNoise, ...]

    def __post_init__(self) -> None:
        for array in (self.sizes, self.times, self.probabilities):
            array.setflags(write=False)

    def __reduce__(self) -> tuple[type["Utility"], tuple[object, ...]]:
        """Copies are made by the constructor: a pickled array would not be read-only."""
        return Utility, tuple(getattr(self, name) for name in self.__dataclass_fields__)

    @property
    def groups_share(self) -> float:
        return self.groups / self.all_groups

    @property
    def volume_share(self) -> float:
        return self.volume / self.all_volume

    def __repr__(self) -> str:
        """The numbers, to read."""
        lines = [
            f"groups          {self.groups:.6g} of {self.all_groups} ({_percent(self.groups_share)}), "
            f"standard deviation {self.groups_deviation:.3g}",
            f"volume          {self.volume:.6g} of {self.all_volume:.6g} ({_percent(self.volume_share)})",
        ]
        if self.false_share is not None and self.relative_errors is not None:
            lines.append(f"false share     {_percent(self.false_share)} have fewer than {self.below:.8g} users")
            errors = zip(self.quantiles, self.relative_errors, strict=True)
            lines.append("relative error  " + ", ".join(f"{_percent(error)} at {q:g}" for q, error in errors))
        return "\n".join(lines)


def utility(
    mechanism: Mechanism,
    sizes: Whole,
    times: Whole | None,
    below: float | None,
    quantiles: Sequence[float],
) -> Utility:
    """What the mechanism would publish of groups of these sizes. ``times`` says how many groups have each size.

    ``below`` is τ* if it is None.
    """
    below = mechanism.tau_star if below is None else below
    if not 0 < below < math.inf:
        raise InvalidParameter("below", "must be greater than 0 and finite")
    for place, quantile in enumerate(quantiles):
        if not QUANTILES[0] <= quantile <= QUANTILES[1]:
            raise InvalidParameter(f"quantiles/{place}", f"must be from {QUANTILES[0]} to {QUANTILES[1]}")
    n, times = counted(sizes, times)
    with np.errstate(over="ignore"):
        t = np.where(n < mechanism.effective_tau, np.inf, (mechanism.tau_star - n) / mechanism.sigma)
        weights = _weights(times, t)
        mixture = _Mixture(n, t, weights) if weights.any() else None
        errors = (
            None
            if mixture is None
            else tuple(min(mechanism.sigma * mixture.quantile(q), LARGEST_DOUBLE) for q in quantiles)
        )
    kept, false = ndtr(-t), n < below
    groups = float(times @ kept)
    return Utility(
        sizes=n,
        times=times,
        probabilities=kept,
        all_groups=int(times.sum()),
        groups=groups,
        groups_deviation=math.sqrt(float(times @ (kept * ndtr(t)))),
        all_volume=float(times @ n.astype(float)),
        volume=float((times * n.astype(float)) @ kept),
        below=float(below),
        false_groups=float(times[false] @ kept[false]),
        false_share=None if mixture is None else float(weights[false].sum() / weights.sum()),
        quantiles=tuple(map(float, quantiles)),
        relative_errors=errors,
        columns=_column_noise(mechanism, groups),
    )


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


class _Mixture:
    """The distribution of ρ = |v|/(nσ) of a published group, so that x = ρn."""

    def __init__(self, sizes: Integers, t: Doubles, weights: Doubles) -> None:
        some = weights > 0
        n, t, weights = sizes[some].astype(float), t[some], weights[some] / weights.sum()
        large, lifted = t <= 0, t > 0  # published without noise too, or only because noise lifts them
        self._n, self._t = n, t
        self._large = n[large], ndtr(t[large]), -t[large], weights[large] / ndtr(-t[large])
        self._lifted = n[lifted], t[lifted], log_ndtr(-t[lifted]), weights[lifted]

    def quantile(self, q: float) -> float:
        """The ρ with P(error ≤ ρ) = q: Newton's method for ln ρ, within bounds that close by bisection.

        At any n, P(error ≤ ρ) is at most 2x, and P(error > ρ) is at most 4Φ(−s) for x = max(t, 0) + s.
        """
        s = -float(ndtri((1 - q) / 4))
        low = math.log(q / (2 * float(self._n.max())))
        high = math.log(float(((np.maximum(self._t, 0) + s) / self._n).max()))
        at, last = (low + high) / 2, math.inf
        for _ in range(_MOST_STEPS):
            exceeded, density = self._exceeded(math.exp(at))
            low, high = (at, high) if exceeded > 1 - q else (low, at)
            newton = (exceeded - (1 - q)) / density if density > 0 else math.inf
            if min(abs(newton), high - low) < _CLOSE_ENOUGH:
                break
            is_good = low < at + newton < high and abs(newton) < abs(last) / 2
            last = newton if is_good else (low + high) / 2 - at
            at += last
        return math.exp(at)

    def _exceeded(self, rho: float) -> tuple[float, float]:
        """P(error > ρ), and the density of ln ρ."""
        n, below_t, reach, weights = self._large
        x = rho * n
        tail = ndtr(-x)
        exceeded = weights @ (tail + np.maximum(0.0, tail - below_t))
        density = weights @ (np.exp(_log_bell(x)) * x * np.where(x < reach, 2.0, 1.0))
        n, t, log_kept, weights = self._lifted
        x = rho * n
        exceeded += weights @ np.exp(log_ndtr(-np.maximum(x, t)) - log_kept)
        density += weights @ np.where(x > t, np.exp(_log_bell(x) - log_kept) * x, 0.0)
        return float(exceeded), float(density)


def _log_bell(x: Doubles) -> Doubles:
    """ln φ(x)."""
    return -x * x / 2 - _LOG_SQRT_2PI


def _weights(times: Integers, t: Doubles) -> Doubles:
    """Proportional to times · Φ(−t), the largest one 1; all 0 if no group can be published."""
    logs = np.log(times) + log_ndtr(-t)
    most = logs.max()
    weights: Doubles = np.exp(logs - most) if most > -np.inf else np.zeros_like(logs)
    return weights


def _column_noise(mechanism: Mechanism, groups: float) -> tuple[ColumnNoise, ...]:
    """s_j = √Σ_jj in one group. In the sum of N groups, N of mean ``groups``, it is s_j √groups."""
    if mechanism.aggregates is None:
        return ()
    deviations = (math.sqrt(row[place]) for place, row in enumerate(mechanism.aggregates.covariance))
    pairs = zip(mechanism.column_names, deviations, strict=True)
    return tuple(ColumnNoise(name, each, each * math.sqrt(groups)) for name, each in pairs)
