"""The pages by keyboard alone, and by the rules of axe."""

from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.browser.letters import set_letters
from tests.browser.visits import Visit

COLOUR_RULES = ("color-contrast", "link-in-text-block")

# The focused element, and whether its outline is visible. A file button has the outline around its label.
FOCUS = """() => {
  const it = document.activeElement;
  const seen = it.closest(".file") ?? it;
  const name = it.id || it.textContent.trim().slice(0, 20);
  return it === document.body ? ["body", true] : [name, getComputedStyle(seen).outlineStyle !== "none"];
}"""


def faults(visit: Visit) -> list[str]:
    """What axe finds in the page as it is and on the smallest phone with wide letters; in the dark, of the colours."""
    page = visit.page
    size = page.viewport_size
    assert size is not None
    found = faults_now(page)
    set_scheme(visit, "dark")
    found += [f"dark: {fault}" for fault in faults_now(page, *COLOUR_RULES)]
    set_scheme(visit, "light")
    page.set_viewport_size({"width": 320, "height": 640})
    set_letters(page, wide=True)
    found += [f"320 px: {fault}" for fault in faults_now(page)]
    set_letters(page, wide=False)
    page.set_viewport_size(size)
    return found


def set_scheme(visit: Visit, scheme: Literal["light", "dark"]) -> None:
    """All colours at once: nothing fades, and the plots are drawn again."""
    plots = visit.page.locator("#plots[data-drawn]")
    before = int(plots.get_attribute("data-drawn") or 0) if plots.count() else None
    visit.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    if before is not None:
        expect(plots).not_to_have_attribute("data-drawn", str(before))


def faults_now(page: Page, *rules: str) -> list[str]:
    """By these rules, or by all."""
    only = {"runOnly": rules} if rules else {}
    found = Axe().run(page, options={"resultTypes": ["violations"], **only}).response["violations"]
    return [f"{each['id']}: {node['html'][:200]}" for each in found for node in each["nodes"]]


def test_axe_finds_no_fault_in_the_explorer(visit: Visit) -> None:
    """With every panel in use: columns, one with a cap, tables, group sizes, published counts, all digits, errors."""
    tables = "table=by_country~1~public~1&table=by_url~16~1~2"
    visit.open(f"/?epsilon=9&delta=1e-6&c_u=3&tau=2&column=likes~0~1~~1&column=seconds~0~600~~&code=sql&{tables}")
    visit.open_plots().unfold("own", "compare-fold")
    expect(visit.page.locator("#levels-answer tr")).to_have_count(2)
    visit.page.get_by_role("button", name="Use an example").click()
    expect(visit.page.locator("#weak")).to_be_visible()
    visit.page.locator("#engine > summary").click()
    expect(visit.page.locator("#engine-result")).to_have_attribute("aria-busy", "false")
    visit.page.locator("#digits summary, .how summary, .others summary").evaluate_all(
        "all => all.forEach((each) => each.click())"
    )
    assert faults(visit) == []

    visit.page.locator("#epsilon").fill("-1")
    visit.page.locator("#column-0-groups").fill("0")
    visit.page.locator("#level-1-share").fill("0")
    expect(visit.page.locator("#level-1-share-error")).to_have_text("must be greater than 0")
    expect(visit.page.locator("#epsilon-error")).to_have_text("must be at least 0")
    expect(visit.page.locator("#column-0-groups-error")).to_have_text("must be at least 1")
    assert faults(visit) == []
    visit.complaints.clear()  # the browser logs the 422 in its console


def test_axe_finds_no_fault_in_published_numbers(visit: Visit) -> None:
    """With a column, a result and an error."""
    visit.page.goto(f"{visit.url}/published-numbers?c_u=8&tau=1&sigma=12&tau_star=70&column=likes~0~1~20~")
    visit.page.locator("#mechanism-c_u").wait_for()
    visit.page.get_by_role("button", name="Use example counts").click()
    expect(visit.page.locator("#published-result tbody tr").first).to_be_visible()
    visit.page.locator("#published").fill("a,400\nb,5")
    expect(visit.page.locator("#published-error")).to_contain_text("Line 2")

    assert faults(visit) == []


@pytest.mark.parametrize("path", ["/problems", "/problems/budget-exceeded", "/what-epsilon-means"])
def test_axe_finds_no_fault_in_the_pages_of_text(visit: Visit, path: str) -> None:
    visit.page.goto(f"{visit.url}{path}")
    visit.page.locator("#theme[aria-label]").wait_for()  # the script of the header has run
    visit.page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")

    assert faults(visit) == []


def test_everything_is_reached_with_the_tab_key(visit: Visit) -> None:
    """The focused element always has an outline."""
    visit.open().unfold("own", "code-fold")
    reached: list[str] = []
    for _ in range(100):
        visit.page.keyboard.press("Tab")
        name, outlined = visit.page.evaluate(FOCUS)
        reached.append(name)
        assert outlined, name

    wanted = [
        "Skip to main content",
        "theme",
        "Small app",
        "epsilon",
        "delta",
        "c_u",
        "tau",
        "slider",
        "Use your own groups",
        "sizes",
        "sizes-file",
        "Use it in your codec",
        "tab-curl",
        "Plotsδ at every ε, t",
        "Several levels in on",
        "My engine adds its o",
    ]
    wanted += ["copy-link", "copy"]
    assert [name for name in wanted if name not in reached] == []


def test_a_question_is_asked_and_answered_by_keys_alone(visit: Visit) -> None:
    visit.open()
    page = visit.page
    page.get_by_role("button", name="Pages of a week").focus()
    before = visit.answers()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # the second example
    visit.wait_for_answer(before)
    expect(page.locator("#sigma-answer")).to_have_text("4.225")

    before = visit.answers()
    page.locator("#epsilon").focus()
    page.keyboard.press("Control+A")
    page.keyboard.type("2")
    visit.wait_for_answer(before)
    expect(page.locator("#certificate")).to_contain_text("ε = 2, δ ≤ 10⁻⁶")


def test_results_are_announced(case_study: Visit) -> None:
    """A screen reader announces a new answer, and reads a field's error with the field."""
    page = case_study.open_plots().page

    assert page.locator("#answer-live").get_attribute("aria-live") == "polite"
    assert "epsilon-error" in (page.locator("#epsilon").get_attribute("aria-describedby") or "")
    expect(page.get_by_label("Privacy loss")).to_have_id("epsilon")
    expect(page.get_by_role("img", name="Will a group be published?")).to_be_visible()
