"""The documentation site: whole, reachable, and without a request to another host."""

import json
import os
import re
import socket
import subprocess
import threading
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin

import pytest
import uvicorn
from playwright.sync_api import Page, expect
from starlette.applications import Starlette

from app.web.guide import mounted
from tests.browser.visits import Visit

ROOT = Path(__file__).parents[2]
HOME = "index.html"
OTHER = re.compile(r"(?:https?:)?//")


class Read(HTMLParser):
    """A page: where its links lead, its anchors, and what it loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = {""}
        self.loads: list[str] = []
        self.inline: list[str] = []
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.anchors.add(given.get("id") or "")
        if tag == "a" and given.get("href"):
            self.links.append(given["href"] or "")
        elif loaded := given.get("src") or (given.get("href") if tag == "link" else None):
            self.loads.append(loaded)
        elif tag == "style" or (tag == "script" and given.get("type") != "application/json"):
            self.inline.append(tag)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built as `make docs` builds it, which a link that leads nowhere stops."""
    folder = tmp_path_factory.mktemp("guide")
    builder = ROOT / "build" / "guide-env" / "bin" / "mkdocs"
    config = ROOT / "docs" / "guide" / "mkdocs.yml"
    command = [builder, "build", "--quiet", "--strict", "--config-file", config, "--site-dir", folder]
    done = subprocess.run(
        command, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="session")
def pages(site: Path) -> Mapping[str, Read]:
    return {path.relative_to(site).as_posix(): Read(path) for path in site.rglob("*.html")}


def leads_to(page: str, link: str) -> tuple[str, str]:
    """A page of the site, and the anchor in it."""
    path, anchor = urldefrag(urljoin(f"/{page}", link))
    return path.removeprefix("/"), unquote(anchor)


def test_every_document_is_a_page_within_two_clicks(pages: Mapping[str, Read]) -> None:
    reached = {HOME}
    for _ in range(2):
        reached |= {leads_to(page, link)[0] for page in reached & pages.keys() for link in pages[page].links}
    documents = [each.relative_to(ROOT / "docs").with_suffix(".html") for each in (ROOT / "docs").rglob("*.md")]

    assert {each.as_posix() for each in documents} <= pages.keys()
    assert pages.keys() <= reached


def test_every_link_leads_to_a_file_and_an_anchor(site: Path, pages: Mapping[str, Read]) -> None:
    broken = []
    for page, read in pages.items():
        for link in [*read.links, *read.loads]:
            path, anchor = leads_to(page, link)
            if OTHER.match(link) or link.startswith("data:"):
                continue
            if not (site / path).is_file() or (path in pages and anchor not in pages[path].anchors):
                broken.append((page, link))

    assert broken == []


def test_pages_load_from_the_service_alone_and_nothing_is_inline(pages: Mapping[str, Read]) -> None:
    assert {load for read in pages.values() for load in read.loads if OTHER.match(load)} == set()
    assert {page for page, read in pages.items() if read.inline} == set()


def test_the_first_page_has_four_doors(site: Path) -> None:
    doors = re.findall(r"<li><strong>(.*?)</strong>", (site / HOME).read_text())

    assert [re.sub("<.*?>", "", door) for door in doors] == [
        "Publish events",
        "Call the service",
        "Sign a release",
        "Check the mathematics",
    ]


def test_the_search_finds_a_heading(site: Path) -> None:
    """Its index has each section, with the address of its anchor."""
    entries = json.loads((site / "search" / "search_index.json").read_text())["docs"]

    assert [each["location"] for each in entries if each["title"] == "Questions before signing"] == [
        "budgets.html#questions-before-signing"
    ]


@pytest.fixture(scope="module")
def guide(site: Path) -> Iterator[str]:
    """The site, served as the service does it, with its policy."""
    server = uvicorn.Server(uvicorn.Config(Starlette(routes=[mounted(site)]), port=0, log_level="error"))
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    server.should_exit = True
    thread.join()


def test_a_reader_searches_and_arrives_at_a_section(window_tab: Page, guide: str) -> None:
    """Under the policy of the service, which forbids every other host and every inline script."""
    page, visit = window_tab, Visit(window_tab, guide)
    page.goto(f"{guide}/guide/")
    box = page.get_by_role("textbox", name="Search")
    box.fill("questions before signing")
    box.press("End")  # the search waits for a key
    page.locator(".md-search-result__item a").first.click()
    expect(page).to_have_url(re.compile(r"/guide/budgets\.html"))

    page.goto(f"{guide}/guide/math/closed-form.html")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    visit.check()
    visit.leave()
