"""No test may depend on the shell that it is started from: its settings, proxies, signals and limits.

Nor on the speed of the machine.
"""

import os
import resource
import signal
from contextlib import suppress
from typing import TypeVar

from httpx._config import DEFAULT_TIMEOUT_CONFIG
from hypothesis import HealthCheck, settings

__all__ = ["PATIENCE", "allow_time", "forget_the_shell", "some_of", "third_of"]

PATIENCE = 300
"""Seconds after which a process that says nothing is given up; no test passes or fails by a shorter time."""

T = TypeVar("T")
_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)


def forget_the_shell() -> None:
    for name in list(os.environ):
        if name.startswith(("GSH_", "PROMETHEUS_")) or name.lower().endswith("_proxy"):
            del os.environ[name]
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # tests hold hundreds of connections open
    _take_signals()


def allow_time() -> None:
    """By default Hypothesis fails an example after 0.2 seconds, and httpx a request after 5 seconds."""
    settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("any machine")
    for wait in ("connect", "read", "write", "pool"):
        setattr(DEFAULT_TIMEOUT_CONFIG, wait, float(PATIENCE))


def some_of(examples: int) -> int:
    """How many examples a property is tried with: all for ``make thorough``, and the first third otherwise."""
    return examples if _is_thorough() else max(5, examples // 3)


def third_of(listed: list[T], place: int) -> list[T]:
    """Every third item, from another one on in each ``place``; all for ``make thorough``."""
    return listed if _is_thorough() else listed[place % 3 :: 3]


def _is_thorough() -> bool:
    return "THOROUGH" in os.environ


def _take_signals() -> None:
    """A process starts with the signals blocked and ignored that its parent blocks and ignores: nohup ignores SIGHUP.

    With a handler that does nothing, this process still ignores them, but not the processes that it starts. A terminal
    that hangs up sends SIGHUP to all processes of its session, so they need another one.
    """
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    ignored = [number for number in _SIGNALS if signal.getsignal(number) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, lambda *_: None)
    if signal.SIGHUP in ignored:
        with suppress(PermissionError):  # it leads a session or a group already
            os.setsid()
