"""CSV: read strictly by declared types, written in one form, and no error shows a cell."""

import csv
import io
import math
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gsh.accounting.mechanism import Mechanism
from gsh.errors import InvalidGroups, TooManyGroups
from gsh.histogram import csv_format
from gsh.histogram.csv_format import CsvType
from gsh.histogram.formats import Limits, read_table, write_table
from gsh.histogram.noise import Noise
from gsh.histogram.roles import Roles
from gsh.histogram.tables import check_table
from tests.gsh.histogram.test_answer_bytes import CERTAIN, HOPELESS, same_noise

AMPLE = Limits(10**6, 10**9)
NOISE = Noise(Mechanism(c_u=3, tau=1, tau_star=100.0, sigma=5.0))
TEXTS: dict[str, CsvType] = {"a": "string", "b": "string"}


def read(content: bytes | str, types: Mapping[str, CsvType] = TEXTS, limits: Limits = AMPLE) -> pa.Table:
    source = content.encode() if isinstance(content, str) else content
    kind, table = read_table(pa.py_buffer(source), limits, types)
    assert kind == "csv"
    return table


def written(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    write_table("csv", table.to_reader(), "{}", sink)
    return sink.getvalue()


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        ("a,b\n1,\n", [("1", None)]),
        ('a,b\n"",x', [("", "x")]),
        ("a,b\n,\n", [(None, None)]),
        ('"a","b"\r\n"1","2"\r\n', [("1", "2")]),
        ('a,b\n"x\ny","q""q"\n', [("x\ny", 'q"q')]),
        ('a,b\n"x,\r\ny",""""\n', [("x,\r\ny", '"')]),
        ("\ufeffa,b\n1,2\n", [("1", "2")]),
        ('\ufeff"a",b\n1,2\n', [("1", "2")]),
        ("a,b\n 1 ,NA\n", [(" 1 ", "NA")]),
        ("a,b\nnull,\u00e9\U0001f600\n", [("null", "\u00e9\U0001f600")]),
        ("b,a\n1,2\n", [("2", "1")]),
        ("a,b\n", []),
    ],
    ids=repr,
)
def test_cells_are_read_by_the_rules(content: str, rows: list[Any]) -> None:
    table = read(content)

    assert list(zip(table["a"].to_pylist(), table["b"].to_pylist(), strict=True)) == rows


@pytest.mark.parametrize(
    "content",
    [
        *("", "a,b", "a,b\n1\n", "a,b\n1,2,3\n", 'a,b\n1,"s3cret', 'a,b\n1,s3"cret\n', 'a,b\n1,"s3"cret\n'),
        *('a,b\n"s3cret""\n', 'a,b\n1,""s3cret\n', 'a,b\n"1" ,2\n', 'a,b\n1, "2"\n', b"a,b\n1,s3cret\xff\n"),
        *(b"a,\xff\n1,2\n", 'a,b\n1,"s3cret\n2,3\n', b"PAR1", b"ARROW1\0\0"),
    ],
    ids=repr,
)
def test_what_is_no_csv_is_refused_without_its_text(content: bytes | str) -> None:
    with pytest.raises(InvalidGroups) as error:
        read(content)

    assert error.value.pointer in ("/table", "/csv_types/a")
    assert error.value.__context__ is None
    assert "s3cret" not in str(error.value)


@pytest.mark.parametrize(
    ("header", "pointer"),
    [("a,c", "/csv_types/b~1"), ("a", "/csv_types/b~1"), ("a,b/,b/", "/csv_types/b~1"), ("a,b/,c", "/csv_types")],
)
def test_the_declared_columns_are_exactly_those_of_the_header(header: str, pointer: str) -> None:
    with pytest.raises(InvalidGroups) as error:
        read(f"{header}\n", {"a": "string", "b/": "string"})

    assert error.value.pointer == pointer


