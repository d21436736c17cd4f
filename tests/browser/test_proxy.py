"""The pages work behind a proxy that ends TLS and strips a path prefix. The browser plays the proxy."""

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.app.process import Service
from tests.browser.visits import Visit

PREFIX = "https://platform.test/tools/privacy"


@pytest.fixture(scope="module")
def prefixed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with Service(temporary=tmp_path_factory.mktemp("prefixed"), root_path="/tools/privacy") as service:
        yield service


@pytest.fixture
def behind_a_proxy(window: BrowserContext, prefixed: Service) -> Iterator[Visit]:
    page = window.new_page()
    page.route(
        "**/*",
        lambda route: route.fulfill(response=route.fetch(url=route.request.url.replace(PREFIX, prefixed.url))),
    )
    visit = Visit(page, PREFIX)
    yield visit
    complaints = list(visit.complaints)
    page.unroute_all(behavior="ignoreErrors")  # requests that are still open find no proxy from here on
    page.close()
    assert complaints == []
    assert [request.url for request in visit.requests if not request.url.startswith((PREFIX, "data:"))] == []


def test_the_pages_and_the_links_between_them_stay_within_their_prefix(behind_a_proxy: Visit) -> None:
    """Swagger executes there. Copied code has the public address."""
    page: Page = behind_a_proxy.page
    page.goto(f"{PREFIX}/what-epsilon-means")
    page.get_by_role("link", name="Try the API").click()
    expect(page).to_have_url(f"{PREFIX}/docs")
    block = page.locator(".opblock-post:has([data-path='/calibrate'])")
    block.locator(".opblock-summary-control").click()
    with page.expect_response(f"{PREFIX}/calibrate") as answered:
        block.get_by_role("button", name="Execute").click()
    assert answered.value.status == 200
    page.get_by_role("link", name="Sparse histogram").click()

    expect(page).to_have_url(f"{PREFIX}/?epsilon=1&delta=1e-6&c_u=8&tau=1")
    page.locator("#results[data-answers]").wait_for()
    behind_a_proxy.expect_answer("11.95", "62.64")
    expect(page.locator("#code")).to_contain_text(f"{PREFIX}/calibrate")


def test_the_release_page_stays_within_its_prefix(behind_a_proxy: Visit) -> None:
    page: Page = behind_a_proxy.page
    page.goto(f"{PREFIX}/release-table")
    expect(page.locator("#pay-note")).to_contain_text("There is no budget yet.")
    page.get_by_role("link", name="Budgets").click()

    expect(page.locator("#budgets")).to_have_text("No budget yet.")
    assert page.url.startswith(f"{PREFIX}/ledger")
    assert page.evaluate("Object.keys(sessionStorage)") == [f"gsh {urlsplit(PREFIX).path}/ release"]


def test_the_problems_stay_within_their_prefix(behind_a_proxy: Visit) -> None:
    """The page of one problem is a level deeper than the other pages."""
    page: Page = behind_a_proxy.page
    page.goto(f"{PREFIX}/problems")
    page.get_by_role("link", name="Budget exceeded").click()
    expect(page).to_have_url(f"{PREFIX}/problems/budget-exceeded")
    expect(page.get_by_role("heading", name="Budget exceeded")).to_be_visible()
    page.get_by_role("button", name="Theme: auto").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    page.get_by_role("link", name="All problems").click()
    expect(page).to_have_url(f"{PREFIX}/problems")
    expect(page.get_by_role("button", name="Theme: light")).to_be_visible()  # remembered
    page.evaluate("localStorage.clear()")

    page.go_back()
    explorer = page.get_by_role("link", name="Sparse histogram")
    assert explorer.evaluate("it => it.href").startswith(f"{PREFIX}/")
