"""The public keys of the service, by which everybody verifies its signatures. They stay published for ever.

A key is listed before it signs, so that who verifies can know it in time. The private keys are not in the database
(app/ledger/signing/signer.py). The list is sealed: without the secret nobody can add a key of their own.
"""

import json
from collections.abc import Callable, Iterable
from typing import NamedTuple

from app.ledger.databases import Connections, Execute
from app.ledger.errors import LedgerUnavailable
from app.ledger.secret import Secret
from gsh.proof.keys import KeySet, PublicKey

__all__ = ["ListedKey", "SigningKeys", "key_set"]

_LISTED = "signing keys"
"""The name of the fact that holds the list."""


class ListedKey(NamedTuple):
    """A public key: its id, its 32 bytes as base64url, and from when on it signs."""

    id: str
    x: str
    signs_from: str


def key_set(listed: Iterable[ListedKey], issuer: str | None = None, address: str | None = None) -> KeySet:
    """The listed keys, as everybody verifies by them."""
    keys = (PublicKey.from_jwk({"kty": "OKP", "crv": "Ed25519", "x": each.x}) for each in listed)
    return KeySet.of(keys, issuer, address)


class SigningKeys:
    """The list, in the order in which keys were added."""

    def __init__(self, connections: Connections, secret: Secret) -> None:
        self._connections = connections
        self._sql = connections.statements
        self._secret = secret

    def read(self) -> tuple[ListedKey, ...]:
        with self._connections.reading() as execute:
            rows = execute(self._sql.fact, (_LISTED,))
        return self._listed(rows[0][0] if rows else "")

    def add(self, make: Callable[[tuple[ListedKey, ...]], ListedKey | None]) -> tuple[ListedKey, ...]:
        """Add the key that ``make`` makes, if any, from those that are there. Other processes wait meanwhile."""
        with self._connections.transaction() as execute:
            execute(self._sql.add_fact, (_LISTED, ""))
            ((text,),) = execute(self._sql.locked_fact, (_LISTED,))
            keys = self._listed(text)
            made = make(keys)
            if made is not None:
                keys = (*keys, made)
                self._store(execute, keys)
            return keys

    def seal(self) -> None:
        """Seal the list as it is now, after a change of the secret."""
        with self._connections.transaction() as execute:
            rows = execute(self._sql.fact, (_LISTED,))
            if rows and rows[0][0]:
                self._store(execute, tuple(ListedKey(*each) for each in json.loads(rows[0][0])["keys"]))

    def _store(self, execute: Execute, keys: tuple[ListedKey, ...]) -> None:
        execute(self._sql.set_fact, (_LISTED, json.dumps({"keys": keys, "seal": self._seal(keys)})))

    def _listed(self, text: str) -> tuple[ListedKey, ...]:
        if not text:
            return ()
        try:
            document = json.loads(text)
            keys = tuple(ListedKey(*map(str, each)) for each in document["keys"])
            is_sealed = document["seal"] == self._seal(keys)
        except (ValueError, TypeError, KeyError, RecursionError):
            is_sealed = False
        if not is_sealed:
            raise LedgerUnavailable("the list of signing keys is not as it was sealed: see gsh keys seal")
        return keys

    def _seal(self, keys: tuple[ListedKey, ...]) -> str:
        return self._secret.fingerprint(b"signing keys", *(part.encode() for key in keys for part in key))
