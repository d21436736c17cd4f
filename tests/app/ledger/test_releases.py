"""Releases in the ledger: listed, opened, committed, and with answers that nobody can read before the charge."""

import json
import sqlite3
import tempfile
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.ledger.answers import PART_BYTES, SMALL_BYTES, Answer, AnswerPlace, part_of
from app.ledger.charges import Charge
from app.ledger.clock import after
from app.ledger.errors import (
    AlreadyCommitted,
    AlreadySurveyed,
    AnswerErased,
    KeyReused,
    LedgerUnavailable,
    NotOpen,
    NotOwner,
    ReasonMissing,
    UnitSettled,
    UnknownRelease,
)
from app.ledger.opening import is_postgres, open_ledger
from app.ledger.releases import ChosenBounds, Commit, Notes
from app.ledger.state import By, Settings
from app.ledger.store import Ledger
from gsh.accounting.budget_limits import Limit
from gsh.accounting.composition import NOTHING
from tests.app.ledger.examples import AT, GAUSSIAN, charge, paid, store
from tests.postgres import Postgres

SECRET = "a secret for tests"
LATER = "2026-12-16T12:00:00Z"
DIGEST, ANOTHER = "a" * 64, "b" * 64
BY = By("4f1c2a9b", "weekly job")


@pytest.fixture(autouse=True)
def web(ledger: Ledger) -> None:
    ledger.put_budget("web", Limit(10.0, 1e-3), "page views", AT)


def opening(key: str = "spark", content: str = "c") -> Charge:
    notes = Notes(certificate="{}", provenance="{}", by=BY)
    return replace(paid(key=key, request="", release=GAUSSIAN), content=content, state="open", notes=notes)


def rows(ledger: Ledger, table: str) -> int:
    with ledger._connections.reading() as execute:
        return int(execute(f"SELECT COUNT(*) FROM {table}")[0][0])


def test_a_release_keeps_what_was_said_about_it(ledger: Ledger) -> None:
    notes = Notes("an id", "views", ("weekly", "views"), '{"epsilon": 1}', "{}", '{"key_columns": []}', BY)
    charge(ledger, replace(paid(), content="c", notes=notes))

    release = ledger.release("first")

    assert (release.notes, release.state, release.budget, release.number) == (notes, "made", "web", 2)
    assert release == ledger.release_by_id("an id")
    assert release.head == ledger.history("web", None, 1)[0].hash
    assert ledger.history("web", None, 1)[0].details["by"] == {"id": "4f1c2a9b", "note": "weekly job"}
    assert ledger.release_by_id("another id") is None
    with pytest.raises(UnknownRelease):
        ledger.release("none")


def test_releases_are_listed_the_newest_first_in_pages_and_by_budget(ledger: Ledger) -> None:
    ledger.put_budget("ads", Limit(10.0, 1e-3), "", AT)
    for number in range(7):
        asked = paid("ads" if number == 3 else "web", str(number), release=GAUSSIAN)
        charge(ledger, asked, at=f"2026-11-16T12:00:{number // 2:02}Z")  # two each second

    pages, before = [], None
    while page := ledger.releases([], before, 2):
        pages.append([release.key for release in page])
        before = page[-1].key

    assert pages == [["6", "5"], ["4", "3"], ["2", "1"], ["0"]]
    assert [release.key for release in ledger.releases(["ads"], None, 10)] == ["3"]
    assert [release.key for release in ledger.releases(["ads", "web"], "5", 3)] == ["4", "3", "2"]
    assert ledger.releases(["none"], None, 10) == []
    assert ledger.releases([], "an unknown release", 10) == []


def test_an_open_release_is_charged_once_and_has_one_seed(ledger: Ledger) -> None:
    first, again = ledger.charge(opening(), AT), ledger.charge(opening(), LATER)

    assert (first.is_new, again.is_new) == (True, False)
    assert again.release == first.release
    seed = ledger.seed(first.release)
    assert seed is not None
    assert len(seed) == 32
    assert ledger.seed(again.release) == seed
    assert ledger.budget("web")[0].spent.releases == 1
    other = ledger.charge(opening("another"), AT).release
    assert ledger.seed(other) != seed
    with pytest.raises(KeyReused):
        ledger.charge(opening(content="another"), AT)
    assert ledger.verify("web")[1] is None


