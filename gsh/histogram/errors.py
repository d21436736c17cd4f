"""Errors of a release, raised before any noise is drawn or, at the latest, before anything of it is published.

ReleaseError
├── InvalidGroups     what was posted is no table of groups
└── TooManyGroups     it has more groups than the service is set up to take
"""

from gsh.errors import Error

__all__ = ["InvalidGroups", "ReleaseError", "TooManyGroups"]


class ReleaseError(Error):
    """Knows nothing of HTTP. ``pointer`` names the part of the request, ``detail`` the bound, neither any data."""


class InvalidGroups(ReleaseError):
    """Keys, counts or values that are not what the mechanism is defined for, or cannot be read."""


class TooManyGroups(ReleaseError):
    """More groups, or more bytes of them, than the limits allow."""
