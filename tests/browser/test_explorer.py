"""The explorer: the answer, the plots, the link that reproduces them, and errors next to their fields."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.visits import Visit

PHONE = {"device": "phone", "viewport": {"width": 375, "height": 812}}


def test_a_first_visit_asks_the_service_alone_paints_before_any_module_and_moves_nothing(first_visit: Visit) -> None:
    """The fixture asserts that the console has no error. Before the first paint only style sheets and one short script
    load. What moves is measured as the cumulative layout shift, which the browser reports.
    """
    page = first_visit.page
    page.add_init_script(
        "window.shift = 0; new PerformanceObserver(list => { for (const each of list.getEntries()) "
        "if (!each.hadRecentInput) window.shift += each.value; }).observe({type: 'layout-shift', buffered: true});"
    )
    first_visit.open("/")

    paths = [request.url.removeprefix(first_visit.url) for request in first_visit.requests]
    assert "/compare" in paths
    assert not any("plotly" in path for path in paths)  # it is large, and loads when the plots are unfolded
    assert all(path.startswith("/") for path in paths)
    assert page.evaluate("window.shift") < 0.01
    painted = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    asked = page.evaluate("performance.getEntriesByType('resource').map(each => [each.name, each.startTime])")
    scripts = [name.rpartition("/")[2] for name, started in asked if started < painted and name.endswith(".js")]
    assert set(scripts) <= {"before-paint.js", "theme-switch.js", "explorer.js"}


@pytest.mark.parametrize("visit", [{}, PHONE], indirect=True, ids=["desktop", "phone"])
def test_the_page_opens_small_with_a_small_example(visit: Visit) -> None:
    """At most 2 000 px at 1280, until something is opened."""
    visit.open("/")
    visit.expect_answer("11.95", "62.64")
    expect(visit.page.locator("#certificate")).to_contain_text("meets")
    expect(visit.page.get_by_role("button", name="Pages of a week")).to_have_attribute("aria-pressed", "true")
    expect(visit.page.locator("details[open]")).to_have_count(0)
    width = visit.page.evaluate("innerWidth")
    assert visit.page.evaluate("document.documentElement.scrollHeight") <= (2000 if width == 1280 else 3600)


def test_the_case_study_is_one_click_away(visit: Visit) -> None:
    visit.open("/")
    visit.page.get_by_role("button", name="URL case study").click()

    visit.expect_answer("2228.49", "13\u202f951.10")


@pytest.mark.parametrize(
    ("accounting", "cells"),
    [
        ("exact", ["2228.49", "13\u202f951.10", "none", "none"]),
        ("add-deltas", ["2274.44", "14\u202f713.09", "2.1 %", "5.5 %"]),
        ("half-split", ["2334.74", "14\u202f866.54", "4.8 %", "6.6 %"]),
        ("zcdp", ["2486.51", "16\u202f054.94", "11.6 %", "15.1 %"]),
    ],
)
def test_the_table_compares_other_accountings(case_study: Visit, accounting: str, cells: list[str]) -> None:
    case_study.unfold("compare-fold")
    expect(case_study.page.locator(f"#compare tr[data-accounting={accounting}] td")).to_have_text(cells)


@pytest.mark.parametrize(
    ("value", "up", "down"),
    [
        (2228.482632459166, "2228.49", "2228.48"),
        (50, "50.00", "50.00"),
        (4.2251, "4.226", "4.225"),
        (123456.2, "123\u202f457", "123\u202f456"),
        (1.23449e12, "1.235 × 10¹²", "1.234 × 10¹²"),
        (0.0012341, "1.235 × 10⁻³", "1.234 × 10⁻³"),
    ],
)
def test_numbers_to_use_are_rounded_to_the_safe_side(case_study: Visit, value: float, up: str, down: str) -> None:
    load = "const it = await import('./web/shared/number-format.js');"
    call = f"async value => {{ {load} return [it.shownUp(value), it.shownDown(value)]; }}"

    assert case_study.page.evaluate(call, value) == [up, down]


def test_both_curves_and_their_ratio_are_drawn(case_study: Visit) -> None:
    """At ε = 0.349 the two parts are equal, and adding them doubles δ."""
    lines = case_study.open_plots().traces("curve")
    at = lines["Exact"]["x"].index(0.349)

    assert lines["Exact"]["y"][at] == 9.999999999999999e-06
    assert lines["Add the deltas"]["y"][at] == pytest.approx(2e-05)
    assert max(lines["Ratio"]["y"]) == lines["Ratio"]["y"][at] == pytest.approx(2)
    edge = case_study.traces("frontier")
    assert min(edge["Exact"]["y"]) == 13951.051328063842
    assert min(edge["Add the deltas"]["y"]) == pytest.approx(14713.04, abs=1)
    assert case_study.traces("keep").keys() == {"Exact", "Add the deltas", "Half split", "zCDP"}
    assert case_study.traces("error").keys() == {"Median", "97.5 %", "95 % band"}


def test_plots_have_units_marks_and_numbers_as_the_page_writes_them(visit: Visit) -> None:
    """Also after a zoom. The mark at τ* has the number of the answer."""
    page = visit.open().open_plots().page
    layout = "document.getElementById('plot-{}').layout"
    marks = [
        page.evaluate(f"{layout.format(plot)}.annotations.map(it => it.text)") for plot in ("curve", "keep", "error")
    ]
    assert marks == [[" ε = 0.349", "target δ = 10⁻⁵"], [" τ* = 13\u202f951.10"], [" τ* = 13\u202f951.10"]]
    ticks = page.evaluate(f"{layout.format('curve')}.yaxis.ticktext")
    assert {"10⁻⁵", "10⁻⁴"} <= set(ticks)
    axis = layout.format("frontier")
    assert page.evaluate(f"[{axis}.xaxis.title.text, {axis}.yaxis.title.text]") == ["σ, in users", "τ*, in users"]
    assert "14\u202f000" in page.evaluate(f"{axis}.yaxis.ticktext")

    page.evaluate("Plotly.relayout('plot-frontier', {'yaxis.range[0]': 14000, 'yaxis.range[1]': 14400})")
    page.wait_for_function(f"{axis}.yaxis.ticktext.includes('14\u202f100')")


def test_a_change_shows_in_the_link_the_numbers_and_the_plots(visit: Visit) -> None:
    visit.open().open_plots()
    before = visit.traces("keep")["Exact"]["x"]
    visit.fill("c_u", "1")

    visit.expect_answer("9.781", "42.72")
    assert visit.query["c_u"] == ["1"]
    assert visit.traces("keep")["Exact"]["x"] != before
    expect(visit.page.get_by_role("button", name="URL case study")).to_have_attribute("aria-pressed", "false")


def test_presets_are_one_click_and_one_step_back(visit: Visit) -> None:
    visit.open()
    for preset, sigma, c_u in (("Small app", "4.225", "1"), ("Weekly top pages", "29.60", "40")):
        visit.page.get_by_role("button", name=preset).click()
        expect(visit.page.locator("#sigma-answer")).to_have_text(sigma)
        assert visit.query["c_u"] == [c_u]
        visit.page.go_back()
        visit.expect_answer("2228.49", "13\u202f951.10")
        expect(visit.page.locator("#c_u")).to_have_value("51914")


def test_a_link_restores_everything(visit: Visit) -> None:
    """Inputs, a fixed σ, a column with its noise and its cap, an axis and the code shown."""
    visit.open("/?epsilon=1&delta=1e-7&c_u=40&tau=5&sigma=50&column=likes~0~1~50~2&axes=keep-x&code=sql")

    values = {
        field: visit.page.locator(f"#{field}").input_value() for field in ("epsilon", "delta", "c_u", "tau", "sigma")
    }
    assert values == {"epsilon": "1", "delta": "1e-7", "c_u": "40", "tau": "5", "sigma": "50"}
    expect(visit.page.get_by_label("Noise", exact=True)).to_have_value("50")
    expect(visit.page.get_by_label("Groups, at most")).to_have_value("2")
    expect(visit.page.get_by_role("tab", name="SQL")).to_have_attribute("aria-selected", "true")
    expect(visit.page.locator("[data-axis=keep-x]")).to_have_attribute("aria-pressed", "true")
    visit.open_plots()
    assert visit.page.evaluate("document.getElementById('plot-keep').layout.xaxis.type") == "log"
    expect(visit.page.locator("#sigma-answer")).to_have_text("50")
    assert set(visit.query) == {"epsilon", "delta", "c_u", "tau", "sigma", "column", "axes", "code"}


def test_a_column_name_may_contain_the_column_separator(visit: Visit) -> None:
    visit.open("/?epsilon=1&delta=1e-6&c_u=3&tau=2&column=likes~0~1~1")
    visit.fill("column-0-name", "a~b %7E")
    visit.page.reload()

    expect(visit.page.locator("#column-0-name")).to_have_value("a~b %7E")
    expect(visit.page.locator("#column-0-upper")).to_have_value("1")
    visit.page.locator("#results[data-answers]").wait_for()


def test_a_given_mechanism_is_accounted_for(visit: Visit) -> None:
    """The paper's rounded σ and τ* miss the target, and the page says so."""
    visit.open("/?epsilon=0.349&delta=1e-5&c_u=51914&tau=1&sigma=2228&tau_star=13948")

    expect(visit.page.locator("#lead")).to_have_text(
        "This misses the target: at ε = 0.349, its δ is 1.004 × 10⁻⁵, more than 10⁻⁵. "
        "σ = 2228.49 with τ* = 13\u202f951.10 would meet it."
    )
    expect(visit.page.locator("#delta-exactly")).to_have_text("1.003103848512688e-5")
    expect(visit.page.locator("#certificate .missed")).to_have_text("misses")


