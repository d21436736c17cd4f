"""The bytes of an answer are a function of the kept rows and the types of the columns alone.

Each test posts the same kept rows in several ways and compares the answers byte by byte. The noise is the same for all
rows, so that it does not depend on how many were posted.
"""

import io
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gsh.accounting.mechanism import Mechanism
from gsh.histogram.formats import Limits, read_table, write_table
from gsh.histogram.keys import columns
from gsh.histogram.keys import order as keys
from gsh.histogram.keys.canonical import canonical
from gsh.histogram.noise import Noise
from gsh.histogram.roles import Roles
from gsh.histogram.tables import release_table
from tests.gsh.histogram.key_columns import ENCODINGS, EXTENSIONS, SCALARS, encoded, value
from tests.gsh.histogram.uploads import TYPED_FORMATS, as_bytes, from_bytes

pytestmark = pytest.mark.slow

NOISE = Noise(Mechanism(c_u=3, tau=1, tau_star=100.0, sigma=5.0))
CERTAIN, HOPELESS = 10**6, 1
Row = tuple[Any, int]
"""A value of the column under test, and a number that makes the key unique."""

CASES = [(kind, encoding) for kind in SCALARS for encoding in ENCODINGS]
CASES += [(kind, "plain") for kind in [*EXTENSIONS, pa.null()]]


def same_noise(size: int) -> bytes:
    """Every draw is the same, independent of the draws before."""
    return b"\x35" * size


def answer(content: bytes) -> bytes:
    kind, table = read_table(pa.py_buffer(content), Limits(10**6, 10**9))
    sink = io.BytesIO()
    write_table(kind, release_table(NOISE, table, Roles(("key", "number"), "count", ()), same_noise), "{}", sink)
    return sink.getvalue()


def posted(
    kind: pa.DataType, encoding: str, kept: list[Row], dropped: list[Row], seed: int | None = None, format_: str = ""
) -> pa.Table:
    """The kept rows and the dropped ones; with a seed shuffled and oddly encoded, with metadata everywhere."""
    draw = None if seed is None else random.Random(seed)
    rows = [(*row, CERTAIN) for row in kept] + [(*row, HOPELESS) for row in dropped]
    if draw is not None:
        draw.shuffle(rows)
    column = encoded(kind, encoding, [row[0] for row in rows], draw, null_entries=format_ != "parquet")
    noted = {} if seed is None else {"metadata": {f"seed-{seed}": "s3cret"}}
    is_full = seed is not None and not any(row[0] is None for row in rows)
    schema = pa.schema(
        [
            pa.field("key", column.type, nullable=not is_full, **noted),
            pa.field("number", pa.int64(), **noted),
            pa.field("count", pa.int64(), **noted),
        ],
        **noted,
    )
    numbers = [pa.array([row[place] for row in rows], pa.int64()) for place in (1, 2)]
    return pa.Table.from_arrays([column, *numbers], schema=schema)


def fill_free_memory(byte: int) -> None:
    """Memory that was used and freed, like memory of other requests, in every allocator."""
    pools = [pa.system_memory_pool(), pa.default_memory_pool()]
    used = [pa.allocate_buffer(1 << n, memory_pool=pool) for pool in pools for n in range(3, 17) for _ in range(4)]
    for buffer in used:
        np.frombuffer(buffer, np.uint8)[:] = byte


def rows_of(kind: pa.DataType, numbers: range, with_null: bool, start: int) -> list[Row]:
    values: list[Any] = [None if pa.types.is_null(kind) else value(kind, number) for number in numbers for _ in (0, 1)]
    return [(item, start + i) for i, item in enumerate([*values, None, None, None] if with_null else values)]


def formats_of(kind: pa.DataType, table: pa.Table) -> tuple[str, ...]:
    """Parquet cannot store some types, and reads others back as their storage types."""
    try:
        stored = pq.read_table(io.BytesIO(as_bytes("parquet", table))).schema.field("key").type
    except (pa.ArrowException, OSError):
        return TYPED_FORMATS[:2]
    return TYPED_FORMATS if stored == table.schema.field("key").type else TYPED_FORMATS[:2]


