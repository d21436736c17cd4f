"""Who may do what: keys by ``Authorization: Bearer``, checked before a body is read.

Accounting is open unless set otherwise. Until a key is made, releases and budgets are for this machine alone, unless
they are explicitly open to all; from then on they need a key, also when every key is revoked. Keys are read again when
they are a second old: a revoked one is good for no longer.
"""

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.attempts import Attempts, network_of
from app.api.books import Books
from app.api.problems import NotAdmitted, not_admitted_response, unavailable_response
from app.ledger.errors import LedgerUnavailable
from app.ledger.keys import SCOPES, AccessKey, SealedKeys, hash_of
from app.loopback import is_loopback, names_loopback
from app.metrics import Metrics

__all__ = ["Access", "AccessMiddleware", "Gate", "access_of"]

_FRESH_SECONDS = 1.0
_READERS = frozenset({"release", "admin"})
_EVERYTHING: frozenset[str] = frozenset(SCOPES)
_NO_KEYS = SealedKeys((), {}, "")

logger = logging.getLogger("app.access")


@dataclass(frozen=True, slots=True)
class Access:
    """What a request may do, and for whom; bound to some budgets, or to none."""

    budgets: frozenset[str] = frozenset()
    client: str = ""
    """The id of its key; where it needs none, its address, or of IPv6 the network."""
    scopes: frozenset[str] = _EVERYTHING
    """Those of its key; all, where it needs none."""

    def check(self, budget: str | None) -> None:
        """A bound key may name its own budgets only, and must name one where something is released."""
        if self.budgets and budget not in self.budgets:
            raise NotAdmitted(403, "budget")

    def may_see(self, budget: str) -> bool:
        return not self.budgets or budget in self.budgets


def access_of(scope: Scope) -> Access:
    access: Access = scope["access"] if "access" in scope else Access(client=network_of(_address(scope)))
    return access


class Gate:
    """Lets requests in by their keys, and counts those it does not."""

    def __init__(self, books: Books, metrics: Metrics, *, open_access: bool, account_keys: bool) -> None:
        self._books = books
        self._metrics = metrics
        self._open_access = open_access
        self._account_keys = account_keys
        self._unknown_keys = Attempts()
        self._keys: Mapping[str, AccessKey] = {}
        self._unsealed: frozenset[str] = frozenset()
        self._any_made = False
        self._loaded_at = float("-inf")

    def needs(self, method: str, path: str) -> frozenset[str]:
        """Of these scopes a key must have one; none where no key is needed."""
        if path in {"/release", "/release/table"}:
            return frozenset({"release"})
        if path == "/budgets" or path.startswith("/budgets/"):
            if method == "PUT":
                return frozenset({"admin"})
            only_reads = method in {"GET", "HEAD"} or path.endswith("/preview")
            return _READERS if only_reads else frozenset({"release"})
        is_account = path in {"/calibrate", "/compare"} or path.startswith("/account/")
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
        await self._refresh()
        address, headers = _address(scope), Headers(scope=scope)
        client = network_of(address)
        if not self._any_made:
            if not self._open_access:
                _check_local(address, headers)
            return Access(client=client)
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise NotAdmitted(401, "missing")
        # By hash: a lookup compares nothing of the key itself.
        digest = hash_of(token.strip())
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
        if time.monotonic() - self._loaded_at > _FRESH_SECONDS:
            started = time.monotonic()
            found = await self._books.read(lambda ledger: ledger.keys.read()) if self._books.exists else _NO_KEYS
            unsealed = frozenset(key.hash for key in found.every if not found.is_sealed(key))
            if unsealed - self._unsealed:
                logger.warning("access keys are not as they were sealed, and not accepted: run python -m app.verify")
            self._keys = {key.hash: key for key in found.usable}
            self._unsealed = unsealed
            self._any_made = found.any_made
            self._loaded_at = started


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
            except LedgerUnavailable as error:
                return await unavailable_response(error)(scope, receive, send)
            scope["access"] = access
        return await self._app(scope, receive, send)


def _address(scope: Scope) -> str:
    address: str = (scope.get("client") or ("",))[0]
    return address


def _check_local(address: str, headers: Headers) -> None:
    """From this machine, under a name of its own, and not on behalf of another site's page in a browser here.

    A page can have its own name resolve to 127.0.0.1, but its browser then sends that name as Host.
    """
    if not is_loopback(address):
        raise NotAdmitted(403, "no-keys")
    hosts, origins = headers.getlist("host"), headers.getlist("origin")
    if len(hosts) != 1 or not names_loopback(hosts[0]):
        raise NotAdmitted(403, "host")
    if any(origin.partition("://")[2].lower() != hosts[0].lower() for origin in origins):
        raise NotAdmitted(403, "origin")
