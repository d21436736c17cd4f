"""mypy --strict over programs of users of the library."""

import subprocess
import sys
import tempfile
from pathlib import Path

__all__ = ["CACHE", "check_programs"]

ROOT = Path(__file__).parents[1]
CACHE = Path(tempfile.gettempdir()) / "mypy"
"""In the folder of the run: what mypy finds out about other libraries is the same for all tests."""
_OPTIONS = (
    *("--strict", "--follow-imports=silent", "--config-file=", "--no-pretty", "--no-error-summary"),
    *("--disable-error-code=import-untyped", "--disable-error-code=unused-coroutine", f"--cache-dir={CACHE / 'users'}"),
)


def check_programs(folder: Path, program: str, mistakes: str, after: str) -> None:
    """mypy accepts the one, and finds the mistake in every line of the other that follows a line."""
    (folder / "program.py").write_text(program)
    (folder / "mistakes.py").write_text(mistakes)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *_OPTIONS, "program.py", "mistakes.py"],
        cwd=folder,
        env={"MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )

    found = {tuple(line.split(":")[:2]) for line in done.stdout.splitlines() if ": error:" in line}
    lines = mistakes.splitlines()
    wrong = [number for number, line in enumerate(lines, 1) if line and number > lines.index(after) + 1]
    assert found == {("mistakes.py", str(line)) for line in wrong}, done.stdout + done.stderr
