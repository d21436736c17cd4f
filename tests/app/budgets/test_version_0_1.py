"""A ledger that version 0.1.0 made: with the current version it is intact, and all its answers are there.

`version_0_1_0_answers.sqlite3` was made by the service of commit 40f23f7. `version_0_1_0_answers.json` has what that
service was asked, the hashes of its answers, what its own verification said, and its secret.
"""

import base64
import hashlib
import io
import json
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.csv
import pytest

from app.ledger.opening import connections_of, is_postgres
from tests.app.client import Client, Json, problem_errors
from tests.app.ledger.old_ledgers import FIXTURES, copy_ledger
from tests.gsh.histogram.uploads import from_bytes

OLD = FIXTURES / "version_0_1_0_answers.sqlite3"
FACTS: Json = json.loads(OLD.with_suffix(".json").read_text())
POSTS: dict[str, Json] = FACTS["posts"]
STATES = {"groups": "made", "elsewhere": "charged", "table": "made", "parquet": "made"}
MADE = [key for key, state in STATES.items() if state == "made"]
MECHANISM = {"c_u": 3, "tau": 1, "tau_star": 120, "sigma": 20}


class Upgraded(Client):
    """The current service on a ledger of version 0.1.0."""

    def __init__(self, place: str) -> None:
        self.place = place
        super().__init__(ledger=place, ledger_secret=FACTS["secret"] if is_postgres(place) else "")

    def repeat(self, key: str) -> httpx.Response:
        """The bytes that were posted to version 0.1.0."""
        post = POSTS[key]
        headers = {"content-type": post["content_type"], "idempotency-key": key}
        content = zlib.decompress(base64.b64decode(post["body"]))
        return self.request("POST", post["path"], content=content, headers=headers)

    def verified(self) -> list[str]:
        """What the verification of version 0.1.0 would have said."""
        lines = []
        for name in ("ads", "web"):
            shown = self.get(f"/budgets/{name}/verify").json()
            assert shown["intact"] is True, shown
            lines.append(f"{name}: intact; {shown['entries']} entries; head {shown['head']}")
        return lines


@pytest.fixture
def old_place(ledger_url: str) -> str:
    return copy_ledger(OLD, FACTS["secret"], ledger_url)


@pytest.fixture
def upgraded(old_place: str) -> Iterator[Upgraded]:
    made = Upgraded(old_place)
    yield made
    made.app.state.services.ledger_pool.close()
    made.app.state.services.close_pools()


def read(place: str, statement: str) -> list[tuple[Any, ...]]:
    connections = connections_of(place)
    with closing(connections), connections.reading() as execute:
        return execute(statement)


def test_histories_are_as_version_0_1_verified_them(old_place: str) -> None:
    before = read(old_place, "SELECT id, entries, head FROM budgets ORDER BY id")
    said = [f"{name}: intact; {entries} entries; head {head}" for name, entries, head in before]
    assert said == FACTS["verified"][:-1]

    upgraded = Upgraded(old_place)

    assert upgraded.verified() == said
    for name, entries in FACTS["histories"].items():
        history = upgraded.get(f"/budgets/{name}/charges").json()["entries"]
        assert [{field: entry[field] for field in entries[0]} for entry in history] == entries
    assert read(old_place, "SELECT COUNT(*) FROM releases") == [(len(POSTS),)]
    if not is_postgres(old_place):
        assert Path(f"{old_place}.secret").read_text() == FACTS["secret"]
    upgraded.app.state.services.ledger_pool.close()


def rows_of(response: httpx.Response) -> list[tuple[Any, ...]]:
    """The rows of an answer, in whatever format."""
    media_type = response.headers["content-type"].partition(";")[0]
    if media_type == "application/json":
        groups = response.json()["groups"]
        keys = [key if isinstance(key, list) else [key] for key in groups["keys"]]
        values = list(groups["values"].values())
        return [(*key, *numbers) for key, *numbers in zip(keys, groups["counts"], *values, strict=True)]
    if media_type == "text/csv":
        options = pa.csv.ConvertOptions(strings_can_be_null=True, quoted_strings_can_be_null=False)
        table = pa.csv.read_csv(io.BytesIO(response.content), convert_options=options)
    else:
        table = from_bytes(response.content)
    return [tuple(row.values()) for row in table.to_pylist()]