RIGHT: dict[CsvType, dict[str, Any]] = {
    "string": {"x": "x", "1": "1"},
    "int64": {"-12": -12, "007": 7, "9223372036854775807": 2**63 - 1, '"5"': 5},
    "float64": {"-1.5": -1.5, "2e3": 2e3, ".5": 0.5, "1.": 1.0, "1E-400": 0.0, "-inf": -math.inf, "Infinity": math.inf},
    "boolean": {"true": True, "False": False, "TRUE": True},
    "date": {"2026-11-16": "2026-11-16", "0001-01-01": "0001-01-01"},
    "timestamp": {
        "2026-11-16T12:30:00": "2026-11-16 12:30:00",
        "2026-11-16 12:30:00.000001": "2026-11-16 12:30:00.000001",
    },
    "decimal": {"-1.5": "-1.500000000", "0.000000001": "1E-9", f"{10**28}": f"{10**28}.000000000"},
}
WRONG: dict[CsvType, list[str]] = {
    "int64": ["1.0", "0x1F", " 1", "+1", "9223372036854775808", '""', "s3cret", "1e3", "١"],
    "float64": ["1e400", "-1e400", "0x1p3", "1,5", "1 ", '""', "--1", "s3cret", "1_000", "n", "infx"],
    "boolean": ["1", "0", "yes", "t", '""', "s3cret"],
    "date": ["2026-02-30", "16.11.2026", "2026-11-16T00:00:00", "26-11-16", '""', "s3cret"],
    "timestamp": [
        "2026-11-16",
        "2026-11-16T12:30:00Z",
        "2026-11-16T12:30:00.0000001",
        "s3cret",
        "2026-11-16T25:00:00",
        '""',
    ],
    "decimal": ["1e3", "+1", ".5", "0.0000000001", f"{10**29}", "s3cret", '""', "NaN"],
}


@pytest.mark.parametrize(("declared", "cell"), [(kind, cell) for kind, cells in RIGHT.items() for cell in cells])
def test_a_cell_of_the_declared_type_is_its_value(declared: CsvType, cell: str) -> None:
    table = read(f"a,b\n{cell},1\n,2\n", {"a": declared, "b": "int64"})

    value, missing = table["a"].to_pylist()
    expected = RIGHT[declared][cell]
    assert (str(value) if isinstance(expected, str) else value) == expected
    assert missing is None


@pytest.mark.parametrize(("declared", "cell"), [(kind, cell) for kind, cells in WRONG.items() for cell in cells])
def test_a_cell_of_another_type_is_refused_by_the_name_of_its_column(declared: CsvType, cell: str) -> None:
    quoted = cell if cell.startswith('"') or "," not in cell else f'"{cell}"'
    with pytest.raises(InvalidGroups) as error:
        read(f"a,b/c\n1,\n2,{quoted}\n", {"a": "int64", "b/c": declared})

    assert error.value.pointer == "/csv_types/b~1c"
    assert error.value.detail.startswith("must be the type of all cells of this column: ")
    assert error.value.__context__ is None
    assert "s3cret" not in str(error.value)


def test_a_header_of_very_many_columns_is_refused_before_arrow_makes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a million columns that takes half a minute."""
    wide = ",".join(f'"c,{place}\n"' for place in range(300_000))
    opened: list[object] = []
    monkeypatch.setattr(pa.csv, "open_csv", lambda *source, **_options: opened.append(source))

    with pytest.raises(InvalidGroups) as refused:
        read(f"{wide}\n")

    assert refused.value.pointer == "/csv_types"
    assert opened == []


def test_limits_hold_for_csv() -> None:
    content = "a,b\n" + "".join(f"{number},x\n" for number in range(100))

    with pytest.raises(TooManyGroups):
        read(content, limits=Limits(99, 10**9))
    with pytest.raises(TooManyGroups):
        read(content, limits=Limits(100, 100))


CELLS = st.none() | st.text(st.sampled_from('a",\r\n é\x00;'), max_size=5)
TABLES = st.lists(st.tuples(CELLS, CELLS), max_size=8)


@given(TABLES)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_what_is_written_reads_back(rows: list[Any]) -> None:
    """Null and the empty string stay apart. Python's own reader finds the same cells, but for nulls."""
    table = pa.table(
        {
            "a": pa.array([row[0] for row in rows], pa.string()),
            'b "\n,': pa.array([row[1] for row in rows], pa.string()),
        }
    )
    content = written(table)

    assert read(content, {"a": "string", 'b "\n,': "string"}).to_pydict() == table.to_pydict()
    text = io.StringIO(content.decode(), newline="")
    expected = [[cell or "" for cell in row] for row in rows]
    assert list(csv.reader(text, strict=True)) == [["a", 'b "\n,'], *expected]


