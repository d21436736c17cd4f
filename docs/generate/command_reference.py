"""The parts of docs/cli.md that come from the code: the options of each command, the exit codes, and the outputs shown.

An output is in the ``text`` or ``json`` block after the
``console`` block with its command. Numbers that are drawn at random, hashes and times are not compared.
"""

import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import chdir
from pathlib import Path
from typing import Any, NamedTuple

from typer.main import get_command

from docs.generate import ROOT
from gsh.cli import program
from gsh.cli.errors import MEANINGS
from tests.gsh.cli.running import Ran, run

__all__ = [
    "ADDRESS",
    "CLI",
    "Shown",
    "commands_of",
    "exit_codes",
    "masked",
    "outputs",
    "reference",
    "shell",
    "shown",
    "with_outputs",
    "written",
]

CLI = ROOT / "docs" / "cli.md"
ADDRESS = "http://127.0.0.1:8000"

_BLOCK = re.compile(r"```console\n((?:(?!```).)*?)\n```(?:\n```(?:text|json|csv)\n(.*?)\n```)?", re.DOTALL)
_FILE = re.compile(r"```csv (\S+)\n(.*?)```", re.DOTALL)
_PART = "<!-- {} -->\n\n{}\n<!-- end of {} -->"
_RANDOM = re.compile(
    r"█+|-?\d+(?:\.\d+)?(?:e-?\d+)?(?:T[\d:]+Z)?|(?<=\")[0-9a-f]{8}-[0-9a-f-]{27}(?=\")|\b[0-9a-f]{64}\b"
)


class Shown(NamedTuple):
    """A command of the document, and its output there."""

    command: str
    output: str

    @property
    def text(self) -> str:
        return f"```console\n{self.command}\n```\n```text\n{self.output}\n```"


def shown(document: Path = CLI) -> list[Shown]:
    return [Shown(*found) for found in _BLOCK.findall(document.read_text())]


def outputs(folder: Path, url: str, asked: list[Shown]) -> Iterator[Ran | None]:
    """What each command writes, in the order of the document, in a folder with the files that it shows.

    None for a command that is not ours, or that runs for ever.
    """
    for name, content in _FILE.findall(CLI.read_text()):
        (folder / name).write_text(content)
    with chdir(folder):
        for each in asked:
            is_ours = each.command.startswith("gsh ") and not each.command.startswith(("gsh serve", "gsh --install"))
            yield shell(each.command.replace("\\\n", "").replace(ADDRESS, url), url) if is_ours else None


def shell(line: str, url: str) -> Ran:
    """Run commands as a shell does, with pipes between them and a file at the end."""
    line, _, file = line.partition(" > ")
    given = b""
    for part in line.split(" | "):
        ran = run(*shlex.split(part)[1:], stdin=given)
        given = ran.output
        assert ran.code == 0, (part, ran.errors)
    if file:
        Path(file).write_bytes(given)
        given = b""
    return Ran(0, given.replace(url.encode(), ADDRESS.encode()), ran.errors)


def masked(text: str) -> str:
    """The same text without numbers, and with one space between words: the shape of a table."""
    return re.sub(r"\s+", " ", _RANDOM.sub("#", text)).strip()


def commands_of() -> dict[str, Any]:
    """Each command by its full name."""

    def walk(command: Any, name: str) -> Iterator[tuple[str, Any]]:
        children = getattr(command, "commands", {})
        if not children or command.invoke_without_command:
            yield name, command
        for child, each in children.items():
            yield from walk(each, f"{name} {child}")

    return dict(walk(get_command(program()), "gsh"))


def reference() -> str:
    """A section for each command: what it does, an example, and its options."""
    return "\n".join(_section(name, command) for name, command in commands_of().items())


def _section(name: str, command: Any) -> str:
    lines = [f"### {name}\n", " ".join((command.help or "").split()), ""]
    lines += ["```sh", command.epilog.partition("Example:")[2].strip(), "```", ""]
    rows = [row for each in command.params if (row := _row(each))]
    if rows:
        lines += ["| option | meaning |", "|---|---|", *rows, ""]
    return "\n".join(lines)


def _row(parameter: Any) -> str:
    if parameter.name == "help" or "completion" in str(parameter.name):
        return ""
    is_option = parameter.param_type_name == "option"
    name = ", ".join(_documented(parameter.opts)) if is_option else ""
    kind = "" if getattr(parameter, "is_flag", False) else parameter.metavar or _choices(parameter)
    default = parameter.default if isinstance(parameter.default, str | int | float) else None
    notes = ["required"] if parameter.required and is_option else []
    notes += [f"default: {default}"] if default not in (None, "", False) and not parameter.required else []
    label = " ".join(filter(None, (name, kind))).replace("|", "\\|")
    return f"| `{label}` | {parameter.help}{f' ({notes[0]})' if notes else ''} |"


def _documented(names: Sequence[str]) -> list[str]:
    """The short name of an option and the first long one: other long names are accepted too."""
    long = [name for name in names if name.startswith("--")]
    return [*(name for name in names if name not in long), *long[:1]]


def _choices(parameter: Any) -> str:
    return "|".join(map(str, getattr(parameter.type, "choices", ())))


def exit_codes() -> str:
    rows = [f"| {int(code)} | {meaning} |" for code, meaning in MEANINGS.items()]
    return "\n".join(["| code | meaning |", "|---|---|", *rows, ""])


def written(text: str) -> str:
    """The document with its generated parts made again."""
    for name, content in (("commands", reference()), ("exit codes", exit_codes())):
        before = re.search(_PART.format(name, "(.*?)", name), text, re.DOTALL)
        assert before is not None, name
        text = text.replace(before[0], _PART.format(name, content, name))
    return text


def with_outputs(text: str, folder: Path, url: str) -> str:
    """The document with the outputs that have changed."""
    asked = shown()
    for each, ran in zip(asked, outputs(folder, url, asked), strict=True):
        if ran is not None and each.output and masked(ran.text) != masked(each.output):
            text = text.replace(each.text, each._replace(output=ran.text.rstrip()).text)
    return text
