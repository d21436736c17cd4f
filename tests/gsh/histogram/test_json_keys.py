"""Group keys in JSON: sorted as documented, null last, equal numbers are the same group key, and others refused."""

import io
import itertools
import json
import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_core import to_json

from gsh.accounting.mechanism import Mechanism
from gsh.errors import InvalidGroups
from gsh.histogram.entropy import operating_system
from gsh.histogram.groups import check_groups
from gsh.histogram.json_answers import read_json, write_json
from gsh.histogram.keys.json_keys import LISTS, MIXED, columns_of, keys_as_json, normalised
from gsh.histogram.keys.order import unique_order
from gsh.histogram.noise import Noise

ASCENDING: list[Any] = [
    *(
        -(10**400),
        -1e300,
        -(2**63),
        -(2**53) - 1,
        -(2**53),
        -1.5,
        -1,
        -0.5,
        -1e-300,
        0,
        1e-300,
        0.5,
        1,
        1.5,
        2**53,
        2**53 + 1,
        2**63,
        1e300,
    ),
    *("", "0", "A", "a", "a\x00", "aa", "é", "\U0001f600"),
    *([0], [0, 0], [0, "a"], [0, None], [0.5], [1, 2, 3], [1, "a"], [""], ["", 0], ["a"], ["a", "FR"], ["a", "US"]),
    *(["a", None], ["b", 1], [None], [None, 0], [None, None], None),
]


def order_of(keys: list[Any]) -> list[int]:
    return unique_order(columns_of(keys, "/keys").columns, len(keys), "/keys").tolist()


def test_numbers_then_strings_then_lists() -> None:
    shuffled = random.Random(1).sample(ASCENDING, len(ASCENDING))

    assert [shuffled[place] for place in order_of(shuffled)] == ASCENDING


@pytest.mark.parametrize(("first", "second"), list(itertools.combinations(range(0, len(ASCENDING), 3), 2)))
def test_any_two_keys_are_in_that_order(first: int, second: int) -> None:
    assert order_of([ASCENDING[second], ASCENDING[first]]) == [1, 0]


@pytest.mark.parametrize(
    "keys",
    [
        *(["a", "a"], [1, 1], [1, 1.0], [0.0, -0.0], [["a", 1], ["a", 1.0]], [["a"], ["b"], ["a"]]),
        *([2**53, 2.0**53, "x"], [None, None], ["a", None, None], [None, 1, None], [["a", None], ["a", None]]),
        [None, "a", 1, None],
    ],
    ids=str,
)
def test_the_same_key_twice_is_refused(keys: list[Any]) -> None:
    with pytest.raises(InvalidGroups, match="unique"):
        order_of(keys)


@pytest.mark.parametrize("keys", [["1", 1], ["a", ["a"]], [["a"], ["a", "a"]], [2**53, 2**53 + 1, 0.5]], ids=str)
def test_similar_group_keys_are_different(keys: list[Any]) -> None:
    assert sorted(order_of(keys)) == list(range(len(keys)))


@pytest.mark.parametrize(
    "key",
    [
        *(True, {}, [], [True], [["a"]], [[None]], [None] * 101, ["a"] * 101),
        *(float("nan"), float("inf"), [1.0, float("nan")]),
    ],
    ids=lambda key: str(key)[:20],
)
@pytest.mark.parametrize("others", [[], ["b"], [["b", 1]], [7]], ids=str)
def test_an_invalid_group_key_is_refused_among_valid_ones(key: Any, others: list[Any]) -> None:
    with pytest.raises(InvalidGroups):
        order_of([key, *others])


SCALARS = (
    st.none()
    | st.text(st.sampled_from("ab"), max_size=2)
    | st.integers(-2, 2)
    | st.sampled_from([0.5, -0.5, 1.0, 2.0**60])
)


def python_key(key: Any) -> tuple[Any, ...]:
    if isinstance(key, list):
        return (1, [python_key(part) for part in key])
    if key is None:
        return (2,)
    return (0, (1, 0, key) if isinstance(key, str) else (0, key, ""))


@given(st.lists(SCALARS | st.lists(SCALARS, min_size=1, max_size=3), min_size=1, max_size=30))
@settings(max_examples=300, deadline=None, derandomize=True)
def test_the_order_is_that_of_a_plain_sort(keys: list[Any]) -> None:
    expected = sorted(range(len(keys)), key=lambda place: python_key(keys[place]))
    if any(python_key(keys[a]) == python_key(keys[b]) for a, b in itertools.pairwise(expected)):
        with pytest.raises(InvalidGroups, match="unique"):
            order_of(keys)
    else:
        assert order_of(keys) == expected


@pytest.mark.parametrize(
    ("posted", "shown"),
    [
        *((1.0, "1"), (-0.0, "0"), (0.5, "0.5"), (1e16, "10000000000000000"), (1e-5, "1e-05")),
        *(("1.0", '"1.0"'), ([1.0, "a", -0.0], '[1, "a", 0]')),
    ],
)
def test_equal_group_keys_are_written_identically(posted: object, shown: str) -> None:
    """The sign of a zero, or a decimal point, may come from a single record."""
    assert json.dumps(normalised(posted)) == shown
    with pytest.raises(InvalidGroups, match="unique"):
        unique_order(columns_of([posted, normalised(posted)], "/keys").columns, 2, "/keys")


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
