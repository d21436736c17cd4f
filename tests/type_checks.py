"""mypy --strict over programs of users of the library, and over generated clients and programs for them.

What mypy finds out about other libraries takes it longest. All runs have the same settings, so that they share it, and
one process of a parallel run has all of them (``tests/schedule.py``).
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

__all__ = ["check_programs", "run_mypy"]

ROOT = Path(__file__).parents[1]
_SETTINGS = """
[mypy]
strict = true
follow_imports = silent
pretty = false
[mypy-pyarrow.*]
ignore_missing_imports = true
[mypy-mistakes]
disable_error_code = unused-coroutine
"""


def run_mypy(folder: Path, path: Path, *programs: str | Path) -> subprocess.CompletedProcess[str]:
    """Check programs from a folder; what they import is in the path."""
    settings = folder / "mypy.ini"
    settings.write_text(_SETTINGS)
    cache = Path(tempfile.gettempdir()) / "mypy"  # in the folder of the run
    return subprocess.run(
        [sys.executable, "-m", "mypy", f"--config-file={settings}", f"--cache-dir={cache}", *programs],
        cwd=folder,
        env=os.environ | {"MYPYPATH": str(path)},
        capture_output=True,
        text=True,
        check=False,
    )


def check_programs(folder: Path, program: str, mistakes: str, after: str) -> None:
    """mypy accepts the one, and finds the mistake in every line of the other that follows a line."""
    (folder / "program.py").write_text(program)
    (folder / "mistakes.py").write_text(mistakes)
    done = run_mypy(folder, ROOT, "program.py", "mistakes.py")

    found = {tuple(line.split(":")[:2]) for line in done.stdout.splitlines() if ": error:" in line}
    lines = mistakes.splitlines()
    wrong = [number for number, line in enumerate(lines, 1) if line and number > lines.index(after) + 1]
    assert found == {("mistakes.py", str(line)) for line in wrong}, done.stdout + done.stderr
