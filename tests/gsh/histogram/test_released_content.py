"""The digest of the rows of a release: equal in every format, and another one after every change."""

import hashlib
import io
import json
import random
import struct
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsh.histogram.conversion import AnswerFormat, convert
from gsh.histogram.formats import ANY_SIZE, read_table
from gsh.histogram.json_answers import read_json
from gsh.histogram.released_content import ReleasedContent, content_of
from gsh.histogram.roles import Roles
from tests.gsh.histogram.test_answer_bytes import CASES, posted, rows_of
from tests.gsh.histogram.uploads import as_bytes, from_bytes

ROLES = Roles(("url", "country"), "count", ())
Row = tuple[str | None, str | None, float]


def table(rows: list[Row]) -> pa.Table:
    columns = [
        pa.array([row[place] for row in rows], kind)
        for place, kind in enumerate((pa.string(), pa.string(), pa.float64()))
    ]
    return pa.table(dict(zip(("url", "country", "count"), columns, strict=True)))


# From facts that were computed in another language too.
VECTORS: list[tuple[list[Row], str]] = [
    ([], "46d4c5c9e7d256251b5d52ee2839c7eae9808b0d3b801ce3f7a7f5ae7d521dc7"),
    ([("a", None, 12.5)], "dadf435890cabad9a6cae362519b61101f6d3a0570924d2a523f1aa00f72f5ce"),
    ([("a", "", 12.5)], "0bfa47c19ab0e605e5a74685a2dc196a1f3c36fb2fe20ef7a6a6f7891b89406b"),
    ([("b", "FR", 1), ("a", "σ", 0.1 + 0.2)], "1f3c37bdc43507cbfa3889cbc15f241050fab89b6650a41ec860668e7e8f64f4"),
]


@pytest.mark.parametrize(("rows", "digest"), VECTORS)
def test_the_digest_is_that_of_the_vectors(rows: list[Row], digest: str) -> None:
    assert content_of(table(rows), ROLES).sha256 == digest


def test_negative_zero_and_not_a_number_are_one_value_each() -> None:
    found = content_of(pa.table({"x": pa.array([-0.0, float("nan")])}), Roles((), "x", ()))

    assert found.sha256 == "4554d1e4c65703e707eb34ed6030d4945b363a1b61800219bfa9b373dcb49262"
    odd = np.array([0, 0xFFF8000000000001], np.uint64).view(np.float64)
    assert content_of(pa.table({"x": pa.array(odd)}), Roles((), "x", ())).sha256 == found.sha256


def transcribed(columns: list[tuple[str, str]], rows: list[tuple[Any, ...]]) -> str:
    """The definition of the document, cell by cell."""

    def lp(content: bytes) -> bytes:
        return struct.pack("<Q", len(content)) + content

    def cell(value: Any) -> bytes:
        if value is None:
            return b"\0"
        if isinstance(value, float):
            return b"\1" + lp(struct.pack("<d", value + 0.0))
        return b"\1" + lp((format(value.normalize(), "f") if isinstance(value, Decimal) else str(value)).encode())

    written = sorted(b"".join(map(cell, row)) for row in rows)
    parts = [
        lp(b"gsh table 1"),
        struct.pack("<Q", len(columns)),
        *(lp(part.encode()) for pair in columns for part in pair),
    ]
    return hashlib.sha256(b"".join([*parts, struct.pack("<Q", len(rows)), *map(lp, written)])).hexdigest()


TEXTS = st.none() | st.text("ab\0é\U0001f600", max_size=9)
DECIMALS = st.none() | st.decimals(-(10**6), 10**6, allow_nan=False, allow_infinity=False, places=3)
ROWS = st.lists(st.tuples(TEXTS, DECIMALS, st.integers(0, 2**53), st.floats(allow_nan=False)), max_size=12)


@given(ROWS)
def test_the_digest_is_the_one_of_the_definition(rows: list[tuple[Any, ...]]) -> None:
    kinds = (pa.string(), pa.decimal128(12, 3), pa.int64(), pa.float64())
    columns = [pa.array([row[place] for row in rows], kind) for place, kind in enumerate(kinds)]
    names = ("url", "price", "count", "likes")
    named = list(zip(names, ("text", "number", "number", "float"), strict=True))

    found = content_of(pa.table(dict(zip(names, columns, strict=True))), Roles(names[:2], "count", ("likes",)))

    assert found.sha256 == transcribed(named, rows)
    assert [(each.name, each.kind) for each in found.columns] == named
    assert found.rows == len(rows)


