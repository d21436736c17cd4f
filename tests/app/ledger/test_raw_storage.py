"""What the files of a database have of answers that were never charged, or never sent: nothing that can be read.

A transaction that fails leaves its rows behind: PostgreSQL in its tables and its log, SQLite in its log. Who reads
these files must not find a draw other than the one that was released: a second draw of the same charge.
"""

import hashlib
import resource
import secrets
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from app.ledger.answer_keys import opened, sealed
from app.ledger.answers import SMALL_BYTES, Answer, Staged, Staging
from app.ledger.charges import Charge
from app.ledger.clock import after
from app.ledger.errors import AnswerErased, KeyReused, LedgerUnavailable
from app.ledger.opening import open_ledger
from app.ledger.releases import Notes
from app.ledger.store import Ledger
from gsh.accounting.budget_limits import Limit
from tests.app.ledger.cuts import BEFORE_COMMIT, BEFORE_KEY, cut_connections, raw_bytes
from tests.app.ledger.examples import AT, GAUSSIAN, paid, store

SECRET = "a secret for tests"
LATER = "2026-12-16T12:00:00Z"
SIZES = {"small": 1000, "large": 2 * SMALL_BYTES}


@dataclass
class Draw:
    """An answer of random bytes, which are nowhere else."""

    content: bytes
    staged: Staged

    @classmethod
    def of(cls, ledger: Ledger, size: int) -> "Draw":
        content = secrets.token_bytes(size)
        return cls(content, store(ledger, content))

    def answer(self, _budget: Any, _number: int) -> Staged:
        return self.staged

    def found_in(self, raw: bytes) -> list[str]:
        """What the files have of it. Its hash counts: it tells guesses about a small table apart."""
        digest = hashlib.sha256(self.content)
        key = None if self.staged.place is None else self.staged.place.key
        needles = {"the answer": self.content[:64], "the end of the answer": self.content[-64:]}
        needles |= {"its hash": digest.digest(), "its hash as text": digest.hexdigest().encode()}
        needles |= {} if key is None else {"its key": key, "its key as text": key.hex().encode()}
        return [name for name, needle in needles.items() if needle in raw]


@pytest.fixture
def cut(ledger_url: str) -> Iterator[Ledger]:
    """A ledger whose charges break off where ``at`` of its connections says."""
    with closing(open_ledger(ledger_url, SECRET, cut_connections(ledger_url))) as opened_ledger:
        for budget in ("web", "ads"):
            opened_ledger.put_budget(budget, Limit(10.0, 1e-3), "", AT)
        yield opened_ledger


def breaking(ledger: Ledger, at: str, draw: Draw, key: str = "first") -> None:
    ledger._connections.at = at
    with pytest.raises(LedgerUnavailable):
        ledger.charge(paid(key=key, release=GAUSSIAN), AT, draw.answer)


def again(ledger: Ledger, draw: Draw, key: str = "first") -> bytes:
    """The answer to the same request, sent again."""
    asked = paid(key=key, release=GAUSSIAN)
    payable = ledger.check(asked, AT)
    assert payable is not None
    charged = ledger.charge(asked, AT, draw.answer, unread=payable.unread)
    return b"".join(ledger.content(charged.release))


@pytest.mark.parametrize("size", SIZES)
def test_a_charge_that_was_cut_before_its_commit_leaves_nothing_to_read(
    cut: Ledger, ledger_url: str, size: str
) -> None:
    first, second = (Draw.of(cut, SIZES[size]) for _ in range(2))
    breaking(cut, BEFORE_COMMIT, first)

    assert again(cut, second) == second.content

    raw = raw_bytes(ledger_url)
    assert first.found_in(raw) == []
    assert "its key" in second.found_in(raw)  # so a key would be found
    assert cut.budget("web")[0].spent.releases == 1
    assert [entry.kind for entry in cut.history("web", None, 10)] == ["charge", "created"]
    assert cut.verify("web")[1] is None


