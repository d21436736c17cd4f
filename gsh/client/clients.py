"""The two clients: drivers that run operations over httpx, one blocking and one on asyncio's event loop."""

import asyncio
import os
import re
import ssl
import time
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, Self, TypedDict, TypeVar, Unpack

import httpx

from gsh.accounting.errors import InvalidParameter
from gsh.client.calls import Answer, Call, Failure, Operation, Outcome, Pause, Spool
from gsh.client.operations import Awaiting, Blocking, Page
from gsh.client.retries import Retries
from gsh.client.service import Service

__all__ = ["AsyncClient", "AsyncHttpOptions", "Client", "HttpOptions"]

T = TypeVar("T")

_TIMEOUT = httpx.Timeout(600.0, connect=10.0)
"""A large release takes minutes before the first byte of its answer."""
_KEY = re.compile(r"[\x21-\x7e]+")


class _Options(TypedDict, total=False):
    """Arguments of httpx's clients, which are passed on."""

    cert: str | tuple[str, str] | tuple[str, str, str] | None
    cookies: Mapping[str, str] | None
    follow_redirects: bool
    headers: Mapping[str, str] | None
    http1: bool
    http2: bool
    limits: httpx.Limits
    proxy: str | httpx.URL | httpx.Proxy | None
    timeout: float | httpx.Timeout | None
    trust_env: bool
    verify: ssl.SSLContext | str | bool


class HttpOptions(_Options, total=False):
    """Arguments of ``httpx.Client``."""

    event_hooks: Mapping[str, list[Callable[..., Any]]] | None
    mounts: Mapping[str, httpx.BaseTransport | None] | None
    transport: httpx.BaseTransport | None


class AsyncHttpOptions(_Options, total=False):
    """Arguments of ``httpx.AsyncClient``."""

    event_hooks: Mapping[str, list[Callable[..., Any]]] | None
    mounts: Mapping[str, httpx.AsyncBaseTransport | None] | None
    transport: httpx.AsyncBaseTransport | None


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
        self.retries = _retries(retries)
        self._http = httpx.Client(**_settings(url, key, options))

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
        spool = Spool()
        body = None if call.body is None else call.body.content()
        try:
            with self._http.stream(**_request(call), content=body) as response:
                for chunk in response.iter_bytes():
                    spool.write(chunk)
            return _answer(response, spool)
        except httpx.RequestError as error:
            return _failure(error)
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
        return f"gsh.Client({_shown(self._http.base_url)!r})"


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
        self.retries = _retries(retries)
        self._http = httpx.AsyncClient(**_settings(url, key, options))

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
        spool = Spool()
        body = None if call.body is None else call.body.content()
        try:
            content = body if body is None or isinstance(body, bytes) else _in_thread(body)
            async with self._http.stream(**_request(call), content=content) as response:
                async for chunk in response.aiter_bytes():
                    spool.write(chunk)
            return _answer(response, spool)
        except httpx.RequestError as error:
            return _failure(error)
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
        return f"gsh.AsyncClient({_shown(self._http.base_url)!r})"


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


def _request(call: Call) -> dict[str, Any]:
    # Answers are not compressed, and a proxy should not begin to.
    headers = {"Accept-Encoding": "identity", **call.headers}
    if call.body is not None:
        headers["Content-Type"] = call.body.media_type
    return {"method": call.method, "url": call.path, "params": call.query or None, "headers": headers}


def _answer(response: httpx.Response, spool: Spool) -> Answer:
    headers = {name.lower(): value for name, value in response.headers.items()}
    return Answer(response.status_code, headers, spool.content())


async def _in_thread(chunks: Iterator[bytes]) -> AsyncIterator[bytes]:
    while (chunk := await asyncio.to_thread(next, chunks, None)) is not None:
        yield chunk


def _close(spool: Spool, body: bytes | Iterator[bytes] | None) -> None:
    spool.close()
    if isinstance(body, Generator):
        with suppress(ValueError):  # a thread still reads the table for a call that was cancelled
            body.close()


_REASONS: Mapping[type[httpx.RequestError], str] = {
    httpx.ConnectTimeout: "the connection took longer than the timeout allows",
    httpx.TimeoutException: "it took longer than the timeout allows",
    httpx.ProxyError: "the proxy refused the connection",
    httpx.NetworkError: "the connection broke",
    httpx.RemoteProtocolError: "the connection broke",
}


def _failure(error: httpx.RequestError) -> Failure:
    """Why there is no answer. Only the reasons of a connection are quoted: nothing was sent over it yet."""
    if isinstance(error, httpx.ConnectError):
        return Failure(f"the connection could not be made: {error}", is_final=_is_untrusted(error))
    reason = next((text for kind, text in _REASONS.items() if isinstance(error, kind)), None)
    return Failure(reason or f"httpx raised {type(error).__name__}", is_final=reason is None)


def _is_untrusted(error: BaseException | None) -> bool:
    """Whether the certificate of the server was refused."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False


def _retries(given: Retries | int) -> Retries:
    return given if isinstance(given, Retries) else Retries(most=given)


def _settings(url: str | None, key: str | None, options: Any) -> dict[str, Any]:
    """The arguments of httpx's clients."""
    url = url or os.environ.get("GSH_URL") or ""
    key = key or os.environ.get("GSH_KEY") or None
    if not re.match(r"https?://[^/]", url):
        raise InvalidParameter("url", "must begin with http:// or https://; give it, or set GSH_URL")
    try:
        base = httpx.URL(url)
    except httpx.InvalidURL:
        raise InvalidParameter("url", "must be the URL of the service") from None
    headers = dict(options.pop("headers", None) or {})
    if key is not None:
        if not _KEY.fullmatch(key):
            raise InvalidParameter("key", "must be an access key: letters, digits and signs, without spaces")
        headers["Authorization"] = f"Bearer {key}"
    return {"timeout": _TIMEOUT, **options, "base_url": base, "headers": headers}


def _shown(url: httpx.URL) -> str:
    """A URL without its user and password."""
    return str(url.copy_with(username=None, password=None)) if url.userinfo else str(url)
