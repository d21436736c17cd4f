"""A ledger that version 0.2.0 made: with the current version it is intact, its answers are read, and its seed is kept.

`version_0_2_0.sqlite3` was made by the service of commit ac880e4. It has a small answer, a large one in encrypted
parts, an open release and a charge. `version_0_2_0.json` has what that service was asked and what it answered.
"""

import hashlib
import json
from collections.abc import Iterator

import httpx
import pyarrow as pa
import pytest

from app.ledger.opening import connections_of, is_postgres
from tests.app.client import Client, Json, problem_errors
from tests.app.ledger.old_ledgers import FIXTURES, copy_ledger
from tests.app.releases.test_release_table import form
from tests.gsh.histogram.uploads import as_stream

OLD = FIXTURES / "version_0_2_0.sqlite3"
FACTS: Json = json.loads(OLD.with_suffix(".json").read_text())
DIGEST = "a" * 64


class Upgraded(Client):
    """The current service on a ledger of version 0.2.0."""

    def __init__(self, place: str) -> None:
        self.place = copy_ledger(OLD, FACTS["secret"], place)
        super().__init__(ledger=place, ledger_secret=FACTS["secret"] if is_postgres(place) else "")

    def repeat(self, key: str) -> httpx.Response:
        """What was posted to version 0.2.0."""
        paths = {"small": "/release", "table": "/release/table", "open": "/releases"}
        path, body = paths.get(key, "/budgets/web/charges"), FACTS["posts"][key]
        if key == "elsewhere":
            body = {"mechanism": body["mechanism"]}
        rows = range(FACTS["rows"])
        table = pa.table({"url": [f"https://example.com/{row:08}" for row in rows], "users": [10**6 for _ in rows]})
        posted = {"files": form(as_stream(table), body)} if key == "table" else {"json": body}
        return self.request("POST", path, headers={"idempotency-key": key}, **posted)

    def change(self, statement: str) -> None:
        connections = connections_of(self.place)
        with connections.transaction() as execute:
            execute(statement)
        connections.close()


@pytest.fixture
def upgraded(ledger_url: str) -> Iterator[Upgraded]:
    made = Upgraded(ledger_url)
    yield made
    made.app.state.services.ledger_pool.close()
    made.app.state.services.close_pools()


def test_the_history_is_intact_and_every_answer_is_the_one_that_was_sent(upgraded: Upgraded) -> None:
    shown = upgraded.get("/budgets/web/verify").json()

    assert shown == {"intact": True, "fault": None, **FACTS["verified"]}
    for key, sent in FACTS["answers"].items():
        again = upgraded.repeat(key)
        assert (again.status_code, again.headers["idempotency-replayed"]) == (200, "true")
        assert hashlib.sha256(again.content).hexdigest() == sent["sha256"]
        if key != "elsewhere":
            stored = upgraded.get(f"/releases/{key}/answer", headers={"accept": again.headers["content-type"]})
            assert stored.content == again.content
            said = upgraded.get(f"/releases/{key}").json()["answer"]
            assert (said["sha256"], said["size"]) == (sent["sha256"], sent["size"])
    assert upgraded.get("/budgets/web").json()["spent"]["releases"] == 4


def test_an_open_release_keeps_its_seed_and_its_client_until_the_commit(upgraded: Upgraded) -> None:
    """An engine may have drawn from it already: another seed would be a second draw."""
    again = upgraded.repeat("open")
    assert (again.status_code, again.json()["seed"]) == (200, FACTS["seed"])

    upgraded.change("UPDATE entries SET client = NULL WHERE key = 'open'")
    problem_errors(upgraded.repeat("open"), 503, "ledger-unavailable")
    assert upgraded.get("/budgets/web/verify").json()["intact"] is False
    upgraded.change("UPDATE entries SET client = (SELECT client FROM entries WHERE key = 'small') WHERE key = 'open'")

    upgraded.change("UPDATE releases SET version = 2 WHERE key = 'open'")
    problem_errors(upgraded.repeat("open"), 503, "ledger-unavailable")
    upgraded.change("UPDATE releases SET version = 1 WHERE key = 'open'")
    committed = upgraded.post("/releases/open/commit", {"digest": DIGEST})
    assert (committed.status_code, committed.json()["state"]) == (200, "committed")
    assert "seed" not in upgraded.repeat("open").json()
    assert upgraded.get("/budgets/web/verify").json()["intact"] is True
