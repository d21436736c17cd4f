"""The keys that sign certificates: private ones in files, public ones in the ledger.  [docs/threat-model.md]

A SQLite ledger has the private keys next to it, in files that only the service can read:

    ledger.sqlite3.<id of the key>.signing.pem

The first one is made when the service starts. ``GSH_SIGNING_KEY_FILE`` names another file (PKCS#8). A ledger on a
server needs it: without it nothing is signed. ``rotate`` makes a key that is published at once, and signs later.
"""

import base64
import json
import os
import time
from pathlib import Path
from typing import NamedTuple

from app.ledger.clock import now
from app.ledger.errors import LedgerUnavailable, reason_of
from app.ledger.opening import is_postgres
from app.ledger.pool import LedgerPool
from app.ledger.signing.listed_keys import ListedKey, key_set
from app.ledger.store import Ledger
from gsh.errors import InvalidParameter
from gsh.proof.envelopes import sealed
from gsh.proof.keys import KeySet, PublicKey, SigningKey

__all__ = ["KeyPlace", "KeyRing", "Signer", "rotate"]


class KeyPlace(NamedTuple):
    """Where private keys are: in a given file, or next to a ledger."""

    ledger: str
    given: str
    """The path of a file; empty if there is none."""

    @property
    def may_make(self) -> bool:
        return not self.given and not is_postgres(self.ledger)

    def file_of(self, key: str) -> Path:
        path = Path(self.ledger)
        return path.with_name(f"{path.name}.{key}.signing.pem")

    def read(self, path: Path) -> SigningKey:
        try:
            return SigningKey.from_pem(path.read_bytes())
        except OSError as error:
            raise LedgerUnavailable(f"the signing key {path} cannot be read: {reason_of(error)}") from None
        except InvalidParameter as error:
            raise LedgerUnavailable(f"the signing key {path} {error.detail}") from None

    def make(self) -> SigningKey:
        """A new key, in its file."""
        key = SigningKey.made()
        path = self.file_of(key.public.id)
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(key.to_pem())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise LedgerUnavailable(f"a signing key cannot be written to {path}: {reason_of(error)}") from None
        return key


class KeyRing:
    """The private keys of a place, and which of them signs now: the newest one that may, or none."""

    def __init__(self, place: KeyPlace) -> None:
        self._place = place
        self._private: dict[str, SigningKey] = {}
        self.listed: tuple[ListedKey, ...] = ()

    def load(self, ledger: Ledger) -> None:
        """Read the keys, and make the first one. Another process may have made the next one."""
        place = self._place
        if place.given:
            key = place.read(Path(place.given))
            self._private[key.public.id] = key
            self.listed = ledger.signing_keys.add(lambda keys: _unless_listed(key.public, keys))
            return
        listed = ledger.signing_keys.read()
        if place.may_make and not listed:
            listed = ledger.signing_keys.add(lambda keys: None if keys else _listed(place.make().public, now()))
        for each in listed:
            if place.may_make and each.id not in self._private and place.file_of(each.id).exists():
                self._private[each.id] = place.read(place.file_of(each.id))
        self.listed = listed

    def sealed(self, statement: bytes) -> str | None:
        """The envelope of a statement as JSON; None if there is no key. In any thread."""
        at = now()
        able = [each for each in self.listed if each.signs_from <= at and each.id in self._private]
        if not able:
            return None
        return json.dumps(sealed(statement, self._private[max(able, key=lambda each: each.signs_from).id]))


class Signer:
    """The key ring of a service, read again each minute."""

    def __init__(self, ledger_pool: LedgerPool, place: KeyPlace, issuer: str, address: str) -> None:
        self._ledger_pool, self._ring = ledger_pool, KeyRing(place)
        self._issuer, self._address = issuer or None, address or None
        self._read_at = -_FRESH_SECONDS
        self.sealed_now = self._ring.sealed

    async def ready(self) -> None:
        """Read the keys, if that was long ago."""
        if time.monotonic() - self._read_at >= _FRESH_SECONDS:
            await self._ledger_pool.ask(self._ring.load)
            self._read_at = time.monotonic()

    async def sealed(self, statement: bytes) -> str | None:
        """The envelope of a statement as JSON; None if this service has no key."""
        await self.ready()
        return self.sealed_now(statement)

    @property
    def keys(self) -> KeySet:
        """All public keys that sign, will sign or have signed."""
        return key_set(self._ring.listed, self._issuer, self._address)


_FRESH_SECONDS = 60.0


def rotate(ledger: Ledger, place: KeyPlace, signs_from: str) -> ListedKey:
    """Make a key that is published now, and signs from then on, or at once if it is the first one.

    Private keys that no longer sign are removed.
    """
    if not place.may_make:
        raise LedgerUnavailable(
            "GSH_SIGNING_KEY_FILE has the signing key: put a new one there; the old one stays listed"
        )
    at = now()
    *_, made = ledger.signing_keys.add(lambda keys: _listed(place.make().public, signs_from if keys else at))
    signing = [each for each in ledger.signing_keys.read() if each.signs_from <= at]
    for each in sorted(signing, key=lambda each: each.signs_from)[:-1]:
        place.file_of(each.id).unlink(missing_ok=True)
    return made


def _unless_listed(key: PublicKey, keys: tuple[ListedKey, ...]) -> ListedKey | None:
    return None if key.id in {each.id for each in keys} else _listed(key, now())


def _listed(key: PublicKey, signs_from: str) -> ListedKey:
    return ListedKey(key.id, base64.urlsafe_b64encode(key.raw).rstrip(b"=").decode(), signs_from)
