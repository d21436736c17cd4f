"""Parquet files of every encoding are read as pyarrow reads them, and none becomes larger than it may."""

import datetime
import decimal
import io
import resource
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gsh.results.locations import TooLarge
from gsh.results.parquet_files import read_parquet

ROWS = 3000
TEXTS = [f"page {row % 700}" if row % 9 else None for row in range(ROWS)]
TABLE = pa.table(
    {
        "text": TEXTS,
        "large": pa.array(TEXTS, pa.large_string()),
        "view": pa.array(TEXTS, pa.string_view()),
        "kind": pa.array(TEXTS).dictionary_encode(),
        "raw": [bytes([row % 251]) * (row % 5) for row in range(ROWS)],
        "json": pa.array(["{}"] * ROWS, pa.json_()),
        "id": pa.array([row.to_bytes(16, "big") for row in range(ROWS)], pa.uuid()),
        "price": [decimal.Decimal(row) / 4 for row in range(ROWS)],
        "day": pa.array(range(ROWS), pa.date32()),
        "at": [datetime.datetime(2026, 1, 1) + datetime.timedelta(minutes=row) for row in range(ROWS)],
        "count": np.arange(ROWS) / 4,
        "likes": range(ROWS),
    }
)
WAYS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "zstd": {"compression": "zstd"},
    "not compressed": {"compression": "none"},
    "pages of version 2": {"data_page_version": "2.0"},
    "no dictionaries": {"use_dictionary": False},
    "no schema of Arrow": {"store_schema": False},
    "many groups": {"row_group_size": 100, "data_page_size": 64},
    "numbers as differences": {"use_dictionary": False, "column_encoding": {"likes": "DELTA_BINARY_PACKED"}},
    "int96": {"use_deprecated_int96_timestamps": True},
    "checksums": {"write_page_checksum": True, "write_page_index": True},
}
MUCH = 1 << 30


def written(table: pa.Table, **way: Any) -> pa.Buffer:
    sink = io.BytesIO()
    pq.write_table(table, sink, **way)
    return pa.py_buffer(sink.getvalue())


@pytest.mark.parametrize("way", WAYS)
def test_it_reads_what_pyarrow_reads(way: str) -> None:
    source = written(TABLE, **WAYS[way])

    found = read_parquet(source, MUCH)

    expected = pq.read_table(pa.BufferReader(source), coerce_int96_timestamp_unit="us")
    assert found.schema.equals(expected.schema, check_metadata=True)
    assert found.equals(expected)


@settings(max_examples=30)
@given(rows=st.integers(0, 300), seed=st.integers(0, 999), way=st.sampled_from(sorted(WAYS)))
def test_it_reads_some_rows_of_any_number(rows: int, seed: int, way: str) -> None:
    chosen = np.random.default_rng(seed).integers(0, ROWS, rows)
    table = TABLE.drop_columns(["view"]).take(pa.array(chosen, pa.int64()))
    source = written(table, **WAYS[way])

    expected = pq.read_table(pa.BufferReader(source), coerce_int96_timestamp_unit="us")
    assert read_parquet(source, MUCH).equals(expected)


def long_text(rows: int, size: int) -> pa.Table:
    return pa.table({"text": ["x" * size]}).take(pa.array([0] * rows))


LIMIT = 1 << 24
BOMBS = {
    "a dictionary": lambda: written(
        pa.table({"text": pa.DictionaryArray.from_arrays(pa.array([0] * 70_000, pa.int32()), ["x" * 2**20])}),
        store_schema=False,
        compression="zstd",
    ),
    "pages": lambda: written(long_text(100, 2**20), use_dictionary=False, compression="zstd"),
    "equal numbers": lambda: written(pa.table({"n": pa.array(np.zeros(3_000_000))}), compression="zstd"),
    "nulls": lambda: written(pa.table({"n": pa.nulls(3_000_000, pa.int64())}), compression="zstd"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_small_file_that_becomes_large_is_refused(name: str) -> None:
    """Before it takes the memory: the peak of the process does not rise by as much."""
    source = BOMBS[name]()
    assert source.size < LIMIT / 100
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    with pytest.raises(TooLarge):
        read_parquet(source, LIMIT)

    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2 * LIMIT / 1024


def test_a_page_that_says_less_than_it_has_is_refused() -> None:
    """Its header is believed: Arrow makes no more of a page than it says."""
    source = written(long_text(100, 2**20), use_dictionary=False, compression="zstd")
    content = bytearray(source.to_pybytes())
    start = pq.ParquetFile(pa.BufferReader(source)).metadata.row_group(0).column(0).data_page_offset
    assert content[start : start + 3] == b"\x15\x00\x15"  # the kind of the page, and then its size as a varint
    end = next(place for place in range(start + 3, start + 9) if content[place] < 128)
    content[start + 3 : end + 1] = b"\x80" * (end - start - 3) + b"\x01"
    content[start + 3] |= 64

    with pytest.raises((OSError, ValueError)) as refused:
        read_parquet(pa.py_buffer(bytes(content)), LIMIT)
    assert not isinstance(refused.value, TooLarge)


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
def test_texts_as_changes_of_texts_are_refused(encoding: str) -> None:
    source = written(pa.table({"text": ["a", "b"]}), use_dictionary=False, column_encoding={"text": encoding})

    with pytest.raises(OSError, match="Not yet implemented"):
        read_parquet(source, MUCH)
