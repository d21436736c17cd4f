"""What a server says is shown, and never obeyed: the command prints no control character of it, anywhere."""

import json
import os
import pty
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from gsh.cli.output import visible_json
from gsh.errors import visible
from tests.app.process import PATIENCE
from tests.gsh.cli.running import PROGRAM, environment, run

EVIL = "\x1b]0;owned\x07\x9b2J\u202e\u2028\r\x08\x7f"
SHOWN = r"\x1b]0;owned\x07\x9b2J\u202e\u2028\r\x08\x7f"
COST = {"releases": 0, "mu_squared": 0.0, "hazard": 0.0, "epsilon": 0.0, "delta": 0.0}
BUDGET = {
    "id": f"web{EVIL}",
    "description": EVIL,
    "privacy_unit": EVIL,
    "period": None,
    "limit": {"epsilon": 1.0, "delta": 1e-6, "mu_squared": None, "hazard": None},
    "spent": COST,
    "used": 0.0,
    "remaining": {"mu_squared": 0.0, "hazard": 0.0, "delta": 0.0},
    "promise": None,
}
RELEASE = {
    "key": EVIL,
    "state": EVIL,
    "budget": EVIL,
    "entry": 1,
    "head": EVIL,
    "at": EVIL,
    "release_id": EVIL,
    "description": EVIL,
    "labels": [EVIL],
    "by": {"id": EVIL, "note": EVIL},
    "mu_squared": 0.0,
    "hazard": 0.0,
    "answer": None,
    "committed": None,
}
PROBLEM = {"type": "/problems/unknown-release", "title": EVIL, "status": 404, "detail": EVIL, "request_id": EVIL}
ANSWERS: dict[str, tuple[int, str, bytes]] = {
    "/budgets": (200, "application/json", json.dumps({"budgets": [BUDGET]}).encode()),
    "/budgets/web": (200, "application/json", json.dumps(BUDGET).encode()),
    "/releases": (200, "application/json", json.dumps({"releases": [RELEASE], "before": None}).encode()),
    "/releases/a": (200, "application/json", json.dumps(RELEASE).encode()),
    "/releases/a/answer": (200, "text/csv", f"url,users\r\n{EVIL},5\r\n".encode()),
    "/releases/none": (404, "application/problem+json", json.dumps(PROBLEM).encode()),
}
COMMANDS = ("budgets", "budgets get web", "releases", "releases get a", "releases get none")


class Evil(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        path = "/releases/a/answer" if self.path.endswith("/answer") else self.path.partition("?")[0]
        status, media_type, body = ANSWERS[path]
        self.send_response(status)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: Any) -> None:
        """Nothing."""


@contextmanager
def serving() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Evil)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving() as found:
        yield found


def is_harmless(text: str) -> bool:
    return all(each.isprintable() or each == "\n" for each in text)


@pytest.mark.parametrize("command", COMMANDS)
def test_no_control_character_of_a_server_is_printed(url: str, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In texts, in JSON, in errors, and in tracebacks."""
    monkeypatch.setenv("GSH_DEBUG", "1")
    plain = run(f"{command} --service {url} --retries 0")
    written = run(f"{command} --service {url} --retries 0 --json")

    assert is_harmless(plain.text + plain.errors + written.text + written.errors)
    assert SHOWN in plain.text + plain.errors
    if written.code == 0:
        assert EVIL in str(list(flattened(written.document)))


def flattened(value: Any) -> Iterator[Any]:
    """All plain values of a document, so that a text stands as it is."""
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from flattened(each)
    elif value == EVIL or str(value).endswith(EVIL):
        yield _Raw(value)


class _Raw(str):
    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def on_terminal(*arguments: str) -> str:
    """What a command shows on a terminal."""
    ours, theirs = pty.openpty()
    environ = environment(NO_COLOR="1", COLUMNS="400", TERM="dumb")
    process = subprocess.Popen([*PROGRAM, *arguments], stdout=theirs, stderr=subprocess.DEVNULL, env=environ)
    os.close(theirs)
    shown = b""
    with suppress(OSError):  # the end of a terminal
        while part := os.read(ours, 1 << 16):
            shown += part
    os.close(ours)
    assert process.wait(PATIENCE) == 0
    return shown.decode()


def test_a_table_on_a_terminal_is_text_that_it_cannot_obey(url: str) -> None:
    """To a file or a pipe it goes as it is."""
    arguments = ("releases", "get", "a", "--service", url, "--format", "csv", "-o", "-")

    assert on_terminal(*arguments).splitlines() == ["url,users", f"{SHOWN},5"]
    assert run(*arguments).output == ANSWERS["/releases/a/answer"][2]


def test_a_terminal_gets_no_escape_of_a_server(url: str) -> None:
    shown = on_terminal("budgets", "get", "web", "--service", url)

    assert not {"\x9b", "\x07", "\x08", "\x7f", "\u202e", "\u2028"} & set(shown)
    assert "\x1b]" not in shown
    assert r"\x1b]0;owned" in shown


def test_ordinary_text_is_left_alone() -> None:
    assert visible("ε = 1, naïve café, 日本, 😀") == "ε = 1, naïve café, 日本, 😀"
    assert visible("a\ud800b") == r"a\ud800b"
    document = {"a": f"ε{EVIL}\U000e0001", "b": [1]}
    text = visible_json(json.dumps(document, indent=2, ensure_ascii=False))
    assert json.loads(text) == document
    assert is_harmless(text)
