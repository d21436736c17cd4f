"""Opening a ledger: it is created or migrated at start, forward only, and needs its own secret."""

import os
import re
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app.ledger.databases import statements
from app.ledger.databases.statements import MIGRATIONS, POSTGRES, SQLITE
from app.ledger.errors import KeyReused, LedgerUnavailable, WrongLedger
from app.ledger.opening import connections_of, is_postgres, open_ledger
from app.ledger.secret import Secret
from gsh.accounting.budget_limits import Limit
from gsh.accounting.composition import Cost
from tests.app.ledger.examples import AT, charge, paid

SECRET = "a secret for tests"
OLD_BUDGET = (
    "INSERT INTO budgets (id, epsilon, delta, description, s, d, charges, only_release, entries, head) "
    "VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
)
OLD_ENTRY = (
    "INSERT INTO entries (budget, number, kind, at, payload, hash, s, d, key) "
    "VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)"
)
"""As the first version wrote them."""


@pytest.mark.parametrize("version", range(len(MIGRATIONS) + 1))
def test_every_earlier_version_is_migrated_with_its_data(ledger_url: str, version: int) -> None:
    connections = connections_of(ledger_url)
    sql, dialect = connections.statements, POSTGRES if is_postgres(ledger_url) else SQLITE
    with connections.transaction(migrating=True) as execute:
        execute(sql.make_version)
        execute(sql.first_version, (version,))
        for statement in (statement for migration in sql.migrations[:version] for statement in migration):
            execute(statement)
        if version:
            execute(dialect.adapt(OLD_BUDGET), ("old", 1.0, 1e-4, "", "1/8", "1/1024", 2, None, 3, "0" * 64))
            for number in (2, 3):  # charges of different costs: the first settles how the budget is divided
                entry = ("old", number, "charge", AT, "{}", "0" * 64, number / 64, 1 / 2048, f"k{number}")
                execute(dialect.adapt(OLD_ENTRY), entry)
    connections.close()

    ledger = open_ledger(ledger_url, SECRET)

    if version in {1, 2}:  # from before budgets were divided
        assert ledger.budget("old")[0].limit == Limit(1.0, 1e-4, Cost(2 / 64, 1 / 2048))
    assert [budget.id for budget in ledger.budgets()] == (["old"] if version else [])
    ledger.put_budget("new", Limit(1.0, 1e-4), "", AT)
    assert charge(ledger, paid("new")) == b"42"
    ledger.close()
    again = open_ledger(ledger_url, SECRET)
    assert again.verify("new")[1] is None
    again.close()


def test_a_ledger_of_a_newer_version_is_left_alone(ledger_url: str) -> None:
    open_ledger(ledger_url, SECRET).close()
    connections = connections_of(ledger_url)
    with connections.transaction() as execute:
        execute(connections.statements.set_version, (len(MIGRATIONS) + 1,))

    with pytest.raises(WrongLedger):
        open_ledger(ledger_url, SECRET)
    connections.close()


def test_another_secret_is_refused(ledger_url: str) -> None:
    """With it no stored request would be recognised, and every retry would be refused."""
    open_ledger(ledger_url, SECRET).close()

    with pytest.raises(WrongLedger):
        open_ledger(ledger_url, "another secret")


def test_a_ledger_gets_another_secret_by_the_steps_in_the_operations_page(ledger_url: str) -> None:
    """Earlier paid requests are neither recognised nor released again. Everything else is unchanged."""
    ledger = open_ledger(ledger_url, SECRET)
    ledger.put_budget("web", Limit(1.0, 1e-4), "", AT)
    charge(ledger, paid(request=ledger.secret.fingerprint(b"body")))
    ledger.close()
    page = (Path(__file__).parents[3] / "docs" / "operations.md").read_text()
    (statement,) = re.findall(r"`(DELETE FROM [^`]+)`", page)
    connections = connections_of(ledger_url)
    with connections.transaction() as execute:
        execute(statement)
    connections.close()

    again = open_ledger(ledger_url, "another secret")

    with pytest.raises(KeyReused):
        charge(again, paid(request=again.secret.fingerprint(b"body")))
    assert again.budget("web")[0].spent.releases == 1
    again.seal()  # as `python -m app.keys seal` does
    assert again.verify("web")[1] is None
    again.close()
    with pytest.raises(WrongLedger):
        open_ledger(ledger_url, SECRET)


def test_the_secret_file_is_created_once_and_only_the_service_can_read_it(tmp_path: Path) -> None:
    place = str(tmp_path / "ledger.sqlite3")
    open_ledger(place, "").close()
    open_ledger(place, "").close()
    secret = tmp_path / "ledger.sqlite3.secret"

    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert len(bytes.fromhex(secret.read_text())) == 32
    assert secret.read_bytes() not in (tmp_path / "ledger.sqlite3").read_bytes()
    assert {path.name for path in tmp_path.iterdir()} <= {f"ledger.sqlite3{end}" for end in ("", ".secret")}


