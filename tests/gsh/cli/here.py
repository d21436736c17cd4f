"""The service in this process, for the command ``gsh``: no port and no other process."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx

import gsh
from tests.app.client import Client

__all__ = ["service_here"]


@contextmanager
def service_here(folder: Path) -> Iterator[gsh.Client]:
    """A service with a new ledger: commands reach it with any --service, and so does the client."""
    served = Client(ledger=str(folder / "ledger.sqlite3"))
    made = gsh.Client

    def exchange(request: httpx.Request) -> httpx.Response:
        answer = served.request(
            request.method, request.url.raw_path.decode(), content=request.read(), headers=request.headers
        )
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)

    def connected(url: str, **options: Any) -> gsh.Client:
        return made(url, **options | {"transport": httpx.MockTransport(exchange)})

    with patch.object(gsh, "Client", connected), connected("http://localhost", retries=0) as client:
        yield client
