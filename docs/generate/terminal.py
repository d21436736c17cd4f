"""The picture of a terminal in docs/cli.md. ``python -m docs.generate.terminal`` runs the session again and draws it.

The commands run in a real terminal, of which the picture has the text and the colours. The text is also in the
description of the picture: for people who do not see it, and for a test.
"""

import html
import os
import re
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from docs.generate import ROOT
from tests.app.process import Service
from tests.gsh.cli.running import COLUMNS, in_terminal, run_process

__all__ = ["FIGURE", "description", "recorded"]

FIGURE = ROOT / "docs" / "figures" / "terminal.svg"
SESSION = (
    "gsh demo events.parquet --users 20000",
    "gsh preview events.parquet --user user_id --by url,country --epsilon 1 --delta 1e-6 --c-u 1,2,4,8",
    "gsh publish events.parquet --user user_id --by url,country --c-u 4 --epsilon 1 --delta 1e-6 \\\n"
    "    --budget web --once web-2026-W46 -o private.parquet",
    "gsh releases",
)
# Dark on every page, with enough contrast for each colour.
_COLOURS = "6e7681 ff7b72 3fb950 d29922 58a6ff bc8cff 39c5cf b1bac4"
_THEME = TerminalTheme(
    (22, 27, 34), (230, 237, 243), [(each[0], each[1], each[2]) for each in map(bytes.fromhex, _COLOURS.split())]
)
_FORMAT = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-labelledby="title text">
<title id="title">A terminal with the command gsh</title>
<desc id="text">DESCRIPTION</desc>
<style>
.{unique_id}-matrix {{
  font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace;
  font-size: {char_height}px;
  line-height: {line_height}px;
}}
.{unique_id}-title {{ font-family: system-ui, sans-serif; font-size: 18px; font-weight: bold; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def recorded() -> list[tuple[str, str]]:
    """Each command of the session, with what it writes to a terminal."""
    with tempfile.TemporaryDirectory() as temporary, Service(temporary=Path(temporary)) as service:
        folder = Path(temporary) / "session"
        folder.mkdir()
        place = {"GSH_URL": service.url}
        assert run_process("budgets", "put", "web", "--epsilon", 1, "--delta", "1e-5", **place).code == 0
        shell = f'gsh() {{ {sys.executable} -m gsh.cli "$@"; }}\n'
        return [(line, in_terminal(["bash", "-c", shell + line], folder, **place)) for line in SESSION]


def description(session: list[tuple[str, str]]) -> str:
    """The session as plain text."""
    parts = [f"$ {command}\n{Text.from_ansi(output).plain}" for command, output in session]
    return "\n".join(line.rstrip() for line in "\n".join(parts).splitlines() if line.strip())


def drawn(session: list[tuple[str, str]]) -> str:
    console = Console(record=True, width=COLUMNS, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115
    for command, output in session:
        console.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
        if output.strip():
            console.print(Text("\n").join(line for line in Text.from_ansi(output).split() if line.plain.strip()))
            console.print()
    svg = console.export_svg(title="gsh", theme=_THEME, code_format=_FORMAT, unique_id="gsh")
    return re.sub(r"(?<=<desc id=\"text\">)DESCRIPTION", lambda _: html.escape(description(session)), svg)


if __name__ == "__main__":
    FIGURE.write_text(drawn(recorded()))
