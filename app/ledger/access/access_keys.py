"""Access keys: random, shown once, stored as hashes, with scopes, and optionally bound to budgets or to a time.

An access key has 256 random bits that nobody can guess, so its plain SHA-256 can be stored. An operator who chooses an
access key must choose one that nobody can guess.

The ledger's secret seals the list of access keys. A writer to the database without the secret cannot add, change or
remove one unnoticed. A writer can restore an earlier list; only a seal noted elsewhere shows it.
"""

import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

from app.ledger.access.access_history import AccessEntry, AccessHead, AccessHistory
from app.ledger.access.scopes import SCOPES
from app.ledger.clock import after, seconds_of
from app.ledger.databases import Connections, Execute, Statements
from app.ledger.errors import WrongLedger
from app.ledger.secret import Secret
from app.ledger.state import By, HistoryFault

__all__ = [
    "AccessAudit",
    "AccessKey",
    "KeyTable",
    "SealedKeys",
    "begin_history",
    "given_key",
    "hash_of",
    "new_key",
    "seal_all",
]

_SEALS = "access_keys"
"""The name of the fact that holds the seal of each access key, by its id, and a seal over all seals."""

_NO_SEAL = ""
"""The seal of an access key that was revoked when it was not as it was sealed. No row has it."""


KeyState: TypeAlias = Literal["active", "expired", "revoked", "unsealed"]
"""Only an active access key is accepted. An unsealed one is not as this service has made it."""


@dataclass(frozen=True, slots=True)
class AccessKey:
    """The stored part of an access key. ``budgets`` are the patterns of names that it is bound to; empty for all."""

    id: str
    hash: str
    scopes: frozenset[str]
    budgets: frozenset[str]
    note: str
    made_at: str
    revoked_at: str | None = None
    expires_at: str | None = None
    replaces: str | None = None
    """The id of the access key that was rotated to this one."""

    @property
    def row(self) -> tuple[str | None, ...]:
        scopes, budgets = _joined(self.scopes), _joined(self.budgets)
        first = self.id, self.hash, scopes, budgets, self.note, self.made_at, self.revoked_at
        return *first, self.expires_at, self.replaces

    def state(self, at: str, found: "SealedKeys") -> KeyState:
        """Its state at a time, among all access keys."""
        if not found.is_sealed(self):
            return "unsealed"
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.has_expired(at) else "active"

    def has_expired(self, at: str) -> bool:
        return self.expires_at is not None and self.expires_at <= at


@dataclass(frozen=True)
class SealedKeys:
    """The access keys of a ledger, compared with their seals."""

    every: tuple[AccessKey, ...]
    """Also revoked ones, in the order they were made."""
    faults: Mapping[str, str]
    """Why access keys are not as they were sealed, by id; the empty id is for the whole list."""
    seal: str
    """The seal over the whole list: note it elsewhere."""

    @property
    def usable(self) -> list[AccessKey]:
        """Those that are accepted, until they expire."""
        return [key for key in self.every if key.revoked_at is None and self.is_sealed(key)]

    @property
    def any_made(self) -> bool:
        """Whether an access key was ever made, even if it is gone."""
        return bool(self.every or self.faults)

    def shown(self, key: AccessKey, at: str) -> dict[str, Any]:
        """An access key as a document, at a time, without its hash."""
        return {
            "id": key.id,
            "state": key.state(at, self),
            "scopes": sorted(key.scopes),
            "budgets": sorted(key.budgets),
            "note": key.note,
            "made_at": key.made_at,
            "expires_at": key.expires_at,
            "revoked_at": key.revoked_at,
            "replaces": key.replaces,
            "replaced_by": self._replaced_by.get(key.id),
        }

    def first_of(self, key: AccessKey) -> str:
        """The id of the access key that was rotated, perhaps several times, to this one: one client with many keys."""
        return self._rotated(key)[-1].id

    def is_sealed(self, key: AccessKey) -> bool:
        """Whether the access key, and all that it was rotated from, are as they were sealed: they say who it is."""
        names = {name for each in self._rotated(key) for name in (each.id, each.replaces)}
        return not {"", *names} & self.faults.keys()

    def _rotated(self, key: AccessKey) -> list[AccessKey]:
        """The access key, and those before it, the latest first."""
        chain = [key]
        while (before := self._by_id.get(chain[-1].replaces or "")) is not None and before not in chain:
            chain.append(before)
        return chain

    @cached_property
    def _replaced_by(self) -> Mapping[str, str]:
        return {each.replaces: each.id for each in self.every if each.replaces is not None}

    @cached_property
    def _by_id(self) -> Mapping[str, AccessKey]:
        return {each.id: each for each in self.every}


def new_key(
    scopes: frozenset[str], budgets: frozenset[str], note: str, at: str, expires_at: str | None = None
) -> tuple[str, AccessKey]:
    """A new access key, which is shown only once, and its stored part."""
    name = secrets.token_hex(4)
    key = f"gsh_{name}_{secrets.token_urlsafe(32)}"
    return key, AccessKey(name, hash_of(key), scopes, budgets, note, at, expires_at=expires_at)


