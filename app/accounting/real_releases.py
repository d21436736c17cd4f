"""GET /real-releases: releases of other organisations, as data for presets."""

from fastapi import APIRouter

from app.accounting.schemas.real_releases import RealReleases
from app.http.auth import PUBLIC
from app.http.json_route import DeclaredRoute
from app.http.problems import PROBLEMS
from gsh.library.real_releases import real_releases

__all__ = ["router"]

router = APIRouter(
    tags=["calibrate"], responses={status: PROBLEMS[status] for status in (422, 500)}, route_class=DeclaredRoute
)

_ANSWER = RealReleases.model_validate({"releases": real_releases()}, from_attributes=True)


@router.get(
    "/real-releases",
    operation_id="realReleases",
    summary="Real releases, and their translation to this mechanism",
    dependencies=[PUBLIC],
)
async def get_real_releases() -> RealReleases:
    """Releases of other organisations: published facts with their sources, and a question for `/calibrate`.

    The question is our translation. `ours` and `differs` say what of it is not in the release.
    """
    return _ANSWER
