"""From a table to a private table, as a person does it: paste or drop, choose who pays, dry run, release, download.

The service needs an access key, so nothing works by a plain link.
"""

import base64
import hashlib
import io
import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from playwright.sync_api import BrowserContext, Download, Page, Route, expect

from app.ledger.access.access_keys import new_key
from app.ledger.clock import now
from app.ledger.opening import open_ledger
from tests.app.client import Json
from tests.app.process import PATIENCE, Service
from tests.browser.test_accessibility import faults
from tests.browser.test_table_readers import as_arrow, as_parquet
from tests.browser.visits import Visit

SIZES = {"home": 5000, "news": 900, "shop": 310, "help": 4}
ROWS = "".join(f"{name}.example\tUS\t{size}\t{3 * size}\tsecret\n" for name, size in SIZES.items())
PASTED = f"url\tcountry\tusers\tseconds\tnote\n{ROWS}"  # as a spreadsheet gives it
TABLE = pa.table({"url": list(SIZES), "users": pa.array(SIZES.values(), pa.int64())})


DROP = """([name, content]) => {
  const dropped = new DataTransfer();
  dropped.items.add(new File([Uint8Array.from(atob(content), (each) => each.charCodeAt(0))], name));
  const area = document.getElementById("table-text");
  area.dispatchEvent(new DragEvent("drop", { dataTransfer: dropped, bubbles: true, cancelable: true }));
}"""


class Platform:
    """A service that needs an access key, and a client that has one."""

    def __init__(self, service: Service, key: str, bound: str) -> None:
        self.url, self.key, self.bound = service.url, key, bound
        headers = {"Authorization": f"Bearer {key}"}
        self.client = httpx.Client(base_url=service.url, headers=headers, timeout=PATIENCE)

    def budget(self, name: str, **limit: object) -> None:
        self.client.put(f"/budgets/{name}", json={"epsilon": 3, "delta": 1e-5} | limit).raise_for_status()

    def spent(self, name: str) -> int:
        return int(self.client.get(f"/budgets/{name}").json()["spent"]["releases"])


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """One access key may use all budgets. The other one is bound to a budget that does not exist."""
    folder = tmp_path_factory.mktemp("service")
    place = str(folder / "ledger.sqlite3")
    ledger = open_ledger(place, "")
    keys = []
    for budgets in (frozenset[str](), frozenset({"nowhere"})):
        key, kept = new_key(frozenset({"release", "admin"}), budgets, "analyst", now())
        ledger.keys.add(kept)
        keys.append(key)
    ledger.close()
    with Service(temporary=folder, ledger=place) as service:
        made = Platform(service, *keys)
        yield made
        made.client.close()


