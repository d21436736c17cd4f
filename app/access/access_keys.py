"""/access-keys: list, make, rotate and revoke access keys, and read the history of access.

An access key that is bound to budgets sees and makes access keys for these budgets alone. The history names all
budgets, so a bound one may not read it.
"""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Body, Path, Query, Request
from pydantic import Field, TypeAdapter
from typing_extensions import TypeAliasType

from app.access.schemas import (
    CREATE_EXAMPLES,
    ROTATE_EXAMPLES,
    AccessEntryOut,
    AccessHistoryOut,
    AccessKeyIn,
    AccessKeyMadeOut,
    AccessKeyOut,
    AccessKeysOut,
    RotationIn,
)
from app.errors import InvalidRequest
from app.http.auth import Access, access_of, needs
from app.http.json_route import DeclaredRoute, Encoded, JsonRoute, PathRoute
from app.http.problems import ACCESS_KEY_PROBLEMS, ACCESS_PROBLEMS, PROBLEMS, READ_PROBLEMS
from app.http.problems.errors import NotAdmitted
from app.http.services import services_of
from app.ledger.access.access_history import AccessEntry
from app.ledger.access.access_keys import AccessKey, SealedKeys, new_key
from app.ledger.clock import after, expiry_of, now
from app.ledger.errors import AccessKeyEnded, UnknownAccessKey
from app.ledger.store import Ledger

__all__ = ["router"]

T = TypeVar("T")

_ADMIN, _READS = [needs("admin")], [needs("admin", "audit")]
_KEY_NOT_FOUND: dict[int | str, dict[str, Any]] = {404: ACCESS_KEY_PROBLEMS[404]}

router = APIRouter(
    prefix="/access-keys",
    tags=["access keys"],
    responses=READ_PROBLEMS | ACCESS_PROBLEMS,
    route_class=DeclaredRoute,
)
_made = APIRouter(
    prefix="/access-keys", tags=["access keys"], responses=PROBLEMS | ACCESS_PROBLEMS, route_class=JsonRoute
)

AccessKeyId = TypeAliasType(
    "AccessKeyId", Annotated[str, Field(pattern="^[0-9a-f]{8}$", description="The id of an access key.")]
)
KeyInPath = Annotated[
    AccessKeyId,
    Path(
        title="Access key",
        description="The id of the access key, as GET /access-keys lists it.",
        openapi_examples={"4f1c2a9b": {"value": "4f1c2a9b"}},
    ),
]


class _KeyRoute(PathRoute):
    """A JSON body, and the id of an access key in the path."""

    parameter = "id"
    parameter_type = TypeAdapter(AccessKeyId)


_rotated = APIRouter(
    prefix="/access-keys", tags=["access keys"], responses=PROBLEMS | ACCESS_PROBLEMS, route_class=_KeyRoute
)


@router.get("", operation_id="listAccessKeys", summary="All access keys", dependencies=_READS)
async def list_access_keys(request: Request) -> AccessKeysOut:
    """All access keys with their scopes, budgets and state, and never what proves one."""
    access = access_of(request.scope)
    found = await services_of(request).ledger_pool.read(lambda ledger: ledger.keys.read())
    at, visible = now(), (key for key in found.every if _may_see(access, key))
    return AccessKeysOut(access_keys=[AccessKeyOut(**found.shown(key, at)) for key in visible])


@_made.post(
    "",
    operation_id="createAccessKey",
    summary="Make an access key",
    status_code=201,
    dependencies=_ADMIN,
)
async def create_access_key(
    request: Request, body: Annotated[AccessKeyIn, Body(openapi_examples=CREATE_EXAMPLES)]
) -> AccessKeyMadeOut:
    """The answer has the access key itself, this one time. Lost answers cannot be repeated: revoke, and make another.

    The first access key of a service is made at its ledger, with `gsh keys create`, or as a setting.
    """
    access = access_of(request.scope)
    if access.key is None:
        raise NotAdmitted(403, "first-key")
    if access.budgets and not body.budgets:
        raise InvalidRequest("/budgets", "is required: your access key is bound to budgets, and so must this one be")
    for place, pattern in enumerate(body.budgets):
        if not access.may_see(pattern):
            raise InvalidRequest(f"/budgets/{place}", "must be among the budgets that your access key is bound to")
    key, kept = new_key(frozenset(body.scopes), frozenset(body.budgets), body.note, now(), _expiry(body.expires_at))
    await _changed(request, lambda ledger: ledger.keys.add(kept, access.by))
    return _shown_once(key, kept)


