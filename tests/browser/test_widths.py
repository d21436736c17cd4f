"""Every page fits the width of the window, down to the smallest phone, in every state and with any font.

The test compares with the width that it has set, because on a phone ``innerWidth`` grows with the content. Fonts differ
between machines, so each state is measured with the machine's fonts and with wide letters.
"""

from collections.abc import Callable

import httpx
import pytest
from playwright.sync_api import FilePayload, expect

from app.http.problems.kinds import KINDS
from tests.browser.letters import set_letters
from tests.browser.visits import Visit

WIDTHS = (320, 375, 700, 1280)  # ascending: a plot follows its card with a delay, and a narrow plot fits a wide card
PHONE = {"device": "phone", "viewport": {"width": WIDTHS[0], "height": 640}}

# Elements that extend beyond the window, unless an ancestor scrolls.
STICKING_OUT = """width => {
  const scrolls = (it) => it && (getComputedStyle(it).overflowX !== "visible" || scrolls(it.parentElement));
  const name = (it) => `${it.tagName.toLowerCase()}#${it.id}.${it.classList}`;
  return [...document.querySelectorAll("body *")].filter((it) => {
    const { left, right, width: own } = it.getBoundingClientRect();
    return own > 0 && !it.closest("svg") && (right > width + 0.5 || left < -0.5) && !scrolls(it.parentElement);
  }).map(name);
}"""

# Text that is cut off: wider than its box, without scrolling and without an ellipsis.
CUT_OFF = """() => [...document.querySelectorAll("body *")].filter((it) => {
  const { overflowX, textOverflow, clipPath } = getComputedStyle(it);
  const isCutting = overflowX === "hidden" || overflowX === "clip";
  const isText = it.textContent.trim() !== "" && clipPath === "none" && !it.closest("svg");
  return isCutting && isText && textOverflow === "clip" && it.scrollWidth > it.clientWidth;
}).map((it) => it.outerHTML.slice(0, 80))"""

# Boxes next to each other whose upper ends are not level.
UNEVEN = """() => [...document.querySelectorAll(".field")].flatMap((field) => {
  const next = field.nextElementSibling;
  const boxOf = (it) => it?.matches(".field") ? it.querySelector("input, select")?.getBoundingClientRect() : undefined;
  const [one, other] = [boxOf(field), boxOf(next)];
  const isNext = one && other && one.width > 0 && other.left > one.right;
  const lines = (it) => Math.round(it.querySelector("label").getBoundingClientRect().height / 20);
  const isSame = isNext && lines(field) === lines(next);
  return isSame && Math.abs(one.top - other.top) > 0.5 ? [`${field.textContent} ${next.textContent}`.slice(0, 80)] : [];
})"""

LONG_NAME = "W" * 64
HUGE = {"c_u": 10**18, "tau": 10**15, "tau_star": 1.2345678901234567e300, "sigma": 1.2345678901234567e200}


def open_everything(visit: Visit) -> None:
    visit.page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")


def explorer(visit: Visit) -> None:
    """All panels in use, a long name among the columns, the tables and the groups."""
    columns = f"column={'W' * 60}~0~1~~1&column=likes~0~1000000~~"
    tables = f"table={'W' * 64}~1~public~1&table=by_url~1000000000000~1~2&shares=balanced"
    visit.open(f"/?epsilon=1&delta=1e-6&c_u=3&tau=2&sigma=50&{columns}&code=sql&{tables}")
    expect(visit.page.locator("#levels-answer tr")).to_have_count(2)
    visit.open_plots().unfold("own", "compare-fold", "engine")
    visit.page.locator("#sizes").fill(f"{'W' * 80}, 1000000000000\nb, 20000")
    expect(visit.page.locator("#sizes-result")).to_contain_text("2 sizes read")


def explorer_of_a_large_question(visit: Visit) -> None:
    visit.open("/?epsilon=0.01&delta=1e-12&c_u=1000000000&tau=1&code=python").open_plots().unfold("compare-fold")


def explorer_of_a_real_release(visit: Visit) -> None:
    """With all facts and sources open."""
    visit.open()
    visit.page.get_by_role("button", name="Facebook URLs").click()
    visit.page.locator("#real-release summary").click()
    expect(visit.page.locator("#real-gap")).to_contain_text("τ* − τ = 139")


def explorer_with_errors(visit: Visit) -> None:
    visit.open("/?epsilon=1&delta=1e-6&c_u=3&tau=2&column=likes~0~1~~")
    visit.page.locator("#column-0-groups").fill("9" * 30)
    visit.page.locator("#epsilon").fill("-" + "1" * 60)
    expect(visit.page.locator("#epsilon-error")).to_have_text("must be at least 0")
    visit.unfold("own")
    visit.page.locator("#sizes").fill("W" * 80)
    visit.complaints.clear()  # the browser logs the 422 in its console


