"""The picture of the imports in docs/architecture.md, drawn from the code.

A box is a package directly inside ``app`` or ``gsh``. The modules directly inside make more boxes: ``app`` has those
that no package imports, and ``app: base`` those that import no package. One that imports packages and is imported by
one, such as ``app.main``, is a box of its own. An arrow that follows from two others is left out.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

from docs.generate import ROOT

__all__ = ["COLOURS", "FIGURE", "drawn", "imports_of_boxes"]

Graph = dict[str, set[str]]

FIGURE = ROOT / "docs" / "figures" / "imports.svg"

_WIDTH, _HEIGHT, _GAP_X, _GAP_Y, _MARGIN = 180, 44, 44, 60, 16
COLOURS = {"app": ("#e3f0ec", "#0b6e5f"), "gsh": ("#fbeee2", "#b3541e")}


def imports_of_boxes() -> Graph:
    """Each box with the boxes that it imports."""
    files = [path.relative_to(ROOT) for top in ("app", "gsh") for path in sorted((ROOT / top).rglob("*.py"))]
    imported = {_name(path): set(_imports(path)) for path in files}
    packages = {".".join(path.parts[:2]) for path in files if len(path.parts) > 2}
    base = {name for module, names in imported.items() if _package(module) in packages for name in names}

    def box(module: str) -> str:
        package = _package(module)
        if package in packages:
            return package
        if module not in base:
            return package[:3]
        is_above = any(_package(name) in packages for name in imported.get(module, ()))
        return module if is_above else f"{package[:3]}: base"

    boxes: Graph = {}
    for module, names in imported.items():
        if names or box(module) in packages:
            boxes.setdefault(box(module), set()).update(box(name) for name in names)
    imported_boxes = set().union(*boxes.values())
    return {each: others - {each} for each, others in boxes.items() if others - {each} or each in imported_boxes}


def _name(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def _package(module: str) -> str:
    return ".".join(module.split(".")[:2])


def _imports(path: Path) -> Iterator[str]:
    """Our own modules that a file imports."""
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module in {"app", "gsh"}:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        yield from (name for name in names if name.startswith(("app.", "gsh.")))


def _reached(graph: Graph, start: str) -> set[str]:
    return {start}.union(*(_reached(graph, each) for each in graph.get(start, ())))


def _direct(graph: Graph) -> Graph:
    """The graph without arrows that follow from others."""
    return {
        box: {each for each in others if not any(each in _reached(graph, other) for other in others - {each})}
        for box, others in graph.items()
    }


def _levels(graph: Graph) -> list[list[str]]:
    """Rooms from the top to the bottom: each one is above everything that it imports."""
    heights: dict[str, int] = {}

    def height(box: str) -> int:
        if box not in heights:
            heights[box] = 1 + max((height(each) for each in graph.get(box, ())), default=-1)
        return heights[box]

    boxes = {*graph, *(each for others in graph.values() for each in others)}
    top = max(height(box) for box in boxes)
    for box in boxes:
        if not graph.get(box):  # it could be at the bottom, but is easier to find below its lowest importer
            heights[box] = min(height(other) for other, others in graph.items() if box in others) - 1
    arrows = [(box, other) for box, others in _direct(graph).items() for other in others]
    crossing = {each for arrow in arrows if arrow[0][:3] != arrow[1][:3] for each in arrow}

    def place(box: str) -> tuple[bool, bool, bool, str]:
        """Boxes with arrows to the other half come next to it."""
        return (box in crossing) == box.startswith("app"), not box.endswith("base"), bool(graph.get(box)), box

    by_name = sorted(boxes, key=place)
    return [[box for box in by_name if heights[box] == level] for level in range(top, -1, -1)]


def _middles(levels: list[list[str]]) -> tuple[dict[str, tuple[float, float]], float]:
    """Where each box is drawn, and the width of the picture: ``app`` on the left, ``gsh`` on the right."""
    middles: dict[str, tuple[float, float]] = {}
    left = _MARGIN + _GAP_X
    for top in COLOURS:
        rows = [[box for box in level if box.startswith(top)] for level in levels]
        width = max(map(len, rows)) * (_WIDTH + _GAP_X)
        for row, boxes in enumerate(rows):
            for place, box in enumerate(boxes):
                x = left + width / 2 + (place - (len(boxes) - 1) / 2) * (_WIDTH + _GAP_X)
                middles[box] = x, _MARGIN + _HEIGHT / 2 + row * (_HEIGHT + _GAP_Y)
        left += width + _GAP_X
    return middles, left + _MARGIN


def _arrow(box: str, other: str, middles: dict[str, tuple[float, float]]) -> str:
    """Straight to the next level; around other boxes if it is longer; between the halves from ``app`` to ``gsh``."""
    (x1, y1), (x2, y2) = middles[box], middles[other]
    half = _WIDTH / 2
    if box[:3] == other[:3] and y2 - y1 <= _HEIGHT + _GAP_Y:
        return f"M{x1:g} {y1 + _HEIGHT / 2:g} L{x2:g} {y2 - _HEIGHT / 2 - 2:g}"
    y1, y2 = y1 + _HEIGHT / 5, y2 - _HEIGHT / 5  # on a side, arrows leave below those that arrive
    if box[:3] != other[:3]:
        between = (_edge("app", 1, middles) + _edge("gsh", -1, middles)) / 2
        return f"M{x1 + half:g} {y1:g} C{between:g} {y1:g} {between:g} {y2:g} {x2 - half - 2:g} {y2:g}"
    side = _free_side(box, other, middles)
    edge = _edge(box[:3], side, middles) + side * _GAP_X
    return f"M{x1 + side * half:g} {y1:g} C{edge:g} {y1:g} {edge:g} {y2:g} {x2 + side * (half + 2):g} {y2:g}"


def _edge(top: str, side: int, middles: dict[str, tuple[float, float]]) -> float:
    """The outermost x of the boxes of a half, on the left (-1) or on the right (1)."""
    return side * max(side * x + _WIDTH / 2 for name, (x, _) in middles.items() if name.startswith(top))


def _free_side(box: str, other: str, middles: dict[str, tuple[float, float]]) -> int:
    """The outer side, unless another box of the same half is in the way there."""
    outer = -1 if box.startswith("app") else 1
    is_blocked = any(
        y == middles[end][1] and outer * x > outer * middles[end][0] and name[:3] == box[:3]
        for name, (x, y) in middles.items()
        for end in (box, other)
    )
    return -outer if is_blocked else outer


def drawn() -> str:
    """The picture as SVG text."""
    graph = imports_of_boxes()
    levels = _levels(graph)
    middles, width = _middles(levels)
    height = 2 * _MARGIN + len(levels) * _HEIGHT + (len(levels) - 1) * _GAP_Y
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height}" width="{width:g}" height="{height}"'
        ' font-family="system-ui, sans-serif" font-size="15" text-anchor="middle">',
        '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0 0 L10 5 L0 10 z" fill="#666"/></marker></defs>',
        f'<rect width="{width:g}" height="{height}" fill="#fff"/>',
    ]
    for box, others in sorted(_direct(graph).items()):
        for other in sorted(others):
            line = _arrow(box, other, middles)
            lines.append(f'<path d="{line}" stroke="#666" fill="none" marker-end="url(#tip)"/>')
    for box, (x, y) in middles.items():
        fill, stroke = COLOURS[box[:3]]
        lines.append(
            f'<rect x="{x - _WIDTH / 2:g}" y="{y - _HEIGHT / 2:g}" width="{_WIDTH}" height="{_HEIGHT}" rx="8"'
            f' fill="{fill}" stroke="{stroke}"/><text x="{x:g}" y="{y + 5:g}">{box.replace(".", "/")}</text>'
        )
    return "\n".join([*lines, "</svg>\n"])
