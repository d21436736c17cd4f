"""The documentation site under /guide, if `make docs` has built it: files of the folder app/guide.

The builder is not a dependency of the service. A wheel or an image has the site if it was built before.
"""

from pathlib import Path

from fastapi import APIRouter
from starlette.responses import Response

from app.http.auth import PUBLIC
from app.http.headers import page_headers
from app.http.json_route import DeclaredRoute
from app.web.assets import Assets, PublicMount, package_folder

__all__ = ["is_built", "mounted", "router"]

_FOLDER = package_folder("app", "guide")
_ENDINGS = (".css", ".html", ".js", ".json", ".png", ".svg")
_HEADERS = page_headers(
    script_src="'self'",
    style_src="'self'",
    img_src="'self' data:",  # icons in the style sheets, and plots of notebooks
    connect_src="'self'",  # the index of the search
    worker_src="'self'",  # searches while the page stays usable
)


def is_built() -> bool:
    return (_FOLDER / "index.html").exists()


router = APIRouter(include_in_schema=False, route_class=DeclaredRoute)


@router.get("/guide", dependencies=[PUBLIC])
async def guide() -> Response:
    """Links in the site are relative to its folder. So is this one, which works under a path prefix."""
    return Response(status_code=308, headers={"Location": "guide/"})


def mounted(folder: Path) -> PublicMount:
    """A built site, with the headers that forbid all other sources."""
    return PublicMount("/guide", Assets(folder, _ENDINGS, _HEADERS, index="index.html"))


router.routes.append(mounted(_FOLDER))
