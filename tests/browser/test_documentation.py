"""Documentation without another host: Swagger UI executes every kind of operation."""

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
    if not path.startswith("/access-keys")  # with an access key, the service would let no other test in
}


def features(name: str) -> set[object]:
    """What Swagger UI makes a request from, and what it shows of the answer."""
    method, _, operation = OPERATIONS[name]
    asked = [operation.get("requestBody", {}), operation["responses"].get("200", {})]
    kinds = {(part, kind) for part, each in enumerate(asked) for kind in each.get("content", {})}
    return {method, *kinds, *((each["in"], each["name"]) for each in operation.get("parameters", []))}


def cover() -> list[str]:
    """Operations that have every feature between them: Swagger UI takes seconds for each.

    The API tests send the examples of all operations.
    """
    chosen: list[str] = []
    missing = set().union(*map(features, OPERATIONS))
    while missing:
        chosen.append(max(OPERATIONS, key=lambda name: len(features(name) & missing)))
        missing -= features(chosen[-1])
    return chosen


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
    visit.page.locator(".opblock").first.wait_for()
    yield visit
    visit.page.close()


@pytest.mark.parametrize("name", cover())
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


def test_a_missing_file_is_said_before_anything_is_sent(swagger: Visit) -> None:
    """Swagger UI alone sends nothing then, and says nothing."""
    block = swagger.page.locator(".opblock-post:has([data-path='/release/table'])")
    block.locator(".opblock-summary-control").click()
    block.get_by_role("button", name="Execute").click()
    expect(block.get_by_role("alert")).to_have_text("Not sent: choose a file for table first.")

    block.locator("input[type=file]").set_input_files(an_arrow_table())
    expect(block.get_by_role("alert")).to_have_count(0)
    block.locator(".opblock-summary-control").click()


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
        ("/budgets/web?limit=1", "application/json", {}, "budgets-web.json"),
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


def test_swagger_follows_the_theme(swagger: Visit) -> None:
    page = swagger.page
    page.emulate_media(color_scheme="light")
    ink = "getComputedStyle(document.querySelector('.opblock-summary-description')).color"
    light = page.evaluate(ink)
    page.emulate_media(color_scheme="dark")
    page.wait_for_function("light => " + ink + " !== light", arg=light)

    page.locator("#theme").click()

    expect(page.locator("#theme")).to_have_text("Theme: light")
    page.wait_for_function("light => " + ink + " === light", arg=light)
