"""Shared by all tests: markers by folder, turns, a folder for ledgers, and a PostgreSQL server."""

import os
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from tests.postgres import Postgres, postgres_server
from tests.turns import turn

# No test may depend on the shell that it is started from: not on settings of a service, and not on a proxy.
for _name in list(os.environ):
    if _name.startswith(("GSH_", "PROMETHEUS_")) or _name.lower().endswith("_proxy"):
        del os.environ[_name]
# Services without a configured ledger get a temporary one.
_FOLDER = tempfile.TemporaryDirectory(prefix="gsh-ledger-")
os.environ["GSH_LEDGER"] = str(Path(_FOLDER.name) / "ledger.sqlite3")
# No test uses TLS, and each client of httpx would load the certificates of all authorities, which takes 20 ms.
_AUTHORITIES = tempfile.TemporaryDirectory(prefix="gsh-no-authorities-")
os.environ["SSL_CERT_DIR"] = _AUTHORITIES.name
os.environ.pop("SSL_CERT_FILE", None)


BROWSER = Path(__file__).parent / "browser"
CLIENTS = Path(__file__).parent / "clients"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test by its folder and its fixtures."""
    for item in items:
        if BROWSER in item.path.parents:
            item.add_marker("browser")
        if CLIENTS in item.path.parents:
            item.add_marker("clients")
        if any(name.endswith("postgres") for name in getattr(item, "fixturenames", ())):
            item.add_marker("postgres")
    # The longest tests first: a parallel run that ends with them leaves cores idle.
    items.sort(key=lambda item: not any(map(item.get_closest_marker, ("spark", "browser", "crash"))))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    if not hasattr(item.config, "workerinput"):  # the only process: each test is alone
        return (yield)
    with turn(alone=item.get_closest_marker("alone") is not None):
        return (yield)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    with postgres_server() as server:
        yield server


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def ledger_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The place of a new ledger, once for each database."""
    if request.param == "sqlite":
        return str(tmp_path / "ledger.sqlite3")
    server: Postgres = request.getfixturevalue("postgres")
    return server.make_database()