@pytest.mark.parametrize("with_null", [True, False], ids=["with nulls", "without nulls"])
@pytest.mark.parametrize(("kind", "encoding"), CASES, ids=str)
def test_only_the_kept_rows_and_the_types_show_in_the_bytes(kind: pa.DataType, encoding: str, with_null: bool) -> None:
    """Not the dropped rows, nor order, chunks, dictionary, metadata, nullability, or old contents of memory."""
    kept = rows_of(kind, range(3, 17), with_null, 100)
    others = [
        rows_of(kind, range(1, 11), True, 0),
        rows_of(kind, range(25), True, 200) + rows_of(kind, range(20, 25), False, 0),
        [],
    ]
    plainest = posted(kind, encoding, kept, [])
    for format_ in formats_of(kind, plainest):
        fill_free_memory(0)
        expected = answer(as_bytes(format_, plainest))
        for seed, dropped in enumerate(others):
            table = posted(kind, encoding, kept, dropped, seed, format_)
            for rows_per_batch in (None, 7):
                content = as_bytes(format_, table, rows_per_batch)
                fill_free_memory(0xA1 + seed)

                assert answer(content) == expected

    answered = from_bytes(expected)
    answered.validate(full=True)
    assert answered.num_rows == len(kept)
    assert sorted(answered["number"].to_pylist()) == [number for _, number in kept]


def test_parquet_is_tested_with_most_types_and_with_dictionaries() -> None:
    """Otherwise the test above could test nothing."""
    tested = {
        (str(kind), encoding)
        for kind, encoding in CASES
        if len(formats_of(kind, posted(kind, encoding, rows_of(kind, range(3), True, 0), []))) == len(TYPED_FORMATS)
    }

    assert {"bool", "uint64", "double", "string", "decimal128(30, 3)", "date32[day]", "extension<arrow.uuid>"} <= {
        kind for kind, encoding in tested if encoding == "plain"
    }
    assert ("string", "dictionary") in tested


ROWS = st.lists(st.none() | st.text("ab\x00é", max_size=15) | st.text("x", min_size=10, max_size=30), max_size=30)


@pytest.mark.parametrize("kind", [pa.string(), pa.string_view()], ids=str)
@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("format_", TYPED_FORMATS)
@given(kept=ROWS, dropped=ROWS, rows_per_batch=st.none() | st.integers(1, 9), seed=st.integers(0, 99))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_no_text_that_was_dropped_changes_a_byte(
    kind: pa.DataType,
    encoding: str,
    format_: str,
    kept: list[Any],
    dropped: list[Any],
    rows_per_batch: int | None,
    seed: int,
) -> None:
    if format_ == "parquet" and kind == pa.string_view():
        kind, encoding = pa.large_string(), "plain"
    kept_rows = [(text, i) for i, text in enumerate(kept)]
    dropped_rows = [(text, -1 - i) for i, text in enumerate(dropped)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "_MOST_ROWS", 11)
        patch.setattr(columns, "_MOST_BYTES", 70)
        patch.setattr(keys, "_RUN", 16)
        expected = answer(as_bytes(format_, posted(kind, encoding, kept_rows, [])))
        table = posted(kind, encoding, kept_rows, dropped_rows, seed, format_)

        assert answer(as_bytes(format_, table, rows_per_batch)) == expected


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()], ids=str)
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_equal_floating_point_keys_have_equal_bytes(kind: pa.DataType, encoding: str) -> None:
    """One record can decide whether a group has 0 or −0, or which NaN, and no noise would hide that."""
    width = kind.bit_width // 8
    exponent = int(np.array(np.inf, f"f{width}").view(f"u{width}"))
    sign = 1 << (kind.bit_width - 1)
    numbers = pa.array([1, 2, 3, 4])

    def answer_for(bits: list[int]) -> bytes:
        values = np.array(bits, f"u{width}").view(f"f{width}")
        key = pa.Array.from_buffers(kind, 4, [None, pa.py_buffer(values)])
        if encoding == "dictionary":
            key = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 3], pa.int8()), key)
        table = pa.table({"key": key, "number": numbers, "count": [CERTAIN] * 4})
        return answer(as_bytes("arrow", table))

    quiet = exponent | exponent >> 1
    expected = answer_for([0, 0, quiet, quiet])
    assert answer_for([sign, 0, exponent + 1, sign | quiet | 5]) == expected
    assert answer_for([0, sign, quiet | 1, exponent + 2]) == expected


@pytest.mark.parametrize(
    "kind", [pa.int64(), pa.decimal128(20), pa.float64(), pa.timestamp("us"), pa.binary(3)], ids=str
)
def test_bytes_under_a_null_are_overwritten(kind: pa.DataType) -> None:
    """Arrow itself leaves old contents of memory there. The test puts a mark there."""
    width = kind.bit_width // 8
    validity = pa.py_buffer(bytes([0b101]))
    marked = pa.Array.from_buffers(kind, 3, [validity, pa.py_buffer(bytes(width) + b"\xab" * width + bytes(width))])

    _, content = canonical(marked, kind).buffers()

    assert marked.null_count == 1
    assert content.to_pybytes() == bytes(3 * width)
