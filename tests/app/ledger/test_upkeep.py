"""The heads are noted at the start, each hour and at the stop; a failure is logged, and ends nothing."""

import asyncio
import json
import logging
from pathlib import Path

import pytest

from app.ledger.auditing.checkpoints import Chain, envelope_in
from app.ledger.clock import now
from app.ledger.pool import LedgerPool
from app.ledger.signing.signer import KeyPlace, Signer
from app.ledger.upkeep import HeadNotes
from app.server.logs import JsonFormatter
from gsh.accounting.budget_limits import Limit
from gsh.proof.keys import SigningKey
from tests.app.ledger.examples import AT, charge, paid

SECRET = "a secret for tests"


class Hours:
    """A clock whose hours pass when ``run`` waits for them; then ``each`` happens, and at the end it is cancelled."""

    def __init__(self, *each: object) -> None:
        self._each = list(each)
        self.waited: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.waited.append(seconds)
        if not self._each:
            raise asyncio.CancelledError
        self._each.pop(0)()  # type: ignore[operator]


@pytest.fixture
def pool(ledger_url: str):  # type: ignore[no-untyped-def]
    made = LedgerPool(ledger_url, SECRET)
    yield made
    made.close()


def run(notes: HeadNotes) -> None:
    async def scenario() -> None:
        await asyncio.wait({asyncio.ensure_future(notes.run())})

    asyncio.run(scenario())


def unsigned(pool: LedgerPool) -> Signer:
    """Of a ledger on a server without a key."""
    return Signer(pool, KeyPlace("postgresql://host/gsh", ""), "", "")


def heads_logged(caplog: pytest.LogCaptureFixture) -> list[tuple[str, int]]:
    lines = [json.loads(JsonFormatter().format(record)) for record in caplog.records if record.name == "app.heads"]
    assert all(line["message"] == "head" and len(line["head"]) == 64 for line in lines)
    return [(line["budget"], line["entries"]) for line in lines]


def test_without_a_file_changes_are_log_lines_each_hour(pool: LedgerPool, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "app.heads")
    pool._work(lambda ledger: ledger.put_budget("web", Limit(1.0, 1e-4), "", AT))
    hours = Hours(lambda: None, lambda: pool._work(lambda ledger: charge(ledger, paid("web"))))
    notes = HeadNotes(pool, "", unsigned(pool), wait=hours)

    run(notes)
    assert heads_logged(caplog) == [("web", 1), ("web", 2)]
    assert hours.waited == [3600.0] * 3
    asyncio.run(notes.stop())
    assert heads_logged(caplog) == [("web", 1), ("web", 2)]


def test_a_file_has_the_heads_of_the_start_of_each_hour_and_of_the_stop(pool: LedgerPool, tmp_path: Path) -> None:
    file = tmp_path / "heads"
    times = iter(["t0", "t1", "t2", "t3"])
    pool._work(lambda ledger: ledger.put_budget("web", Limit(1.0, 1e-4), "", AT))
    hours = Hours(lambda: None, lambda: pool._work(lambda ledger: charge(ledger, paid("web"))))
    notes = HeadNotes(pool, str(file), unsigned(pool), clock=lambda: next(times), wait=hours)

    run(notes)
    pool._work(lambda ledger: charge(ledger, paid("web", key="second", request="r2")))
    asyncio.run(notes.stop())

    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(line["at"], line["entries"]) for line in lines] == [("t0", 1), ("t2", 2), ("t3", 3)]


def test_a_ledger_that_is_set_back_is_logged(
    pool: LedgerPool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "heads"
    file.write_text(json.dumps({"at": AT, "budget": "web", "entries": 7, "head": "0" * 64}) + "\n")
    pool._work(lambda ledger: ledger.put_budget("web", Limit(1.0, 1e-4), "", AT))

    asyncio.run(HeadNotes(pool, str(file), unsigned(pool), clock=now).note())

    (record,) = caplog.records
    assert record.getMessage() == "a history is not a continuation of what was noted: run python -m app.verify"
    assert json.loads(JsonFormatter().format(record))["budget"] == "web"


def test_a_failure_is_logged_and_the_stop_does_not_wait_for_another(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pool = LedgerPool(str(tmp_path / "ledger.sqlite3"), SECRET)
    without_folder = HeadNotes(pool, str(tmp_path / "missing" / "heads"), unsigned(pool), wait=Hours(lambda: None))
    run(without_folder)
    asyncio.run(without_folder.stop())
    pool.close()
    lost = LedgerPool(str(tmp_path / "missing" / "ledger.sqlite3"), SECRET)
    notes = HeadNotes(lost, "", unsigned(lost))
    for works in (False, True):  # a ledger that was never there is logged by the service itself
        notes._works = works
        asyncio.run(notes.note())
    lost.close()

    said = [record.getMessage() for record in caplog.records if record.name == "app.heads"]
    reason = "the heads were not noted: GSH_HEADS_FILE: No such file or directory"
    assert said[:2] == [reason] * 2
    assert said[2].startswith("the heads were not noted: unable to open database file")
    assert len(said) == 3


@pytest.mark.parametrize("to_file", [True, False])
def test_a_checkpoint_follows_on_the_notes_of_each_hour_with_a_change(
    pool: LedgerPool, tmp_path: Path, caplog: pytest.LogCaptureFixture, *, to_file: bool
) -> None:
    caplog.set_level(logging.INFO, "app.heads")
    file, key = tmp_path / "heads", tmp_path / "key.pem"
    key.write_bytes(SigningKey.made().to_pem())
    signer = Signer(pool, KeyPlace("postgresql://host/gsh", str(key)), "", "")
    pool._work(lambda ledger: ledger.put_budget("web", Limit(1.0, 1e-4), "", AT))
    hours = Hours(lambda: pool._work(lambda ledger: charge(ledger, paid("web"))), lambda: None)
    run(HeadNotes(pool, str(file) if to_file else "", signer, wait=hours))

    records = [JsonFormatter().format(record) for record in caplog.records]
    lines = [line.encode() for line in (file.read_text().splitlines() if to_file else records)]
    assert [envelope_in(line) is None for line in lines] == [True, False] * 2  # a note and its checkpoint, twice
    chain = Chain(signer.keys, pool._work(lambda ledger: ledger.checkpoints.last()))
    first, second = (chain.opened(envelope) for envelope in map(envelope_in, lines) if envelope is not None)
    assert (first.number, second.number, second.before) == (1, 2, first.sha256)
    assert [head.size for head in second.heads.values()] == [2]


def test_a_key_that_cannot_be_read_does_not_keep_heads_from_being_noted(
    pool: LedgerPool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pool._work(lambda ledger: ledger.put_budget("web", Limit(1.0, 1e-4), "", AT))
    file, signer = tmp_path / "heads", Signer(pool, KeyPlace("", str(tmp_path / "none")), "", "")
    asyncio.run(HeadNotes(pool, str(file), signer).note())

    (record,) = caplog.records
    assert record.getMessage().startswith("the heads were noted without a signature: the signing key")
    assert len(file.read_text().splitlines()) == 1
