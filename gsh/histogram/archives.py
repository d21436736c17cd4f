"""Answers of several tables: a zip archive with one file per table, and the certificate.

    <name>.<ending>      a table, in the format in which it came
    certificate.json     the certificate of all tables together

Files are stored, not compressed: the formats of tables compress their columns themselves. So to read an archive is to
find places in it, and no archive becomes larger when it is read. Each file begins at a multiple of 64 bytes, as Arrow
likes it. Given the files, its bytes do not depend on anything else: all have the same time.
"""

import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import IO, TypeAlias

import pyarrow as pa

from gsh.histogram.file_formats import Format

__all__ = ["CERTIFICATE_FILE", "Member", "Tables", "file_named", "formats_of", "read_archive", "write_archive"]

CERTIFICATE_FILE = "certificate.json"
_ENDINGS: Mapping[Format, str] = {"arrow": "arrows", "arrow_file": "arrow", "parquet": "parquet", "csv": "csv"}

Tables: TypeAlias = Mapping[str, tuple[Format, Callable[[IO[bytes]], None]]]
"""The format of each table, and what writes it to a file, by its name."""
Member: TypeAlias = tuple[Format, pa.Buffer]

_TIME = (1980, 1, 1, 0, 0, 0)
_FORMATS = {ending: kind for kind, ending in _ENDINGS.items()}
_LOCAL = struct.Struct("<4sHHHHHIIIHH")
_PADDING, _PADDING_ID, _ALIGNMENT = struct.Struct("<HH"), 0xD935, 64
_LARGE = struct.Struct("<HHQQ")
_FILE, _DIRECTORY = b"PK\x03\x04", b"PK\x01\x02"
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
    info.create_system, info.external_attr = 3, 0o600 << 16  # not the system that writes it
    assert archive.fp is not None
    padding = -(archive.fp.tell() + _LOCAL.size + len(name) + _PADDING.size + _LARGE.size) % _ALIGNMENT
    info.extra = _PADDING.pack(_PADDING_ID, padding) + bytes(padding)
    return archive.open(info, "w", force_zip64=True)


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


def _members(source: pa.Buffer) -> Iterator[tuple[str, pa.Buffer]]:
    """The files of an archive, one after the other, until its directory begins."""
    place = 0
    while (start := _part(source, place, 4).to_pybytes()) == _FILE:
        fields = _LOCAL.unpack(_part(source, place, _LOCAL.size))
        flags, method, check, name_size, further = fields[2], fields[3], fields[6], fields[9], fields[10]
        is_plain = not flags & ~0x800 and method == zipfile.ZIP_STORED
        if not is_plain or name_size > _MOST_NAME or not _LARGE.size <= further <= _MOST_NAME:
            raise ValueError("must have files that are stored as they are")
        place += _LOCAL.size
        name = _part(source, place, name_size).to_pybytes().decode()
        _, _, size, packed = _LARGE.unpack(_part(source, place + name_size + further - _LARGE.size, _LARGE.size))
        content = _part(source, place + name_size + further, size)
        if size != packed or zlib.crc32(content) != check:
            raise ValueError("must have files with the stated checksum")
        yield name, content
        place += name_size + further + size
    if start != _DIRECTORY:
        raise ValueError("must have a directory after its files")


def _part(source: pa.Buffer, start: int, size: int) -> pa.Buffer:
    if start + size > source.size:
        raise ValueError("must be complete")
    return source.slice(start, size)
