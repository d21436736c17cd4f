"""httpx: the settings of its clients, its requests, its answers while they arrive, and its failures."""

import hashlib
import mmap
import os
import re
import ssl
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypedDict, TypeVar

import httpx
import pyarrow as pa

from gsh.client.operations import Answer, Call, Failure
from gsh.client.requests import Retries
from gsh.errors import InvalidParameter

__all__ = [
    "AsyncHttpOptions",
    "HttpOptions",
    "Spool",
    "Unusable",
    "failure_of",
    "opened",
    "request_of",
    "retries_of",
]

H = TypeVar("H")

_TIMEOUT = httpx.Timeout(600.0, connect=10.0)
"""A large release takes minutes before the first byte of its answer."""
_KEY = re.compile(r"[\x21-\x7e]+")
_IN_MEMORY = 1 << 20
"""Bytes of an answer that stay in memory. A longer one goes to a file without a name, which is mapped."""
_MOST_PROBLEM_BYTES = 1 << 20
"""The longest answer without success."""


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


def request_of(call: Call) -> dict[str, Any]:
    # Answers are not compressed, and a proxy should not begin to.
    headers = {"Accept-Encoding": "identity", **call.headers}
    if call.body is not None:
        headers["Content-Type"] = call.body.media_type
    return {"method": call.method, "url": call.path, "params": call.query or None, "headers": headers}


class Unusable(Exception):
    """An answer is too long, or compressed."""


class Spool:
    """The content of an answer while it arrives: only a little of it is in memory."""

    def __init__(self, most_bytes: int) -> None:
        self._file: Any = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - its mapping outlives it
        self._size, self._most = 0, most_bytes
        self._digest = hashlib.sha256()

    def begin(self, response: httpx.Response) -> None:
        """Before the first byte: nothing is decompressed here, and an answer without success is short."""
        if response.headers.get("content-encoding", "").lower() not in {"", "identity"}:
            raise Unusable("the answer is compressed, which was not asked for")
        if not response.is_success:
            self._most = min(self._most, _MOST_PROBLEM_BYTES)

    def write(self, chunk: bytes) -> None:
        self._size += len(chunk)
        if self._size > self._most:
            raise Unusable(f"the answer is longer than {self._most} bytes")
        self._digest.update(chunk)
        self._file.write(chunk)

    def close(self) -> None:
        self._file.close()

    def answer(self, response: httpx.Response) -> Answer:
        """All bytes. A long content is a map of the file: it takes memory only where it is read."""
        self._file.seek(0)
        status, sha256 = response.status_code, self._digest.hexdigest()
        headers = {name.lower(): value for name, value in response.headers.items()}
        if self._size <= _IN_MEMORY:
            return Answer(status, headers, pa.py_buffer(self._file.read()), sha256)
        mapped = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        return Answer(status, headers, pa.py_buffer(mapped), sha256, lambda: _unload(mapped))


def _unload(mapped: mmap.mmap) -> None:
    if hasattr(mmap, "MADV_DONTNEED"):  # not on every system
        mapped.madvise(mmap.MADV_DONTNEED)


_REASONS: Mapping[type[httpx.RequestError], str] = {
    httpx.ConnectTimeout: "the connection took longer than the timeout allows",
    httpx.TimeoutException: "it took longer than the timeout allows",
    httpx.ProxyError: "the proxy refused the connection",
    httpx.NetworkError: "the connection broke",
    httpx.RemoteProtocolError: "the connection broke",
}


def failure_of(error: httpx.RequestError | Unusable) -> Failure:
    """Why there is no answer. Only the reasons of a connection are quoted: nothing was sent over it yet."""
    if isinstance(error, Unusable):
        return Failure(str(error), is_final=True, is_answered=True)
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


def retries_of(given: Retries | int) -> Retries:
    return given if isinstance(given, Retries) else Retries(most=given)


def _settings(url: str | None, key: str | None, options: Any) -> dict[str, Any]:
    """The arguments of httpx's clients. A user and a password of the URL leave it, because httpx logs URLs."""
    base = _parsed(url or os.environ.get("GSH_URL") or "")
    key = key or os.environ.get("GSH_KEY") or None
    headers = dict(options.pop("headers", None) or {})
    if key is not None:
        if not _KEY.fullmatch(key):
            raise InvalidParameter("key", "must be an access key: letters, digits and signs, without spaces")
        if base.userinfo:
            raise InvalidParameter("url", "must have no user and password with an access key: both need one header")
        headers["Authorization"] = f"Bearer {key}"
    if base.userinfo:
        options = {"auth": httpx.BasicAuth(base.username, base.password), **options}
        base = base.copy_with(username=None, password=None)
    return {"timeout": _TIMEOUT, **options, "base_url": base, "headers": headers}


def _parsed(url: str) -> httpx.URL:
    if not re.match(r"https?://[^/]", url):
        raise InvalidParameter("url", "must begin with http:// or https://; give it, or set GSH_URL")
    with suppress(httpx.InvalidURL, ValueError):
        found = httpx.URL(url)
        if "@" not in str(found.copy_with(username=None, password=None)):
            return found
    # Outside of the handler, whose exception quotes a part of the URL, perhaps of its password.
    raise InvalidParameter("url", "must be the URL of the service; in a password, write / as %2F and @ as %40")


def opened(kind: Callable[..., H], url: str | None, key: str | None, options: Any) -> H:
    """A client of httpx. What httpx says about the URL of a proxy may quote a part of its password."""
    arguments = _settings(url, key, options)
    with suppress(httpx.InvalidURL):
        return kind(**arguments)
    raise InvalidParameter("proxy", "must be a URL, also in HTTP_PROXY and HTTPS_PROXY")