def surveyed(certificate: str = '{"survey": {"digest": "d"}}', provenance: str = '{"plan": 1}') -> ChosenBounds:
    return ChosenBounds(DIGEST, certificate, provenance, LATER)


def test_the_bounds_of_a_survey_are_recorded_once_and_covered_by_the_history(ledger: Ledger) -> None:
    charged = ledger.charge(opening(), AT).release
    seed = ledger.seed(charged)

    first = ledger.record_survey("spark", surveyed(), BY)

    assert (first.state, first.notes.certificate, first.notes.provenance) == (
        "open",
        surveyed().certificate,
        surveyed().provenance,
    )
    assert ledger.seed(first) == seed
    assert ledger.record_survey("spark", surveyed(), BY) == first
    assert [entry.kind for entry in ledger.history("web", None, 9)] == ["surveyed", "charge", "created"]
    with pytest.raises(AlreadySurveyed):
        ledger.record_survey("spark", surveyed('{"survey": {"digest": "e"}}'), BY)
    assert ledger.charge(opening(), LATER).release == first
    ledger.commit("spark", Commit(DIGEST, 12, LATER), BY)
    assert ledger.record_survey("spark", surveyed(), BY).state == "committed"
    assert ledger.budget("web")[0].spent.releases == 1
    assert ledger.verify("web")[1] is None
    with ledger._connections.transaction() as execute:
        execute(ledger._sql.set_surveyed, ('{"survey": {"digest": "e"}}', surveyed().provenance, "spark"))
    fault = ledger.verify("web")[1]
    assert fault is not None
    assert fault.detail == "has another certificate than the recorded one"


def test_only_who_opened_a_release_records_its_survey(ledger: Ledger) -> None:
    ledger.charge(replace(opening(), client="first"), AT)
    charge(ledger, paid(key="made", release=GAUSSIAN))

    with pytest.raises(NotOwner):
        ledger.record_survey("spark", surveyed(), BY, "second")
    with pytest.raises(NotOpen):
        ledger.record_survey("made", surveyed(), BY)
    with pytest.raises(UnknownRelease):
        ledger.record_survey("none", surveyed(), BY)
    assert ledger.record_survey("spark", surveyed(), BY, "first").state == "open"


def test_a_commit_is_recorded_and_ends_the_seed(ledger: Ledger) -> None:
    ledger.charge(opening(), AT)

    committed = ledger.commit("spark", Commit(DIGEST, 12, LATER), BY)

    assert (committed.state, committed.committed) == ("committed", Commit(DIGEST, 12, LATER))
    assert ledger.seed(committed) is None
    assert rows(ledger, "seeds") == 0
    assert ledger.commit("spark", Commit(DIGEST, 12, "2027-01-01T00:00:00Z"), BY) == committed
    with pytest.raises(AlreadyCommitted):
        ledger.commit("spark", Commit(ANOTHER, 12, LATER), BY)
    entry = ledger.history("web", None, 1)[0]
    assert (entry.kind, entry.number, entry.at) == ("committed", 3, LATER)
    assert entry.shown == {
        "idempotency_key": "spark",
        "sha256": DIGEST,
        "rows": 12,
        "by": {"id": "4f1c2a9b", "note": "weekly job"},
    }
    assert ledger.charge(opening(), AT).release == committed
    assert ledger.budget("web")[0].spent.releases == 1
    assert ledger.verify("web")[1] is None


