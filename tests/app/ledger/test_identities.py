"""Who can only write to the database, without the ledger's secret, does not become another client there."""

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from app.ledger.access.access_keys import new_key
from app.ledger.charges import Charge
from app.ledger.errors import KeyReused, LedgerUnavailable, NotOwner
from app.ledger.opening import open_ledger
from app.ledger.releases import Commit
from app.ledger.store import Ledger
from gsh.accounting.budget_limits import Limit
from tests.app.ledger.examples import AT, GAUSSIAN, charge, paid

DIGEST = "a" * 64
LATER = "2026-12-16T12:00:00Z"


@pytest.fixture(autouse=True)
def web(ledger: Ledger) -> None:
    ledger.put_budget("web", Limit(10.0, 1e-3), "page views", AT)


def opening(client: str, key: str = "spark") -> Charge:
    return replace(paid(key=key, request="", release=GAUSSIAN, client=client), content="c", state="open")


def change(ledger: Ledger, statement: str, values: tuple[Any, ...] = ()) -> None:
    with ledger._connections.transaction() as execute:
        execute(ledger._sql._adapt(statement), values)


def hashed(ledger: Ledger, client: str) -> str:
    """The keyed hash of a client, which the client finds in the rows of its own charges."""
    return ledger._hashed(client)


CHANGES: dict[str, Callable[[Ledger], None]] = {
    "another client": lambda ledger: change(
        ledger, "UPDATE entries SET client = %s WHERE key = 'spark'", (hashed(ledger, "thief"),)
    ),
    "no client, as in version 0.1": lambda ledger: change(
        ledger, "UPDATE entries SET client = NULL WHERE key = 'spark'"
    ),
    "a seal of another release": lambda ledger: change(
        ledger, "UPDATE releases SET seal = (SELECT seal FROM releases WHERE key = 'own') WHERE key = 'spark'"
    ),
}


@pytest.mark.parametrize("name", ["another client", "no client, as in version 0.1"])
def test_a_changed_client_gets_no_seed_and_ends_no_release(ledger: Ledger, name: str) -> None:
    ledger.charge(opening("owner"), AT)
    ledger.charge(opening("thief", "own"), AT)
    with pytest.raises(KeyReused):
        ledger.charge(opening("thief"), AT)
    with pytest.raises(NotOwner):
        ledger.commit("spark", Commit(DIGEST, None, LATER), None, "thief")
    CHANGES[name](ledger)

    for also in (None, "a seal of another release"):
        if also is not None:
            CHANGES[also](ledger)
        for attempt in (
            lambda: ledger.charge(opening("thief"), AT),
            lambda: ledger.check(opening("thief"), AT),
            lambda: ledger.recall(opening("thief"), AT),
            lambda: ledger.seed(ledger.release("spark")),
            lambda: ledger.commit("spark", Commit(DIGEST, None, LATER), None, "thief"),
        ):
            with pytest.raises(LedgerUnavailable, match="not as it was sealed"):
                attempt()
        assert ledger.verify("web")[1] is not None


def test_the_seal_alone_finds_a_changed_client_in_a_chain_with_recomputed_hashes(ledger: Ledger) -> None:
    """The hashes of the chain have no key: who can write the database can compute them again."""
    ledger.charge(opening("owner"), AT)
    thief = hashed(ledger, "thief")
    with ledger._connections.transaction() as execute:
        ((payload,),) = execute("SELECT payload FROM entries WHERE key = 'spark'")
    details = json.loads(payload) | {"client": thief}
    budget = ledger.standing("web")
    first = ledger.history("web", None, 10)[-1]
    before = replace(budget, entries=1, head=first.hash)
    forged, entry = before._appended("charge", AT, details)
    change(
        ledger,
        "UPDATE entries SET payload = %s, hash = %s, client = %s WHERE key = 'spark'",
        (entry.payload, entry.hash, thief),
    )
    change(ledger, "UPDATE budgets SET head = %s", (forged.head,))

    fault = ledger.verify("web")[1]

    assert fault is not None
    assert fault.detail == "has a client or a request that this service did not seal"
    with pytest.raises(LedgerUnavailable):
        ledger.charge(opening("thief"), AT)