def test_a_given_mechanism_is_drawn_with_the_exact_one(visit: Visit) -> None:
    visit.open("/?epsilon=0.349&delta=1e-5&c_u=51914&tau=1&sigma=9000").open_plots()

    expect(visit.page.locator("#compare tr[data-accounting=exact] td").first).to_have_text("2228.49")
    edge = visit.traces("frontier")
    assert edge["Exact: its choice"]["x"] == [2228.482632459166]
    assert edge["As given"]["x"] == [9000]
    assert edge["Exact"]["x"][-1] > 9000
    assert list(visit.traces("keep"))[-1] == "As given"


def test_a_huge_noise_is_drawn_without_a_complaint(visit: Visit) -> None:
    visit.open("/?epsilon=0.349&delta=1e-5&c_u=51914&tau=1&sigma=1e300").open_plots()

    expect(visit.page.locator("#plots-error")).to_be_empty()
    assert max(visit.traces("frontier")["Exact"]["x"]) < 3000


def test_a_page_that_may_not_remember_works(first_visit: Visit) -> None:
    first_visit.page.add_init_script(
        "Object.defineProperty(window, 'localStorage', {get() { throw new DOMException('no', 'SecurityError'); }});"
    )
    first_visit.open()
    first_visit.page.locator("#theme").click()

    expect(first_visit.page.locator("#theme")).to_have_text("Theme: light")


