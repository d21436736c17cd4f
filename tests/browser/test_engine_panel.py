"""My engine, in the explorer: what an engine with its own noise costs, next to what tools claim."""

import pytest
from playwright.sync_api import expect

import gsh
from tests.browser.visits import Visit

OPENDP = gsh.engine(preset="opendp-laplace", scale=10, c_u=5, threshold=150, epsilon=0.5)


@pytest.fixture
def opened(visit: Visit) -> Visit:
    visit.open()
    assert not [each for each in visit.requests if "account/engine" in each.url]
    visit.page.locator("#engine > summary").click()
    expect(visit.page.locator("#engine-result")).to_have_attribute("aria-busy", "false")
    return visit


def deltas(visit: Visit) -> list[float]:
    """With all digits."""
    return [
        float(each)
        for each in visit.page.locator("#engine-answer td:nth-child(2)").evaluate_all(
            "all => all.map(each => each.title)"
        )
    ]


def test_the_certified_delta_stands_next_to_the_claim(opened: Visit) -> None:
    page = opened.page

    expect(page.locator("#engine-lead")).to_contain_text("(0.5, 8.875 × 10⁻⁷)-private. That is exact")
    assert deltas(opened)[:2] == [OPENDP.delta, OPENDP.claims[0].delta]
    expect(page.locator("#engine-answer")).to_contain_text("Claimed by OpenDP 0.16.0")
    expect(page.locator("#engine-budget")).to_contain_text("which geometric noise does not have")


def test_gaussian_noise_can_be_charged_and_a_wrong_field_is_marked(opened: Visit) -> None:
    page = opened.page
    page.locator("#engine-form-kind").select_option("rounded-gaussian")
    expect(page.locator("#engine-budget")).to_contain_text("σ = 10 and τ* = 149.5")
    page.locator("#engine-form-scale").fill("-1")

    expect(page.locator("#engine-form-scale-error")).to_have_text("must be greater than 0")
    expect(page.locator("#engine-lead")).to_have_text("No answer yet: see the error above.")
    opened.complaints.clear()  # the browser logs the 422 in its console
