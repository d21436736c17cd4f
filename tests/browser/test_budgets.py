"""The budgets page: the gauge, plans, the history, new and changed limits, and access keys."""

import itertools
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import BrowserContext, Locator, Page, Route, expect

from app.ledger.access.access_keys import new_key
from app.ledger.opening import open_ledger
from gsh.accounting.budget_limits import Limit
from tests.app.client import Json
from tests.app.process import Service
from tests.browser.test_accessibility import faults
from tests.browser.visits import Visit
from tests.browser.weekly import WEEKLY

GAUSSIAN = {"c_u": 1, "sigma": 50}
LIMIT = {"epsilon": 1, "delta": 1e-4, "description": "page views"}

WEEKLY_QUERY = "".join(f"&{name}={value}" for name, value in WEEKLY.items())

names = (f"budget-{number}" for number in itertools.count())


class Platform:
    """A data platform that uses the same API at the same time."""

    def __init__(self, url: str) -> None:
        self.client = httpx.Client(base_url=url)

    def budget(self, charges: int = 0, **limit: object) -> str:
        """A new budget, charged with this many weekly releases."""
        name = next(names)
        assert self.client.put(f"/budgets/{name}", json=LIMIT | limit).status_code == 200
        for week in range(charges):
            assert self.charge(name, f"{name}-week-{week}").status_code == 200
        return name

    def charge(self, name: str, key: str, mechanism: Json = WEEKLY) -> httpx.Response:
        headers = {"Idempotency-Key": key}
        return self.client.post(f"/budgets/{name}/charges", json={"mechanism": mechanism}, headers=headers)

    def look(self, name: str, query: str = "") -> Json:
        document: Json = self.client.get(f"/budgets/{name}{query}").json()
        return document


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service for this file: without a budget in the link, the page shows the first one of the service."""
    with Service(temporary=tmp_path_factory.mktemp("service")) as running:
        yield running


@pytest.fixture(scope="module")
def platform(service: Service) -> Iterator[Platform]:
    made = Platform(service.url)
    yield made
    made.client.close()


def look(visit: Visit, name: str, query: str = "") -> Page:
    """Go to a budget, and wait until all of it is shown."""
    visit.page.goto(f"{visit.url}/ledger?budget={name}{query}")
    settled(visit.page)
    return visit.page


def settled(page: Page) -> None:
    page.locator("#budget[aria-busy=false]").wait_for()
    page.locator("#verdict[aria-busy=false]").wait_for()


def plan(page: Page, **fields: object) -> Locator:
    """Type a plan, and wait for the verdict on it."""
    for field, text in fields.items():
        page.locator(f"#plan-{field}").fill(str(text))
    page.wait_for_url(lambda url: all(f"{field}={text}" in url for field, text in fields.items() if text != ""))
    settled(page)
    return page.locator("#verdict")


def test_the_gauge_and_the_figures_show_what_is_used_and_planned_by_the_bounds_of_the_service(
    visit: Visit, platform: Platform
) -> None:
    name = platform.budget(charges=2)
    page = look(visit, name)
    budget = platform.look(name)

    meter = page.locator("#gauge-place [role=meter]")
    assert float(meter.get_attribute("aria-valuenow") or "nan") == pytest.approx(100 * budget["used"], abs=0.05)
    expect(meter).to_have_attribute("aria-valuetext", "26.2 % used, 39.2 % with the plan")  # up: the safe side
    box, now, planned = (each.bounding_box() for each in (meter, meter.locator(".used"), meter.locator(".planned")))
    assert box is not None
    assert now is not None
    assert planned is not None
    assert now["width"] / box["width"] == pytest.approx(0.2610, abs=0.005)
    assert planned["width"] / box["width"] == pytest.approx(0.1305, abs=0.005)
    assert planned["x"] == pytest.approx(now["x"] + now["width"], abs=0.5)

    spent = budget["spent"]

    expect(page.locator("#budget-title")).to_have_text(name)
    expect(page.locator("#budget-description")).to_have_text("page views")
    expect(page.locator("#epsilon-spent")).to_have_text("0.428 of 1")  # 0.42709, up: the safe side
    expect(page.locator("#epsilon-bounds")).to_be_hidden()
    page.get_by_text("All digits").click()
    expect(page.locator("#epsilon-bounds")).to_be_visible()
    expect(page.locator("#epsilon-bounds")).to_have_text(f"between {spent['epsilon_lower']} and {spent['epsilon']}")
    expect(page.locator("#delta-spent")).to_have_text("1.996 × 10⁻⁵ of 10⁻⁴")
    delta = f"{spent['delta_lower']} and {spent['delta']}".replace("e-05", "e-5")
    expect(page.locator("#delta-bounds")).to_have_text(f"between {delta}")
    expect(page.locator("#sums")).to_contain_text("2 releases: noise cost 0.021")


def test_a_full_budget_does_not_look_overspent(visit: Visit, platform: Platform) -> None:
    """Nor does its only release. And no link leads to another one."""
    name = platform.budget(epsilon=1, delta=1e-6)
    target = {"mechanism": {"c_u": 8, "tau": 1}, "epsilon": 1, "delta": 1e-6}
    mechanism = platform.client.post("/calibrate", json=target).json()["mechanism"]
    assert platform.charge(name, f"{name}-all", mechanism).status_code == 200
    numbers = "&".join(f"{field}={mechanism[field]}" for field in ("c_u", "tau", "sigma", "tau_star"))
    page = look(visit, name, f"&{numbers}")

    expect(page.locator("#delta-spent")).to_have_text("10⁻⁶ of 10⁻⁶")
    expect(page.locator("#gauge-place")).to_contain_text("100.0 % used")
    expect(page.locator("#releases .known")).to_contain_text("100.0 % of the budget")
    sums = "One release fills the budget: noise cost 0.057, threshold cost 1.001 × 10⁻⁶."  # exact accounting of one
    expect(page.locator("#sums")).to_have_text(sums)
    expect(page.locator("#verdict")).to_contain_text("No further release like this fits.")
    expect(page.get_by_role("link", name="Release a table with these numbers")).to_have_count(0)
    form = page.get_by_role("form", name="A new budget")
    page.get_by_text("Create a budget").click()
    expect(form.get_by_label("Groups per user")).to_have_value("8")
    expect(form.get_by_label("Minimum group size")).to_have_value("1")
    visit.complaints.clear()  # the browser logs in its console that no noise fits the used budget


def test_what_is_spent_is_rounded_as_its_limit_is(visit: Visit, platform: Platform) -> None:
    name = platform.budget(epsilon=1, delta=1e-6)
    target = {"mechanism": {"c_u": 8, "tau": 1}, "epsilon": 1, "delta": 1e-6, "releases": 2}
    mechanism = platform.client.post("/calibrate", json=target).json()["mechanism"]
    for number in range(2):
        assert platform.charge(name, f"{name}-{number}", mechanism).status_code == 200
    page = look(visit, name)

    noise, threshold = "0.054 of 0.054", "4.128 × 10⁻⁷ of 4.128 × 10⁻⁷"
    expect(page.locator("#sums")).to_have_text(f"2 releases: noise cost {noise}, threshold cost {threshold}.")
    visit.complaints.clear()  # the browser logs in its console that no noise fits the used budget


def test_a_budget_is_chosen_from_the_list_and_kept_in_the_link(visit: Visit, platform: Platform) -> None:
    first, second = platform.budget(), platform.budget(charges=1)
    page = look(visit, first)
    entries = page.locator("#budgets").get_by_role("button")
    entry = entries.filter(has_text=second)
    expect(entry).to_contain_text("13.1 % used · 1 release")

    entry.click()

    expect(page.locator("#budget-title")).to_have_text(second)
    expect(entry).to_have_attribute("aria-pressed", "true")
    expect(entries.filter(has_text=first)).to_have_attribute("aria-pressed", "false")
    settled(page)
    assert visit.query["budget"] == [second]
    page.reload()
    settled(page)
    expect(page.locator("#budget-title")).to_have_text(second)


def test_exactly_the_number_shown_on_the_page_fits(visit: Visit, platform: Platform) -> None:
    name = platform.budget(charges=3)
    page = look(visit, name)
    expect(page.locator("#verdict")).to_contain_text("4 more releases like this fit.")

    for number in range(4):
        assert platform.charge(name, f"{name}-then-{number}").status_code == 200
    assert platform.charge(name, f"{name}-one-more").status_code == 409

    page.get_by_role("button", name="Refresh").click()
    expect(page.locator("#verdict")).to_contain_text("No further release like this fits.")
    expect(page.locator("#gauge-place")).to_contain_text("the plan does not fit")
    expect(page.locator("#gauge-place .gauge")).to_have_class("gauge low")


def test_a_plan_starts_from_the_last_release_or_is_empty(visit: Visit, platform: Platform) -> None:
    """What the user has planned stays, and a proposal is not in the link."""
    empty, charged, other = platform.budget(), platform.budget(charges=1), platform.budget()
    platform.charge(other, other, {"c_u": 2, "sigma": 500, "aggregates": {"mu_0": 0.01}})
    page = look(visit, empty)
    assert [page.locator(f"#plan-{field}").input_value() for field in (*WEEKLY, "mu_0")] == [""] * 5
    expect(page.locator("#verdict")).to_have_text("Enter a release, to see how many like it fit.")
    expect(page.locator("#outlook")).to_have_text("No release yet. Plan one below, to see how many fit.")

    for name, planned in ((charged, WEEKLY), (other, {"c_u": 2, "sigma": 500, "mu_0": 0.01, "tau": ""}), (empty, {})):
        page.locator(f"[data-id={name}]").click()
        expect(page.locator("#budget-title")).to_have_text(name)
        settled(page)
        for field in (*WEEKLY, "mu_0"):
            expect(page.locator(f"#plan-{field}")).to_have_value(str(planned.get(field, "")))
        assert visit.query == {"budget": [name], "times": ["1"]}

    plan(page, c_u=7, sigma=90)
    page.locator(f"[data-id={charged}]").click()
    expect(page.locator("#budget-title")).to_have_text(charged)
    settled(page)
    expect(page.locator("#plan-c_u")).to_have_value("7")


def test_how_many_more_fit_comes_first_and_then_what_is_short(visit: Visit, platform: Platform) -> None:
    name = platform.budget(charges=3)
    page = look(visit, name)
    expect(page.locator("#outlook")).to_have_text("4 more releases like the last one fit.")
    expect(page.locator("#short")).to_be_empty()
    expect(page.locator("#pace")).to_have_text("At the rate of the last 28 days it lasts for 10 more days.")

    for number in range(4):
        platform.charge(name, f"{name}-then-{number}")
    page.get_by_role("button", name="Refresh").click()

    expect(page.locator("#outlook")).to_have_text("No further release like the last one fits.")
    expect(page.locator("#short")).to_contain_text("The threshold needs 13.1 % of its cap")
    detail = platform.charge(name, f"{name}-one-more").json()["detail"]
    assert platform.look(name)["shortage"]["detail"] in detail


def test_all_budgets_are_on_one_page_with_their_tree_and_periods(visit: Visit, platform: Platform) -> None:
    """A renewed budget is never there without what limits all of its periods, or the words that nothing does."""
    company = platform.budget(epsilon=8, delta=1e-3)
    weekly = platform.budget(parent=company, renews="week")
    alone = platform.budget(renews="month")
    for week in ("2026-W01", "2026-W02"):
        body = {"mechanism": WEEKLY, "period": week}
        platform.client.post(f"/budgets/{weekly}/charges", json=body, headers={"Idempotency-Key": f"{weekly}-{week}"})
    page = look(visit, company)
    page.get_by_role("link", name="All budgets on one page").click()
    expect(page.locator("#budget")).to_be_hidden()
    listed = page.locator("#overview-budgets > li")

    assert (listed.nth(0).get_attribute("style") or "").endswith("0;")
    names = [each.get_attribute("data-overview") for each in listed.all()]
    assert names.index(weekly) == names.index(company) + 1
    of_weekly, of_alone = (page.locator(f"[data-overview={each}]") for each in (weekly, alone))
    together = f"All weeks together: {company} limits them to δ = 0.001 at ε = 8, for all records of one user."
    expect(of_weekly.locator(".longer")).to_have_text(together)
    expect(of_alone.locator(".longer")).to_have_text("No budget limits what several months together reveal of a user.")
    expect(of_weekly.locator(".periods").first).to_contain_text(f"{weekly}@2026-W02")
    expect(of_weekly).to_contain_text("Earlier weeks (1)")
    of_weekly.locator("summary").click()
    assert faults(visit) == []

    page.get_by_role("button", name=f"{weekly}@2026-W01").click()
    expect(page.locator("#budget-title")).to_have_text(f"{weekly}@2026-W01")
    expect(page.locator("#longer")).to_have_text(together)
    page.locator(f"[data-id={weekly}]").click()
    expect(page.locator("#periods li")).to_have_count(2)
    expect(page.locator("#gauge-place")).to_be_hidden()
    expect(page.locator("#longer")).to_have_text(together)
    expect(page.locator("#releases .known").first).to_contain_text(f"of {weekly}@2026-W02")


def test_an_access_key_that_may_not_see_the_parent_is_not_told_that_there_is_none(
    visit: Visit, platform: Platform
) -> None:
    company = platform.budget(epsilon=8, delta=1e-3)
    weekly = platform.budget(parent=company, renews="week")
    only = {"budgets": [each for each in platform.client.get("/budgets").json()["budgets"] if each["id"] == weekly]}
    visit.page.route("**/budgets", lambda route: route.fulfill(json=only))
    visit.page.goto(f"{visit.url}/ledger?overview")

    words = f"All weeks together: see the budget {company}, which this access key may not use."
    expect(visit.page.locator("#overview .longer")).to_have_text(words)
    expect(visit.page.locator("#overview")).to_contain_text(f"below {company}, which is not listed")


def test_a_release_is_found_by_its_name_in_any_budget(visit: Visit, platform: Platform) -> None:
    here, there = platform.budget(charges=2), platform.budget(charges=2)
    page = look(visit, here)
    box = page.get_by_label("Find by idempotency key")
    box.fill(f"{there}-week-0")
    box.press("Enter")

    expect(page.locator("#budget-title")).to_have_text(there)
    expect(page.locator("#releases h3")).to_have_text([f"{there}-week-0"])
    box.fill("nobody")
    box.press("Enter")
    expect(page.locator("#find-key-error")).to_have_text("names no release that you may see")
    box.fill("")
    box.press("Enter")
    expect(page.locator("#releases h3")).to_have_count(2)
    visit.complaints.clear()  # the browser logs the 404 in its console


def test_a_plan_of_several_is_previewed_together(visit: Visit, platform: Platform) -> None:
    page = look(visit, platform.budget(charges=3))

    verdict = plan(page, times=3)
    expect(verdict).to_contain_text("After these 3 the budget would be at ε = 0.839 at δ = 10⁻⁴, ")
    verdict = plan(page, times=9)
    expect(verdict).to_contain_text("Of these 9, 4 would fit.")
    verdict = plan(page, c_u=1, sigma=50, tau="", tau_star="")
    expect(verdict).to_contain_text("more releases like this fit.")  # plain Gaussian noise
    expect(verdict).not_to_contain_text("as little as")


def test_the_smallest_noise_for_the_remaining_budget_can_be_planned(visit: Visit, platform: Platform) -> None:
    name = platform.budget(charges=3)
    page = look(visit, name)
    plan(page, times=2)
    expect(page.locator("#verdict")).to_contain_text("2 equal releases would fit with as little as σ = 1")

    page.get_by_role("button", name="Plan with these").click()

    expect(page.locator("#verdict")).to_contain_text("2 more releases like this fit.")
    settled(page)
    planned = {field: float(page.locator(f"#plan-{field}").input_value()) for field in ("sigma", "tau_star")}
    mechanism = WEEKLY | planned
    statuses = [platform.charge(name, f"{name}-least-{number}", mechanism).status_code for number in range(3)]
    assert statuses == [200, 200, 409]


PLAN_ERRORS = (
    ("sigma", "-1", "must be greater than 0"),
    ("c_u", "0", "must be at least 1"),
    ("tau_star", "", "is required"),  # half a threshold
    ("times", "0", "must be an integer, at least 1"),
    ("times", "2.5", "must be an integer, at least 1"),
    ("times", "1001", "must have at most 1000 items"),
)


def test_errors_are_shown_next_to_their_field(visit: Visit, platform: Platform) -> None:
    page = look(visit, platform.budget(), WEEKLY_QUERY)
    for field, text, error in PLAN_ERRORS:
        good = page.locator(f"#plan-{field}").input_value()
        page.locator(f"#plan-{field}").fill(text)

        expect(page.locator(f"#plan-{field}-error")).to_contain_text(error)
        expect(page.locator(f"#plan-{field}")).to_have_attribute("aria-invalid", "true")
        expect(page.locator("#plan [aria-invalid=true]")).to_have_count(1)  # there and nowhere else
        expect(page.locator("#verdict")).to_be_empty()
        expect(page.locator("#gauge-place")).not_to_contain_text("plan")
        page.locator(f"#plan-{field}").fill(good)
        expect(page.locator("#verdict")).to_contain_text("more releases like this fit.")
    visit.complaints.clear()  # the browser logs the 422 in its console


def test_the_history_is_read_page_by_page_and_verified(visit: Visit, platform: Platform) -> None:
    name = platform.budget(charges=2)
    for number in range(19):
        platform.charge(name, f"{name}-small-{number}", {"c_u": 1, "sigma": 5000})
    capped = {"mu_0": 0, "capped": [{"groups": 2, "mu_0": 0.001}]}
    platform.charge(name, f"{name}-capped", {"c_u": 9, "sigma": 5000, "aggregates": capped})
    page = look(visit, name)
    rows = page.locator("#history tbody tr")
    expect(rows).to_have_count(20)

    page.get_by_role("button", name="Older entries").click()

    expect(rows).to_have_count(23)
    expect(page.get_by_role("button", name="Older entries")).to_be_hidden()
    expect(rows.first).to_contain_text("C_u\u00a09, σ\u00a05000, no threshold, μ₀\u00a00.001 in 2\u00a0groups")
    expect(rows.nth(1)).to_contain_text("C_u\u00a01, σ\u00a05000, no threshold")
    expect(rows.nth(20)).to_contain_text("C_u\u00a051\u202f914, σ\u00a02229, τ\u00a01, τ*\u00a013\u202f955")
    expect(rows.nth(20).locator(".key")).to_have_text(f"{name}-week-1")
    expect(rows.last).to_contain_text("Created: ε\u00a01, δ\u00a010⁻⁴")
    page.get_by_role("button", name="Verify the history").click()
    expect(page.locator("#verified")).to_have_text(
        f"Intact: 23 entries, every hash and every sum. The last hash is {platform.look(name)['head']}"
    )


def test_a_history_is_printed_whole(visit: Visit, platform: Platform) -> None:
    """All entries, and all of each idempotency key and hash."""
    name = platform.budget()
    key = "k" * 200
    for number in range(24):
        platform.charge(name, f"{key}-{name}-{number}", {"c_u": 1, "sigma": 5000})
    page = look(visit, name)
    # As the browser sees the page when it prints.
    page.evaluate(
        "print = () => { document.body.dataset.printed = document.querySelectorAll('#history tbody tr').length; }"
    )
    page.get_by_role("button", name="Print the history").click()
    expect(page.locator("body")).to_have_attribute("data-printed", "25")

    page.emulate_media(media="print")
    page.evaluate("document.body.classList.add('prints-history')")
    expect(page.locator("#history .rest").first).to_be_visible()
    expect(page.locator("#plan")).to_be_hidden()
    expect(page.locator("#releases")).to_be_hidden()
    wide = "all => all.filter((each) => each.clientWidth && each.scrollWidth > each.clientWidth + 1).length"
    assert page.locator("#history *").evaluate_all(wide) == 0


def test_a_budget_is_made_and_its_limit_changed(visit: Visit, platform: Platform) -> None:
    page, name = look(visit, platform.budget()), next(names)
    page.get_by_text("Create a budget").click()
    form = page.get_by_role("form", name="A new budget")
    for field, text in {
        "Name": name,
        "Limit of ε": "2",
        "Limit of δ": "1e-5",
        "Description": "<b>searches</b>",
        "Privacy unit": "household",
    }.items():
        form.get_by_label(field).fill(text)
    form.get_by_label("Period").select_option("week")
    form.get_by_role("button").click()

    expect(page.locator("#budget-title")).to_have_text(name)
    expect(page.locator("#budget-description")).to_have_text("<b>searches</b>")  # text, never markup
    expect(page.locator("#budget-unit")).to_have_text("Privacy unit: the records of one household in one week.")
    settled(page)
    page.get_by_text("Change the limit").click()
    form = page.get_by_role("form", name="The limit")
    expect(form.get_by_label("Limit of ε")).to_have_value("2")
    form.get_by_label("Limit of ε").fill("2.5")
    expect(form.locator(".changes")).to_have_text("ε 2 → 2.5")
    form.get_by_role("button").click()
    expect(page.locator("#change-form-reason-error")).to_contain_text("is required to change a budget")
    visit.complaints.clear()  # the browser logs the 422 in its console
    form.get_by_label("Reason").fill("the <b>yearly</b> review")
    form.get_by_role("button").click()

    expect(page.locator("#epsilon-spent")).to_have_text("0 of 2.5")
    newest = page.locator("#history tbody tr").first
    expect(newest).to_contain_text("Changed: ε\u00a02.5, δ\u00a010⁻⁵ per\u00a0household-week")
    expect(newest).to_contain_text("Reason: the <b>yearly</b> review")
    expect(page.locator("#change-form-reason")).to_have_value("")
    assert platform.look(name)["limit"] == {"epsilon": 2.5, "delta": 1e-5, "mu_squared": None, "hazard": None}


def test_an_invalid_limit_is_refused_next_to_its_field(visit: Visit, platform: Platform) -> None:
    page = look(visit, platform.budget())
    page.get_by_text("Create a budget").click()
    form = page.get_by_role("form", name="A new budget")
    form.get_by_label("Name").fill("two words")
    form.get_by_label("Limit of ε").fill("1")
    form.get_by_label("Limit of δ").fill("1.5")
    form.get_by_role("button").click()

    expect(page.locator("#create-form-budget-error")).to_have_text("has characters that are not allowed here")
    form.get_by_label("Name").fill("two-words")
    form.get_by_role("button").click()
    expect(page.locator("#create-form-delta-error")).to_have_text("must be less than 1")
    visit.complaints.clear()  # the browser logs the 422 in its console


def test_a_budget_is_not_created_twice(visit: Visit, platform: Platform) -> None:
    name = platform.budget()
    page = look(visit, platform.budget())
    page.get_by_text("Create a budget").click()
    form = page.get_by_role("form", name="A new budget")
    for field, text in {"Name": name, "Limit of ε": "9", "Limit of δ": "1e-3"}.items():
        form.get_by_label(field).fill(text)
    form.get_by_role("button").click()

    expect(page.locator("#create-form-budget-error")).to_contain_text("exists already")
    assert platform.look(name)["entries"] == 1


class Held:
    """Requests to a path that wait until the test lets them go."""

    def __init__(self, page: Page, path: str) -> None:
        self._routes: list[Route] = []
        page.route(f"**{path}", self._hold)

    def _hold(self, route: Route) -> None:
        self._routes.append(route)

    def let_go(self) -> None:
        for route in self._routes:
            route.continue_()


def test_a_change_of_the_limit_concerns_the_shown_budget(visit: Visit, platform: Platform) -> None:
    """Even while another budget loads."""
    first, second = platform.budget(), platform.budget()
    page = look(visit, first)
    page.get_by_text("Change the limit").click()
    form = page.get_by_role("form", name="The limit")
    form.get_by_label("Limit of ε").fill("1.5")
    form.get_by_label("Reason").fill("a test")
    held = Held(page, f"/budgets/{second}")
    page.locator(f"[data-id={second}]").click()
    expect(page.locator(f"[data-id={second}]")).to_be_focused()
    expect(page.locator("#budget-title")).to_have_text(first)

    with page.expect_request(lambda request: request.method == "PUT") as put:
        form.get_by_role("button").click()

    assert put.value.url == f"{visit.url}/budgets/{first}"
    held.let_go()
    settled(page)
    assert platform.look(second)["entries"] == 1


def test_late_answers_about_one_budget_are_not_shown_for_another(visit: Visit, platform: Platform) -> None:
    long, short = platform.budget(), platform.budget(charges=1)
    for number in range(25):
        platform.charge(long, f"{long}-{number}", {"c_u": 1, "sigma": 5000})
    page = look(visit, long)
    held = [Held(page, f"/budgets/{long}/verify"), Held(page, f"/budgets/{long}/charges?limit=20&before=*")]
    page.get_by_role("button", name="Older entries").click()
    expect(page.get_by_role("button", name="Older entries")).to_be_disabled()
    page.get_by_role("button", name="Verify the history").click()
    expect(page.locator("#verified")).to_have_text("Verifying…")

    page.locator(f"[data-id={short}]").click()
    expect(page.locator("#budget-title")).to_have_text(short)
    for each in held:
        each.let_go()
    settled(page)

    expect(page.locator("#history tbody tr")).to_have_count(2)
    expect(page.locator("#verified")).to_be_empty()


def test_typed_text_survives_a_refresh(visit: Visit, platform: Platform) -> None:
    page = look(visit, platform.budget(description="two\nlines"))
    page.get_by_text("Change the limit").click()
    form = page.get_by_role("form", name="The limit")
    form.get_by_label("Limit of ε").fill("1.25")
    form.get_by_label("Reason").fill("a test")
    with page.expect_response("**/budgets"):
        page.get_by_role("button", name="Refresh").click()
    settled(page)
    expect(form.get_by_label("Limit of ε")).to_have_value("1.25")

    with page.expect_request(lambda request: request.method == "PUT") as put:
        form.get_by_role("button").click()
    assert put.value.post_data_json["description"] == "two\nlines"


def test_the_command_charges_the_planned_releases(visit: Visit, platform: Platform) -> None:
    name = platform.budget()
    page = look(visit, name, WEEKLY_QUERY)
    page.get_by_text("Charge this release").click()
    page.locator("#how").get_by_role("button", name="Copy").click()

    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == page.locator("#code").text_content()
    assert f"{visit.url}/budgets/{name}/charges" in copied
    assert '{"mechanism": {"c_u": 51914, "tau": 1, "tau_star": 13955, "sigma": 2229}}' in copied


def test_the_explorer_leads_to_a_plan(visit: Visit, platform: Platform) -> None:
    platform.budget()
    visit.open()
    visit.page.get_by_role("link", name="How often does this fit a budget?").click()
    settled(visit.page)

    expect(visit.page.locator("#plan-sigma")).to_have_value("2228.482632459166")
    expect(visit.page.locator("#plan-tau_star")).to_have_value("13951.051328063842")


def test_a_plan_from_the_explorer_has_its_columns(visit: Visit, platform: Platform) -> None:
    """A budget of the same ε and δ pays for it exactly once, so the link loses no noise."""
    name = platform.budget(epsilon=1, delta=1e-6)
    visit.open("/?epsilon=1&delta=1e-6&c_u=16&tau=1&column=likes~0~1~~4&column=seconds~0~600~~")
    link = visit.page.get_by_role("link", name="How often does this fit a budget?")
    page = look(visit, name, f"&{(link.get_attribute('href') or '').partition('?')[2]}")

    expect(page.locator("#plan-columns-0-name")).to_have_value("likes")
    expect(page.locator("#plan-columns-0-groups")).to_have_value("4")
    expect(page.locator("#plan-columns-1-upper")).to_have_value("600")
    expect(page.locator("#verdict .lead")).to_have_text("One more release like this fits.")
    assert len(visit.query["column"]) == 2
    command = page.locator("#code").text_content() or ""
    mechanism = json.loads(command.partition("-d '")[2].rpartition("'")[0])["mechanism"]
    assert platform.charge(name, f"{name}-columns", mechanism).status_code == 200
    assert platform.charge(name, f"{name}-columns-again", mechanism).status_code == 409

    page.get_by_role("button", name="Remove column seconds").click()
    expect(page.locator("#plan-columns .column")).to_have_count(1)
    page.locator("#plan-columns-0-upper").fill("")
    expect(page.locator("#plan-columns-0-upper-error")).to_have_text("is needed")
    visit.complaints.clear()  # the browser logs in its console that no noise fits the used budget


def test_a_year_with_columns_is_planned(visit: Visit, platform: Platform) -> None:
    """The noise of one release does not stay with its columns: 52 need more of it."""
    name = platform.budget(epsilon=1, delta=1e-6)
    visit.open("/?epsilon=1&delta=1e-6&c_u=16&tau=1&column=likes~0~1~~4&column=seconds~0~600~~")
    link = visit.page.get_by_role("link", name="How often does this fit a budget?")
    page = look(visit, name, f"&{(link.get_attribute('href') or '').partition('?')[2]}")
    expect(page.locator("#plan-columns-1-noise")).to_have_value("")
    verdict = plan(page, times=52)
    expect(verdict).to_contain_text("52 equal releases would fit with as little as σ = ")

    page.locator("#plan-columns-0-noise").fill("20")  # as in a link to noise that was not balanced
    page.locator("#plan-columns-1-noise").fill("12000")
    page.get_by_label("Plan by").select_option("equal shares of what remains")
    expect(page.locator("#plan-columns-1-noise")).to_have_value("")
    expect(verdict).to_contain_text("52 more releases like this fit.")
    page.get_by_text("Create a budget").click()
    form = page.get_by_role("form", name="A new budget")
    for field, text in {"Limit of ε": "1", "Limit of δ": "1e-6", "Groups per user": "16", "Releases": "52"}.items():
        form.get_by_label(field).fill(text)
    expect(form.locator(".needs")).to_contain_text("Each of the 52 needs σ = ")


def test_a_year_of_weekly_releases_is_planned(visit: Visit, platform: Platform) -> None:
    """ε in all divided by 52, then ε of each: what fits, what each needs, what is used up, and a limit that fits."""
    page, name = look(visit, platform.budget()), next(names)
    page.get_by_text("Create a budget").click()
    form = page.get_by_role("form", name="A new budget")
    expect(form).to_contain_text("The first release settles for good in which proportion noise and threshold share")
    limit = {"Limit of ε": "1", "Limit of δ": "1e-6"}
    for field, text in ({"Name": name, "Groups per user": "8", "Releases": "52"} | limit).items():
        form.get_by_label(field).fill(text)
    expect(form.locator(".needs")).to_have_text("Each of the 52 needs σ = 88.06 and τ* = 531.03.")
    form.get_by_role("button", name="Create").click()
    expect(page.locator("#budget-title")).to_have_text(name)
    expect(page.locator("#history tbody tr").first).to_contain_text("noise cost : threshold cost")

    page.get_by_label("Plan by").select_option("equal shares of what remains")
    verdict = plan(page, c_u=8, tau=1, times=52)
    expect(verdict).to_contain_text("52 more releases like this fit.")
    expect(verdict).to_contain_text("Each of the 52 releases needs σ = ")
    expect(verdict).to_contain_text("One release alone has ε = 0.118, and all 52 together have ε = 1.000, at δ = 10⁻⁶.")
    page.get_by_label("Plan by").select_option("ε and δ of each release")
    verdict = plan(page, epsilon=0.15, delta="2e-8")
    expect(verdict).to_contain_text("Of these 52, ")
    shortage = page.locator("#shortage")
    expect(shortage).to_contain_text(" would fit all 52.")
    visit.page.get_by_role("button", name="Raise the limit").click()
    form = page.get_by_role("form", name="The limit")
    raised = float(form.get_by_label("Limit of δ").input_value())
    assert raised > 1e-6
    form.get_by_label("Reason").fill("a year of weeks")
    form.get_by_role("button", name="Save the change").click()
    settled(page)
    expect(shortage).to_have_count(0)
    expect(page.locator("#verdict")).to_contain_text("After these 52 the budget would be at ")
    page.get_by_role("button", name="Plan with these").first.click()
    expect(page.locator("#plan-sigma")).to_be_visible()
    page.get_by_role("link", name="Release a table with these numbers").click()
    expect(page.locator("#pay-budget")).to_have_value(name)
    expect(page.get_by_label("Noise, in users")).not_to_have_value("")


def test_an_unknown_budget_is_reported(visit: Visit, platform: Platform) -> None:
    platform.budget()
    page = look(visit, "nowhere")

    expect(page.locator("#budgets-error")).to_have_text("There is no budget called nowhere.")


def test_axe_finds_no_fault(visit: Visit, platform: Platform) -> None:
    page = look(visit, platform.budget(charges=3), "&c_u=3&sigma=20&tau=1&tau_star=90&times=40")
    for summary in page.locator("summary").all():
        summary.click()

    assert faults(visit) == []


@pytest.fixture
def locked(window: BrowserContext, tmp_path: Path) -> Iterator[tuple[Visit, str, Path]]:
    """A tab at a service that requires an access key, the access key, and the ledger's file."""
    place = tmp_path / "ledger.sqlite3"
    ledger = open_ledger(str(place), "")
    key, kept = new_key(frozenset({"release", "admin"}), frozenset(), "", "2026-11-16T12:00:00Z")
    ledger.keys.add(kept)
    ledger.put_budget("web", Limit(1.0, 1e-4), "", "2026-11-16T12:00:00Z")
    ledger.close()
    with Service(temporary=tmp_path, ledger=str(place)) as service:
        visit = Visit(window.new_page(), service.url)
        yield visit, key, place
        visit.page.close()


