"""python -m app.server.healthcheck: exit 0 if the service on this machine is ready; for the container.

The ledger is not asked: accounting works without it, and a restart of this container would not mend a database.
A container runs this every few seconds, so it loads little: not even the settings or a client of HTTP.
"""

import os
import socket
import sys

_SECONDS = 4
"""Less than the container waits for."""


def main() -> int:
    """Ask over loopback, also if the service listens on all addresses. No proxy is used."""
    settings = {name.upper(): value for name, value in os.environ.items()}
    host, port = settings.get("GSH_HOST", "127.0.0.1"), settings.get("GSH_PORT", "8000")
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104
    try:
        with socket.create_connection((host, int(port)), _SECONDS) as connection, connection.makefile("rb") as answer:
            connection.sendall(b"GET /readyz?ledger=false HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return 0 if answer.readline(100).split()[1:2] == [b"200"] else 1
    except (OSError, OverflowError, ValueError):
        return 1


if __name__ == "__main__":
    sys.exit(main())
