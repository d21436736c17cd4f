"""One way to make a release: a request enters its endpoint's file once, and the use case calls nothing back in it."""

import json
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import httpx
import pyarrow as pa
import pytest

from app import releases
from tests.app.budgets.test_budgets import Bank
from tests.app.client import CASE_STUDY
from tests.gsh.histogram.uploads import as_stream

pytestmark = pytest.mark.slow

FOLDER = Path(releases.__file__).parent
MECHANISM = {"mechanism": CASE_STUDY}
GROUPS = MECHANISM | {"budget": "web", "groups": {"keys": ["a", "b"], "counts": [61000, 70000]}}
COLUMNS = {"budget": "web", "count_column": "users", "key_columns": ["url"]}
FORM = {
    "request": (None, json.dumps(MECHANISM | COLUMNS)),
    "table": ("t", as_stream(pa.table({"url": ["b", "a"], "users": [61000, 70000]}))),
}
REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "release": ("/release", {"json": GROUPS}),
    "table": ("/release/table", {"files": FORM}),
    "open_releases": ("/releases", {"json": MECHANISM | {"budget": "web"}}),
    "charges": ("/budgets/web/charges", {"json": MECHANISM}),
}


class Entries:
    """The functions of each file of the room that a function of another file of the service has called."""

    def __init__(self) -> None:
        self.of: dict[str, list[str]] = defaultdict(list)
        self._seen: dict[int, FrameType] = {}  # a coroutine that goes on is called again

    def note(self, frame: FrameType, event: str, _value: object) -> None:
        file, name = Path(frame.f_code.co_filename), frame.f_code.co_name
        if event != "call" or file.parent != FOLDER or name.startswith("<") or id(frame) in self._seen:
            return
        self._seen[id(frame)] = frame
        caller = frame.f_back
        while caller is not None and FOLDER.parent not in Path(caller.f_code.co_filename).parents:
            caller = caller.f_back
        if caller is None or caller.f_code.co_filename != str(file):
            self.of[file.stem].append(name)

    @contextmanager
    def noted(self) -> Iterator[None]:
        """In this thread, and in all that begin meanwhile."""
        threading.setprofile(self.note)
        sys.setprofile(self.note)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]
            self._seen.clear()


def post(bank: Bank, path: str, **body: Any) -> httpx.Response:
    return bank.request("POST", path, headers={"idempotency-key": "first"}, **body)


@pytest.mark.parametrize("is_replayed", [False, True])
@pytest.mark.parametrize("endpoint", REQUESTS)
def test_a_request_enters_its_endpoint_and_the_use_case_once(tmp_path: Path, endpoint: str, is_replayed: bool) -> None:
    path, body = REQUESTS[endpoint]
    place, entries = str(tmp_path / "ledger.sqlite3"), Entries()
    earlier = Bank(place)
    if is_replayed:
        assert post(earlier, path, **body).is_success
    bank = Bank(place)

    with entries.noted():
        answer = post(bank, path, **body)

    assert answer.is_success, answer.text
    assert ("idempotency-replayed" in answer.headers) is is_replayed
    assert len(entries.of[endpoint]) == 1
    # The reader of a form asks before it reads the table.
    assert entries.of["making"] == (["make", "check"] if endpoint == "table" else ["make"])
    asked_early = ["payable"] if endpoint == "table" else []
    assert [name for name in entries.of["payments"] if name in dir(bank.app.state.releases.payments)] == [
        *asked_early,
        "exactly_once",
    ]
    for each in (earlier, bank):
        each.app.state.services.ledger_pool.close()
        each.app.state.services.close_pools()
