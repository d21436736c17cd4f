"""Several levels in one release, in the explorer: tables that share one privacy target."""

import json
import subprocess
import sys

import httpx
import pytest
from playwright.sync_api import expect

from tests.browser.visits import Visit

TARGET = "epsilon=1&delta=1e-6&c_u=16&tau=1"
TWO = f"/?{TARGET}&table=by_country~1~public~1&table=by_url~16~1~2"


def opened(visit: Visit, path: str) -> None:
    visit.page.goto(visit.url + path)
    expect(visit.page.locator("#levels-result")).to_have_attribute("aria-busy", "false")


def rows(visit: Visit) -> list[list[str]]:
    return [row.locator("th, td").all_text_contents() for row in visit.page.locator("#levels-answer tr").all()]


def sigmas_of(visit: Visit) -> list[float]:
    """With all digits."""
    cells = visit.page.locator("#levels-answer td:nth-child(3)")
    return [float(title) for title in cells.evaluate_all("all => all.map(each => each.title)")]


def asked(visit: Visit) -> list[str]:
    return [each.post_data for each in visit.requests if each.post_data and '"tables"' in each.post_data]


def test_three_levels_are_answered_when_the_panel_is_opened_and_not_before(visit: Visit) -> None:
    """One line per table, one sentence on the privacy of all, and what other accountings need."""
    visit.open(f"/?{TARGET}")
    page = visit.page
    expect(page.locator("#levels-form")).to_be_hidden()
    assert asked(visit) == []
    page.locator("#levels > summary").click()

    expect(page.locator("#levels-lead")).to_contain_text(
        "All tables together have the privacy of one: ε = 1, δ ≤ 10⁻⁶."
    )
    assert rows(visit) == [
        ["by_country", "33.3 %", "7.318", "none"],
        ["by_url", "33.3 %", "29.27", "159.40"],
        ["by_url_and_country", "33.3 %", "29.27", "159.40"],
    ]
    expect(page.locator("#levels-ways td")).to_have_text(["2.5 %", "5.5 %", "9.9 %", "12.9 %", "70.4 %", "72.2 %"])
    body = json.loads(asked(visit)[0])
    answer = httpx.post(f"{visit.url}/calibrate", json=body).raise_for_status().json()
    assert sigmas_of(visit) == [table["sigma"] for table in answer["tables"]]


def test_tables_are_added_removed_and_balanced_and_the_link_keeps_them(visit: Visit) -> None:
    opened(visit, TWO)
    page = visit.page
    expect(page.locator("#levels-answer td")).to_have_text(["33.3 %", "7.318", "none", "66.7 %", "20.70", "110.43"])

    page.get_by_role("button", name="Add a table").click()
    expect(page.locator("#level-2-name")).to_be_focused()
    page.locator("#level-2-name").fill("by_day")
    page.locator("#level-2-c_u").fill("7")
    page.get_by_label("Balanced shares").check()
    expect(page.locator("#levels-answer tr").nth(2)).to_contain_text("by_day")
    expect(page.locator("#levels-answer tr").nth(0)).to_contain_text("13.1 %")
    expect(page.locator("#level-0-share")).to_be_hidden()
    page.locator("#copy-link").click()
    link = page.evaluate("navigator.clipboard.readText()")
    shown = rows(visit)

    opened(visit, link.removeprefix(visit.url))
    expect(page.locator("#levels-answer tr")).to_have_count(3)
    assert rows(visit) == shown
    page.get_by_role("button", name="Remove table by_url", exact=True).click()
    expect(page.locator("#levels-answer tr")).to_have_count(2)
    page.go_back()
    expect(page.locator("#levels-answer tr")).to_have_count(3)


@pytest.mark.parametrize(
    ("field", "text", "detail"),
    [
        ("level-1-share", "0", "must be greater than 0"),
        ("level-1-share", "1,500", "can be read as 1500 or as 1.5000: write one of these"),
        ("level-1-tau", "", "is required, unless the groups are public"),
        ("level-0-c_u", "0", "must be at least 1"),
        ("level-1-name", "by_country", "must be unique among the tables"),
        ("delta", "2", "δ of the form must be less than 1."),
    ],
)
def test_an_error_is_shown_at_its_field_and_the_last_answer_is_struck_out(
    visit: Visit, field: str, text: str, detail: str
) -> None:
    opened(visit, TWO)
    page = visit.page
    expect(page.locator("#levels-answer tr")).to_have_count(2)
    good = page.locator(f"#{field}").input_value()
    page.locator(f"#{field}").fill(text)

    expect(page.locator(f"#{'levels-target' if field == 'delta' else field}-error")).to_have_text(detail)
    expect(page.locator("#levels-lead")).to_contain_text("No answer yet")
    expect(page.locator("#levels-answer td").first).to_have_css("text-decoration-line", "line-through")
    assert page.locator("#levels-copy-curl").is_disabled()
    page.locator(f"#{field}").fill(good)
    expect(page.locator("#levels-answer td").first).to_have_css("text-decoration-line", "none")
    expect(page.locator("#levels .error:not(:empty)")).to_have_count(0)
    visit.complaints.clear()  # the browser logs the 422 in its console


@pytest.mark.parametrize("shares", ["", "&shares=balanced"])
def test_the_copied_code_finds_the_same_tables(visit: Visit, shares: str) -> None:
    opened(visit, TWO + shares)
    page = visit.page
    page.locator("#levels-result .others > summary").click()
    texts = []
    for name in ("curl", "python"):
        page.locator(f"#levels-copy-{name}").click()
        expect(page.locator(f"#levels-copy-{name}")).to_have_text("Copied")
        texts.append(page.evaluate("navigator.clipboard.readText()"))

    curl = subprocess.run(["bash", "-c", texts[0]], capture_output=True, text=True, check=True)
    values = "print([each.sigma for each in found.tables.values()])"
    python = subprocess.run([sys.executable, "-c", texts[1] + values], capture_output=True, text=True, check=True)

    sigmas = [table["sigma"] for table in json.loads(curl.stdout)["tables"]]
    assert json.loads(python.stdout.splitlines()[-1]) == sigmas
    assert sigmas_of(visit) == sigmas
