"""The formats of tables and answers: their names, the extensions of their files, and their media types."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

__all__ = ["ARROW", "EXTENSIONS", "JSON", "MEDIA_TYPES", "ZIP", "AnswerFormat", "Format"]

Format: TypeAlias = Literal["arrow", "arrow_file", "parquet", "csv"]
"""``arrow`` is an Arrow IPC stream, and ``arrow_file`` an Arrow IPC file."""

AnswerFormat: TypeAlias = Literal["json", "arrow", "arrow_file", "parquet", "csv"]

EXTENSIONS: Mapping[str, Format] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".arrow": "arrow_file",
    ".feather": "arrow_file",
    ".ipc": "arrow_file",
    ".arrows": "arrow",
}

JSON = "application/json"
ARROW = "application/vnd.apache.arrow.stream"
ZIP = "application/zip"
"""Several tables in one answer (archives.py)."""
MEDIA_TYPES: Mapping[AnswerFormat, str] = {
    "json": JSON,
    "arrow": ARROW,
    "arrow_file": "application/vnd.apache.arrow.file",
    "parquet": "application/vnd.apache.parquet",
    "csv": "text/csv",
}
