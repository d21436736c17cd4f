"""No test may depend on the shell that it is started from: its settings, proxies, signals and limits."""

import os
import resource
import signal
from contextlib import suppress

__all__ = ["forget_the_shell"]

_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)


def forget_the_shell() -> None:
    for name in list(os.environ):
        if name.startswith(("GSH_", "PROMETHEUS_")) or name.lower().endswith("_proxy"):
            del os.environ[name]
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # tests hold hundreds of connections open
    _take_signals()


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
