"""A real PostgreSQL server, from the system's own programs, in a temporary folder."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

__all__ = ["Postgres", "postgres_server"]


def program(name: str) -> str:
    """Debian keeps the server's programs out of the path."""
    debian = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    found = str(debian[-1]) if debian else shutil.which(name)
    assert found is not None, "PostgreSQL is needed: run `make postgres`, or apt-get install postgresql"
    return found


def unprivileged() -> str | None:
    """The user of the server, which refuses to run as root."""
    if os.getuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


class Postgres:
    """A server that tests may stop and start, and databases on it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._user = unprivileged()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]
        if self._user is not None:
            shutil.chown(folder, self._user)
        self._run("initdb", "--auth=trust", "--username=ledger", "--encoding=UTF8", "--locale=C", "--no-sync")

    def start(self) -> None:
        # No socket in a folder: its path may be too long for one.
        # Nobody visits the hundreds of databases to clean them up.
        options = f"-p {self._port} -k '' -c listen_addresses=127.0.0.1 -c max_connections=100 -c autovacuum=off"
        self._run("pg_ctl", "--wait", f"--log={self._folder / 'log'}", f"--options={options}", "start")

    def stop(self, mode: str = "fast") -> None:
        self._run("pg_ctl", "--wait", f"--mode={mode}", "stop")

    def make_database(self) -> str:
        """The URL of a database that nobody has used."""
        name = f"ledger_{uuid.uuid4().hex}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return self.url(name)

    def url(self, database: str) -> str:
        return f"postgresql://ledger@127.0.0.1:{self._port}/{database}"

    def _run(self, name: str, *arguments: str) -> None:
        command = [program(name), f"--pgdata={self._folder / 'data'}", *arguments]
        subprocess.run(command, check=True, user=self._user, cwd=self._folder, stdout=subprocess.DEVNULL)


@contextmanager
def postgres_server() -> Iterator[Postgres]:
    with tempfile.TemporaryDirectory(prefix="gsh-postgres-") as folder:
        Path(folder).chmod(0o755)
        server = Postgres(Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.stop("immediate")
