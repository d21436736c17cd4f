"""The digest of a table: the same for the same set of groups in any order, format, encoding and width, else another."""

import datetime
import decimal
import io
import itertools
import math
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gsh.accounting.mechanism import Aggregates, Mechanism
from gsh.accounting.sensitivity import Box
from gsh.histogram import content
from gsh.histogram.formats import Limits, read_table
from gsh.histogram.noise import Noise
from gsh.histogram.roles import Roles
from gsh.histogram.tables import check_table
from tests.gsh.histogram.test_answer_bytes import CASES, formats_of, posted, rows_of
from tests.gsh.histogram.uploads import as_bytes

NOISE = Noise(
    Mechanism(
        c_u=3,
        tau=1,
        tau_star=100.0,
        sigma=5.0,
        aggregates=Aggregates(names=("likes",), covariance=((4.0,),), sensitivity=Box((0.0,), (1.0,))),
    ),
)
COUNTS_ONLY = Noise(Mechanism(c_u=3, tau=1, tau_star=100.0, sigma=5.0))
TWO_KEYS = Roles(("key", "number"), "count", ())
D = decimal.Decimal


def digest(table: pa.Table, roles: Roles = TWO_KEYS, noise: Noise = COUNTS_ONLY) -> bytes:
    return check_table(noise, table, roles).digest()


def digest_of_bytes(posted_bytes: bytes) -> bytes:
    _, table = read_table(pa.py_buffer(posted_bytes), Limits(10**6, 10**9))
    return digest(table)


def digest_of_keys(keys: pa.Array | pa.ChunkedArray) -> bytes:
    """With a second key that makes all keys unique."""
    return digest(pa.table({"key": keys, "number": np.arange(len(keys)), "count": np.full(len(keys), 5)}))


@pytest.mark.parametrize(("kind", "encoding"), CASES, ids=str)
def test_the_digest_does_not_depend_on_order_format_encoding_and_chunks(kind: pa.DataType, encoding: str) -> None:
    rows = rows_of(kind, range(3, 17), True, 100)
    plainest = posted(kind, encoding, rows, [])
    expected = digest(plainest)
    for format_ in formats_of(kind, plainest):
        for seed in range(2):
            table = posted(kind, encoding, rows, [], seed, format_)
            for rows_per_batch in (None, 7):
                assert digest_of_bytes(as_bytes(format_, table, rows_per_batch)) == expected

    if encoding == "plain":
        return
    assert digest(posted(kind, "plain", rows, [])) == expected


@pytest.mark.parametrize(("kind", "encoding"), CASES, ids=str)
def test_another_value_another_null_and_another_row_give_another_digest(kind: pa.DataType, encoding: str) -> None:
    rows = rows_of(kind, range(3, 17), True, 100)
    expected = digest(posted(kind, encoding, rows, []))
    changed = [
        [*rows[:4], (rows[4][0], 99), *rows[5:]],
        rows[1:],
        [*rows, (None, 98)],
    ]
    if kind != pa.binary(0) and not pa.types.is_null(kind):
        others = rows_of(kind, range(0, 1) if kind == pa.bool_() else range(18, 19), False, 0)
        changed += [[(others[0][0], rows[0][1]), *rows[1:]]]
    if not pa.types.is_null(kind):
        changed += [[(None, rows[0][1]), *rows[1:]]]
    digests = {digest(posted(kind, encoding, others, [])) for others in changed}

    assert len(digests) == len(changed)
    assert expected not in digests


INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
WHOLE = [
    *INTEGERS,
    pa.decimal32(9, 0),
    pa.decimal32(9, 2),
    pa.decimal64(18, 5),
    pa.decimal128(38, 0),
    pa.decimal128(38, 20),
    pa.decimal256(76, 40),
    pa.decimal128(20, -1),
    pa.dictionary(pa.int8(), pa.uint16()),
]
NOON = datetime.datetime(2026, 11, 16, 12)
SAME: dict[str, tuple[list[Any], list[pa.DataType]]] = {
    "whole numbers": ([10, 0, 100, None], WHOLE),
    "beyond 63 bits": ([2**64 - 1, 2**63, 0, None], [pa.uint64(), pa.decimal128(38, 3), pa.decimal256(76, 0)]),
    "fractions": ([D("1.5"), D("-2.25"), None], [pa.decimal32(5, 2), pa.decimal64(12, 3), pa.decimal256(60, 30)]),
    "floats": (
        [np.float16(1.5), np.float16(0), None, np.float16(math.inf)],
        [pa.float16(), pa.float32(), pa.float64(), pa.dictionary(pa.int32(), pa.float32())],
    ),
    "texts": (
        ["", "a", "a much longer text than twelve bytes", None],
        [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.large_string())],
    ),
    "json": (["1", "{}", None], [pa.json_(), pa.json_(pa.large_string()), pa.json_(pa.string_view())]),
    "binary": ([b"abc", b"a\0c", None], [pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(3)]),
    "dates": ([NOON.date(), datetime.date(1969, 1, 1), None], [pa.date32(), pa.date64()]),
    "timestamps": (
        [NOON, datetime.datetime(1969, 1, 1), None],
        [pa.timestamp("s"), pa.timestamp("ms"), pa.timestamp("us"), pa.timestamp("ns")],
    ),
    "instants": (
        [NOON.replace(microsecond=5000, tzinfo=datetime.UTC), None],
        [pa.timestamp("ms", "UTC"), pa.timestamp("us", "Europe/Berlin"), pa.timestamp("ns", "+05:00")],
    ),
    "times": (
        [datetime.time(1), datetime.time(23, 59, 59), None],
        [pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")],
    ),
    "durations": ([datetime.timedelta(-1), None], [pa.duration("s"), pa.duration("ms"), pa.duration("ns")]),
    "nulls": ([None, None], [pa.null(), pa.int8(), pa.string(), pa.json_(), pa.dictionary(pa.int8(), pa.uint16())]),
    "nothing": ([], [pa.null(), pa.int8(), pa.string(), pa.bool_(), pa.duration("s")]),
}


def column_of(values: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(kind):
        return pa.array(values, kind.value_type).dictionary_encode().cast(kind)
    if pa.types.is_decimal(kind):
        return pa.array([None if each is None else D(each) for each in values], kind)
    return pa.array(values, kind)


@pytest.mark.parametrize("name", SAME)
def test_equal_values_of_one_class_are_the_same_in_every_type(name: str) -> None:
    values, kinds = SAME[name]

    assert len({digest_of_keys(column_of(values, kind)) for kind in kinds}) == 1
    if len(values) > 1:
        assert digest_of_keys(column_of(values, kinds[0])) != digest_of_keys(column_of(values[1:], kinds[0]))


def test_equal_bytes_of_different_classes_are_different() -> None:
    """Among them the same moment with and without a time zone, and the same number as an integer and as a float."""
    columns = [
        pa.array([1, 2]),
        pa.array([D("0.1"), D("0.2")]),
        pa.array([D("0.01"), D("0.02")]),
        pa.array([1.0, 2.0]),
        pa.array(["1", "2"]),
        pa.array([b"1", b"2"]),
        pa.array([False, True]),
        pa.array(["1", "2"], pa.json_()),
        pa.array([b"1" * 16, b"2" * 16], pa.uuid()),
        pa.array([b"1" * 16, b"2" * 16], pa.binary(16)),
        *(pa.array([1, 2], kind) for kind in (pa.date32(), pa.time32("s"), pa.duration("s"))),
        *(pa.array([1, 2], pa.timestamp(*kind)) for kind in (("s",), ("s", "UTC"), ("ms",), ("ms", "UTC"), ("ns",))),
        pa.array([None, None]),
        pa.array([1, None]),
        pa.array([None, 1]),
        pa.array([0, None]),
        pa.array(["", None]),
    ]

    assert len(set(map(digest_of_keys, columns))) == len(columns)


def test_zeros_and_nan_of_a_float_are_one_value() -> None:
    odd = np.array([1, 0], np.uint64) * np.uint64(2**63)
    nan = np.array([0x7FF8000000000001, 0xFFF0000000000001], np.uint64)
    for several in (odd, nan):
        both = [digest_of_keys(pa.array([bits])) for bits in several.view(np.float64)]
        assert both[0] == both[1]


def test_numbers_that_only_a_decimal_of_negative_scale_can_hold_are_compared_too() -> None:
    large = pa.decimal256(70, -20)
    larger = pa.decimal256(70, -15)
    for number in (10**84, 3 * 10**80):
        units = [number // 10**20, number // 10**15]
        columns = [
            pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(unit.to_bytes(32, "little"))])
            for kind, unit in zip((large, larger), units, strict=True)
        ]
        assert digest_of_keys(columns[0]) == digest_of_keys(columns[1])
    assert digest_of_keys(columns[0]) != digest_of_keys(pa.array([3]))


