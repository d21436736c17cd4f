"""Heads of budgets, noted elsewhere: each change once, by one of several processes."""

import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from app.ledger.access.access_keys import new_key
from app.ledger.auditing.heads import ACCESS_KEYS, Head, HeadsFile, Note, lines_in, note_of
from app.ledger.opening import open_ledger
from app.ledger.store import Ledger
from gsh.accounting.budget_limits import Limit
from tests.app.ledger.examples import AT, charge, paid

LIMIT = Limit(1.0, 1e-4)


def noted(file: Path) -> list[Note | None]:
    return [note_of(line) for _, line in lines_in(file)]


def test_heads_are_those_of_the_budgets_and_the_seal(ledger: Ledger) -> None:
    assert ledger.heads.read() == {}
    web = ledger.put_budget("web", LIMIT, "", AT)
    ledger.keys.add(new_key(frozenset({"admin"}), frozenset(), "", AT)[1])

    assert ledger.heads.read() == {"web": Head(1, web.head), ACCESS_KEYS: Head(1, ledger.keys.read().seal)}
    assert ledger.heads.hash_at("web", 1) == web.head
    assert ledger.heads.hash_at("web", 2) is None
    assert ledger.heads.hash_at("ads", 1) is None


def test_a_claim_gives_each_change_once_to_all_processes(ledger: Ledger, ledger_url: str) -> None:
    ledger.put_budget("web", LIMIT, "", AT)
    ledger.put_budget("ads", LIMIT, "", AT)
    with closing(open_ledger(ledger_url, "a secret for tests")) as other:
        assert [note.name for note in ledger.heads.claim(AT)[1]] == ["ads", "web"]
        assert other.heads.claim(AT)[1] == []
        charge(ledger, paid("web"))
        before, (note,) = other.heads.claim(AT)
        assert (note.name, note.head.size, before["web"].size) == ("web", 2, 1)
        assert ledger.heads.claim(AT)[1] == []


def test_simultaneous_claims_log_each_change_once(ledger: Ledger, ledger_url: str) -> None:
    for number in range(5):
        ledger.put_budget(f"b{number}", LIMIT, "", AT)
    others = [open_ledger(ledger_url, "a secret for tests") for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        claimed = list(threads.map(lambda other: other.heads.claim(AT)[1], others))
    for other in others:
        other.close()

    assert sorted(note.name for notes in claimed for note in notes) == [f"b{number}" for number in range(5)]


@pytest.mark.parametrize("value", ["[]", "{", '{"web": 1}', '{"web": [1, 2, 3]}'])
def test_a_damaged_claim_is_made_again(ledger: Ledger, value: str) -> None:
    ledger.put_budget("web", LIMIT, "", AT)
    ledger.heads.claim(AT)
    with ledger._connections.transaction() as execute:
        execute(ledger._sql.set_fact, ("noted heads", value))

    assert [note.name for note in ledger.heads.claim(AT)[1]] == ["web"]


def test_a_file_gets_a_line_for_each_change_and_only_the_service_can_read_it(ledger: Ledger, tmp_path: Path) -> None:
    place, file = tmp_path / "heads", HeadsFile(tmp_path / "heads")
    web = ledger.put_budget("web", LIMIT, "", AT)
    ledger.keys.add(new_key(frozenset({"admin"}), frozenset(), "", AT)[1])

    for _ in range(2):
        file.note(ledger.heads.read, AT)
    assert [json.loads(line) for line in place.read_text().splitlines()] == [
        {"at": AT, "budget": "web", "entries": 1, "head": web.head},
        {"at": AT, "access_keys": 1, "seal": ledger.keys.read().seal},
    ]
    assert stat.S_IMODE(place.stat().st_mode) == 0o600

    charge(ledger, paid("web"))
    HeadsFile(place).note(ledger.heads.read, AT)  # another process, or after a restart
    assert file.note(ledger.heads.read, AT)[1] == []
    assert [note and note.name for note in noted(place)] == ["web", ACCESS_KEYS, "web"]


def test_simultaneous_processes_write_each_change_once(tmp_path: Path) -> None:
    place = tmp_path / "heads"
    heads = {f"b{number}": Head(1, "0" * 64) for number in range(50)}
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda file: file.note(lambda: heads, AT), [HeadsFile(place) for _ in range(8)]))

    assert len(noted(place)) == 50
    assert None not in noted(place)


def test_a_torn_line_is_left_alone_and_a_new_file_gets_everything(tmp_path: Path) -> None:
    place, file = tmp_path / "heads", HeadsFile(tmp_path / "heads")
    heads = {"web": Head(1, "a"), "ads": Head(1, "b")}
    file.note(lambda: heads, AT)
    os.truncate(place, place.stat().st_size - 5)

    file.note(lambda: heads, AT)
    assert [note and note.name for note in noted(place)] == ["web", None, "ads"]
    place.rename(tmp_path / "older")
    file.note(lambda: heads, AT)
    assert [note and note.name for note in noted(place)] == ["web", "ads"]


def test_a_note_is_its_line() -> None:
    for name in ("web", ACCESS_KEYS):
        note = Note(AT, name, Head(3, "ab"))
        assert note_of(note.line) == note


def test_other_lines_are_no_notes() -> None:
    fields = {"at": AT, "budget": "web", "entries": 1, "head": "a"}
    others = [fields | each for each in ({"at": 1}, {"budget": None}, {"entries": True}, {"entries": "1"}, {"head": 1})]
    others += [{name: value for name, value in fields.items() if name != left_out} for left_out in fields]
    for line in [b"", b"[]", b"3", b"\xff", b"[" * 100_000, *map(json.dumps, others)]:
        assert note_of(line) is None
    assert note_of(json.dumps(fields)) is not None
