"""The readers of the release page: the columns of Parquet and Arrow as in pyarrow, and CSV as Python's csv reads it."""

import base64
import csv
import gzip
import io
import json
import zipfile
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from playwright.sync_api import BrowserContext, Page

from tests.app.process import Service

SCHEMA = pa.schema(
    [
        ("url", pa.string()),
        ("large", pa.large_string()),
        ("word", pa.dictionary(pa.int8(), pa.string())),
        ("code", pa.dictionary(pa.int8(), pa.int64())),
        ("bytes", pa.binary(4)),
        ("flag", pa.bool_()),
        ("small", pa.int8()),
        ("users", pa.int64()),
        ("wide", pa.uint64()),
        ("ratio", pa.float32()),
        ("seconds", pa.float64()),
        ("sum", pa.decimal128(38, 0)),
        ("price", pa.decimal128(20, 2)),
        ("day", pa.date32()),
        ("clock", pa.time64("us")),
        ("at", pa.timestamp("ms", "UTC")),
        ("naïve ✓", pa.int32()),
        ("parts", pa.list_(pa.struct([("a", pa.int64()), ("b", pa.string())]))),
        ("nested", pa.struct([("users", pa.int64())])),
        ("last", pa.uint16()),
    ],
    metadata={"pandas": "x" * 5000},
)


@pytest.fixture(scope="module")
def page(service: Service, window: BrowserContext) -> Iterator[Page]:
    tab = window.new_page()
    tab.goto(f"{service.url}/problems")
    yield tab
    tab.close()


def call(page: Page, module: str, expression: str, argument: object) -> Any:
    """The value of an expression; ``it`` is the module, ``file`` a blob if the argument is bytes."""
    given = base64.b64encode(argument).decode() if isinstance(argument, bytes) else argument
    script = (
        f"async (given) => {{ const it = await import('./web/release/{module}.js');"
        " const file = () => new Blob([Uint8Array.from(atob(given), (each) => each.charCodeAt(0))]);"
        f" return {expression}; }}"
    )
    return page.evaluate(script, given)


def kind_of(kind: pa.DataType) -> str:
    if pa.types.is_dictionary(kind):
        return "text" if kind_of(kind.value_type) == "text" else "other"
    if pa.types.is_floating(kind):
        return "number"
    if pa.types.is_decimal(kind) and kind.scale != 0:
        return "other"
    return "whole" if pa.types.is_integer(kind) or pa.types.is_decimal(kind) else "text"


def expected(schema: pa.Schema) -> list[dict[str, str]]:
    return [{"name": field.name, "kind": kind_of(field.type)} for field in schema]


