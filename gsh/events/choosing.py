"""The choice of C_u and of clips from a survey: from noisy histograms and public knowledge alone.

The survey counts users by the number of their groups, in bins that end at C_j = 1, 2, 4, …, 2²⁰. Every bin has noise of
standard deviation σ_h. A user in bin i has about g_i = √((C_{i−1} + 1) C_i) groups, and keeps min(g_i, C_j) of them at
C_u = C_j. So K_j = Σ n_i min(g_i, C_j) pairs of a user and a group are kept.

1. If no bin has more than 3σ_h, or all together have fewer than 100σ_h, the survey says too little: the default holds.
2. From the fullest bin go up while a bin has more than 2σ_h: the last one is the *top*. All bins above it are taken
   away as noise: with weights up to 2²⁰, they would decide everything.
3. Among the C_j up to the top, take the one with the largest K_j ln(K_j/(H τ*_j)), H = 20.

If the groups have Zipf's sizes, the largest one has about K/H users, and what is published is in proportion to this
score. H enters only through a logarithm. If no logarithm is positive, the largest K_j/τ*_j decides.

A clip b of a sum removes m E(x − b)₊ from a group of m users, and its noise is in proportion to b. The best b is
exceeded by a share q of the values, so the clip is the smallest edge with at most this share above it:

    q = √(2 n/(π S))/m,     n groups of a user have the sum, and S is its part of the noise cost
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

__all__ = ["BINS", "Choice", "best_share", "chosen_c_u", "chosen_clip", "edges", "kept_pairs", "top_bin"]

BINS = 21
"""The bins of a histogram by groups: up to 1, 2, 4, …, 2²⁰. The last one has all users with more as well."""

_SILENT_BIN, _SILENT_SURVEY, _LOUD = 3.0, 100.0, 2.0
_SIZES = 20.0  # H


@dataclass(frozen=True, slots=True)
class Choice:
    """A bound that a survey suggests, and why, in one sentence."""

    bound: float
    reason: str
    is_default: bool = False
    """Whether the survey says too little, and the public default is taken."""


def edges(bins: int = BINS) -> list[int]:
    """Where the bins end: C_j = 2^j."""
    return [1 << j for j in range(bins)]


def top_bin(noisy: Sequence[float], sigma: float) -> int | None:
    """The last bin that is more than noise; None if the survey says too little."""
    fullest = max(range(len(noisy)), key=noisy.__getitem__)
    if noisy[fullest] <= _SILENT_BIN * sigma or math.fsum(noisy) < _SILENT_SURVEY * sigma:
        return None
    top = fullest
    while top + 1 < len(noisy) and noisy[top + 1] > _LOUD * sigma:
        top += 1
    return top


def kept_pairs(users: Sequence[float], c_u: int) -> float:
    """K: about the pairs of a user and a group that a C_u keeps, of users by bins."""
    ends = edges(len(users))
    sizes = (math.sqrt((before + 1) * end) for before, end in zip([0, *ends[:-1]], ends, strict=True))
    return math.fsum(each * min(size, c_u) for each, size in zip(users, sizes, strict=True))


def chosen_c_u(noisy: Sequence[float], sigma: float, tau_star: Callable[[int], float], default: int) -> Choice:
    """The C_u for a histogram of the users by the number of their groups. ``tau_star`` is the threshold at a C_u."""
    top = top_bin(noisy, sigma)
    if top is None:
        return Choice(default, f"C_u = {default}, the default: {_too_few(sigma)}", is_default=True)
    users, choices = noisy[: top + 1], edges(top + 1)
    c_u = max(choices, key=lambda each: _score(kept_pairs(users, each), tau_star(each)))
    dropped = max(1 - kept_pairs(users, c_u) / kept_pairs(users, choices[-1]), 0.0)
    return Choice(c_u, f"C_u = {c_u}: about {dropped:.1%} of pairs are dropped; {2 * c_u} would cost 41 % more noise")


def chosen_clip(noisy: Sequence[float], sigma: float, ends: Sequence[float], share: float, default: float) -> Choice:
    """The clip for a histogram of values in bins with these ends: the smallest with at most the share above it."""
    top = top_bin(noisy, sigma)
    if top is None:
        return Choice(default, f"{default:g}, the default: {_too_few(sigma)}", is_default=True)
    total = math.fsum(noisy[: top + 1])
    above = [math.fsum(noisy[j + 1 : top + 1]) / total for j in range(top + 1)]
    best = next(j for j, each in enumerate(above) if each <= share or j == top)
    return Choice(ends[best], f"{ends[best]:g}: about {max(above[best], 0.0):.1%} of values are clipped")


def best_share(groups: int, square: float, users: float) -> float:
    """q: the share of values above the best clip, in a group of so many users."""
    return math.sqrt(2 * groups / (math.pi * square)) / users


def _score(kept: float, tau_star: float) -> tuple[bool, float]:
    """What a C_u publishes. One that publishes something for sure is better than any other."""
    if kept <= 0:
        return False, 0.0
    logarithm = math.log(kept / (_SIZES * tau_star))
    return (True, kept * logarithm) if logarithm > 0 else (False, kept / tau_star)


def _too_few(sigma: float) -> str:
    return f"the survey shows fewer than {_SILENT_SURVEY * sigma:.0f} users, or no bin that is more than noise"
