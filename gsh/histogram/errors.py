"""Errors of a release, raised before any group is published. gsh/errors.py shows all errors of the library."""

from gsh.errors import Error

__all__ = ["InvalidGroups", "ReleaseError", "TooManyGroups"]


class ReleaseError(Error):
    """An error of a release. It contains no data."""


class InvalidGroups(ReleaseError):
    """Group keys, counts or values that cannot be released, or cannot be read."""


class TooManyGroups(ReleaseError):
    """More groups, or more bytes of them, than the limits allow."""
