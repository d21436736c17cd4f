"""Files and pages over HTTP: compressed once, then served from memory, with an ETag.

Starlette's StaticFiles uses a thread for each file. That is slow for a page of twenty small modules.
"""

import gzip
import hashlib
import importlib.util
import mimetypes
import threading
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Mount
from starlette.types import Receive, Scope, Send

from app.http.auth import Requirement

__all__ = ["Assets", "Content", "PublicMount", "package_folder"]

_LARGE = 100_000
_reading = threading.Lock()
_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


class Content(NamedTuple):
    """Bytes to send, as they are and compressed."""

    plain: bytes
    compressed: bytes
    etag: str
    media_type: str

    @classmethod
    def of(cls, plain: bytes, media_type: str) -> "Content":
        etag = f'"{hashlib.blake2b(plain, digest_size=12).hexdigest()}"'
        return cls(plain, gzip.compress(plain, 6), etag, media_type)

    def response(self, scope: Scope, headers: Mapping[str, str]) -> Response:
        """The content, compressed if the client accepts that, or 304 if the client has it already."""
        sent = {"Vary": "Accept-Encoding", **headers, "ETag": self.etag}
        asked = Headers(scope=scope)
        if asked.get("if-none-match") == self.etag:
            return Response(status_code=304, headers=sent)
        if "gzip" in asked.get("accept-encoding", ""):
            return Response(self.compressed, 200, sent | {"Content-Encoding": "gzip"}, self.media_type)
        return Response(self.plain, 200, sent, self.media_type)


def package_folder(package: str, folder: str = "") -> Path:
    """A folder of an installed package, found without importing the package."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(package)
    return Path(spec.origin).parent / folder


class Assets:
    """An ASGI application for the files below one folder with one of these endings. ``index`` is the folder's own."""

    def __init__(self, folder: Path, endings: tuple[str, ...], headers: Mapping[str, str], index: str = "") -> None:
        found = sorted(path for path in folder.rglob("*") if path.name.endswith(endings))
        self._files = {path.relative_to(folder).as_posix(): path for path in found}
        self._headers = headers
        self._index = index

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = self._files.get(scope["path"].removeprefix(scope["root_path"]).removeprefix("/") or self._index)
        if path is None:
            raise HTTPException(404)
        if scope["method"] not in {"GET", "HEAD"}:
            raise HTTPException(405, headers={"Allow": "GET, HEAD"})
        status = path.stat()
        if status.st_size < _LARGE:
            content = _content(path, status.st_mtime_ns)
        else:
            content = await run_in_threadpool(_content, path, status.st_mtime_ns)
        await content.response(scope, self._headers)(scope, receive, send)


class PublicMount(Mount):
    """Files that everybody may read."""

    needs = Requirement(frozenset())


def _content(path: Path, modified: int) -> Content:
    """One thread reads and the others wait: compressing a large file takes a second and much memory."""
    with _reading:
        return _read(path, modified)


@lru_cache(maxsize=512)
def _read(path: Path, _modified: int) -> Content:
    media_type = _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return Content.of(path.read_bytes(), media_type)
