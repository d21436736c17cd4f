"""The paper's case study as a setting: [KKWZ] section 6, counts only."""

from gsh.accounting.accountings import EXACT, Accounting
from gsh.accounting.calibration.draft import Draft, Target
from gsh.accounting.calibration.target import calibrate
from gsh.accounting.mechanism import Mechanism

__all__ = ["C_U", "DELTA", "EPSILON", "TARGET", "TAU", "best", "smallest_tau_star", "threshold_for"]

C_U, TAU = 51914, 1
EPSILON, DELTA = 0.349, 1e-5
TARGET = Target(EPSILON, DELTA)

# So large that the noise costs nothing beside the threshold, which does not depend on ε.
_FREE_NOISE = 50.0


def best(target: Target = TARGET) -> Mechanism:
    """The smallest σ and with it the smallest τ*, by exact accounting, certified."""
    return calibrate(EXACT, Draft(C_U, TAU, None, None), target).mechanism


def smallest_tau_star(accounting: Accounting, sigma: float, target: Target = TARGET) -> float:
    """The smallest τ* at σ by the accounting, certified."""
    return calibrate(accounting, Draft(C_U, TAU, None, float(sigma)), target).mechanism.tau_star


def threshold_for(sigma: float, delta_infinite: float) -> float:
    """The smallest τ* at σ that keeps δ_infinite within its share, certified."""
    return smallest_tau_star(EXACT, sigma, Target(_FREE_NOISE, delta_infinite))
