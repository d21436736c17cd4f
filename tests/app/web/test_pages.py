"""The pages: they load from the service alone, by relative URLs, and their headers enforce it."""

import re
from pathlib import Path
from urllib.parse import urljoin

import httpx
import pytest

import app.web
from app.web import guide, pages
from tests.app.client import Client, problem_errors

PAGES_IN_HEADER = ("/", "/ledger", "/release-table", "/verify", "/what-epsilon-means", "/docs")
IN_HEADER = (*PAGES_IN_HEADER, *(["/guide/"] if guide.is_built() else []))
PAGES = (*PAGES_IN_HEADER, "/problems", "/problems/busy")
WEB = Path(app.web.__path__[0])
ROOT = WEB.parents[1]
FILES = sorted(path for path in WEB.rglob("*") if path.suffix in {".css", ".html", ".js", ".svg"})
LINKS = re.compile(r"""(?:src|href|data-then)=["']([^"'#]+)["']""")
LINK_IN_HEADER = re.compile(r'<a (?:class="brand" )?href="([^"]+)"( aria-current="page")?>')
IMPORTS = re.compile(r"""(?:from |import\()["'](\.[^"']+)["']""")


def visited(client: Client, path: str, **headers: str) -> httpx.Response:
    """What a browser gets."""
    return client.request("GET", path, headers={"accept": "text/html,*/*;q=0.8"} | headers)


def file_id(path: Path) -> str:
    return path.relative_to(WEB).as_posix()


@pytest.mark.parametrize("page", PAGES)
def test_links_of_a_page_are_relative_and_lead_to_files(client: Client, page: str) -> None:
    answer = visited(client, page)

    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    links = LINKS.findall(answer.text)
    assert any(link.endswith(".js") for link in links)
    assert any(link.endswith(".css") for link in links)
    for link in links:
        assert not link.startswith(("/", "http"))
        assert client.get(urljoin(page, link)).status_code == 200, link


@pytest.mark.parametrize("path", [path for path in FILES if path.suffix == ".js"], ids=file_id)
def test_imports_of_a_module_lead_to_files(client: Client, path: Path) -> None:
    for name in IMPORTS.findall(path.read_text()):
        imported = client.get(urljoin(f"/web/{file_id(path)}", name))
        assert imported.headers.get("content-type") == "text/javascript; charset=utf-8", name


@pytest.mark.parametrize("page", PAGES)
def test_the_header_has_the_same_links_on_every_page_and_marks_the_current_one(client: Client, page: str) -> None:
    (header,) = re.findall("<header.*?</header>", visited(client, page).text, re.DOTALL)
    links = [(urljoin(page, path), mark) for path, mark in LINK_IN_HEADER.findall(header)]

    assert tuple(path for path, _ in links) == IN_HEADER
    assert [path for path, mark in links if mark] == [path for path in IN_HEADER if path == page]


@pytest.mark.parametrize("page", PAGES)
def test_the_skip_link_leads_into_the_page(client: Client, page: str) -> None:
    text = visited(client, page).text
    (target,) = re.findall(r'<a class="skip" href="#([\w-]+)">', text)

    assert len(re.findall(rf'id="{target}"[^>]* tabindex="-1"', text)) == 1


def test_every_colour_is_written_once() -> None:
    """In tokens.css, in a light and a dark form. Other style sheets use its names."""
    tokens = (WEB / "shared" / "tokens.css").read_text()
    names = re.findall(r"^  (--[\w-]+):", tokens, re.MULTILINE)
    others = [path for path in FILES if path.suffix == ".css" and path.name != "tokens.css"]

    assert len(names) == len(set(names)) > 20
    assert {file_id(path) for path in others if re.search(r"#[0-9a-f]{3,8}\b(?!-)|rgb\(", path.read_text())} == set()


@pytest.mark.parametrize("path", FILES, ids=file_id)
def test_no_file_names_another_host(path: Path) -> None:
    """Neither in links nor in scripts. An XML namespace is not an address."""
    assert re.findall(r"(?:https?:)?//[\w-]+\.\w+", path.read_text().replace("http://www.w3.org/2000/svg", "")) == []


