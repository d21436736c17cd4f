"""Files that commands read and write: ``-`` for pipes, and outputs that appear whole or not at all."""

import json
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from gsh.cli.errors import Code, Refusal
from gsh.library.signals import ended_by_signals
from gsh.library.visible_text import visible
from gsh.library.whole_files import whole_file

__all__ = ["PIPE", "Pipes", "read_json", "written"]

PIPE = "-"


class Pipes:
    """Standard input can be read once, and standard output can have one content."""

    def __init__(self, **paths: str | None) -> None:
        using = ["TABLE" if name == "table" else f"--{name}" for name, path in paths.items() if path == PIPE]
        if len(using) > 1:
            raise Refusal(Code.INVALID, f"only one of {' and '.join(using)} can be -", "give a file for the other")


def read_json(path: str, option: str) -> Any:
    """The JSON of a file or of standard input."""
    try:
        return json.loads(sys.stdin.buffer.read() if path == PIPE else Path(path).read_bytes())
    except (ValueError, RecursionError):
        pass
    # Outside of the handler, whose exception quotes the file.
    raise Refusal(Code.INVALID, f"{option}: must be JSON", "gsh calibrate --json writes it")


@contextmanager
def written(path: str, *, force: bool = False) -> Iterator[IO[bytes]]:
    """A file to write. It gets its name when all is written; an error, Ctrl-C or SIGTERM leaves nothing behind."""
    if path == PIPE or _is_stream(path):
        with tempfile.TemporaryFile() as kept:
            yield kept
            kept.seek(0)
            _pour(kept, path)
        return
    if not force and os.path.lexists(path):
        raise Refusal(Code.INVALID, f"{path}: exists already", "choose another name, or add --force")
    with ended_by_signals():
        try:
            with whole_file(path) as file:
                yield file
        except OSError as error:
            if str(error.filename).endswith(".partial"):  # people know the name that they gave
                raise OSError(error.errno, error.strerror, path) from None
            raise


def _is_stream(path: str) -> bool:
    """Whether the path is a terminal, /dev/null or a named pipe: it is written to, and never replaced."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return False
    if stat.S_ISREG(mode):
        return False
    if stat.S_ISCHR(mode) or stat.S_ISFIFO(mode):
        return True
    raise Refusal(Code.INVALID, f"{path}: must be a file", "choose another name")


def _pour(content: IO[bytes], path: str) -> None:
    if path == PIPE:
        _copy(content, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    with open(path, "wb") as stream:
        _copy(content, stream)


def _copy(content: IO[bytes], stream: IO[bytes]) -> None:
    """The bytes as they are; a terminal gets text that it cannot obey."""
    if not stream.isatty():
        shutil.copyfileobj(content, stream)
        return
    for line in content:
        stream.write(f"{visible(line.decode('utf-8', 'backslashreplace').rstrip())}\n".encode())
