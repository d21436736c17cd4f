"""A semaphore that raises Busy instead of waiting."""

from collections.abc import Iterator
from contextlib import contextmanager

from app.errors import Busy

__all__ = ["Places"]


class Places:
    """At most ``most`` places are taken at once."""

    def __init__(self, most: int) -> None:
        self._free = most

    def check(self) -> None:
        """Busy if all places are taken."""
        if self._free == 0:
            raise Busy

    @contextmanager
    def taken(self) -> Iterator[None]:
        """One place, until the context ends."""
        self.check()
        self._free -= 1
        try:
            yield
        finally:
            self._free += 1
