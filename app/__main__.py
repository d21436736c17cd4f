"""python -m app: run the service with the settings of the environment."""

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
from app.prefork import load_everything
from app.settings import Settings, settings_or_exit

# A worker that does not answer for so long is replaced. On a busy machine the usual 5 s would end requests.
_WORKER_SECONDS = 30


def main() -> int:
    """Run uvicorn until a signal stops it. A wrong setting is reported in one line, without a traceback."""
    settings = settings_or_exit()
    refusal = _refusal(settings)
    if refusal is not None:
        sys.stderr.write(f"{refusal}\n")
        return 2
    _allow_open_files()
    # uvicorn raises the signal again after it has shut down. That is a normal end.
    signal.signal(signal.SIGTERM, lambda _signal, _frame: sys.exit(0))
    with tempfile.TemporaryDirectory(prefix="gsh-metrics-") if settings.workers > 1 else nullcontext() as shared:
        if shared is not None:
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = shared
        load_everything()
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
            proxy_headers=False,  # the authorizer reads proxies' headers, and takes no address from them
            root_path=settings.root_path,
            log_config=log_config(settings.log_level),
            timeout_graceful_shutdown=settings.shutdown_seconds,
            timeout_worker_healthcheck=_WORKER_SECONDS,
        )
    return 0


def _allow_open_files() -> None:
    """Allow as many open files as the system permits: each connection is one, and the usual limit is too low."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _refusal(settings: Settings) -> str | None:
    """Why the service must not start: no folder to spool tables, or other machines would need no access key."""
    try:
        tempfile.TemporaryFile().close()
    except OSError:
        return "TMPDIR: must name a folder for temporary files that can be written; none of the usual ones can"
    return _open_to_all(settings)


def _open_to_all(settings: Settings) -> str | None:
    """Why the service must not listen: other machines could use it, and no access key was ever made."""
    if is_loopback(settings.host) or settings.open_access:
        return None
    try:
        with closing(open_ledger(settings.ledger, settings.ledger_secret.get_secret_value())) as ledger:
            if ledger.keys.read().any_made:
                return None
    except LedgerUnavailable as error:
        return f"GSH_LEDGER: cannot be opened to look for an access key, and GSH_HOST is not loopback: {error}"
    return (
        "GSH_HOST: is not loopback, and no access key exists: make one with `python -m app.keys create`, or set "
        "GSH_OPEN_ACCESS=true to serve releases and budgets to everyone"
    )


if __name__ == "__main__":
    sys.exit(main())
