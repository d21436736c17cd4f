"""GET /problems and GET /problems/{name}: what each kind of problem means, and what to do about it.

A browser gets a page with the header and the theme of all pages; a program gets JSON.
"""

from html import escape
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response
from pydantic import Field
from starlette.exceptions import HTTPException

from app.http.auth import PUBLIC
from app.http.headers import page_headers, preferred
from app.http.json_route import DeclaredRoute
from app.http.problems import PROBLEMS, Problem
from app.http.problems.kinds import KINDS, NOT_FOUND, Kind
from app.schemas.strict import Strict
from app.web.assets import Content
from app.web.pages import PROBLEMS_PAGE, html

__all__ = ["router"]

# Both forms have the same URL, so caches must keep them apart.
_HEADERS = {
    **page_headers(script_src="'self'", style_src="'self'", img_src="'self'"),
    "Vary": "Accept, Accept-Encoding",
}
_BY_NAME = {kind.name: kind for kind in KINDS}
_PAGE: dict[int | str, dict[str, Any]] = {
    200: {"description": "A page for a browser.", "content": {"text/html": {"schema": {"type": "string"}}}}
}


class ProblemType(Strict):
    """One kind of problem, in words."""

    type: str = Field(title="Type", description="The type of such problems.", examples=["/problems/budget-exceeded"])
    title: str = Field(title="Title", description="The title of such problems.", examples=["Budget exceeded"])
    status: int = Field(title="Status", description="The HTTP status of such problems.", examples=[409])
    what_happened: str = Field(
        title="What happened",
        description="What the service found, and whether anything was charged.",
        examples=["The release would cost more privacy than the budget has remaining."],
    )
    what_to_do: str = Field(
        title="What to do", description="How to avoid the problem.", examples=["Ask for less, or raise the limit."]
    )


class ProblemTypes(Strict):
    """All kinds of problem."""

    problems: list[ProblemType] = Field(title="Problems", description="Sorted by status.", examples=[[]])


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
        return _LIST.response(request.scope, _HEADERS)  # type: ignore[return-value]
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
        return _PAGES[kind].response(request.scope, _HEADERS)  # type: ignore[return-value]
    response.headers["Vary"] = "Accept"
    return _described(kind)


def _described(kind: Kind) -> ProblemType:
    return ProblemType.model_validate(kind, from_attributes=True)


def _prefers_html(request: Request) -> bool:
    """Browsers name HTML; programs rarely do. JSON comes first: it is for those who accept both, or neither."""
    return preferred(request, ("application/json", "text/html")) == "text/html"


def _list_of_kinds() -> str:
    rows = (
        f'<dt><a href="problems/{kind.name}">{escape(kind.title)}</a> <span class="status">{kind.status}</span></dt>\n'
        f"<dd>{escape(kind.what_happened)}</dd>\n"
        for kind in KINDS
    )
    lead = "<h1>Problems</h1>\n<p>The service answers every error with one of these problems.</p>"
    return html(PROBLEMS_PAGE, _main(f"{lead}\n<dl>\n{''.join(rows)}</dl>"))


def _one_kind(kind: Kind) -> str:
    page = PROBLEMS_PAGE._replace(
        path=kind.type.removeprefix("/"),
        title=f"{kind.title} · {PROBLEMS_PAGE.title}",
        description=kind.what_happened,
    )
    main = (
        f'<p><a href="../problems">All problems</a></p>\n<h1>{escape(kind.title)}</h1>\n'
        f"<p>HTTP status {kind.status}, type <code>{kind.type}</code></p>\n"
        f"<h2>What happened</h2>\n<p>{escape(kind.what_happened)}</p>\n"
        f"<h2>What to do</h2>\n<p>{escape(kind.what_to_do)}</p>"
    )
    return html(page, _main(main))


def _main(content: str) -> str:
    return f'<main id="{PROBLEMS_PAGE.main}" tabindex="-1">\n{content}\n</main>'


_LIST = Content.of(_list_of_kinds().encode(), "text/html")
_PAGES = {kind: Content.of(_one_kind(kind).encode(), "text/html") for kind in KINDS}