@pytest.mark.parametrize("path", PAGES)
def test_nothing_is_inline(client: Client, path: str) -> None:
    """The policy forbids inline scripts and styles."""
    page = visited(client, path).text

    assert not re.search(r"<script(?![^>]*\bsrc=)", page)
    assert not re.search(r"<style|\sstyle=|\son\w+=", page)


@pytest.mark.parametrize(
    "path", [*PAGES, "/web/explorer/explorer.js", "/plotly/plotly.min.js", "/swagger/swagger-ui.css"]
)
def test_every_page_has_the_security_headers(client: Client, path: str) -> None:
    headers = visited(client, path).headers
    policy = dict(rule.split(" ", 1) for rule in headers["content-security-policy"].split("; "))

    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["script-src"] == "'self'"
    assert policy.get("connect-src") == (None if path.startswith("/problems") else "'self'")  # those ask for nothing
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-frame-options"] == "DENY"
    assert headers["cross-origin-opener-policy"] == "same-origin"


@pytest.mark.parametrize("path", ["/", "/ledger", "/problems", "/plotly/plotly.min.js"])
def test_pages_and_large_files_travel_compressed_and_only_when_changed(client: Client, path: str) -> None:
    first = visited(client, path, **{"accept-encoding": "gzip"})
    second = visited(client, path, **{"if-none-match": first.headers["etag"]})
    plain = visited(client, path, **{"accept-encoding": "identity"})

    assert first.headers["content-encoding"] == "gzip"
    assert int(first.headers["content-length"]) < len(plain.content) / 2
    assert first.content == plain.content
    assert (second.status_code, second.content) == (304, b"")


@pytest.mark.parametrize(
    "path",
    ["/web/", "/web/nothing.js", "/web/../__init__.py", "/web/explorer/page.html", "/web/pages.py", "/plotly/datasets"],
)
def test_nothing_else_is_served(client: Client, path: str) -> None:
    problem_errors(client.get(path), 404, "not-found")


def test_files_can_only_be_read(client: Client) -> None:
    problem_errors(client.post("/web/explorer/explorer.js", {}), 405, "method-not-allowed")
    assert client.request("HEAD", "/web/explorer/explorer.js").status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/healthz", 200),
        ("GET", "/openapi.json", 200),
        ("GET", "/nothing", 404),
        ("GET", "/web/nothing.js", 404),
        ("GET", "/calibrate", 405),
        ("POST", "/calibrate", 415),
    ],
)
def test_answers_that_are_no_pages_cannot_run_as_pages(client: Client, method: str, path: str, status: int) -> None:
    """A browser must not run or frame an answer or an error, or guess its type."""
    response = client.request(method, path)

    assert response.status_code == status
    assert response.headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
    assert response.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", ["/nothing", "/web/nothing.js", "/releases/a/b/c/nothing"])
def test_a_browser_gets_a_page_for_what_does_not_exist_and_a_program_a_problem(client: Client, path: str) -> None:
    answer = visited(client, path)
    links = LINKS.findall(answer.text)

    assert answer.status_code == 404
    assert "There is no such page" in answer.text
    assert {client.get(urljoin(path, link)).status_code for link in links} == {200}
    problem_errors(client.get(path), 404, "not-found")


@pytest.mark.parametrize("is_built", [True, False])
def test_a_page_links_into_the_guide_only_if_there_is_one(monkeypatch: pytest.MonkeyPatch, is_built: bool) -> None:
    """The field for C_u says itself how to choose it, so nothing is lost without the guide."""
    monkeypatch.setattr(guide, "is_built", lambda: is_built)
    links = re.findall(r'href="guide/([\w-]+)\.html"', pages.body_of(pages.PAGES[0]))

    assert links == (["choosing-bounds"] if is_built else [])
    assert all((ROOT / "docs" / f"{link}.md").exists() for link in links)


def test_a_page_has_one_policy(client: Client) -> None:
    (policy,) = client.get("/").headers.get_list("content-security-policy")
    assert "script-src 'self'" in policy