@_rotated.post(
    "/{id}/rotate",
    operation_id="rotateAccessKey",
    summary="Make an access key in place of another",
    status_code=201,
    dependencies=_ADMIN,
    responses=ACCESS_KEY_PROBLEMS,
)
async def rotate_access_key(
    request: Request,
    id: KeyInPath,  # noqa: A002
    body: Annotated[RotationIn, Body(openapi_examples=ROTATE_EXAMPLES)],
) -> AccessKeyMadeOut:
    """The same scopes, budgets and note. The old one still works for the overlap: both are one client.

    If an access key has leaked, revoke it: an overlap would let a thief go on.
    """
    access, at, expires_at = access_of(request.scope), now(), _expiry(body.expires_at)
    until = after(at, body.overlap_seconds)

    def work(ledger: Ledger) -> tuple[str, AccessKey]:
        _visible(ledger, access, id)
        rotated = ledger.keys.rotate(id, at, until, expires_at, access.by)
        if rotated is None:
            raise AccessKeyEnded
        return rotated

    return _shown_once(*await _changed(request, work))


@router.delete(
    "/{id}",
    operation_id="revokeAccessKey",
    summary="Revoke an access key",
    dependencies=_ADMIN,
    responses=_KEY_NOT_FOUND,
)
async def revoke_access_key(
    request: Request,
    id: KeyInPath,  # noqa: A002
) -> AccessKeyOut:
    """It is refused within a second, also for uploads that are on their way. A revoked one stays revoked."""
    access, at = access_of(request.scope), now()

    def work(ledger: Ledger) -> AccessKeyOut:
        _visible(ledger, access, id)
        ledger.keys.revoke(id, at, access.by)
        found = ledger.keys.read()
        return AccessKeyOut(**found.shown(_known(found, id), at))

    return await _changed(request, work)


@router.get("/history", operation_id="accessHistory", summary="The history of access", dependencies=_READS)
async def access_history(
    request: Request,
    before: Annotated[
        int | None, Query(title="Before", ge=1, lt=2**63, description="Only entries before the one with this number.")
    ] = None,
    limit: Annotated[
        int, Query(title="Limit", ge=1, le=1000, description="The largest number of entries in the answer.")
    ] = 100,
) -> AccessHistoryOut:
    """Who made, rotated and revoked access keys, and who read the stored answer of a release: the latest first.

    `gsh ledger verify` checks it. An access key that is bound to budgets may not read it.
    """
    access_of(request.scope).check(None)
    entries = await services_of(request).ledger_pool.read(lambda ledger: ledger.keys.history(before, limit))
    last = entries[-1].number if entries else 1
    return AccessHistoryOut(entries=[_entry(each) for each in entries], before=last if last > 1 else None)


router.routes.extend([*_made.routes, *_rotated.routes])


async def _changed(request: Request, work: Callable[[Ledger], T]) -> T:
    """The result of a change, which this process knows from its next request on."""
    services = services_of(request)
    try:
        return await services.ledger_pool.ask(work)
    finally:
        services.authorizer.forget()


def _expiry(text: str | None) -> str | None:
    if text is None:
        return None
    try:
        return expiry_of(text)
    except ValueError as error:
        raise InvalidRequest("/expires_at", str(error)) from None


def _may_see(access: Access, key: AccessKey) -> bool:
    """An access key for all budgets is visible to one for all budgets alone."""
    return not access.budgets or (bool(key.budgets) and all(map(access.may_see, key.budgets)))


def _known(found: SealedKeys, name: str) -> AccessKey:
    key = next((each for each in found.every if each.id == name), None)
    if key is None:
        raise UnknownAccessKey
    return key


def _visible(ledger: Ledger, access: Access, name: str) -> None:
    """An error if there is no such access key, or none that the client may see."""
    if not _may_see(access, _known(ledger.keys.read(), name)):
        raise UnknownAccessKey


def _shown_once(key: str, kept: AccessKey) -> AccessKeyMadeOut:
    shown = SealedKeys((kept,), {}, "").shown(kept, kept.made_at)
    content = AccessKeyMadeOut(**shown, key=key).model_dump_json().encode()
    return Encoded(content, 201, {"Cache-Control": "no-store"})  # type: ignore[return-value]


def _entry(entry: AccessEntry) -> AccessEntryOut:
    details: Mapping[str, Any] = entry.details
    shown = dict(details) | ({"keys": sorted(details["keys"])} if "keys" in details else {})
    return AccessEntryOut(number=entry.number, kind=entry.kind, at=entry.at, hash=entry.hash, **shown)