@given(st.text(st.sampled_from('a",\n'), max_size=9), st.integers(1, 9))
@settings(max_examples=400, deadline=None, derandomize=True)
def test_quotes_are_those_of_the_standard(text: str, block: int) -> None:
    """Compared with a parser by hand. Blocks are short: what is open stays open from block to block."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_format, "_SMALL_BLOCK", block)
        try:
            csv_format._check_quotes(pa.py_buffer(text.encode()))
            found = True
        except pa.ArrowInvalid:
            found = False

    assert found == is_standard(text)


def test_short_lines_take_no_more_memory_than_long_ones() -> None:
    """Arrow notes where each cell of a block is: for empty lines this takes many times the block."""
    content, usual = b"a,b\n" + b"\n" * 2**23, pa.default_memory_pool()
    counted = pa.proxy_memory_pool(usual)
    pa.set_memory_pool(counted)
    try:
        _, batches = csv_format.csv_batches(pa.py_buffer(content), TEXTS)
        assert sum(batch.num_rows for batch in batches) == 2**23
    finally:
        pa.set_memory_pool(usual)

    assert counted.max_memory() < 10 * len(content)


def is_standard(text: str) -> bool:
    state = "start"
    for character in text:
        if state == "quoted":
            state = "closed" if character == '"' else "quoted"
        elif character in ",\n":
            state = "start"
        elif character == '"':
            if state == "plain":
                return False
            state = "quoted"  # at the start of a cell, or the second of two
        elif state == "closed":
            return False
        else:
            state = "plain"
    return state != "quoted"


def test_numbers_and_dates_are_written_in_one_form() -> None:
    table = pa.table(
        {
            "float": [1.0, 0.1, 1e300, None],
            "int": [1, -2, None, 2**62],
            "decimal": pa.array(["1.50", "-3", None, "0.000000001"]).cast(pa.decimal128(38, 9)),
            "bool": [True, False, None, True],
            "date": pa.array([0, None, 1, 20773], pa.date32()),
            "time": pa.array([0, 1, None, 10**15], pa.timestamp("us")),
        }
    )

    assert written(table).decode().splitlines() == [
        "float,int,decimal,bool,date,time",
        "1.0,1,1.5,true,1970-01-01,1970-01-01T00:00:00.000000",
        "0.1,-2,-3,false,,1970-01-01T00:00:00.000001",
        "1e+300,,,,1970-01-02,",
        ",4611686018427387904,0.000000001,true,2026-11-16,2001-09-09T01:46:40.000000",
    ]
    types: dict[str, CsvType] = {"float": "float64", "int": "int64", "decimal": "decimal", "bool": "boolean"}
    types |= {"date": "date", "time": "timestamp"}
    assert read(written(table), types).to_pydict() == table.to_pydict()


def test_a_release_of_csv_is_csv_and_shows_only_kept_rows() -> None:
    types: dict[str, CsvType] = {"key": "string", "price": "decimal", "count": "int64"}
    roles = Roles(("key", "price"), "count", ())

    def answer(content: str) -> bytes:
        kind, table = read_table(pa.py_buffer(content.encode()), AMPLE, types)
        sink = io.BytesIO()
        write_table(kind, check_table(NOISE, table, roles).release(same_noise), "{}", sink)
        return sink.getvalue()

    kept = f'b,1.50,{CERTAIN}\n"",2,{CERTAIN}\n,,{CERTAIN}\n'
    expected = answer(f"key,price,count\n{kept}")
    dropped = f'"x\n""",0.123456789,{HOPELESS}\nzzz,,{HOPELESS}\n'
    assert answer(f'price,key,count\n1.5,b,{CERTAIN}\n,,{CERTAIN}\n2.0,"",{CERTAIN}\n') == expected
    assert answer(f"key,price,count\n{dropped}{kept}") == expected
    lines = expected.decode().splitlines()
    assert [line.rsplit(",", 1)[0] for line in lines] == ["key,price", '"",2', "b,1.5", ","]
    assert b"certificate" not in expected


def test_csv_and_parquet_of_the_same_groups_have_the_same_digest() -> None:
    table = pa.table({"key": ["a", None, ""], "count": [1, 2, 3]})
    roles = Roles(("key",), "count", ())
    types: dict[str, CsvType] = {"key": "string", "count": "int64"}

    assert check_table(NOISE, read('count,key\n3,""\n2,\n1,a\n', types), roles).digest() == (
        check_table(NOISE, table, roles).digest()
    )
