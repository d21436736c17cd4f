"""Shared by all tests: markers by folder, their order, a folder for ledgers, and a PostgreSQL server."""

import gc
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.postgres import Postgres, postgres_server
from tests.run_folder import enter_run_folder
from tests.surroundings import allow_time, forget_the_shell

forget_the_shell()
allow_time()
if "PYTEST_XDIST_WORKER" not in os.environ:  # the processes of a parallel run inherit the folder
    enter_run_folder()
# Services without a configured ledger get a temporary one.
_FOLDER = tempfile.TemporaryDirectory(prefix="gsh-ledger-")
os.environ["GSH_LEDGER"] = str(Path(_FOLDER.name) / "ledger.sqlite3")
# No test uses TLS, and each client of httpx would load the certificates of all authorities, which takes 20 ms.
_AUTHORITIES = tempfile.TemporaryDirectory(prefix="gsh-no-authorities-")
os.environ["SSL_CERT_DIR"] = _AUTHORITIES.name
os.environ.pop("SSL_CERT_FILE", None)
# What is made until all tests are collected lives as long as the process. The collector need not visit it.
gc.disable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark each test by its folder and its fixtures."""
    for item in items:
        if item.nodeid.startswith("tests/browser/"):
            item.add_marker("browser")
        if item.nodeid.startswith("tests/clients/"):
            item.add_marker("clients")
        if any(name.endswith("postgres") for name in getattr(item, "fixturenames", ())):
            item.add_marker("postgres")
    if hasattr(config, "workerinput"):
        from tests.schedule import longest_first  # noqa: PLC0415 - the environments with Spark have no xdist

        longest_first(items)


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from tests.schedule import ByFile  # noqa: PLC0415 - likewise

    return ByFile(config, log)


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
