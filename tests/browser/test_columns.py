"""Further columns in the explorer: balanced or given noise, caps, and lines of the answer in their own units."""

import math
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from playwright.sync_api import Route, expect

from tests.browser.visits import Visit

TARGET = {"epsilon": 0.349, "delta": 1e-5}
QUERY = "/?epsilon=0.349&delta=1e-5&c_u=51914&tau=1"
NAMES = ["likes", "shares"]


def box(*groups: int | None) -> dict[str, Any]:
    return {"kind": "box", "lower": [0, 0], "upper": [1, 600], "groups": list(groups)}


def asked(visit: Visit, path: str, **aggregates: Any) -> dict[str, Any]:
    """The answer of the service to the same question, asked without the page."""
    draft = {"c_u": 51914, "tau": 1, "aggregates": {"names": NAMES, **aggregates}}
    answer: dict[str, Any] = httpx.post(f"{visit.url}/{path}", json={"mechanism": draft, **TARGET}).json()
    return answer


def sent(visit: Visit, path: str) -> dict[str, Any]:
    """The further columns in the page's last request to an endpoint."""
    last = [each for each in visit.requests if each.url == f"{visit.url}/{path}"][-1]
    columns: dict[str, Any] = last.post_data_json["mechanism"]["aggregates"]
    return columns


def exactly(visit: Visit, name: str) -> float:
    return float(visit.page.locator(f"#{name}-exactly").text_content() or "nan")


def stated(visit: Visit) -> dict[str, float]:
    """The half-widths in the answer, by column."""
    texts = visit.page.locator("#column-noise strong").all_inner_texts()
    pairs = [text.split(" ± ") for text in texts]
    return {name: float(number.replace("\u202f", "")) for name, number in pairs}


def test_two_columns_one_with_a_cap(visit: Visit) -> None:
    """The numbers are those of the service. Shares in 100 of 51 914 groups need 23 times less noise."""
    visit.open()
    page = visit.page
    page.locator("#more > summary").click()
    for name in NAMES:
        page.get_by_role("button", name="Add a column").click()
        expect(page.locator("#column-noise")).to_contain_text(name)
    second = page.get_by_role("group", name="Column 2")
    second.get_by_label("Maximum").fill("600")
    second.get_by_label("Groups, at most").fill("100")
    lines = page.locator("#column-noise li")
    expect(lines.nth(1)).to_contain_text(" in 19 of 20 cases, 23 times less noise than without the cap")

    columns = {"sensitivity": box(None, 100), "noise": "balanced"}
    mechanism = asked(visit, "calibrate", **columns)["mechanism"]
    noise = [math.sqrt(mechanism["aggregates"]["covariance"][j][j]) for j in range(2)]
    ratios = [each["ratio"] for each in asked(visit, "compare", **columns)["without_caps"]["columns"]]
    assert sent(visit, "calibrate") == {"names": NAMES, **columns}
    assert [exactly(visit, name) for name in ("sigma", "tau_star")] == [mechanism["sigma"], mechanism["tau_star"]]
    for name, deviation in zip(NAMES, noise, strict=True):
        assert 0 <= stated(visit)[name] - 1.96 * deviation <= 1  # rounded up
    assert ratios == pytest.approx([1, 22.78], abs=0.01)
    expect(lines.nth(0)).to_have_text("likes ± 7565.30 in 19 of 20 cases")


def test_small_noise_on_a_wide_column_is_pointed_out_and_mended(visit: Visit) -> None:
    """One σ of noise on 0 … 600 made σ 600 times as large, without a word. One click balances it."""
    visit.open(f"{QUERY}&column=likes~0~1~1 σ~&column=seconds~0~600~1 σ~")
    hint = visit.page.locator("#column-noise .greedy")
    expect(hint).to_contain_text("seconds takes over 99 % of the privacy loss")
    before = exactly(visit, "sigma")
    drawn = visit.answers()
    hint.get_by_role("button", name="Balance the noise").click()
    visit.wait_for_answer(drawn)

    expect(hint).to_have_count(0)
    assert visit.query["column"] == ["likes~0~1~~", "seconds~0~600~~"]
    assert exactly(visit, "sigma") < before / 100
    lines = visit.page.locator("#column-noise strong").all_inner_texts()
    assert lines[0].startswith("likes ± ")
    assert lines[1].startswith("seconds ± ")
    visit.page.go_back()
    expect(visit.page.locator("#column-1-noise")).to_have_value("1 σ")
    expect(hint).to_be_visible()


@pytest.mark.parametrize("cap", ["", "100"], ids=["all groups", "a cap"])
def test_noise_that_no_sigma_can_mend_is_mended_by_one_click(visit: Visit, cap: str) -> None:
    """The columns alone miss the target. The answer says so, and by how much, and offers what helps."""
    visit.page.goto(f"{visit.url}{QUERY}&column=seconds~0~600~64~{cap}")
    lead = visit.page.locator("#lead")
    expect(lead).to_contain_text("they alone miss the target, whatever σ is. It must be more than ")
    expect(visit.page.locator("#answer")).to_have_class("answer stale misses")
    expect(visit.page.locator("#small-answer")).to_have_text("The columns miss the target")
    expect(visit.page.locator("#columns-error")).to_contain_text(
        "at this C_u the further columns alone exceed the target"
    )
    lead.get_by_role("button", name="Balance the noise").click()

    expect(visit.page.locator("#column-noise strong")).to_contain_text("seconds ± ")
    expect(visit.page.locator("#answer")).to_have_class("answer")
    expect(lead.get_by_role("button")).to_have_count(0)
    visit.complaints.clear()  # the browser logs the 422 in its console


