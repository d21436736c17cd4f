"""docs/client.md is true: every block is run against a service, and its output compared."""

import contextlib
import io
import re

import gsh
from gsh import client
from gsh.client import errors
from tests.app.process import ROOT, Service
from tests.gsh.library.test_documentation import run

PAGE = (ROOT / "docs" / "client.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
URL = "http://127.0.0.1:8000"


def test_the_page_shows_what_happens(running: Service) -> None:
    """In the order of the page: the program for asyncio comes last."""
    source = "".join(block for language, block in BLOCKS if language == "pycon").replace(URL, running.url)
    source += ">>> service.close()\n"
    attempted, differences = run(source)
    ((program, output),) = re.findall(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(program.replace(URL, running.url), {"__name__": "program"})

    assert differences == ""
    assert attempted == source.count(">>> ") > 30
    assert printed.getvalue() == output
    assert {language for language, _ in BLOCKS} == {"pycon", "python", "text"}


def test_the_page_shows_the_tree_of_errors() -> None:
    (tree,) = (block for language, block in BLOCKS if language == "text" and block.startswith("ServiceError"))

    assert tree in (errors.__doc__ or "") + "\n"


def test_the_page_names_every_operation() -> None:
    service = gsh.Client(URL)
    for kind in map(type, (service, service.budgets, service.releases, service.approvals, service.access_keys)):
        public = {name for name in dir(kind) if not name.startswith("_")}
        for name in public - {"run", "pages"}:
            assert re.search(rf"[.`]{name}\b", PAGE), name


def test_the_page_shows_the_defaults_of_retries() -> None:
    usual = client.Retries()

    assert f"between 0 and {usual.first} s, then {2 * usual.first} s" in PAGE
    assert f"up to {usual.longest:g} s" in PAGE
    assert f"again until {usual.seconds:g} s after the first failure" in PAGE
    assert usual.most is None
