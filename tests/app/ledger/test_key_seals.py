"""Access keys are sealed by the ledger's secret: a database writer without the secret cannot change access."""

import json
import shutil
from contextlib import closing, suppress
from pathlib import Path

import pytest

from app.ledger.access.access_keys import AccessKey, _store, hash_of
from app.ledger.databases.statements import MIGRATIONS
from app.ledger.errors import LedgerUnavailable, WrongLedger
from app.ledger.opening import connections_of, open_ledger
from app.ledger.store import Ledger
from tests.app.ledger.examples import AT
from tests.app.ledger.test_division import OLD_LEDGER, OLD_SECRET

INSERT = "INSERT INTO access_keys (id, hash, scopes, budgets, note, made_at, revoked_at) VALUES "
TAMPERING = {
    "inserted": (INSERT + f"('mine', '{'0' * 64}', 'admin', '', '', '{AT}', NULL)", {"mine"}),
    "with another hash": ("UPDATE access_keys SET hash = '0' WHERE id = 'active'", {"active"}),
    "with another scope": ("UPDATE access_keys SET scopes = 'admin' WHERE id = 'active'", {"active"}),
    "bound to nothing": ("UPDATE access_keys SET budgets = '' WHERE id = 'active'", {"active"}),
    "with another note": ("UPDATE access_keys SET note = 'x' WHERE id = 'active'", {"active"}),
    "older": ("UPDATE access_keys SET made_at = '2020' WHERE id = 'active'", {"active"}),
    "without an expiry": ("UPDATE access_keys SET expires_at = NULL WHERE id = 'brief'", {"brief"}),
    "with a later expiry": ("UPDATE access_keys SET expires_at = '2030-01-01T00:00:00Z' WHERE id = 'brief'", {"brief"}),
    "expired": (f"UPDATE access_keys SET expires_at = '{AT}' WHERE id = 'active'", {"active"}),
    "said to replace another": ("UPDATE access_keys SET replaces = 'revoked' WHERE id = 'active'", {"active"}),
    "restored": ("UPDATE access_keys SET revoked_at = NULL WHERE id = 'revoked'", {"revoked"}),
    "deleted": ("DELETE FROM access_keys WHERE id = 'active'", {"active"}),
    "deleted after it was revoked": ("DELETE FROM access_keys WHERE id = 'revoked'", {"revoked"}),
    "all deleted": ("DELETE FROM access_keys", {"active", "brief", "revoked"}),
    "renamed": ("UPDATE access_keys SET id = 'other' WHERE id = 'active'", {"active", "other"}),
    "without seals": ("DELETE FROM ledger WHERE name = 'access_keys'", {""}),
    "with seals that are none": ("UPDATE ledger SET value = '[]' WHERE name = 'access_keys'", {""}),
    "with another seal": (
        "UPDATE ledger SET value = replace(value, '\"active\"', '\"mine\"') WHERE name = 'access_keys'",
        {""},
    ),
}


def key(name: str, scope: str = "release", expires_at: str | None = None) -> AccessKey:
    return AccessKey(name, hash_of(name), frozenset({scope}), frozenset({"web"}), "", AT, expires_at=expires_at)


@pytest.fixture(autouse=True)
def some_keys(ledger: Ledger) -> None:
    ledger.keys.add(key("active"))
    ledger.keys.add(key("brief", expires_at=LATER))
    ledger.keys.add(key("revoked", "admin"))
    assert ledger.keys.revoke("revoked", AT)


LATER, TOO_LATE = "2026-11-17T12:00:00Z", "2026-11-18T12:00:00Z"


def usable(ledger: Ledger) -> list[str]:
    return [each.id for each in ledger.keys.read().usable]


def test_created_and_revoked_access_keys_are_intact(ledger: Ledger) -> None:
    found = ledger.keys.read()

    assert found.faults == {}
    assert [each.id for each in found.every] == ["active", "brief", "revoked"]
    assert usable(ledger) == ["active", "brief"]
    assert not ledger.keys.revoke("revoked", AT)
    assert not ledger.keys.revoke("none", AT)
    assert ledger.keys.read() == found