def test_an_access_key_is_asked_once_and_kept_by_the_tab_alone(locked: tuple[Visit, str, Path]) -> None:
    visit, key, _ = locked
    page = visit.page
    page.goto(f"{visit.url}/ledger")
    page.get_by_label("Access key").fill("gsh_wrong")
    page.get_by_role("button", name="Use this access key").click()
    expect(page.locator("#key-error")).to_have_text(
        "The request needs an access key in the header Authorization: Bearer, which is not revoked and has not expired."
    )
    expect(page.locator("#budget")).to_be_hidden()

    page.get_by_label("Access key").fill(key)
    page.get_by_role("button", name="Use this access key").click()

    expect(page.locator("#budget-title")).to_have_text("web")
    settled(page)
    expect(page.get_by_label("Access key")).to_be_hidden()
    plan(page, **WEEKLY)
    expect(page.locator("#verdict")).to_contain_text("7 more releases like this fit.")
    expect(page.locator("#code")).to_contain_text("Bearer $GSH_KEY")
    assert key not in page.evaluate("JSON.stringify([{...localStorage}, document.cookie, location.href])")
    assert key not in page.content()
    page.goto(f"{visit.url}/release-table")
    expect(page.get_by_label("Budget", exact=True)).to_have_value("web")
    expect(page.get_by_label("Access key")).to_be_hidden()

    page.get_by_role("button", name="Forget it now").click()
    expect(page.get_by_label("Access key")).to_have_value("")
    assert key not in page.evaluate("JSON.stringify({...sessionStorage})")
    page.goto(f"{visit.url}/ledger")
    expect(page.get_by_label("Access key")).to_be_visible()
    expect(page.locator("#key-error")).to_be_empty()


