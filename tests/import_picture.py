"""The picture of the imports in docs/architecture.md, drawn from the code.

A room is a package directly inside ``app`` or ``gsh``. The modules directly inside make two more rooms: ``app`` has
those that no package imports, and ``app: base`` the others. An arrow that follows from two others is left out.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.api.process import ROOT

__all__ = ["FIGURE", "drawn", "imports_of_rooms"]

Graph = dict[str, set[str]]

FIGURE = ROOT / "docs" / "figures" / "imports.svg"

_WIDTH, _HEIGHT, _GAP_X, _GAP_Y, _MARGIN = 180, 44, 44, 60, 16
_COLOURS = {"app": ("#e3f0ec", "#0b6e5f"), "gsh": ("#fbeee2", "#b3541e")}


def imports_of_rooms() -> Graph:
    """Each room with the rooms that it imports."""
    files = [path.relative_to(ROOT) for top in ("app", "gsh") for path in sorted((ROOT / top).rglob("*.py"))]
    imported = {_name(path): set(_imports(path)) for path in files}
    packages = {".".join(path.parts[:2]) for path in files if len(path.parts) > 2}
    base = {name for module, names in imported.items() if _package(module) in packages for name in names}

    def room(module: str) -> str:
        package = _package(module)
        return package if package in packages else f"{package[:3]}{': base' if module in base else ''}"

    rooms: Graph = {}
    for module, names in imported.items():
        if names or room(module) in packages:
            rooms.setdefault(room(module), set()).update(room(name) for name in names)
    imported_rooms = set().union(*rooms.values())
    return {each: others - {each} for each, others in rooms.items() if others - {each} or each in imported_rooms}


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
        room: {each for each in others if not any(each in _reached(graph, other) for other in others - {each})}
        for room, others in graph.items()
    }


def _levels(graph: Graph) -> list[list[str]]:
    """Rooms from the top to the bottom: each one is above everything that it imports."""
    heights: dict[str, int] = {}

    def height(room: str) -> int:
        if room not in heights:
            heights[room] = 1 + max((height(each) for each in graph.get(room, ())), default=-1)
        return heights[room]

    rooms = {*graph, *(each for others in graph.values() for each in others)}
    top = max(height(room) for room in rooms)
    for room in rooms:
        if not graph.get(room):  # it could be at the bottom, but is easier to find below its lowest importer
            heights[room] = min(height(other) for other, others in graph.items() if room in others) - 1
    by_name = sorted(rooms, key=lambda room: (not room.endswith("base"), bool(graph.get(room)), room))
    return [[room for room in by_name if heights[room] == level] for level in range(top, -1, -1)]


def _middles(levels: list[list[str]]) -> tuple[dict[str, tuple[float, float]], float]:
    """Where each room is drawn, and the width of the picture: ``app`` on the left, ``gsh`` on the right."""
    middles: dict[str, tuple[float, float]] = {}
    left = _MARGIN + _GAP_X
    for top in _COLOURS:
        rows = [[room for room in level if room.startswith(top)] for level in levels]
        width = max(map(len, rows)) * (_WIDTH + _GAP_X)
        for row, rooms in enumerate(rows):
            for place, room in enumerate(rooms):
                x = left + width / 2 + (place - (len(rooms) - 1) / 2) * (_WIDTH + _GAP_X)
                middles[room] = x, _MARGIN + _HEIGHT / 2 + row * (_HEIGHT + _GAP_Y)
        left += width + _GAP_X
    return middles, left + _MARGIN


def _arrow(room: str, other: str, middles: dict[str, tuple[float, float]]) -> str:
    """Straight to the next level; around other rooms if it is longer or leads from ``app`` to ``gsh``."""
    (x1, y1), (x2, y2) = middles[room], middles[other]
    if room[:3] != other[:3]:
        x2 -= _WIDTH / 2 + 2
        if any(y == y1 and x1 < x < x2 for x, y in middles.values()):  # below the room to the right
            return f"M{x1:g} {y1 + _HEIGHT / 2:g} C{x1:g} {y2:g} {x1:g} {y2:g} {x2:g} {y2:g}"
        return f"M{x1 + _WIDTH / 2:g} {y1:g} C{x2:g} {y1:g} {x2 - 2 * _GAP_X:g} {y2:g} {x2:g} {y2:g}"
    if y2 - y1 > _HEIGHT + _GAP_Y:
        outward = -1 if room.startswith("app") else 1
        xs = [x * outward for name, (x, _) in middles.items() if name[:3] == room[:3]]
        edge = outward * (max(xs) + _WIDTH / 2 + _GAP_X)
        x1, x2 = x1 + outward * _WIDTH / 2, x2 + outward * (_WIDTH / 2 + 2)
        return f"M{x1:g} {y1:g} C{edge:g} {y1:g} {edge:g} {y2:g} {x2:g} {y2:g}"
    return f"M{x1:g} {y1 + _HEIGHT / 2:g} L{x2:g} {y2 - _HEIGHT / 2 - 2:g}"


def drawn() -> str:
    """The picture as SVG text."""
    graph = imports_of_rooms()
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
    for room, others in sorted(_direct(graph).items()):
        for other in sorted(others):
            line = _arrow(room, other, middles)
            lines.append(f'<path d="{line}" stroke="#666" fill="none" marker-end="url(#tip)"/>')
    for room, (x, y) in middles.items():
        fill, stroke = _COLOURS[room[:3]]
        lines.append(
            f'<rect x="{x - _WIDTH / 2:g}" y="{y - _HEIGHT / 2:g}" width="{_WIDTH}" height="{_HEIGHT}" rx="8"'
            f' fill="{fill}" stroke="{stroke}"/><text x="{x:g}" y="{y + 5:g}">{room.replace(".", "/")}</text>'
        )
    return "\n".join([*lines, "</svg>\n"])
