"""Access control. Each route declares what it needs, and the authorizer checks it before the body is read.

A body may take hours. So the authorizer checks again when it has arrived, and right before a release is charged.

Accounting is open unless set otherwise. Until an access key is made, releases and budgets are for this machine alone,
unless they are explicitly open to all. From then on an access key is mandatory, even after all access keys are revoked.
"""

import asyncio
import ipaddress
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import Depends
from starlette.datastructures import Headers
from starlette.types import Scope

from app.http.loopback import check_local
from app.http.problems.errors import NotAdmitted
from app.ledger.access.access_keys import AccessKey, SealedKeys, hash_of
from app.ledger.access.patterns import matches
from app.ledger.access.scopes import READERS, SCOPES
from app.ledger.clock import now
from app.ledger.pool import LedgerPool
from app.ledger.state import By

__all__ = [
    "PUBLIC",
    "READS_BUDGETS",
    "Access",
    "Attempts",
    "Authorizer",
    "Requirement",
    "access_of",
    "needs",
    "network_of",
]

logger = logging.getLogger("app.access")

_EVERYTHING: frozenset[str] = frozenset(SCOPES)
_FRESH_SECONDS = 1.0
_NO_KEYS = SealedKeys((), {}, "")
_MOST_IDENTITIES = 10_000


@dataclass(frozen=True, slots=True)
class Requirement:
    """The scopes that a route needs. It is one of the route's dependencies, so every reader of the route sees it."""

    scopes: frozenset[str]
    """An access key must have one of these. A public route has none."""
    budget: str | None = None
    """The path parameter that names a budget. An access key that is bound to budgets must be bound to that one."""

    async def __call__(self) -> None:
        """Does nothing: the authorizer has checked it before the route is entered."""


def needs(*scopes: str, budget: str | None = None) -> Any:
    """A dependency for ``dependencies=[…]`` of a route: the client needs one of these scopes."""
    return Depends(Requirement(frozenset(scopes), budget))


PUBLIC: Any = Depends(Requirement(frozenset()))
"""A dependency for ``dependencies=[…]`` of a route: everyone may use it."""
READS_BUDGETS = Requirement(frozenset(READERS))
"""For an endpoint that reads a budget which its body names."""


@dataclass(frozen=True, slots=True)
class Access:
    """What a request may do, and for which client."""

    budgets: frozenset[str]
    """The patterns of budgets that the access key is bound to; empty if it is bound to none and may use all."""
    client: str
    """The id of the access key, or of the one that was rotated to it. Without access keys: the client's address, or for
    IPv6 its network."""
    scopes: frozenset[str]
    """Those of the access key; all of them while no access key is needed."""
    key: str | None = None
    """The id of the access key; None without one."""
    note: str = ""
    """The note of the access key, for people."""

    @property
    def is_admin(self) -> bool:
        """Whether the client has an access key with scope admin. Without access keys nobody is an admin."""
        return self.key is not None and "admin" in self.scopes

    def check(self, budget: str | None) -> None:
        """A bound access key may name its own budgets only, and must name one for a release."""
        if self.budgets and (budget is None or not self.may_see(budget)):
            raise NotAdmitted(403, "budget")

    @property
    def by(self) -> By | None:
        """Who makes an entry of a history; None without an access key."""
        return None if self.key is None else By(self.key, self.note)

    def may_see(self, budget: str) -> bool:
        """A budget that the access key is bound to, and with it all of its periods."""
        return not self.budgets or matches(self.budgets, budget)


def access_of(scope: Scope) -> Access:
    """The access that the authorizer gave to this request. A public route has none."""
    access: Access = scope["access"]
    return access


class _AccessKeyCache:
    """Usable access keys, by the hash of each. They are read again after a second, so revocation takes a second."""

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

    def forget(self) -> None:
        """Read the ledger before the next request: this process has just changed an access key."""
        self._loaded_at = float("-inf")

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


