"""Run the service with the settings of the environment: what ``python -m app`` does.

uvicorn would start each web worker in a new interpreter, which imports everything again: a second of processor time and
some 65 MB for each. So this process imports everything, and all others are forked from it. They start at once and share
that memory.
"""

import ctypes
import logging
import logging.config
import os
import resource
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext
from multiprocessing.context import ForkProcess

import uvicorn

from app.http.loopback import is_loopback
from app.http.uvicorn_internals import start_workers_as
from app.ledger.access.access_keys import given_key
from app.ledger.clock import now
from app.ledger.errors import LedgerUnavailable
from app.ledger.opening import open_ledger
from app.ledger.store import Ledger
from app.server.logs import log_config
from app.settings import Settings, settings_or_exit
from app.workers.fork_server import FORK_SERVER

__all__ = ["serve"]

_STOP_SIGNALS = {signal.SIGINT, signal.SIGTERM}
_PR_SET_PDEATHSIG = 1  # linux/prctl.h
# A worker that does not answer for so long is replaced. On a busy machine the usual 5 s would end requests.
_WORKER_SECONDS = 30
_OPEN_TO_ALL = (
    "GSH_HOST: is not loopback, and no access key exists: make one with "
    "`python -m app.keys create --scope release --scope admin`, or set GSH_ADMIN_KEY to one; or set "
    "GSH_OPEN_ACCESS=true to serve releases and budgets to everyone"
)

logger = logging.getLogger("app.access")


def serve() -> int:
    """Run uvicorn until a signal stops it. A wrong setting is reported in one line, without a traceback."""
    settings = settings_or_exit()
    logging.config.dictConfig(log_config(settings.log_level))
    if settings.heavy_threads is not None:
        logging.getLogger("app.settings").warning("GSH_HEAVY_THREADS: the new name is GSH_POOL_PROCESSES")
    refusal = _refusal(settings)
    if refusal is not None:
        sys.stderr.write(f"{refusal}\n")
        return 2
    _allow_open_files()
    if settings.workers > 1:
        # Metrics look whether it is set when they are imported. The folder comes after that: a stop signal that comes
        # while modules load would leave it behind.
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = ""
    _load_everything()
    with _shared_metrics() if settings.workers > 1 else nullcontext():
        uvicorn.run(
            "app.main:create_app",
            factory=True,
            host=settings.host,
            port=settings.port,
            workers=settings.workers,
            http="app.http.protocol:BoundedProtocol",
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


@contextmanager
def _shared_metrics() -> Iterator[None]:
    """A folder through which web workers share their metrics. A stop signal waits until it would delete the folder."""
    with ExitStack() as stack:
        with _stop_signals_held():
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="gsh-metrics-"))
            for each in _STOP_SIGNALS:
                signal.signal(each, lambda *_: sys.exit())
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
        yield


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
    needs_key = not is_loopback(settings.host) and not settings.open_access
    admin_key = settings.admin_key.get_secret_value()
    if not needs_key and not admin_key:
        return None
    try:
        with closing(open_ledger(settings.ledger, settings.ledger_secret.get_secret_value())) as ledger:
            if admin_key:
                _add(ledger, admin_key)
            elif not ledger.keys.read().any_made:
                return _OPEN_TO_ALL
    except LedgerUnavailable as error:
        why = "add GSH_ADMIN_KEY" if admin_key else "look for an access key, and GSH_HOST is not loopback"
        return f"GSH_LEDGER: cannot be opened to {why}: {error}"
    return None


def _add(ledger: Ledger, admin_key: str) -> None:
    """The operator's access key is in the ledger when the service starts. Once revoked, it stays so."""
    at = now()
    key = ledger.keys.add_once(given_key(admin_key, "GSH_ADMIN_KEY", at))
    if key.revoked_at is not None or key.has_expired(at):
        logger.warning("GSH_ADMIN_KEY: access key %s was revoked or has expired, so it is not accepted", key.id)


@contextmanager
def _stop_signals_held() -> Iterator[None]:
    """A stop signal that comes inside the block waits for its end."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOP_SIGNALS)


def _load_everything() -> None:
    """Import everything, and start the fork server. From now on uvicorn forks its workers. No thread may exist yet."""
    from app.main import WORKER_MODULES  # noqa: PLC0415 - metrics look at the environment when they are imported

    FORK_SERVER.start_by_fork(WORKER_MODULES)
    start_workers_as(_WebWorker)


class _WebWorker(ForkProcess):
    """A signal that comes between the fork and uvicorn's own handlers ends it. The parent's handlers would lose it."""

    def start(self) -> None:
        self._parent = os.getpid()
        with _stop_signals_held():
            super().start()

    def run(self) -> None:
        for each in _STOP_SIGNALS:
            signal.signal(each, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOP_SIGNALS)
        # Without the parent nobody would stop it, and it would keep the port.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() == self._parent:
            super().run()
