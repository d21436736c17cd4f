"""gsh approvals: what waits for a second access key; approve or refuse it."""

import dataclasses
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from gsh.cli.connection import KeyFile, RetryCount, ServiceUrl, connected, place_of
from gsh.cli.output import AsJson, Sheet, number, show

if TYPE_CHECKING:
    from gsh.client import Approval

__all__ = ["commands"]

commands = typer.Typer()
approvals = typer.Typer()
commands.add_typer(approvals, name="approvals")

States: TypeAlias = Literal["waiting", "approved", "refused", "done"]
RequestId: TypeAlias = Annotated[str, typer.Argument(metavar="ID", help="As gsh approvals shows it.")]
Reason: TypeAlias = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why: the history records it.")]


@approvals.callback(invoke_without_command=True, epilog="Example:  gsh approvals --state waiting")
def list_approvals(
    context: typer.Context,
    state: Annotated[States | None, typer.Option("--state", help="Only requests in this state.")] = None,
    service: ServiceUrl = None,
    key_file: KeyFile = None,
    retries: RetryCount = None,
    as_json: AsJson = False,
) -> None:
    """List what waits for a second access key, the newest first; or approve or refuse it."""
    if context.invoked_subcommand is not None:
        return
    with connected(service, key_file, retries) as client:
        found = list(client.approvals.list(state))
    rows = [[each.id, each.at, each.state, each.kind, each.budget, _about(each), each.by.note] for each in found]
    sheet = Sheet(("request", "at", "state", "kind", "budget", "", "by"), rows)
    show({"approvals": [_document(each) for each in found]}, sheet, as_json=as_json)


@approvals.command(epilog='Example:  gsh approvals approve 9c2f0a7be1d44c50 --reason "as planned for this year"')
def approve(
    context: typer.Context,
    name: RequestId,
    reason: Reason,
    service: ServiceUrl = None,
    key_file: KeyFile = None,
    retries: RetryCount = None,
    as_json: AsJson = False,
) -> None:
    """Approve a request of another access key. A change is made now; a release, when its command runs again."""
    with connected(*place_of(context, service, key_file), retries) as client:
        _show(client.approvals.approve(name, reason=reason), as_json=as_json)


@approvals.command(epilog='Example:  gsh approvals refuse 9c2f0a7be1d44c50 --reason "not planned for this year"')
def refuse(
    context: typer.Context,
    name: RequestId,
    reason: Reason,
    service: ServiceUrl = None,
    key_file: KeyFile = None,
    retries: RetryCount = None,
    as_json: AsJson = False,
) -> None:
    """Refuse a request of another access key. It stays refused."""
    with connected(*place_of(context, service, key_file), retries) as client:
        _show(client.approvals.refuse(name, reason=reason), as_json=as_json)


def _show(found: "Approval", *, as_json: bool) -> None:
    rows = [["kind", found.kind], ["budget", found.budget], ["state", found.state], ["would do", _about(found)]]
    show(_document(found), Sheet(("request", found.id), rows), as_json=as_json)


def _document(found: "Approval") -> dict[str, Any]:
    changes = None if found.changes is None else [each.to_dict() for each in found.changes]
    release = None if found.release is None else found.release.to_dict()
    return dataclasses.asdict(dataclasses.replace(found, changes=None, release=None)) | {
        "changes": changes,
        "release": release,
    }


def _about(found: "Approval") -> str:
    """What the request would do: each change as before → after, or the release and its cost."""
    if found.changes is not None:
        each = (f"{one['field']} {_value(one['before'])} → {_value(one['after'])}" for one in found.changes)
        return "; ".join(each)
    costs = f"mu_squared {number(found.mu_squared, 4)}, hazard {number(found.hazard, 4)}"
    return f"{found.idempotency_key}: {costs}"


def _value(value: Any) -> str:
    return "none" if value is None else str(value)
