"""The HTML of the pages: one skeleton with the header, filled in with the parts of each page.

Every URL is relative, so that the pages work under a path prefix.
"""

from html import escape
from pathlib import Path
from string import Template
from typing import NamedTuple

__all__ = ["PAGES", "Page", "html"]

_FOLDER = Path(__file__).parent
_HEADER = ("web/shared/tokens.css", "web/shared/header.css")
_TEXT = (*_HEADER, "web/shared/page.css")
_PANELS = (*_TEXT, "web/shared/components.css")


class Page(NamedTuple):
    """One page. ``name`` is its folder here, and the name of its main script in that folder."""

    name: str
    path: str
    link: str
    title: str
    description: str
    main: str
    styles: tuple[str, ...]


PAGES = (
    Page(
        name="explorer",
        path=".",
        link="",  # the logo in the header is the link
        title="Gaussian sparse histogram explorer",
        description="The exact noise and threshold for a private group-by table.",
        main="answer",
        styles=(*_PANELS, "web/explorer/explorer.css", "web/explorer/panels.css"),
    ),
    Page(
        name="budgets",
        path="ledger",
        link="Budgets",
        title="Budgets · Gaussian sparse histogram",
        description="The total privacy cost of releases about the same people, and the remaining budget.",
        main="budget",
        styles=(*_PANELS, "web/budgets/gauge.css", "web/budgets/budgets.css"),
    ),
    Page(
        name="reference",
        path="reference",
        link="Reference",
        title="Reference · Gaussian sparse histogram",
        description="Every operation of the API, its fields and its examples.",
        main="operations",
        styles=(*_TEXT, "web/reference/reference.css"),
    ),
    Page(
        name="swagger",
        path="docs",
        link="Try the API",
        title="Try the API · Gaussian sparse histogram",
        description="Swagger UI: send requests to every operation of the API.",
        main="swagger-ui",
        # Without the element styles of page.css: Swagger UI has its own.
        styles=("swagger/swagger-ui.css", *_HEADER, "web/swagger/swagger.css"),
    ),
)


def html(page: Page) -> str:
    """The whole page: the skeleton, the header that marks this page as the current one, and the page's body."""
    skeleton = Template((_FOLDER / "shared" / "page.html").read_text(encoding="utf-8"))
    return skeleton.substitute(
        title=escape(page.title),
        description=escape(page.description),
        styles="\n    ".join(f'<link rel="stylesheet" href="{style}">' for style in page.styles),
        script=f"web/{page.name}/{page.name}.js",
        main=page.main,
        home=_current(page.path == "."),
        links="\n        ".join(_link(other, page) for other in PAGES if other.link),
        body=(_FOLDER / page.name / "page.html").read_text(encoding="utf-8").rstrip(),
    )


def _link(to: Page, page: Page) -> str:
    return f'<a href="{to.path}"{_current(to is page)}>{escape(to.link)}</a>'


def _current(is_current: bool) -> str:
    return ' aria-current="page"' if is_current else ""
