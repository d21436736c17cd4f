"""Files of installed packages over HTTP: read and compressed once, then served from memory.

Starlette's StaticFiles hops to a thread for each file, and a page of twenty small modules feels it.
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

from starlette._utils import get_route_path
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

__all__ = ["Assets", "package_folder"]

_LARGE = 100_000
_making = threading.Lock()
_TYPES = {".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml"}


class _Content(NamedTuple):
    plain: bytes
    compressed: bytes
    etag: str
    media_type: str


def package_folder(package: str, folder: str) -> Path:
    """A folder of an installed package, found without importing it."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(package)
    return Path(spec.origin).parent / folder


class Assets:
    """An ASGI application for the files of one folder with these endings."""

    def __init__(self, folder: Path, endings: tuple[str, ...], headers: Mapping[str, str]) -> None:
        self._files = {path.name: path for path in sorted(folder.iterdir()) if path.name.endswith(endings)}
        self._headers = headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self.response(get_route_path(scope).removeprefix("/"), scope)
        await response(scope, receive, send)

    async def response(self, name: str, scope: Scope) -> Response:
        path = self._files.get(name)
        if path is None:
            raise HTTPException(404)
        if scope["method"] not in {"GET", "HEAD"}:
            raise HTTPException(405, headers={"Allow": "GET, HEAD"})
        status = path.stat()
        if status.st_size < _LARGE:
            content = _content(path, status.st_mtime_ns)
        else:
            content = await run_in_threadpool(_content, path, status.st_mtime_ns)
        headers = {**self._headers, "ETag": content.etag, "Vary": "Accept-Encoding"}
        asked = Headers(scope=scope)
        if asked.get("if-none-match") == content.etag:
            return Response(status_code=304, headers=headers)
        if "gzip" in asked.get("accept-encoding", ""):
            return Response(content.compressed, 200, headers | {"Content-Encoding": "gzip"}, content.media_type)
        return Response(content.plain, 200, headers, content.media_type)


def _content(path: Path, modified: int) -> _Content:
    """Made once, for all who ask meanwhile. Compressing a large file takes a second and much memory."""
    with _making:
        return _made(path, modified)


@lru_cache(maxsize=128)
def _made(path: Path, _modified: int) -> _Content:
    plain = path.read_bytes()
    etag = f'"{hashlib.blake2b(plain, digest_size=12).hexdigest()}"'
    media_type = _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return _Content(plain, gzip.compress(plain, 6), etag, media_type)
