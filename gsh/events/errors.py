"""Errors about events. gsh/errors.py shows all errors of the library."""

from gsh.errors import Error

__all__ = ["EventsError", "sum_too_large"]


class EventsError(Error):
    """Events that cannot be read, or whose sums leave 2⁵³. It contains no data."""


def sum_too_large(name: str) -> EventsError:
    """A group whose sum of this column leaves 2⁵³ units."""
    return EventsError(f"sums/{name}", "must stay within 2^53 units in every group: take a larger unit")
