"""A service in a process, a browser, and a tab per test. No test may leave a complaint or ask another host."""

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.api.process import PATIENCE, Service
from tests.browser.chromium import launch
from tests.browser.visits import Visit

expect.set_options(timeout=1000 * PATIENCE)  # a page is slow where the machine is busy


@pytest.fixture(scope="package")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with Service(temporary=tmp_path_factory.mktemp("service")) as running:
        yield running


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = launch(playwright)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def case_study(service: Service, browser: Browser) -> Iterator[Visit]:
    """One tab with the first preset, for tests that leave it as they found it: Plotly takes a second to load."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    visit = Visit(context.new_page(), service.url).open()
    yield visit
    context.close()
    assert [each for each in visit.complaints if "422" not in each] == []  # the browser notes what is refused
    assert visit.hosts() <= {urlsplit(service.url).netloc}


@pytest.fixture
def visit(service: Service, browser: Browser, request: pytest.FixtureRequest) -> Iterator[Visit]:
    """A tab of its own; parametrise indirectly to set the viewport or the colour scheme."""
    options = {"viewport": {"width": 1280, "height": 900}} | getattr(request, "param", {})
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"], **options)
    visit = Visit(context.new_page(), service.url)
    yield visit
    context.close()
    assert visit.complaints == []
    assert visit.hosts() <= {urlsplit(service.url).netloc}
