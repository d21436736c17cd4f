"""Errors about events. gsh/errors.py shows all errors of the library."""

from gsh.errors import Error

__all__ = ["EventsError"]


class EventsError(Error):
    """Events that cannot be read, or whose sums leave 2⁵³. It contains no data."""