@pytest.fixture
def visit(platform: Platform, window_tab: Page, request: pytest.FixtureRequest) -> Iterator[Visit]:
    options = {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"} | getattr(request, "param", {})
    window_tab.set_viewport_size(options["viewport"])
    window_tab.emulate_media(color_scheme=options["color_scheme"], media="null")
    window_tab.goto(f"{platform.url}/healthz")
    window_tab.evaluate("sessionStorage.clear()")
    visit = Visit(window_tab, platform.url)
    yield visit
    window_tab.unroute_all(behavior="ignoreErrors")
    visit.leave()
    visit.check()


def enter(visit: Visit, key: str, query: str = "") -> Page:
    """Open the page, and use an access key."""
    page = visit.page
    page.goto(f"{visit.url}/healthz")
    page.evaluate("sessionStorage.clear()")
    page.goto(f"{visit.url}/release-table{query}")
    expect(page.locator("#pay-note")).to_contain_text("Enter your access key above.")
    page.get_by_label("Access key").fill(key)
    page.get_by_role("button", name="Use this access key").click()
    expect(page.get_by_label("Access key")).to_be_hidden()
    visit.complaints.clear()  # the browser logs the 401 in its console
    return page


def confirm(page: Page) -> None:
    """A person says that the roles of the columns are right."""
    page.get_by_label("This is right").check()


def saved(page: Page, name: str) -> tuple[str, bytes]:
    with page.expect_download() as started:
        page.get_by_role("button", name=name, exact=True).click()
    download: Download = started.value
    return download.suggested_filename, Path(download.path()).read_bytes()


def bring(page: Page, name: str, content: bytes) -> None:
    """Open a file, or drop it if it is an Arrow file."""
    if name.endswith(".arrow"):
        page.evaluate(DROP, [name, base64.b64encode(content).decode()])
    else:
        page.locator("#table-file").set_input_files({"name": name, "mimeType": "", "buffer": content})


def check_files(page: Page, stored: Json) -> None:
    """The answer and the certificate in each format, under a good name."""
    name, content = saved(page, "Download CSV")
    table = pa.csv.read_csv(io.BytesIO(content))
    assert (name, table["url"].to_pylist()) == ("web-2026-W47.csv", [key[0] for key in stored["groups"]["keys"]])
    assert {"users", "users_low", "users_high", "seconds_low"} <= set(table.column_names)
    name, content = saved(page, "Download Parquet")
    assert (name, pq.read_table(io.BytesIO(content)).num_rows) == ("web-2026-W47.parquet", table.num_rows)
    name, content = saved(page, "Download JSON")
    assert (name, json.loads(content)) == ("web-2026-W47.json", stored)
    name, content = saved(page, "Certificate as JSON")
    certificate = json.loads(content)
    assert (name, certificate["idempotency_key"]) == ("web-2026-W47.certificate.json", "web-2026-W47")
    assert certificate["epsilon"] == 1
    name, content = saved(page, "Certificate as registry YAML")
    assert (name, b"url_slug" in content) == ("web-2026-W47.registry.yaml", True)


def test_a_table_is_pasted_priced_checked_released_and_downloaded(visit: Visit, platform: Platform) -> None:
    platform.budget("web")
    page = enter(visit, platform.key)
    visit.requests.clear()
    page.get_by_label("Paste it, or drop a file").fill(PASTED)
    expect(page.locator("#table-known")).to_have_text("4 rows, 5 columns, CSV")
    page.get_by_label("Role of note").select_option("left out")
    expect(page.get_by_label("Role of users")).to_have_value("count")
    expect(page.locator("#noise-answer")).to_have_text("Enter the most groups that one user is in.")
    page.get_by_label("Groups per user").fill("4")
    expect(page.locator("#noise-columns-0-upper-error")).to_have_text("is needed")
    page.get_by_role("group", name="Column seconds").get_by_label("Maximum").fill("10")

    expect(page.locator("#noise-answer")).to_contain_text("σ = 11.95, τ* = 61.07. Counts ± 23.43, seconds ± 234.21")
    expect(page.locator("#cost")).to_contain_text("It costs 12.6 % of web.")
    expect(page.locator("#stated")).to_contain_text("The certificate will state ε = 1, δ ≤ 10⁻⁶.")
    expect(page.locator("#cost")).to_contain_text("By itself it has ε = 0.873 at δ = 10⁻⁵.")
    count = page.get_by_role("button", name="Make it count: spend 12.6 % of web")
    expect(count).to_be_disabled()

    page.get_by_role("button", name="Try with made-up data").click()
    expect(page.locator("#result-note")).to_contain_text("Nothing was spent, and your table was not used.")
    expect(page.locator("#result-table tbody tr").first).to_contain_text("made-up a")
    assert not any("multipart" in request.headers.get("content-type", "") for request in visit.requests)

    page.get_by_label("Name of the release").fill("web-2026-W47")
    confirm(page)
    page.get_by_role("button", name="Dry run with my table").click()
    expect(page.locator("#act-said")).to_have_text(
        "Your table is in order, the name is free, and the budget would pay. Nothing was spent."
    )
    assert platform.spent("web") == 0
    count.click()

    expect(page.locator("#result-title")).to_have_text("Released: web-2026-W47")
    assert platform.spent("web") == 1
    stored = platform.client.get("/releases/web-2026-W47/answer", headers={"Accept": "application/json"}).json()
    rows = page.locator("#result-table tbody tr")
    expect(rows).to_have_count(len(stored["groups"]["keys"]))
    expect(rows.first).to_contain_text(f"{stored['groups']['counts'][0]:.2f}")
    cover = "Intervals cover the bounded numbers: each unit in at most 4 groups, seconds clipped to 0 … 10."
    expect(page.locator("#result-table .help")).to_contain_text(cover)
    check_files(page, stored)
    page.get_by_role("button", name="Read the certificate").click()
    expect(page.get_by_role("dialog")).to_contain_text("Privacy certificate")
    page.get_by_role("button", name="Close").click()

    forms = [each for each in visit.requests if "multipart" in each.headers.get("content-type", "")]
    assert [request.url for request in forms] == [f"{platform.url}/release/table"] * 2
    assert not any("home" in request.url + (request.post_data or "") for request in visit.requests)  # nowhere else
    assert "home" not in page.url


def test_a_number_is_no_group_key_unless_the_user_says_so(visit: Visit, platform: Platform) -> None:
    """Neither by default, nor because another column becomes the number of users."""
    platform.budget("roles")
    page = enter(visit, platform.key, "?budget=roles&c_u=1&tau=1&tau_star=60&sigma=10")
    dry = page.get_by_role("button", name="Dry run with my table")
    said = "Choose what {} is. A group key is published as it is, without noise."
    page.get_by_label("Paste it, or drop a file").fill("page,clicks,unique_users\nhome,50000,1200\n")
    expect(page.locator("#table-error")).to_have_text(said.format("clicks"))
    expect(page.get_by_label("Role of clicks").locator("option:checked")).to_have_text("choose")
    expect(dry).to_be_disabled()

    page.get_by_label("Role of clicks").select_option("number of users")
    expect(page.locator("#table-error")).to_have_text(said.format("unique_users"))
    page.get_by_label("Role of unique_users").select_option("number of users")
    page.get_by_label("Role of clicks").select_option("left out")
    expect(page.locator("#table-error")).to_be_empty()
    expect(dry).to_be_disabled()
    confirm(page)
    expect(dry).to_be_enabled()


def test_files_are_opened_and_a_used_name_is_explained(visit: Visit, platform: Platform) -> None:
    """Parquet, both kinds of Arrow, and CSV, with the numbers of a link. One name is the same table in any format."""
    platform.budget("files")
    mechanism = "c_u=1&tau=1&tau_star=60&sigma=10"
    page = enter(visit, platform.key, f"?budget=files&{mechanism}")
    expect(page.get_by_label("Noise, in users")).to_have_value("10")
    page.get_by_label("Name of the release").fill("files-1")
    files = {
        "table.parquet": as_parquet(TABLE),
        "table.arrows": as_arrow(TABLE, pa.ipc.new_stream),
        "table.arrow": as_arrow(TABLE, pa.ipc.new_file),
    }
    said, button = "Spent. files has paid for it.", "Make it count: spend"
    for name, content in files.items():
        bring(page, name, content)
        expect(page.locator("#table-known")).to_contain_text(f"{name}: ")
        confirm(page)
        page.get_by_role("button", name="Dry run with my table").click()
        page.get_by_role("button", name=button).click()
        expect(page.locator("#result-note")).to_have_text(said)
        at = platform.client.get("/releases/files-1").json()["at"].replace("T", " ").replace("Z", " UTC")
        said = f"Replayed: released on {at}. The same table has this name already. Nothing was charged now."
        button = "Show this release again: spend nothing"
        page.get_by_role("button", name="Clear").click()
        expect(page.locator("#table-known")).to_be_empty()
    assert platform.spent("files") == 1

    bring(page, "twice.parquet", as_parquet(pa.concat_tables([TABLE, TABLE])))
    confirm(page)
    page.get_by_role("button", name="Dry run with my table").click()
    expect(page.locator("#act-error")).to_have_text(
        "Group keys must be unique: no two groups may have the same group key"
    )
    page.get_by_role("button", name="Clear").click()
    page.get_by_label("Name of the release").fill("Woche 47 – ü")
    page.get_by_label("Paste it, or drop a file").fill("url,users\nhome,7000\n")
    confirm(page)
    page.get_by_role("button", name="Dry run with my table").click()
    expect(page.locator("#pay-name-error")).to_contain_text("must have 1 to 255 letters")
    page.get_by_label("Name of the release").fill("files-1")
    page.get_by_role("button", name="Dry run with my table").click()
    expect(page.locator("#pay-name-error")).to_contain_text("belongs to a release of another table")
    expect(page.get_by_role("button", name="Make it count: spend")).to_be_disabled()
    expect(page.locator("#result")).to_be_hidden()
    visit.complaints.clear()  # the browser logs the 422 in its console
    assert platform.spent("files") == 1


@pytest.mark.parametrize(("epsilon", "stated"), [("1", 1), ("", 0.873)], ids=["typed", "none"])
def test_the_epsilon_of_a_plan_is_the_one_that_the_certificate_states(
    visit: Visit, platform: Platform, epsilon: str, stated: float
) -> None:
    """Not that of the budget, which is larger. Without one, it is that of the release at the budget's δ."""
    name = f"stated-{stated}"
    platform.budget(name)
    asked = {"mechanism": {"c_u": 4, "tau": 1}, "epsilon": 1, "delta": 1e-6}
    found = platform.client.post("/calibrate", json=asked).json()["mechanism"]
    numbers = "&".join(f"{field}={found[field]}" for field in ("c_u", "tau", "sigma", "tau_star"))
    page = visit.page
    page.goto(f"{visit.url}/ledger?budget={name}&{numbers}&epsilon={epsilon}")
    page.get_by_label("Access key").fill(platform.key)
    page.get_by_role("button", name="Use this access key").click()
    link = page.get_by_role("link", name="Release a table with these numbers").get_attribute("href") or ""
    page = enter(visit, platform.key, f"?{link.partition('?')[2]}")
    page.get_by_label("Paste it, or drop a file").fill("url,users\nhome,7000\n")
    expect(page.locator("#stated")).to_contain_text(f"The certificate will state ε = {stated}, δ ≤ ")
    if epsilon:
        expect(page.locator("#stated")).to_contain_text("δ ≤ 10⁻⁶.")
    page.get_by_label("Name of the release").fill(name)
    confirm(page)
    page.get_by_role("button", name="Dry run with my table").click()
    page.get_by_role("button", name="Make it count: spend").click()
    expect(page.locator("#result-title")).to_have_text(f"Released: {name}")
    assert platform.client.get(f"/releases/{name}/certificate").json()["epsilon"] == stated


def test_a_lost_answer_is_found_again_and_nothing_is_charged_twice(visit: Visit, platform: Platform) -> None:
    """The service has released the table, and its answer does not arrive."""
    platform.budget("lost")
    page = enter(visit, platform.key, "?budget=lost&c_u=1&tau=1&tau_star=60&sigma=10")
    page.get_by_label("Name of the release").fill("lost-1")
    page.get_by_label("Paste it, or drop a file").fill("url,users\nhome,7000\n")
    confirm(page)
    page.get_by_role("button", name="Dry run with my table").click()
    expect(page.locator("#act-said")).to_contain_text("in order")

    def lose(route: Route) -> None:
        route.fetch()
        route.abort()

    count = page.get_by_role("button", name="Make it count: spend")
    page.route("**/release/table", lambda route: route.abort())  # and before that, the request does not arrive
    count.click()
    expect(page.locator("#act-error")).to_contain_text("Press the button again: that is safe.")
    assert platform.spent("lost") == 0
    page.unroute("**/release/table")
    page.route("**/release/table", lose)
    count.click()

    expect(page.locator("#result-note")).to_contain_text("The connection broke, and the table was released")
    assert platform.spent("lost") == 1
    visit.complaints.clear()


def test_a_file_that_is_not_utf_8_is_refused(visit: Visit, platform: Platform) -> None:
    page = enter(visit, platform.key)
    bring(page, "table.csv", "stadt,users\nZürich,7000\n".encode("cp1252"))

    expect(page.locator("#table-error")).to_contain_text("Line 2: has letters that are not UTF-8")


def test_what_does_not_fit_or_is_no_table_says_what_to_do(visit: Visit, platform: Platform) -> None:
    platform.budget("tight", epsilon=2, delta=1e-6)
    typical = {"mechanism": {"c_u": 8, "tau": 1}, "epsilon": 1, "delta": 1e-6}
    mechanism = platform.client.post("/calibrate", json=typical).json()["mechanism"]
    headers = {"Idempotency-Key": "tight-1"}
    platform.client.post("/budgets/tight/charges", json={"mechanism": mechanism}, headers=headers).raise_for_status()
    page = enter(visit, platform.key, "?budget=tight")
    page.get_by_label("Groups per user").fill("8")
    page.get_by_label("Paste it, or drop a file").fill('url,users\na,40\nb,"1,200"\n')

    expect(page.locator("#cost")).to_contain_text("This release does not fit tight.")
    expect(page.locator("#cost")).to_contain_text(
        "The threshold needs 100 % of its cap (1e-6 of δ), and nothing remains; the noise needs 100 % of its cap, and "
        "nothing remains; a limit of δ = 2.1e-6 would fit two."
    )
    expect(page.get_by_role("button", name="Dry run with my table")).to_be_disabled()
    page.get_by_label("From").select_option("equal shares of what remains")
    expect(page.get_by_text("too little is left")).to_be_visible()
    platform.budget("tight", epsilon=2, delta=3e-6, reason="a test")
    page.get_by_label("Releases").fill("2")
    expect(page.locator("#cost")).to_contain_text("of tight.")
    page.get_by_label("Role of users").select_option("number of users")
    confirm(page)
    page.get_by_role("button", name="Dry run with my table").click()
    expect(page.locator("#act-error")).to_have_text(
        "Line 3: users can be read in two ways: write 1200, without a separator."
    )
    page.get_by_label("Paste it, or drop a file").fill("a,40\nb,7\n")
    expect(page.locator("#table-error")).to_have_text("Line 1: must have the names of the columns.")
    visit.complaints.clear()  # the browser logs the 422 in its console


def test_without_a_budget_or_a_ledger_one_sentence_says_what_to_do(
    visit: Visit, platform: Platform, window: BrowserContext, tmp_path: Path
) -> None:
    page = enter(visit, platform.bound)
    expect(page.locator("#pay-note")).to_have_text(
        "There is no budget yet. It adds up the cost of all tables about the same people. Create one here."
    )
    page.locator("#noise-c_u").fill("3")
    expect(page.get_by_role("button", name="Try with made-up data")).to_be_enabled()
    expect(page.get_by_role("button", name="Make it count")).to_be_disabled()

    with Service(temporary=tmp_path, ledger=str(tmp_path / "missing" / "ledger.sqlite3")) as service:
        other = window.new_page()
        other.goto(f"{service.url}/release-table")
        expect(other.locator("#pay-note")).to_contain_text("Reload this page when the ledger is back.")
        other.close()


def test_table_and_form_survive_a_walk_to_other_pages(visit: Visit, platform: Platform) -> None:
    """With a budget that is made in place. The tab keeps them meanwhile, and no table after its release."""
    platform.budget("another")
    page = enter(visit, platform.key)
    page.get_by_label("Paste it, or drop a file").fill("url,users,seconds\nhome,7000,2.5\n")
    confirm(page)
    page.get_by_text("Create a budget").click()
    form = page.get_by_role("form", name="A new budget")
    for label, text in {"Name": "walked", "Limit of ε": "3", "Limit of δ": "1/100000"}.items():
        form.get_by_label(label).fill(text)
    form.get_by_role("button", name="Create").click()
    expect(page.get_by_label("Budget", exact=True)).to_have_value("walked")
    query = "SELECT url,\n  users FROM bounded"
    typed = {
        page.locator("#noise-c_u"): "4",
        page.get_by_label("Allowance"): "10^-6",
        page.get_by_role("group", name="Column seconds").get_by_label("Maximum"): "10,5",
        page.get_by_label("Name of the release"): "walked-1",
        page.get_by_label("Which query bounded users?"): query,
    }
    for box, text in typed.items():
        box.fill(text)
    page.get_by_label("Was anything chosen").select_option("yes: what follows")
    page.get_by_label("What was chosen so").fill("C_u, from last week")

    page.get_by_role("link", name="Budgets").click()
    page.locator("#verdict[aria-busy=false]").wait_for()
    assert page.evaluate("localStorage.length") == 0
    page.get_by_role("link", name="Release", exact=True).click()
    for box, text in typed.items():
        expect(box).to_have_value(text)
    assert page.evaluate("Object.keys(sessionStorage)") == ["gsh / access key"]
    expect(page.get_by_label("This is right")).to_be_checked()
    expect(page.get_by_label("Budget", exact=True)).to_have_value("walked")
    page.get_by_role("button", name="Dry run with my table").click()
    page.get_by_role("button", name="Make it count: spend").click()
    expect(page.locator("#result-title")).to_have_text("Released: walked-1")
    certificate = platform.client.get("/releases/walked-1/certificate").json()
    assert certificate["unprotected"] == ["C_u, from last week"]
    assert certificate["bounds"]["plan_digest"] == hashlib.sha256(query.encode()).hexdigest()

    page.get_by_role("link", name="Budgets").click()
    page.locator("#verdict[aria-busy=false]").wait_for()
    kept = json.loads(page.evaluate("sessionStorage['gsh / release']"))
    assert (kept["plan"]["c_u"], kept["tables"]) == ("4", [])


def test_axe_finds_no_fault(visit: Visit, platform: Platform) -> None:
    """With a table, further numbers, a result, and errors."""
    platform.budget("seen")
    page = enter(visit, platform.key, "?budget=seen&column=seconds~0~10~~")
    page.get_by_label("Paste it, or drop a file").fill(PASTED)
    page.get_by_label("Role of note").select_option("left out")
    page.get_by_label("Groups per user").fill("4")
    page.get_by_role("button", name="Try with made-up data").click()
    expect(page.locator("#result-title")).to_have_text("Made-up data")
    assert faults(visit) == []

    page.get_by_role("group", name="Column seconds").get_by_label("Maximum").fill("")
    page.get_by_text("Create a budget").click()
    page.get_by_label("Was anything chosen").select_option("yes: what follows")
    expect(page.locator("#noise-columns-0-upper-error")).to_have_text("is needed")
    assert faults(visit) == []
