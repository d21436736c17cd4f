"""Tables as bytes, in the formats that keep types, and back."""

import io

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["FORMATS", "TYPED_FORMATS", "as_bytes", "as_file", "as_parquet", "as_stream", "from_bytes"]

FORMATS = ("arrow", "parquet")
TYPED_FORMATS = ("arrow", "arrow_file", "parquet")


def as_stream(table: pa.Table, batch_rows: int | None = None, compression: str | None = None) -> bytes:
    sink = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table, batch_rows)
    return sink.getvalue()


def as_file(table: pa.Table, batch_rows: int | None = None) -> bytes:
    sink = io.BytesIO()
    table = table.unify_dictionaries()  # a file has one dictionary for each column
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, batch_rows)
    return sink.getvalue()


def as_parquet(table: pa.Table, group_rows: int | None = None) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=group_rows)
    return sink.getvalue()


def as_bytes(kind: str, table: pa.Table, batch_rows: int | None = None) -> bytes:
    return {"arrow": as_stream, "arrow_file": as_file, "parquet": as_parquet}[kind](table, batch_rows)


def from_bytes(content: bytes) -> pa.Table:
    if content.startswith(b"PAR1"):
        return pq.read_table(io.BytesIO(content))
    if content.startswith(b"ARROW1"):
        return pa.ipc.open_file(content).read_all()
    return pa.ipc.open_stream(content).read_all()
