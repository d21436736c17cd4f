"""The weekly release that tests and pictures of the budgets page charge. The page's first plan is the same."""

from gsh.accounting.case_study import C_U, TAU

__all__ = ["WEEKLY"]

WEEKLY = {"c_u": C_U, "tau": TAU, "tau_star": 13955, "sigma": 2229}
"""The smallest whole σ, and the smallest whole τ* for this σ, that meet the target of the case study."""