def test_only_the_client_that_opened_a_release_commits_it(ledger: Ledger) -> None:
    """Another one could end it while its engine still works. An administrator can end it if that client is gone."""
    ledger.charge(opening(), AT)

    with pytest.raises(NotOwner):
        ledger.commit("spark", Commit(DIGEST, None, LATER), None, "another client")

    assert ledger.seed(ledger.release("spark")) is not None
    assert ledger.commit("spark", Commit(DIGEST, None, LATER), None, "owner").state == "committed"
    ledger.charge(opening("second"), AT)
    assert ledger.commit("second", Commit(DIGEST, None, LATER), BY).state == "committed"


def test_only_an_open_release_can_be_committed(ledger: Ledger) -> None:
    charge(ledger, paid())

    with pytest.raises(NotOpen):
        ledger.commit("first", Commit(DIGEST, None, AT), None)
    with pytest.raises(UnknownRelease):
        ledger.commit("none", Commit(DIGEST, None, AT), None)
    assert ledger.release("first").committed is None
    assert ledger.budget("web")[0].entries == 2


@pytest.mark.parametrize(
    "tampering",
    [
        "UPDATE releases SET state = 'open'",
        "UPDATE releases SET committed = NULL",
        f"UPDATE releases SET committed = replace(committed, '{DIGEST}', '{ANOTHER}')",
        "UPDATE releases SET committed = replace(committed, '12', '13')",
        f"UPDATE entries SET payload = replace(payload, '{DIGEST}', '{ANOTHER}') WHERE number = 3",
    ],
)
def test_a_changed_commit_is_found(ledger: Ledger, tampering: str) -> None:
    ledger.charge(opening(), AT)
    ledger.commit("spark", Commit(DIGEST, 12, LATER), None)
    with ledger._connections.transaction() as execute:
        execute(tampering)

    assert ledger.verify("web")[1] is not None


def files_of(place: str) -> bytes:
    return b"".join(Path(place + end).read_bytes() for end in ("", "-wal") if Path(place + end).exists())


def test_after_the_commit_no_file_of_sqlite_has_the_nonce(tmp_path: Path) -> None:
    """Not even in pages that are free, or in the write-ahead log. Before it, the database and the secret give it."""
    place = str(tmp_path / "ledger.sqlite3")
    with closing(open_ledger(place, SECRET)) as ledger:
        ledger.put_budget("web", Limit(10.0, 1e-3), "", AT)
        release = ledger.charge(opening(), AT).release
        seed = ledger.seed(release)
        with closing(sqlite3.connect(place)) as database:
            ((nonce,),) = database.execute("SELECT nonce FROM seeds").fetchall()
        assert release.client is not None
        assert ledger.secret.derived(b"seed of a client", nonce, b"spark", release.client.encode()) == seed
        assert nonce in files_of(place)
        assert seed not in files_of(place)

        ledger.commit("spark", Commit(DIGEST, None, LATER), None)

        assert nonce not in files_of(place)
    assert nonce not in files_of(place)


def test_a_reader_does_not_hold_up_a_commit_and_the_nonce_goes_when_it_has_ended(tmp_path: Path) -> None:
    """An audit or a backup reads for long. The write-ahead log cannot be emptied meanwhile."""
    place = str(tmp_path / "ledger.sqlite3")
    with closing(open_ledger(place, SECRET)) as ledger, closing(sqlite3.connect(place)) as reader:
        ledger.put_budget("web", Limit(10.0, 1e-3), "", AT)
        ledger.charge(opening(), AT)
        reader.execute("BEGIN")
        ((nonce,),) = reader.execute("SELECT nonce FROM seeds").fetchall()

        committed = ledger.commit("spark", Commit(DIGEST, None, LATER), None)

        assert ledger.seed(committed) is None
        ledger.purge_seeds_if_left()
        assert nonce in files_of(place)
        reader.execute("COMMIT")
        ledger.purge_seeds_if_left()
        assert nonce not in files_of(place)


