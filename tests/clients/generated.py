"""Runs generators and type checkers, and shows their output if they fail."""

import os
import subprocess
import sys
from pathlib import Path

from tests.type_checks import run_mypy

__all__ = ["DOCUMENT", "HERE", "check_types", "run"]

HERE = Path(__file__).parent
BIN = Path(sys.executable).parent
"""Node.js is installed here, as a Python package."""
DOCUMENT = HERE.parents[1] / "openapi" / "openapi.json"


def run(*command: str | Path, **environment: str) -> str:
    """The output of a command that must succeed."""
    done = subprocess.run(
        [*map(str, command)],
        cwd=DOCUMENT.parents[1],
        env=os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}"} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def check_types(folder: Path, *programs: Path) -> None:
    """mypy --strict over generated code in a folder, and over programs that import it."""
    done = run_mypy(folder, folder, *programs)
    assert done.returncode == 0, done.stdout + done.stderr
