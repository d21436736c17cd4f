"""Documentation without another host: Swagger UI executes every kind of operation, the reference shows all of them."""

import io
import json
import re
from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import BrowserContext, FilePayload, expect

from tests.app.http.test_openapi import DOCUMENT
from tests.app.process import Service
from tests.browser.visits import Visit
from tests.browser.weekly import WEEKLY

OPERATIONS = {
    operation["operationId"]: (method, path, operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
}


def shape(name: str) -> tuple[object, ...]:
    """What Swagger UI makes a request from, and what it shows of the answer."""
    method, _, operation = OPERATIONS[name]
    body = tuple(operation.get("requestBody", {}).get("content", {}))
    parameters = tuple((each["in"], each["name"]) for each in operation.get("parameters", []))
    return method, body, parameters, tuple(operation["responses"].get("200", {}).get("content", {}))


SHAPES = {shape(name): name for name in reversed(OPERATIONS)}
"""One operation of each shape: Swagger UI takes seconds for each. The API tests send the examples of all operations."""

BUDGET = "web"
"""The budget in the OpenAPI examples."""


def an_arrow_table() -> FilePayload:
    """Two groups, with the columns that the example of /release/table names."""
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"url": ["a.org", "b.org"], "country": ["US", "FR"], "users": [200_000, 3]})
    stream = io.BytesIO()
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    return {"name": "table.arrow", "mimeType": "application/vnd.apache.arrow.stream", "buffer": stream.getvalue()}


def prepared(url: str, operation: str) -> str:
    """Make a budget and a release that the operation takes. Returns the idempotency key of the release."""
    with httpx.Client(base_url=url) as platform:
        limit = {"epsilon": 1, "delta": 1e-4, "reason": "a test"}  # as in the example, which gives no reason
        platform.put(f"/budgets/{BUDGET}", json=limit).raise_for_status()
        path, key = ("/releases", "elsewhere") if operation == "commitRelease" else ("/release", "here")
        groups = {} if path == "/releases" else {"groups": {"keys": ["a"], "counts": [100_000]}}
        body = {"mechanism": WEEKLY, "budget": BUDGET, **groups}
        platform.post(path, json=body, headers={"Idempotency-Key": key}).raise_for_status()
    return key


@pytest.fixture(scope="module")
def swagger(service: Service, window: BrowserContext) -> Iterator[Visit]:
    """One tab for all operations, because Swagger UI takes two seconds to load."""
    visit = Visit(window.new_page(), service.url)
    visit.page.goto(f"{visit.url}/docs")
    yield visit
    visit.page.close()


@pytest.mark.parametrize("name", SHAPES.values())
def test_execute_answers_in_swagger(swagger: Visit, name: str) -> None:
    """With the documented example, and a table if the operation takes a file."""
    method, path, operation = OPERATIONS[name]
    names = {"id": BUDGET, "name": "budget-exceeded", "key": prepared(swagger.url, name)}
    block = swagger.page.locator(f".opblock-{method}:has([data-path='{path}'])")
    block.locator(".opblock-summary-control").click()
    if "multipart/form-data" in operation.get("requestBody", {}).get("content", {}):
        block.locator("input[type=file]").set_input_files(an_arrow_table())
    if "{key}" in path:
        block.locator("[data-param-name=key] input").fill(names["key"])
    wanted = re.compile(re.escape(swagger.url + path.format(**names)) + r"(\?|$)")
    with swagger.page.expect_response(wanted) as answered:
        block.get_by_role("button", name="Execute").click()

    assert 200 <= answered.value.status < 300
    expect(block.locator(".live-responses-table .response-col_status").last).to_contain_text("20")
    block.locator(".opblock-summary-control").click()  # a page with many open is slow
    swagger.check()


def test_swagger_shows_for_each_status_an_example_of_that_status(swagger: Visit) -> None:
    """Its own would be the same 422 everywhere. While no access key is made, nothing has a padlock."""
    page = swagger.page
    block = page.locator(".opblock-post:has([data-path='/calibrate'])")
    block.locator(".opblock-summary-control").click()
    block.locator("tr.response[data-code='503']").wait_for()
    shown = {
        row.get_attribute("data-code"): json.loads(row.locator("pre").first.inner_text())
        for row in block.locator(".responses-wrapper tr.response").all()
        if row.get_attribute("data-code")
    }
    assert {code: each["status"] for code, each in shown.items() if code >= "400"} == {
        code: int(code) for code in OPERATIONS["calibrate"][2]["responses"] if code >= "400"
    }
    expect(page.locator(".authorization__btn, .btn.authorize")).to_have_count(0)

    block.get_by_role("button", name="Execute").click()
    with page.expect_download() as downloaded:
        block.locator(".live-responses-table .download-contents").first.click()
    assert downloaded.value.suggested_filename == "calibrate.json"
    block.locator(".opblock-summary-control").click()


@pytest.mark.parametrize(
    ("path", "media_type", "headers", "name"),
    [
        ("/budgets/web?c_u=1", "application/json", {}, "budgets-web.json"),
        ("/releases/web%3A46", "application/problem+json", {}, "releases-web-46.json"),
        ("/metrics", "text/plain; version=1.0.0; charset=utf-8", {}, "metrics.txt"),
        ("/", "application/json", {}, "answer.json"),
        (
            "/any",
            "application/yaml",
            {"content-disposition": 'inline; filename="46.registry.yaml"'},
            "46.registry.yaml",
        ),
    ],
)
def test_a_download_of_swagger_is_named_by_the_service_or_by_its_path(
    swagger: Visit, path: str, media_type: str, headers: dict[str, str], name: str
) -> None:
    """Without the path prefix of the service."""
    made = swagger.page.evaluate(
        """async ([url, mediaType, headers]) => {
          const { downloadName } = await import("/web/swagger/download-names.js");
          return downloadName(`https://platform.test/tools${url}`, mediaType, headers, "https://platform.test/tools/docs");
        }""",
        [path, media_type, headers],
    )

    assert made == name


