"""Errors of accounting. gsh/errors.py shows all errors of the library."""

from gsh.errors import Error

__all__ = ["AccountingError", "InfeasibleTarget", "InvalidParameter", "TooLittleLeft"]


class AccountingError(Error):
    """An error of accounting or calibration. It contains no data."""


class InvalidParameter(AccountingError):
    """A value that the theorem does not allow. ``detail`` states the bound, never the value."""


class InfeasibleTarget(AccountingError):
    """No value of the omitted parameters meets the target. ``detail`` says what would make it possible."""


class TooLittleLeft(AccountingError):
    """What remains of a budget allows only releases with far more noise than usual. ``detail`` says what is short."""
