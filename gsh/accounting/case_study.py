"""The case study of the paper: counts of users per URL.  [KKWZ Sec. 6; docs/math/case-study.md]"""

from gsh.accounting.calibration.draft import Draft, Target
from gsh.accounting.mechanism import Mechanism

__all__ = ["CASE_STUDY", "C_U", "OUTLINE", "PRINTED", "TARGET", "TAU", "WHOLE"]

C_U, TAU = 51914, 1

TARGET = Target(epsilon=0.349, delta=1e-5)

OUTLINE = Draft(C_U, TAU, tau_star=None, sigma=None)
"""The mechanism without noise and threshold: the input of a calibration."""

CASE_STUDY = Mechanism(c_u=C_U, tau=TAU, tau_star=13951.051328063842, sigma=2228.482632459166)
"""The smallest σ and the smallest τ* that meet the target by exact accounting."""

WHOLE = Mechanism(c_u=C_U, tau=TAU, tau_star=13955.0, sigma=2229.0)
"""The smallest whole σ, and the smallest whole τ* for this σ, that meet the target."""

PRINTED = Mechanism(c_u=C_U, tau=TAU, tau_star=13948.0, sigma=2228.0)
"""The numbers that the paper prints. They are rounded, so δ at ε = 0.349 is 1.0032e-5, a little above the target."""
