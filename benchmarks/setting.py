"""The paper's case study as a setting.  [KKWZ Sec. 6]"""

from dataclasses import replace

from gsh.accounting.accountings import EXACT, Accounting
from gsh.accounting.calibration.draft import Target
from gsh.accounting.calibration.target import calibrate
from gsh.accounting.case_study import C_U, OUTLINE, PRINTED, TARGET, TAU
from gsh.accounting.mechanism import Mechanism

__all__ = [
    "C_U",
    "DELTA",
    "EPSILON",
    "MECHANISM",
    "OUTLINE_BODY",
    "TARGET",
    "TAU",
    "best",
    "smallest_tau_star",
    "threshold_for",
]

EPSILON, DELTA = TARGET.epsilon, TARGET.delta

OUTLINE_BODY = {"c_u": C_U, "tau": TAU}
MECHANISM = OUTLINE_BODY | {"tau_star": PRINTED.tau_star, "sigma": PRINTED.sigma}
"""The mechanism of the paper in the body of a request."""

# At this ε the noise costs nothing, and the threshold does not depend on ε.
_FREE_NOISE = 50.0


def best(target: Target = TARGET) -> Mechanism:
    """The smallest σ and with it the smallest τ*, by exact accounting, certified."""
    return calibrate(EXACT, OUTLINE, target).mechanism


def smallest_tau_star(accounting: Accounting, sigma: float, target: Target = TARGET) -> float:
    """The smallest τ* at σ by the accounting, certified."""
    return calibrate(accounting, replace(OUTLINE, sigma=float(sigma)), target).mechanism.tau_star


def threshold_for(sigma: float, delta_infinite: float) -> float:
    """The smallest τ* at σ that keeps δ_infinite within its share, certified."""
    return smallest_tau_star(EXACT, sigma, Target(_FREE_NOISE, delta_infinite))