def test_after_the_commit_the_table_of_postgres_does_not_have_the_nonce(postgres: Postgres) -> None:
    with closing(open_ledger(postgres.make_database(), SECRET)) as ledger:
        ledger.put_budget("web", Limit(10.0, 1e-3), "", AT)
        ledger.charge(opening(), AT)

        def file_of_seeds() -> bytes:
            with ledger._connections.reading() as execute:
                ((path,),) = execute("SELECT current_setting('data_directory') || '/' || pg_relation_filepath('seeds')")
            with psycopg.connect(ledger._connections._url, autocommit=True) as server:
                server.execute("CHECKPOINT")
            return Path(path).read_bytes()

        with ledger._connections.reading() as execute:
            ((nonce,),) = execute("SELECT nonce FROM seeds")
        assert bytes(nonce) in file_of_seeds()

        ledger.commit("spark", Commit(DIGEST, None, LATER), None)

        assert bytes(nonce) not in file_of_seeds()


@pytest.mark.parametrize("size", [2, 3 * PART_BYTES])
def test_an_answer_that_is_erased_while_it_is_read_is_not_cut_short(ledger: Ledger, size: int) -> None:
    charge(ledger, paid(), bytes(size))
    release = ledger.release("first")
    reading = ledger.content(release)
    if size > PART_BYTES:
        assert len(next(reading)) == PART_BYTES

    ledger.erase_answers(after(AT, 1), LATER)
    while ledger.remove_abandoned(LATER):
        pass

    with pytest.raises(AnswerErased):
        list(reading)


def test_an_answer_that_is_not_complete_is_not_given(ledger: Ledger) -> None:
    charge(ledger, paid(), bytes(3 * PART_BYTES))
    with ledger._connections.transaction() as execute:
        execute("DELETE FROM parts WHERE part = 2")

    with pytest.raises(LedgerUnavailable):
        list(ledger.content(ledger.release("first")))


def test_racing_commits_have_one_winner_and_racing_openings_one_seed(ledger: Ledger, ledger_url: str) -> None:
    gate, told = threading.Barrier(12), []

    def run(number: int) -> None:
        with closing(open_ledger(ledger_url, SECRET)) as mine:
            gate.wait()
            opened = mine.charge(opening(), AT)
            seed = mine.seed(opened.release)
            gate.wait()
            try:
                committed = mine.commit("spark", Commit(DIGEST if number % 2 else ANOTHER, number, LATER), None)
                told.append((opened.is_new, seed, committed.committed))
            except AlreadyCommitted:
                told.append((opened.is_new, seed, None))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(is_new for is_new, _, _ in told) == [False] * 11 + [True]
    assert len({seed for _, seed, _ in told}) == 1
    outcomes = [committed for _, _, committed in told]
    assert outcomes.count(None) == 6
    assert len({committed for committed in outcomes if committed is not None}) == 1
    assert ledger.budget("web")[0].entries == 3
    assert ledger.verify("web")[1] is None


def test_parts_cannot_be_read_before_their_charge_and_are_removed_if_it_never_comes(ledger: Ledger) -> None:
    content = b"a group key that must not be seen " * 50_000
    staged = store(ledger, content, at=AT)
    assert rows(ledger, "staged") == 1
    with ledger._connections.reading() as execute:
        kept = b"".join(bytes(part) for (part,) in execute("SELECT content FROM parts ORDER BY part"))
        assert b"group key" not in kept
        assert staged.place is not None
        opened = part_of(execute, ledger._sql, AnswerPlace(staged.place.answer, staged.place.key), 0)
    assert opened == content[:PART_BYTES]

    assert not ledger.remove_abandoned(AT)  # not old enough
    while ledger.remove_abandoned(LATER):
        with pytest.raises(LedgerUnavailable):  # its removal has begun
            ledger.charge(paid(), LATER, lambda _budget, _number: staged)

    assert (rows(ledger, "staged"), rows(ledger, "parts")) == (0, 0)
    with pytest.raises(LedgerUnavailable):
        ledger.charge(paid(), LATER, lambda _budget, _number: staged)
    assert ledger.budget("web")[0].spent == NOTHING


