"""The two clients: drivers that run operations over httpx, one blocking and one on asyncio's event loop."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Generic, Self, TypeVar, Unpack

import httpx

from gsh.client.connections import (
    AsyncHttpOptions,
    HttpOptions,
    Spool,
    Unusable,
    failure_of,
    opened,
    request_of,
    retries_of,
)
from gsh.client.operations import Awaiting, Blocking, Call, Operation, Outcome, Page, Pause
from gsh.client.requests import Retries
from gsh.client.service import Service

__all__ = ["AsyncClient", "Client"]

T = TypeVar("T")


class Client(Service[Blocking]):
    """A client of the service. It may be used by several threads at once.

    The URL and the access key are arguments, or in the environment: ``GSH_URL`` and ``GSH_KEY``. Other arguments go to
    ``httpx.Client``: ``timeout``, ``proxy``, ``verify``, ``cert``, ``transport`` and so on.

        service = gsh.Client("http://127.0.0.1:8000")
        found = service.calibrate(c_u=16, epsilon=1, delta=1e-6)
        released = service.release(df, found, users="users", keys=["url"], budget="web", once="2026-W46")
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        key: str | None = None,
        retries: Retries | int = Retries(),  # noqa: B008 - frozen
        **options: Unpack[HttpOptions],
    ) -> None:
        self.retries = retries_of(retries)
        self._http = opened(httpx.Client, url, key, options)

    @property
    def _driver(self) -> "Client":
        return self

    def run(self, steps: Operation[T], /) -> T:
        """The result of an operation."""
        outcome: Outcome | None = None
        while True:
            step = _next(steps, outcome)
            outcome = None
            match step:
                case _Over():
                    return step.result
                case Pause():
                    time.sleep(step.seconds)
                case Call():
                    outcome = self._exchange(step)

    def pages(self, page: Callable[[str | None], Operation[Page[T]]], /) -> Iterator[T]:
        """The items of a list, page by page."""
        found = self.run(page(None))
        yield from found.items
        while found.next is not None:
            found = self.run(page(found.next))
            yield from found.items

    def _exchange(self, call: Call) -> Outcome:
        spool = Spool(call.most_bytes)
        body = None if call.body is None else call.body.content()
        try:
            with self._http.stream(**request_of(call), content=body) as response:
                spool.begin(response)
                for chunk in response.iter_bytes():
                    spool.write(chunk)
            return spool.answer(response)
        except (httpx.RequestError, Unusable) as error:
            return failure_of(error)
        finally:
            _close(spool, body)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"gsh.Client({str(self._http.base_url)!r})"


class AsyncClient(Service[Awaiting]):
    """The same for asyncio: each call is awaited, and lists are read with ``async for``.

    Tables are read and written in threads, so that the event loop does not wait for them.

        async with gsh.AsyncClient("http://127.0.0.1:8000") as service:
            found = await service.calibrate(c_u=16, epsilon=1, delta=1e-6)
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        key: str | None = None,
        retries: Retries | int = Retries(),  # noqa: B008 - frozen
        **options: Unpack[AsyncHttpOptions],
    ) -> None:
        self.retries = retries_of(retries)
        self._http = opened(httpx.AsyncClient, url, key, options)

    @property
    def _driver(self) -> "AsyncClient":
        return self

    async def run(self, steps: Operation[T], /) -> T:
        """The result of an operation."""
        outcome: Outcome | None = None
        while True:
            step = await asyncio.to_thread(_next, steps, outcome)
            outcome = None
            match step:
                case _Over():
                    return step.result
                case Pause():
                    await asyncio.sleep(step.seconds)
                case Call():
                    outcome = await self._exchange(step)

    async def pages(self, page: Callable[[str | None], Operation[Page[T]]], /) -> AsyncIterator[T]:
        """The items of a list, page by page."""
        found = await self.run(page(None))
        while True:
            for item in found.items:
                yield item
            if found.next is None:
                return
            found = await self.run(page(found.next))

    async def _exchange(self, call: Call) -> Outcome:
        spool = Spool(call.most_bytes)
        body = None if call.body is None else call.body.content()
        try:
            content = body if body is None or isinstance(body, bytes) else _in_thread(body)
            async with self._http.stream(**request_of(call), content=content) as response:
                spool.begin(response)
                async for chunk in response.aiter_bytes():
                    spool.write(chunk)
            return spool.answer(response)
        except (httpx.RequestError, Unusable) as error:
            return failure_of(error)
        finally:
            _close(spool, body)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"gsh.AsyncClient({str(self._http.base_url)!r})"


@dataclass(frozen=True, slots=True)
class _Over(Generic[T]):
    """The end of an operation."""

    result: T


def _next(steps: Operation[T], outcome: Outcome | None) -> _Over[T] | Call | Pause:
    """The next step of an operation, or its end."""
    try:
        return steps.send(outcome)
    except StopIteration as end:
        return _Over(end.value)


async def _in_thread(chunks: Iterator[bytes]) -> AsyncIterator[bytes]:
    while (chunk := await asyncio.to_thread(next, chunks, None)) is not None:
        yield chunk


def _close(spool: Spool, body: bytes | Iterator[bytes] | None) -> None:
    spool.close()
    if isinstance(body, Generator):
        with suppress(ValueError):  # a thread still reads the table for a call that was cancelled
            body.close()
