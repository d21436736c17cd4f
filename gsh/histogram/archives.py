"""Answers of several tables: a zip archive with one file per table, and the certificate.

    <name>.<ending>      a table, in the format in which it came
    certificate.json     the certificate of all tables together

Files are stored, not compressed: the formats of tables compress their columns themselves. So to read an archive is to
find places in it, and no archive becomes larger when it is read. Each file begins at a multiple of 64 bytes, as Arrow
likes it. Given the files, its bytes do not depend on anything else: all have the same time. So an archive is read only
if every byte of it is the one that is written here: no other program can find other files in it.
"""

import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import IO, NamedTuple, TypeAlias

import pyarrow as pa

from gsh.accounting.mechanism import MOST_TABLES
from gsh.histogram.file_formats import Format

__all__ = ["CERTIFICATE_FILE", "Member", "Tables", "file_named", "formats_of", "read_archive", "write_archive"]

CERTIFICATE_FILE = "certificate.json"
_ENDINGS: Mapping[Format, str] = {"arrow": "arrows", "arrow_file": "arrow", "parquet": "parquet", "csv": "csv"}

Tables: TypeAlias = Mapping[str, tuple[Format, Callable[[IO[bytes]], None]]]
"""The format of each table, and what writes it to a file, by its name."""
Member: TypeAlias = tuple[Format, pa.Buffer]

_TIME, _DAY = (1980, 1, 1, 0, 0, 0), 0x21
_FORMATS = {ending: kind for kind, ending in _ENDINGS.items()}
_LOCAL = struct.Struct("<4sHHHHHIIIHH")
_PADDING, _PADDING_ID, _ALIGNMENT = struct.Struct("<HH"), 0xD935, 64
_LARGE, _LARGE_ID = struct.Struct("<HHQQ"), 1
_ENTRY = struct.Struct("<4sBBHHHHHIIIHHHHHII")
_END, _LARGE_END, _LOCATOR = struct.Struct("<4s4H2IH"), struct.Struct("<4sQHHII4Q"), struct.Struct("<4sIQI")
_VERSION, _SYSTEM, _ATTRIBUTES = 45, 3, 0o600 << 16
_MOST, _ELSEWHERE = zipfile.ZIP64_LIMIT, 0xFFFF_FFFF
"""The largest number that zipfile writes into 32 bits, and what it writes if a number is larger."""
_FILE = b"PK\x03\x04"
_MOST_NAME = 128


def file_named(table: str, kind: Format) -> str:
    """The name of a table's file."""
    return f"{table}.{_ENDINGS[kind]}"


def formats_of(files: Iterable[str]) -> dict[str, Format]:
    """The format of each table, from the names of the files of an archive."""
    named = (file.rpartition(".") for file in files if file != CERTIFICATE_FILE)
    return {table: _FORMATS[ending] for table, _, ending in named}


def write_archive(sink: IO[bytes], tables: Tables, certificate: str) -> None:
    """Write the tables in their order, and then the certificate. ``sink`` must be able to seek."""
    with zipfile.ZipFile(sink, "w") as archive:
        for name, (kind, write) in tables.items():
            with _member(archive, file_named(name, kind)) as file:
                write(file)
        with _member(archive, CERTIFICATE_FILE) as file:
            file.write(certificate.encode())


def _member(archive: zipfile.ZipFile, name: str) -> IO[bytes]:
    info = zipfile.ZipInfo(name, _TIME)
    info.create_system, info.external_attr = _SYSTEM, _ATTRIBUTES  # not the system that writes it
    assert archive.fp is not None
    info.extra = _padding(archive.fp.tell(), name)
    return archive.open(info, "w", force_zip64=True)


def _padding(start: int, name: str) -> bytes:
    """A field that lets the content of a file begin at a multiple of 64 bytes."""
    padding = -(start + _LOCAL.size + len(name) + _PADDING.size + _LARGE.size) % _ALIGNMENT
    return _PADDING.pack(_PADDING_ID, padding) + bytes(padding)


