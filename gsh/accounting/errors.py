"""Errors the accounting core can raise.

AccountingError
├── InvalidParameter     a value outside the theorem's hypotheses
└── InfeasibleTarget     no value of the free parameter meets the target
"""

from gsh.errors import Error

__all__ = ["AccountingError", "InfeasibleTarget", "InvalidParameter"]


class AccountingError(Error):
    """Knows nothing of HTTP. ``pointer`` names the parameter (``aggregates/covariance``), ``detail`` the bound."""


class InvalidParameter(AccountingError):
    """A value outside the theorem's hypotheses; ``detail`` states the bound, never the value."""


class InfeasibleTarget(AccountingError):
    """No value of the free parameter meets the target; ``pointer`` and ``detail`` say what would make it possible."""
