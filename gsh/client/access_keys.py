"""``client.access_keys``: who may do what. It needs an access key of the scope admin."""

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Literal, TypeVar

from gsh.arguments import Integer, integer
from gsh.client.decoding import decoded
from gsh.client.encoding import AS_NAMED
from gsh.client.operations import Awaiting, Blocking, Collection, Mode, Operation, Page, listing, operation
from gsh.client.records import AccessEntry, AccessKey, NewAccessKey
from gsh.client.requests import ask, json_call, part
from gsh.documents import parsed
from gsh.wire import Json

__all__ = ["AccessKeys"]

M = TypeVar("M", bound=Mode)

_PAGE = 100


class AccessKeys(Collection[M]):
    """The access keys that yours may see.  [docs/access.md]"""

    @listing
    def list(self, _start: str | None) -> Operation[Page[AccessKey]]:
        """All access keys, in the order they were made."""
        answer = yield from ask(self, json_call("GET", "/access-keys"))
        found = decoded(answer, lambda document: tuple(parsed(AccessKey, each) for each in document["access_keys"]))
        return Page(found, None)

    def __iter__(self: "AccessKeys[Blocking]") -> Iterator[AccessKey]:
        return self.list()

    def __aiter__(self: "AccessKeys[Awaiting]") -> AsyncIterator[AccessKey]:
        return self.list()

    @operation
    def create(
        self,
        scopes: Sequence[Literal["account", "release", "audit", "admin"]],
        *,
        budgets: Sequence[str] = (),
        note: str = "",
        expires_at: str | None = None,
    ) -> Operation[NewAccessKey]:
        """Make an access key. The result has it this one time: a lost answer cannot be repeated.

        ``budgets`` binds it to budgets, by names or patterns such as ``web@*``; without them it may use all.
        """
        body: Json = {"scopes": [*scopes], "budgets": [*budgets], "note": note} | _expiring(expires_at)
        answer = yield from ask(self, json_call("POST", "/access-keys", body), AS_NAMED)
        return decoded(answer, lambda document: parsed(NewAccessKey, document))

    @operation
    def rotate(
        self,
        id: str,  # noqa: A002
        *,
        overlap_seconds: Integer = 86_400,
        expires_at: str | None = None,
    ) -> Operation[NewAccessKey]:
        """Make an access key in place of another, which still works for the overlap. Both are one client."""
        body: Json = {"overlap_seconds": integer("overlap_seconds", overlap_seconds)} | _expiring(expires_at)
        answer = yield from ask(self, json_call("POST", f"/access-keys/{part('id', id)}/rotate", body), AS_NAMED)
        return decoded(answer, lambda document: parsed(NewAccessKey, document))

    @operation
    def revoke(self, id: str) -> Operation[AccessKey]:  # noqa: A002
        """End an access key, within a second."""
        answer = yield from ask(self, json_call("DELETE", f"/access-keys/{part('id', id)}"))
        return decoded(answer, lambda document: parsed(AccessKey, document))

    @listing
    def history(self, start: str | None) -> Operation[Page[AccessEntry]]:
        """Who made, rotated and revoked access keys, and who read answers: the latest first."""
        answer = yield from ask(self, json_call("GET", "/access-keys/history", query={"before": start, "limit": _PAGE}))
        return decoded(answer, _entries)


def _expiring(expires_at: str | None) -> Json:
    return {} if expires_at is None else {"expires_at": expires_at}


def _entries(document: Json) -> Page[AccessEntry]:
    following = document["before"]
    entries = tuple(parsed(AccessEntry, each) for each in document["entries"])
    return Page(entries, None if following is None else str(following))