@given(ROWS, st.randoms())
def test_neither_order_nor_pieces_nor_encoding_matter(rows: list[tuple[Any, ...]], draw: random.Random) -> None:
    one = table([(url, None, likes) for url, _, _, likes in rows])
    order = list(range(len(rows)))
    draw.shuffle(order)
    cut = draw.randint(0, len(rows))
    other = one.take(pa.array(order, pa.int64()))
    other = pa.concat_tables([other.slice(0, cut), other.slice(cut)])
    other = other.set_column(0, "url", other["url"].dictionary_encode()).append_column("further", [[0] * len(rows)])

    assert content_of(other, ROLES) == content_of(one, ROLES)


@given(ROWS.filter(len), st.data())
def test_every_changed_cell_changes_the_digest(rows: list[tuple[Any, ...]], data: st.DataObject) -> None:
    """Rows are compared as a multiset: a copy of a row counts too."""
    listed: list[Row] = [(url, None, likes) for url, _, _, likes in rows]
    place = data.draw(st.integers(0, len(rows) - 1))
    url, country, likes = listed[place]
    changed = data.draw(
        st.sampled_from(
            [
                [*listed, listed[place]],
                listed[:place] + listed[place + 1 :],
                [*listed[:place], ("" if url is None else None, country, likes), *listed[place + 1 :]],
                [*listed[:place], (url, "", likes), *listed[place + 1 :]],
                [*listed[:place], (url, country, 1.5 if likes != 1.5 else 2.5), *listed[place + 1 :]],
            ]
        )
    )

    assert content_of(table(changed), ROLES).sha256 != content_of(table(listed), ROLES).sha256


def test_names_and_kinds_are_part_of_the_digest() -> None:
    one = pa.table({"url": ["1"], "count": [1.0]})
    digests = {
        content_of(one, Roles(("url",), "count", ())).sha256,
        content_of(one.rename_columns(["page", "count"]), Roles(("page",), "count", ())).sha256,
        content_of(one.rename_columns(["count", "url"]), Roles(("count",), "url", ())).sha256,
        content_of(one.set_column(0, "url", pa.array([1])), Roles(("url",), "count", ())).sha256,
        content_of(one.set_column(0, "url", pa.array([1.0])), Roles(("url",), "count", ())).sha256,
        content_of(one.set_column(0, "url", pa.array([b"1"])), Roles(("url",), "count", ())).sha256,
    }

    assert len(digests) == 6


FORMATS: tuple[AnswerFormat, ...] = ("arrow_file", "parquet", "csv", "json")


@pytest.mark.parametrize(("kind", "encoding"), CASES, ids=str)
def test_a_release_of_any_type_has_one_digest_in_every_format(kind: pa.DataType, encoding: str) -> None:
    roles = Roles(("key", "number"), "count", ())
    released = from_bytes(as_bytes("arrow", posted(kind, encoding, rows_of(kind, range(3, 17), True, 100), [])))
    stored = io.BytesIO()
    with pa.ipc.new_stream(stored, released.schema) as writer:
        writer.write_table(released)
    expected = content_of(released, roles)
    kinds = [column.kind for column in expected.columns]

    for form in FORMATS:
        sink = io.BytesIO()
        convert(pa.py_buffer(stored.getvalue()), "arrow", form, sink, roles, certificate="{}")
        assert content_of(read(sink.getvalue(), form, roles), roles, kinds) == expected, form


def read(content: bytes, form: str, roles: Roles) -> pa.Table:
    if form == "json":
        answer = read_json(pa.py_buffer(content), are_texts=True)
        return pa.table([*answer.keys, *map(pa.array, answer.numbers)], [*roles.keys, roles.count])
    types = dict.fromkeys((*roles.keys, roles.count), "string") if form == "csv" else None
    return read_table(pa.py_buffer(content), ANY_SIZE, types, is_written_here=True)[1]  # type: ignore[arg-type]


def test_a_column_of_another_kind_is_named() -> None:
    kinds = ["number", "text", "float"]

    with pytest.raises(ValueError, match="column url must have numbers"):
        content_of(table([("a", None, 1.0)]), ROLES, kinds)
    with pytest.raises(ValueError, match="column count must be of kind number, not float"):
        content_of(table([("1", None, 1.5)]), ROLES, ["number", "text", "number"])


def test_the_content_is_read_back_from_its_json() -> None:
    found = content_of(table(VECTORS[3][0]), ROLES)

    assert ReleasedContent.from_json(json.loads(json.dumps(found.to_json()))) == found
    assert found.roles == ROLES
