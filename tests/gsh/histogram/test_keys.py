"""The documented order of group keys, for every scalar type of Arrow, and duplicates of every type."""

import datetime
import decimal
import math
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gsh.errors import InvalidGroups
from gsh.histogram.keys import order as keys
from gsh.histogram.keys.columns import key_of
from gsh.histogram.keys.order import unique_order

DAY = datetime.date(2026, 11, 16)
NOON = datetime.datetime(2026, 11, 16, 12)

# Distinct values of each type in ascending order; null comes last.
ASCENDING: dict[str, tuple[pa.DataType, list[Any]]] = {
    "bool": (pa.bool_(), [False, True]),
    "int8": (pa.int8(), [-128, -1, 0, 127]),
    "uint64": (pa.uint64(), [0, 2**63 - 1, 2**63, 2**64 - 1]),
    "int64": (pa.int64(), [-(2**63), -1, 0, 2**53, 2**53 + 1, 2**63 - 1]),
    "half": (pa.float16(), [np.float16(-1.5), np.float16(0), np.float16(2)]),
    "float": (pa.float32(), [-math.inf, -1.5, 0.0, 1e-45, math.inf]),
    "double": (pa.float64(), [-math.inf, -1.0, -5e-324, 0.0, 5e-324, 1.0, math.inf, math.nan]),
    "string": (pa.string(), ["", "\x00", "A", "a", "a\x00", "a\x00b", "ab", "b", "é", "\uffff", "\U0001f600"]),
    "large string": (pa.large_string(), ["", "Z", "a", "aa"]),
    "string view": (pa.string_view(), ["", "Z", "a", "a much longer string than twelve bytes", "b"]),
    "binary": (pa.binary(), [b"", b"\x00", b"\x7f", b"\x80", b"\xff"]),
    "large binary": (pa.large_binary(), [b"", b"\x80"]),
    "binary view": (pa.binary_view(), [b"\x00", b"\xff"]),
    "fixed binary": (pa.binary(2), [b"\x00\x01", b"\x01\x00", b"\xff\xff"]),
    "decimal32": (pa.decimal32(5, 2), [decimal.Decimal("-1.50"), decimal.Decimal("0.00"), decimal.Decimal("2.25")]),
    "decimal64": (pa.decimal64(10, 2), [decimal.Decimal("-1.50"), decimal.Decimal("2.25")]),
    "decimal128": (pa.decimal128(30, 2), [decimal.Decimal("-1e20"), decimal.Decimal(0), decimal.Decimal("1e20")]),
    "decimal256": (pa.decimal256(60, 2), [decimal.Decimal("-1e40"), decimal.Decimal(0), decimal.Decimal("1e40")]),
    **{
        f"{name} of negative scale": (kind, [decimal.Decimal("-1e2"), decimal.Decimal(0), decimal.Decimal("3e2")])
        for name, kind in (("decimal32", pa.decimal32(5, -2)), ("decimal128", pa.decimal128(5, -2)))
    },
    "date32": (pa.date32(), [datetime.date(1969, 1, 1), DAY]),
    "date64": (pa.date64(), [datetime.date(1969, 1, 1), DAY]),
    "time32": (pa.time32("s"), [datetime.time(1), datetime.time(23)]),
    "time64": (pa.time64("us"), [datetime.time(1), datetime.time(23)]),
    "timestamp": (pa.timestamp("ns"), [datetime.datetime(1969, 1, 1), NOON]),
    "timestamp with zone": (pa.timestamp("us", "Europe/Berlin"), [datetime.datetime(1969, 1, 1), NOON]),
    "duration": (pa.duration("s"), [datetime.timedelta(-1), datetime.timedelta(0), datetime.timedelta(1)]),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), ["", "Z", "a", "aa"]),
    "dictionary of doubles": (pa.dictionary(pa.int32(), pa.float64()), [-1.0, 0.0, 2.0]),
    "null": (pa.null(), []),
}


def column(kind: pa.DataType, values: list[Any]) -> pa.Array:
    if pa.types.is_dictionary(kind):
        # The entries in an order of their own, one of them unused.
        entries = pa.array([*reversed(values), *values[:1]], kind.value_type)
        places = [None if value is None else len(values) - 1 - values.index(value) for value in values]
        return pa.DictionaryArray.from_arrays(pa.array(places, kind.index_type), entries)
    return pa.array(values, kind)


def order_of(*columns: pa.Array) -> list[int]:
    posted = [key_of(pa.chunked_array([each]), pa.field("key", each.type), "/keys") for each in columns]
    parts = [part for key in posted for part in key.comparable()]
    return unique_order(parts, len(columns[0]), "/keys").tolist()


@pytest.mark.parametrize(("kind", "values"), ASCENDING.values(), ids=ASCENDING)
def test_every_type_has_its_documented_order(kind: pa.DataType, values: list[Any]) -> None:
    ascending = column(kind, [*values, None])
    shuffled = random.Random(3).sample(range(len(ascending)), len(ascending))

    order = order_of(ascending.take(pa.array(shuffled)) if len(ascending) > 1 and not _is_view(kind) else ascending)

    expected = [shuffled.index(place) for place in range(len(ascending))]
    assert order == (list(range(len(ascending))) if _is_view(kind) else expected)