@pytest.mark.parametrize("tampering", TAMPERING)
def test_an_access_key_changed_in_the_database_is_found_and_not_accepted(ledger: Ledger, tampering: str) -> None:
    statement, at_fault = TAMPERING[tampering]
    with ledger._connections.transaction() as execute:
        execute(statement)

    found = ledger.keys.read()
    assert found.faults.keys() == at_fault
    assert not at_fault & {each.id for each in found.usable}
    assert found.any_made  # so an access key stays mandatory
    expected = [] if "" in at_fault else [name for name in ("active", "brief") if name not in at_fault]
    assert [each.id for each in found.usable] == expected


def test_a_revoked_access_key_restored_with_its_old_seal_is_found(ledger: Ledger) -> None:
    """All seals are sealed together, so an earlier copy of one does not fit."""
    with ledger._connections.reading() as execute:
        ((before,),) = execute(ledger._sql.fact, ("access_keys",))
    ledger.keys.revoke("active", AT)
    with ledger._connections.reading() as execute:
        ((after,),) = execute(ledger._sql.fact, ("access_keys",))
    with ledger._connections.transaction() as execute:
        old, new = (value.partition('"active": "')[2][:64] for value in (before, after))
        execute("UPDATE access_keys SET revoked_at = NULL WHERE id = 'active'")
        execute(f"UPDATE ledger SET value = replace(value, '{new}', '{old}') WHERE name = 'access_keys'")

    assert usable(ledger) == []
    assert ledger.keys.read().faults.keys() == {""}


def test_a_rotated_access_key_ends_after_the_overlap_and_never_later_than_it_would_have(ledger: Ledger) -> None:
    for name, ends in (("active", TOO_LATE), ("brief", LATER)):
        rotated = ledger.keys.rotate(name, AT, TOO_LATE)
        assert rotated is not None
        secret, made = rotated
        every = {each.id: each for each in ledger.keys.read().every}

        assert every[made.id] == made
        assert made.hash == hash_of(secret)
        assert (made.scopes, made.budgets, made.note) == (every[name].scopes, every[name].budgets, every[name].note)
        assert made.replaces == name
        assert every[name].expires_at == ends
    assert made.expires_at == LATER  # made for a day, as the old one was
    assert ledger.keys.read().faults == {}


def test_only_an_access_key_that_is_accepted_now_is_rotated_and_only_once(ledger: Ledger) -> None:
    with ledger._connections.transaction() as execute:
        execute(TAMPERING["with another scope"][0])
    before = ledger.keys.read()

    for name, at in (("active", AT), ("revoked", AT), ("none", AT), ("brief", LATER)):
        assert ledger.keys.rotate(name, at, TOO_LATE) is None
    assert ledger.keys.read() == before
    assert ledger.keys.rotate("brief", AT, TOO_LATE, TOO_LATE) is not None
    assert ledger.keys.rotate("brief", AT, TOO_LATE) is None
    assert ledger.keys.read().faults.keys() == {"active"}


def test_seals_of_keys_without_an_expiry_are_those_of_earlier_versions(ledger: Ledger) -> None:
    """A ledger with sealed access keys from before there were expiries is not sealed again."""
    row = ("active", hash_of("active"), "release", "web", "", AT, None)
    with ledger._connections.reading() as execute:
        ((stored,),) = execute(ledger._sql.fact, ("access_keys",))

    earlier = ledger.secret.fingerprint(b"access key", *(json.dumps(value).encode() for value in row))
    assert json.loads(stored)["seals"]["active"] == earlier


def test_a_change_of_the_list_shows_in_its_seal(ledger: Ledger) -> None:
    seals = [ledger.keys.read().seal]
    ledger.keys.add(key("third"))
    seals.append(ledger.keys.read().seal)
    ledger.keys.revoke("third", AT)
    seals.append(ledger.keys.read().seal)

    assert len(set(seals)) == 3


def test_creating_and_revoking_access_keys_does_not_seal_changed_rows(ledger: Ledger) -> None:
    with ledger._connections.transaction() as execute:
        execute(TAMPERING["with another scope"][0])
        execute(TAMPERING["inserted"][0])
    ledger.keys.add(key("third"))
    ledger.keys.revoke("third", AT)

    assert ledger.keys.read().faults.keys() == {"active", "mine"}


