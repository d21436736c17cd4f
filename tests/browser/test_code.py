"""Copied code runs unchanged: curl and Python against the service, the query in DuckDB."""

import json
import subprocess
import sys

import duckdb
import pytest
from playwright.sync_api import expect

from tests.browser.visits import CASE_STUDY, Visit

COLUMNS = "/?epsilon=1&delta=1e-6&c_u=3&tau=2&column=likes~0~1~1&column=it%27s~-2~5~0.5"
CAPPED = "/?epsilon=1&delta=1e-6&c_u=10&tau=1&column=likes~0~1~~3&column=seconds~0~600~~"
GIVEN = "/?epsilon=0.349&delta=1e-5&c_u=51914&tau=1&sigma=2228&tau_star=13948"
# 6000 users of page a, 4000 of page b, one of page c; user 0 alone sees 30 more.
VIEWS = """
CREATE TABLE views AS
SELECT 'u' || u AS user_id, 'a' AS url, 'US' AS country, 1 AS likes, 3 AS "it's" FROM range(6000) t(u)
UNION ALL SELECT 'u' || u, 'b', 'FR', 9, -7 FROM range(4000) t(u)
UNION ALL SELECT 'u1', 'c', 'FR', 1, 1
UNION ALL SELECT NULL, 'd', 'FR', 1, 1
UNION ALL SELECT 'u0', 'page ' || p, 'US', 1, 1 FROM range(30) t(p)
"""


def copied(visit: Visit, tab: str) -> str:
    visit.page.get_by_role("tab", name=tab).click()
    visit.page.locator("#copy").click()
    expect(visit.page.locator("#copy")).to_have_text("Copied")
    text: str = visit.page.evaluate("navigator.clipboard.readText()")
    return text


@pytest.mark.parametrize("path", ["/", COLUMNS, CAPPED, GIVEN], ids=["counts", "columns", "capped", "given"])
def test_the_copied_commands_run_and_agree_with_the_page(visit: Visit, path: str) -> None:
    visit.open(path).unfold("code-fold")
    shown = visit.page.locator("#sigma-exactly").text_content() or ""

    curl = subprocess.run(["bash", "-c", copied(visit, "curl")], capture_output=True, text=True, check=True)
    python = subprocess.run([sys.executable, "-c", copied(visit, "Python")], capture_output=True, text=True, check=True)

    mechanism = json.loads(curl.stdout)["mechanism"]
    assert mechanism["sigma"] == float(shown)
    assert eval(python.stdout) == mechanism


def query(visit: Visit, path: str) -> str:
    visit.open(path).unfold("code-fold")
    return copied(visit, "SQL")


def test_the_query_runs_and_has_the_bounds_of_the_page(visit: Visit) -> None:
    """C_u = 3, τ = 2, likes within [0, 1] and it's within [-2, 5]."""
    database = duckdb.connect()
    database.execute(VIEWS)

    rows = database.execute(query(visit, COLUMNS)).fetchall()

    # User 0 has 32 groups and keeps 3 of them, all other users keep theirs.
    found = {row[:2]: row[2:] for row in rows}
    assert set(found) == {("a", "US"), ("b", "FR")}
    assert 5999 <= found["a", "US"][0] <= 6000
    assert found["a", "US"][1:] == (found["a", "US"][0], 3 * found["a", "US"][0])
    assert found["b", "FR"][1:] == (found["b", "FR"][0], -2 * found["b", "FR"][0])


def test_the_query_has_the_c_u_of_the_page(visit: Visit) -> None:
    assert "_place <= 51914" in query(visit, CASE_STUDY)


def test_no_user_changes_a_sum_in_more_groups_than_its_cap(visit: Visit) -> None:
    """Each user is in 10 groups and likes them all. Three of the likes count."""
    database = duckdb.connect()
    database.execute(
        "CREATE TABLE views AS SELECT 'u' || u AS user_id, 'p' || p AS url, 'US' AS country, "
        "1 AS likes, 1 AS seconds FROM range(200) t(u), range(10) s(p)"
    )
    rows = database.execute(query(visit, CAPPED)).fetchall()

    assert [sum(row[k] for row in rows) for k in (2, 3, 4)] == [10 * 200, 3 * 200, 10 * 200]


def test_a_bound_that_is_not_whole_has_a_unit(visit: Visit) -> None:
    assert "seconds: from 0 to 2560 per user and group, in units of 0.000976562" in query(
        visit, "/?epsilon=1&delta=1e-6&c_u=3&tau=1&column=seconds~0~2.5~1"
    )


def test_the_query_is_for_the_engine_and_the_columns_of_the_person(visit: Visit) -> None:
    """The note names the columns that the table needs. A wrong name is an error at its field."""
    visit.open("/?epsilon=1&delta=1e-6&c_u=7&tau=1&code=sql&column=seconds~0~2.5~~")
    page = visit.page
    form = page.get_by_role("form", name="Your table")
    form.get_by_label("Engine").select_option("BigQuery")
    form.get_by_label("Table").fill("web.visits")
    form.get_by_label("User column").fill("visitor")
    form.get_by_label("Group columns").fill("page")

    expect(page.locator("#code-note")).to_contain_text(
        "web.visits needs these columns: visitor (user, string), page (key, string), seconds (sum, double)."
    )
    expect(page.locator("#code-note")).to_contain_text("Multiply the result: seconds by 0.0009765625.")
    expect(page.locator("#code-note")).to_contain_text("It was not run on BigQuery here")
    assert "FROM web.visits AS _events" in copied(visit, "SQL")
    assert visit.query["dialect"] == ["bigquery"]
    assert not any("visit" in value for value in visit.page.url.split("?")[1].split("&"))

    form.get_by_label("Group columns").fill("page, visitor")
    expect(form.locator("#sql-form-by-error")).to_contain_text("must not have the user column")
    expect(page.locator("#code")).to_be_empty()
    expect(page.locator("#copy")).to_be_disabled()
    visit.page.reload()
    expect(form.get_by_label("Engine")).to_have_value("bigquery")
    page.locator("#results[data-answers]").wait_for()
    visit.complaints.clear()  # the browser logs the 422 in its console
