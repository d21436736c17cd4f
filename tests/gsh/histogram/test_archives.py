"""Archives of tables: read as they are written, and every other byte is refused."""

import io
import zipfile
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from gsh.accounting.mechanism import MOST_TABLES
from gsh.histogram import archives
from gsh.histogram.archives import read_archive, write_archive

FILES = {"by_url": b"x" * 100, "a.b-c_d": b"", "z" * 64: b"PK\x05\x06" * 50}


def writing(content: bytes) -> Callable[[Any], None]:
    return lambda file: file.write(content)  # type: ignore[no-any-return]


def written(files: dict[str, bytes], certificate: str = '{"ε": 1}') -> bytes:
    sink = io.BytesIO()
    write_archive(sink, {name: ("arrow", writing(content)) for name, content in files.items()}, certificate)
    return sink.getvalue()


def read(body: bytes) -> tuple[dict[str, bytes], str]:
    members, certificate = read_archive(pa.py_buffer(body))
    return {name: content.to_pybytes() for name, (_, content) in members.items()}, certificate


@pytest.mark.parametrize("count", [0, 1, MOST_TABLES])
def test_an_archive_is_read_as_it_was_written(count: int) -> None:
    files = {f"table-{place}": bytes([place]) * place * 7 for place in range(count)}

    assert read(written(files)) == (files, '{"ε": 1}')
    assert read(written(FILES)) == (FILES, '{"ε": 1}')


def test_every_changed_byte_is_refused() -> None:
    body = written(FILES)
    for place in range(len(body)):
        for bit in (1, 128):
            changed = bytearray(body)
            changed[place] ^= bit
            with pytest.raises(ValueError):  # noqa: PT011
                read(bytes(changed))


def evil() -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        archive.writestr("../../evil.csv", "a,b\n")
    return sink.getvalue()


def commented(body: bytes) -> bytes:
    sink = io.BytesIO(body)
    with zipfile.ZipFile(sink, "a") as archive:
        archive.comment = b"x"
    return sink.getvalue()


def appended(body: bytes) -> bytes:
    sink = io.BytesIO(body)
    with zipfile.ZipFile(sink, "a") as archive:
        archive.writestr("../../evil.csv", "a,b\n")
    return sink.getvalue()


WRONG: dict[str, Callable[[bytes], bytes]] = {
    "another archive after it": lambda body: body + evil(),
    "another directory": lambda body: body[: body.index(b"PK\x01\x02")] + evil(),
    "another archive between": lambda body: (
        body[: body.index(b"PK\x01\x02")] + evil() + body[body.index(b"PK\x01\x02") :]
    ),
    "another file": appended,
    "a comment": commented,
    "a byte more": lambda body: body + b"\0",
    "a byte less": lambda body: body[:-1],
    "no directory": lambda body: body[: body.index(b"PK\x01\x02")],
    "twice": lambda body: body * 2,
    "too many": lambda _body: written({f"table-{place}": b"" for place in range(MOST_TABLES + 1)}),
}


@pytest.mark.parametrize("name", WRONG)
def test_no_other_program_finds_other_files_in_an_archive(name: str) -> None:
    """One with valid files and then another archive was taken, and zipfile listed ../../evil.csv in it."""
    body = WRONG[name](written(FILES))

    with pytest.raises(ValueError, match="must"):
        read(body)


@pytest.mark.parametrize("large", [1 << 31, (1 << 31) - 1, 1 << 32, 1 << 40])
def test_the_directory_of_a_large_archive_is_that_of_zipfile(large: int) -> None:
    sink = io.BytesIO()
    archive = zipfile.ZipFile(sink, "w")
    files = [
        archives._Stored("a.arrows", 0, large, 5),
        archives._Stored("b.csv", large + 64, 7, 6),
        archives._Stored("c.csv", large + 192, large, 2**32 - 1),
    ]
    for file in files:
        info = zipfile.ZipInfo(file.name, archives._TIME)
        info.create_system, info.external_attr = 3, 0o600 << 16
        info.create_version = info.extract_version = 45
        info.header_offset, info.CRC, info.file_size, info.compress_size = file.start, file.check, file.size, file.size
        info.extra = archives._padding(file.start, file.name)
        archive.filelist.append(info)
    start = 2 * large + 256
    end = start + len(b"".join(file.entry() for file in files))
    sink.tell = lambda: end  # type: ignore[method-assign]
    archive.start_dir = start
    archive._write_end_record()  # type: ignore[attr-defined]
    archive.fp = None

    assert archives._directory(files, start) == sink.getvalue()
