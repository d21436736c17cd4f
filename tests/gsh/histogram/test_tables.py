"""Arrow IPC streams and files, and Parquet files: types and kept rows survive, and damaged ones are refused."""

import io
import json
import subprocess
import sys
import uuid
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gsh.accounting.mechanism import Aggregates, Mechanism
from gsh.accounting.sensitivity import Box
from gsh.errors import InvalidGroups, TooManyGroups
from gsh.histogram.formats import Limits, read_table, write_table
from gsh.histogram.keys import columns
from gsh.histogram.keys.types import answer_type
from gsh.histogram.noise import Noise
from gsh.histogram.roles import Roles
from gsh.histogram.tables import release_table
from tests.gsh.histogram.recorded import Recorded
from tests.gsh.histogram.test_keys import ASCENDING
from tests.gsh.histogram.uploads import TYPED_FORMATS, as_bytes, as_file, as_parquet, as_stream, from_bytes

AMPLE = Limits(10**6, 10**9)
NOISE = Noise(Mechanism(c_u=3, tau=1, tau_star=100.0, sigma=5.0))
CERTAIN, HOPELESS = 10**6, 1
"""Counts of groups that are kept, and dropped, but for a chance that no test meets."""


def released(
    content: bytes, keys: tuple[str, ...] = ("key",), noise: Noise = NOISE, values: tuple[str, ...] = ()
) -> bytes:
    kind, table = read_table(pa.py_buffer(content), AMPLE)
    answer = release_table(noise, table, Roles(keys, "count", values), Recorded("tables"))
    sink = io.BytesIO()
    write_table(kind, answer, '{"release": "certified"}', sink)
    return sink.getvalue()


def refused(content: bytes, keys: tuple[str, ...] = ("key",), values: tuple[str, ...] = ()) -> InvalidGroups:
    with pytest.raises(InvalidGroups) as error:
        released(content, keys, values=values)
    return error.value


def counted(key: pa.Array, count: int = CERTAIN) -> pa.Table:
    return pa.table({"key": key, "count": pa.array([count] * len(key), pa.int64())})


# Parquet has no place for these.
NOT_IN_PARQUET = {
    "half",
    "null",
    "binary view",
    "string view",
    "decimal32",
    "decimal32 of negative scale",
    "decimal64",
    "decimal128 of negative scale",
    "time32",
    "date64",
}
NOT_IN_PARQUET |= {"duration", "dictionary of doubles"}
COLUMNS = {
    **{name: pa.array([*reversed(values), None], kind) for name, (kind, values) in ASCENDING.items()},
    "uuid": pa.array([uuid.UUID(int=2), uuid.UUID(int=1), None], pa.uuid()),
    "json": pa.array(['{"b": 1}', '{"a": 1}'], pa.json_()),
}


@pytest.mark.parametrize("batch_rows", [None, 1], ids=["one batch", "many batches"])
@pytest.mark.parametrize(("name", "key"), COLUMNS.items(), ids=COLUMNS)
def test_the_type_of_a_key_survives_and_rows_are_sorted(name: str, key: pa.Array, batch_rows: int | None) -> None:
    for kind in TYPED_FORMATS if name not in NOT_IN_PARQUET else TYPED_FORMATS[:2]:
        answer = from_bytes(released(as_bytes(kind, counted(key), batch_rows)))

        answer.validate(full=True)
        assert answer.schema.field("key").type == answer_type(pa.field("key", key.type), "/key_columns/0")
        expected = key.to_pylist() if key[-1].as_py() is not None else [*key.to_pylist()[-2::-1], None]
        expected = list(reversed(expected)) if key[-1].as_py() is not None else expected
        assert str(answer["key"].to_pylist()) == str(expected)


