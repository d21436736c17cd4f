"""GET /problems and GET /problems/{name}: what each kind of problem means, and what to do about it.

A browser gets a page without scripts. Its one style sheet is inline, and allowed by its hash. Links are relative, so
that they work behind a path prefix.
"""

import base64
import hashlib
from html import escape
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response
from starlette.exceptions import HTTPException

from app.api.auth import PUBLIC
from app.api.json_route import DeclaredRoute
from app.api.page_headers import page_headers
from app.api.problems import KINDS, PROBLEMS, Problem
from app.api.problems.kinds import NOT_FOUND, Kind
from app.api.schemas.health import ProblemType, ProblemTypes

__all__ = ["router"]

_STYLE = """
:root { color-scheme: light dark; font: 1.0625rem/1.55 system-ui, sans-serif; }
body { max-width: 42rem; margin: 3rem auto; padding: 0 1.25rem; }
h1 { font-size: 1.6rem; line-height: 1.25; }
h2 { font-size: 1.1rem; margin-top: 2rem; }
dt { margin-top: 1rem; }
"""
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_HEADERS = {**page_headers(style_src=f"'sha256-{_STYLE_HASH}'"), "Vary": "Accept"}
_BY_NAME = {kind.name: kind for kind in KINDS}
_PAGE: dict[int | str, dict[str, Any]] = {
    200: {"description": "A page for a browser.", "content": {"text/html": {"schema": {"type": "string"}}}}
}

router = APIRouter(
    prefix="/problems",
    tags=["service"],
    dependencies=[PUBLIC],
    responses=_PAGE | {status: PROBLEMS[status] for status in (422, 500)},
    route_class=DeclaredRoute,
)


@router.get("", operation_id="listProblems", summary="All kinds of problem")
async def list_problems(request: Request, response: Response) -> ProblemTypes:
    """Every type of problem that the service can answer with: HTML for a browser, JSON otherwise."""
    if _prefers_html(request):
        return _page("Problems", _list_of_kinds())  # type: ignore[return-value]
    response.headers["Vary"] = "Accept"
    return ProblemTypes(problems=[_described(kind) for kind in KINDS])


@router.get(
    "/{name}",
    operation_id="getProblem",
    summary="What a kind of problem means, and what to do",
    responses={404: {"model": Problem, "description": NOT_FOUND.detail}},
)
async def get_problem(
    request: Request,
    response: Response,
    name: Annotated[
        str,
        Path(
            title="Name",
            description="The last part of the type of a problem.",
            openapi_examples={"budget-exceeded": {"value": "budget-exceeded"}},
        ),
    ],
) -> ProblemType:
    """The page that the type of a problem leads to: HTML for a browser, JSON otherwise."""
    kind = _BY_NAME.get(name)
    if kind is None:
        raise HTTPException(404)
    if _prefers_html(request):
        return _page(kind.title, _one_kind(kind))  # type: ignore[return-value]
    response.headers["Vary"] = "Accept"
    return _described(kind)


def _described(kind: Kind) -> ProblemType:
    return ProblemType(
        type=kind.type,
        title=kind.title,
        status=kind.status,
        what_happened=kind.what_happened,
        what_to_do=kind.what_to_do,
    )


def _prefers_html(request: Request) -> bool:
    """Whether Accept names HTML, with a higher weight than JSON. Browsers name HTML; programs rarely do."""
    weights = {"text/html": 0.0, "application/json": 0.0}
    for accepted in ",".join(request.headers.getlist("accept")).split(","):
        media_type, *parameters = (part.strip().lower() for part in accepted.split(";"))
        if media_type in weights:
            weights[media_type] = _weight(parameters)
    return weights["text/html"] > weights["application/json"]


def _weight(parameters: list[str]) -> float:
    given = [each.removeprefix("q=") for each in parameters if each.startswith("q=")]
    try:
        return float(given[0]) if given else 1.0
    except ValueError:
        return 0.0


def _page(title: str, main: str) -> Response:
    content = (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n<h1>{escape(title)}</h1>\n{main}</main>\n</body>\n</html>\n"
    )
    return Response(content, 200, _HEADERS, media_type="text/html")


def _list_of_kinds() -> str:
    rows = (
        f'<dt><a href="problems/{kind.name}">{escape(kind.title)}</a> ({kind.status})</dt>\n'
        f"<dd>{escape(kind.what_happened)}</dd>\n"
        for kind in KINDS
    )
    return f"<p>The service answers every error with one of these problems.</p>\n<dl>\n{''.join(rows)}</dl>\n"


def _one_kind(kind: Kind) -> str:
    return (
        f"<p>HTTP status {kind.status}, type <code>{kind.type}</code></p>\n"
        f"<h2>What happened</h2>\n<p>{escape(kind.what_happened)}</p>\n"
        f"<h2>What to do</h2>\n<p>{escape(kind.what_to_do)}</p>\n"
        '<p><a href="../problems">All problems</a></p>\n'
    )
