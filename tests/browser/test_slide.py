"""The picture of the groups under the threshold: ε moves it, and a sentence says what ε allows."""

import math
import re

import pytest
from playwright.sync_api import Page, expect

import gsh
from docs.generate.meaning_page import allowed, wins
from tests.browser.visits import Visit


def published(page: Page) -> int:
    """How many groups the sentence says."""
    found = re.match(r"About (\d+) of ", page.locator("#slide-words").inner_text())
    assert found
    return int(found[1])


def chances(page: Page) -> list[float]:
    """How dense each bar is, once the line stands still at the τ* of the answer."""
    expect(page.locator("#slide-picture .label")).to_have_text(f"τ* = {page.locator('#tau_star-answer').inner_text()}")
    densities: list[float] = page.locator("#slide-picture .kept rect").evaluate_all(
        "all => all.map((each) => Number(each.getAttribute('fill-opacity')))"
    )
    return densities


def test_keys_move_epsilon_and_the_groups_slide_under_the_threshold(visit: Visit) -> None:
    """The field, the answer, the picture and the bet follow. Above 8 there is a warning."""
    page = visit.open("/").page
    before = published(page), sum(chances(page))
    page.locator("#slider").focus()
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    expect(page.locator("#epsilon")).to_have_value("0.7")
    visit.wait_for_answer(1)
    found = gsh.calibrate(c_u=8, tau=1, epsilon=0.7, delta=1e-6).mechanism
    expect(page.locator("#tau_star-exactly")).to_have_text(repr(found.tau_star))
    assert visit.query["epsilon"] == ["0.7"]
    at_least = wins(gsh.exact(found, epsilon=0).delta)
    expect(page.locator("#bet strong")).to_have_text([str(math.ceil(allowed(0.7, 1e-6))), str(math.ceil(at_least))])
    assert (published(page), sum(chances(page))) < before
    expect(page.locator("#weak")).to_be_hidden()

    page.keyboard.press("End")
    expect(page.locator("#weak")).to_be_visible()
    expect(page.locator("#slider")).to_have_attribute("aria-valuetext", "ε = 10")
    expect(page.locator("#certificate")).to_contain_text("ε = 10, δ ≤ 10⁻⁶")
    assert published(page) > before[0]


def test_the_bars_are_your_own_groups(visit: Visit) -> None:
    """Each is as dense as the chance that its group is published. The pointer names it."""
    page = visit.open("/").page
    visit.unfold("own")
    page.locator("#sizes").fill("page,users\nhome,4000\nmine,2\nnews,63")
    expect(page.locator("#slide-words")).to_contain_text("of your 3 groups")
    mechanism = gsh.calibrate(c_u=8, tau=1, epsilon=1, delta=1e-6).mechanism
    drawn = chances(page)
    assert drawn == pytest.approx(
        [0.5 * math.erfc((mechanism.tau_star - n) / mechanism.sigma / math.sqrt(2)) for n in (4000, 63, 2)], abs=0.001
    )
    box = page.locator("#slide-picture").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    note = re.compile(r"^news: 63 users, 5\d\.\d % of all releases show it\.$")
    expect(page.locator("#slide-note")).to_have_text(note)


def test_bets_are_those_of_the_page_on_epsilon(case_study: Visit) -> None:
    """The two formulas are in the page a second time, because they follow the slider."""
    given = [(epsilon, delta) for epsilon in (0, 0.1, 1, 4.5, 9, 800) for delta in (0, 1e-6, 0.01)]
    load = "const it = await import('./web/shared/bets.js');"
    call = f"async given => {{ {load} return given.map(([e, d]) => [it.winsAllowed(e, d), it.winsAgainst(d)]); }}"
    found = case_study.page.evaluate(call, given)

    for (epsilon, delta), (most, against) in zip(given, found, strict=True):
        exact = allowed(min(epsilon, 700), delta)
        assert exact - 1e-9 <= most <= exact + 1
        assert against == math.ceil(wins(delta))
