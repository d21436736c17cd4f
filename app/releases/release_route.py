"""What the endpoints of releases share: the use case, the client who asks, and a release named in the path."""

from typing import Annotated, Any

from fastapi import Path, Request
from pydantic import Field, TypeAdapter
from typing_extensions import TypeAliasType

from app.http.auth import access_of, needs
from app.http.headers import idempotency_key
from app.http.json_route import PathRoute
from app.http.problems import KEY_NOT_FOUND
from app.http.services import services_of
from app.ledger.access.scopes import READERS
from app.ledger.errors import UnknownRelease
from app.ledger.releases import RecordedRelease
from app.releases.bounds import Bounds
from app.releases.making import Releases

__all__ = [
    "OPENED",
    "READS_RELEASES",
    "RELEASED",
    "RELEASE_NOT_FOUND",
    "OpenReleaseInPath",
    "ReleaseInPath",
    "ReleaseRoute",
    "RequestClient",
    "bounds_of",
    "releases_of",
    "visible_release",
]

RELEASE_NOT_FOUND: dict[int | str, dict[str, Any]] = KEY_NOT_FOUND
READS_RELEASES = [needs(*READERS)]

# Wider than the header allows now: releases of version 0.1 may have other characters.
ReleaseName = TypeAliasType(
    "ReleaseName", Annotated[str, Field(pattern=r"^[!-~]{1,255}$", description="The idempotency key of a release.")]
)
RELEASED, OPENED = "web-2026-46", "web-2026-47"
"""The releases in the examples: one that the service makes, and one that it opens for another engine."""


def _in_path(key: str) -> Any:
    return Path(title="Key", description="The idempotency key of the release.", openapi_examples={key: {"value": key}})


ReleaseInPath = Annotated[ReleaseName, _in_path(RELEASED)]
OpenReleaseInPath = Annotated[ReleaseName, _in_path(OPENED)]


class ReleaseRoute(PathRoute):
    """A JSON body, and the idempotency key of a release in the path."""

    parameter = "key"
    parameter_type = TypeAdapter(ReleaseName)


class RequestClient:
    """The client of a request, as the use case sees it."""

    def __init__(self, request: Request) -> None:
        access = access_of(request.scope)
        self.id, self.by, self.is_admin, self.check = access.client, access.by, access.is_admin, access.check
        self.idempotency_key = idempotency_key(request)
        self._request = request

    async def check_again(self, budget: str | None) -> None:
        await services_of(self._request).authorizer.check_again(self._request.scope, budget)


def releases_of(request: Request) -> Releases:
    releases: Releases = request.app.state.releases
    return releases


def bounds_of(request: Request, client: RequestClient) -> Bounds:
    """What the client may ask of one release."""
    most = None if client.is_admin else releases_of(request).rules.most
    return Bounds(services_of(request).settings.max_work, most)


async def visible_release(request: Request, key: str) -> RecordedRelease:
    """The release, if the client may use its budget. Otherwise the answer is as if there were none."""
    release = await services_of(request).ledger_pool.read(lambda ledger: ledger.release(key))
    if not access_of(request.scope).may_see(release.budget):
        raise UnknownRelease
    return release