def test_the_nonce_of_another_client_does_not_give_its_seed(ledger: Ledger) -> None:
    """Not even under its idempotency key: the client is part of the seed."""
    seed = ledger.seed(ledger.charge(opening("owner"), AT).release)
    with ledger._connections.transaction() as execute:
        ((nonce,),) = execute("SELECT nonce FROM seeds")
        for table in ("seeds", "releases", "entries"):
            execute(f"DELETE FROM {table} WHERE key = 'spark'")
        execute("UPDATE budgets SET entries = 1")
    ledger.charge(opening("thief"), AT)
    change(ledger, "UPDATE seeds SET nonce = %s", (bytes(nonce),))

    stolen = ledger.seed(ledger.release("spark"))

    assert stolen is not None
    assert stolen != seed
    change(ledger, "UPDATE releases SET version = 1")  # whose seeds do not depend on the client
    with pytest.raises(LedgerUnavailable):
        ledger.seed(ledger.release("spark"))


@pytest.mark.parametrize("column", ["client", "request"])
def test_a_changed_owner_of_an_answer_cannot_test_guesses_about_it(ledger: Ledger, column: str) -> None:
    charge(ledger, paid(client="owner"))
    change(ledger, "UPDATE entries SET client = %s WHERE key = 'first'", (hashed(ledger, "thief"),))
    if column == "request":
        change(ledger, "UPDATE entries SET request = 'r2' WHERE key = 'first'")

    for attempt in (ledger.recall, ledger.recall_same_bytes, ledger.check):
        with pytest.raises(LedgerUnavailable, match="not as it was sealed"):
            attempt(paid(client="thief", request="r2"), AT)


@pytest.fixture
def rotated(ledger: Ledger) -> dict[str, str]:
    """The ids of an owner's access key, and of another one that was rotated."""
    made = {}
    for name in ("owner", "thief"):
        _, key = new_key(frozenset({"release"}), frozenset(), name, AT)
        ledger.keys.add(key)
        made[name] = key.id
    second = ledger.keys.rotate(made["thief"], AT, LATER)
    assert second is not None
    return made | {"second": second[1].id}


def test_an_access_key_whose_predecessor_was_changed_is_not_accepted(ledger: Ledger, rotated: dict[str, str]) -> None:
    """What it was rotated from says which client it is. Only its own row was compared with its seal before."""
    found = ledger.keys.read()
    assert {key.id: found.first_of(key) for key in found.usable}[rotated["second"]] == rotated["thief"]
    change(ledger, "UPDATE access_keys SET replaces = %s WHERE id = %s", (rotated["owner"], rotated["thief"]))

    assert [key.id for key in ledger.keys.read().usable] == [rotated["owner"]]
    assert ledger.keys.rotate(rotated["second"], AT, LATER) is not None  # to one that is not accepted either
    assert [key.id for key in ledger.keys.read().usable] == [rotated["owner"]]


def test_to_revoke_a_changed_access_key_does_not_seal_the_change(ledger: Ledger, rotated: dict[str, str]) -> None:
    change(ledger, "UPDATE access_keys SET replaces = %s WHERE id = %s", (rotated["owner"], rotated["thief"]))

    assert ledger.keys.revoke(rotated["thief"], LATER)

    assert [key.id for key in ledger.keys.read().usable] == [rotated["owner"]]
    change(ledger, "UPDATE access_keys SET replaces = NULL, revoked_at = NULL WHERE id = %s", (rotated["thief"],))
    assert [key.id for key in ledger.keys.read().usable] == [rotated["owner"]]


def test_an_access_key_whose_predecessor_is_gone_is_not_accepted(ledger: Ledger, rotated: dict[str, str]) -> None:
    change(ledger, "DELETE FROM access_keys WHERE id = %s", (rotated["thief"],))

    assert [key.id for key in ledger.keys.read().usable] == [rotated["owner"]]


def test_releases_are_sealed_once_and_not_because_someone_lowers_the_version(ledger: Ledger, ledger_url: str) -> None:
    """A later start must not seal what somebody has written meanwhile."""
    ledger.charge(opening("owner"), AT)
    change(ledger, "UPDATE entries SET client = %s WHERE key = 'spark'", (hashed(ledger, "thief"),))
    change(ledger, "DELETE FROM ledger WHERE name = 'secret'")

    with closing(open_ledger(ledger_url, "a secret for tests")) as again, pytest.raises(LedgerUnavailable):
        again.charge(opening("thief"), AT)
