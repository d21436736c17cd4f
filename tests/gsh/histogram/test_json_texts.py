"""Group keys as JSON from columns: byte for byte what the JSON encoder writes for the keys themselves."""

import io
import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_core import to_json

from gsh.accounting.mechanism import Mechanism
from gsh.histogram.entropy import operating_system
from gsh.histogram.groups import check_groups
from gsh.histogram.json_answers import read_json, write_json
from gsh.histogram.keys.json_keys import LISTS, MIXED, columns_of, normalised
from gsh.histogram.keys.json_texts import keys_as_json
from gsh.histogram.noise import Noise

TEXTS = st.text(st.characters(codec="utf-8"), max_size=4) | st.sampled_from(list('"\\\x00\x1f\x7f\u2028é'))
PARTS = [part | st.none() for part in (TEXTS, st.integers(-(2**63), 2**63 - 1))] + [st.integers(-9, 9).map(float)]


def rows_of(parts: list[st.SearchStrategy[Any]]) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.tuples(*parts).map(list), max_size=5)


def written(keys: list[Any]) -> bytes:
    columns = columns_of(keys, "/keys")
    assert columns.layout != MIXED
    return keys_as_json(columns.columns, are_lists=columns.layout == LISTS)


@given(st.sampled_from(PARTS).flatmap(lambda part: st.lists(part, max_size=5)))
@settings(max_examples=300, deadline=None, derandomize=True)
def test_scalars_are_written_as_the_encoder_writes_them(keys: list[Any]) -> None:
    assert written(keys) == to_json([normalised(key) for key in keys])


@given(st.lists(st.sampled_from(PARTS), min_size=1, max_size=3).flatmap(rows_of))
@settings(max_examples=300, deadline=None, derandomize=True)
def test_lists_are_written_as_the_encoder_writes_them(keys: list[Any]) -> None:
    assert written(keys) == to_json([normalised(key) for key in keys])


@pytest.mark.parametrize("character", [*map(chr, range(0x81)), "\u2028", "\ud7ff", "\ue000", "\U0010ffff"])
def test_every_character_is_escaped_as_the_encoder_does(character: str) -> None:
    keys = [["a", f"b{character}c"], [character, None]]

    assert written(keys) == to_json(keys)


def test_a_part_of_a_column_is_written_alone() -> None:
    """Nothing before or after it in memory, such as the keys of dropped groups, can show."""
    column = pa.array(["dropped", "a", None, "b", 'quote"'], pa.large_string())

    assert keys_as_json([column.slice(1, 3)], are_lists=False) == b'["a",null,"b"]'
    assert keys_as_json([column.slice(1, 0)], are_lists=True) == b"[]"


def test_floating_point_numbers_are_written_as_the_encoder_writes_them() -> None:
    """1.0 as 1, and those that JSON does not have as texts."""
    column = pa.array([1.0, -0.5, 1e-300, None, float("nan"), float("-inf")], pa.float64())

    assert keys_as_json([column], are_lists=False) == b'[1,-0.5,1e-300,null,"nan","-inf"]'


@pytest.mark.parametrize("keys", [["a", "b", "c"], [["a", 1], ["b", 2], ["c", 3]], ["a", ["b", 1], 2]], ids=str)
def test_released_groups_are_written_as_a_converted_table_is(keys: list[Any]) -> None:
    """One function writes both: the groups of POST /release, and tables as JSON."""
    noise = Noise(Mechanism(c_u=1, tau=1, tau_star=10.0, sigma=1.0))
    checked = check_groups(noise, (), keys, pa.array([1000, 2, 3000], pa.int64()), {})
    kept = checked.release(operating_system)
    sink = io.BytesIO()
    checked.write(kept, sink, lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())

    released = sink.getvalue()
    assert json.loads(released) == {
        "keys": [keys[row] for row in kept.rows.tolist()],
        "counts": kept.counts.tolist(),
        "values": {},
    }
    again = io.BytesIO()
    write_json(read_json(pa.py_buffer(b'{"groups":%b,"certificate":{}}' % released)), "{}", again)
    if not any(isinstance(key, list) for key in keys) or all(isinstance(key, list) for key in keys):
        assert again.getvalue() == b'{"groups":%b,"certificate":{}}' % released
