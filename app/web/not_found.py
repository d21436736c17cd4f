"""What a browser gets at an address that does not exist: a page with the header and the links of all pages."""

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException

from app.http.headers import page_headers, preferred
from app.http.problems.handlers import answer_to
from app.web.pages import PROBLEMS_PAGE, html

__all__ = ["install"]

_HEADERS = {**page_headers(script_src="'self'", style_src="'self'", img_src="'self'"), "Vary": "Accept"}
_MAIN = """<main id="problems" tabindex="-1">
<h1>There is no such page</h1>
<p>The address may be misspelt, or it belongs to another version of the service.</p>
<p>The links above lead to all pages. <a href="{root}problems">All problems</a> says what can go wrong.</p>
</main>"""


def install(app: FastAPI) -> None:
    """Answer with a page where a browser would see a problem document. Programs still get the document."""

    async def on_http_exception(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        accepts_page = request.method in {"GET", "HEAD"} and preferred(request, _FORMS) == "text/html"
        if error.status_code == 404 and accepts_page:
            return Response(_page(request.scope["path"]), 404, _HEADERS, "text/html")
        return answer_to(request, error)

    app.add_exception_handler(HTTPException, on_http_exception)


_FORMS = ("application/problem+json", "text/html")


def _page(path: str) -> str:
    """Its links are relative to the address that does not exist, so its depth counts."""
    depth = path.count("/") - 1
    page = PROBLEMS_PAGE._replace(path="/" * depth, title="Not found · Gaussian sparse histogram")
    return html(page, _MAIN.format(root="../" * depth))