@pytest.mark.parametrize("kind", TYPED_FORMATS)
def test_numbers_are_integers_on_a_grid_of_integers_and_doubles_otherwise(kind: str) -> None:
    columns = Aggregates(
        names=("fine", "coarse"), covariance=((4.0, 1.0), (1.0, 2.0**40)), sensitivity=Box((0.0, 0.0), (1.0, 1.0))
    )
    noise = Noise(Mechanism(c_u=3, tau=1, tau_star=1e8, sigma=1.5 * 2**20, aggregates=columns))
    table = counted(pa.array(["b", "a"]), 2**40)
    table = table.append_column("coarse", pa.array([1, 2], pa.int8())).append_column("fine", pa.array([0.1, 0.2]))

    answer = from_bytes(released(as_bytes(kind, table), noise=noise, values=("fine", "coarse")))

    assert answer.schema.names == ["key", "count", "fine", "coarse"]
    assert [answer.schema.field(name).type for name in answer.schema.names[1:]] == [
        pa.int64(),
        pa.float64(),
        pa.int64(),
    ]
    assert answer["key"].to_pylist() == ["a", "b"]


@pytest.mark.parametrize("kind", TYPED_FORMATS)
def test_the_only_metadata_is_the_certificate(kind: str) -> None:
    """pandas writes the number of rows into the metadata."""
    noted = pa.schema([pa.field("key", pa.string(), metadata={"s3cret": "1"}), ("count", pa.int64())], {"s3cret": "2"})
    content = as_bytes(kind, counted(pa.array(["a", "b"])).cast(noted))
    assert b"s3cret" in content

    answer = released(content)

    assert b"s3cret" not in answer
    assert from_bytes(answer).schema.metadata == {b"certificate": b'{"release": "certified"}'}


@pytest.mark.parametrize("kind", TYPED_FORMATS)
@pytest.mark.parametrize("key_type", [pa.string(), pa.dictionary(pa.int32(), pa.string()), pa.string_view()], ids=str)
def test_no_byte_of_a_dropped_key_is_in_the_answer(kind: str, key_type: pa.DataType) -> None:
    keys = [f"dropped-{number}" if number % 2 else f"kept-{number}" for number in range(300)]
    counts = [HOPELESS if number % 2 else CERTAIN for number in range(300)]
    table = pa.table({"key": pa.array(keys, pa.string()).cast(key_type), "count": counts})
    if pa.types.is_string_view(key_type) and kind == "parquet":
        table = table.cast(pa.schema([("key", pa.string()), ("count", pa.int64())]))

    answer = released(as_bytes(kind, table, 100))

    assert b"dropped" not in answer
    assert from_bytes(answer)["key"].to_pylist() == sorted(key for key in keys if key.startswith("kept"))


def test_bytes_under_a_null_are_not_in_the_answer() -> None:
    hidden = pa.Array.from_buffers(pa.binary(6), 2, [pa.py_buffer(b"\x01"), pa.py_buffer(b"kkkkkkS3CRET")])
    content = as_stream(counted(hidden))
    assert b"S3CRET" in content

    answer = released(content)

    assert b"S3CRET" not in answer
    assert from_bytes(answer)["key"].to_pylist() == [b"kkkkkk", None]


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_streams_may_be_compressed_and_in_batches(compression: str | None) -> None:
    """The same bits give the same answer, for any division into batches."""
    table = counted(pa.array(np.random.default_rng(1).permutation(1000)), 105)
    whole, pieces = released(as_stream(table)), released(as_stream(table, 7, compression))

    assert 200 < from_bytes(whole).num_rows < 950
    assert from_bytes(whole).equals(from_bytes(pieces))


@pytest.mark.parametrize("kind", TYPED_FORMATS)
def test_a_long_answer_comes_in_batches_that_share_a_dictionary(kind: str) -> None:
    length = 150_000
    words = pa.array([f"word-{number % 500}" for number in range(length)]).dictionary_encode()
    table = pa.table({"word": words, "number": np.arange(length)[::-1], "count": np.full(length, CERTAIN)})

    content = released(as_bytes(kind, table, 40_000), keys=("word", "number"))

    answer = from_bytes(content)
    assert answer.num_rows == length
    if kind == "arrow":
        stream = pa.ipc.open_stream(content)
        assert len(list(stream)) > 1
        assert (stream.stats.num_dictionary_batches, stream.stats.num_replaced_dictionaries) == (1, 0)
    assert answer.schema.field("word").type == words.type
    pairs = list(zip(answer["word"].to_pylist(), answer["number"].to_pylist(), strict=True))
    assert pairs == sorted(pairs)