@pytest.mark.parametrize("size", SIZES)
def test_an_answer_whose_key_was_never_stored_is_drawn_again_and_charged_once(
    cut: Ledger, ledger_url: str, size: str
) -> None:
    draws = [Draw.of(cut, SIZES[size]) for _ in range(3)]
    breaking(cut, BEFORE_KEY, draws[0])
    unread = cut.release("first")
    assert (unread.is_unread, unread.has_answer, unread.answer_sha256, unread.size) == (True, False, None, None)
    with pytest.raises(LedgerUnavailable):
        list(cut.content(unread))
    assert cut.verify("web")[1] is None
    assert draws[0].found_in(raw_bytes(ledger_url)) == []

    # The second attempt breaks off at the same point.
    payable = cut.check(paid(release=GAUSSIAN), AT)
    assert payable is not None
    cut._connections.at = BEFORE_KEY
    with pytest.raises(LedgerUnavailable):
        cut.charge(paid(release=GAUSSIAN), AT, draws[1].answer, unread=payable.unread)
    assert again(cut, draws[2]) == draws[2].content

    raw = raw_bytes(ledger_url)
    assert [draw.found_in(raw) for draw in draws[:2]] == [[], []]
    assert cut.budget("web")[0].spent.releases == 1
    assert [entry.kind for entry in cut.history("web", None, 10)] == ["redrawn", "redrawn", "charge", "created"]
    assert cut.verify("web")[1] is None
    release = cut.release("first")
    assert (release.answer_sha256, release.size) == (draws[2].staged.sha256, SIZES[size])
    assert cut.check(paid(release=GAUSSIAN), AT) is None
    while cut.remove_abandoned("9999"):
        pass
    assert b"".join(cut.content(release)) == draws[2].content
    assert cut.verify("web")[1] is None


