"""The command ``gsh``: in this process for most tests, and as a real process for signals, pipes and terminals."""

import io
import json
import os
import pty
import shlex
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq

from gsh.cli import main

__all__ = ["COLUMNS", "GROUPS", "PROGRAM", "Ran", "environment", "groups_file", "in_terminal", "run", "run_process"]

ROOT = Path(__file__).parents[3]
COLUMNS = 100
PROGRAM = [sys.executable, "-m", "gsh.cli"]
# The noise is at most a few thousand: these groups are kept, except for the last one.
GROUPS = pa.table({"url": ["b.org", "a.org", "c.org"], "country": ["FR", "US", "US"], "users": [10**7, 2 * 10**7, 3]})


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command wrote, and its exit code."""

    code: int
    output: bytes
    errors: str

    @property
    def text(self) -> str:
        return self.output.decode()

    @property
    def document(self) -> Any:
        return json.loads(self.output)


def run(*arguments: object, stdin: bytes = b"") -> Ran:
    """Run a command in this process: ``run("account", "--c-u", 3)``, or one string as in a shell."""
    given = shlex.split(str(arguments[0])) if len(arguments) == 1 else [str(each) for each in arguments]
    output, errors = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    source = io.TextIOWrapper(io.BytesIO(stdin), "utf-8")
    with redirect_stdout(output), redirect_stderr(errors), patch.object(sys, "stdin", source):
        try:
            code = main(given)
        except SystemExit as ended:
            code = int(ended.code or 0)
    output.flush()
    errors.flush()
    return Ran(code, output.buffer.getvalue(), errors.buffer.getvalue().decode())  # type: ignore[attr-defined]


def environment(**changes: str) -> dict[str, str]:
    """The environment of this process without settings of the command, and with the checkout first."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("GSH_", "NO_COLOR"))}
    return inherited | {"PYTHONPATH": str(ROOT)} | changes


def run_process(*arguments: object, stdin: bytes = b"", cwd: Path | None = None, **changes: str) -> Ran:
    """Run a command as a process, without a terminal."""
    done = subprocess.run(
        [*PROGRAM, *map(str, arguments)],
        input=stdin,
        capture_output=True,
        check=False,
        cwd=cwd,
        env=environment(**changes),
    )
    return Ran(done.returncode, done.stdout, done.stderr.decode())


def in_terminal(command: list[str], cwd: Path | None = None, columns: int = COLUMNS, **changes: str) -> str:
    """What a command writes to a terminal on standard output."""
    ours, theirs = pty.openpty()
    env = environment(TERM="xterm-256color", COLUMNS=str(columns), **changes)
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, cwd=cwd, env=env) as process:
        os.close(theirs)
        said = b""
        while True:
            try:
                part = os.read(ours, 1 << 16)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            said += part
        assert process.stderr is not None
        errors = process.stderr.read().decode()
    os.close(ours)
    assert process.returncode == 0, errors
    return said.decode().replace("\r\n", "\n")


def groups_file(folder: Path) -> Path:
    path = folder / "groups.parquet"
    pq.write_table(GROUPS, path)
    return path
