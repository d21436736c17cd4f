"""The pages: everything they need is here, by relative URLs, and the headers let nothing else in."""

import re
from pathlib import Path
from urllib.parse import urljoin

import pytest

import app.web
from tests.api.client import Client, problem_errors

PAGES = ("/", "/reference", "/docs")
FILES = sorted((Path(app.web.__path__[0]) / "static").iterdir())
LINKS = re.compile(r"""(?:src|href|data-then)=["']([^"'#]+)["']""")
IMPORTS = re.compile(r"""from ["']\./([^"']+)["']""")


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_links_to_is_there_and_relative(client: Client, page: str) -> None:
    answer = client.get(page)

    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    links = LINKS.findall(answer.text)
    assert any(link.endswith(".js") for link in links)
    assert any(link.endswith(".css") for link in links)
    for link in links:
        assert not link.startswith(("/", "http"))
        assert client.get(urljoin(page, link)).status_code == 200, link


@pytest.mark.parametrize("path", [path for path in FILES if path.suffix == ".js"], ids=lambda path: path.name)
def test_what_a_module_imports_is_there(client: Client, path: Path) -> None:
    for name in IMPORTS.findall(path.read_text()):
        assert client.get(f"/web/{name}").headers["content-type"] == "text/javascript; charset=utf-8"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_file_names_another_host(path: Path) -> None:
    """Not in links, not in scripts; names of XML are no addresses."""
    assert re.findall(r"(?:https?:)?//[\w-]+\.\w+", path.read_text().replace("http://www.w3.org/2000/svg", "")) == []


@pytest.mark.parametrize("path", [path for path in FILES if path.suffix == ".html"], ids=lambda path: path.name)
def test_nothing_is_inline(path: Path) -> None:
    """The policy would refuse it."""
    page = path.read_text()

    assert not re.search(r"<script(?![^>]*\bsrc=)", page)
    assert not re.search(r"<style|\sstyle=|\son\w+=", page)


@pytest.mark.parametrize("path", [*PAGES, "/web/main.js", "/plotly/plotly.min.js", "/swagger/swagger-ui.css"])
def test_every_page_has_the_security_headers(client: Client, path: str) -> None:
    headers = client.get(path).headers
    policy = dict(rule.split(" ", 1) for rule in headers["content-security-policy"].split("; "))

    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["script-src"] == policy["connect-src"] == "'self'"
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-frame-options"] == "DENY"
    assert headers["cross-origin-opener-policy"] == "same-origin"


def test_large_files_travel_compressed_and_only_when_changed(client: Client) -> None:
    first = client.request("GET", "/plotly/plotly.min.js", headers={"accept-encoding": "gzip"})
    second = client.request("GET", "/plotly/plotly.min.js", headers={"if-none-match": first.headers["etag"]})
    plain = client.request("GET", "/plotly/plotly.min.js", headers={"accept-encoding": "identity"})

    assert first.headers["content-encoding"] == "gzip"
    assert int(first.headers["content-length"]) < len(plain.content) / 3
    assert first.content == plain.content
    assert (second.status_code, second.content) == (304, b"")


@pytest.mark.parametrize(
    "path", ["/web/", "/web/nothing.js", "/web/../__init__.py", "/web/index.html", "/plotly/datasets"]
)
def test_nothing_else_is_served(client: Client, path: str) -> None:
    problem_errors(client.get(path), 404, "not-found")


def test_files_are_for_reading(client: Client) -> None:
    problem_errors(client.post("/web/main.js", {}), 405, "method-not-allowed")
    assert client.request("HEAD", "/web/main.js").status_code == 200


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
def test_what_is_no_page_cannot_be_made_one(client: Client, method: str, path: str, status: int) -> None:
    """Answers and errors are not to be run, framed or guessed the type of."""
    response = client.request(method, path)

    assert response.status_code == status
    assert response.headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
    assert response.headers["x-content-type-options"] == "nosniff"


def test_a_page_has_one_policy(client: Client) -> None:
    (policy,) = client.get("/").headers.get_list("content-security-policy")
    assert "script-src 'self'" in policy
