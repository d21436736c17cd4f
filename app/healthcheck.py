"""python -m app.healthcheck: exit 0 if the service on this machine is ready; for the container."""

import sys
from urllib.error import URLError
from urllib.request import urlopen

from app.settings import Settings


def main() -> int:
    """Ask over loopback, where the service also listens when it listens everywhere."""
    settings = Settings()
    host = "127.0.0.1" if settings.host in {"0.0.0.0", "::"} else settings.host  # noqa: S104
    try:
        with urlopen(f"http://{host}:{settings.port}/readyz", timeout=2):
            return 0
    except (URLError, OSError):
        return 1


if __name__ == "__main__":
    sys.exit(main())
