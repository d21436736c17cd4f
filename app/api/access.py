"""Who may do what: keys by ``Authorization: Bearer``, checked before a body is read.

Accounting is open unless set otherwise. Where no key exists, releases and budgets are for this machine alone, unless
they are explicitly open to all. Keys are read again when they are a second old: a revoked one is good for no longer.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.books import Books
from app.api.problems import NotAdmitted, not_admitted_response, unavailable_response
from app.ledger.errors import LedgerUnavailable
from app.ledger.keys import AccessKey, hash_of
from app.loopback import is_loopback
from app.metrics import Metrics

__all__ = ["Access", "AccessMiddleware", "Gate", "access_of"]

_FRESH_SECONDS = 1.0
_BURST, _SECONDS_PER_ATTEMPT, _MOST_ADDRESSES = 10, 6.0, 10_000
_READERS = frozenset({"release", "admin"})


@dataclass(frozen=True, slots=True)
class Access:
    """What a request may do; bound to some budgets, or to none."""

    budgets: frozenset[str] = frozenset()

    def check(self, budget: str | None) -> None:
        """A bound key may name its own budgets only, and must name one where something is released."""
        if self.budgets and budget not in self.budgets:
            raise NotAdmitted(403, "budget")

    def may_see(self, budget: str) -> bool:
        return not self.budgets or budget in self.budgets


def access_of(scope: Scope) -> Access:
    access: Access = scope.get("access", Access())
    return access


class Attempts:
    """How often an address may present a wrong key: ten at once, then one every six seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until: OrderedDict[str, float] = OrderedDict()

    def wait(self, address: str) -> float:
        """The seconds until the next attempt may be made."""
        ahead = self._until.get(address, 0.0) - self._clock()
        return max(0.0, ahead - _BURST * _SECONDS_PER_ATTEMPT + _SECONDS_PER_ATTEMPT)

    def failed(self, address: str) -> None:
        now = self._clock()
        self._until[address] = max(self._until.pop(address, now), now) + _SECONDS_PER_ATTEMPT
        while len(self._until) > _MOST_ADDRESSES:
            self._until.popitem(last=False)


class Gate:
    """Lets requests in by their keys, and counts those it does not."""

    def __init__(self, books: Books, metrics: Metrics, *, open_access: bool, account_keys: bool) -> None:
        self._books = books
        self._metrics = metrics
        self._open_access = open_access
        self._account_keys = account_keys
        self._attempts = Attempts()
        self._keys: Mapping[str, AccessKey] = {}
        self._loaded_at = float("-inf")

    def needs(self, method: str, path: str) -> frozenset[str]:
        """Of these scopes a key must have one; none where no key is needed."""
        if path in {"/release", "/release/table"}:
            return frozenset({"release"})
        if path == "/budgets" or path.startswith("/budgets/"):
            if method == "PUT":
                return frozenset({"admin"})
            return _READERS if method in {"GET", "HEAD"} else frozenset({"release"})
        is_account = path == "/calibrate" or path.startswith("/account/")
        return frozenset({"account"}) if self._account_keys and is_account else frozenset()

    async def admit_reader(self, scope: Scope) -> Access:
        """For what reads a budget elsewhere than under /budgets."""
        return await self.admit(scope, _READERS)

    async def admit(self, scope: Scope, scopes: frozenset[str]) -> Access:
        """What the request may do, or an error that says why it may not."""
        try:
            return await self._admit(scope, scopes)
        except NotAdmitted as error:
            self._metrics.refuse(error.reason)
            raise

    async def _admit(self, scope: Scope, scopes: frozenset[str]) -> Access:
        keys = await self._current_keys()
        address = (scope.get("client") or ("",))[0]
        if not keys:
            if self._open_access or is_loopback(address):
                return Access()
            raise NotAdmitted(403, "no-keys")
        wait = self._attempts.wait(address)
        if wait > 0:
            raise NotAdmitted(429, "rate", retry_after=int(wait) + 1)
        scheme, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise NotAdmitted(401, "missing")
        key = keys.get(hash_of(token.strip()))
        if key is None:
            self._attempts.failed(address)
            raise NotAdmitted(401, "unknown")
        if not key.scopes & scopes:
            raise NotAdmitted(403, "scope")
        return Access(key.budgets)

    async def _current_keys(self) -> Mapping[str, AccessKey]:
        if time.monotonic() - self._loaded_at > _FRESH_SECONDS:
            started = time.monotonic()
            every = await self._books.ask(lambda ledger: ledger.keys.all()) if self._books.exists else []
            # By hash: a lookup compares nothing of the key itself.
            self._keys = {key.hash: key for key in every if key.revoked_at is None}
            self._loaded_at = started
        return self._keys


class AccessMiddleware:
    """Asks the gate before anything of a request is read."""

    def __init__(self, app: ASGIApp, gate: Gate) -> None:
        self._app = app
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        path: str = scope["path"].removeprefix(scope.get("root_path", ""))
        scopes = self._gate.needs(scope["method"], path)
        if scopes:
            try:
                access = await self._gate.admit(scope, scopes)
                if path.startswith("/budgets/"):
                    access.check(path.split("/")[2])
            except NotAdmitted as error:
                return await not_admitted_response(error)(scope, receive, send)
            except LedgerUnavailable:
                return await unavailable_response()(scope, receive, send)
            scope["access"] = access
        return await self._app(scope, receive, send)