def test_a_change_that_waits_for_an_approval_is_not_shown_as_done(locked: tuple[Visit, str, Path]) -> None:
    visit, key, _ = locked
    limit = {"epsilon": 1, "delta": 1e-4, "approval": "limits", "reason": "two people decide"}
    headers = {"Authorization": f"Bearer {key}"}
    assert httpx.put(f"{visit.url}/budgets/web", json=limit, headers=headers).status_code == 200
    page = visit.page
    page.goto(f"{visit.url}/ledger")
    page.locator("#key").fill(key)
    page.get_by_role("button", name="Use this access key").click()
    settled(page)
    page.get_by_text("Change the limit").click()
    form = page.get_by_role("form", name="The limit")
    form.get_by_label("Limit of ε").fill("3")
    form.get_by_label("Reason").fill("more")
    form.get_by_role("button").click()

    expect(page.locator("#waiting")).to_have_text("The change waits for the approval of another access key.")
    expect(page.locator("#epsilon-spent")).to_have_text("0 of 1")
    expect(page.locator("#history tbody tr").first).to_contain_text("epsilon 1 → 3")


def test_a_changed_history_is_detected(locked: tuple[Visit, str, Path]) -> None:
    visit, key, place = locked
    with sqlite3.connect(place) as database:
        database.execute("UPDATE entries SET at = '2026-11-15T12:00:00Z'")
    database.close()
    page = visit.page
    page.goto(f"{visit.url}/ledger")
    page.get_by_label("Access key").fill(key)
    page.get_by_role("button", name="Use this access key").click()
    page.get_by_role("button", name="Verify the history").click()

    expect(page.locator("#verified")).to_have_text("Entry 1 does not have the hash of its content and its predecessor.")


