"""Several tables in one release, in the browser: opened together, confirmed one by one, charged once, one archive."""

import json
import zipfile
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import FilePayload, expect

from tests.browser.test_accessibility import faults
from tests.browser.visits import Visit

URLS = "url,users,likes\na.example,48120,900\nb.example,7300,20\nc.example,4,0\n"
COUNTRIES = "country,users\nUS,4812\nFR,73\nJP,0\n"

DROP = """texts => {
  const dropped = new DataTransfer();
  for (const text of texts) dropped.items.add(new File([text], "dropped.csv"));
  const place = document.getElementById("table-file");
  place.dispatchEvent(new DragEvent("drop", { dataTransfer: dropped, bubbles: true, cancelable: true }));
}"""


def file(name: str, text: str) -> FilePayload:
    return {"name": name, "mimeType": "text/csv", "buffer": text.encode()}


def opened(visit: Visit, budget: str = "", countries: str = COUNTRIES) -> None:
    """The page with two tables, before anything is confirmed."""
    if budget:
        httpx.put(f"{visit.url}/budgets/{budget}", json={"epsilon": 3, "delta": 1e-5}).raise_for_status()
    visit.page.goto(f"{visit.url}/release-table?budget={budget}")
    visit.page.locator("#noise-way").wait_for()
    visit.page.locator("#table-file").set_input_files([file("by_url.csv", URLS), file("by country.csv", countries)])
    expect(visit.page.locator("#tables li")).to_have_count(2)


def fill(visit: Visit) -> None:
    """The bounds of both tables. The countries are public."""
    page = visit.page
    page.locator("#joint-0-c_u").fill("16")
    page.locator("#joint-0-share").fill("2")
    page.locator("#joint-0-columns-0-upper").fill("5")
    page.locator("#joint-1-c_u").fill("1")
    page.locator("#joint-1-public").check()
    expect(page.locator("#noise-answer li")).to_have_count(2)


def confirm(visit: Visit) -> None:
    for index in range(2):
        visit.page.locator("#tables .choice").nth(index).click()
        visit.page.locator("#roles-confirmed").check()


def sent(visit: Visit, path: str) -> list[Any]:
    return [each for each in visit.requests if each.url.endswith(path) and each.method == "POST"]


def test_two_files_are_released_together(visit: Visit, tmp_path: Path) -> None:
    """Each is confirmed by itself. The public groups are all shown, also the one without users. One charge pays."""
    opened(visit, "levels")
    page = visit.page
    fill(visit)
    expect(page.locator("#noise-answer li")).to_have_text(
        [
            "by_url, 66.7 %: σ = 29.27, τ* = 155.73. Counts ± 57.37, likes ± 286.85, in 19 of 20 cases. Groups with a "
            "noisy count below τ* are not shown.",
            "by_country, 33.3 %: σ = 7.318, no threshold. Counts ± 14.35, in 19 of 20 cases. All groups are shown.",
        ]
    )
    expect(page.locator("#stated")).to_contain_text("ε = 1, δ ≤ 10⁻⁶")
    page.locator("#roles-confirmed").check()
    expect(page.locator("#try")).to_be_enabled()  # the noise is known
    expect(page.locator("#dry")).to_be_disabled()  # the other table is not confirmed
    confirm(visit)
    page.locator("#dry").click()
    expect(page.locator("#act-said")).to_contain_text("Your tables are in order, the name is free")
    assert faults(visit) == []
    page.locator("#count").click()

    expect(page.locator("#result-title")).to_contain_text("Released: levels-")
    expect(page.locator("#result-table h3")).to_have_text(["by_url", "by_country"])
    expect(page.get_by_role("region", name="Published groups of by_url").locator("tbody th")).to_have_text(
        ["a.example", "b.example"]
    )
    expect(page.get_by_role("region", name="Published groups of by_country").locator("tbody th")).to_have_text(
        ["FR", "JP", "US"]
    )
    covers = page.locator("#result-table .help")
    expect(covers).to_contain_text(["in at most 16 groups, likes clipped to 0 … 5.", "each unit in 1 group."])
    with page.expect_download() as started:
        page.get_by_role("button", name="Download all tables (zip)").click()
    started.value.save_as(tmp_path / "all.zip")
    with zipfile.ZipFile(tmp_path / "all.zip") as archive:
        assert sorted(archive.namelist()) == ["by_country.csv", "by_url.csv", "certificate.json"]
        certificate = json.loads(archive.read("certificate.json"))
        lines = archive.read("by_country.csv").decode().splitlines()
    assert [table["name"] for table in certificate["tables"]] == ["by_url", "by_country"]
    assert [line.partition(",")[0] for line in lines] == ["country", "FR", "JP", "US"]
    page.get_by_role("button", name="Read the certificate").click()
    expect(page.locator("dialog #certificate")).to_contain_text("by_country")
    page.locator("#certificate-close").click()
    with page.expect_download() as started:
        page.get_by_role("button", name="Download by_url as CSV").click()
    assert started.value.suggested_filename.endswith("-by_url.csv")
    assert httpx.get(f"{visit.url}/budgets/levels").json()["spent"]["releases"] == 1
    assert faults(visit) == []

    page.goto(f"{visit.url}/ledger?budget=levels")
    expect(page.locator("#history [data-kind=charge]")).to_contain_text("2 tables: C_u\u00a016, σ\u00a029.27, τ\u00a01")
    expect(page.locator("#releases")).to_contain_text("of several tables (zip)")
    with page.expect_download() as started:
        page.get_by_role("button", name="Download answer").click()
    assert started.value.suggested_filename.endswith(".zip")


