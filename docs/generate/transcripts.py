"""The transcripts of README.md and docs/tour.md: commands, and the answers of a service to them.

A transcript is a curl command in a ``console`` block and its answer in the ``json`` block that follows. The command may
send what another one gets: ``curl … | curl … -d @-``. In an answer, ``…`` stands for fields that are not shown. Numbers
drawn at random, names, hashes and times are not compared.
"""

import json
import math
import re
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from docs.generate import ROOT
from tests.app.process import PATIENCE

__all__ = ["README", "TOUR", "Transcript", "answers", "matches", "transcripts", "with_answers"]

README = ROOT / "README.md"
TOUR = ROOT / "docs" / "tour.md"

_TRANSCRIPT = re.compile(r"```console\n(curl -s (?:(?!```).)*?)\n```\n```json\n(.*?)\n```", re.DOTALL)
_PATH = re.compile(r"curl -s http://127\.0\.0\.1:8000(/\S+)")
_NOT_COMPARED = {"release_id", "released_at", "head", "at", "request_id", "seed", "sha256", "size", "answer_sha256"}
_DESCRIBES_DATA = {"expected", "share", "standard_deviation", "error", "probability"}
"""Numbers of /utility. They are not certified, and their last digits depend on the machine."""
_OMITTED = "…"
# The true counts of the first groups in every transcript. Noise of 25 000 is over eleven standard deviations.
_TRUE_COUNTS = (61004, 48211, 0)
_MOST_NOISE = 25_000


class Transcript(NamedTuple):
    command: str
    output: str

    @property
    def text(self) -> str:
        return f"```console\n{self.command}\n```\n```json\n{self.output}\n```"

    @property
    def source(self) -> str | None:
        """The path of the command that gives the body."""
        return _PATH.findall(self.command)[0] if " -d @-" in self.command else None

    @property
    def path(self) -> str:
        last: str = _PATH.findall(self.command)[-1]
        return last

    @property
    def body(self) -> str | None:
        """What the command itself sends."""
        found = re.search(r" -d '(.*?)'(?: \||$)", self.command, re.DOTALL)
        return None if found is None else found[1]

    @property
    def has_body(self) -> bool:
        return self.body is not None or self.source is not None

    @property
    def method(self) -> str:
        if " -X PUT " in self.command:
            return "PUT"
        return "POST" if self.has_body else "GET"

    @property
    def headers(self) -> dict[str, str]:
        return dict(re.findall(r"-H '([\w-]+): (.*?)'", self.command))

    @property
    def shown(self) -> Any:
        return json.loads(self.output.replace(_OMITTED, f'"{_OMITTED}": null'))


def transcripts(document: Path) -> list[Transcript]:
    return [Transcript(*found) for found in _TRANSCRIPT.findall(document.read_text())]


def answers(url: str, asked: list[Transcript]) -> list[Any]:
    """A service's answer to each command, in the order of the document."""
    with httpx.Client(base_url=url, timeout=PATIENCE) as client:
        return [_answer(client, each) for each in asked]


def _answer(client: httpx.Client, asked: Transcript) -> Any:
    body = asked.body if asked.source is None else client.get(asked.source).content
    return client.request(asked.method, asked.path, content=body, headers=asked.headers).json()


def matches(shown: Any, said: Any) -> bool:
    """Whether an answer is the one shown, except for random numbers."""
    if isinstance(shown, dict):
        names = shown.keys() - {_OMITTED}
        is_complete = _OMITTED in shown or names == said.keys()
        return is_complete and names <= said.keys() and all(_field_matches(each, shown, said) for each in names)
    if isinstance(shown, list):
        return len(shown) == len(said) and all(map(matches, shown, said))
    return bool(shown == said)


def _field_matches(name: str, shown: dict[str, Any], said: dict[str, Any]) -> bool:
    if name == "counts" and isinstance(said[name], list):  # the noisy counts of a release
        pairs = [pair for counts in (shown[name], said[name]) for pair in zip(counts, _TRUE_COUNTS, strict=False)]
        return len(shown[name]) == len(said[name]) and all(abs(noisy - true) < _MOST_NOISE for noisy, true in pairs)
    if name in _DESCRIBES_DATA:
        return math.isclose(shown[name], said[name], rel_tol=1e-9)
    return name in _NOT_COMPARED or matches(shown[name], said[name])


def with_answers(document: Path, url: str) -> str:
    """The document with the answers that have changed."""
    asked, text = transcripts(document), document.read_text()
    for each, said in zip(asked, answers(url, asked), strict=True):
        if not matches(each.shown, said):
            text = text.replace(each.text, each._replace(output=json.dumps(said, indent=4)).text)
    return text