def test_an_unreachable_service_is_reported_in_the_explorer(visit: Visit) -> None:
    """No field is marked, and nothing can be copied."""
    for path in ("calibrate", "compare", "version"):
        visit.page.route(f"**/{path}", lambda route: route.abort())
    visit.page.goto(visit.url)

    expect(visit.page.locator("#lead")).to_have_text("No answer yet: The service cannot be reached.")
    expect(visit.page.locator("#copy")).to_be_disabled()
    assert [each for each in visit.complaints if "ERR_FAILED" not in each] == []
    visit.complaints.clear()


def test_the_answer_is_shown_without_plotly(visit: Visit) -> None:
    visit.page.route("**/plotly.min.js", lambda route: route.abort())
    visit.open().unfold("plots-fold")

    expect(visit.page.locator("#plots-error")).to_contain_text("Plotly did not load")
    visit.expect_answer("2228.49", "13\u202f951.10")
    expect(visit.page.locator("#answer")).to_have_class("answer")
    expect(visit.page.locator("#copy")).to_be_enabled()
    assert [each for each in visit.complaints if "ERR_FAILED" not in each] == []
    visit.complaints.clear()


def test_a_column_can_be_added_and_taken_away(visit: Visit) -> None:
    visit.open()
    before = visit.answers()
    visit.page.locator("#more > summary").click()
    visit.page.get_by_role("button", name="Add a column").click()
    visit.wait_for_answer(before)

    visit.expect_answer("3151.56", "19\u202f729.42")
    assert visit.query["column"] == ["likes~0~1~~"]
    before = visit.answers()
    visit.page.get_by_role("button", name="Remove column likes").click()
    visit.wait_for_answer(before)
    visit.expect_answer("2228.49", "13\u202f951.10")


