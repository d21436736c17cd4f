"""Request bodies: each has a limit by its route, and all together have a limit of memory or disk.

A body is not read until its route is known. The limits hold for a compressed body, and for its content.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from starlette.types import Message, Receive

from app.errors import Busy
from app.http.content_codings import Decoder, decoder_of
from app.http.problems.errors import ContentTooLarge
from app.settings import Settings

__all__ = ["Body", "BodyLimit", "BodyQuotas", "CompressedBody"]

# Small bodies are free: the bound on connections bounds their number, and large bodies cannot keep them out.
_FREE_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class BodyLimit:
    """How large the body of a route may be, by the name of a setting."""

    setting: str = "max_body_bytes"
    at_once: int = 32
    """How many bodies of that size the service holds at once."""
    advice: str = ""
    """What to do with a larger one."""


class _Quota:
    """Bytes that the bodies of one kind may take together."""

    def __init__(self, most: int) -> None:
        self.remaining = most

    def take(self, size: int) -> bool:
        """Whether there was room for so many bytes."""
        fits = size <= self.remaining
        if fits:
            self.remaining -= size
        return fits


class BodyQuotas:
    """One quota for each kind of body, so public routes cannot use up the quota of releases."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._quotas: dict[BodyLimit, tuple[int, _Quota]] = {}

    def of(self, limit: BodyLimit) -> tuple[int, _Quota]:
        """The most bytes of one body, and the quota that it takes from."""
        if limit not in self._quotas:
            most: int = getattr(self._settings, limit.setting)
            self._quotas[limit] = most, _Quota(limit.at_once * most)
        return self._quotas[limit]


class Body:
    """The body of one request as it arrives; called as ASGI's ``receive``."""

    __slots__ = ("_advice", "_declared", "_most", "_quota", "_receive", "_received", "_taken", "complete")

    def __init__(self, receive: Receive, declared: int | None) -> None:
        """``declared`` is its length by the headers: 0 without a body, None if the headers do not say."""
        self._receive = receive
        self._declared = declared
        self._most = 0
        self._advice = ""
        self._quota: _Quota | None = None
        self._received = self._taken = 0
        self.complete = self._declared == 0
        """Whether all of it has been received."""

    def bind(self, limit: BodyLimit, quotas: BodyQuotas) -> None:
        """Allow to read it, up to the limit of its route. A body that is declared to be longer is refused unread."""
        self._most, self._quota = quotas.of(limit)
        self._advice = limit.advice
        if self._declared is not None and self._declared > self._most:
            raise ContentTooLarge(self._most, self._advice)

    async def __call__(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._count(len(message.get("body", b"")))
            self.complete = not message.get("more_body", False)
        return message

    def _count(self, size: int) -> None:
        """Count bytes of the content, and take them from the quota."""
        self._received += size
        if self._received > self._most:
            raise ContentTooLarge(self._most, self._advice)
        beyond = self._received - _FREE_BYTES - self._taken
        if beyond > 0 and self._quota is not None:
            if not self._quota.take(beyond):
                self.release()  # now and not after the answer: other bodies could use it
                raise Busy
            self._taken += beyond

    def release(self) -> None:
        """Return its bytes to the quota."""
        if self._quota is not None:
            self._quota.remaining += self._taken
            self._taken = 0


class CompressedBody(Body):
    """A body with a content coding. It is read as its content."""

    __slots__ = ("_codings", "_compressed", "_decoder")

    def __init__(self, receive: Receive, declared: int | None, codings: Sequence[bytes]) -> None:
        """``codings`` are the values of Content-Encoding."""
        super().__init__(receive, declared)
        self._codings = codings
        self._decoder: Decoder | None = None
        self._compressed = 0

    def bind(self, limit: BodyLimit, quotas: BodyQuotas) -> None:
        super().bind(limit, quotas)
        if not self.complete:
            self._decoder = decoder_of(self._codings)

    async def __call__(self) -> Message:
        """The next slice of the content. Other requests get a turn before it."""
        decoder = self._decoder
        if decoder is None:
            return await super().__call__()
        if self._received:
            await asyncio.sleep(0)
        while True:
            if decoder.needs_input:
                if self.complete:
                    decoder.end()
                    self._decoder = None
                    return {"type": "http.request", "body": b"", "more_body": False}
                message = await self._receive()
                if message["type"] != "http.request":
                    return message
                decoder.feed(self._arrived(message))
            content = decoder.slice()
            if content:
                self._count(len(content))
                return {"type": "http.request", "body": content, "more_body": True}
            await asyncio.sleep(0)

    def _arrived(self, message: Message) -> bytes:
        """Compressed bytes. They are bounded too: they need not have any content."""
        received: bytes = message.get("body", b"")
        self._compressed += len(received)
        if self._compressed > self._most:
            raise ContentTooLarge(self._most, self._advice)
        self.complete = not message.get("more_body", False)
        return received
