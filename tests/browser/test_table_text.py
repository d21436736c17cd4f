"""Pasted tables: one parser for every box. A line that can be read in two ways is refused with its number."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.browser.visits import Visit

THOUSANDS = "has a number that has separators between thousands: write it without them"
TWO_WAYS = "has a number that can be read as 1234 or as 1.2340: write one of these"
ONE_OR_TWO = (
    "can be read as one number or as two: write numbers without separators between thousands, "
    "or name the columns in a first line"
)


def groups(case_study: Visit, text: str, **options: object) -> Any:
    return case_study.page.evaluate(
        "async ([text, options]) => (await import('./web/explorer/group-text.js')).groupsIn(text, options)",
        [text, options],
    )


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("1 2 3", [1, 2, 3]),
        ("10, 20\n30, 40", [10, 20, 30, 40]),
        ("[100, 200, 300]", [100, 200, 300]),
        ("[100,200,300]", [100, 200, 300]),
        ("a.org,5\nb2.org,7\n", [5, 7]),
        ("url\tcount\r\nx1\t1e3\r\n", [1000]),
        ("2024-01-01,12\n2024-01-02,13", [12, 13]),
        ("id,users\n1,400\n2,300", [400, 300]),
        ("New York 1200\nRome 5", [1200, 5]),
        ("fruit users\ngrape 1200\npear 5", [1200, 5]),
        ("users,url\n5,a\n7,b", [5, 7]),
        ("page,visits\na,5\nb,7", [5, 7]),
        ("page,unique_users\nhome,1200\nhelp,7", [1200, 7]),
        ("year,distinct_ids\n2024,5\n2025,7", [5, 7]),
        ("page,users,users_low,users_estimate,users_high\na,5,1,4,9\nb,7,2,6,9", [5, 7]),
        ("a;b;5\nc;d;6", [5, 6]),
        ("\ufeffurl,users\na,5", [5]),
        ("a,5,\nb,6,", [5, 6]),
        ("", []),
    ],
)
def test_counts_are_found(case_study: Visit, text: str, counts: list[int]) -> None:
    found = groups(case_study, text)

    assert (found["counts"], found["problems"]) == (counts, [])


@pytest.mark.parametrize(
    ("text", "counts", "line", "detail"),
    [
        ("grape 1,200", [], 1, ONE_OR_TWO),
        ("pear 30\ngrape 1,200", [30], 2, ONE_OR_TWO),
        ("1,234\n56", [56], 1, ONE_OR_TWO),
        ("56\n1 234", [56], 2, ONE_OR_TWO),
        ("1,200,90", [], 1, ONE_OR_TWO),
        ("7\n1 200 90", [7], 2, ONE_OR_TWO),
        ("a,1,234\nb,x,5", [5], 1, ONE_OR_TWO),
        ("a\t1,234\nb\t56", [56], 1, TWO_WAYS),
        ("a,1.234\nb,56", [56], 1, TWO_WAYS),
        ("grape 1.234\npear 56", [56], 1, TWO_WAYS),
        ("56\n1.234", [56], 2, TWO_WAYS),
        ("a\t1,234,567\nb\t56", [56], 1, THOUSANDS),
        ("a;1,5\nb;56", [56], 1, "has a number that has a decimal comma: write a point, 1.5"),
        ("a;1'234\nb;56", [56], 1, THOUSANDS),
        ('url,users\na,"1,234"\nb,56', [56], 2, TWO_WAYS),
        ("url\tusers\na\t1\u202f234\nb\t56", [56], 2, THOUSANDS),
        (
            "url,users\nb,56\na,1,234",
            [56],
            3,
            "has 3 cells, and others have 2: write numbers without separators between thousands",
        ),
        ("a,5\n\nb", [5], 3, "has 1 cell, and others have 2"),
        ("a,5\nb,many", [5], 2, "has a text in place of a number"),
        ("a,5\nb,0", [5], 2, "has a count that is not a whole number, at least 1"),
        ("a,5\nb,2.5", [5], 2, "has a count that is not a whole number, at least 1"),
        ('k,users\n"a\nb",5\nc,x', [5], 4, "has a text in place of a number"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(
    case_study: Visit, text: str, counts: list[int], line: int, detail: str
) -> None:
    found = groups(case_study, text)

    assert (found["counts"], found["problems"]) == (counts, [{"line": line, "detail": detail}])


LEFT = "has a column of numbers that is neither the count, {}, nor a further column of the answer: remove {}"
WHICH = "must say which column is the count, {}: name it count, and remove the other columns of numbers"


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("page,unique_users,clicks\nhome,1200,50000", LEFT.format("unique_users", "clicks")),
        ("page,clicks,unique_users\nhome,50000,1200", LEFT.format("unique_users", "clicks")),
        ("unique_users,clicks\n1200,50000", LEFT.format("unique_users", "clicks")),
        ("users,likes,url\n5,6,a\n7,8,b", LEFT.format("users", "likes")),
        ("page,views,clicks\nhome,1200,50000", WHICH.format("views or clicks")),
        (
            "home,1200,50000",
            "has more numbers than one count and the further columns of the answer: name the columns in a first line",
        ),
    ],
)
def test_a_column_of_numbers_is_no_part_of_the_key(case_study: Visit, text: str, detail: str) -> None:
    """Which one is the count is not guessed, and the others would be read or released as names."""
    found = groups(case_study, text)

    assert (found["counts"], found["problems"]) == ([], [{"line": 1, "detail": detail}])


def test_the_columns_of_intervals_are_no_part_of_the_key(case_study: Visit) -> None:
    """The service's own table, pasted as it is. A column that only looks like one stays."""
    text = (
        "page,count,count_low,count_estimate,count_high,likes,likes_low,likes_estimate,likes_high\na,9,1,8,11,4,1,4,9"
    )
    found = groups(case_study, text, names=["likes"], isWhole=False)

    assert (found["keys"], found["counts"], found["values"]) == ([["a"]], [9], [[4]])
    assert found["countName"] == "count"
    assert groups(case_study, "price_low,users\ncheap,9")["keys"] == [["cheap"]]