@pytest.mark.parametrize(
    ("field", "text", "detail"),
    [
        ("epsilon", "-1", "must be at least 0"),
        ("epsilon", "much", "must be a number"),
        ("delta", "1", "must be less than 1"),
        ("delta", "", "is required"),
        ("c_u", "1.5", "must be an integer"),
        ("c_u", "0", "must be at least 1"),
        ("c_u", "", "is required"),
        ("epsilon", "", "is required"),
        ("tau", "-3", "must be at least 0"),
        ("sigma", "2228", "must be at least 2228.49 for this ε and δ, whatever τ* is"),
        ("tau_star", "13000", "must be at least 13\u202f951.06 for this ε and δ"),
    ],
)
def test_an_error_is_shown_next_to_its_field(case_study: Visit, field: str, text: str, detail: str) -> None:
    """In the service's words, with the symbols and digits of the page. A correct value removes the error."""
    page = case_study.page
    page.evaluate("document.getElementById('more').open = true")
    good = page.locator(f"#{field}").input_value()
    page.locator(f"#{field}").fill(text)

    expect(page.locator(f"#{field}-error")).to_have_text(detail)
    expect(page.locator(f"#{field}")).to_have_attribute("aria-invalid", "true")
    misses = field in {"sigma", "tau_star"}
    expect(page.locator("#answer")).to_have_class(f"answer stale{' misses' if misses else ''}")
    said = "misses the target" if misses else "No answer yet: see the marked field."
    expect(page.locator("#lead")).to_contain_text(said)
    expect(page.locator(".stale-note")).to_be_visible()
    expect(page.locator("#copy")).to_be_disabled()
    case_study.fill(field, good)
    expect(page.locator(f"#{field}-error")).to_be_empty()
    expect(page.locator(".stale-note")).to_be_hidden()
    expect(page.locator("#copy")).to_be_enabled()
    case_study.expect_answer("2228.49", "13\u202f951.10")


@pytest.mark.parametrize(
    ("column", "field", "detail"),
    [
        ("likes~2~1~1", "lower", "must be at most upper"),
        ("likes~0~much~1", "upper", "must be a number"),
        ("likes~0~1~half", "noise", "must be a number"),
    ],
)
def test_an_error_in_a_column_is_shown_next_to_its_field(visit: Visit, column: str, field: str, detail: str) -> None:
    visit.page.goto(f"{visit.url}/?epsilon=1&delta=1e-6&c_u=3&tau=2&column=seconds~0~1~1&column={column}")

    expect(visit.page.locator(f"#column-1-{field}-error")).to_contain_text(detail)
    expect(visit.page.locator("#form [aria-invalid=true]")).to_have_id(f"column-1-{field}")
    visit.complaints.clear()  # the browser logs the 422 in its console


@pytest.mark.parametrize("kind", ["infeasible-target", "/problems/infeasible-target"])
def test_a_problem_is_known_by_the_last_part_of_its_type(case_study: Visit, kind: str) -> None:
    load = "const { Problem } = await import('./web/shared/service.js');"
    call = f"async type => {{ {load} return new Problem({{ type, detail: '' }}, 422).type; }}"

    assert case_study.page.evaluate(call, kind) == "infeasible-target"


def test_axes_turn_logarithmic_and_back(visit: Visit) -> None:
    visit.open().open_plots()
    axis = visit.page.locator("[data-axis=curve-y]")
    expect(axis).to_have_attribute("aria-pressed", "true")

    axis.click()

    expect(axis).to_have_attribute("aria-pressed", "false")
    visit.page.wait_for_function("document.getElementById('plot-curve').layout.yaxis.type === 'linear'")
    assert visit.query["axes"] == ["curve-y"]


@pytest.mark.parametrize(
    ("kind", "start"), [("PNG", b"\x89PNG"), ("SVG", b"<svg"), ("CSV", b"series,epsilon,delta,ratio\n")]
)
def test_a_plot_can_be_downloaded(case_study: Visit, tmp_path: Path, kind: str, start: bytes) -> None:
    case_study.open_plots()
    with case_study.page.expect_download() as started:
        case_study.page.get_by_role("button", name=f"Download δ at every ε as {kind}").click()
    started.value.save_as(tmp_path / "plot")

    assert started.value.suggested_filename == f"curve.{kind.lower()}"
    assert (tmp_path / "plot").read_bytes().startswith(start)


def test_hovering_shows_the_numbers(case_study: Visit) -> None:
    plot = case_study.open_plots().page.locator("#plot-keep .nsewdrag")
    plot.scroll_into_view_if_needed()
    plot.hover()

    expect(case_study.page.locator("#plot-keep .hoverlayer")).to_contain_text("Half split")


def test_the_theme_can_be_chosen_and_is_remembered(visit: Visit) -> None:
    visit.open()
    ground = "getComputedStyle(document.body).backgroundColor"
    light = visit.page.evaluate(ground)
    theme = visit.page.locator("#theme")
    theme.click()
    theme.click()

    expect(theme).to_have_text("Theme: dark")
    assert visit.page.evaluate(ground) != light
    visit.open()
    assert visit.page.evaluate(ground) != light


@pytest.mark.parametrize("visit", [PHONE], indirect=True)
def test_a_finger_on_a_plot_scrolls(visit: Visit) -> None:
    visit.open().open_plots()

    assert visit.page.evaluate("document.getElementById('plot-keep').layout.dragmode") is False
    visit.expect_answer("2228.49", "13\u202f951.10")
