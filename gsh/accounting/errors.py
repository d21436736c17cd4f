"""Errors the accounting core can raise.

AccountingError
├── InvalidParameter     a value outside the theorem's hypotheses
└── InfeasibleTarget     no value of the free parameter meets the target
"""

__all__ = ["AccountingError", "InfeasibleTarget", "InvalidParameter"]


class AccountingError(Exception):
    """Knows nothing of HTTP. ``pointer`` names the parameter (``aggregates/covariance``), ``detail`` the bound."""

    def __init__(self, pointer: str, detail: str) -> None:
        super().__init__(pointer, detail)
        self.pointer = pointer
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.pointer}: {self.detail}"


class InvalidParameter(AccountingError):
    """A value outside the theorem's hypotheses; ``detail`` states the bound, never the value."""


class InfeasibleTarget(AccountingError):
    """No value of the free parameter meets the target; ``pointer`` and ``detail`` say what would make it possible."""