def test_keys_that_are_long_together_are_cut_into_several_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """The values of one batch would be too long for 32-bit offsets."""
    words = [f"{number:03}" * (1 + number % 7) for number in range(200)]
    table = counted(pa.array(words))
    whole = from_bytes(released(as_stream(table)))
    monkeypatch.setattr(columns, "_MOST_BYTES", 20)

    cut = from_bytes(released(as_stream(table)))

    assert cut.equals(whole)
    assert whole["key"].num_chunks == 1
    assert 100 <= cut["key"].num_chunks <= 200
    assert all(len("".join(chunk.to_pylist())) <= 20 or len(chunk) == 1 for chunk in cut["key"].chunks)


def test_a_dictionary_keeps_its_values_and_is_never_ordered() -> None:
    """Engines choose the width of its indices by the number of entries, dropped ones included."""
    for index_type in (pa.int8(), pa.uint32(), pa.int64()):
        posted = pa.dictionary(index_type, pa.large_string(), ordered=True)

        assert answer_type(pa.field("key", posted), "/key_columns/0") == pa.dictionary(pa.int32(), pa.large_string())


@pytest.mark.parametrize("kind", TYPED_FORMATS)
def test_key_columns_are_nullable_in_the_answer(kind: str) -> None:
    """Whether a posted key is null can depend on dropped groups."""
    schema = pa.schema([pa.field("key", pa.string(), nullable=False), ("count", pa.int64())])
    table = pa.Table.from_arrays([pa.array(["b", "a"]), pa.array([CERTAIN] * 2)], schema=schema)

    assert from_bytes(released(as_bytes(kind, table))).schema.field("key").nullable


@pytest.mark.parametrize(
    ("kind", "metadata"),
    [
        (pa.binary(), {"ARROW:extension:name": "geoarrow.wkb", "ARROW:extension:metadata": "s3cret"}),
        (pa.binary(), {"ARROW:extension:metadata": "s3cret"}),
        (pa.opaque(pa.binary(), "s3cret", "s3cret"), None),
        (pa.fixed_shape_tensor(pa.int8(), [1]), None),
        (pa.dictionary(pa.int8(), pa.dictionary(pa.int8(), pa.string())), None),
        (pa.dictionary(pa.int8(), pa.uuid()), None),
        (pa.run_end_encoded(pa.int16(), pa.list_(pa.int8())), None),
        (pa.run_end_encoded(pa.int32(), pa.string()), None),
        (pa.dictionary(pa.int8(), pa.month_day_nano_interval()), None),
        (pa.month_day_nano_interval(), None),
        (pa.bool8(), None),
        (pa.struct([pa.field("s3cret", pa.int8())]), None),
    ],
    ids=str,
)
def test_an_unknown_type_is_refused_with_the_position_of_its_column(
    kind: pa.DataType, metadata: dict[str, str] | None
) -> None:
    """Before any noise is drawn. The error does not quote the metadata."""
    entropy = Recorded("refused")
    schema = pa.schema([("other", pa.int8()), pa.field("key", kind, metadata=metadata), ("count", pa.int64())])
    table = schema.empty_table()

    with pytest.raises(InvalidGroups) as error:
        release_table(NOISE, table, Roles(("other", "key"), "count", ()), entropy)

    assert error.value.pointer == "/key_columns/1"
    assert "s3cret" not in error.value.detail
    assert entropy.given == []


def test_metadata_of_an_extension_type_is_rebuilt() -> None:
    metadata = {"ARROW:extension:name": "arrow.json", "ARROW:extension:metadata": "s3cret"}
    schema = pa.schema([pa.field("key", pa.string(), metadata=metadata), ("count", pa.int64())])
    table = pa.Table.from_arrays([pa.array(["1", "2"]), pa.array([CERTAIN] * 2)], schema=schema)
    content = as_stream(table)
    assert b"s3cret" in content

    answer = released(content)

    assert b"s3cret" not in answer
    assert from_bytes(answer).schema.field("key").type == pa.json_()


