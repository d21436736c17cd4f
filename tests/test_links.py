"""Links between the documents lead to existing files and headings."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.md")])
LINKS = [
    (document, target)
    for document in DOCUMENTS
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", document.read_text())
]


def anchors(document: Path) -> set[str]:
    """The anchors of the headings: lower case, without punctuation, with dashes for spaces."""
    text = re.sub(r"^```.*?^```", "", document.read_text(), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize(("document", "target"), LINKS, ids=[f"{document.name}-{target}" for document, target in LINKS])
def test_every_link_leads_to_a_file_and_a_heading(document: Path, target: str) -> None:
    path, _, anchor = target.partition("#")
    file = (document.parent / path).resolve() if path else document

    assert file.exists()
    assert not anchor or anchor in anchors(file)


def test_links_of_pages_into_the_guide_lead_to_a_document_and_a_heading() -> None:
    pages = sorted((ROOT / "app" / "web").rglob("page.html"))
    targets = [each for page in pages for each in re.findall(r'href="guide/([^"]+)"', page.read_text())]

    assert "budgets.html#questions-before-signing" in targets
    for target in targets:
        path, _, anchor = target.partition("#")
        document = ROOT / "docs" / path.replace(".html", ".md")
        assert document.exists(), target
        assert not anchor or anchor in anchors(document), target


def test_the_index_lists_every_document() -> None:
    """docs/index.md has a line for each of the others."""
    index = ROOT / "docs" / "index.md"
    linked = {(index.parent / target.partition("#")[0]).resolve() for document, target in LINKS if document == index}

    assert set(DOCUMENTS) - {index} <= linked
