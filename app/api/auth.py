"""Who may do what: each route declares what it needs, and the gate checks it before a body is read.

Accounting is open unless set otherwise. Until an access key is made, releases and budgets are for this machine alone,
unless they are explicitly open to all; from then on a key is mandatory, even after all keys are revoked. Access keys
are read again when they are a second old: a revoked one is good for no longer.
"""

import asyncio
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import Depends
from starlette.datastructures import Headers
from starlette.types import Scope

from app.api.problems import NotAdmitted
from app.api.rate_limit import Attempts, network_of
from app.ledger.access_keys import SCOPES, AccessKey, SealedKeys, hash_of
from app.loopback import is_loopback, names_loopback
from app.service.ledger_pool import LedgerPool

__all__ = ["PUBLIC", "READS_BUDGETS", "Access", "Gate", "Needs", "access_of", "needs"]

_FRESH_SECONDS = 1.0
_EVERYTHING: frozenset[str] = frozenset(SCOPES)
_OF_PROXIES = ("forwarded", "via", "x-forwarded-host", "cf-connecting-ip", "true-client-ip")
_NO_KEYS = SealedKeys((), {}, "")

logger = logging.getLogger("app.access")


@dataclass(frozen=True, slots=True)
class Needs:
    """What a route asks of a client. It stands among the dependencies of the route, for all to read."""

    scopes: frozenset[str]
    """An access key must have one of these; none are asked of a public route."""
    budget: str | None = None
    """The path parameter that names a budget, which a bound access key must be bound to."""

    async def __call__(self) -> None:
        """Nothing is left to do when the route is entered: the gate comes first."""


def needs(*scopes: str, budget: str | None = None) -> Any:
    """A dependency for ``dependencies=[…]`` of a route: one of these scopes is needed."""
    return Depends(Needs(frozenset(scopes), budget))


PUBLIC: Any = Depends(Needs(frozenset()))
"""A dependency for ``dependencies=[…]`` of a route: everyone may use it."""
READS_BUDGETS = Needs(frozenset({"release", "admin"}))
"""For an endpoint that reads a budget which its body names."""


@dataclass(frozen=True, slots=True)
class Access:
    """What a request may do, and for whom; bound to some budgets, or to none."""

    budgets: frozenset[str]
    client: str
    """The id of its access key; without keys its address, or for IPv6 the network."""
    scopes: frozenset[str]
    """Those of its access key; all of them as long as no key is needed."""

    def check(self, budget: str | None) -> None:
        """A bound access key may name its own budgets only, and must name one for a release."""
        if self.budgets and budget not in self.budgets:
            raise NotAdmitted(403, "budget")

    def may_see(self, budget: str) -> bool:
        return not self.budgets or budget in self.budgets


def access_of(scope: Scope) -> Access:
    """What the gate found for this request; a route that is public has none to ask for."""
    access: Access = scope["access"]
    return access


class Gate:
    """Lets requests in by what their route needs."""

    def __init__(self, ledger_pool: LedgerPool, *, open_access: bool, account_keys: bool) -> None:
        self._ledger_pool = ledger_pool
        self._open_access = open_access
        self._account_keys = account_keys
        self._unknown_keys = Attempts()
        self._keys: Mapping[str, AccessKey] = {}
        self._unsealed: frozenset[str] = frozenset()
        self._any_made = False
        self._loaded_at = float("-inf")
        self._loading: asyncio.Future[None] | None = None

    async def enter(self, scope: Scope, needed: Needs | None) -> None:
        """Let a request in to a route, or raise; the endpoint finds what the client may do with ``access_of``."""
        if needed is None:
            raise NotAdmitted(403, "undeclared")
        if needed.scopes and (self._account_keys or needed.scopes != {"account"}):
            budget = None if needed.budget is None else scope["path_params"][needed.budget]
            scope["access"] = await self.admit(scope, needed, budget)

    async def admit(self, scope: Scope, needed: Needs, budget: str | None = None) -> Access:
        """What the request may do, or an error that says why it may not."""
        access = await self._admit(scope, needed.scopes)
        if budget is not None:
            access.check(budget)
        return access

    async def _admit(self, scope: Scope, scopes: frozenset[str]) -> Access:
        address, headers = _address(scope), Headers(scope=scope)
        client = network_of(address)
        credentials = headers.getlist("authorization")
        scheme, _, token = (credentials[0] if len(credentials) == 1 else "").partition(" ")
        is_missing = scheme.lower() != "bearer" or not token
        if not (self._any_made and is_missing):  # once a key was made one is needed for ever
            await self._refresh()
        if not self._any_made:
            if not self._open_access:
                _check_local(address, headers)
            return Access(frozenset(), client, _EVERYTHING)
        if is_missing:
            raise NotAdmitted(401, "missing")
        # By hash: a lookup compares nothing of the key itself.
        digest = hash_of(token.strip(" \t"))
        key = self._keys.get(digest)
        if digest in self._unsealed:
            raise NotAdmitted(401, "seal")
        if key is None:
            raise self._unknown(client)
        if not key.scopes & scopes:
            raise NotAdmitted(403, "scope")
        return Access(key.budgets, key.id, key.scopes)

    def _unknown(self, client: str) -> NotAdmitted:
        """Only wrong keys are slowed down, never a right one from the same address: 256 random bits protect keys."""
        wait = self._unknown_keys.wait(client)
        if wait > 0:
            return NotAdmitted(429, "rate", retry_after=int(wait) + 1)
        self._unknown_keys.failed(client)
        return NotAdmitted(401, "unknown")

    async def _refresh(self) -> None:
        """One reading of the ledger serves all requests that came meanwhile."""
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
        self._keys = {key.hash: key for key in found.usable}
        self._unsealed = unsealed
        self._any_made = found.any_made
        self._loaded_at = started


def _address(scope: Scope) -> str:
    address: str = (scope.get("client") or ("",))[0]
    return address


def _check_local(address: str, headers: Headers) -> None:
    """From this machine, under a name of its own, and for no one else: no proxy's client, no page of another site.

    A page can have its own name resolve to 127.0.0.1, but its browser then sends that name as Host.
    """
    if not is_loopback(address) or _is_forwarded(headers):
        raise NotAdmitted(403, "no-keys")
    hosts, origins = headers.getlist("host"), headers.getlist("origin")
    if len(hosts) != 1 or not names_loopback(hosts[0]):
        raise NotAdmitted(403, "host")
    if any(origin.partition("://")[2].lower() != hosts[0].lower() for origin in origins):
        raise NotAdmitted(403, "origin")


def _is_forwarded(headers: Headers) -> bool:
    """Whether a proxy says that it asks for another machine. Nobody gains anything by saying so falsely."""
    named = ",".join(value for name in ("x-forwarded-for", "x-real-ip") for value in headers.getlist(name))
    is_named = any(not is_loopback(each.strip()) for each in named.split(",") if named)
    return is_named or any(name in headers for name in _OF_PROXIES)