@pytest.mark.parametrize(
    "kind", [pa.list_view(pa.int8()), pa.dictionary(pa.int8(), pa.int64()), pa.uuid(), pa.string()], ids=str
)
def test_a_count_that_is_no_number_is_refused(kind: pa.DataType) -> None:
    table = pa.schema([("key", pa.string()), ("count", kind)]).empty_table()

    with pytest.raises(InvalidGroups) as error:
        release_table(NOISE, table, Roles(("key",), "count", ()), Recorded("refused"))

    assert error.value.pointer == "/count_column"


@pytest.mark.parametrize("entries", ["ab ab ab", "ab abc abcd", "ab cd ab", "abc ab bca", "a  b"], ids=str)
def test_pieces_with_dictionaries_of_their_own_are_one_column(entries: str) -> None:
    """The same dictionary, one that grows, and different ones; in the last case a piece has an empty one."""
    pieces = [
        pa.DictionaryArray.from_arrays(pa.array([*range(len(own)), None], pa.int8()), pa.array(list(own), pa.string()))
        for own in entries.split(" ")
    ]
    key = pa.chunked_array(pieces)
    table = pa.table({"key": key, "number": range(len(key)), "count": [CERTAIN] * len(key)})

    answer = from_bytes(released(as_stream(table), ("number", "key")))

    assert answer["key"].to_pylist() == key.to_pylist()


def test_half_precision_numbers_in_several_dictionaries_are_unchanged() -> None:
    """Arrow's own unification of such dictionaries gives other numbers."""
    halves = np.array([1.5, 2.5, -0.5, 3.5], np.float16)
    pieces = [pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(half)) for half in (halves[:2], halves[2:])]
    table = pa.table({"key": pa.chunked_array(pieces), "count": [CERTAIN] * 4})

    assert from_bytes(released(as_stream(table)))["key"].to_pylist() == [-0.5, 1.5, 2.5, 3.5]


VALUES = {
    "string": pa.array(["b", "a", "c"]),
    "string view": pa.array(["b", "a", "c"], pa.string_view()),
    "binary view": pa.array([b"b", b"a", b"c"], pa.binary_view()),
    "uuid": pa.array([uuid.UUID(int=number) for number in (2, 1, 3)], pa.uuid()),
    "decimal": pa.array([2, 1, 3], pa.decimal128(5, 2)),
    "interval": pa.array([(0, 2, 0), (0, 1, 0), (0, 3, 0)], pa.month_day_nano_interval()),
    "half": pa.array(np.array([2, 1, 3], np.float16)),
    "null": pa.nulls(3),
    "list": pa.array([[2], [1], [3]]),
}
CERTAINLY = {("dictionary", "string"), ("dictionary", "string view"), ("dictionary", "decimal")}


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("wrapper", ["dictionary", "run-end", "run-end of dictionary"])
def test_types_within_types_are_released_or_refused_but_never_an_error(wrapper: str, value: str) -> None:
    """Types that Arrow cannot decode or write are refused before any noise is drawn."""
    key = VALUES[value]
    if "dictionary" in wrapper:
        key = pa.DictionaryArray.from_arrays(pa.array([2, 0, 1]), key)
    if "run-end" in wrapper:
        key = pa.RunEndEncodedArray.from_arrays(pa.array([1, 2, 3], pa.int32()), key)
    try:
        content = as_stream(counted(key))
    except pa.ArrowException:
        assert (wrapper, value) not in CERTAINLY
        return  # it cannot even be posted
    try:
        answer = from_bytes(released(content))
    except InvalidGroups:
        assert (wrapper, value) not in CERTAINLY
    else:
        assert answer.schema.field("key").type == answer_type(pa.field("key", key.type), "/key_columns/0")


