"""Numbers that can be read in two ways: the pages and the library have the same rules, and every box keeps them."""

import json
import re

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from playwright.sync_api import BrowserContext, Page, expect

from gsh.errors import InvalidGroups
from gsh.histogram.formats import read_table
from gsh.histogram.texts import are_ambiguous
from tests.app.process import Service
from tests.browser.test_table_readers import call, page
from tests.browser.visits import Visit
from tests.gsh.histogram.test_csv import AMPLE
from tests.gsh.histogram.test_texts import EXAMPLES

__all__ = ["page"]

MODULE = "../shared/number-text"
NUMERAL = re.compile(r"-?([0-9]+\.?[0-9]*|\.[0-9]+)(e[0-9]+)?")


def test_the_examples_hold_in_the_pages(page: Page) -> None:
    read = "given.map((text) => [it.isAmbiguous(text), it.numberIn(text).number ?? null])"
    found = call(page, MODULE, read, [example["text"] for example in EXAMPLES])

    assert found == [[example["ambiguous"], example.get("number")] for example in EXAMPLES]


def test_a_box_reads_numbers_as_people_type_them(page: Page) -> None:
    """What it reads is a number in JSON: 1,5 and 10^-6 and 1/1000000, but not what can be read in two ways."""
    found = call(page, MODULE, "given.map(it.plainNumber)", [example["text"] for example in EXAMPLES])
    wanted = [example.get("typed", example.get("number")) for example in EXAMPLES]

    assert [None if text is None else json.loads(text) for text in found] == wanted


@settings(max_examples=10, deadline=None, derandomize=True)
@given(st.lists(st.integers(-(10**12), 10**12).map(lambda n: n / 1000), max_size=50))
def test_a_box_reads_every_way_to_group_and_to_mark_decimals_or_refuses_it(page: Page, numbers: list[float]) -> None:
    ways = {",.": "{:,.2f}", ".,": "{:,.2f}", " ,": "{:,.2f}", "'.": "{:,.2f}", ",": "{:,.0f}", ".": "{:,.0f}"}
    texts = [
        (form.format(number).translate(str.maketrans(",.", marks.ljust(2, "."))), form.format(number).replace(",", ""))
        for number in numbers
        for marks, form in ways.items()
    ]
    found = call(page, MODULE, "given.map(it.plainNumber)", [text for text, _ in texts])

    for (text, meant), read in zip(texts, found, strict=True):
        is_unclear = are_ambiguous(pa.array([text]))[0].as_py()
        assert (read is None) if is_unclear else (float(read) == float(meant)), text


CELLS = st.one_of(
    st.from_regex(r"-?[0-9]{1,4}[.][0-9]{2,4}", fullmatch=True),
    st.from_regex(r"-?[0-9]{1,5}", fullmatch=True),
    st.from_regex(r"[0-9]{0,2}[.][0-9]{0,3}(e[0-9])?", fullmatch=True),
)
COLUMNS = st.lists(st.lists(CELLS, min_size=1, max_size=4), min_size=20, max_size=20)
SENT = (
    "Promise.all(given.map(async (text) => { const table = await it.tableOf(new Blob([text]));"
    " table.columns.forEach((column, k) => { column.role = ['key', 'count', 'value'][k]; });"
    " try { return await it.bytesOf(table).text(); } catch (fault) { return fault.line; } }))"
)


def sent(page: Page, columns: list[list[str]]) -> list[str | int]:
    """For each column of decimal numbers the CSV that the release page sends, or the line that it refuses."""
    texts = ["".join(f"k{row}\t5\t{cell}\n" for row, cell in enumerate(cells)) for cells in columns]
    found: list[str | int] = call(page, "table-file", SENT, [f"url\tusers\tseconds\n{text}" for text in texts])
    return found


