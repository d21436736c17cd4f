"""What a command prints: JSON, a table in a terminal, or plain text without colours everywhere else.

Names, texts and keys may come from a server. A terminal shows what is in them, and never obeys it (``visible``).
"""

import json
import math
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from gsh.errors import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

__all__ = ["AsJson", "Sheet", "line", "note", "number", "progress_bar", "show", "visible_json", "working"]

AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table to read. Columns of numbers are aligned on the right."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: frozenset[int] = frozenset()
    title: str = ""

    def shown(self) -> "Sheet":
        """The same for a terminal."""
        rows = [[visible(cell) for cell in row] for row in self.rows]
        return Sheet([visible(each) for each in self.columns], rows, self.numbers, visible(self.title))


def show(document: Any, *sheets: Sheet, as_json: bool) -> None:
    """The document as JSON, or the same content as tables."""
    if as_json:
        written = json.dumps(_finite(document), indent=2, ensure_ascii=False, allow_nan=False)
        sys.stdout.write(f"{visible_json(written)}\n")
        return
    for place, sheet in enumerate(each.shown() for each in sheets):
        if place:
            sys.stdout.write("\n")
        if sys.stdout.isatty():
            _console(sys.stdout).print(_rich(sheet))
        else:
            sys.stdout.writelines(f"{line}\n" for line in _plain(sheet))


def note(text: str) -> None:
    """A line for people, on standard error: standard output is for results."""
    sys.stderr.write(f"{visible(text)}\n")


def line(text: str) -> None:
    """A result in one line."""
    sys.stdout.write(f"{visible(text)}\n")


def number(value: float | None, digits: int | None = None) -> str:
    """A number with all its digits, so that it can be copied; or with some, to read."""
    if value is None or not math.isfinite(value):
        return "none" if value is None else "∞"
    return repr(value) if digits is None else f"{value:.{digits}g}"


@contextmanager
def working(what: str) -> Iterator[None]:
    """A spinner on standard error while something takes long. Nothing without a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    with _console(sys.stderr).status(what):
        yield


@contextmanager
def progress_bar(*columns: str) -> "Iterator[Progress | None]":
    """A progress bar on standard error, with these columns of rich after its text. None without a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich import progress  # noqa: PLC0415

    shown = [getattr(progress, f"{name}Column")() for name in columns]
    start = progress.SpinnerColumn(), progress.TextColumn("{task.description}")
    with progress.Progress(*start, *shown, console=_console(sys.stderr), transient=True) as bar:
        yield bar


def _console(stream: Any) -> "Console":
    from rich.console import Console  # noqa: PLC0415 - takes longer to load than plain text to write

    return Console(file=stream, highlight=False, color_system=_colours())


def _colours() -> Literal["auto"] | None:
    """Whether a terminal gets colours: NO_COLOR turns them off (no-color.org)."""
    return None if os.environ.get("NO_COLOR") else "auto"


def _rich(sheet: Sheet) -> Any:
    from rich import box  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415 - a cell is text, never markup

    table = Table(title=sheet.title or None, title_justify="left", box=box.SIMPLE_HEAD, header_style="bold cyan")
    for place, column in enumerate(sheet.columns):
        table.add_column(Text(column), justify="right" if place in sheet.numbers else "left", overflow="fold")
    for row in sheet.rows:
        table.add_row(*map(Text, row))
    return table


def _plain(sheet: Sheet) -> Iterator[str]:
    if sheet.title:
        yield sheet.title
    lines = [list(sheet.columns), *map(list, sheet.rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = (
            cell.rjust(width) if place in sheet.numbers else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()


def _finite(value: Any) -> Any:
    """JSON has no infinity: an ε that is not finite is null, as in the service's answers."""
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def visible_json(written: str) -> str:
    """The same JSON value, with JSON's own escapes. Line ends between the members stay."""
    if written.replace("\n", "").isprintable():
        return written
    return "".join(each if each.isprintable() or each == "\n" else json.dumps(each)[1:-1] for each in written)