def test_the_link_to_budgets_carries_the_plan_with_its_columns(visit: Visit) -> None:
    """In the form of the links of this page, with the noise of each column in its own unit."""
    visit.open(f"{QUERY}&column=likes~0~1~3162.5~100&column=a%257Eb~0~600~3e6~")
    link = parse_qs(urlsplit(visit.page.locator("#plan").get_attribute("href") or "").query)

    assert float(link["sigma"][0]) == exactly(visit, "sigma")
    assert float(link["tau_star"][0]) == exactly(visit, "tau_star")
    assert (link["c_u"], link["tau"]) == (["51914"], ["1"])
    parts = [column.split("~") for column in link["column"]]
    assert [[*part[:3], part[4]] for part in parts] == [["likes", "0", "1", "100"], ["a%7Eb", "0", "600", ""]]
    assert [float(part[3]) for part in parts] == [3162.5, 3e6]
    assert link["epsilon"] == ["0.349"]


def test_columns_that_are_taken_away_leave_no_line(visit: Visit) -> None:
    visit.open(f"{QUERY}&column=likes~0~1~~")
    expect(visit.page.locator("#column-noise li")).to_have_count(1)
    before = visit.answers()
    visit.page.get_by_role("button", name="Remove column likes").click()
    visit.wait_for_answer(before)

    expect(visit.page.locator("#column-noise")).to_be_hidden()


@pytest.mark.parametrize("given", ["", "&sigma=9000&tau_star=60000"], ids=["nothing", "sigma and tau_star"])
def test_an_impossible_cap_is_shown_at_its_field(visit: Visit, given: str) -> None:
    page = visit.page
    page.goto(f"{visit.url}{QUERY}{given}&column=likes~0~1~~&column=shares~0~600~~100")
    for cap, detail in (("0", "at least 1"), ("51915", "at most C_u"), ("few", "an integer")):
        page.locator("#column-1-groups").fill(cap)

        expect(page.locator("#column-1-groups-error")).to_have_text(f"must be {detail}")
        expect(page.locator("#form [aria-invalid=true]")).to_have_id("column-1-groups")
        expect(page.locator("#column-noise")).to_be_hidden()
    page.locator("#column-1-groups").fill("")
    expect(page.locator("#column-noise")).to_be_visible()
    expect(page.locator("#column-1-groups-error")).to_be_empty()
    visit.complaints.clear()  # the browser logs the 422 in its console


def test_all_columns_have_the_same_kind_of_noise(visit: Visit) -> None:
    page = visit.page
    page.goto(f"{visit.url}{QUERY}&column=likes~0~1~~&column=shares~0~600~~")
    visit.unfold("code-fold")
    expect(page.locator("#copy")).to_be_enabled()
    for first, second, place, detail in (
        ("", "64", 0, "give the noise of every column, or of none"),
        ("2 σ", "", 1, "give the noise of every column, or of none"),
        ("2 σ", "64", 0, "give the noise of every column in σ, or of none"),
    ):
        page.locator("#column-0-noise").fill(first)
        page.locator("#column-1-noise").fill(second)

        expect(page.locator(f"#column-{place}-noise-error")).to_have_text(detail)
        expect(page.locator("#form [aria-invalid=true]")).to_have_id(f"column-{place}-noise")
        expect(page.locator("#lead")).to_have_text("No answer yet: see the marked field.")
    page.get_by_role("button", name="Add a column").click()
    page.get_by_role("tab", name="SQL").click()  # still of the last answer
    expect(page.locator("#code")).to_contain_text("shares: from 0 to 600")
    expect(page.locator("#copy")).to_be_disabled()
    page.get_by_role("button", name="Remove column seconds").click()
    page.locator("#column-1-noise").fill("3 σ")
    expect(page.locator("#column-noise")).to_be_visible()


def test_noise_that_is_none_is_refused(visit: Visit) -> None:
    """The square of a negative number would be valid."""
    visit.page.goto(f"{visit.url}{QUERY}&column=likes~0~1~~")
    error = visit.page.locator(".columns .error:not(:empty)")
    for noise, detail in (
        ("-9000", "must be positive definite"),
        ("much", "must be a number"),
        ("-2 σ", "must be positive definite"),
        ("σ", "must be a number"),
        ("0", "must be positive definite"),
    ):
        visit.page.locator("#column-0-noise").fill(noise)
        expect(error).to_contain_text(detail)
    visit.complaints.clear()  # the browser logs the 422 in its console