def test_what_was_charged_is_not_removed(ledger: Ledger) -> None:
    """A client that hangs up in the middle of a charge must not take the stored answer with it."""
    content = bytes(3 * SMALL_BYTES)
    staging = ledger.staging(Answer("x/y", lambda: [content]), AT)
    while staging.step():
        pass
    staged = staging.finish()
    release = ledger.charge(paid(), AT, lambda _budget, _number: staged).release

    assert not staging.drop()

    assert not ledger.remove_abandoned(LATER)
    assert b"".join(ledger.content(release)) == content
    assert ledger.verify("web")[1] is None


def test_no_part_is_written_after_its_answer_was_removed(ledger: Ledger) -> None:
    """A thread may still be writing when a request ends. A part that nothing lists would stay for ever."""
    staging = ledger.staging(Answer("x/y", lambda: [bytes(3 * PART_BYTES)]), AT)
    staging.step()
    while staging.drop():
        pass

    with pytest.raises(LedgerUnavailable):
        staging.step()

    assert (rows(ledger, "staged"), rows(ledger, "parts")) == (0, 0)


def test_an_answer_that_loses_a_race_is_dropped(ledger: Ledger) -> None:
    charge(ledger, paid(), b"the first")
    staging = ledger.staging(Answer("x/y", lambda: [bytes(3 * SMALL_BYTES)]), AT)
    while staging.step():
        pass

    while staging.drop():
        pass

    assert (rows(ledger, "staged"), rows(ledger, "parts")) == (0, 0)