def test_swagger_follows_the_theme(visit: Visit) -> None:
    visit.page.goto(f"{visit.url}/docs")
    visit.page.locator(".opblock").first.wait_for()
    ink = "getComputedStyle(document.querySelector('.opblock-summary-description')).color"
    light = visit.page.evaluate(ink)
    visit.page.emulate_media(color_scheme="dark")
    visit.page.wait_for_function("light => " + ink + " !== light", arg=light)

    visit.page.locator("#theme").click()

    expect(visit.page.locator("#theme")).to_have_text("Theme: light")
    visit.page.wait_for_function("light => " + ink + " === light", arg=light)


def test_the_reference_has_every_operation_and_its_examples(visit: Visit) -> None:
    """Closed until it is opened, with links to its problems."""
    visit.page.goto(f"{visit.url}/reference")
    visit.page.locator("section.operation").last.wait_for()
    assert visit.page.locator("section.operation").count() == len(OPERATIONS)
    for name, (method, path, operation) in OPERATIONS.items():
        section = visit.page.locator(f"section#{name}")
        assert f"{method.upper()} {path}" in (section.text_content() or "")
        asked = [
            len(each.get("examples", [...])) for each in operation.get("requestBody", {}).get("content", {}).values()
        ]
        answered = [
            "example" in content
            for status, response in operation["responses"].items()
            for content in response["content"].values()
            if status < "400"
        ]
        assert section.locator("details.example").count() == sum(asked) + sum(answered), name
        assert section.locator("a[href='problems/invalid-request']").count() == 1
    assert visit.page.locator("#contents a").count() == len(OPERATIONS)
    expect(visit.page.locator(".operation > details[open]")).to_have_count(0)

    visit.page.get_by_role("button", name="Open all").click()
    expect(visit.page.locator(".operation > details[open]")).to_have_count(len(OPERATIONS))
    visit.page.get_by_role("button", name="Close all").click()
    expect(visit.page.locator(".operation > details[open]")).to_have_count(0)


@pytest.mark.parametrize("visit", [{"viewport": {"width": 375, "height": 812}}], indirect=True, ids=["phone"])
def test_the_closed_reference_is_short_on_a_phone(visit: Visit) -> None:
    visit.page.goto(f"{visit.url}/reference")
    visit.page.locator("section.operation").last.wait_for()

    assert visit.page.evaluate("document.documentElement.scrollHeight") < 6000


def test_the_reference_prints_symbols_for_every_field_that_has_one(visit: Visit) -> None:
    """Also for parameters, and for fields whose title is that of the type which they refer to."""
    visit.page.goto(f"{visit.url}/reference#getBudget")
    wanted = {"c_u": "Cu", "sigma": "σ", "tau": "τ", "tau_star": "τ*", "mu_0": "μ₀", "epsilon": "ε", "delta": "δ"}
    visit.page.locator("section#getBudget details[open]").wait_for()
    rows = visit.page.locator("tr:has(.symbol)").evaluate_all(
        "rows => rows.map(row => [row.cells[0].textContent, row.cells[1].textContent])"
    )
    shown = {name: {symbol for field, symbol in rows if field == name} for name in wanted}

    assert shown == {name: {symbol} for name, symbol in wanted.items()}
    texts = visit.page.locator("#operations :is(td, .body > p)").all_text_contents()
    assert [text for text in texts if re.search("C_u|δ_", text)] == []


def test_the_reference_indents_the_fields_of_objects(visit: Visit) -> None:
    """Each level by the same step, in the order of the levels."""
    visit.page.goto(f"{visit.url}/reference#calibrate")
    visit.page.locator("section#calibrate details[open]").wait_for()
    indents = [
        visit.page.locator(f"#calibrate .fields .depth-{depth}").first.evaluate(
            "it => parseFloat(getComputedStyle(it).paddingLeft)"
        )
        for depth in range(4)
    ]

    assert indents[0] < indents[1] < indents[2] < indents[3]
    assert indents[2] - indents[1] == indents[3] - indents[2] == indents[1]


def test_the_reference_follows_references_to_numbers_and_names(visit: Visit) -> None:
    """An ε is a number with its bound, an accounting one of its names: neither is an object."""
    visit.page.goto(f"{visit.url}/reference")
    section = visit.page.locator("section#accountExact")
    section.locator("summary").first.click()
    expect(section.locator("tr", has_text="The ε at which")).to_contain_text("number ≥ 0 or list of number ≥ 0 or null")
    expect(section.locator("tr", has_text="How δ was computed")).to_contain_text('"exact", "add-deltas"')
    expect(section.locator("tr", has_text="The mechanism to account for")).to_contain_text("object")


def test_a_link_into_the_reference_leads_there_and_opens_it(visit: Visit) -> None:
    visit.page.goto(f"{visit.url}/reference#compare")
    expect(visit.page.get_by_role("heading", name="What other accountings need")).to_be_in_viewport()
    expect(visit.page.locator("#compare > details")).to_have_attribute("open", "")

    visit.page.locator("#contents").get_by_role("link", name="All budgets").click()
    expect(visit.page.get_by_role("heading", name="All budgets")).to_be_in_viewport()
    expect(visit.page.locator("#listBudgets > details")).to_have_attribute("open", "")
