"""What a mechanism publishes, one size after the other: P(published | n) and the error of a published count."""

from collections.abc import Mapping

from mpmath import mpf

from .precision import mp

__all__ = ["Published"]


class Published:
    """``times`` says how many groups have each size."""

    def __init__(self, tau: int, tau_star: float, sigma: float, times: Mapping[int, int]) -> None:
        self.tau, self.tau_star, self.sigma = max(tau, 1), mp.mpf(tau_star), mp.mpf(sigma)
        self.times = times

    def between(self, low: mpf, high: mpf) -> mpf:
        """P(low ≤ v ≤ high), v ~ N(0, σ²)."""
        if high <= low:
            return mp.zero
        if low < 0 < high:
            return self.between(mp.zero, high) + self.between(mp.zero, -low)
        if high <= 0:
            low, high = -high, -low
        scale = self.sigma * mp.sqrt(2)
        return (mp.erfc(low / scale) - mp.erfc(high / scale)) / 2

    def probability(self, size: int) -> mpf:
        return self.between(self.tau_star - size, mp.inf) if size >= self.tau else mp.zero

    def groups(self) -> mpf:
        return mp.fsum(k * self.probability(n) for n, k in self.times.items())

    def volume(self) -> mpf:
        return mp.fsum(k * n * self.probability(n) for n, k in self.times.items())

    def deviation(self) -> mpf:
        """√ Σ p (1 − p) over the groups."""
        variances = (k * self.probability(n) * self.between(-mp.inf, self.tau_star - n) for n, k in self.times.items())
        return mp.sqrt(mp.fsum(variances))

    def false_share(self, below: float) -> mpf:
        small = mp.fsum(k * self.probability(n) for n, k in self.times.items() if n < below)
        return small / self.groups()

    def error_share(self, error: mpf) -> mpf:
        """The share of published groups with at most this relative error."""
        close = (
            k * self.between(max(self.tau_star - n, -error * n), error * n)
            for n, k in self.times.items()
            if n >= self.tau
        )
        return mp.fsum(close) / self.groups()