def test_given_noise_is_in_the_unit_of_the_column(visit: Visit) -> None:
    """It stays as it is. What the cap saves is then a part of σ."""
    visit.open(f"{QUERY}&column=likes~0~1~3162.5~100&column=shares~0~600~3e6~")

    given = {"sensitivity": box(100, None), "covariance": [[3162.5**2, 0], [0, 9e12]]}
    assert sent(visit, "calibrate") == {"names": NAMES, **given}
    assert exactly(visit, "sigma") == asked(visit, "calibrate", **given)["mechanism"]["sigma"]
    assert stated(visit) == {"likes": 6198.5, "shares": 5_880_000}
    ratio = asked(visit, "compare", **given)["without_caps"]["price"]["sigma_ratio"]
    expect(visit.page.locator("#column-noise li").last).to_have_text(
        f"Without the cap, σ would be {ratio:.2g} times as large."
    )


def test_given_noise_that_needs_its_cap(visit: Visit) -> None:
    visit.open(f"{QUERY}&column=likes~0~1~1000~100&column=shares~0~600~3e6~")

    expect(visit.page.locator("#column-noise li").last).to_have_text("Without the cap, no σ would meet the target.")


@pytest.mark.parametrize("tau_star", ["", "&tau_star=60000"], ids=["sigma", "both"])
def test_a_given_sigma_gets_the_same_balanced_noise(visit: Visit, tau_star: str) -> None:
    """With τ* too, the page computes the covariance: /account/exact takes complete mechanisms only."""
    visit.open(f"{QUERY}&sigma=9000{tau_star}&column=likes~0~1~~&column=shares~-5~600~~100")

    expected = {"likes": 9000, "shares": 600 * math.sqrt(100 / 51914) * 9000}
    assert stated(visit) == pytest.approx({name: 1.96 * noise for name, noise in expected.items()}, abs=1)
    if tau_star:
        covariance = sent(visit, "account/exact")["covariance"]
        assert [covariance[0][0], covariance[1][1]] == pytest.approx([each**2 for each in expected.values()])
    expect(visit.page.locator("#column-noise")).not_to_contain_text("less noise")


def test_a_link_carries_the_columns(visit: Visit) -> None:
    link = "column=likes~0~1~~100&column=shares~0~600~~"
    visit.open(f"{QUERY}&{link}")
    lines = visit.page.locator("#column-noise").inner_text()
    assert visit.query["column"] == ["likes~0~1~~100", "shares~0~600~~"]
    visit.fill("column-1-groups", "7")
    visit.page.go_back()
    visit.open(f"{QUERY}&{link}")

    expect(visit.page.locator("#column-noise")).to_have_text(lines, use_inner_text=True)
    expect(visit.page.locator("#column-0-groups")).to_have_value("100")
    expect(visit.page.locator("#column-1-noise")).to_have_value("")


def test_a_link_of_an_earlier_version_keeps_its_meaning(visit: Visit) -> None:
    """Four parts, and the noise is a multiple of σ. The page says so, and its next link too."""
    visit.open(f"{QUERY}&column=likes~0~1~2&column=shares~0~600~1")

    relative = {"sensitivity": {"kind": "box", "lower": [0, 0], "upper": [1, 600]}}
    assert sent(visit, "calibrate") == {"names": NAMES, "relative_covariance": [[4, 0], [0, 1]], **relative}
    expect(visit.page.locator("#column-0-noise")).to_have_value("2 σ")
    assert visit.query["column"] == ["likes~0~1~2 σ~", "shares~0~600~1 σ~"]
    before = exactly(visit, "sigma")
    visit.page.reload()
    visit.page.locator("#results[data-answers]").wait_for()
    assert exactly(visit, "sigma") == before


def test_plots_and_code_are_of_the_question_that_was_asked(first_visit: Visit) -> None:
    """The form changes while the service answers. The clock stands still, so the page asks no second time."""
    page, held = first_visit.page, list[Route]()

    def hold(route: Route) -> None:
        held.append(route)

    page.clock.install()
    page.route("**/compare", hold)
    with page.expect_request("**/compare"):
        page.goto(f"{first_visit.url}{QUERY}&column=likes~0~1~~100&code=sql&axes=keep-x")
    page.clock.pause_at("2100-01-01")
    page.locator("#c_u").fill("7")
    page.locator("#column-0-groups").fill("5")
    with page.expect_request("**/account/add-deltas"):  # the plots ask for it
        held[0].continue_()
    expect(page.locator("#copy")).to_be_enabled()

    expect(page.locator("#code")).to_contain_text("in at most 100 groups per user")
    bodies = [each.post_data_json for each in first_visit.requests if each.url.endswith("/calibrate")]
    assert [body["mechanism"]["c_u"] for body in bodies] == [51914, 51914]


def test_factors_have_two_digits(visit: Visit) -> None:
    visit.page.goto(visit.url)
    load = "const it = await import('./web/shared/number-format.js');"
    call = f"async ratios => {{ {load} return ratios.map(it.fewTimes); }}"

    texts = visit.page.evaluate(call, [1.0634, 22.78, 99.7, 519.14, 1e9])
    assert texts == ["1.1", "23", "100", "519", "1\u202f000\u202f000\u202f000"]
