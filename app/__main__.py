"""python -m app: serve, as the environment says."""

import os
import signal
import sys
import tempfile
from contextlib import closing, nullcontext

import uvicorn
from pydantic import ValidationError

from app.ledger.errors import LedgerUnavailable
from app.ledger.opening import open_ledger
from app.logs import log_config
from app.loopback import is_loopback
from app.settings import Settings


def main() -> int:
    """Run uvicorn until a signal stops it; a wrong setting is one line, not a traceback."""
    try:
        settings = Settings()
    except ValidationError as error:
        for each in error.errors(include_input=False):
            sys.stderr.write(f"GSH_{'_'.join(map(str, each['loc'])).upper()}: {each['msg']}\n")
        return 2
    if not (is_loopback(settings.host) or settings.open_access or _has_keys(settings)):
        sys.stderr.write(
            "GSH_HOST: is not loopback, and no key exists: make one with `python -m app.keys create`, or set "
            "GSH_OPEN_ACCESS=true to serve releases and budgets to everyone\n"
        )
        return 2
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
            access_log=False,
            server_header=False,
            root_path=settings.root_path,
            log_config=log_config(settings.log_level),
            timeout_graceful_shutdown=settings.shutdown_seconds,
        )
    return 0


def _has_keys(settings: Settings) -> bool:
    """Whether any key was ever made, for then one is needed; a ledger that cannot be opened has none to show."""
    try:
        ledger = open_ledger(settings.ledger, settings.ledger_secret.get_secret_value())
    except LedgerUnavailable:
        return False
    with closing(ledger):
        return bool(ledger.keys.all())


if __name__ == "__main__":
    sys.exit(main())