def test_made_up_tables_show_how_the_release_looks(visit: Visit) -> None:
    opened(visit)
    fill(visit)
    visit.page.locator("#try").click()

    expect(visit.page.locator("#result-title")).to_have_text("Made-up data")
    expect(visit.page.locator("#result-table h3")).to_have_text(["by_url", "by_country"])
    expect(visit.page.locator("#result-table .help")).to_have_count(2)
    (request,) = sent(visit, "/release")
    assert "example" not in request.post_data
    assert json.loads(request.post_data)["tables"][1]["public_keys"] == "posted"


@pytest.mark.parametrize(
    ("field", "text", "detail"),
    [
        ("joint-0-share", "0", "must be greater than 0"),
        ("joint-0-c_u", "1,5", "must be an integer"),
        ("joint-0-tau", "", "is required, unless the groups are public"),
        ("joint-1-name", "by_url", "must be unique among the tables"),
        ("joint-0-columns-0-upper", "", "is needed"),
        ("noise-delta", "2", "must be less than 1"),
    ],
)
def test_an_error_is_shown_at_the_field_of_its_table(visit: Visit, field: str, text: str, detail: str) -> None:
    opened(visit)
    fill(visit)
    visit.page.locator(f"#{field}").fill(text)

    expect(visit.page.locator(f"#{field}-error")).to_have_text(detail)
    expect(visit.page.locator("#try")).to_be_disabled()
    visit.complaints.clear()  # the browser logs the 422 in its console


def test_a_fault_in_a_file_names_the_table(visit: Visit) -> None:
    """Also a second one that cannot be read: then none of the new files is taken."""
    opened(visit, "faults", countries="country,users\nUS,12\nUS,73\n")
    page = visit.page
    fill(visit)
    confirm(visit)
    page.locator("#dry").click()
    expect(page.locator("#act-error")).to_have_text("by_country: Line 3: has the same group key as line 2.")

    page.locator("#table-add").set_input_files([file("third.csv", 'a,b\n"open')])
    expect(page.locator("#table-error")).to_contain_text("third.csv: Line 2")
    expect(page.locator("#tables li")).to_have_count(2)
    assert sent(visit, "/release/table") == []


def test_without_the_second_table_the_page_is_that_of_one(visit: Visit) -> None:
    opened(visit)
    page = visit.page
    expect(page.locator("#noise-c_u")).to_be_hidden()
    page.get_by_role("button", name="Take away by_url").click()

    expect(page.locator("#table-known")).to_have_text("by country.csv: 3 rows, 2 columns, CSV")
    expect(page.locator("#joint")).to_be_hidden()
    page.locator("#noise-c_u").fill("1")
    expect(page.locator("#noise-answer")).to_contain_text("σ = 4.225")
    page.locator("#table-add").set_input_files([file("by_url.csv", URLS)])
    expect(page.locator("#tables .choice")).to_have_text(["by_country", "by_url"])
    page.evaluate(DROP, [URLS, COUNTRIES])
    expect(page.locator("#tables .choice")).to_have_text(["dropped", "dropped_2"])