def explorer_of_the_impossible(visit: Visit) -> None:
    visit.open()
    visit.page.locator("#more").evaluate("it => it.open = true")
    visit.page.locator("#sigma").fill("1")
    expect(visit.page.locator(".error:not(:empty)").first).to_be_visible()
    visit.complaints.clear()  # the browser logs the 422 in its console


def published_numbers(visit: Visit) -> None:
    """A long name, wide numbers, and a column."""
    column = f"{'W' * 60}~0~1~2e6~"
    link = f"published-numbers?c_u=1000000000&tau=1&sigma=123456.5&tau_star=1e9&column={column}"
    visit.page.goto(f"{visit.url}/{link}")
    visit.page.locator("#mechanism-c_u").wait_for()
    visit.page.locator("#published").fill(f"{'V' * 80}, 5000000000, 123456789.5\nb, 20000000000, 3")
    expect(visit.page.locator("#published-result tbody tr")).to_have_count(4)


def budgets(visit: Visit) -> None:
    """A long name, a long description, a history with huge and tiny numbers and long idempotency keys."""
    page = visit.page
    with httpx.Client(base_url=visit.url) as platform:
        limit = {"epsilon": 123456789.12345678, "delta": 1.2345678901234567e-300, "description": "D" * 1000}
        platform.put(f"/budgets/{LONG_NAME}", json=limit).raise_for_status()
        for number in range(23):
            headers = {"Idempotency-Key": f"{'K' * 200}-{number}"}
            mechanism = {"c_u": 1, "sigma": 123456.12345678901} if number else HUGE
            body = {"mechanism": mechanism, "description": "D" * 1000, "labels": ["L" * 64, "M" * 64]}
            platform.post(f"/budgets/{LONG_NAME}/charges", json=body, headers=headers)
        limit["epsilon"] = 123456789.5
        platform.put(f"/budgets/{LONG_NAME}", json=limit | {"reason": "R" * 1000}).raise_for_status()
    page.goto(f"{visit.url}/ledger?budget={LONG_NAME}&times=3&c_u=51914&tau=1&tau_star=13955&sigma=2229&mu_0=0.001")
    page.locator("#budget[aria-busy=false]").wait_for()
    page.locator("#verdict[aria-busy=false]").wait_for()
    open_everything(visit)
    page.get_by_role("button", name="Verify the history").click()
    expect(page.locator("#verified")).to_contain_text("Intact")
    visit.complaints.clear()  # the browser logs in its console that no noise fits the remaining budget


def all_budgets(visit: Visit) -> None:
    """Long names in a deep tree, and periods."""
    above = None
    with httpx.Client(base_url=visit.url) as platform:
        for level in range(8):
            name = f"level-{level}-{'L' * 80}"
            limit = {"epsilon": 123.456, "delta": 1e-4, "parent": above, "description": "D" * 200}
            platform.put(f"/budgets/{name}", json=limit | {"renews": "week" if level == 7 else None}).raise_for_status()
            above = name
        for period in ("2026-W01", "2026-W02"):
            body = {"mechanism": {"c_u": 1, "sigma": 50}, "period": period}
            charged = platform.post(
                f"/budgets/{above}/charges", json=body, headers={"Idempotency-Key": f"deep-{period}"}
            )
            charged.raise_for_status()
    visit.page.goto(f"{visit.url}/ledger?overview")
    visit.page.locator("#overview-budgets > li").first.wait_for()
    open_everything(visit)


def certificate_in_a_dialog(visit: Visit) -> None:
    """With a long idempotency key."""
    key = "K" * 255
    with httpx.Client(base_url=visit.url) as platform:
        platform.put("/budgets/certified", json={"epsilon": 1, "delta": 1e-4}).raise_for_status()
        body = {"mechanism": {"c_u": 1, "sigma": 123456.12345678901}}
        headers = {"Idempotency-Key": key}
        platform.post("/budgets/certified/charges", json=body, headers=headers).raise_for_status()
    visit.page.goto(f"{visit.url}/ledger?budget=certified")
    visit.page.get_by_role("button", name=f"Certificate of {key}").click()
    expect(visit.page.get_by_role("dialog")).to_contain_text("Privacy certificate")


def budgets_with_errors(visit: Visit) -> None:
    page = visit.page
    httpx.put(f"{visit.url}/budgets/web", json={"epsilon": 1, "delta": 1e-4}).raise_for_status()
    page.goto(f"{visit.url}/ledger?budget={'N' * 90}&c_u=1&sigma=50")
    page.locator("#verdict[aria-busy=false]").wait_for()
    open_everything(visit)
    form = page.get_by_role("form", name="A new budget")
    form.get_by_label("Name").fill("two words")
    form.get_by_label("Groups per user").fill("")
    form.get_by_role("button").click()
    expect(page.locator("#create-form-budget-error")).not_to_be_empty()
    page.locator("#plan-times").fill("1001")
    expect(page.locator("#plan-times-error")).not_to_be_empty()
    expect(page.locator("#budgets-error")).not_to_be_empty()
    visit.complaints.clear()  # the browser logs the 422 in its console


