"""The releases of the budgets page: the list, a certificate on the screen and on paper, and answers as files.

The service needs an access key, so no plain link would do.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Download, Locator, Page, expect

from app.ledger.access.access_keys import new_key
from app.ledger.clock import now
from app.ledger.opening import open_ledger
from gsh.histogram.file_formats import MEDIA_TYPES
from tests.app.client import Json
from tests.app.process import PATIENCE, Service
from tests.browser.test_accessibility import faults
from tests.browser.visits import Visit

DIGEST = "ab" * 32
COLUMNS = {"names": ["likes"], "sensitivity": {"kind": "box", "lower": [0], "upper": [1]}, "covariance": [[9e6]]}
RELEASE = {
    "mechanism": {"c_u": 1, "tau": 1, "tau_star": 100, "sigma": 10, "aggregates": COLUMNS},
    "groups": {"keys": ["a", "b"], "counts": [5000, 1], "values": {"likes": [4000, 1]}},
    "epsilon": 1,
    "budget": "web",
    "description": "views per <b>URL</b>, week 46",
    "labels": ["weekly", "views & likes"],
}
# Releases of one second are listed by their keys, so the later one has the greater key.
ERASED, OPEN, COMMITTED, CHARGED, MADE = "web-42", "web-43", "web-44", "web-45", "web:46~a"


class Platform:
    """A service that needs an access key, and a client that has one."""

    def __init__(self, service: Service, ledger: str, key: str) -> None:
        self.url, self.key, self._ledger = service.url, key, ledger
        headers = {"Authorization": f"Bearer {key}"}
        self.client = httpx.Client(base_url=service.url, headers=headers, timeout=PATIENCE)

    def put(self, budget: str) -> None:
        self.client.put(f"/budgets/{budget}", json={"epsilon": 3, "delta": 1e-4}).raise_for_status()

    def post(self, path: str, body: Json, key: str = "") -> None:
        self.client.post(path, json=body, headers={"Idempotency-Key": key} if key else {}).raise_for_status()

    def get(self, path: str, media_type: str = "application/json") -> bytes:
        return self.client.get(path, headers={"Accept": media_type}).raise_for_status().content

    def erase_answers(self) -> None:
        ledger = open_ledger(self._ledger, "")
        ledger.erase_answers("9999-12-31T00:00:00Z", "2026-11-16T12:00:00Z")
        ledger.close()


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """One release in each state, and a budget without releases."""
    folder = tmp_path_factory.mktemp("service")
    place = str(folder / "ledger.sqlite3")
    ledger = open_ledger(place, "")
    key, kept = new_key(frozenset({"release", "admin"}), frozenset(), "weekly job", now())
    ledger.keys.add(kept)
    ledger.close()
    with Service(temporary=folder, ledger=place) as service:
        made = Platform(service, place, key)
        for budget in ("web", "unused"):
            made.put(budget)
        made.post("/release", RELEASE | {"description": "", "labels": []}, ERASED)
        made.erase_answers()
        charge = {name: RELEASE[name] for name in ("mechanism", "budget")}
        made.post("/releases", charge, OPEN)
        made.post("/releases", charge, COMMITTED)
        made.post(f"/releases/{COMMITTED}/commit", {"digest": DIGEST, "rows": 12})
        made.post("/budgets/web/charges", {"mechanism": RELEASE["mechanism"]}, CHARGED)
        made.post("/release", RELEASE, MADE)
        yield made
        made.client.close()


@pytest.fixture(scope="module")
def service(platform: Platform) -> Platform:
    """The service of this file, where the visits start."""
    return platform


def look(visit: Visit, platform: Platform, budget: str = "web") -> Page:
    """Go to a budget with the access key, and wait until all of it is shown."""
    page = visit.page
    page.goto(f"{visit.url}/ledger?budget={budget}")
    page.get_by_label("Access key").fill(platform.key)
    page.get_by_role("button", name="Use this access key").click()
    expect(page.get_by_label("Access key")).to_be_hidden()
    page.locator("#verdict[aria-busy=false]").wait_for()
    visit.complaints.clear()  # the browser logs the 401 in its console
    return page


def shown(page: Page, key: str) -> Locator:
    return page.locator("#releases > li", has=page.get_by_role("heading", name=key, exact=True))


def saved(page: Page, button: Locator) -> tuple[str, bytes]:
    """The name and the bytes of the file that a button saves."""
    with page.expect_download() as started:
        button.click()
    download: Download = started.value
    return download.suggested_filename, Path(download.path()).read_bytes()


def test_the_list_says_what_became_of_each_release(visit: Visit, platform: Platform) -> None:
    page = look(visit, platform)
    expect(page.locator("#releases > li h3")).to_have_text([MADE, CHARGED, COMMITTED, OPEN, ERASED])  # newest first
    words = ["made here", "charged only", "committed", "open: another engine makes it", "made here"]
    expect(page.locator("#releases .state")).to_have_text(words)

    made = shown(page, MADE)
    expect(made.locator(".description")).to_have_text("views per <b>URL</b>, week 46")  # text, never markup
    expect(made.get_by_role("list", name="Labels").get_by_role("listitem")).to_have_text(["weekly", "views & likes"])
    used = re.escape("by weekly job · ") + r"\d+\.\d % of the budget · entry 7 · \d\.\d.kB of JSON"
    expect(made.locator(".known")).to_contain_text(re.compile(used))
    expect(shown(page, COMMITTED).locator(".known")).to_contain_text("12 rows · digest abababab…")
    expect(shown(page, ERASED).locator(".known")).to_contain_text(
        "the answer was erased at 2026-11-16 12:00:00 UTC; its certificate stays"
    )
    expect(page.locator("#releases").get_by_role("button", name="Download answer")).to_have_count(1)
    expect(page.locator("#releases").get_by_role("button", name="Certificate")).to_have_count(5)
    history = page.locator("#history tbody tr")
    expect(history.filter(has_text="Committed: 12 rows, digest\u00a0abababab…")).to_contain_text(COMMITTED)
    expect(history.last).to_contain_text("By weekly job")

    page.locator("[data-id=unused]").click()
    expect(page.locator("#releases")).to_have_text("This budget has paid for no release yet.")
    expect(page.get_by_label("Download answers as")).to_be_hidden()


def test_the_shares_of_the_releases_add_up_to_the_gauge(visit: Visit, platform: Platform) -> None:
    page = look(visit, platform)
    shares = re.findall(r"([\d.]+) % of the budget", page.locator("#releases").text_content() or "")
    used = json.loads(platform.get("/budgets/web"))["used"]

    assert len(shares) == 5
    assert sum(map(float, shares)) == pytest.approx(100 * used, abs=0.5)  # each is rounded up


def test_older_releases_come_with_a_button_that_passes_the_focus_on(visit: Visit, platform: Platform) -> None:
    platform.put("long")
    for number in range(12):
        platform.post("/budgets/long/charges", {"mechanism": {"c_u": 1, "sigma": 5000}}, f"long-{number}")
    page = look(visit, platform, "long")
    more = page.get_by_role("button", name="More releases")
    expect(page.locator("#releases > li")).to_have_count(10)

    page.route("**/releases?*before=*", lambda route: route.abort())
    more.click()
    expect(page.locator("#releases-error")).to_have_text("The service cannot be reached.")
    page.unroute_all()
    visit.complaints.clear()  # the browser logs the failed request in its console
    more.click()

    expect(page.locator("#releases > li")).to_have_count(12)
    expect(page.locator("#releases > li h3").last).to_have_text("long-0")
    expect(page.get_by_role("button", name="Certificate of long-1", exact=True)).to_be_focused()
    expect(more).to_be_hidden()
    expect(page.locator("#releases-error")).to_be_empty()


@pytest.mark.parametrize("visit", [{"color_scheme": "dark"}], indirect=True, ids=["dark"])
def test_a_certificate_is_shown_printed_alone_and_saved(visit: Visit, platform: Platform) -> None:
    page = look(visit, platform)
    button = page.get_by_role("button", name=f"Certificate of {MADE}")
    button.click()
    dialog = page.get_by_role("dialog", name=MADE)
    expect(dialog).to_contain_text("It was charged to the budget web")
    expect(dialog.get_by_role("row", name="SHA-256 of the answer")).to_be_visible()
    expect(dialog.get_by_role("button", name="Print")).to_be_focused()
    expect(dialog.get_by_role("link", name="ε", exact=True)).to_have_attribute("href", "what-epsilon-means")

    page.evaluate("window.print = () => { window.printed = document.title; }")
    dialog.get_by_role("button", name="Print").click()
    assert page.evaluate("window.printed") == "web_46_a.certificate"
    page.emulate_media(media="print")
    expect(page.get_by_role("heading", name="Privacy certificate")).to_be_visible()
    for other in ("header", "main", "footer", ".dialog-head"):
        expect(page.locator(other)).to_be_hidden()
    colours = "it => [getComputedStyle(it).color, getComputedStyle(it).backgroundColor]"
    assert dialog.evaluate(colours) == ["rgb(0, 0, 0)", "rgb(255, 255, 255)"]
    assert dialog.evaluate("it => it.getBoundingClientRect().top") == 0
    assert len(re.findall(rb"/Type\s*/Page\b", page.pdf(prefer_css_page_size=True))) == 1
    page.emulate_media(media="null")

    name, content = saved(page, dialog.get_by_role("button", name="Download JSON"))
    assert (name, content) == ("web_46_a.certificate.json", platform.get(f"/releases/{MADE}/certificate"))
    name, content = saved(page, dialog.get_by_role("button", name="Download registry YAML"))
    entry = platform.get(f"/releases/{MADE}/certificate", "application/yaml")
    assert (name, content) == ("web_46_a.registry.yaml", entry)
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(button).to_be_focused()
    expect(page).to_have_title("Budgets · Gaussian sparse histogram")


def test_an_answer_is_saved_in_each_format(visit: Visit, platform: Platform) -> None:
    page = look(visit, platform)
    button = page.get_by_role("button", name=f"Download answer of {MADE}")
    for label, ending, kind in (
        ("JSON", "json", "json"),
        ("CSV", "csv", "csv"),
        ("Arrow", "arrow", "arrow_file"),
        ("Parquet", "parquet", "parquet"),
    ):
        page.get_by_label("Download answers as").select_option(label)
        name, content = saved(page, button)
        assert name == f"web_46_a.{ending}"
        assert content == platform.get(f"/releases/{MADE}/answer", MEDIA_TYPES[kind]), label


def test_problems_are_told_at_their_release(visit: Visit, platform: Platform) -> None:
    page = look(visit, platform)
    item = shown(page, MADE)
    refusal = {"type": "/problems/answer-erased", "status": 410, "detail": "The answer was erased."}
    page.route("**/answer", lambda route: route.fulfill(status=410, json=refusal))
    page.route("**/certificate", lambda route: route.abort())

    item.get_by_role("button", name="Download answer").click()
    expect(item.locator(".error")).to_have_text("The answer was erased.")
    expect(item.get_by_role("button", name="Download answer")).to_be_focused()
    item.get_by_role("button", name="Certificate").click()
    expect(item.locator(".error")).to_have_text("The service cannot be reached.")
    expect(page.locator("#certificate-dialog")).to_be_hidden()

    page.unroute("**/certificate")
    item.get_by_role("button", name="Certificate").click()
    expect(item.locator(".error")).to_be_empty()
    page.route("**/certificate", lambda route: route.fulfill(status=404, json={"detail": "There is no such release."}))
    page.get_by_role("button", name="Download JSON").click()
    expect(page.locator("#certificate-error")).to_have_text("There is no such release.")
    visit.complaints.clear()  # the browser logs the failed requests in its console


def test_axe_finds_no_fault(visit: Visit, platform: Platform) -> None:
    page = look(visit, platform)
    assert faults(visit) == []

    page.get_by_role("button", name=f"Certificate of {MADE}").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    assert faults(visit) == []