def test_after_an_outage_refresh_works(locked: tuple[Visit, str, Path]) -> None:
    visit, key, _ = locked
    page = visit.page
    page.goto(f"{visit.url}/ledger")
    page.locator("#key").fill(key)
    page.get_by_role("button", name="Use this access key").click()
    settled(page)
    page.route("**/budgets", lambda route: route.abort())
    page.get_by_role("button", name="Refresh").click()
    expect(page.locator("#budgets-error")).to_have_text("The service cannot be reached.")
    expect(page.locator("#budget")).to_be_hidden()

    page.unroute("**/budgets")
    page.get_by_role("button", name="Refresh").click()

    expect(page.locator("#budget-title")).to_have_text("web")
    expect(page.locator("#budgets-error")).to_be_empty()


def test_the_first_budget_can_be_created(window: BrowserContext, tmp_path: Path) -> None:
    with Service(temporary=tmp_path) as service:
        page = window.new_page()
        page.goto(f"{service.url}/ledger")
        expect(page.locator("#budgets")).to_have_text("No budget yet.")
        expect(page.get_by_label("Name")).to_be_visible()
        expect(page.locator("#budget")).to_be_hidden()
        side = page.locator(".side")
        assert side.evaluate("it => it.scrollHeight <= it.clientHeight + 1")  # nothing scrolls in itself
        assert side.evaluate("it => it.clientWidth > 0.8 * it.closest('main').clientWidth")
        page.close()


def test_the_promise_is_shown_after_a_limit_is_lowered(visit: Visit, platform: Platform) -> None:
    """Releases were made under the larger limit, so the lower limit alone would promise too much."""
    name = platform.budget(charges=1)
    expect(look(visit, name).locator("#promise")).to_be_empty()
    assert platform.client.put(f"/budgets/{name}", json=LIMIT | {"epsilon": 0.5, "reason": "a test"}).status_code == 200

    promised = platform.look(name)["promise"]
    assert promised["delta"] > LIMIT["delta"]
    expect(look(visit, name).locator("#promise")).to_contain_text(
        "at ε = 0.5, because releases were made under a larger limit"
    )