def as_parquet(table: pa.Table, **options: object) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def as_arrow(table: pa.Table, new: Any) -> bytes:
    sink = io.BytesIO()
    with new(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


@pytest.mark.parametrize("options", [{}, {"version": "1.0", "compression": "zstd"}, {"store_schema": False}], ids=str)
def test_the_columns_of_parquet_are_those_that_pyarrow_reads(page: Page, options: dict[str, object]) -> None:
    content = as_parquet(SCHEMA.empty_table() if options else pa.Table.from_pylist([{}] * 300, SCHEMA), **options)
    read = pq.read_schema(io.BytesIO(content))
    # A dictionary of integers is stored as integers. The page sees how it is stored.
    wanted = [each | ({"kind": "whole"} if each["name"] == "code" else {}) for each in expected(read)]
    found = call(page, "parquet-columns", "await it.parquetColumns(file())", content)

    assert [{"name": each["name"], "kind": each["kind"]} for each in found["columns"]] == wanted
    assert found["rows"] == (0 if options else 300)


def test_the_range_of_a_parquet_column_is_what_pyarrow_reads(page: Page) -> None:
    """Over all row groups. Without statistics, and for other types, none is shown."""
    table = pa.table(
        {
            "url": ["b", "ärger", None, "a"],
            "users": pa.array([7, 5000, -3, 2**60], pa.int64()),
            "small": pa.array([7, 5, -3, 2], pa.int8()),
            "seconds": [1.5, 2.25, -0.5, None],
            "day": pa.array([1, 2, 3, 4], pa.date32()),
            "code": [b"a", b"b", b"c", b"d"],
        }
    )
    ranges = "Object.fromEntries((await it.parquetColumns(file())).columns.map(({ name, range }) => [name, range]))"

    assert call(page, "parquet-columns", ranges, as_parquet(table, row_group_size=2)) == {
        "url": ["a", "ärger"],
        "users": ["-3", str(2**60)],
        "small": None,
        "seconds": ["-0.5", "2.25"],
        "day": None,
        "code": None,
    }
    without = as_parquet(table, write_statistics=False)
    assert set(call(page, "parquet-columns", ranges, without).values()) == {None}


@pytest.mark.parametrize("new", [pa.ipc.new_stream, pa.ipc.new_file], ids=["stream", "file"])
def test_the_columns_of_arrow_are_those_of_its_schema(page: Page, new: Any) -> None:
    content = as_arrow(pa.Table.from_pylist([{}] * 3, SCHEMA), new)
    is_file = "true" if new is pa.ipc.new_file else "false"
    found = call(page, "arrow-columns", f"await it.arrowColumns(file(), {is_file})", content)

    assert found == {"columns": expected(SCHEMA), "rows": None}


@pytest.mark.parametrize("cut", [8, 20, 200])
def test_a_damaged_file_is_named_and_not_guessed(page: Page, cut: int) -> None:
    whole = as_parquet(SCHEMA.empty_table())
    for content in (whole[:cut], as_arrow(SCHEMA.empty_table(), pa.ipc.new_stream)[:cut]):
        said = call(page, "table-file", "await it.tableOf(file()).catch((fault) => fault.message)", content)
        assert "damaged or incomplete" in said


CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\x00\r"), max_size=8)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    rows=st.integers(1, 4).flatmap(
        lambda width: st.lists(st.lists(CELLS, min_size=width, max_size=width), min_size=1, max_size=5)
    ),
    separator=st.sampled_from([",", ";", "\t"]),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_separated_values_are_read_as_python_reads_them(
    page: Page, rows: list[list[str]], separator: str, end: str
) -> None:
    """And written again, they are the same cells."""
    header = [f"c{place}" for place in range(len(rows[0]))]
    text = io.StringIO()
    csv.writer(text, delimiter=separator, lineterminator=end, quoting=csv.QUOTE_ALL).writerows([header, *rows])
    as_texts = "it.readRows({}).map(({{ cells }}) => cells.map((cell) => cell.text))"
    read, again = call(
        page,
        "csv-text",
        f"[{as_texts.format('given')}, "
        f"{as_texts.format('it.writeRows(it.readRows(given).map(({ cells }) => cells))')}]",
        text.getvalue(),
    )

    assert read == again == [header, *rows]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("url,users\na,1\nb\n", "Line 3: has 1 cell, and the header line has 2."),
        ('url,users\n"a\nb",1\n\n"c",2,3\n', "Line 5: has 3 cells, and the header line has 2."),
        (
            "url,users\na,12\ngrape,1,200\n",
            "Line 3: has 3 cells, and the header line has 2. Write numbers without separators between thousands.",
        ),
        ('url,users\n"a,1\n', "Line 2: a quote is not closed."),
        ('url,users\n"a"b,1\n', "Line 2: after a closing quote, the cell must end."),
        ("a.example,4812\nb.example,73\n", "Line 1: must have the names of the columns."),
        ("url,users\n", "The table has a header line and no rows."),
        ("\x02\x1f\x08\x00", "This is neither CSV, nor Parquet, nor Arrow."),
    ],
)
def test_a_text_that_is_no_table_is_refused_with_its_line(page: Page, text: str, fault: str) -> None:
    assert (
        call(page, "table-file", "await it.tableOf(new Blob([given])).catch((fault) => fault.message)", text) == fault
    )


def workbook(*parts: str) -> bytes:
    """An archive with parts of these names."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for part in parts:
            archive.writestr(part, "application/vnd.oasis.opendocument.spreadsheet", zipfile.ZIP_STORED)
    return sink.getvalue()


TABLE = "url,users\nhome,5\nZürich,7\n"
NO_TABLES = {
    "Excel workbook (xlsx). In Excel choose File, Save As, “CSV UTF-8”": workbook("[Content_Types].xml", "xl/a.xml"),
    "old Excel workbook (xls). In Excel choose File": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512),
    "spreadsheet (ods). Save it as CSV": workbook("mimetype"),
    "zip archive. Unpack it first": workbook("table.csv").replace(b"opendocument", b"0pendocument"),
    "compressed. Unpack it first.": gzip.compress(TABLE.encode()),
    "JSON. Write it as CSV": json.dumps([{"url": "home", "users": 5}], indent=2).encode(),
    "PDF. Open the table that it was made from.": b"%PDF-1.7\n",
    "Line 3: has letters that are not UTF-8. Save the file again as CSV in UTF-8": TABLE.encode("cp1252"),
    "begins as UTF-16, and goes on in another way": TABLE.encode("utf-16") + b"\x00\xd8",
}


def test_what_is_no_table_is_named_with_what_to_do(page: Page) -> None:
    files = [base64.b64encode(content).decode() for content in NO_TABLES.values()]
    read = (
        "Promise.all(given.map((each) => Uint8Array.from(atob(each), (one) => one.charCodeAt(0)))"
        ".map((bytes) => it.tableOf(new Blob([bytes])).then(() => 'read', (fault) => fault.message)))"
    )
    said = call(page, "table-file", f"await {read}", files)

    assert [text for text, wanted in zip(said, NO_TABLES, strict=True) if wanted not in text] == []


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_text_of_excel_and_powershell_is_the_same_table(page: Page, encoding: str) -> None:
    """With a byte order mark, or without one. It is sent as UTF-8."""
    read = "await (async () => { const table = await it.tableOf(file()); return it.bytesOf(table).text(); })()"

    assert call(page, "table-file", read, TABLE.replace(",", "\t").encode(encoding)) == TABLE


def test_numbers_are_checked_with_their_line_and_keys_are_sent_as_they_are(page: Page) -> None:
    """An empty cell is null, and an empty text in quotes is not. Columns that are left out are not sent."""
    sent = (
        "(async () => { const table = await it.tableOf(new Blob([given.text]));"
        " table.columns.forEach((column, k) => { column.role = given.roles[k]; });"
        " try { return [it.rolesOf(table), await it.bytesOf(table).text()]; }"
        " catch (fault) { return fault.message; } })()"
    )
    text = 'url;note;users\n"";x; 12 \n;"y;z";3\n " a";z;4\n'

    roles, content = call(page, "table-file", sent, {"text": text, "roles": ["key", "none", "count"]})
    assert roles == {
        "count_column": "users",
        "key_columns": ["url"],
        "csv_types": {"url": "string", "users": "int64"},
    }
    assert content == 'url,users\n"",12\n,3\n" "" a""",4\n'
    said = call(page, "table-file", sent, {"text": "a,b,users\nx,,1\nx,y,2\nx,,3\n", "roles": ["key", "key", "count"]})
    assert said == "Line 4: has the same group key as line 2."
    _, content = call(page, "table-file", sent, {"text": 'a,users\n"",1\n,2\n', "roles": ["key", "count"]})
    assert content == 'a,users\n"",1\n,2\n'
    faults = dict.fromkeys(("-1", "1.5", "1,5", "10^3", ""), "must be a whole number, such as 1200.")
    faults |= dict.fromkeys(("1,200", "1.200"), "can be read in two ways: write 1200, without a separator.")
    for cell, fault in faults.items():
        text = f'url\tusers\na\t3\nb\t"{cell}"\n'
        said = call(page, "table-file", sent, {"text": text, "roles": ["key", "count"]})
        assert said == f"Line 3: users {fault}"


