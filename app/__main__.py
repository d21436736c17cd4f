"""python -m app: run the service with the settings of the environment.

It obeys a stop signal from the first moment. The first process of a container has no default for signals: without a
handler, one that comes while modules load would be lost, and the container killed later.
"""

import os
import resource
import signal
import sys
from contextlib import suppress
from pathlib import Path
from types import FrameType


def main() -> int:
    """Set the signal handlers first. Then load the rest, which takes a second."""
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, _stop)
    _write_no_cores()
    # Its threads would be idle, and only a process without threads may fork.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from app.server.serving import serve  # noqa: PLC0415 - after the handler is set

    return serve()


def _write_no_cores() -> None:
    """A core dump would have posted tables and the ledger's secret in it. Processes that are started inherit this.

    With a limit of 1 byte, the kernel writes no file, and starts no program that collects dumps: with 0 it would.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    least = 1 if hard == resource.RLIM_INFINITY else min(1, hard)
    resource.setrlimit(resource.RLIMIT_CORE, (least, least))
    with suppress(OSError):
        Path("/proc/self/coredump_filter").write_text("0")  # for a limit that is 0 already: a dump without memory


def _stop(_signal: int, _frame: FrameType | None) -> None:
    """End normally. Before the event loop runs there is no work to finish, and an import could swallow an exception.

    While the loop runs, uvicorn has a handler of its own. It raises the signal again after it has shut down.
    """
    running = getattr(sys.modules.get("asyncio.events"), "_get_running_loop", lambda: None)()
    if running is None:
        os._exit(0)
    sys.exit(0)


if __name__ == "__main__":
    sys.exit(main())
