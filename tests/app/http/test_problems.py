"""The page of each problem type, and the place in each error."""

import inspect
import re
from html import escape
from html.parser import HTMLParser
from typing import Any

import pytest
from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException

from app.http.auth import PUBLIC
from app.http.problems import handlers, kinds
from app.http.problems.kinds import BY_STATUS, CONNECTION_KINDS, KINDS
from app.ledger.errors import BudgetExceeded
from app.main import create_app
from app.settings import Settings
from tests.app.client import CASE_STUDY, Client, problem_errors

NAMES = [kind.name for kind in KINDS]
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


class Page(HTMLParser):
    """The links, tags and text of a page's main part."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.tags: list[str] = []
        self.text = ""
        self.feed(html[html.index("<main") : html.index("</main>")])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name == "href" and value is not None]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_every_kind_in_the_code_is_listed() -> None:
    """A kind that is written but not in the list would have no page."""
    written = [value for value in vars(kinds).values() if isinstance(value, kinds.Kind)]

    assert sorted(written) == sorted(KINDS)
    assert len(set(NAMES)) == len(NAMES)
    assert {*BY_STATUS.values(), *CONNECTION_KINDS.values(), *handlers._TABLE.values()} <= set(KINDS)


@pytest.mark.parametrize("name", NAMES)
def test_every_problem_type_has_an_explanation_and_advice(client: Client, name: str) -> None:
    (kind,) = (each for each in KINDS if each.name == name)

    response = client.get(kind.type)

    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    assert response.headers["vary"] == "Accept"
    answer = response.json()
    assert (answer["type"], answer["title"], answer["status"]) == (kind.type, kind.title, kind.status)
    assert answer["what_happened"].endswith(".")
    assert answer["what_to_do"].endswith(".")


@pytest.mark.parametrize("name", NAMES)
def test_a_browser_gets_a_page(client: Client, name: str) -> None:
    (kind,) = (each for each in KINDS if each.name == name)

    response = client.request("GET", f"/problems/{name}", headers={"accept": BROWSER})

    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert f"<title>{escape(kind.title)} · " in response.text
    page = Page(response.text)
    assert kind.title in page.text
    assert kind.what_happened in page.text
    assert kind.what_to_do in page.text
    assert page.tags.count("h1") == page.tags.count("main") == 1
    assert "script" not in page.tags


@pytest.mark.parametrize("path", ["/problems", "/problems/busy"])
def test_a_cache_keeps_the_page_and_the_json_apart(client: Client, path: str) -> None:
    """Also when the page has not changed."""
    page = client.request("GET", path, headers={"accept": BROWSER})
    known = {"if-none-match": page.headers["etag"]}
    again = client.request("GET", path, headers={"accept": BROWSER} | known)
    program = client.request("GET", path, headers={"accept": "application/json"} | known)

    assert (again.status_code, again.content) == (304, b"")
    assert (program.status_code, program.headers["content-type"]) == (200, "application/json")
    for response in (page, again, program):
        assert "Accept" in response.headers["vary"].split(", ")


@pytest.mark.parametrize("path", ["/problems", "/problems/busy"])
def test_the_pages_have_the_security_headers_of_all_pages(client: Client, path: str) -> None:
    others = client.get("/").headers

    headers = client.request("GET", path, headers={"accept": BROWSER}).headers

    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert "sha256" not in policy
    for name in ("x-content-type-options", "x-frame-options", "referrer-policy", "cross-origin-opener-policy"):
        assert headers[name] == others[name]


def test_the_list_links_to_every_page_and_every_page_back_with_relative_links(client: Client) -> None:
    """They work behind a path prefix."""
    listed = Page(client.request("GET", "/problems", headers={"accept": BROWSER}).text)
    one = Page(client.request("GET", "/problems/busy", headers={"accept": BROWSER}).text)

    assert listed.links == [f"problems/{name}" for name in NAMES]
    assert one.links == ["../problems"]
    assert [each["type"] for each in client.get("/problems").json()["problems"]] == [kind.type for kind in KINDS]


@pytest.mark.parametrize(
    ("accept", "is_html"),
    [
        (BROWSER, True),
        ("text/html", True),
        ("application/json;q=0.5, text/html", True),
        ("*/*", False),
        ("", False),
        ("application/json", False),
        ("application/json, text/html", False),
        ("text/html;q=0.4, application/json;q=0.5", False),
        ("text/html;q=0", False),
        ("text/html;q=x", False),
        ("application/problem+json", False),
    ],
)
def test_a_client_that_prefers_html_gets_html(client: Client, accept: str, is_html: bool) -> None:
    response = client.request("GET", "/problems/busy", headers={"accept": accept})

    assert response.headers["content-type"].startswith("text/html" if is_html else "application/json")


@pytest.mark.parametrize("name", ["nothing", "Busy", "busy.html", "%3Cscript%3E"])
@pytest.mark.parametrize("accept", ["*/*", BROWSER])
def test_an_unknown_problem_is_404(client: Client, name: str, accept: str) -> None:
    """As every other address that does not exist: a page for a browser, and a problem document for a program."""
    response = client.request("GET", f"/problems/{name}", headers={"accept": accept})

    if accept == BROWSER:
        assert response.status_code == 404
        assert "There is no such page" in response.text
    else:
        problem_errors(response, 404, "not-found")
    assert "<script>" not in response.text


def test_a_status_without_a_kind_has_the_type_about_blank() -> None:
    """RFC 9457, section 4.2.1: about:blank, and the title is the phrase of the status."""
    app: FastAPI = create_app(Settings())

    @app.get("/teapot", dependencies=[PUBLIC])
    async def teapot(_request: Request) -> None:
        raise HTTPException(418)

    problem = Client(app).get("/teapot").json()
    assert (problem["type"], problem["title"], problem["status"]) == ("about:blank", "I'm a Teapot", 418)


@pytest.mark.parametrize(
    ("path", "query", "place"),
    [
        ("/healthz", "unkn0wn=1", "parameter unkn0wn"),
        ("/version", "unkn0wn", "parameter unkn0wn"),
        ("/budgets", "c_u=1", "parameter c_u"),
        ("/budgets/web/charges", "limit=1&Limit=s3ntinel", "parameter Limit"),
        ("/problems", "s3ntinel%40b.org=1", "parameter "),
        ("/problems/busy", f"{'s3ntinel' * 9}=1", "parameter "),
        ("/metrics", "=s3ntinel", "parameter "),
    ],
)
def test_an_unknown_parameter_is_refused_and_its_value_not_echoed(
    client: Client, path: str, query: str, place: str
) -> None:
    """It is named only if its name is a short identifier, because a name can contain anything."""
    response = client.get(f"{path}?{query}")

    assert set(problem_errors(response, 422, "invalid-request")) == {place}
    assert "s3ntinel" not in response.text


def test_an_unknown_parameter_of_a_post_is_refused_before_its_body_is_read(client: Client) -> None:
    body: dict[str, Any] = {"mechanism": CASE_STUDY, "epsilon": 1}

    assert client.post("/account/exact", body).status_code == 200
    response = client.post("/account/exact?theorem=true", body)
    assert problem_errors(response, 422, "invalid-request") == {
        "parameter theorem": "is not a parameter of this operation"
    }


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_pages_keep_their_state_in_the_query(client: Client, path: str) -> None:
    assert client.get(f"{path}?c_u=3&anything=1").status_code == 200


def test_a_name_inside_of_the_groups_is_not_repeated(client: Client) -> None:
    """It may be a group key, posted in the wrong place."""
    groups = {"keys": ["a"], "counts": [3], "alice": [1]}

    response = client.post("/release", {"mechanism": CASE_STUDY, "groups": groups})

    assert problem_errors(response, 422, "invalid-request") == {
        "/groups": "has a field that is not part of this object"
    }
    assert not re.search("alice", response.text)


def test_only_the_beginning_of_accept_is_read(client: Client) -> None:
    """A long header would stall the event loop."""
    response = client.request("GET", "/problems", headers={"accept": "," * 1000 + "text/html"})

    assert response.headers["content-type"] == "application/json"


def test_only_the_error_that_takes_a_search_is_answered_in_a_thread(client: Client) -> None:
    """Starlette calls plain functions in a thread."""
    handlers = client.app.exception_handlers

    assert [kind for kind in handlers if not inspect.iscoroutinefunction(handlers[kind])] == [BudgetExceeded]