def locked_budgets(visit: Visit) -> None:
    refusal = {"status": 401, "detail": "An access key is required."}
    visit.page.route("**/budgets", lambda route: route.fulfill(status=401, json=refusal))
    visit.page.goto(f"{visit.url}/ledger")
    visit.page.get_by_label("Access key").fill("k" * 100)
    visit.page.get_by_role("button", name="Use this access key").click()
    expect(visit.page.locator("#key-error")).not_to_be_empty()
    visit.complaints.clear()  # the browser logs the 401 in its console


def release_page(visit: Visit) -> None:
    """A long name, wide numbers, a table with long names, and a result."""
    page = visit.page
    name = "V" * 64
    httpx.put(f"{visit.url}/budgets/{name}", json={"epsilon": 3, "delta": 1e-5}).raise_for_status()
    page.goto(f"{visit.url}/release-table?budget={name}&epsilon=1&delta=1e-6&c_u=3&tau=1&way=each")
    page.locator("#table-text").fill(f"{'W' * 60},country,users,{'M' * 60}\n{'V' * 80},US,1000000000,12\n")
    page.locator("#noise-columns-0-upper").fill("123456789")
    page.get_by_role("button", name="Try with made-up data").click()
    expect(page.locator("#result-title")).to_have_text("Made-up data")
    page.locator("#noise-columns-0-noise").fill("-1")
    expect(page.locator("#noise .error:not(:empty)").first).to_be_visible()
    visit.complaints.clear()  # the browser logs the 422 in its console


def release_page_of_several_tables(visit: Visit) -> None:
    """Long names of files and columns, wide numbers, and a result."""
    page = visit.page
    page.goto(f"{visit.url}/release-table?epsilon=1&delta=1e-6&way=each")
    page.locator("#noise-way").wait_for()
    text = f"{'W' * 60},users,{'M' * 60}\n{'V' * 80},1000000000,12\n".encode()
    files: list[FilePayload] = [{"name": each * 70, "mimeType": "", "buffer": text} for each in "WM"]
    page.locator("#table-file").set_input_files(files)
    for index, bound in enumerate(("3", "1000000000000")):
        page.locator(f"#joint-{index}-c_u").fill(bound)
        page.locator(f"#joint-{index}-columns-0-upper").fill("123456789")
    page.get_by_role("button", name="Try with made-up data").click()
    expect(page.locator("#result-table h3")).to_have_count(2)


def swagger(visit: Visit) -> None:
    """One operation executed; open as well: a form with a file, and parameters of path and query."""
    page = visit.page
    page.goto(f"{visit.url}/docs")
    page.locator(".opblock").first.wait_for()
    for path in ("/account/exact", "/release/table", "/budgets/{id}/charges"):
        page.locator(f".opblock-post:has([data-path='{path}']) .opblock-summary-control").click()
    page.get_by_role("button", name="Execute").first.click()
    page.locator(".live-responses-table").first.wait_for()


def meaning(visit: Visit) -> None:
    visit.page.goto(f"{visit.url}/what-epsilon-means")
    visit.page.locator("#theme[aria-label]").wait_for()
    open_everything(visit)


def problems(visit: Visit) -> None:
    visit.page.goto(f"{visit.url}/problems")
    visit.page.locator("#theme[aria-label]").wait_for()


def one_problem(visit: Visit) -> None:
    """The one with the longest name."""
    visit.page.goto(f"{visit.url}{max((kind.type for kind in KINDS), key=len)}")
    visit.page.locator("#theme[aria-label]").wait_for()


STATES: dict[str, Callable[[Visit], None]] = {
    each.__name__.replace("_", " "): each
    for each in (
        explorer,
        explorer_of_a_large_question,
        explorer_of_a_real_release,
        explorer_with_errors,
        explorer_of_the_impossible,
        published_numbers,
        budgets,
        certificate_in_a_dialog,
        all_budgets,
        budgets_with_errors,
        locked_budgets,
        release_page,
        release_page_of_several_tables,
        swagger,
        meaning,
        problems,
        one_problem,
    )
}


@pytest.mark.parametrize("visit", [PHONE], indirect=True, ids=["phone"])
@pytest.mark.parametrize("state", STATES)
def test_a_page_is_no_wider_than_its_window(visit: Visit, state: str) -> None:
    STATES[state](visit)
    page = visit.page
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 640})
        for letters in ("own", "wide"):
            set_letters(page, wide=letters == "wide")
            found = page.evaluate(STICKING_OUT, width)
            assert (page.evaluate("document.documentElement.scrollWidth"), found) == (width, []), f"{width}, {letters}"
            assert page.evaluate(CUT_OFF) == [], f"{width}, {letters}"
        set_letters(page, wide=False)
        assert page.evaluate(UNEVEN) == [], width