@pytest.mark.parametrize("rows", [1, 100])
def test_numbers_that_share_64_bits_are_different(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    monkeypatch.setattr(content, "_ROWS", rows)
    several = itertools.product([-1, 2**64 - 1, 2**128 - 1, 2**192 - 1], repeat=2)
    by_number = Roles(("number", "key"), "count", ())
    digests = {
        digest(pa.table({"number": [1, 2], "key": pa.array(pair, pa.decimal256(76)), "count": [1, 1]}), by_number)
        for pair in several
    }

    assert len(digests) == 16


LIKES = Roles(("url", "country"), "users", ("likes",))
LIKED = pa.table({"url": ["b", "a"], "country": ["US", None], "users": [1, 2], "likes": [0.0, 3.0]})


def test_names_roles_and_the_order_of_key_columns_are_part_of_the_content() -> None:
    swapped = LIKED.rename_columns(["country", "url", "users", "likes"])
    digests = [
        digest(LIKED, LIKES, NOISE),
        digest(swapped, Roles(("country", "url"), "users", ("likes",)), NOISE),
        digest(LIKED, Roles(("country", "url"), "users", ("likes",)), NOISE),
        digest(
            LIKED.rename_columns(["url", "country", "people", "likes"]),
            Roles(("url", "country"), "people", ("likes",)),
            NOISE,
        ),
        digest(
            LIKED.rename_columns(["ur", "lcountry", "users", "likes"]),
            Roles(("ur", "lcountry"), "users", ("likes",)),
            NOISE,
        ),
        digest(LIKED.drop_columns("likes"), Roles(("url", "country"), "users", ()), NOISE),
    ]

    assert len(set(digests)) == len(digests)
    assert digest(LIKED.select(["likes", "users", "country", "url"]), LIKES, NOISE) == digests[0]


def test_counts_and_values_are_part_of_the_content_and_their_types_are_not() -> None:
    expected = digest(LIKED, LIKES, NOISE)
    for place, kind, numbers in (
        (2, pa.uint64(), [1, 2]),
        (2, pa.int8(), [1, 2]),
        (3, pa.float32(), [-0.0, 3]),
        (3, pa.int16(), [0, 3]),
    ):
        table = LIKED.set_column(place, LIKED.schema.names[place], pa.array(numbers, kind))
        assert digest(table, LIKES, NOISE) == expected
    for place, numbers in ((2, [2, 1]), (2, [1, 3]), (3, [3.0, 0.0]), (3, [0.0, 3.0000000000000004])):
        table = LIKED.set_column(place, LIKED.schema.names[place], pa.array(numbers))
        assert digest(table, LIKES, NOISE) != expected


TEXTS = st.none() | st.text("ab\x00é", max_size=3) | st.text("x", min_size=11, max_size=14)
ROWS = st.lists(
    st.tuples(TEXTS, st.none() | st.integers(-2, 2), st.integers(0, 3)),
    max_size=12,
    unique_by=lambda row: row[:2],
)
TEXT_TYPES = [pa.string(), pa.large_string(), pa.string_view()]
SMALL = [kind for kind in WHOLE if pa.types.is_signed_integer(kind) or pa.types.is_decimal(kind)]


def shown(rows: list[Any], seed: int) -> pa.Table:
    """The rows in an order, in types, encodings and chunks that the seed decides."""
    draw = random.Random(seed)
    rows = draw.sample(rows, len(rows))
    columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], []]
    number = draw.choice([kind for kind in SMALL if getattr(kind, "scale", 0) >= 0])
    text = pa.array(columns[0], draw.choice(TEXT_TYPES))
    if draw.random() < 0.3 and not pa.types.is_string_view(text.type):
        text = text.dictionary_encode()
    table = pa.table(
        {
            "key": text,
            "number": pa.array([None if each is None else D(each) for each in columns[1]], number)
            if pa.types.is_decimal(number)
            else pa.array(columns[1], number),
            "count": pa.array(columns[2], draw.choice(INTEGERS)),
        }
    )
    pieces = sorted(draw.randint(0, len(rows)) for _ in range(draw.randint(0, 3)))
    edges = itertools.pairwise([0, *pieces, len(rows)])
    return pa.concat_tables([table.slice(start, end - start) for start, end in edges])