def _is_view(kind: pa.DataType) -> bool:
    """Rows cannot be taken from these; they are tested in the order given."""
    return pa.types.is_string_view(kind) or pa.types.is_binary_view(kind)


@pytest.mark.parametrize(("kind", "values"), ASCENDING.values(), ids=ASCENDING)
def test_a_repeated_value_of_any_type_is_found(kind: pa.DataType, values: list[Any]) -> None:
    for repeated in [*values[-1:], None]:
        twice = pa.array([repeated, *values, repeated] if repeated is None else [*values, repeated], kind)
        with pytest.raises(InvalidGroups, match="unique"):
            order_of(twice)


@pytest.mark.parametrize(
    "values",
    [[0.0, -0.0], [math.nan, -math.nan], [np.nan, np.array([0x7FF8000000000001]).view(np.float64)[0]]],
    ids=["zeros", "NaN", "NaN with other bits"],
)
def test_floating_point_numbers_that_are_the_same_key_are_duplicates(values: list[float]) -> None:
    with pytest.raises(InvalidGroups, match="unique"):
        order_of(pa.array(np.array(values)))


def test_equal_entries_of_a_dictionary_are_one_key() -> None:
    twice = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", "a"]))

    with pytest.raises(InvalidGroups, match="unique"):
        order_of(twice)


def test_a_null_entry_of_a_dictionary_is_null() -> None:
    both = pa.DictionaryArray.from_arrays(pa.array([0, None, 1]), pa.array([None, "a"]))

    with pytest.raises(InvalidGroups, match="unique"):
        order_of(both)
    assert order_of(pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array([None, "a"]))) == [1, 0]


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.int64()), pa.struct([("a", pa.int64())]), pa.map_(pa.string(), pa.int64())], ids=str
)
def test_nested_types_are_refused(kind: pa.DataType) -> None:
    with pytest.raises(InvalidGroups, match="scalar"):
        order_of(pa.nulls(1, kind))


def test_keys_that_differ_only_in_a_later_column_are_no_duplicates() -> None:
    first, second = pa.array(["a", "a", None, None]), pa.array([2, 1, None, 7])

    assert order_of(first, second) == [1, 0, 3, 2]
    with pytest.raises(InvalidGroups):
        order_of(first, pa.array([2, 2, None, 7]))


ROWS = st.lists(
    st.tuples(
        st.none() | st.text(st.sampled_from("ab\x00é"), max_size=3),
        st.none() | st.floats(width=16) | st.sampled_from([0.0, -0.0, math.inf]),
        st.none() | st.integers(-3, 3),
    ),
    min_size=1,
    max_size=60,
)


def python_key(row: tuple[str | None, float | None, int | None]) -> tuple[Any, ...]:
    text, number, integer = row
    return (
        (text is None, (text or "").encode()),
        (
            number is None,
            number is not None and math.isnan(number),
            0.0 if number is None or math.isnan(number) else number,
        ),
        (integer is None, integer or 0),
    )


@pytest.mark.parametrize("run", [4, 1000], ids=["in buckets", "in one run"])
@pytest.mark.slow
@given(rows=ROWS)
@settings(max_examples=300, deadline=None, derandomize=True)
def test_the_order_is_that_of_a_plain_sort(rows: list[Any], run: int) -> None:
    """Also for long tables, whose rows are first divided among buckets."""
    columns = [pa.array(part, kind) for part, kind in zip(zip(*rows, strict=True), KINDS, strict=True)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keys, "_RUN", run)
        if len({python_key(row) for row in rows}) < len(rows):
            with pytest.raises(InvalidGroups, match="unique"):
                order_of(*columns)
        else:
            assert order_of(*columns) == sorted(range(len(rows)), key=lambda place: python_key(rows[place]))


KINDS = (pa.string(), pa.float64(), pa.int32())


@pytest.mark.slow
def test_a_long_table_is_sorted_and_its_one_duplicate_found() -> None:
    """Longer than a run, so buckets and threads meet nulls and many equal values in the first column."""
    draw = np.random.default_rng(7)
    length = 3 * keys._RUN
    texts = draw.integers(0, 50, length).astype(str).astype(object)
    texts[::97] = None
    numbers = draw.permutation(length)
    first, second = pa.array(texts), pa.array(numbers)
    expected = sorted(range(length), key=lambda i: (texts[i] is None, texts[i] or "", numbers[i]))

    assert order_of(first, second) == expected

    last, other = expected[-1], expected[-2]  # two rows whose first key is null
    numbers[other] = numbers[last]
    with pytest.raises(InvalidGroups, match="unique"):
        order_of(first, pa.array(numbers))


def test_no_groups_have_an_order_too() -> None:
    for kind, _ in ASCENDING.values():
        assert order_of(pa.array([], kind)) == []
