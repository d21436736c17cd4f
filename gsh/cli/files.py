"""Files and tables that commands read and write: outputs appear whole or not at all, and ``-`` is a pipe.

The format of a table is that of the extension, or an option says it.
"""

import io
import json
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, TypeAlias, cast

from gsh.cli.errors import Code, Refusal
from gsh.errors import renamed, visible
from gsh.histogram.file_formats import EXTENSIONS, Format
from gsh.library.whole_files import ended_by_signals, whole_file

if TYPE_CHECKING:
    import pyarrow as pa

    from gsh.histogram.csv_format import CsvType
    from gsh.histogram.roles import Roles

__all__ = [
    "PIPE",
    "AnswerName",
    "FormatName",
    "Pipes",
    "answer_named",
    "certificate_in",
    "format_named",
    "read_json",
    "read_table_file",
    "table_name_in",
    "write_rows",
    "written",
]

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


FormatName: TypeAlias = Literal["csv", "parquet", "arrow", "arrows"]
"""``arrow`` is an Arrow IPC file, and ``arrows`` an Arrow IPC stream."""
AnswerName: TypeAlias = Literal["csv", "parquet", "arrow", "arrows", "zip"]
"""``zip`` has all tables of one release."""

_PIECE = 1 << 20
_FORMATS: dict[str, Format] = {"csv": "csv", "parquet": "parquet", "arrow": "arrow_file", "arrows": "arrow"}


def format_named(path: str, name: FormatName | None, option: str) -> Format:
    """The format that an option names, or else the one of the extension."""
    return _named(path, name, f"give {option} csv, parquet, arrow or arrows")


def answer_named(path: str, name: AnswerName | None, option: str) -> Format | Literal["zip"]:
    """The same for a release, which may have several tables."""
    if name == "zip" or (name is None and path != PIPE and Path(path).suffix.lower() == ".zip"):
        return "zip"
    return _named(path, name, f"give {option} csv, parquet, arrow, arrows or zip")


def _named(path: str, name: str | None, hint: str) -> Format:
    found = _FORMATS[name] if name else EXTENSIONS.get(Path(path).suffix.lower() if path != PIPE else "")
    if found is None:
        what = "a pipe has no extension" if path == PIPE else f"{path}: the extension names no format"
        raise Refusal(Code.INVALID, what, hint)
    return found


def read_table_file(
    path: str,
    name: FormatName | None,
    csv_types: "Mapping[str, CsvType]",
    places: Iterable[tuple[str, str]] = (),
) -> "tuple[Format, pa.Table]":
    """The format of a table, and the table with every buffer checked. Arrow and Parquet show in the first bytes.

    Errors have other ``places``, as ``Roles.places`` gives them.
    """
    from gsh.histogram.formats import ANY_SIZE, read_table  # noqa: PLC0415 - loads pyarrow

    is_csv = format_named(path, name, "--from") == "csv" if name or path != PIPE else False
    source = _piped() if path == PIPE else _mapped(path)
    with renamed(*places):
        return read_table(source, ANY_SIZE, csv_types if is_csv else None)


def write_rows(
    private: "pa.Table", into: Format, promise: Any, sink: IO[bytes], roles: "Roles", name: str | None = None
) -> None:
    """Write the kept rows, in a form that the format has a place for. ``name`` is that of one of several tables."""
    from gsh.histogram import conversion  # noqa: PLC0415 - loads pyarrow

    text = None if promise is None else json.dumps(promise, ensure_ascii=False)
    conversion.write_rows(private, roles, into, text, sink, name or "")


def certificate_in(table: "pa.Table") -> Any:
    """The certificate in the metadata of a table, or None."""
    from gsh.histogram.formats import CERTIFICATE  # noqa: PLC0415

    text = (table.schema.metadata or {}).get(CERTIFICATE.encode())
    try:
        return None if text is None else json.loads(text)
    except ValueError:
        return None


def table_name_in(table: "pa.Table") -> str | None:
    """The name in the metadata of a table that is one of several, or None."""
    from gsh.histogram.formats import TABLE  # noqa: PLC0415

    text = (table.schema.metadata or {}).get(TABLE.encode())
    return None if text is None else str(text, "utf-8", "replace")


def _piped() -> "pa.Buffer":
    import pyarrow as pa  # noqa: PLC0415

    return pa.py_buffer(_read(cast("io.BufferedReader", sys.stdin.buffer)))


def _mapped(path: str) -> "pa.Buffer":
    import pyarrow as pa  # noqa: PLC0415

    with open(path, "rb") as file:  # the errors of Python have the name, and those of Arrow more than that
        found = os.fstat(file.fileno())
        if found.st_size == 0 or not stat.S_ISREG(found.st_mode):  # an empty file and a named pipe have no map
            return pa.py_buffer(_read(file))
    return pa.memory_map(path).read_buffer()


def _read(pipe: "io.BufferedReader | io.BytesIO") -> bytes:
    """All of a pipe, piece by piece: between two pieces Python sees a signal, which one long read would miss."""
    return b"".join(iter(lambda: pipe.read1(_PIECE), b""))
