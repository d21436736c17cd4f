"""The page of a certificate on a screen, on a phone and on paper."""

import re
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Route, expect

from app.releases.certificates.page import PAGE_HEADERS, certificate_page
from gsh.certificate import Certificate
from tests.app.client import CASE_STUDY
from tests.app.releases.certificates import SHAPES, complete, drafted
from tests.browser.letters import set_letters
from tests.browser.test_accessibility import faults
from tests.browser.test_widths import CUT_OFF, PHONE, STICKING_OUT, WIDTHS
from tests.browser.visits import Visit

SIMPLE = complete(CASE_STUDY, epsilon=0.349)
LONG = complete(
    SHAPES["box"],
    unprotected=["W" * 200, "which columns"],
    provenance={"enforced_by": "gsh.spark", "plan_digest": "8a" * 32},
)


def show(visit: Visit, certificate: Certificate) -> None:
    """The page, at a path of its depth, with its own headers. All else comes from the service."""
    headers = {**PAGE_HEADERS, "Content-Type": "text/html; charset=utf-8"}

    def answer(route: Route) -> None:
        route.fulfill(body=certificate_page(certificate), headers=headers)

    visit.page.route("**/releases/week-46/certificate", answer)
    visit.page.goto(f"{visit.url}/releases/week-46/certificate")
    visit.page.locator("#theme[aria-label]").wait_for()  # the script of the header has run


def test_axe_finds_no_fault(visit: Visit) -> None:
    show(visit, LONG)
    assert faults(visit) == []

    visit.page.unroute_all()
    show(visit, drafted(CASE_STUDY))
    assert faults(visit) == []


@pytest.mark.parametrize("visit", [PHONE], indirect=True, ids=["phone"])
def test_it_fits_every_width(visit: Visit) -> None:
    show(visit, LONG)
    for width in WIDTHS:
        visit.page.set_viewport_size({"width": width, "height": 640})
        for wide in (False, True):
            set_letters(visit.page, wide=wide)
            assert visit.page.evaluate(STICKING_OUT, width) == []
            assert visit.page.evaluate(CUT_OFF) == []


@pytest.mark.parametrize("visit", [{"color_scheme": "dark"}], indirect=True, ids=["dark"])
def test_on_paper_it_is_one_page_black_on_white_without_navigation(visit: Visit) -> None:
    """Also for a reader who likes dark pages."""
    show(visit, SIMPLE)
    printed = visit.page.pdf(prefer_css_page_size=True)
    visit.page.emulate_media(media="print")

    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 1
    expect(visit.page.locator("header")).to_be_hidden()
    expect(visit.page.get_by_text("For any one user-week")).to_be_visible()
    colours = "it => [getComputedStyle(it).color, getComputedStyle(it).backgroundColor]"
    assert visit.page.locator("body").evaluate(colours) == ["rgb(0, 0, 0)", "rgb(255, 255, 255)"]
    for cell in visit.page.locator(".facts th, .facts td, .promise, .caution").all():
        assert cell.evaluate("it => getComputedStyle(it).color") == "rgb(0, 0, 0)"


def test_epsilon_leads_to_what_it_means(visit: Visit) -> None:
    show(visit, SIMPLE)
    visit.page.locator(".facts").get_by_role("link", name="ε", exact=True).click()

    visit.page.wait_for_url(f"{visit.url}/what-epsilon-means")


def test_its_links_lead_to_the_pages_of_the_service(visit: Visit) -> None:
    show(visit, SIMPLE)
    visit.page.get_by_role("link", name="Budgets").click()

    visit.page.wait_for_url("**/ledger")
    assert urlsplit(visit.page.url).path == "/ledger"
