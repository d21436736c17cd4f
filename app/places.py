"""A bound on how many of something there are at once."""

from collections.abc import Iterator
from contextlib import contextmanager

from app.errors import Busy

__all__ = ["Places"]


class Places:
    """A semaphore that does not wait: it raises Busy if all places are taken."""

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