@pytest.mark.parametrize("unit", [0, 1], ids=["months", "days and milliseconds"])
def test_intervals_that_pyarrow_has_no_name_for_are_refused(unit: int) -> None:
    """The unit is a byte of the schema; pyarrow writes 2."""
    content = bytearray(as_stream(counted(pa.array([(1, 2, 3)], pa.month_day_nano_interval()))))
    refusals = set()
    for place in [place for place, byte in enumerate(content) if byte == 2]:
        changed = content.copy()
        changed[place] = unit
        try:
            released(bytes(changed))
        except InvalidGroups as error:
            refusals.add(error.pointer)

    assert "/table" in refusals


def test_pages_whose_checksum_is_wrong_are_refused() -> None:
    sink = io.BytesIO()
    pq.write_table(
        counted(pa.array(["aaaa", "bbbb"])),
        sink,
        write_page_checksum=True,
        compression="none",
        use_dictionary=False,
        write_statistics=False,
    )
    content = sink.getvalue()
    assert content.count(b"aaaa") == 1

    assert refused(content.replace(b"aaaa", b"aaab")).pointer == "/table"


@pytest.mark.parametrize("kind", TYPED_FORMATS)
def test_a_table_without_rows_is_a_release_of_nothing(kind: str) -> None:
    answer = from_bytes(released(as_bytes(kind, counted(pa.array([], pa.string())))))

    assert answer.num_rows == 0
    assert answer.schema.names == ["key", "count"]


@pytest.mark.parametrize("kind", TYPED_FORMATS)
def test_a_table_cut_off_anywhere_is_refused(kind: str) -> None:
    """Also just before the end mark, after all batches."""
    content = as_bytes(kind, counted(pa.array(["a", "b", "c"])), 1)

    for length in [*range(0, len(content), 7), *range(len(content) - 9, len(content))]:
        assert refused(content[:length]).pointer == "/table"


@pytest.mark.parametrize("kind", TYPED_FORMATS)
def test_bytes_after_the_end_are_refused(kind: str) -> None:
    content = as_bytes(kind, counted(pa.array(["a"])))
    if kind == "parquet":  # its end is found from the back
        content, more = content[:-8], content[-8:]
        assert refused(content + b"more" + more).pointer == "/table"
        return

    assert refused(content + b"more").pointer == "/table"
    assert refused(content + content).pointer == "/table"


def test_a_file_whose_footer_leaves_batches_out_is_refused() -> None:
    """Such a file would mean one table as a stream and another one as a file."""
    short, long = (as_file(counted(pa.array(keys)), 1) for keys in (["a"], ["a", "b"]))
    footers = [int.from_bytes(content[-10:-6], "little") + 10 for content in (short, long)]

    assert refused(long[: -footers[1]] + short[-footers[0] :]).pointer == "/table"


@pytest.mark.parametrize("content", [b"", b"PAR1", b"ARROW1\0\0", b"{}", b"\xff" * 64, b"\0" * 64], ids=repr)
def test_bytes_that_are_no_table_are_refused(content: bytes) -> None:
    assert refused(content).pointer == "/table"


DAMAGE = """
import random, sys
import pyarrow as pa
from tests.gsh.histogram.test_tables import as_bytes, counted, released
from gsh.histogram.keys import columns
from gsh.errors import ReleaseError
draw = random.Random(int(sys.argv[2]))
table = counted(pa.array(["a", "bb", None, "dddd"]).dictionary_encode()).append_column("more", pa.array(list("wxyz")))
content = as_bytes(sys.argv[1], table, 2)
outcomes = set()
for _ in range(1500):
    damaged = bytearray(content)
    for _ in range(draw.randint(1, 6)):
        damaged[draw.randrange(len(damaged))] = draw.choice([0, 1, 127, 128, 255, draw.randrange(256)])
    try:
        released(bytes(damaged), keys=("key", "more"))
        outcomes.add("released")
    except ReleaseError:
        outcomes.add("refused")
print(sorted(outcomes))
"""


