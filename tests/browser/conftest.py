"""A service, and two browsers with one tab each that the tests share.

Loading Plotly takes longer than most tests. Chromium caches compiled scripts only for a profile on disk, and more of
them for a tab that stays at one host. So the tests share the profile and the tab. Each test starts at an empty page
with empty storage. No test may leave an error in the console or send a request to another host.
"""

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import BrowserContext, Page, Playwright, expect, sync_playwright

from tests.app.process import PATIENCE, Service
from tests.browser.chromium import launch, launch_with_profile
from tests.browser.visits import Visit

expect.set_options(timeout=1000 * PATIENCE)  # a busy machine makes a page slow

WINDOW = {"width": 1280, "height": 900}


@pytest.fixture(scope="package")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with Service(temporary=tmp_path_factory.mktemp("service")) as running:
        yield running


@pytest.fixture(scope="package")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as running:
        yield running


@pytest.fixture(scope="package")
def window(playwright: Playwright, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserContext]:
    context = launch_with_profile(playwright, tmp_path_factory.mktemp("window"), viewport=WINDOW)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    yield context
    context.close()


@pytest.fixture(scope="package")
def phone(playwright: Playwright, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserContext]:
    context = launch_with_profile(playwright, tmp_path_factory.mktemp("phone"), has_touch=True, is_mobile=True)
    yield context
    context.close()


@pytest.fixture(scope="module")
def case_study(service: Service, window: BrowserContext) -> Iterator[Visit]:
    """One tab with the first preset, for tests that do not change it."""
    visit = Visit(window.new_page(), service.url).open()
    yield visit
    visit.page.close()
    assert [
        each for each in visit.complaints if not {"409", "422"} & set(each.split())
    ] == []  # the browser logs refused requests
    assert visit.hosts() <= {urlsplit(service.url).netloc}


@pytest.fixture(scope="package")
def window_tab(window: BrowserContext) -> Page:
    return window.new_page()


@pytest.fixture(scope="package")
def phone_tab(phone: BrowserContext) -> Page:
    return phone.new_page()


@pytest.fixture
def visit(service: Service, request: pytest.FixtureRequest) -> Iterator[Visit]:
    """A tab. Parametrise it indirectly to set the device, the viewport or the colour scheme."""
    options = {"device": "window", "viewport": WINDOW, "color_scheme": "light"} | getattr(request, "param", {})
    page: Page = request.getfixturevalue(f"{options['device']}_tab")
    page.goto(f"{service.url}/healthz")  # leave the page of the test before
    page.evaluate("localStorage.clear(); sessionStorage.clear()")
    page.set_viewport_size(options["viewport"])
    page.emulate_media(color_scheme=options["color_scheme"], media="null", reduced_motion="null")
    visit = Visit(page, service.url)
    yield visit
    page.unroute_all(behavior="ignoreErrors")
    visit.leave()
    visit.check()


@pytest.fixture
def first_visit(service: Service, playwright: Playwright) -> Iterator[Visit]:
    """A tab of a new browser with an empty cache."""
    browser = launch(playwright)
    visit = Visit(browser.new_page(viewport=WINDOW), service.url)
    visit.page.set_default_timeout(1000 * PATIENCE)
    yield visit
    browser.close()
    visit.check()
