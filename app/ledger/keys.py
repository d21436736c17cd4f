"""Keys for access: random, shown once, kept as hashes, with scopes and, where that is wanted, bound to budgets.

A key has 256 random bits, so a plain SHA-256 of it can be kept: there is nothing to guess.
"""

import hashlib
import secrets
from dataclasses import dataclass
from typing import Any, Literal, get_args

from app.ledger.connections import Connections

__all__ = ["SCOPES", "AccessKey", "KeyTable", "Scope", "hash_of", "new_key"]

Scope = Literal["account", "release", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)


@dataclass(frozen=True, slots=True)
class AccessKey:
    """What is kept of a key; ``budgets`` is empty where it is not bound to any."""

    id: str
    hash: str
    scopes: frozenset[str]
    budgets: frozenset[str]
    note: str
    made_at: str
    revoked_at: str | None = None


def new_key(scopes: frozenset[str], budgets: frozenset[str], note: str, at: str) -> tuple[str, AccessKey]:
    """A key, which is seen this once, and what is kept of it."""
    name = secrets.token_hex(4)
    key = f"gsh_{name}_{secrets.token_urlsafe(32)}"
    return key, AccessKey(name, hash_of(key), scopes, budgets, note, at)


def hash_of(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


class KeyTable:
    """The keys of a ledger."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._sql = connections.statements

    def add(self, key: AccessKey) -> None:
        row = (key.id, key.hash, _joined(key.scopes), _joined(key.budgets), key.note, key.made_at, key.revoked_at)
        with self._connections.transaction() as execute:
            execute(self._sql.add_key, row)

    def all(self) -> list[AccessKey]:
        """Revoked ones too, in the order they were made."""
        with self._connections.reading() as execute:
            return [_key_of(row) for row in execute(self._sql.keys)]

    def revoke(self, name: str, at: str) -> bool:
        """Whether there was such a key, not revoked before."""
        with self._connections.transaction() as execute:
            active = [row for row in execute(self._sql.keys) if row[0] == name and row[6] is None]
            execute(self._sql.revoke_key, (at, name))
            return bool(active)


def _joined(names: frozenset[str]) -> str:
    """Neither scopes nor budgets have spaces in their names."""
    return " ".join(sorted(names))


def _key_of(row: tuple[Any, ...]) -> AccessKey:
    name, digest, scopes, budgets, note, made_at, revoked_at = row
    return AccessKey(name, digest, frozenset(scopes.split()), frozenset(budgets.split()), note, made_at, revoked_at)
