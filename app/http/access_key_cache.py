"""The access keys of the ledger, read again after a second, so a revoked access key stops working within a second."""

import asyncio
import logging
import time
from collections.abc import Mapping

from app.ledger.access_keys import AccessKey, SealedKeys
from app.ledger.pool import LedgerPool

__all__ = ["AccessKeyCache"]

_FRESH_SECONDS = 1.0
_NO_KEYS = SealedKeys((), {}, "")

logger = logging.getLogger("app.access")


class AccessKeyCache:
    """Usable access keys, by the hash of each."""

    def __init__(self, ledger_pool: LedgerPool) -> None:
        self._ledger_pool = ledger_pool
        self._usable: Mapping[str, AccessKey] = {}
        self._clients: Mapping[str, str] = {}
        self._unsealed: frozenset[str] = frozenset()
        self._loaded_at = float("-inf")
        self._loading: asyncio.Future[None] | None = None
        self.any_made = False
        """Whether an access key was ever made, at the last reading."""

    def find(self, digest: str) -> AccessKey | None:
        return self._usable.get(digest)

    def client_of(self, key: AccessKey) -> str:
        """The client of an access key: the same before and after a rotation."""
        return self._clients.get(key.id, key.id)

    def is_unsealed(self, digest: str) -> bool:
        """Whether the row of this access key is not as it was sealed."""
        return digest in self._unsealed

    async def refresh(self) -> None:
        """Read the ledger if the access keys were read more than a second ago. Requests that wait share one reading."""
        if time.monotonic() - self._loaded_at > _FRESH_SECONDS:
            if self._loading is None or self._loading.done():
                self._loading = asyncio.ensure_future(self._load())
                self._loading.add_done_callback(lambda done: done.cancelled() or done.exception())
            await asyncio.shield(self._loading)

    async def _load(self) -> None:
        started = time.monotonic()
        found = (
            await self._ledger_pool.admit(lambda ledger: ledger.keys.read()) if self._ledger_pool.exists else _NO_KEYS
        )
        unsealed = frozenset(key.hash for key in found.every if not found.is_sealed(key))
        if unsealed - self._unsealed:
            logger.warning("access keys are not as they were sealed, and not accepted: run python -m app.verify")
        self._usable = {key.hash: key for key in found.usable}
        self._clients = {key.id: found.first_of(key) for key in found.usable if key.replaces is not None}
        self._unsealed = unsealed
        self.any_made = found.any_made
        self._loaded_at = started
