"""The page for people who decide: found from every page, read on a screen, printed, with pictures that can be read."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.visits import Visit


def test_a_person_who_must_decide_finds_reads_and_prints_what_epsilon_means(visit: Visit) -> None:
    page = visit.page
    page.goto(f"{visit.url}/problems")
    page.get_by_role("link", name="What ε means").click()
    expect(page).to_have_url(f"{visit.url}/what-epsilon-means")
    expect(page.get_by_role("heading", level=1)).to_have_text("What ε and δ promise")
    expect(page.get_by_role("heading", level=2)).to_have_count(7)
    for caption in ("Bets won of 1000, at most, by ε", "Bets won of 1000, at most, by the number of weekly tables"):
        expect(page.get_by_role("img", name=caption)).to_be_visible()
    page.get_by_text("The numbers of this picture").last.click()
    expect(page.get_by_role("row", name="52 804 547")).to_be_visible()

    page.emulate_media(media="print", color_scheme="dark")
    for screen_only in (page.locator("header.bar"), page.locator("figure details").last):
        expect(screen_only).to_be_hidden()
    expect(page.get_by_role("img").first).to_be_visible()
    body = "getComputedStyle(document.body)"
    ink, ground = page.evaluate(f"[{body}.color, {body}.backgroundColor]")
    assert (ink, ground) == ("rgb(0, 0, 0)", "rgb(255, 255, 255)")

    page.emulate_media(media="null")
    page.get_by_role("link", name="budget", exact=True).click()
    expect(page).to_have_url(re.compile(r"/ledger(\?|$)"))  # the page adds its form to its address


@pytest.mark.parametrize("visit", [{"viewport": {"width": 320, "height": 640}}], indirect=True, ids=["smallest"])
def test_no_text_of_a_picture_lies_on_another_or_outside(visit: Visit) -> None:
    visit.page.goto(f"{visit.url}/what-epsilon-means")
    found = visit.page.evaluate(
        """() => [...document.querySelectorAll(".picture")].flatMap((picture) => {
          const frame = picture.getBoundingClientRect();
          const boxes = [...picture.querySelectorAll("text")].map((it) => [it.textContent, it.getBoundingClientRect()]);
          const outside = boxes.filter(([, at]) => at.left < frame.left || at.right > frame.right + 1);
          const onAnother = boxes.filter(([, a], i) => boxes.some(([, b], j) => j > i &&
            a.left < b.right && b.left < a.right && a.top + 2 < b.bottom && b.top + 2 < a.bottom));
          return [...outside, ...onAnother].map(([text]) => text);
        })"""
    )

    assert found == []