def test_draws_that_lose_a_race_leave_nothing_to_read(cut: Ledger, ledger_url: str) -> None:
    """Also on another budget: PostgreSQL then writes the rows of the loser before it sees the winner's."""
    rounds, racers = 4, 3
    draws: list[list[Draw]] = [[] for _ in range(rounds)]
    released: list[set[bytes]] = [set() for _ in range(rounds)]
    gate = threading.Barrier(racers)

    def run(number: int) -> None:
        with closing(open_ledger(ledger_url, SECRET)) as mine:
            for turn in range(rounds):
                draw = Draw.of(mine, 1000)
                draws[turn].append(draw)
                asked = paid(["web", "ads"][number % 2], f"race {turn}", release=GAUSSIAN)
                gate.wait()
                charged = mine.charge(asked, AT, draw.answer)
                if charged.is_new:
                    released[turn].add(draw.content)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(racers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    raw = raw_bytes(ledger_url)
    for turn, winners in zip(draws, released, strict=True):
        assert len(winners) == 1
        losers = [draw for draw in turn if draw.content not in winners]
        assert [draw.found_in(raw) for draw in losers] == [[]] * (racers - 1)


def test_another_process_may_take_the_place_of_one_that_stopped_and_one_answer_is_read(
    cut: Ledger, ledger_url: str
) -> None:
    """The first process did not end: it was slow. Its key comes too late, and it gives the answer of the other."""
    slow, fast = Draw.of(cut, 1000), Draw.of(cut, 1000)
    store_key = cut._connections.execute_alone

    def late(statement: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        with closing(open_ledger(ledger_url, SECRET)) as other:
            assert again(other, fast) == fast.content
        rows: list[tuple[Any, ...]] = store_key(statement, values)
        return rows

    cut._connections.execute_alone = late

    charged = cut.charge(paid(release=GAUSSIAN), AT, slow.answer)

    assert not charged.is_new
    assert b"".join(cut.content(charged.release)) == fast.content
    assert slow.found_in(raw_bytes(ledger_url)) == []
    assert cut.verify("web")[1] is None


def test_a_key_that_was_stored_meanwhile_is_not_replaced(cut: Ledger) -> None:
    first, second = Draw.of(cut, 1000), Draw.of(cut, 1000)
    asked = paid(release=GAUSSIAN)
    breaking(cut, BEFORE_KEY, first)
    payable = cut.check(asked, AT)
    assert payable is not None
    assert first.staged.place is not None
    assert again(cut, first) == first.content  # the first process goes on

    charged = cut.charge(asked, AT, second.answer, unread=payable.unread)

    assert not charged.is_new
    assert b"".join(cut.content(charged.release)) == first.content


def test_an_acknowledgement_that_is_lost_does_not_draw_again(cut: Ledger) -> None:
    """The key was stored, and the connection broke before the answer of the database: the statement is sent twice."""
    draw = Draw.of(cut, 1000)
    store_key = cut._connections.execute_alone

    def twice(statement: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        store_key(statement, values)
        rows: list[tuple[Any, ...]] = store_key(statement, values)
        return rows

    cut._connections.execute_alone = twice

    charged = cut.charge(paid(release=GAUSSIAN), AT, draw.answer)

    assert charged.is_new
    assert b"".join(cut.content(charged.release)) == draw.content


def test_a_connection_that_broke_before_the_key_is_replaced(postgres_ledger: Ledger) -> None:
    draw = Draw.of(postgres_ledger, 1000)
    connections = postgres_ledger._connections
    store_key = connections.execute_alone

    def broken(statement: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        ((backend,),) = connections._connection().execute("SELECT pg_backend_pid()").fetchall()
        with psycopg.connect(connections._url, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s)", (backend,))
        rows: list[tuple[Any, ...]] = store_key(statement, values)
        return rows

    connections.execute_alone = broken

    assert postgres_ledger.charge(paid(release=GAUSSIAN), AT, draw.answer).is_new
    assert b"".join(postgres_ledger.content(postgres_ledger.release("first"))) == draw.content


@pytest.fixture
def postgres_ledger(postgres: Any) -> Iterator[Ledger]:
    with closing(open_ledger(postgres.make_database(), SECRET)) as made:
        made.put_budget("web", Limit(10.0, 1e-3), "", AT)
        yield made


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Every write beyond this size of a file fails, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("room", [100, 4119, 4120, 9000, 12_000])
def test_a_full_disk_leaves_nothing_to_read_in_the_log_of_sqlite(tmp_path: Path, room: int) -> None:
    place = str(tmp_path / "ledger.sqlite3")
    with closing(open_ledger(place, SECRET)) as ledger:
        ledger.put_budget("web", Limit(10.0, 1e-3), "", AT)
        first, second = Draw.of(ledger, 1000), Draw.of(ledger, 1000)
        with largest_file(Path(place + "-wal").stat().st_size + room), pytest.raises(LedgerUnavailable):
            ledger.charge(paid(release=GAUSSIAN), AT, first.answer)
        assert first.found_in(raw_bytes(place)) == []

        assert again(ledger, second) == second.content

        assert first.found_in(raw_bytes(place)) == []
        assert ledger.verify("web")[1] is None


def test_the_key_is_written_to_sqlite_in_one_page_which_a_second_draw_overwrites(tmp_path: Path) -> None:
    """So the key is in the log if and only if it is committed: a page is written at once, or is cut short."""
    place = str(tmp_path / "ledger.sqlite3")
    log = Path(place + "-wal")
    with closing(open_ledger(place, SECRET)) as ledger:
        ledger.put_budget("web", Limit(10.0, 1e-3), "", AT)
        store_key, sizes = ledger._connections.execute_alone, []

        def full(statement: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
            with largest_file(log.stat().st_size + 4119):  # one byte too few
                rows: list[tuple[Any, ...]] = store_key(statement, values)
                return rows

        def measured(statement: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
            before = log.stat().st_size
            rows: list[tuple[Any, ...]] = store_key(statement, values)
            sizes.append(log.stat().st_size - before)
            return rows

        for number in range(20):
            first, second = Draw.of(ledger, 1000), Draw.of(ledger, 1000)
            ledger._connections.execute_alone = full
            with pytest.raises(LedgerUnavailable):
                ledger.charge(paid(key=str(number), release=GAUSSIAN), AT, first.answer)
            ledger._connections.execute_alone = measured
            assert again(ledger, second, str(number)) == second.content
            assert first.found_in(raw_bytes(place)) == []

        assert set(sizes) == {24 + 4096}


def test_who_can_only_write_to_the_database_gets_no_second_draw(cut: Ledger) -> None:
    """Not by removing a key, and not by writing a mark: only the secret makes one. A verification finds both."""
    draws = [Draw.of(cut, 1000) for _ in range(2)]
    asked = paid(release=GAUSSIAN)
    cut.charge(asked, AT, draws[0].answer)
    for key_too in (False, True):
        with cut._connections.transaction() as execute:
            ((answer, key, facts),) = execute("SELECT answer, key, facts FROM answer_keys")
            execute("DELETE FROM answer_keys")
            if key_too:
                execute(cut._sql.add_answer_key, (answer, bytes(32), bytes(72)))

        payable = cut.check(asked, AT)
        assert payable is not None
        with pytest.raises(LedgerUnavailable, match="removed by somebody else"):
            cut.charge(asked, AT, draws[1].answer, unread=payable.unread)
        assert cut.verify("web")[1] is not None
        with cut._connections.transaction() as execute:
            execute("DELETE FROM answer_keys")
            execute(cut._sql.add_answer_key, (answer, key, facts))
        assert cut.verify("web")[1] is None


def test_an_unread_answer_is_for_the_same_request_only_and_ends_with_the_time_of_answers(
    cut: Ledger, ledger_url: str
) -> None:
    first, second = Draw.of(cut, 1000), Draw.of(cut, 1000)
    breaking(cut, BEFORE_KEY, first)
    unread = cut.release("first").place
    assert unread is not None
    other = paid(request="another", release=GAUSSIAN)
    with pytest.raises(KeyReused):
        cut.charge(other, AT, second.answer, unread=unread.answer)

    assert cut.erase_answers(after(AT, 1), LATER) == 1

    with pytest.raises(AnswerErased):
        cut.charge(paid(release=GAUSSIAN), LATER, second.answer, unread=unread.answer)
    assert cut.verify("web")[1] is None
    assert first.found_in(raw_bytes(ledger_url)) == []


def test_the_notes_of_the_second_draw_are_its_own_and_what_people_said_stays(cut: Ledger) -> None:
    first, second = Draw.of(cut, 1000), Draw.of(cut, 1000)
    cut._connections.at = BEFORE_KEY
    with pytest.raises(LedgerUnavailable):
        cut.charge(noted("id 1", "weekly"), AT, first.answer)
    unread = cut.release("first").place
    assert unread is not None

    cut.charge(noted("id 2", "another text"), AT, second.answer, unread=unread.answer)

    notes = cut.release("first").notes
    assert (notes.release_id, notes.certificate, notes.description) == ("id 2", '{"id": "id 2"}', "weekly")
    assert cut.release_by_id("id 1") is None
    assert cut.verify("web")[1] is None
    with cut._connections.transaction() as execute:
        execute("UPDATE releases SET release_id = 'id 1'")
    assert cut.verify("web")[1] is not None


def noted(release_id: str, description: str) -> Charge:
    notes = Notes(release_id, description, certificate=f'{{"id": "{release_id}"}}')
    return replace(paid(release=GAUSSIAN), notes=notes)


def test_the_hash_of_an_erased_answer_is_still_covered_by_the_chain(cut: Ledger) -> None:
    draw = Draw.of(cut, 1000)
    cut.charge(paid(release=GAUSSIAN), AT, draw.answer)
    cut.erase_answers(after(AT, 1), LATER)

    release = cut.release("first")
    assert (release.answer_sha256, release.size) == (draw.staged.sha256, 1000)
    assert cut.verify("web")[1] is None
    with cut._connections.transaction() as execute:
        ((answer, key, facts),) = execute("SELECT answer, key, facts FROM answer_keys")
        execute("DELETE FROM answer_keys")
        execute(cut._sql.add_answer_key, (answer, key, bytes(facts)[:-1] + b"\0"))
    assert cut.verify("web")[1] is not None


def test_a_step_that_failed_is_repeated_with_the_same_bytes(cut: Ledger) -> None:
    """Other bytes under the same key and number would show both."""
    content = [secrets.token_bytes(2**20) for _ in range(2)]
    staging = Staging(cut._connections, Answer("x/y", lambda: content), AT)
    assert staging.step()
    cut._connections.at = BEFORE_COMMIT
    with pytest.raises(LedgerUnavailable):
        staging.step()
    while staging.step():
        pass
    staged = staging.finish()
    release = cut.charge(paid(release=GAUSSIAN), AT, lambda _budget, _number: staged).release

    assert b"".join(cut.content(release)) == b"".join(content)


@pytest.mark.parametrize("size", [0, 1, 1015, 1016, 70_000])
def test_a_part_is_opened_only_as_what_it_was_sealed(size: int) -> None:
    key, content = secrets.token_bytes(32), secrets.token_bytes(size)
    stored = sealed(content, key, "an answer", 3)

    assert opened(stored, key, "an answer", 3) == content
    assert (len(stored) - 16) % 1024 == 0  # its length says little
    changed = bytes([stored[0] ^ 1]) + stored[1:]
    for attempt in (
        (changed, key, "an answer", 3),
        (stored[:-1], key, "an answer", 3),
        (stored, secrets.token_bytes(32), "an answer", 3),
        (stored, key, "another answer", 3),
        (stored, key, "an answer", 2),
    ):
        with pytest.raises(ValueError, match="was changed"):
            opened(*attempt)
