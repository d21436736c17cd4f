"""Stored answers in other formats: the same rows whatever the way, for every type, and in one form."""

import io
import itertools
import json
import math
import uuid
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gsh.histogram.conversion import AnswerFormat, convert, write_rows
from gsh.histogram.csv_format import CsvType
from gsh.histogram.formats import Limits, read_table
from gsh.histogram.roles import Roles
from gsh.histogram.texts import texts_of
from tests.gsh.histogram.test_answer_bytes import CASES, answer, fill_free_memory, formats_of, posted, rows_of
from tests.gsh.histogram.uploads import as_bytes, from_bytes

ROLES = Roles(("key", "number"), "count", ())
FORMATS: tuple[AnswerFormat, ...] = ("arrow", "arrow_file", "parquet", "csv", "json")


def converted(content: bytes, stored: AnswerFormat, into: AnswerFormat, roles: Roles = ROLES, **further: Any) -> bytes:
    sink = io.BytesIO()
    convert(pa.py_buffer(content), stored, into, sink, roles, **further)
    return sink.getvalue()


def texts(table: pa.Table, name: str = "key") -> list[str | None]:
    return [text for chunk in table[name].chunks for text in texts_of(chunk).to_pylist()]


def read_csv(content: bytes, types: dict[str, CsvType]) -> pa.Table:
    return read_table(pa.py_buffer(content), Limits(10**6, 10**9), types)[1]


@pytest.mark.parametrize(("kind", "encoding"), CASES, ids=str)
def test_an_answer_of_any_type_has_the_same_rows_in_every_format(kind: pa.DataType, encoding: str) -> None:
    table = posted(kind, encoding, rows_of(kind, range(3, 17), True, 100), [])
    stored = answer(as_bytes("arrow", table))
    original = from_bytes(stored)
    expected = texts(original)
    numbers, counts = (original[name].to_pylist() for name in ("number", "count"))

    in_file = converted(stored, "arrow", "arrow_file")
    assert from_bytes(in_file).equals(original, check_metadata=True)
    assert converted(in_file, "arrow_file", "arrow") == stored

    parquet = converted(stored, "arrow", "parquet")
    assert from_bytes(parquet).schema.metadata == {b"certificate": b"{}"}
    assert texts(from_bytes(parquet)) == [None if text is None else in_parquet(kind, text) for text in expected]
    if "parquet" in formats_of(kind, table):
        assert converted(parquet, "parquet", "arrow") == stored

    lines = converted(stored, "arrow", "csv")
    cells = read_csv(lines, {"key": "string", "number": "int64", "count": "float64"})
    assert cells.to_pydict() == {"key": expected, "number": numbers, "count": counts}

    groups = json.loads(converted(stored, "arrow", "json"))
    assert [key[1] for key in groups["groups"]["keys"]] == numbers
    assert [None if key[0] is None else as_text(key[0], kind) for key in groups["groups"]["keys"]] == expected
    assert groups["groups"]["counts"] == counts
    assert groups["groups"]["values"] == {}
    assert groups["certificate"] == {}


def in_parquet(kind: pa.DataType, text: str) -> str:
    """Parquet has milliseconds, but no seconds."""
    return f"{text}.000" if kind in (pa.time32("s"), pa.timestamp("s")) else text


def as_text(value: Any, kind: pa.DataType) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if pa.types.is_floating(kind):
        return repr(float(value))
    return str(value)


@pytest.mark.parametrize(("stored", "into"), list(itertools.permutations(FORMATS, 2)))
def test_any_format_becomes_any_other(stored: AnswerFormat, into: AnswerFormat) -> None:
    """Each time in the same bytes, whatever memory held before. From JSON, key columns get names of their own."""
    table = posted(pa.string(), "plain", [("b", 1), ("", 2), (None, 3), ('q"\n,', 4), ("é", 5)], [])
    arrow = answer(as_bytes("arrow", table))
    types: dict[str, CsvType] = {"number": "int64", "key_2": "int64"}
    first = converted(arrow, "arrow", stored)
    fill_free_memory(0x61)
    second = converted(first, stored, into, csv_types=types, certificate="{}")
    fill_free_memory(0x62)

    assert converted(first, stored, into, csv_types=types, certificate="{}") == second
    roles = Roles(("key_1", "key_2"), "count", ()) if stored == "json" else ROLES
    last = from_bytes(converted(second, into, "arrow", roles, csv_types=types))
    assert last.rename_columns(["key", "number", "count"]).to_pydict() == from_bytes(arrow).to_pydict()


def test_the_same_format_is_the_same_bytes() -> None:
    assert converted(b"anything", "csv", "csv") == b"anything"


def test_the_roles_of_a_table_are_needed() -> None:
    with pytest.raises(ValueError, match="roles"):
        convert(pa.py_buffer(b""), "arrow", "json", io.BytesIO())


def json_answer(keys: list[Any], values: dict[str, list[float]] | None = None) -> bytes:
    groups = {"keys": keys, "counts": [1.5] * len(keys), "values": values or {}}
    return json.dumps({"groups": groups, "certificate": {"epsilon": 1e-05}}).encode()