def test_keys_have_several_columns_and_values_their_names(case_study: Visit) -> None:
    text = "country,likes,users,url\nUS,812,20411,a.org\nFR,1,3,b.org"
    found = groups(case_study, text, names=["likes"])

    assert found["keys"] == [["US", "a.org"], ["FR", "b.org"]]
    assert (found["counts"], found["values"]) == ([20411, 3], [[812, 1]])
    unnamed = groups(case_study, "a.org, US, 20411, 812", names=["likes"])
    assert (unnamed["keys"], unnamed["counts"], unnamed["values"]) == ([["a.org", "US"]], [20411], [[812]])


CELL = st.text(st.sampled_from('abc ,;"\n\t1.'), min_size=1, max_size=6).map(lambda text: f"k{text}k")
ROWS = st.lists(st.tuples(CELL, CELL, st.integers(1, 10**9)), min_size=1, max_size=5)


@settings(max_examples=15, deadline=None)
@given(tables=st.lists(ROWS, min_size=10, max_size=10), separator=st.sampled_from(",\t"))
def test_a_quoted_table_is_read_as_it_was_written(
    case_study: Visit, tables: list[list[tuple[str, str, int]]], separator: str
) -> None:
    """Separators, quotes and line breaks in keys [RFC 4180]. Ten tables at a time: a call of the browser is slow."""
    for rows in tables:
        quoted = [[f'"{key.replace(chr(34), 2 * chr(34))}"' for key in row[:2]] + [str(row[2])] for row in rows]
        text = "\r\n".join(separator.join(cells) for cells in [["one", "two", "users"], *quoted])
        found = groups(case_study, text)

        assert found["keys"] == [[one.strip(), two.strip()] for one, two, _ in rows]
        assert found["counts"] == [count for *_, count in rows]


def test_a_million_sizes_are_read(case_study: Visit) -> None:
    text = "Array.from({length: 1e6}, (_, k) => 1 + (k * 7919) % 5000).join('\\n')"
    load = "const { groupsIn } = await import('./web/explorer/group-text.js');"
    script = f"async () => {{ {load} const {{ counts, problems }} = groupsIn({text}); "
    found = case_study.page.evaluate(f"{script} return [counts.length, Math.max(...counts.slice(0, 9)), problems]; }}")

    assert found == [1_000_000, 1 + max((k * 7919) % 5000 for k in range(9)), []]
