"""The arithmetic of the reference: how many digits are carried, and how a real becomes a double.

The context is private, so that ``mpmath.mp.dps`` (15 unless someone sets it) decides nothing here, and arithmetic that
a test does on a result keeps all its digits. Every double becomes a real of this context exactly.
"""

import math

from mpmath import MPContext, mpf

DIGITS = 60  # significant digits every result of the reference is good for
WORKING_DIGITS = 150  # a relative error in ε or μ grows by (ε/μ)² in f, which is 1e32 in the cases

mp = MPContext()
mp.dps = WORKING_DIGITS


def round_up(x: mpf) -> float:
    """The smallest double that is at least x, subnormals and infinity included.

    min {d a double : d ≥ x},   so 0 < x ≤ 2^−1074 gives 5e-324 and 1 − 1e-40 gives 1.0
    """
    # float(x) is only a place to start: mpmath promises no direction. Comparing an mpf with a double is exact.
    d = float(x)
    while d < x:
        d = math.nextafter(d, math.inf)
    while math.nextafter(d, -math.inf) >= x:
        d = math.nextafter(d, -math.inf)
    return d