class Authorizer:
    """Admits requests by what their route needs."""

    def __init__(
        self, ledger_pool: LedgerPool, *, open_access: bool, account_keys: bool, clock: Callable[[], str] = now
    ) -> None:
        self._clock = clock
        self._open_access = open_access
        self._account_keys = account_keys
        self._keys = _AccessKeyCache(ledger_pool)
        self._unknown_keys = Attempts()

    async def enter(self, scope: Scope, required: Requirement | None) -> None:
        """Admit a request to a route, or raise. The endpoint gets the client's access from ``access_of``."""
        if required is None:
            raise NotAdmitted(403, "undeclared")
        if required.scopes and (self._account_keys or required.scopes != {"account"}):
            budget = None if required.budget is None else scope["path_params"][required.budget]
            scope["access"] = await self.admit(scope, required, budget)

    async def enter_again(self, scope: Scope) -> None:
        """The same once more, for a request whose body has arrived: meanwhile its access key may have expired."""
        await self.enter(scope, scope["route"].needs)

    async def check_again(self, scope: Scope, budget: str | None) -> None:
        """The same right before a charge, or before an answer that nothing is charged for."""
        await self.enter_again(scope)
        access_of(scope).check(budget)

    def forget(self) -> None:
        """An access key was changed here. Other processes see it within a second."""
        self._keys.forget()

    async def keys_made(self) -> bool:
        """Whether an access key was ever made: from then on one is mandatory."""
        if not self._keys.any_made:
            await self._keys.refresh()
        return self._keys.any_made

    async def admit(self, scope: Scope, required: Requirement, budget: str | None = None) -> Access:
        """What the request may do, or an error that says why it is refused."""
        access = await self._admit(scope, required.scopes)
        if budget is not None:
            access.check(budget)
        return access

    async def _admit(self, scope: Scope, scopes: frozenset[str]) -> Access:
        address: str = (scope.get("client") or ("",))[0]
        headers, client = Headers(scope=scope), network_of(address)
        token = _bearer_token(headers)
        if token is not None or not self._keys.any_made:  # after the first access key, one is always needed
            await self._keys.refresh()
        if not self._keys.any_made:
            if not self._open_access:
                check_local(scope.get("method", ""), address, headers)
            return Access(frozenset(), client, _EVERYTHING)
        if token is None:
            raise NotAdmitted(401, "missing")
        digest = hash_of(token)  # a lookup by hash does not compare the access key itself
        if self._keys.is_unsealed(digest):
            raise NotAdmitted(401, "seal")
        key = self._keys.find(digest)
        if key is None:
            raise self._unknown(client)
        if key.expires_at is not None and key.has_expired(self._clock()):
            raise NotAdmitted(401, "expired")
        if not key.scopes & scopes:
            raise NotAdmitted(403, "scope")
        return Access(key.budgets, self._keys.client_of(key), key.scopes, key.id, key.note)

    def _unknown(self, client: str) -> NotAdmitted:
        """Slow down wrong access keys only, never a right one from the same address: 256 random bits are enough."""
        wait = self._unknown_keys.wait(client)
        if wait > 0:
            return NotAdmitted(429, "rate", retry_after=int(wait) + 1)
        self._unknown_keys.failed(client)
        return NotAdmitted(401, "unknown")


def _bearer_token(headers: Headers) -> str | None:
    credentials = headers.getlist("authorization")
    scheme, _, token = (credentials[0] if len(credentials) == 1 else "").partition(" ")
    return token.strip(" \t") if scheme.lower() == "bearer" and token else None


class Attempts:
    """Failures of each client, by its address or the id of its access key."""

    def __init__(self, *, burst: int = 10, seconds: float = 6.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._burst = burst
        self._seconds = seconds
        self._clock = clock
        self._until: OrderedDict[str, float] = OrderedDict()

    def wait(self, identity: str) -> float:
        """The seconds until the next attempt may be made."""
        ahead = self._until.get(identity, 0.0) - self._clock()
        return max(0.0, ahead - (self._burst - 1) * self._seconds)

    def failed(self, identity: str) -> None:
        """Count a failure. If there are too many clients to remember, the oldest failure is forgotten first."""
        now = self._clock()
        self._until[identity] = max(self._until.pop(identity, now), now) + self._seconds
        while len(self._until) > _MOST_IDENTITIES:
            self._until.popitem(last=False)


def network_of(address: str) -> str:
    """The address; for IPv6 its /64 network, because one machine may use all of it."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((int(parsed) >> 64 << 64, 64)))
