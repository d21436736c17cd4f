"""The HTML of the pages: one skeleton with the header, filled in with the parts of each page.

Every URL is relative, so that the pages work under a path prefix. In a page below a folder, each starts with ``../``.
"""

import re
from html import escape
from pathlib import Path
from string import Template
from typing import NamedTuple

from app.web import guide

__all__ = ["CERTIFICATE_PAGE", "PAGES", "PROBLEMS_PAGE", "VERIFY_PAGE", "Page", "body_of", "html"]

_FOLDER = Path(__file__).parent
_IN_GUIDE = re.compile(r"\s*<a class=\"in-guide\"[^>]*>[^<]*</a>")
_HEADER = ("web/shared/tokens.css", "web/shared/header.css")
_TEXT = (*_HEADER, "web/shared/page.css")
_PANELS = (*_TEXT, "web/shared/components.css")
_BUDGETS = (
    *_PANELS,
    "web/certificate/certificate.css",
    "web/certificate/dialog.css",
    "web/budgets/gauge.css",
    "web/budgets/column-fields.css",
)


class Page(NamedTuple):
    """One page. ``name`` is its folder here, and the name of its main script in that folder, if it has one."""

    name: str
    path: str
    link: str
    title: str
    description: str
    main: str
    styles: tuple[str, ...]
    has_script: bool = True


VERIFY_PAGE = Page(
    name="verify",
    path="verify",
    link="Verify",
    title="Verify a file · Gaussian sparse histogram",
    description="Whether a private table is as it was released, who signed it, and what it promises.",
    main="verify",
    styles=(*_PANELS, "web/certificate/certificate.css", "web/verify/verify.css"),
)
"""POST /verify answers with this page and the result in it."""

PAGES = (
    Page(
        name="explorer",
        path=".",
        link="",  # the logo in the header is the link
        title="Gaussian sparse histogram explorer",
        description="The exact noise and threshold for a private group-by table.",
        main="answer",
        styles=(
            *_PANELS,
            "web/explorer/answer.css",
            "web/explorer/explorer.css",
            "web/explorer/panels.css",
            "web/explorer/levels.css",
        ),
    ),
    Page(
        name="budgets",
        path="ledger",
        link="Budgets",
        title="Budgets · Gaussian sparse histogram",
        description="The total privacy cost of releases about the same people, and the remaining budget.",
        main="budget",
        styles=(*_BUDGETS, "web/budgets/budgets.css", "web/budgets/releases.css"),
    ),
    Page(
        name="release",
        path="release-table",
        link="Release",
        title="Release a table · Gaussian sparse histogram",
        description="From a table of true counts to a private table, its intervals and its certificate.",
        main="steps",
        styles=(*_BUDGETS, "web/release/release.css"),
    ),
    VERIFY_PAGE,
    Page(
        name="published",
        path="published-numbers",
        link="",  # the answer of the explorer links to it, with its mechanism
        title="What published numbers mean · Gaussian sparse histogram",
        description="Where the true counts are: intervals of published counts and of their sum.",
        main="numbers",
        styles=(*_PANELS, "web/budgets/column-fields.css", "web/published/published.css"),
    ),
    Page(
        name="meaning",
        path="what-epsilon-means",
        link="What ε means",
        title="What ε and δ promise · Gaussian sparse histogram",
        description="What a private table promises to people, in a bet and two pictures, to read and to print.",
        main="meaning",
        styles=(*_PANELS, "web/meaning/meaning.css"),
        has_script=False,
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


_GUIDE = [
    Page(name="guide", path="guide/", link="Guide", title="", description="", main="", styles=(), has_script=False)
    for _ in range(guide.is_built())
]
"""The documentation site. It has pages of its own, made by its builder."""

PROBLEMS_PAGE = Page(
    name="problems",
    path="problems",
    link="",
    title="Problems · Gaussian sparse histogram",
    description="Every kind of problem that the service can answer with.",
    main="problems",
    styles=(*_TEXT, "web/problems/problems.css"),
    has_script=False,
)
"""The list of problems. It has no file: the service makes its body, and those of the pages below it."""

CERTIFICATE_PAGE = Page(
    name="certificate",
    path="releases/key/certificate",  # the depth counts: links in it are relative
    link="",
    title="Certificate · Gaussian sparse histogram",
    description="The certified privacy of one release, to read and to print.",
    main="certificate",
    styles=(*_TEXT, "web/certificate/certificate.css"),
    has_script=False,
)
"""The certificate of a release. It has no file: the service makes its body."""


def html(page: Page, body: str | None = None) -> str:
    """The whole page: the skeleton, the header that marks this page as the current one, and the page's body.

    The body is the file ``page.html`` of the page's folder, unless it is given.
    """
    root = "../" * page.path.count("/")
    skeleton = Template((_FOLDER / "shared" / "page.html").read_text(encoding="utf-8"))
    return skeleton.substitute(
        root=root,
        title=escape(page.title),
        description=escape(page.description),
        styles="\n    ".join(f'<link rel="stylesheet" href="{root}{style}">' for style in page.styles),
        then=f' data-then="{root}web/{page.name}/{page.name}.js"' if page.has_script else "",
        main=page.main,
        home=f'href="{root or "."}"{_current(page.path == ".")}',
        links="\n        ".join(
            f'<a href="{root}{other.path}"{_current(other is page)}>{escape(other.link)}</a>'
            for other in (*PAGES, *_GUIDE)
            if other.link
        ),
        body=body_of(page) if body is None else body,
    )


def body_of(page: Page) -> str:
    """The file of a page; without its links into the documentation site, if the service has none."""
    body = (_FOLDER / page.name / "page.html").read_text(encoding="utf-8").rstrip()
    return body if guide.is_built() else _IN_GUIDE.sub("", body)


def _current(is_current: bool) -> str:
    return ' aria-current="page"' if is_current else ""