@pytest.mark.parametrize(
    ("keys", "columns"),
    [
        (["a", None], {"key": ["a", None]}),
        ([1, 2**62], {"key": [1, 2**62]}),
        ([1, 2.5, None], {"key": [1.0, 2.5, None]}),
        ([2**53 + 1, 2.5], {"key": ["9007199254740993", "2.5"]}),
        ([2**64, 1], {"key": ["18446744073709551616", "1"]}),
        ([1, "é", None], {"key": ["1", '"é"', None]}),
        ([["a", 1], ["b", 2]], {"key_1": ["a", "b"], "key_2": [1, 2]}),
        ([["a", 1], ["b", "x"]], {"key_1": ["a", "b"], "key_2": ["1", '"x"']}),
        ([["a"], ["b"]], {"key_1": ["a", "b"]}),
        ([["a"], ["b", 1]], {"key": ['["a"]', '["b",1]']}),
        (["a", ["b", 1]], {"key": ['"a"', '["b",1]']}),
        ([["a", None], [None, None]], {"key_1": ["a", None], "key_2": [None, None]}),
        ([], {"key": []}),
    ],
    ids=str,
)
@pytest.mark.parametrize("into", ["arrow", "arrow_file", "parquet", "csv"])
def test_keys_of_json_become_columns(into: AnswerFormat, keys: list[Any], columns: dict[str, list[Any]]) -> None:
    sink = io.BytesIO()
    convert(pa.py_buffer(json_answer(keys)), "json", into, sink)

    if into == "csv":
        assert sink.getvalue().decode().splitlines()[0] == ",".join([*columns, "count"])
        assert len(sink.getvalue().splitlines()) == 1 + len(keys)
        return
    table = from_bytes(sink.getvalue())
    table.validate(full=True)
    assert table.to_pydict() == columns | {"count": [1.5] * len(keys)}
    assert table.schema.metadata == {b"certificate": b'{"epsilon":1e-05}'}
    assert not table.schema.field("count").nullable


def test_values_of_json_are_columns_of_their_own() -> None:
    """Whole numbers stay integers, and a name is never there twice."""
    sink = io.BytesIO()
    content = json_answer([["a", 1], ["b", 2]], {"key_2": [1, -2], "b": [0.5, 2]})
    convert(pa.py_buffer(content), "json", "arrow", sink)

    table = from_bytes(sink.getvalue())
    assert table.schema.names == ["_key_1", "_key_2", "count", "key_2", "b"]
    assert [str(kind) for kind in table.schema.types] == ["string", "int64", "double", "int64", "double"]
    roles = Roles(("_key_1", "_key_2"), "count", ("key_2", "b"))
    assert json.loads(converted(sink.getvalue(), "arrow", "json", roles)) == json.loads(content)


def test_one_key_column_gives_scalars_and_json_has_no_nan() -> None:
    key = pa.array([-math.inf, -0.5, 2.0, math.nan, None])
    table = pa.table({"key": key, "count": [1, 2, 3, 4, 5]}).replace_schema_metadata({"certificate": '{"a": 1}'})

    shown = converted(as_bytes("arrow", table), "arrow", "json", Roles(("key",), "count", ()))

    assert shown == (
        b'{"groups":{"keys":["-inf",-0.5,2,"nan",null],"counts":[1,2,3,4,5],"values":{}},"certificate":{"a": 1}}'
    )


def test_a_certificate_from_elsewhere_stands_in_for_that_of_csv() -> None:
    lines = b"key,count\na,1.5\n"
    roles = Roles(("key",), "count", ())

    assert json.loads(converted(lines, "csv", "json", roles, certificate='{"b":2}'))["certificate"] == {"b": 2}
    assert json.loads(converted(lines, "csv", "json", roles))["certificate"] is None
    parquet = io.BytesIO(converted(lines, "csv", "parquet", roles, certificate='{"b":2}'))
    assert pq.read_table(parquet).schema.metadata == {b"certificate": b'{"b":2}'}


def test_numbers_of_csv_are_integers_if_they_were_before() -> None:
    roles = Roles(("key",), "count", ("likes",))
    table = pa.table({"key": ["a"], "count": [7], "likes": [2.0]})
    lines = converted(as_bytes("arrow", table), "arrow", "csv", roles)

    assert from_bytes(converted(lines, "csv", "arrow", roles)).to_pydict() == table.to_pydict()
    assert [str(kind) for kind in from_bytes(converted(lines, "csv", "arrow", roles)).schema.types] == (
        ["string", "int64", "double"]
    )


def test_a_long_answer_is_converted_in_pieces() -> None:
    size = 150_000
    keys = pa.array([str(uuid.UUID(int=number)) for number in range(size)]).dictionary_encode()
    table = pa.table({"key": keys, "count": np.arange(size) / 4})
    roles = Roles(("key",), "count", ())
    stored = as_bytes("arrow", table, 40_000)

    groups = json.loads(converted(stored, "arrow", "json", roles))["groups"]

    assert groups["keys"] == keys.to_pylist()
    assert groups["counts"] == table["count"].to_pylist()
    assert converted(stored, "arrow", "csv", roles).count(b"\n") == size + 1


@pytest.mark.parametrize("kind", [pa.string_view(), pa.binary_view()], ids=str)
@pytest.mark.parametrize("rows", [0, 2, 200_000])
def test_a_dictionary_of_views_is_written_as_its_values(kind: pa.DataType, rows: int) -> None:
    """Parquet has no place for such a dictionary."""
    entries = pa.array([f"a text that is too long for a view: {row:06}" for row in range(rows)], pa.string())
    column = pa.DictionaryArray.from_arrays(pa.array(range(rows), pa.int32()), entries.cast(pa.binary()).cast(kind))
    table = pa.table({"key": column, "count": pa.array([1.5] * rows, pa.float64())})
    sink = io.BytesIO()

    write_rows(table, Roles(("key",), "count", ()), "parquet", "{}", sink)

    found = pq.read_table(sink)["key"]
    assert found.to_pylist() == column.to_pylist()
