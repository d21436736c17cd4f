"""Writes files whole or not at all, and turns signals that end a program into exceptions, so that it can clean up.

A file is written under another name, on the disk, and only then gets its own name.
"""

import os
import secrets
import signal
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

__all__ = ["ended_by_signals", "sync", "whole_file", "whole_files"]


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file to write. It gets its name when the block ends without an error; otherwise nothing is left.

    A file that has the name already is replaced.
    """
    with whole_files([path], replaced=[path]) as (file,):
        yield file


@contextmanager
def whole_files(
    paths: Sequence[str | os.PathLike[str]], replaced: Collection[str | os.PathLike[str]] = ()
) -> Iterator[Sequence[IO[bytes]]]:
    """Several files to write: all get their names, or none of them. The last one gets its name last.

    ``FileExistsError`` if another program was first, unless the name is one of ``replaced``.
    """
    replaceable = [path in replaced for path in paths]
    targets = [Path(os.path.realpath(path)) for path in paths]  # a link stays, and what it leads to is replaced
    partials = [each.with_name(f".{each.name[:200]}.{secrets.token_hex(4)}.partial") for each in targets]
    try:
        with ExitStack() as opened:
            files = [opened.enter_context(partial.open("xb")) for partial in partials]
            yield files
            for file in files:
                file.flush()
                os.fsync(file.fileno())
        _name(partials, targets, replaceable)
    finally:
        for partial in partials:
            partial.unlink(missing_ok=True)


def _name(partials: Sequence[Path], targets: Sequence[Path], replaceable: Sequence[bool]) -> None:
    """An error or Ctrl-C between two names takes back those that were not there before."""
    new: list[Path] = []
    try:
        for partial, target, may_replace in zip(partials, targets, replaceable, strict=True):
            if not may_replace:
                os.link(partial, target)  # unlike a rename, it fails if the name is taken
                new.append(target)
            else:
                if not os.path.lexists(target):
                    new.append(target)
                partial.replace(target)
    except BaseException:
        for target in new:
            target.unlink(missing_ok=True)
        raise


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


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
