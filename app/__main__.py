"""python -m app: serve, as the environment says."""

import os
import resource
import signal
import sys
import tempfile
from contextlib import closing, nullcontext

import uvicorn

from app.ledger.errors import LedgerUnavailable
from app.ledger.opening import open_ledger
from app.logs import log_config
from app.loopback import is_loopback
from app.settings import Settings, settings_or_exit


def main() -> int:
    """Run uvicorn until a signal stops it; what is wrong with a setting is one line, not a traceback."""
    settings = settings_or_exit()
    refusal = _refusal(settings)
    if refusal is not None:
        sys.stderr.write(f"{refusal}\n")
        return 2
    _allow_open_files()
    # uvicorn raises the signal again once it has shut down; that is a normal end.
    signal.signal(signal.SIGTERM, lambda _signal, _frame: sys.exit(0))
    with tempfile.TemporaryDirectory(prefix="gsh-metrics-") if settings.workers > 1 else nullcontext() as shared:
        if shared is not None:
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = shared
        uvicorn.run(
            "app.main:create_app",
            factory=True,
            host=settings.host,
            port=settings.port,
            workers=settings.workers,
            http="app.http_protocol:BoundedProtocol",
            ws="none",
            access_log=False,
            server_header=False,
            proxy_headers=False,  # the gate reads what a proxy says; it never believes it of an address
            root_path=settings.root_path,
            log_config=log_config(settings.log_level),
            timeout_graceful_shutdown=settings.shutdown_seconds,
        )
    return 0


def _allow_open_files() -> None:
    """As many as the system lets us have: a connection is one, and the usual limit is below the bound on those."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _refusal(settings: Settings) -> str | None:
    """Why not to serve: tables have nowhere to be spooled, or other machines would be let in without a key."""
    try:
        tempfile.TemporaryFile().close()
    except OSError:
        return "TMPDIR: must name a folder for temporary files that can be written; none of the usual ones can"
    return _open_to_all(settings)


def _open_to_all(settings: Settings) -> str | None:
    """Why not to listen, where other machines would be let in by nothing; any key ever made means that one is asked."""
    if is_loopback(settings.host) or settings.open_access:
        return None
    try:
        with closing(open_ledger(settings.ledger, settings.ledger_secret.get_secret_value())) as ledger:
            if ledger.keys.read().any_made:
                return None
    except LedgerUnavailable as error:
        return f"GSH_LEDGER: cannot be opened, to see whether a key exists, as GSH_HOST is not loopback: {error}"
    return (
        "GSH_HOST: is not loopback, and no key exists: make one with `python -m app.keys create`, or set "
        "GSH_OPEN_ACCESS=true to serve releases and budgets to everyone"
    )


if __name__ == "__main__":
    sys.exit(main())