@settings(max_examples=25, deadline=None, derandomize=True)
@given(columns=COLUMNS)
def test_pages_and_library_refuse_the_same_columns_in_the_same_line(page: Page, columns: list[list[str]]) -> None:
    """What the page sends, the service reads as the same numbers."""
    for cells, found in zip(columns, sent(page, columns), strict=True):
        expected = refused_line(cells)
        assert isinstance(found, int) == (expected is not None)
        if isinstance(found, str):
            assert [float(line.split(",")[2]) for line in found.splitlines()[1:]] == [float(cell) for cell in cells]
        elif all(NUMERAL.fullmatch(cell) for cell in cells):  # the library looks for texts first
            assert found == expected


@settings(max_examples=10, deadline=None, derandomize=True)
@given(columns=COLUMNS)
def test_decimal_commas_of_a_column_are_sent_as_points(page: Page, columns: list[list[str]]) -> None:
    """The page refuses what can be read in two ways, in the same line as with points."""
    written = [cells for cells in columns if not any(re.search(r"\.(e|$)", cell) for cell in cells)]

    assert sent(page, [[cell.replace(".", ",") for cell in cells] for cells in written]) == sent(page, written)


def refused_line(cells: list[str]) -> int | None:
    content = "url,users,seconds\n" + "".join(f'k{row},5,"{cell}"\n' for row, cell in enumerate(cells))
    try:
        read_table(pa.py_buffer(content.encode()), AMPLE, {"url": "string", "users": "int64", "seconds": "float64"})
    except InvalidGroups as error:
        return int(error.detail.split("line ")[1].split()[0])
    return None


@settings(max_examples=10, deadline=None, derandomize=True)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False) | st.integers(0, 10**6).map(lambda n: n / 1000)))
def test_what_the_pages_write_into_boxes_is_never_ambiguous(page: Page, numbers: list[float]) -> None:
    found = call(page, MODULE, "given.map((number) => it.numberText(number))", numbers)

    assert not any(are_ambiguous(pa.array(found, pa.string())).to_pylist())
    assert [float(text) for text in found] == numbers


@pytest.mark.parametrize("field", ["epsilon", "delta", "c_u", "tau", "sigma", "tau_star"])
def test_every_box_of_the_explorer_refuses_them(visit: Visit, field: str) -> None:
    page = visit.open().page
    page.evaluate("document.getElementById('more').open = true")
    page.locator(f"#{field}").fill("1.000")

    expect(page.locator(f"#{field}-error")).to_have_text("can be read as 1000 or as 1.0000: write one of these")
    visit.complaints.clear()  # the browser logs the 422 in its console


def test_the_explorer_answers_for_numbers_as_people_type_them(visit: Visit) -> None:
    """The same answer as for 1.5 and 1e-6, with a column, and given noise is shown as it was read."""
    fields = "&c_u=4&tau=1&column=likes~0~{}~"
    visit.open(f"/?epsilon=1.5&delta=1e-6{fields.format('2.5')}")
    answers = [visit.page.locator(f"#{name}").inner_text() for name in ("answer", "certificate")]
    visit.open(f"/?epsilon=1,5&delta=1/1000000{fields.format('2,5')}")
    assert [visit.page.locator(f"#{name}").inner_text() for name in ("answer", "certificate")] == answers
    visit.fill("delta", "10^-6")
    assert [visit.page.locator(f"#{name}").inner_text() for name in ("answer", "certificate")] == answers
    visit.fill("sigma", "1 000,5")
    expect(visit.page.locator("#sigma-answer")).to_have_text("1000.5")


def test_the_limit_of_a_budget_refuses_them(service: Service, window: BrowserContext) -> None:
    tab = window.new_page()
    tab.goto(f"{service.url}/ledger")
    form = tab.locator("#create-form")
    tab.locator("#create").evaluate("(each) => { each.open = true; }")
    form.get_by_label("Name").fill("two-ways")
    form.get_by_label("Limit of ε").fill("1.000")
    form.get_by_label("Limit of δ").fill("1e-6")
    form.get_by_role("button", name="Create").click()

    expect(form.locator("#create-form-epsilon-error")).to_have_text(
        "can be read as 1000 or as 1.0000: write one of these"
    )
    tab.close()
