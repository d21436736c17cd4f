"""Tables as bytes, in both formats, and back."""

import io

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["FORMATS", "as_bytes", "as_parquet", "as_stream", "from_bytes"]

FORMATS = ("arrow", "parquet")


def as_stream(table: pa.Table, batch_rows: int | None = None, compression: str | None = None) -> bytes:
    sink = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table, batch_rows)
    return sink.getvalue()


def as_parquet(table: pa.Table, group_rows: int | None = None) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=group_rows)
    return sink.getvalue()


def as_bytes(kind: str, table: pa.Table, batch_rows: int | None = None) -> bytes:
    return as_parquet(table, batch_rows) if kind == "parquet" else as_stream(table, batch_rows)


def from_bytes(content: bytes) -> pa.Table:
    if content.startswith(b"PAR1"):
        return pq.read_table(io.BytesIO(content))
    return pa.ipc.open_stream(content).read_all()
