"""python -m app.healthcheck: exit 0 if the service on this machine is ready; for the container.

The ledger is not asked: accounting works without it, and a restart of this container would not mend a database.
"""

import sys
from http.client import HTTPConnection, HTTPException

from app.settings import settings_or_exit


def main() -> int:
    """Ask over loopback, also if the service listens on all addresses. No proxy is used."""
    settings = settings_or_exit()
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)  # noqa: S104
    try:
        connection = HTTPConnection(host, settings.port, timeout=2)
        connection.request("GET", "/readyz?ledger=false")
        return 0 if connection.getresponse().status == 200 else 1
    except (OSError, HTTPException):
        return 1


if __name__ == "__main__":
    sys.exit(main())
