"""Tables that commands read and write: CSV, Parquet and Arrow, by extension or by an option."""

import io
import json
import os
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, TypeAlias, cast

from gsh.cli.errors import Code, Refusal
from gsh.cli.files import PIPE
from gsh.histogram.file_formats import EXTENSIONS, Format

if TYPE_CHECKING:
    import pyarrow as pa

    from gsh.histogram.csv_format import CsvType
    from gsh.histogram.tables import Roles

__all__ = ["FormatName", "certificate_in", "format_named", "read_table_file", "write_rows"]

FormatName: TypeAlias = Literal["csv", "parquet", "arrow", "arrows"]
"""``arrow`` is an Arrow IPC file, and ``arrows`` an Arrow IPC stream."""

_PIECE = 1 << 20
_FORMATS: dict[str, Format] = {"csv": "csv", "parquet": "parquet", "arrow": "arrow_file", "arrows": "arrow"}


def format_named(path: str, name: FormatName | None, option: str) -> Format:
    """The format that an option names, or else the one of the extension."""
    found = _FORMATS[name] if name else EXTENSIONS.get(Path(path).suffix.lower() if path != PIPE else "")
    if found is None:
        what = "a pipe has no extension" if path == PIPE else f"{path}: the extension names no format"
        raise Refusal(Code.INVALID, what, f"give {option} csv, parquet, arrow or arrows")
    return found


def read_table_file(
    path: str, name: FormatName | None, csv_types: "Mapping[str, CsvType]"
) -> "tuple[Format, pa.Table]":
    """The format of a table, and the table with every buffer checked. Arrow and Parquet show in the first bytes."""
    from gsh.histogram.formats import ANY_SIZE, read_table  # noqa: PLC0415 - loads pyarrow

    is_csv = format_named(path, name, "--from") == "csv" if name or path != PIPE else False
    source = _piped() if path == PIPE else _mapped(path)
    return read_table(source, ANY_SIZE, csv_types if is_csv else None)


def write_rows(private: "pa.Table", into: Format, promise: Any, sink: IO[bytes], roles: "Roles") -> None:
    """Write the kept rows, in a form that the format has a place for."""
    from gsh.histogram import conversion  # noqa: PLC0415 - loads pyarrow

    text = None if promise is None else json.dumps(promise, ensure_ascii=False)
    conversion.write_rows(private, roles, into, text, sink)


def certificate_in(table: "pa.Table") -> Any:
    """The certificate in the metadata of a table, or None."""
    from gsh.histogram.formats import CERTIFICATE  # noqa: PLC0415

    text = (table.schema.metadata or {}).get(CERTIFICATE.encode())
    try:
        return None if text is None else json.loads(text)
    except ValueError:
        return None


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
