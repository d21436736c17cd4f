"""Files that commands read and write: formats by extension, ``-`` for pipes, and outputs that appear whole or not."""

import json
import os
import secrets
import shutil
import signal
import stat
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, TypeAlias

from gsh.cli.errors import Code, Refusal

if TYPE_CHECKING:
    import pyarrow as pa

    from gsh.histogram.csv_format import CsvType
    from gsh.histogram.formats import Format

__all__ = ["PIPE", "FormatName", "Pipes", "format_named", "read_json", "read_table_file", "written"]

FormatName: TypeAlias = Literal["csv", "parquet", "arrow", "arrows"]

PIPE = "-"
_FORMATS: "dict[str, Format]" = {"csv": "csv", "parquet": "parquet", "arrow": "arrow_file", "arrows": "arrow"}
_EXTENSIONS = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow", ".feather": "arrow"} | {
    ".arrows": "arrows"
}
_TERMINATED = 128 + signal.SIGTERM


class Pipes:
    """Standard input can be read once, and standard output can have one content."""

    def __init__(self, **paths: str | None) -> None:
        using = ["TABLE" if name == "table" else f"--{name}" for name, path in paths.items() if path == PIPE]
        if len(using) > 1:
            raise Refusal(Code.INVALID, f"only one of {' and '.join(using)} can be -", "give a file for the other")


def format_named(path: str, name: FormatName | None, option: str) -> "Format":
    """The format that an option names, or else the one of the extension."""
    said = name or _EXTENSIONS.get(Path(path).suffix.lower() if path != PIPE else "")
    if said is None:
        what = "a pipe has no extension" if path == PIPE else f"{path}: the extension names no format"
        raise Refusal(Code.INVALID, what, f"give {option} csv, parquet, arrow or arrows")
    return _FORMATS[said]


def read_table_file(
    path: str, name: FormatName | None, csv_types: "Mapping[str, CsvType]"
) -> "tuple[Format, pa.Table]":
    """The format of a table, and the table with every buffer checked. Arrow and Parquet show in the first bytes."""
    from gsh.histogram.formats import ANY_SIZE, read_table  # noqa: PLC0415 - loads pyarrow

    is_csv = format_named(path, name, "--from") == "csv" if name or path != PIPE else False
    source = _piped() if path == PIPE else _mapped(path)
    return read_table(source, ANY_SIZE, csv_types if is_csv else None)


def _piped() -> "pa.Buffer":
    import pyarrow as pa  # noqa: PLC0415

    return pa.py_buffer(sys.stdin.buffer.read())


def _mapped(path: str) -> "pa.Buffer":
    import pyarrow as pa  # noqa: PLC0415

    with open(path, "rb") as file:  # the errors of Python have the name, and those of Arrow more than that
        found = os.fstat(file.fileno())
        if found.st_size == 0 or not stat.S_ISREG(found.st_mode):  # an empty file and a named pipe have no map
            return pa.py_buffer(file.read())
    return pa.memory_map(path).read_buffer()


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
    target = Path(os.path.realpath(path))  # a link stays, and what it leads to is replaced
    partial = target.with_name(f".{target.name[:200]}.{secrets.token_hex(4)}.partial")
    with _terminated():
        try:
            with partial.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            partial.replace(target)
        except OSError as error:
            if error.filename == str(partial):  # people know the name that they gave
                raise OSError(error.errno, error.strerror, path) from None
            raise
        finally:
            partial.unlink(missing_ok=True)


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
        shutil.copyfileobj(content, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    with open(path, "wb") as stream:
        shutil.copyfileobj(content, stream)


@contextmanager
def _terminated() -> Iterator[None]:
    """SIGTERM as an exception, so that the partial file goes."""

    def end(_signal: int, _frame: object) -> None:
        raise SystemExit(_TERMINATED)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
