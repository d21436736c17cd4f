"""The weekly release that tests and pictures of the budgets page charge. The page's first plan is the same."""

from gsh.accounting.case_study import WHOLE

__all__ = ["WEEKLY"]

WEEKLY = {name: int(getattr(WHOLE, name)) for name in ("c_u", "tau", "tau_star", "sigma")}
