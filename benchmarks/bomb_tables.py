"""Tables that are small as files and large in memory: Parquet, Arrow and CSV, by name.

Each has the columns ``url``, ``number`` and ``users``, so that the service reads it, unless its bomb is the schema.
"""

import io
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["Table", "arrow_bombs", "csv_bombs", "parquet_bombs", "with_larger_pages"]

Table = tuple[str, dict[str, Any], Callable[[], bytes]]
"""A name, the members that the request needs, and what makes the bytes."""

_MIB = 2**20
_CODECS = ("NONE", "SNAPPY", "GZIP", "ZSTD", "LZ4", "BROTLI")
_KEYS = {"key_columns": ["url", "number"], "count_column": "users"}


def parquet_bombs(scale: int) -> Iterator[Table]:
    """``scale`` is the limit of a table in bytes."""
    for codec in _CODECS:
        for size, rows in ((10_000, 500_000), (_MIB, 4_000), (_MIB, 100_000), (16 * _MIB, 1_000)):
            yield (
                f"parquet, {rows} times a text of {size}, {codec}",
                _KEYS,
                lambda s=size, r=rows, c=codec: _parquet(_repeated(s, r), compression=c),
            )
    for codec in ("GZIP", "ZSTD", "BROTLI"):
        for size in (scale, 4 * scale, 2**30):
            yield (
                f"parquet, a page of {size} bytes, {codec}",
                _KEYS,
                lambda s=size, c=codec: _parquet(_one_text(s), compression=c, use_dictionary=False),
            )
    for size, rows in ((_MIB, 1_000), (_MIB, 4_000), (64 * 1024, 40_000)):
        yield (
            f"parquet, {rows} prefixes of {size}",
            _KEYS,
            lambda s=size, r=rows: _many_groups(
                s,
                r,
                use_dictionary=False,
                column_encoding={"url": "DELTA_BYTE_ARRAY", "number": "PLAIN", "users": "PLAIN"},
                compression="ZSTD",
            ),
        )
    for size in (1_000, 100_000):
        yield (
            f"parquet, fixed width of {size}",
            _KEYS,
            lambda s=size: _parquet(
                _table(pa.array([bytes(s)] * (scale // s), pa.binary(s))), compression="ZSTD", use_dictionary=False
            ),
        )
    for items in (10**6, 5 * 10**7):
        yield (
            f"parquet, one list of {items} nulls",
            _KEYS,
            lambda n=items: _parquet(_nulls_in_a_list(n), compression="ZSTD"),
        )
    yield "parquet, 5 000 000 rows of nulls", _KEYS, lambda: _parquet(_table(pa.nulls(5_000_000, pa.string())))
    yield (
        "parquet, 50 000 000 rows",
        _KEYS,
        lambda: _parquet(_table(pa.nulls(5 * 10**7, pa.int8())), compression="ZSTD"),
    )
    yield "parquet, 20 000 columns", _KEYS, lambda: _parquet(pa.table({f"c{place}": [1] for place in range(20_000)}))
    yield (
        "parquet, 2 000 row groups",
        _KEYS,
        lambda: _parquet(_table(pa.array(map(str, range(2_000)))), row_group_size=1),
    )
    yield (
        "parquet, metadata of 64 MiB",
        _KEYS,
        lambda: _parquet(_repeated(1, 10).replace_schema_metadata({"note": "x" * 64 * _MIB}), store_schema=True),
    )
    for claimed in (2**27 - 1, 2**30):
        yield f"parquet, a page that claims {claimed} bytes", _KEYS, lambda c=claimed: with_larger_pages(c)


def arrow_bombs(scale: int) -> Iterator[Table]:
    for codec in ("lz4", "zstd"):
        for size in (scale, 4 * scale, 2**30):
            yield f"arrow, a text of {size} bytes, {codec}", _KEYS, lambda s=size, c=codec: _stream(_one_text(s), c)
            yield (
                f"arrow, an entry of {size} bytes, {codec}",
                _KEYS,
                lambda s=size, c=codec: _stream(_encoded(_one_text(s)), c),
            )
        for rows in (5_000_000, 50_000_000):
            yield (
                f"arrow, {rows} rows, {codec}",
                _KEYS,
                lambda r=rows, c=codec: _stream(_table(pa.array(np.zeros(r, np.int8))), c),
            )
        yield (
            f"arrow file, a text of {4 * scale} bytes, {codec}",
            _KEYS,
            lambda c=codec: _stream(_one_text(4 * scale), c, pa.ipc.new_file),
        )
    for size, rows in ((_MIB, 1_000), (_MIB, 100_000), (_MIB, 2_000_000), (64 * _MIB, 100_000)):
        yield f"arrow, {rows} rows of one entry of {size}", _KEYS, lambda s=size, r=rows: _stream(_one_entry(s, r))
        yield f"arrow, {rows} rows in one run of {size}", _KEYS, lambda s=size, r=rows: _stream(_one_run(s, r))
        yield f"arrow, {rows} views of one text of {size}", _KEYS, lambda s=size, r=rows: _stream(_views(s, r))
    for batches in (10_000, 200_000):
        yield f"arrow, {batches} batches of one row", _KEYS, lambda n=batches: _batches(n, 1)
        yield f"arrow, {batches} batches of no row", _KEYS, lambda n=batches: _batches(n, 0)
    for columns in (20_000, 100_000):
        yield (
            f"arrow, {columns} columns",
            _KEYS,
            lambda n=columns: _stream(pa.table([pa.array([1])] * n, names=[f"c{place}" for place in range(n)])),
        )
    yield (
        "arrow, metadata of 64 MiB",
        _KEYS,
        lambda: _stream(_repeated(1, 10).replace_schema_metadata({"note": "x" * 64 * _MIB})),
    )
    yield "arrow, 5 000 000 nulls", _KEYS, lambda: _stream(_table(pa.nulls(5_000_000)))
    yield "arrow, dictionaries that replace each other", _KEYS, lambda: _replaced(200, _MIB // 2)


def csv_bombs(scale: int) -> Iterator[Table]:
    scale -= 2**16  # with the rest of the form, the body must not be above its limit
    kinds = {
        "string": b"a",
        "int64": b"1",
        "float64": b"1",
        "boolean": b"true",
        "date": b"2026-11-16",
        "decimal": b"1",
        "timestamp": b"2026-11-16T12:30:00",
    }
    for kind, cell in kinds.items():
        types = {"url": kind, "number": "int64", "users": "int64"}
        line = cell + b",1,1\n"
        for rows in (4_900_000, scale // len(line) - 1):
            yield f"csv, {rows} rows of {kind}", _csv(types), lambda r=rows, each=line: b"url,number,users\n" + each * r
    texts = _csv({"url": "string", "number": "int64", "users": "int64"})
    head = b"url,number,users\n"
    yield "csv, empty cells", texts, lambda: head + b",,\n" * (scale // 3 - 100)
    yield "csv, one cell", texts, lambda: head + b"a" * (scale - 100) + b",1,1\n"
    yield "csv, one quoted cell", texts, lambda: head + b'"' + b"a" * (scale - 100) + b'",1,1\n'
    yield "csv, quotes only", texts, lambda: head + b'"' * (scale - 100)
    yield "csv, quotes in cells", texts, lambda: head + b'"""""",1,1\n' * (scale // 11 - 10)
    yield "csv, line ends", texts, lambda: head + b"\n" * (scale - 100)
    yield "csv, commas", texts, lambda: head + b"," * (scale - 100)
    yield "csv, a header of commas", texts, lambda: b"," * (scale - 100)
    yield "csv, a header of one name", texts, lambda: b"a" * (scale - 100)
    yield "csv, cells of emoji", texts, lambda: head + "😀,1,1\n".encode() * (scale // 9 - 10)
    many = {f"c{place}": "int64" for place in range(300)}
    yield "csv, 300 columns", _csv(many), lambda: ",".join(many).encode() + (b"\n" + b"," * 299) * (scale // 301)
    yield (
        "csv, 300 columns of decimals",
        _csv(dict.fromkeys(many, "decimal")),
        lambda: ",".join(many).encode() + (b"\n" + b"1," * 299 + b"1") * (scale // 610),
    )


def with_larger_pages(claimed: int) -> bytes:
    """A Parquet file whose first page claims to have more bytes than it has."""
    size = (2**20 if claimed < 2**27 else 2**27) + 5  # its length has as many bytes in the header as the claimed one
    content = bytearray(_parquet(_one_text(size), compression="ZSTD", use_dictionary=False))
    page = pq.ParquetFile(io.BytesIO(content)).metadata.row_group(0).column(0).data_page_offset
    header = bytes(content[page : page + 40])
    for stated in range(size, size + 64):
        if (place := header.find(_varint(2 * stated))) >= 0:
            content[page + place : page + place + len(_varint(2 * stated))] = _varint(2 * claimed)
            return bytes(content)
    raise AssertionError("the length of the page was not found")


def _varint(number: int) -> bytes:
    written = bytearray()
    while number >= 128:
        written.append(number % 128 + 128)
        number //= 128
    return bytes([*written, number])


def _csv(types: dict[str, str]) -> dict[str, Any]:
    *keys, count = types
    return {"key_columns": keys[:100], "count_column": count, "csv_types": types}


def _table(urls: pa.Array) -> pa.Table:
    rows = len(urls)
    number = pa.array(np.arange(rows, dtype=np.int32) if rows <= 5_000_000 else np.zeros(rows, np.int8))
    return pa.table({"url": urls, "number": number, "users": pa.array(np.ones(rows, np.int8))})


def _one_text(size: int) -> pa.Table:
    return _table(pa.array([bytes(size)], pa.large_binary()))


def _encoded(table: pa.Table) -> pa.Table:
    return table.set_column(0, "url", table["url"].dictionary_encode())


def _one_entry(size: int, rows: int) -> pa.Table:
    indices = pa.array(np.zeros(rows, np.int8))
    return _table(pa.DictionaryArray.from_arrays(indices, pa.array(["x" * size])))


def _one_run(size: int, rows: int) -> pa.Table:
    return _table(pa.RunEndEncodedArray.from_arrays(pa.array([rows], pa.int32()), pa.array(["x" * size])))


def _views(size: int, rows: int) -> pa.Table:
    view = np.array([size, int.from_bytes(b"xxxx", "little"), 0, 0], np.int32)
    buffers = [None, pa.py_buffer(np.tile(view, rows)), pa.py_buffer(b"x" * size)]
    return _table(pa.Array.from_buffers(pa.string_view(), rows, buffers))


def _repeated(size: int, rows: int) -> pa.Table:
    """In Parquet: one entry of a dictionary, and a run of its index."""
    return _one_entry(size, rows).replace_schema_metadata(None)


def _nulls_in_a_list(items: int) -> pa.Table:
    offsets = pa.array([0, items], pa.int32())
    return _table(pa.ListArray.from_arrays(offsets, pa.nulls(items, pa.int8())))


def _parquet(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **{"compression": "ZSTD", "store_schema": False, "write_statistics": False, **options})
    return sink.getvalue()


def _many_groups(size: int, rows: int, **options: Any) -> bytes:
    """Texts that begin alike, which are written group by group: they are too large for one array."""
    sink = io.BytesIO()
    each = max(1, 64 * _MIB // size)
    first = _table(pa.array(["x" * size] * min(each, rows)))
    with pq.ParquetWriter(sink, first.schema, store_schema=False, write_statistics=False, **options) as writer:
        for _ in range(-(-rows // each)):
            writer.write_table(first)
    return sink.getvalue()


def _stream(table: pa.Table, codec: str | None = None, new: Any = pa.ipc.new_stream) -> bytes:
    sink = io.BytesIO()
    with new(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _batches(count: int, rows: int) -> bytes:
    table = _table(pa.array(["x"])).slice(0, rows)
    batch = pa.record_batch([column.combine_chunks() for column in table.columns], table.schema)
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        for _ in range(count):
            writer.write_batch(batch)
    return sink.getvalue()


def _replaced(batches: int, size: int) -> bytes:
    """Each batch has a dictionary of its own."""
    tables = [_encoded(_table(pa.array([f"{place:08}" + "x" * size]))) for place in range(batches)]
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, tables[0].schema) as writer:
        for table in tables:
            writer.write_table(table)
    return sink.getvalue()
