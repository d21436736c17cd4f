"""Signals that end a program as exceptions, so that what must not stay behind is removed first."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["ended_by_signals"]

_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP raise ``SystemExit`` inside the block, if the program has no handlers of its own for them."""
    if threading.current_thread() is not threading.main_thread():  # only there can handlers be set
        yield
        return

    ended: list[int] = []

    def end(number: int, _frame: object) -> None:
        ended.append(number)
        raise SystemExit(128 + number)

    taken = [number for number in _SIGNALS if signal.getsignal(number) is signal.SIG_DFL]
    for number in taken:
        signal.signal(number, end)
    try:
        yield
    except KeyboardInterrupt:  # DuckDB makes an interrupt of whatever a handler raises inside a query
        if ended:
            raise SystemExit(128 + ended[-1]) from None
        raise
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)
