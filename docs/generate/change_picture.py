"""The picture of changes in docs/architecture.md: the files that a new kind, field or endpoint needs, from the code.

Each column follows something that exists: plain Gaussian noise is a kind of mechanism, ``tie_rule`` a field of the
certificate, and ``/compare`` an endpoint. The files are those whose code names it.
"""

import re
from pathlib import Path

from docs.generate.import_picture import COLOURS
from tests.app.process import ROOT

__all__ = ["CHANGES", "FIGURE", "drawn", "files_that_name"]

FIGURE = ROOT / "docs" / "figures" / "changes.svg"
CHANGES = {
    "a kind of mechanism": r"\b(PlainGaussian|GaussianIn)\b",
    "a certificate field": r"\btie_rule\b",
    "an endpoint": r"\bCompareRequest\b|(?m:^from app\.accounting import .*\bcompare\b)",
}
"""What is new, and a pattern for the example."""

_WIDTH, _HEIGHT, _GAP = 290, 40, 16


def files_that_name(pattern: str) -> list[str]:
    """The modules of both packages in which the pattern occurs: the library's first."""
    modules = [path for top in ("gsh", "app") for path in sorted((ROOT / top).rglob("*.py"))]
    return [_shown(path) for path in modules if re.search(pattern, _code(path))]


def _code(path: Path) -> str:
    """A module without its docstrings."""
    return re.sub(r'""".*?"""', "", path.read_text(), flags=re.DOTALL)


def _shown(path: Path) -> str:
    return str(path.relative_to(ROOT)).removesuffix(".py")


def drawn() -> str:
    """The picture as SVG text: a column for each change."""
    columns = {change: files_that_name(pattern) for change, pattern in CHANGES.items()}
    width = _GAP + len(columns) * (_WIDTH + _GAP)
    height = _GAP + (1 + max(map(len, columns.values()))) * (_HEIGHT + _GAP)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        ' font-family="system-ui, sans-serif" font-size="14" text-anchor="middle">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for column, (change, files) in enumerate(columns.items()):
        x = _GAP + column * (_WIDTH + _GAP)
        middle = x + _WIDTH // 2
        lines.append(f'<text x="{middle}" y="{_GAP + 25}" font-weight="bold">{change}</text>')
        for row, file in enumerate(files, 1):
            y = _GAP + row * (_HEIGHT + _GAP)
            fill, stroke = COLOURS[file[:3]]
            lines.append(
                f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="8" fill="{fill}" stroke="{stroke}"/>'
                f'<text x="{middle}" y="{y + 25}">{file}</text>'
            )
    return "\n".join([*lines, "</svg>\n"])
