"""python -m app: run the service with the settings of the environment.

It obeys a stop signal from the first moment. The first process of a container has no default for signals: without a
handler, one that comes while modules load would be lost, and the container killed later.
"""

import os
import signal
import sys
from types import FrameType


def main() -> int:
    """Only then load all the rest, which takes a second."""
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, _stop)
    # Its threads would be idle, and only a process without threads may fork.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from app.serving import serve  # noqa: PLC0415 - after the handler is set

    return serve()


def _stop(_signal: int, _frame: FrameType | None) -> None:
    """A normal end. Until a loop runs, nothing is under way, and within an import an exception could get lost.

    While the loop runs, uvicorn has a handler of its own. It raises the signal again after it has shut down.
    """
    running = getattr(sys.modules.get("asyncio.events"), "_get_running_loop", lambda: None)()
    if running is None:
        os._exit(0)
    sys.exit(0)


if __name__ == "__main__":
    sys.exit(main())
