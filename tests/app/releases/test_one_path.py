"""One way to make a release: a request enters its endpoint, the use case and the payment once each.

The use case asks a posted request to be read and to be drawn, each step once. Nothing is called back.
"""

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
TABLE = as_stream(pa.table({"url": ["b", "a"], "users": [61000, 70000]}))
GROUPS = MECHANISM | {"budget": "web", "groups": {"keys": ["a", "b"], "counts": [61000, 70000]}}
COLUMNS = MECHANISM | {"budget": "web", "count_column": "users", "key_columns": ["url"]}
DRY = {"dry_run": True}


def form(**request: Any) -> dict[str, Any]:
    return {"files": {"request": (None, json.dumps(COLUMNS | request)), "table": ("t", TABLE)}}


def forms(**request: Any) -> dict[str, Any]:
    columns = {"mechanism": CASE_STUDY, "count_column": "users", "key_columns": ["url"]}
    posted = {"budget": "web", "tables": [{"name": "one", **columns}, {"name": "two", **columns}]} | request
    return {"files": [("request", (None, json.dumps(posted))), ("table", ("two", TABLE)), ("table", ("one", TABLE))]}


TABLES = {
    "budget": "web",
    "tables": [{"name": name, **MECHANISM, "groups": GROUPS["groups"]} for name in ("one", "two")],
}
Posted = tuple[str, str, str, dict[str, Any]]
REQUESTS: dict[str, Posted] = {
    "release": ("release", "groups", "/release", {"json": GROUPS}),
    "table": ("table", "uploaded_table", "/release/table", form()),
    "tables in JSON": ("release", "groups", "/release", {"json": TABLES}),
    "tables": ("table", "uploaded_table", "/release/table", forms()),
    "open": ("engines", "made_elsewhere", "/releases", {"json": MECHANISM | {"budget": "web"}}),
    "charge": ("engines", "made_elsewhere", "/budgets/web/charges", {"json": MECHANISM}),
}
"""The file of the endpoint, the file that reads and draws, the path, and the body."""
DRY_RUNS: dict[str, Posted] = {
    "release": ("release", "groups", "/release", {"json": GROUPS | DRY}),
    "table": ("table", "uploaded_table", "/release/table", form(**DRY)),
    "tables in JSON": ("release", "groups", "/release", {"json": TABLES | DRY}),
    "tables": ("table", "uploaded_table", "/release/table", forms(**DRY)),
}
STEPS = ("ask", "receive", "sent", "meaning", "certificate", "draw")


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


def check_path(place: Path, posted: Posted, earlier: Posted | None, payment: str) -> None:
    """That a request takes one way, if ``earlier`` was posted before under the same name."""
    endpoint, reader, path, body = posted
    ledger, entries = str(place / "ledger.sqlite3"), Entries()
    first = Bank(ledger)
    if earlier is not None:
        assert post(first, earlier[2], **earlier[3]).is_success
    bank = Bank(ledger)

    with entries.noted():
        answer = post(bank, path, **body)

    assert answer.is_success, answer.text
    assert ("idempotency-replayed" in answer.headers) is (earlier is not None and payment == "exactly_once")
    assert len(entries.of[endpoint]) == 1
    assert entries.of["making"] == ["make"]
    assert [name for name in entries.of["payments"] if name in dir(bank.app.state.releases.payments)] == [payment]
    steps = [name for name in entries.of[reader] if name in STEPS]
    assert steps[:2] == ["ask", "receive"]
    assert len(steps) == len(set(steps))
    for each in (first, bank):
        each.app.state.services.ledger_pool.close()
        each.app.state.services.close_pools()


@pytest.mark.parametrize("is_replayed", [False, True])
@pytest.mark.parametrize("request_name", REQUESTS)
def test_a_request_enters_its_endpoint_the_use_case_and_the_payment_once(
    tmp_path: Path, request_name: str, is_replayed: bool
) -> None:
    posted = REQUESTS[request_name]

    check_path(tmp_path, posted, posted if is_replayed else None, "exactly_once")


@pytest.mark.parametrize("is_used", [False, True])
@pytest.mark.parametrize("request_name", DRY_RUNS)
def test_a_dry_run_takes_the_same_way(tmp_path: Path, request_name: str, is_used: bool) -> None:
    check_path(tmp_path, DRY_RUNS[request_name], REQUESTS[request_name] if is_used else None, "rehearse")