@given(ROWS, ROWS, st.integers(0, 10**6))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_two_tables_have_the_same_digest_if_and_only_if_they_have_the_same_groups(
    first: list[Any], second: list[Any], seed: int
) -> None:
    """Also if batches are short: they must not show."""
    expected = digest(shown(first, seed))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(content, "_ROWS", 3)
        patch.setattr(content, "_MOST_BYTES", 20)
        patch.setattr(content, "_AT_ONCE", 2)

        assert digest(shown(first, seed + 1)) == expected
        assert (digest(shown(second, seed)) == expected) == (set(first) == set(second))


@given(ROWS.filter(len), st.data())
@settings(max_examples=100, deadline=None, derandomize=True)
def test_one_cell_or_one_row_more_makes_another_digest(rows: list[Any], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(rows) - 1))
    changed = list(rows[place])
    column = data.draw(st.integers(0, 2))
    changed[column] = data.draw((TEXTS, st.none() | st.integers(-5, 5), st.integers(0, 9))[column])
    others = [*rows[:place], tuple(changed), *rows[place + 1 :]]
    more = [*rows, ("one more", 1, 1)]
    expected = digest(shown(rows, 1))

    assert digest(shown(more, 2)) != expected
    if len({row[:2] for row in others}) == len(others):
        assert (digest(shown(others, 3)) == expected) == (set(others) == set(rows))


def test_a_dictionary_counts_by_the_entries_that_are_used() -> None:
    """An unused entry with more digits would change the scale of the others."""
    entries = pa.array([D("1.50"), D("1.25"), None], pa.decimal128(10, 2))
    key = pa.DictionaryArray.from_arrays(pa.array([0, 0, 2]), entries)

    assert digest_of_keys(key) == digest_of_keys(pa.array([D("1.5"), D("1.5"), None]))


def test_parquet_of_other_libraries_is_the_same_content() -> None:
    """Row groups, compression and versions of the format differ from library to library."""
    table = pa.table({"key": [f"k{n % 7}" for n in range(50)], "number": range(50), "count": [3] * 50})
    expected = digest(table)
    for options in ({"compression": "zstd"}, {"use_dictionary": False}, {"version": "1.0"}, {"row_group_size": 9}):
        sink = io.BytesIO()
        pq.write_table(table, sink, **options)
        assert digest_of_bytes(sink.getvalue()) == expected


def test_the_digest_is_known() -> None:
    """A service compares it with digests that an earlier version has stored."""
    assert digest(LIKED, LIKES, NOISE).hex() == "b1931ece5951e23d6bc94b7e5311f228010b89cd7019ef1c57fee45b575a3fee"
