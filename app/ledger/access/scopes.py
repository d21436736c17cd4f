"""What an access key may do. The command line lists the scopes, and loads nothing else of the ledger for it."""

from enum import StrEnum

__all__ = ["READERS", "SCOPES", "Scope"]


class Scope(StrEnum):
    """A permission of access keys."""

    ACCOUNT = "account"
    RELEASE = "release"
    AUDIT = "audit"
    ADMIN = "admin"


SCOPES = tuple(each.value for each in Scope)
READERS = (Scope.RELEASE.value, Scope.AUDIT.value, Scope.ADMIN.value)
"""Who may read budgets and releases. ``audit`` may change nothing."""