@settings(max_examples=8, deadline=None)
@given(st.lists(st.integers(0, 3 * PART_BYTES // 2), max_size=4), st.booleans())
def test_an_answer_is_stored_in_whatever_chunks_it_comes(sizes: list[int], is_random: bool) -> None:
    chunks = [(bytes([number + 1]) if is_random else b"\0") * size for number, size in enumerate(sizes)]
    with tempfile.TemporaryDirectory() as folder, closing(open_ledger(f"{folder}/ledger.sqlite3", SECRET)) as ledger:
        ledger.put_budget("web", Limit(10.0, 1e-3), "", AT)
        staging = ledger.staging(Answer("x/y", lambda: chunks), AT)
        while staging.step():
            pass
        staged = staging.finish()
        release = ledger.charge(paid(), AT, lambda _budget, _number: staged).release
        assert b"".join(ledger.content(release)) == b"".join(chunks)
        assert ledger.verify("web")[1] is None


def test_old_answers_are_erased_and_their_charges_and_certificates_stay(ledger: Ledger) -> None:
    notes = Notes("an id", certificate='{"epsilon": 1}')
    charge(ledger, replace(paid(key="old"), notes=notes), bytes(3 * SMALL_BYTES))
    charge(ledger, paid(key="small"), b"42")
    charge(ledger, paid(key="new"), b"43", at=LATER)
    ledger.charge(opening(), AT)

    assert ledger.erase_answers(after(AT, 1), LATER) == 2
    assert ledger.erase_answers(after(AT, 1), LATER) == 0

    while ledger.remove_abandoned(LATER):
        pass
    assert (rows(ledger, "parts"), rows(ledger, "staged")) == (0, 0)
    for key in ("old", "small"):
        release = ledger.release(key)
        assert release.erased_at == LATER
        with pytest.raises(AnswerErased):
            b"".join(ledger.content(release))
        with pytest.raises(AnswerErased):
            ledger.recall(paid(key=key), LATER)
        with pytest.raises(AnswerErased):
            ledger.recall_same_bytes(paid(key=key), LATER)
        with pytest.raises(AnswerErased):
            charge(ledger, paid(key=key), at=LATER)
    assert ledger.release("old").notes.certificate == '{"epsilon": 1}'
    assert b"".join(ledger.content(ledger.release("new"))) == b"43"
    assert ledger.budget("web")[0].spent.releases == 4
    assert ledger.verify("web")[1] is None


def test_an_answer_that_somebody_else_erased_is_found(ledger: Ledger) -> None:
    charge(ledger, paid())
    with ledger._connections.transaction() as execute:
        execute("UPDATE entries SET content = NULL WHERE key = 'first'")
        execute(f"UPDATE releases SET erased_at = '{LATER}', erasure = '{'0' * 64}'")

    fault = ledger.verify("web")[1]

    assert fault is not None
    assert fault.detail == "has an answer that this service did not erase"


def test_erased_answers_are_sealed_anew_after_a_change_of_the_secret(ledger_url: str, ledger: Ledger) -> None:
    charge(ledger, paid())
    ledger.erase_answers(after(AT, 1), LATER)
    with ledger._connections.transaction() as execute:
        execute("DELETE FROM ledger WHERE name = 'secret'")

    with closing(open_ledger(ledger_url, "another secret for tests")) as another:
        assert another.verify("web")[1] is not None
        another.seal()
        assert another.verify("web")[1] is None


WEEKLY: Settings = {"privacy_unit": "user", "period": "week"}
HOUSEHOLD: Settings = {"privacy_unit": "household"}
USER: Settings = {"privacy_unit": "user", "period": None}


def test_a_change_of_a_budget_needs_a_reason_and_the_unit_is_fixed_by_the_first_charge(ledger: Ledger) -> None:
    limit = Limit(10.0, 1e-3)
    with pytest.raises(ReasonMissing):
        ledger.put_budget("web", Limit(2.0, 1e-3), "page views", AT)
    with pytest.raises(ReasonMissing):
        ledger.put_budget("web", limit, "page views", AT, settings=HOUSEHOLD)
    described = ledger.put_budget("web", limit, "another description", AT)
    assert (described.entries, described.privacy_unit, described.period) == (2, "user", None)
    changed = ledger.put_budget("web", limit, "", AT, settings=WEEKLY, reason="weekly tables", by=BY)
    assert (changed.privacy_unit, changed.period) == ("user", "week")
    household = ledger.put_budget("home", limit, "", AT, settings=HOUSEHOLD)
    assert ledger.put_budget("home", limit, "", AT, settings={"period": "week"}, reason="weekly") == replace(
        household, period="week", entries=2, head=ledger.budget("home")[0].head
    )
    charge(ledger, paid())

    with pytest.raises(UnitSettled):
        ledger.put_budget("web", limit, "", AT, settings=USER, reason="a mistake")

    assert ledger.put_budget("web", Limit(11.0, 1e-3), "", AT, reason="more").period == "week"
    entries = {entry.number: entry.details for entry in ledger.history("web", None, 10)}
    assert (entries[3]["reason"], entries[3]["by"]) == ("weekly tables", {"id": "4f1c2a9b", "note": "weekly job"})
    assert (entries[3]["privacy_unit"], entries[3]["period"]) == ("user", "week")
    assert ledger.verify("web")[1] is None


def test_a_large_answer_is_written_in_short_transactions(ledger: Ledger, ledger_url: str) -> None:
    """Between two parts another process can charge the same budget."""
    staging = ledger.staging(Answer("x/y", lambda: [bytes(PART_BYTES)] * 3), AT)
    assert staging.step()
    with closing(open_ledger(ledger_url, SECRET)) as another:
        assert charge(another, paid(key="meanwhile", release=GAUSSIAN)) == b"42"
    while staging.step():
        pass
    staged = staging.finish()

    assert ledger.charge(paid(), AT, lambda _budget, _number: staged).is_new
    assert staged.size == 3 * PART_BYTES
    if not is_postgres(ledger_url):
        assert Path(ledger_url).stat().st_size < PART_BYTES  # zeros are compressed


def test_labels_are_kept_as_they_are(ledger: Ledger) -> None:
    labels = ("ä", '"quoted"', "a,b", "[", "\\")
    charge(ledger, replace(paid(), notes=Notes(labels=labels)))

    assert ledger.release("first").notes.labels == labels
    assert json.loads(ledger.history("web", None, 1)[0].payload)["labels"] == list(labels)
    assert ledger.verify("web")[1] is None