def read_archive(source: pa.Buffer) -> tuple[dict[str, Member], str]:
    """The tables of an archive by their names, as parts of its memory, and the certificate.

    ``ValueError`` if ``write_archive`` cannot have written it.
    """
    tables: dict[str, Member] = {}
    certificate = None
    for name, content in _members(source):
        if certificate is not None:
            raise ValueError("must end with the certificate")
        table, _, ending = name.rpartition(".")
        if name == CERTIFICATE_FILE:
            certificate = content.to_pybytes().decode()
        elif ending not in _FORMATS or table in tables:
            raise ValueError("must have one file for each table")
        else:
            tables[table] = _FORMATS[ending], content
    if certificate is None:
        raise ValueError("must have the certificate")
    return tables, certificate


class _Stored(NamedTuple):
    """A file of an archive, as its header and the directory say it."""

    name: str
    start: int
    size: int
    check: int

    def header(self) -> bytes:
        """What is before the content. Both sizes are in a field of 64 bits."""
        further = _padding(self.start, self.name) + _LARGE.pack(_LARGE_ID, 16, self.size, self.size)
        sizes = _ELSEWHERE, _ELSEWHERE, len(self.name), len(further)
        return _LOCAL.pack(_FILE, _VERSION, 0, 0, 0, _DAY, self.check, *sizes) + self.name.encode() + further

    def entry(self) -> bytes:
        """What the directory says. Numbers that are too large for it are in a field of 64 bits."""
        large = ([self.size] * 2 if self.size > _MOST else []) + ([self.start] if self.start > _MOST else [])
        further = struct.pack(f"<HH{len(large)}Q", _LARGE_ID, 8 * len(large), *large) if large else b""
        further += _padding(self.start, self.name)
        size, start = (_ELSEWHERE if number > _MOST else number for number in (self.size, self.start))
        about = _VERSION, _SYSTEM, _VERSION, 0, 0, 0, _DAY, self.check, size, size, len(self.name), len(further)
        return _ENTRY.pack(b"PK\x01\x02", *about, 0, 0, 0, _ATTRIBUTES, start) + self.name.encode() + further


def _directory(files: Sequence[_Stored], start: int) -> bytes:
    """All that follows the files, which end at ``start``."""
    entries = b"".join(file.entry() for file in files)
    count, size, end = len(files), len(entries), start + len(entries)
    if start > _MOST:
        numbers = count, count, size, start
        entries += _LARGE_END.pack(b"PK\x06\x06", 44, _VERSION, _VERSION, 0, 0, *numbers)
        entries += _LOCATOR.pack(b"PK\x06\x07", 0, end, 1)
    return entries + _END.pack(b"PK\x05\x06", 0, 0, count, count, size, min(start, _ELSEWHERE), 0)


def _members(source: pa.Buffer) -> Iterator[tuple[str, pa.Buffer]]:
    """The files of an archive, one after the other. At its end is their directory, and nothing else."""
    place = 0
    files: list[_Stored] = []
    while _part(source, place, len(_FILE)).to_pybytes() == _FILE:
        *_, name_size, further = _LOCAL.unpack(_part(source, place, _LOCAL.size))
        if not 0 < name_size <= _MOST_NAME or not _LARGE.size <= further <= _MOST_NAME or len(files) > MOST_TABLES:
            raise ValueError("must have files that are stored as they are")
        name = _part(source, place + _LOCAL.size, name_size).to_pybytes().decode("ascii")
        begin = place + _LOCAL.size + name_size + further
        *_, size = _LARGE.unpack(_part(source, begin - _LARGE.size, _LARGE.size))
        content = _part(source, begin, size)
        files.append(_Stored(name, place, size, zlib.crc32(content)))
        if _part(source, place, begin - place).to_pybytes() != files[-1].header():
            raise ValueError("must have files that are stored as they are, with the stated checksum")
        yield name, content
        place = begin + size
    expected = _directory(files, place)
    if source.size != place + len(expected) or _part(source, place, len(expected)).to_pybytes() != expected:
        raise ValueError("must end with the directory of its files")


def _part(source: pa.Buffer, start: int, size: int) -> pa.Buffer:
    if start + size > source.size:
        raise ValueError("must be complete")
    return source.slice(start, size)
