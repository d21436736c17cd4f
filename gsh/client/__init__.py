"""A client of the service: the functions of the library, budgets and releases, blocking or with asyncio.

    service = gsh.Client("http://127.0.0.1:8000")
    found = service.calibrate(c_u=16, epsilon=1, delta=1e-6)
    released = service.release(df, found, users="users", keys=["url"], budget="web", once="2026-W46")

operations   an operation is a generator of calls, which knows no network (sans I/O)
clients      the two drivers, over httpx
service, budgets, releases, releasing    what a client can do
"""

from gsh.certificate import Certificate
from gsh.client.answers import Release, ReleasedGroups
from gsh.client.clients import AsyncClient, Client
from gsh.client.errors import *  # noqa: F403
from gsh.client.errors import __all__ as _errors
from gsh.client.records import *  # noqa: F403
from gsh.client.records import __all__ as _records
from gsh.client.releases import RecordedRelease
from gsh.client.requests import Retries
from gsh.documents import Document

__all__ = [  # noqa: PLE0604
    "AsyncClient",
    "Certificate",
    "Client",
    "Document",
    "RecordedRelease",
    "Release",
    "ReleasedGroups",
    "Retries",
    *_errors,
    *_records,
]
