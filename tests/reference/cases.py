"""The parameters the service is compared at: fixed, so that a failure has a name and comes back.

CASES        cheap enough for the paper's scan over a₌
LARGE_CASES  C_u up to 1e18: no scan, only δ_infinite and δ_gaussian
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

C_US = (1, 2, 3, 50)
GAPS = (1e-6, 0.5, 3.0, 9.0, 20.0, 100.0, 1000.0)  # (τ* − τ)/σ; 1 − p^C_u is 0 in doubles past 8.3
EPSILONS = (0.0, 0.1, 1.0, 30.0, 800.0, 10_000.0)  # e^ε overflows a double past 709
MUS = (1e-12, 1e-9, 1e-3, 0.1, 1.0, 30.0, 1e3, 1e6)  # f cancels at one end and is 1 in doubles at the other
TAUS = (1, 5, 20)
SHARES = (0.0, 0.5, 0.99)  # the part of μ² that comes from μ₀; 0 is counts only


@dataclass(frozen=True)
class Case:
    """A mechanism and the ε to account it at. Each real is exactly its double."""

    c_u: int
    tau: int
    tau_star: float
    sigma: float
    mu_0: float
    epsilon: float
    capped: tuple[tuple[int, float], ...] = ()
    """(n, μ_n) of columns that a user changes in at most n groups."""

    def __str__(self) -> str:
        gap = (self.tau_star - self.tau) / self.sigma
        return (
            f"c_u={self.c_u},tau={self.tau},gap={gap:.5g}sigma,"
            f"sigma={self.sigma:.8g},mu_0={self.mu_0:.3g},epsilon={self.epsilon:g}"
            + "".join(f",{n}:{mu:.3g}" for n, mu in self.capped)
        )


def _reaching(mu: float, share: float, gap: float, c_u: int, tau: int, epsilon: float) -> Case:
    """The case with μ(C_u) = μ and τ* − τ = gap·σ, up to the rounding of its doubles.

    μ₀² = share·μ²/C_u,   1/σ² = (1 − share)·μ²/C_u
    """
    sigma = math.sqrt(c_u / (1 - share)) / mu
    return Case(c_u, tau, tau + gap * sigma, sigma, mu * math.sqrt(share / c_u), epsilon)


def _grid() -> Iterator[Case]:
    """Every second point of GAPS × EPSILONS × MUS, like the black squares of a chessboard: all pairs still meet.

    C_u, τ and the share of μ₀ take turns.
    """
    for i, gap in enumerate(GAPS):
        for j, epsilon in enumerate(EPSILONS):
            for k, mu in enumerate(MUS):
                if (i + j + k) % 2 == 0:
                    c_u = C_US[(i + j + k) // 2 % len(C_US)]
                    tau = TAUS[(i + j) % len(TAUS)]
                    share = SHARES[(j + k) % len(SHARES)]
                    yield _reaching(mu, share, gap, c_u, tau, epsilon)


# Here the script published with the paper under-states δ (2.7e-183 for 8.3e-89, 3.3e-59 for 1.1e-16), or returns NaN.
_SCRIPT_FAILURES = (
    Case(3, 1, 101.0, 5.0, 0.0, 10.0),
    Case(1000, 1, 9001.0, 1000.0, 0.0, 0.5),
    Case(3, 1, 101.0, 5.0, 0.0, 800.0),
)

# τ* makes δ_infinite and δ_gaussian equal, up to its rounding: where a split of the groups could gain the most.
_BALANCED = (
    Case(2, 1, 1.5028339056101057, 1.0, 0.0, 0.0),
    Case(2, 1, 15.16612737339972, 4.0, 0.0, 1.0),
    Case(2, 1, 291.48303154659334, 20.0, 0.0, 1.0),
    Case(3, 1, 1.9557108170502557, 0.5, 0.0, 10.0),
    Case(3, 1, 8.595353164413302, 5.0, 0.25, 0.1),
    Case(50, 1, 25.866603782211097, 10.0, 0.0, 0.0),
    Case(50, 1, 351.56099237565303, 69.1588, 0.0, 0.349),
    Case(50, 1, 24.247428429107597, 7.0, 0.125, 3.0),
    Case(50, 1, 15.823551264692094, 2.0, 0.0, 30.0),
    Case(50, 1, 14928.77106524251, 1000.0, 0.0, 0.1),
)

CASES: tuple[Case, ...] = (*_grid(), *_SCRIPT_FAILURES, *_BALANCED)

# The paper's case study, then C_u where C_u·Φ(−gap/σ) is tiny, moderate and huge.
LARGE_CASES: tuple[Case, ...] = (
    Case(51_914, 1, 13_948.0, 2228.0, 0.0, 0.349),
    Case(51_914, 1, 13_951.05, 2228.4826, 0.0, 0.349),
    Case(51_914, 1, 16_177.0, 2228.0, 0.0, 0.1),
    Case(51_914, 1, 16_177.0, 2228.0, 0.0, 0.504),
    Case(51_914, 1, 14_023.149, 2240.0, 0.0, 0.349),
    Case(51_914, 1, 14_398.742, 2300.0, 0.0, 0.349),
    Case(51_914, 1, 14_999.691, 2396.0, 0.0, 0.349),
    Case(51_914, 1, 15_149.717, 2396.0, 0.0, 0.349),
    Case(51_914, 1, 16_896.437, 2699.0, 0.0, 0.349),
    Case(51_914, 20, 16_915.437, 2699.0, 1e-4, 0.349),
    _reaching(0.1, 0.0, 1e-6, 10**6, 1, 0.0),
    _reaching(0.1, 0.0, 5.0, 10**6, 1, 1.0),
    _reaching(1.0, 0.5, 9.0, 10**6, 5, 1.0),
    _reaching(30.0, 0.0, 20.0, 10**6, 1, 800.0),
    _reaching(1e-9, 0.99, 100.0, 10**6, 20, 0.1),
    _reaching(1e3, 0.0, 1000.0, 10**6, 1, 10_000.0),
    _reaching(0.1, 0.0, 3.0, 10**18, 1, 0.1),
    _reaching(1.0, 0.5, 9.0, 10**18, 5, 1.0),
    _reaching(1.0, 0.0, 9.5, 10**18, 1, 10.0),
    _reaching(1e-3, 0.99, 20.0, 10**18, 20, 0.0),
    _reaching(1e-12, 0.0, 100.0, 10**18, 1, 30.0),
    _reaching(1e6, 0.0, 1000.0, 10**18, 1, 10_000.0),
)
