"""Copied code runs unchanged: curl and Python against the service, the query in DuckDB."""

import json
import re
import subprocess
import sys

import duckdb
import pytest
from playwright.sync_api import expect

from tests.browser.visits import Visit

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
    visit.open(path)
    shown = visit.page.locator("#sigma-exactly").inner_text().split()[0]

    curl = subprocess.run(["bash", "-c", copied(visit, "curl")], capture_output=True, text=True, check=True)
    python = subprocess.run([sys.executable, "-c", copied(visit, "Python")], capture_output=True, text=True, check=True)

    mechanism = json.loads(curl.stdout)["mechanism"]
    assert mechanism["sigma"] == float(shown)
    assert eval(python.stdout) == mechanism


def query(visit: Visit, path: str) -> str:
    visit.open(path)
    return copied(visit, "SQL")


def test_the_query_has_the_calibrated_numbers(visit: Visit) -> None:
    sql = query(visit, "/")

    for number in ("_place <= 51914", "COUNT(*) >= 1", "2228.482632459166 *", ">= 13951.051328063842"):
        assert number in sql


def test_the_query_runs_and_keeps_groups_above_both_thresholds(visit: Visit) -> None:
    """Pages a and b are far above τ*. Pages of one user are below τ. A NULL user is not counted."""
    sql = query(visit, COLUMNS)
    database = duckdb.connect()
    database.execute(VIEWS)
    rows = database.execute(sql).fetchall()
    (sigma,) = map(float, re.findall(r"_users \+ (\S+) \*", sql))

    assert [(url, country) for url, country, *_ in rows] == [("a", "US"), ("b", "FR")]
    (_, _, users_a, likes_a, its_a), (_, _, users_b, likes_b, its_b) = rows
    near = {"abs": 7 * sigma}
    assert (users_a, users_b) == pytest.approx((6000, 4000), **near)
    assert (likes_a, likes_b) == pytest.approx((6000, 4000), **near)  # clipped to 1 each
    assert (its_a, its_b) == pytest.approx((3 * 6000, -2 * 4000), **near)  # 3 each, and −7 clipped to −2


def test_the_noise_of_the_query_is_drawn_once_per_group(visit: Visit) -> None:
    """If the threshold used a second draw, counts below τ* would appear."""
    sql = query(visit, "/?epsilon=1&delta=1e-3&c_u=1&tau=1")
    tau_star = float(re.findall(r"_users >= (\S+)", sql)[0])
    database = duckdb.connect()
    database.execute(
        "CREATE TABLE views AS SELECT 'u' || g || '-' || u AS user_id, 'p' || g AS url, 'US' AS country "
        f"FROM range(2000) t(g), range({round(tau_star)}) s(u)"
    )
    counts = [users for _, _, users in database.execute(sql).fetchall()]

    assert 850 < len(counts) < 1150  # half of the groups at τ*
    assert min(counts) >= tau_star


def test_no_user_changes_a_sum_in_more_groups_than_its_cap(visit: Visit) -> None:
    """Each user is in 20 groups and likes 12 of them. 10 groups count, and 3 of the likes."""
    sql = query(visit, CAPPED)
    database = duckdb.connect()
    database.execute(
        "CREATE TABLE views AS SELECT 'u' || u AS user_id, p AS url, 'US' AS country, "
        "CASE WHEN p < 12 THEN 1 ELSE 0 END AS likes, 1 AS seconds FROM range(4000) t(u), range(20) s(p)"
    )
    rows = database.execute(sql.replace(" * sqrt", " * 0 * sqrt")).fetchall()

    assert len(rows) == 20
    assert sum(users for _, _, users, _, _ in rows) == sum(seconds for *_, seconds in rows) == 10 * 4000
    assert sum(likes for *_, likes, _ in rows) == pytest.approx(3 * 4000, rel=0.02)  # some users drew fewer than 3
    assert sum(likes for *_, likes, _ in rows) <= 3 * 4000


BOUNDS = "column=a~0~0.5~1&column=b~-0.5~1.5~1&column=c~-1~2~1"


def test_no_user_adds_more_to_a_sum_than_the_bounds_allow(visit: Visit) -> None:
    """Rounding after clipping would turn 0.5 into 1. So the query rounds before it clips."""
    sql = query(visit, f"/?epsilon=1&delta=0.5&c_u=1&tau=1&{BOUNDS}")
    database = duckdb.connect()
    database.execute(
        "CREATE TABLE views AS SELECT 'u' || u AS user_id, 'p' AS url, 'US' AS country, "
        "0.9 AS a, CASE WHEN u % 2 = 0 THEN -7.25 ELSE 1.75 END AS b, 1.6 AS c FROM range(100000) t(u)"
    )
    ((_, _, users, *sums),) = database.execute(sql).fetchall()
    sigma = float(re.findall(r"_users \+ (\S+) \*", sql)[0])

    assert users == pytest.approx(100_000, abs=8 * sigma)
    assert sums == pytest.approx([50_000, 50_000, 200_000], abs=8 * sigma)


def test_a_column_may_have_any_name(visit: Visit) -> None:
    """A column called place must not disable the bound on groups per user."""
    names = ["place", "lot", "users", "url", "Country", "_sum2", "_user"]
    columns = "&".join(f"column={name}~0~1~1" for name in names)
    sql = query(visit, f"/?epsilon=4&delta=0.5&c_u=2&tau=1&{columns}")
    database = duckdb.connect()
    database.execute(
        "CREATE TABLE views AS SELECT u AS user_id, p AS url, 1 AS country, "
        "1 AS place, 1 AS lot, 1 AS users, 1 AS _sum2, 1 AS _user FROM range(20000) t(u), range(1, 11) s(p)"
    )
    result = database.execute(sql)
    heads = [each[0] for each in result.description]
    rows = result.fetchall()

    assert heads == ["url", "country", "users", "place", "lot", "users_2", "url_2", "Country_2", "_sum2", "_user"]
    assert len(rows) == 10
    for column in range(2, len(heads)):  # 20 000 users in 2 of 10 groups each
        assert sum(row[column] for row in rows) == pytest.approx(40_000, rel=0.03), heads[column]


def test_a_user_is_counted_in_no_more_groups_than_stated(visit: Visit) -> None:
    """With C_u = 3, three of 20 groups are counted. With C_u = 20, all are."""
    for c_u, counted in ((3, 3), (20, 20)):
        sql = query(visit, f"/?epsilon=5&delta=0.5&c_u={c_u}&tau=1")
        database = duckdb.connect()
        database.execute(
            "CREATE TABLE views AS SELECT 'u' || u AS user_id, 'p' || p AS url, 'US' AS country "
            "FROM range(5000) t(u), range(20) s(p)"
        )
        rows = database.execute(sql).fetchall()

        assert len(rows) == 20
        assert sum(users for _, _, users in rows) == pytest.approx(counted * 5000, rel=0.03)


def test_tabs_are_walked_with_the_arrows(visit: Visit) -> None:
    visit.open()
    visit.page.get_by_role("tab", name="curl").focus()
    visit.page.keyboard.press("ArrowRight")

    expect(visit.page.get_by_role("tab", name="Python")).to_be_focused()
    expect(visit.page.locator("#code")).to_contain_text("httpx")
    assert visit.query["code"] == ["python"]
