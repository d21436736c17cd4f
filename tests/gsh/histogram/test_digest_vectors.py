"""The test vectors of the content digest, which other implementations can check themselves by."""

import base64
import datetime
import hashlib
import json
import struct
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from docs.generate import ROOT
from gsh.histogram.released_content import content_of
from gsh.histogram.roles import Roles

VECTORS = json.loads((ROOT / "openapi" / "content-digests.json").read_text())["vectors"]


def transcribed(columns: list[dict[str, str]], rows: list[list[Any]]) -> str:
    """The definition of docs/certificate.md, for the JSON of the vectors."""

    def lp(content: bytes) -> bytes:
        return struct.pack("<Q", len(content)) + content

    def cell(kind: str, value: Any) -> bytes:
        if value is None:
            return b"\0"
        if kind == "float":
            nan = bytes.fromhex("000000000000f87f")
            return b"\1" + lp(nan if value == "NaN" else struct.pack("<d", float(value) + 0.0))
        return b"\1" + lp(value.encode())

    written = sorted(
        b"".join(cell(each["kind"], value) for each, value in zip(columns, row, strict=True)) for row in rows
    )
    head = [lp(b"gsh table 1"), struct.pack("<Q", len(columns))]
    head += [lp(each[name].encode()) for each in columns for name in ("name", "kind")]
    return hashlib.sha256(b"".join([*head, struct.pack("<Q", len(rows)), *map(lp, written)])).hexdigest()


def parsed(kind: str, text: Any) -> Any:
    if text is None:
        return None
    return _PARSED.get(kind, lambda each: each)(text)


_PARSED: dict[str, Any] = {
    "float": float,
    "number": Decimal,
    "boolean": "true".__eq__,
    "date": datetime.date.fromisoformat,
    "time": datetime.time.fromisoformat,
    "timestamp": datetime.datetime.fromisoformat,
    "instant": datetime.datetime.fromisoformat,
    "duration": lambda text: datetime.timedelta(seconds=float(text.removeprefix("PT").removesuffix("S"))),
    "binary": base64.b64decode,
    "uuid": lambda text: uuid.UUID(text).bytes,
}
_TYPES: dict[str, Any] = {
    "text": pa.string(),
    "float": pa.float64(),
    "number": pa.decimal128(38, 6),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us"),
    "instant": pa.timestamp("ns", "Europe/Berlin"),
    "duration": pa.duration("us"),
    "binary": pa.binary(),
    "uuid": pa.uuid(),
}


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_the_vectors_are_what_the_definition_and_the_library_give(vector: dict[str, Any]) -> None:
    columns, rows = vector["columns"], vector["rows"]
    names = [each["name"] for each in columns]
    arrays = [
        pa.array([parsed(each["kind"], row[place]) for row in rows], _TYPES[each["kind"]])
        for place, each in enumerate(columns)
    ]

    found = content_of(pa.table(dict(zip(names, arrays, strict=True))), Roles(tuple(names[:-1]), names[-1], ()))

    assert found.sha256 == transcribed(columns, rows) == vector["sha256"]


def test_the_vectors_have_every_kind() -> None:
    assert {each["kind"] for vector in VECTORS for each in vector["columns"]} == {*_TYPES}
