"""Request bodies: none is longer than its route takes, and all together fit the memory or the disk set aside for them.

Until a route is found nothing may be read at all.
"""

from dataclasses import dataclass

from starlette.types import Message, Receive

from app.api.problems import ContentTooLarge
from app.service.errors import Busy
from app.settings import Settings

__all__ = ["Allowances", "Body", "BodyLimit"]

# Small bodies are free: open connections bound their number, and nobody can keep them out with large ones.
_FREE_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class BodyLimit:
    """How large the body of a route may be, by the name of a setting."""

    setting: str = "max_body_bytes"
    at_once: int = 32
    """How many bodies of that size the service holds at once."""
    advice: str = ""
    """Where a larger one may go."""


class _Allowance:
    """Bytes that the bodies under way may take up together."""

    def __init__(self, most: int) -> None:
        self.left = most

    def take(self, size: int) -> bool:
        """Whether there was room for so many bytes."""
        fits = size <= self.left
        if fits:
            self.left -= size
        return fits


class Allowances:
    """One allowance for each kind of body: public routes cannot use up what releases need."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._allowances: dict[BodyLimit, tuple[int, _Allowance]] = {}

    def of(self, limit: BodyLimit) -> tuple[int, _Allowance]:
        """The most bytes of one body, and the allowance that it takes from."""
        if limit not in self._allowances:
            most: int = getattr(self._settings, limit.setting)
            self._allowances[limit] = most, _Allowance(limit.at_once * most)
        return self._allowances[limit]


class Body:
    """The body of one request as it arrives; called as ASGI's ``receive``."""

    __slots__ = ("_advice", "_allowance", "_declared", "_most", "_receive", "_received", "_taken", "complete")

    def __init__(self, receive: Receive, declared: int | None) -> None:
        """``declared`` is its length as the headers say it: 0 without a body, None if they do not say."""
        self._receive = receive
        self._declared = declared
        self._most = 0
        self._advice = ""
        self._allowance: _Allowance | None = None
        self._received = self._taken = 0
        self.complete = self._declared == 0
        """Whether all of it has been received."""

    def bind(self, limit: BodyLimit, allowances: Allowances) -> None:
        """Let it be read, as far as its route takes; one that says it is longer is refused unread."""
        self._most, self._allowance = allowances.of(limit)
        self._advice = limit.advice
        if self._declared is not None and self._declared > self._most:
            raise ContentTooLarge(self._most, self._advice)

    async def __call__(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._received += len(message.get("body", b""))
            if self._received > self._most:
                raise ContentTooLarge(self._most, self._advice)
            self.complete = not message.get("more_body", False)
            beyond = self._received - _FREE_BYTES - self._taken
            if beyond > 0 and self._allowance is not None:
                if not self._allowance.take(beyond):
                    self.release()  # now, and not when it is answered: others could use it
                    raise Busy
                self._taken += beyond
        return message

    def release(self) -> None:
        """Give back what it took."""
        if self._allowance is not None:
            self._allowance.left += self._taken
            self._taken = 0