def given_key(key: str, note: str, at: str) -> AccessKey:
    """The stored part of an access key that an operator gives, for everything. Its id says nothing about it."""
    return AccessKey(secrets.token_hex(4), hash_of(key), frozenset(SCOPES), frozenset(), note, at)


def hash_of(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class AccessAudit:
    """The access keys with the history that must explain them, read at one moment."""

    keys: SealedKeys
    head: AccessHead | None
    """None if the history is not sealed by this ledger's secret."""
    fault: HistoryFault | None


class KeyTable:
    """The access keys of a ledger, and the history of access."""

    def __init__(self, connections: Connections, secret: Secret) -> None:
        self._connections = connections
        self._sql = connections.statements
        self._secret = secret
        self._history = AccessHistory(connections.statements, secret)

    def add(self, key: AccessKey, by: By | None = None) -> None:
        with self._connections.transaction() as execute:
            self._add(execute, self._locked_seals(execute), key, by)

    def _add(self, execute: Execute, seals: dict[str, str], key: AccessKey, by: By | None) -> None:
        execute(self._sql.add_key, key.row)
        _store(execute, self._sql, self._secret, seals | {key.id: _seal(self._secret, key.row)})
        self._history.add(execute, "made", key.made_at, _recorded(key), by)

    def add_once(self, key: AccessKey) -> AccessKey:
        """Add it, unless its hash is there already, perhaps revoked. The result is the one that is there."""
        with self._connections.transaction() as execute:
            seals = self._locked_seals(execute)
            every = [each for each in map(_key_of, execute(self._sql.keys)) if each is not None]
            found = next((each for each in every if each.hash == key.hash), None)
            if found is None:
                self._add(execute, seals, key, None)
            return found or key

    def read(self) -> SealedKeys:
        with self._connections.reading() as execute:
            return self.read_in(execute)

    def read_in(self, execute: Execute) -> SealedKeys:
        """The same within a transaction."""
        seals = _opened(self._secret, execute(self._sql.fact, (_SEALS,)))
        stored = {str(row[0]): row for row in execute(self._sql.keys)}
        keys = {name: _key_of(row) for name, row in stored.items()}
        faults = {name: "cannot be read" for name, key in keys.items() if key is None}
        if seals is None:
            faults[""] = "has no seal by this ledger's secret"
        else:
            readable = keys.keys() - faults.keys()
            faults |= dict.fromkeys(seals.keys() - keys.keys(), "is gone")
            faults |= dict.fromkeys(readable - seals.keys(), "was not made by this service")
            altered = (name for name in readable & seals.keys() if _seal(self._secret, stored[name]) != seals[name])
            faults |= dict.fromkeys(altered, "is not as it was sealed")
        every = tuple(key for key in keys.values() if key is not None)
        return SealedKeys(every, faults, "" if seals is None else _seal_over(self._secret, seals))

    def revoke(self, name: str, at: str, by: By | None = None) -> bool:
        """Whether there was such an access key, not revoked before."""
        with self._connections.transaction() as execute:
            seals = self._locked_seals(execute)
            found = [_key_of(row) for row in execute(self._sql.keys) if row[0] == name and row[6] is None]
            for key in found:
                execute(self._sql.revoke_key, (at, name))
                if key is not None:
                    revoked = _seal(self._secret, replace(key, revoked_at=at).row)
                    # What somebody else wrote into the row is not sealed: its successors would get another client.
                    seal = revoked if _is_sealed(self._secret, key, seals) else _NO_SEAL
                    _store(execute, self._sql, self._secret, seals | {name: seal})
                self._history.add(execute, "revoked", at, {"key": name}, by)
            return bool(found)

    def rotate(
        self, name: str, at: str, until: str, expires_at: str | None = None, by: By | None = None
    ) -> tuple[str, AccessKey] | None:
        """A new access key in place of another, which expires at ``until``, or before if it has an earlier expiry.

        If no expiry is given, the new one lives as long as the old one was made for. The result is None if the old
        one is not accepted now, or was replaced before.
        """
        with self._connections.transaction() as execute:
            seals = self._locked_seals(execute)
            every = [key for key in map(_key_of, execute(self._sql.keys)) if key is not None]
            old = next((key for key in every if key.id == name and _is_sealed(self._secret, key, seals)), None)
            if old is None or old.revoked_at is not None or old.has_expired(at):
                return None
            if any(key.replaces == name for key in every):
                return None
            if expires_at is None and old.expires_at is not None:
                expires_at = after(at, seconds_of(old.expires_at) - seconds_of(old.made_at))
            key, made = new_key(old.scopes, old.budgets, old.note, at, expires_at)
            made = replace(made, replaces=name)
            ending = replace(old, expires_at=min(until, old.expires_at or until))
            execute(self._sql.add_key, made.row)
            execute(self._sql.expire_key, (ending.expires_at, name))
            changed = {each.id: _seal(self._secret, each.row) for each in (made, ending)}
            _store(execute, self._sql, self._secret, seals | changed)
            self._history.add(execute, "rotated", at, _recorded(made) | {"until": ending.expires_at}, by)
            return key, made

    def record_reading(self, release: str, budget: str, at: str, by: By) -> None:
        """Record that the answer of a release goes to an access key."""
        with self._connections.transaction() as execute:
            self._history.add(execute, "read", at, {"release": release, "budget": budget}, by)

    def history(self, before: int | None, limit: int) -> list[AccessEntry]:
        """The latest entries of the history of access, or those before one of them."""
        with self._connections.reading() as execute:
            return self._history.entries(execute, before, limit)

    def verify(self) -> AccessAudit:
        """Check the seals of the access keys, and the history of access from its beginning."""
        with self._connections.reading() as execute:
            keys = self.read_in(execute)
            fault = self._history.fault(execute, _states(execute, self._sql))
            return AccessAudit(keys, self._history.head(execute), fault)

    def seal(self, at: str) -> None:
        """Seal the access keys as they are now: for an operator who has checked them after a change of the secret."""
        with self._connections.transaction() as execute:
            seal_all(execute, self._sql, self._secret)
            self._history.seal(execute, at, _states(execute, self._sql))

    def _locked_seals(self, execute: Execute) -> dict[str, str]:
        seals = _opened(self._secret, execute(self._sql.locked_fact, (_SEALS,)))
        if seals is None:
            raise WrongLedger("its access keys have no seal by its secret: see `python -m app.keys seal --help`")
        return seals


def begin_history(execute: Execute, sql: Statements, secret: Secret, at: str) -> None:
    """Begin the history of access with the access keys that are there."""
    AccessHistory(sql, secret).begin(execute, at, _states(execute, sql))


def _states(execute: Execute, sql: Statements) -> dict[str, bool]:
    """Whether each access key is revoked, also of rows that cannot be read."""
    return {str(row[0]): row[6] is not None for row in execute(sql.keys)}


def _recorded(key: AccessKey) -> dict[str, Any]:
    """What the history says of a new access key."""
    recorded: dict[str, Any] = {"key": key.id, "scopes": sorted(key.scopes), "budgets": sorted(key.budgets)}
    optional = {"note": key.note, "expires_at": key.expires_at, "replaces": key.replaces}
    return recorded | {name: value for name, value in optional.items() if value}


def seal_all(execute: Execute, sql: Statements, secret: Secret) -> None:
    """Seal every access key that can be read. An unreadable one stays unsealed."""
    keys = [key for key in map(_key_of, execute(sql.keys)) if key is not None]
    _store(execute, sql, secret, {key.id: _seal(secret, key.row) for key in keys})


def _store(execute: Execute, sql: Statements, secret: Secret, seals: Mapping[str, str]) -> None:
    value = json.dumps({"seals": seals, "seal": _seal_over(secret, seals)}, sort_keys=True)
    execute(sql.set_fact, (_SEALS, value))


def _opened(secret: Secret, found: list[tuple[Any, ...]]) -> dict[str, str] | None:
    """The seal of each access key, if the whole list is sealed by the secret."""
    try:
        ((value,),) = found
        document = json.loads(value)
        seals = {str(name): str(seal) for name, seal in document["seals"].items()}
        return seals if document["seal"] == _seal_over(secret, seals) else None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _is_sealed(secret: Secret, key: AccessKey, seals: Mapping[str, str]) -> bool:
    return seals.get(key.id) == _seal(secret, key.row)


def _seal(secret: Secret, row: tuple[str | None, ...]) -> str:
    """The seal of a row. Without expiry and predecessor it is the one of earlier versions, which had no such columns.

    It has a hash for each value, so the seal of a longer row is never that of a shorter one.
    """
    if row[-2:] == (None, None):
        row = row[:-2]
    return secret.fingerprint(b"access key", *(json.dumps(value).encode() for value in row))


def _seal_over(secret: Secret, seals: Mapping[str, str]) -> str:
    return secret.fingerprint(b"access keys", *(f"{name} {seals[name]}".encode() for name in sorted(seals)))


def _joined(names: frozenset[str]) -> str:
    """As one text: names of scopes and budgets have no spaces."""
    return " ".join(sorted(names))


def _key_of(row: tuple[Any, ...]) -> AccessKey | None:
    """None if the row was not written by us: SQLite stores values of any type."""
    name, digest, scopes, budgets, note, made_at, *others = row
    if not all(isinstance(value, str) for value in row[:6]) or not all(isinstance(each, str | None) for each in others):
        return None
    return AccessKey(name, digest, frozenset(scopes.split()), frozenset(budgets.split()), note, made_at, *others)
