"""A service, two browsers that remember what they have compiled, and a tab per test.

Chromium keeps compiled scripts for a profile on the disk alone, and to compile Plotly takes longer than most tests. So
all tabs of a browser share one profile; what a page stores is removed before each test. No test may leave a complaint
or ask another host.
"""

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import BrowserContext, Playwright, expect, sync_playwright

from tests.api.process import PATIENCE, Service
from tests.browser.chromium import launch, launch_with_profile
from tests.browser.visits import Visit

expect.set_options(timeout=1000 * PATIENCE)  # a page is slow where the machine is busy

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
    """One tab with the first preset, for tests that leave it as they found it."""
    visit = Visit(window.new_page(), service.url).open()
    yield visit
    visit.page.close()
    assert [each for each in visit.complaints if "422" not in each] == []  # the browser notes what is refused
    assert visit.hosts() <= {urlsplit(service.url).netloc}


@pytest.fixture
def visit(service: Service, request: pytest.FixtureRequest) -> Iterator[Visit]:
    """A tab of its own; parametrise indirectly to set the device, the viewport or the colour scheme."""
    options = {"device": "window", "viewport": WINDOW, "color_scheme": "light"} | getattr(request, "param", {})
    context: BrowserContext = request.getfixturevalue(options["device"])
    page = context.new_page()
    page.set_viewport_size(options["viewport"])
    page.emulate_media(color_scheme=options["color_scheme"])
    forget = {"origin": service.url, "storageTypes": "local_storage"}
    context.new_cdp_session(page).send("Storage.clearDataForOrigin", forget)
    visit = Visit(page, service.url)
    yield visit
    page.close()
    assert visit.complaints == []
    assert visit.hosts() <= {urlsplit(service.url).netloc}


@pytest.fixture
def first_visit(service: Service, playwright: Playwright) -> Iterator[Visit]:
    """A tab of a browser that has never been here."""
    browser = launch(playwright)
    visit = Visit(browser.new_page(viewport=WINDOW), service.url)
    yield visit
    browser.close()
    assert visit.complaints == []
    assert visit.hosts() <= {urlsplit(service.url).netloc}