def test_releases_are_listed_and_their_answers_are_given_byte_for_byte_and_in_any_format(upgraded: Upgraded) -> None:
    listed = {release["key"]: release for release in upgraded.get("/releases").json()["releases"]}

    assert {key: release["state"] for key, release in listed.items()} == STATES
    for key in MADE:
        post = POSTS[key]
        shown = listed[key]["answer"]
        assert (shown["sha256"], shown["size"], shown["erased_at"]) == (post["sha256"], post["size"], None)
        stored = upgraded.get(f"/releases/{key}/answer", headers={"accept": post["media_type"]})
        assert hashlib.sha256(stored.content).hexdigest() == post["sha256"]
        rows = rows_of(stored)
        assert len(rows) == {"table": 1590}.get(key, 2)
        for media_type in ("application/json", "text/csv", "application/vnd.apache.parquet"):
            other = upgraded.get(f"/releases/{key}/answer", headers={"accept": media_type})
            assert other.status_code == 200, other.text
            assert rows_of(other) == rows, media_type
    assert upgraded.get("/releases/elsewhere/answer").status_code == 404
    for key in POSTS:
        problem_errors(upgraded.get(f"/releases/{key}/certificate"), 404, "no-certificate")


def test_the_same_bytes_get_the_same_answer_and_new_releases_go_on(upgraded: Upgraded) -> None:
    for key, post in POSTS.items():
        again = upgraded.repeat(key)
        assert again.headers["idempotency-replayed"] == "true"
        assert again.headers["content-type"] == post["media_type"]
        assert hashlib.sha256(again.content).hexdigest() == post["sha256"]
    assert upgraded.verified() == FACTS["verified"][:-1]

    body = {"mechanism": MECHANISM, "budget": "web", "groups": {"keys": ["c"], "counts": [5000]}}
    made = upgraded.request("POST", "/release", json=body, headers={"idempotency-key": "new"})
    assert made.status_code == 200, made.text
    assert upgraded.get("/releases/new/answer").content == made.content
    reused = upgraded.request("POST", "/release", json=body, headers={"idempotency-key": "groups"})
    problem_errors(reused, 422, "key-reused")
    assert reused.json()["release"] == "/releases/groups"
    opening = {"mechanism": MECHANISM, "budget": "web"}
    opened = upgraded.request("POST", "/releases", json=opening, headers={"idempotency-key": "open"})
    assert opened.status_code == 201
    committed = upgraded.request("POST", "/releases/open/commit", json={"digest": "a" * 64})
    assert committed.json()["state"] == "committed"
    assert [line.split(";")[1] for line in upgraded.verified()] == [" 2 entries", " 8 entries"]


def test_an_answer_that_version_0_1_stored_in_several_parts_is_whole(old_place: str) -> None:
    """It began a new part every 4 MiB."""
    connections = connections_of(old_place)
    with connections.transaction() as execute:
        ((content,),) = execute("SELECT content FROM answer_parts")
        execute("DELETE FROM answer_parts")
        add = connections.statements.add_part.replace("parts", "answer_parts").replace("answer, part", "key, part")
        for number, start in enumerate(range(0, len(content), 30_000)):
            execute(add, ("table", number, bytes(content)[start : start + 30_000]))
    connections.close()
    upgraded = Upgraded(old_place)

    stored = upgraded.get("/releases/table/answer")

    assert hashlib.sha256(stored.content).hexdigest() == POSTS["table"]["sha256"]
    assert upgraded.verified() == FACTS["verified"][:-1]
    upgraded.app.state.services.ledger_pool.close()