@pytest.mark.parametrize("kind", TYPED_FORMATS)
def test_a_damaged_table_is_refused_or_read_but_never_crashes_the_process(kind: str) -> None:
    """Invalid offsets could crash the process, so the test runs in a separate one."""
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", DAMAGE, kind, "5"], capture_output=True, text=True, check=False
    )

    assert found.stdout.strip() == "['refused', 'released']", found.stderr[-2000:]


TWO = {"key": ["a", "b"], "count": [1, 2]}


@pytest.mark.parametrize(
    ("columns", "keys", "values", "pointer"),
    [
        (TWO, ("other",), (), "/key_columns/0"),
        (TWO, ("key", "other"), (), "/key_columns/1"),
        ({"key": ["a"], "n": [1]}, ("key",), (), "/count_column"),
        (TWO, ("key",), ("likes",), "/mechanism/aggregates/names/0"),
        (TWO | {"more": [1, 2]}, ("key",), (), "/table"),
        (TWO, ("key", "key"), (), "/key_columns"),
        (TWO, ("key", "count"), (), "/key_columns"),
        ({"key": ["a", "a"], "count": [1, 2]}, ("key",), (), "/key_columns"),
        ({"key": [None, None], "count": [1, 2]}, ("key",), (), "/key_columns"),
        ({"key": [["a"], ["b"]], "count": [1, 2]}, ("key",), (), "/key_columns/0"),
        ({"key": ["a", "b"], "count": [1, -2]}, ("key",), (), "/count_column"),
        ({"key": ["a", "b"], "count": [1, None]}, ("key",), (), "/count_column"),
        ({"key": ["a", "b"], "count": [1.0, 2.0]}, ("key",), (), "/count_column"),
        ({"key": ["a", "b"], "count": [1, 2**53 + 1]}, ("key",), (), "/count_column"),
    ],
    ids=str,
)
def test_an_error_points_to_its_field_in_the_request(
    columns: dict[str, Any], keys: tuple[str, ...], values: tuple[str, ...], pointer: str
) -> None:
    for kind in TYPED_FORMATS:
        assert refused(as_bytes(kind, pa.table(columns)), keys, values).pointer == pointer


def test_two_columns_with_the_same_name_are_refused() -> None:
    twice = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"]), pa.array([1])], ["key", "key", "count"])

    assert refused(as_stream(twice)).pointer == "/key_columns/0"


@pytest.mark.parametrize("kind", TYPED_FORMATS)
def test_nothing_is_drawn_for_a_table_that_is_refused(kind: str) -> None:
    entropy = Recorded("refused")
    _, table = read_table(pa.py_buffer(as_bytes(kind, pa.table({"key": ["a", "a"], "count": [1, 2]}))), AMPLE)

    with pytest.raises(InvalidGroups):
        release_table(NOISE, table, Roles(("key",), "count", ()), entropy)

    assert entropy.given == []


@pytest.mark.parametrize("kind", TYPED_FORMATS)
def test_more_groups_or_bytes_than_allowed_are_too_many(kind: str) -> None:
    content = pa.py_buffer(as_bytes(kind, counted(pa.array(np.arange(1000))), 100))

    assert read_table(content, Limits(1000, 17_000))[1].num_rows == 1000
    with pytest.raises(TooManyGroups, match="999 groups"):
        read_table(content, Limits(999, 10**9))
    with pytest.raises(TooManyGroups, match="15000 bytes"):
        read_table(content, Limits(1000, 15_000))


def test_a_small_file_that_unpacks_to_a_large_table_is_too_many() -> None:
    """The table is a hundred times as large as the file."""
    content = as_parquet(counted(pa.array(["x" * 1000] * 100_000)), 1000)
    assert len(content) < 10**6

    with pytest.raises(TooManyGroups, match="bytes"):
        read_table(pa.py_buffer(content), Limits(10**6, 10**7))


def test_the_certificate_in_the_metadata_is_json() -> None:
    metadata = from_bytes(released(as_stream(counted(pa.array(["a"]))))).schema.metadata

    assert json.loads(metadata[b"certificate"]) == {"release": "certified"}
