"""``client.approvals``: changes of budgets and releases that wait for a second access key."""

from collections.abc import AsyncIterator, Iterator
from typing import Literal, TypeVar

from gsh.client.decoding import decoded
from gsh.client.encoding import AS_NAMED
from gsh.client.operations import Awaiting, Blocking, Collection, Mode, Operation, Page, listing, operation
from gsh.client.records import Approval
from gsh.client.requests import ask, json_call, part
from gsh.documents import parsed
from gsh.wire import Json

__all__ = ["Approvals"]

M = TypeVar("M", bound=Mode)


class Approvals(Collection[M]):
    """The requests that the access key may see, the newest first.  [docs/budgets.md]"""

    @listing
    def list(
        self, _start: str | None, state: Literal["waiting", "approved", "refused", "done"] | None = None
    ) -> Operation[Page[Approval]]:
        """All requests, or those in one state."""
        answer = yield from ask(self, json_call("GET", "/approvals", query={"state": state}))
        return Page(decoded(answer, lambda document: tuple(map(_approval, document["approvals"]))), None)

    def __iter__(self: "Approvals[Blocking]") -> Iterator[Approval]:
        return self.list()

    def __aiter__(self: "Approvals[Awaiting]") -> AsyncIterator[Approval]:
        return self.list()

    @operation
    def get(self, id: str) -> Operation[Approval]:  # noqa: A002
        """One request: what it would do, and who decided it."""
        answer = yield from ask(self, json_call("GET", f"/approvals/{part('id', id)}"))
        return decoded(answer, _approval)

    @operation
    def __getitem__(self, id: str) -> Operation[Approval]:  # noqa: A002
        return (yield from Approvals.get(self, id))

    @operation
    def approve(self, id: str, *, reason: str) -> Operation[Approval]:  # noqa: A002
        """Approve what another access key asks for. A change is made now, and a release when it is asked for again."""
        return (yield from _decide(self, id, "approve", reason))

    @operation
    def refuse(self, id: str, *, reason: str) -> Operation[Approval]:  # noqa: A002
        """Refuse what another access key asks for. A refused request stays refused."""
        return (yield from _decide(self, id, "refuse", reason))


def _decide(self: Collection[M], name: str, decision: str, reason: str) -> Operation[Approval]:
    call = json_call("POST", f"/approvals/{part('id', name)}/{decision}", {"reason": reason})
    return decoded((yield from ask(self, call, AS_NAMED)), _approval)


def _approval(document: Json) -> Approval:
    return parsed(Approval, document)
