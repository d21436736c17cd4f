"""1.000 is one or a thousand: CSV that people wrote is refused with its line, and CSV of machines is read."""

import json
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gsh.errors import InvalidGroups
from gsh.histogram.csv_format import CsvType
from gsh.histogram.formats import read_table
from gsh.histogram.texts import ADVICE, are_ambiguous
from tests.gsh.histogram.test_csv import AMPLE, read, written

EXAMPLES: list[dict[str, Any]] = json.loads((Path(__file__).parents[2] / "number_examples.json").read_text())
TYPES: dict[str, CsvType] = {"url": "string", "users": "int64", "seconds": "float64"}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each["text"])
def test_the_examples_hold_alone_and_as_a_column(example: dict[str, Any]) -> None:
    text = example["text"]

    assert are_ambiguous(pa.array([text]))[0].as_py() == example["ambiguous"]
    if not example["ambiguous"] and example["number"] is not None and not text.startswith("+"):
        assert read(f"url,seconds\na,{text}\n", {"url": "string", "seconds": "float64"})["seconds"].to_pylist() == [
            example["number"]
        ]


def refusal(content: str, types: dict[str, CsvType] = TYPES) -> tuple[str, str]:
    with pytest.raises(InvalidGroups) as error:
        read(content, types)
    assert error.value.__context__ is None
    return error.value.pointer, error.value.detail


@pytest.mark.parametrize("cell", ["1.000", '"1,000"', "-12.500"])
def test_an_ambiguous_count_is_refused_with_its_line(cell: str) -> None:
    """Also if another column has line breaks in quotes."""
    content = f'url,users,seconds\n"a\nb",1,2.5\nc,{cell},2.5\n'

    assert refusal(content) == ("/csv_types/users", f"line 4 {ADVICE}")


@pytest.mark.parametrize("declared", ["float64", "decimal"])
@pytest.mark.parametrize("others", [[], ["250"], ["7", "12.500", "-3.125"]])
def test_a_column_of_ambiguous_numbers_is_refused_with_its_line(others: list[str], declared: CsvType) -> None:
    cells = ["1", *others, "1.000", "2"]
    line = 2 + are_ambiguous(pa.array(cells)).to_pylist().index(True)
    content = "url,seconds\n" + "".join(f"{place},{cell}\n" for place, cell in enumerate(cells))

    assert refusal(content, {"url": "string", "seconds": declared}) == ("/csv_types/seconds", f"line {line} {ADVICE}")


@pytest.mark.parametrize("shown", ["0.250", "1234.568", "2.5", "3.0", ".5", "1.5e3"])
def test_one_cell_shows_that_the_point_is_a_decimal_point(shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it is: a program that writes three digits after the point writes some of these, too."""
    monkeypatch.setattr("gsh.histogram.csv_format._BLOCK", 64)  # many batches
    for cells in ([shown, *["1.000"] * 40], [*["1.000"] * 40, shown]):
        content = "url,seconds\n" + "".join(f"{place},{cell}\n" for place, cell in enumerate(cells))
        table = read(content, {"url": "string", "seconds": "float64"})
        assert table["seconds"].to_pylist() == [1.0 if cell == "1.000" else float(cell) for cell in cells]


def test_lines_are_those_of_an_editor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks are short: a row and a quoted cell may go on in the next one."""
    rows = ['"a\r\nb\n,""c""",1', "d,2", '"\n",3', "e,x"]
    for end in ("\n", "\r\n"):
        for block in (1, 2, 3, 7, 1 << 20):
            monkeypatch.setattr("gsh.histogram.csv_format._SMALL_BLOCK", block)
            content = end.join(["url,users", *rows, ""])
            assert refusal(content, {"url": "string", "users": "int64"})[1].endswith("; line 8 has another")
            uneven = end.join(["\ufeffurl,users", *rows[:3], "e,1,200"])
            assert refusal(uneven, {"url": "string", "users": "int64"}) == (
                "/table",
                "must be CSV in UTF-8 (RFC 4180), with a header line and as many cells in every line; line 8 has 3 of "
                "2 cells. Write numbers without separators between thousands",
            )


@pytest.mark.parametrize(("separator", "noun"), [(";", "semicolons"), ("\t", "tabs")])
def test_another_separator_is_named(separator: str, noun: str) -> None:
    """A spreadsheet with decimal commas writes semicolons."""
    content = "url,users,seconds\na,1200,1,5\n".replace(",", separator, 4)
    pointer, detail = refusal(content)

    assert pointer == "/table"
    assert detail.startswith(
        f"must have commas between cells, and a point in decimal numbers; the header line has {noun}"
    )


@given(st.lists(st.floats() | st.integers(-(10**6), 10**6).map(lambda number: number / 1000), min_size=1, max_size=5))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_what_is_written_is_never_ambiguous_and_reads_back(numbers: list[float]) -> None:
    content = written(pa.table({"url": [str(place) for place in range(len(numbers))], "seconds": numbers}))
    cells = [line.split(",")[1] for line in content.decode().splitlines()[1:]]
    again = read(content, {"url": "string", "seconds": "float64"})["seconds"].to_pylist()

    assert not any(are_ambiguous(pa.array(cells)).to_pylist())
    assert all(
        one == other or (math.isnan(one) and math.isnan(other)) for one, other in zip(again, numbers, strict=True)
    )


def test_tables_that_were_stored_before_are_still_read() -> None:
    """Version 0.2 wrote 12.125 in three digits."""
    stored = pa.py_buffer(b"url,seconds\na,12.125\n")
    _, table = read_table(stored, AMPLE, {"url": "string", "seconds": "float64"}, is_written_here=True)

    assert table["seconds"].to_pylist() == [12.125]