def test_a_lost_secret_is_not_replaced(tmp_path: Path) -> None:
    """A new secret would be wrong, and would take the place of the right one."""
    place, secret = tmp_path / "ledger.sqlite3", tmp_path / "ledger.sqlite3.secret"
    open_ledger(str(place), "").close()
    right = secret.read_bytes()
    secret.unlink()

    with pytest.raises(WrongLedger, match="its secret is not") as refused:
        open_ledger(str(place), "")
    assert str(secret) in str(refused.value)
    assert not secret.exists()
    secret.write_bytes(right)
    open_ledger(str(place), "").close()


def test_a_secret_that_was_given_once_must_be_given_again(tmp_path: Path) -> None:
    place = str(tmp_path / "ledger.sqlite3")
    open_ledger(place, SECRET).close()

    with pytest.raises(WrongLedger, match="GSH_LEDGER_SECRET"):
        open_ledger(place, "")
    open_ledger(place, SECRET).close()


@pytest.mark.parametrize("size", [0, 1, 31])
def test_a_secret_that_is_cut_off_is_refused(tmp_path: Path, size: int) -> None:
    """A short secret can be guessed, and everyone knows an empty one."""
    secret = tmp_path / "ledger.sqlite3.secret"
    secret.write_bytes(b"s" * size)

    with pytest.raises(WrongLedger, match="less than 32 bytes"):
        open_ledger(str(tmp_path / "ledger.sqlite3"), "")
    assert {path.name for path in tmp_path.iterdir()} == {"ledger.sqlite3.secret"}


def test_threads_that_create_a_ledger_together_share_one_secret(tmp_path: Path) -> None:
    place = str(tmp_path / "ledger.sqlite3")

    with ThreadPoolExecutor(8) as threads:
        ledgers = list(threads.map(lambda _number: open_ledger(place, ""), range(8)))

    assert len({ledger.secret.mark for ledger in ledgers}) == 1
    for ledger in ledgers:
        ledger.close()


def test_postgresql_needs_a_configured_secret() -> None:
    with pytest.raises(WrongLedger):
        open_ledger("postgresql://127.0.0.1:1/none", "")


@pytest.mark.parametrize("place", ["missing/ledger.sqlite3", "postgresql://127.0.0.1:1/none"])
def test_an_unreachable_ledger_is_unavailable(tmp_path: Path, place: str) -> None:
    with pytest.raises(LedgerUnavailable, match=r"unable to open database file|Connection refused"):
        open_ledger(place if "//" in place else str(tmp_path / place), SECRET)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ledger:hunter2@127.0.0.1:1/none",
        "postgresql://ledger:hunter2/x@127.0.0.1:1/none",
        "postgresql://ledger:hunter2%zz@127.0.0.1:1/none",
        "postgresql://ledger:hunter2@[::1/none",
        "postgresql://127.0.0.1:1/none?password=hunter2&sslmode=hunter2",
        'postgresql://127.0.0.1:1/none?sslmode="hunter2"hunter2',
    ],
)
def test_the_reason_never_contains_the_password(url: str) -> None:
    with pytest.raises(LedgerUnavailable) as refused:
        open_ledger(url, SECRET)

    assert str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_a_file_that_is_no_ledger_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "noise").write_bytes(os.urandom(8192))

    with pytest.raises(LedgerUnavailable):
        open_ledger(str(tmp_path / "noise"), SECRET)


def test_fingerprints_depend_on_the_secret_and_on_the_boundaries_of_parts() -> None:
    mine, other = Secret(b"a"), Secret(b"b")

    assert len({mine.fingerprint(b"xy", b"z"), mine.fingerprint(b"x", b"yz"), other.fingerprint(b"xy", b"z")}) == 3


def test_sqlite_waits_for_the_disk(tmp_path: Path) -> None:
    """WAL with synchronous=FULL (2): a commit that has returned survives a loss of power."""
    connections = connections_of(str(tmp_path / "ledger.sqlite3"))
    with connections.reading() as execute:
        assert execute("PRAGMA journal_mode") == [("wal",)]
        assert execute("PRAGMA synchronous") == [(2,)]
    connections.close()


def test_every_statement_is_the_same_for_both_databases() -> None:
    ours, theirs = statements.Statements(statements.SQLITE), statements.Statements(statements.POSTGRES)

    for name, statement in vars(ours).items():
        other = getattr(theirs, name)
        if isinstance(statement, str):
            assert statement.strip() == other.replace("%s", "?").replace("FOR UPDATE", "").strip()