@pytest.mark.parametrize(
    ("text", "roles"),
    [
        ("url,country,users,seconds\na,US,5,1.5\n", "key key count value"),
        ("page,unique_users,clicks\nhome,1200,50000\n", "key count value"),
        ("page,clicks,unique_users\nhome,50000,1200\n", "key unset count"),
        ("page,dau,clicks\nhome,1200,50000\n", "key unset unset"),
        ("page,views\nhome,12\n", "key count"),
        ("week,users\n47,12\n", "unset count"),
        ('page,users,clicks\nhome,"1,200",7\nnews,n/a,8\n', "key unset count"),
        ("page,share,users\nhome,12 %,7\nnews,,8\n", "key unset count"),
        ("day,users\n2026-11-17,12\n", "key count"),
        ("email,user_id\nann@example.org,90211\n", "unset unset"),
        ("contact,users\nann@example.org,5\n", "unset count"),
        ("page,customerId\nhome,90211\n", "key unset"),
        ("page,user\nhome,90211\n", "key unset"),
        ("cookie,users\n3f2504e0-4f89-11d3-9a0c-0305e82c3301,5\n", "unset count"),
        (",page,users\n0,home,5\n1,news,7\n", "none key count"),
        ("page;users;seconds\nhome;1 200;1,5\nnews;1.200.000;1,500\n", "key count value"),
        ("page;users;seconds\nhome;1200;1,500\n", "key count unset"),
        ("Unnamed: 0,page,users\n3,home,5\n7,news,9\n", "none key count"),
        (",users\nhome,5\nnews,9\n", "unset count"),
        (",page,users\n0.5,home,5\n", "unset key count"),
        ("page,rank\na,1\nb,2\nc,3\n", "key unset"),
        ("page,total\nhome,12\n", "key unset"),
        ("page,users,total\nhome,12,30\n", "key count unset"),
        ("page,users,seconds\nhome,12,1.000\nnews,7,12.500\n", "key count unset"),
        ("page,users,seconds\nhome,12,1.000\nnews,7,12.5\n", "key count value"),
    ],
)
def test_only_texts_become_a_group_key_by_themselves(page: Page, text: str, roles: str) -> None:
    """A group key is published without noise."""
    found = call(page, "table-file", "(await it.tableOf(new Blob([given]))).columns.map(({ role }) => role)", text)

    assert found == roles.split()


@pytest.mark.parametrize("new", [pa.ipc.new_stream, pa.ipc.new_file, None], ids=["stream", "file", "parquet"])
def test_no_number_of_a_file_becomes_a_group_key_by_itself(page: Page, new: Any) -> None:
    table = SCHEMA.append(pa.field("time", pa.duration("s"))).empty_table()
    content = as_parquet(table) if new is None else as_arrow(table, new)
    found = call(page, "table-file", "(await it.tableOf(file())).columns", content)

    numbers = {"code", "small", "users", "wide", "ratio", "seconds", "sum", "price", "naïve ✓", "last", "time"}
    assert {each["name"] for each in found if each["role"] != "key"} == numbers
    assert [each["name"] for each in found if each["role"] == "count"] == ["users"]