def test_with_another_secret_no_key_is_accepted_until_an_operator_seals_them(ledger: Ledger, ledger_url: str) -> None:
    with ledger._connections.transaction() as execute:
        execute("DELETE FROM ledger WHERE name = 'secret'")
    ledger.close()

    with closing(open_ledger(ledger_url, "another secret")) as again:
        assert usable(again) == []
        assert again.keys.read().any_made
        with pytest.raises(WrongLedger, match=r"python -m app\.keys seal"):
            again.keys.add(key("third"))
        with pytest.raises(WrongLedger):
            again.keys.rotate("active", AT, LATER)
        again.keys.seal(AT)
        assert usable(again) == ["active", "brief"]
        again.keys.add(key("third"))


def test_access_keys_created_by_several_connections_are_all_sealed(ledger: Ledger, ledger_url: str) -> None:
    others = [open_ledger(ledger_url, "a secret for tests") for _ in range(3)]
    for number, other in enumerate(others):
        other.keys.add(key(f"key {number}"))
        other.close()

    assert ledger.keys.read().faults == {}
    assert len(usable(ledger)) == 5


def test_keys_of_an_earlier_version_are_sealed_when_it_is_migrated(tmp_path: Path) -> None:
    place = tmp_path / "old.sqlite3"
    shutil.copy(OLD_LEDGER, place)

    with closing(open_ledger(str(place), OLD_SECRET)) as ledger:
        assert ledger.keys.read().faults == {}
        assert usable(ledger) == ["00000001"]


def test_bytes_in_a_text_column_are_a_fault(tmp_path: Path) -> None:
    """SQLite stores values of any type, and even an access key without an id."""
    place = str(tmp_path / "other.sqlite3")
    with closing(open_ledger(place, "a secret for tests")) as ledger:
        ledger.keys.add(key("active"))
        connections = connections_of(place)
        with closing(connections), connections.transaction() as execute:
            execute(INSERT + f"(NULL, 'h', 'admin', '', '', '{AT}', NULL)")
            execute("UPDATE access_keys SET note = x'00' WHERE id = 'active'")

        assert ledger.keys.read().faults == {"None": "cannot be read", "active": "cannot be read"}
        assert usable(ledger) == []


@pytest.mark.parametrize("forged", ["", "DELETE FROM ledger WHERE name = 'access_keys'", "DELETE FROM ledger"])
@pytest.mark.parametrize("version", range(len(MIGRATIONS) + 1))
def test_setting_the_version_back_seals_nothing(ledger: Ledger, ledger_url: str, version: int, forged: str) -> None:
    """Migrations would run again. An inserted access key must not count as one of an earlier version."""
    with ledger._connections.transaction() as execute:
        execute(TAMPERING["inserted"][0])
        execute(f"UPDATE schema_version SET version = {version}")
        if forged:
            execute(forged)
    ledger.close()

    with suppress(LedgerUnavailable), closing(open_ledger(ledger_url, "a secret for tests")) as again:
        assert "mine" not in usable(again)
        assert again.keys.read().faults


def test_sealed_keys_of_the_version_before_expiries_are_accepted_after_the_migration(
    ledger: Ledger, ledger_url: str
) -> None:
    """Its table has no column for them, and its seals stay as they are."""
    assert ledger.keys.revoke("brief", AT)
    with ledger._connections.transaction() as execute:
        execute("DELETE FROM access_keys WHERE id = 'brief'")
        ((stored,),) = execute(ledger._sql.fact, ("access_keys",))
        seals = {name: seal for name, seal in json.loads(stored)["seals"].items() if name != "brief"}
        _store(execute, ledger._sql, ledger.secret, seals)
        before = next(number for number, each in enumerate(MIGRATIONS) if "expires_at" in each[0])
        for column in ("expires_at", "replaces"):
            execute(f"ALTER TABLE access_keys DROP COLUMN {column}")
        if before == len(MIGRATIONS) - 1:  # later migrations would run twice
            execute(ledger._sql.set_version, (before,))
        else:
            for statement in ledger._sql.migrations[before]:
                execute(statement)
    ledger.close()

    with closing(open_ledger(ledger_url, "a secret for tests")) as again:
        assert again.keys.read().faults == {}
        assert usable(again) == ["active"]
        assert again.keys.rotate("active", AT, LATER) is not None
