"""The folder that Spark writes for a table: its parts in their order, and the digest of their rows.

Their rows are sorted by group key inside each part. The digest is what a commit records, so a change of any cell shows.
"""

import hashlib
import re
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from pyarrow import fs

from gsh.documents import object_in
from gsh.histogram.content import Column, digest_of
from gsh.histogram.formats import CERTIFICATE, TABLE
from gsh.histogram.keys.columns import key_of

__all__ = [
    "SPARK_CERTIFICATE",
    "PartsDigest",
    "digest_of_tables",
    "named_part",
    "parts_in",
    "spark_metadata",
]

SPARK_CERTIFICATE = "_certificate.json"
_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
_PART = re.compile(r"part-(\d+)-(\d+)\.parquet")
_VERSION = b"gsh output 1"
_VERSION_OF_TABLES = b"gsh output of tables 1"


def named_part(partition: int, file: int) -> str:
    """The name of a file of a partition."""
    return f"part-{partition:05d}-{file:03d}.parquet"


def parts_in(files: fs.FileSystem, folder: str) -> list[tuple[str, int]]:
    """The parts of a table in their order, each with its partition."""
    selected = files.get_file_info(fs.FileSelector(folder, allow_not_found=True))
    found = sorted(selected, key=lambda each: each.base_name)
    named = ((each.path, _PART.fullmatch(each.base_name)) for each in found)
    return [(path, int(name[1])) for path, name in named if name is not None]


def spark_metadata(schema: pa.Schema) -> dict[bytes, bytes]:
    """The certificate and the name of a table, which Spark keeps with the count, as other files have them; or nothing.

    An error of Python if the metadata of Spark are damaged.
    """
    text = (schema.metadata or {}).get(_SPARK_SCHEMA)
    if text is None:
        return {}
    found = [field["metadata"] for field in object_in(text)["fields"] if CERTIFICATE in field["metadata"]]
    if not found:
        return {}
    return {name.encode(): found[0][name].encode() for name in (CERTIFICATE, TABLE) if name in found[0]}


class PartsDigest:
    """The SHA-256 of the rows of a table, in the order of its parts."""

    def __init__(self) -> None:
        self._content = hashlib.sha256(_VERSION)
        self.rows = 0

    def add(self, partition: int, table: pa.Table) -> None:
        """The next part."""
        if len(table):
            self._content.update(partition.to_bytes(8, "little") + len(table).to_bytes(8, "little"))
            self._content.update(_content(table))
            self.rows += len(table)

    def hexdigest(self) -> str:
        return self._content.hexdigest()


def digest_of_tables(digests: Mapping[str, str]) -> str:
    """The digest of a release: that of its only table, which has the empty name, or one made of those of its tables."""
    if digests.keys() == {""}:
        return digests[""]
    content = hashlib.sha256(_VERSION_OF_TABLES)
    for name, digest in digests.items():
        content.update(len(name).to_bytes(8, "little") + name.encode() + bytes.fromhex(digest))
    return content.hexdigest()


def _content(table: pa.Table) -> bytes:
    """The digest of the rows of a part in their order."""
    order = np.arange(len(table), dtype=np.int32)
    named = [(name, key_of(table[name], table.schema.field(name), name)) for name in table.column_names]
    return digest_of([Column("", name, *key.content(order)) for name, key in named])
