"""Changed files of every form are refused or harmless, and a certificate that is in two places is never another."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.app.process import PATIENCE, ROOT


@pytest.mark.parametrize("seed", range(2))
def test_changed_files_are_refused_or_harmless_and_never_crash(tmp_path: Path, seed: int) -> None:
    """In a process of its own: to ask pyarrow for the columns of a damaged footer ended it with a signal."""
    command = [sys.executable, "-m", "tests.gsh.results.hostile_files", str(tmp_path), str(seed), "600"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False, cwd=ROOT)

    assert done.returncode == 0, done.stderr
    happened = json.loads(done.stdout)
    assert happened.keys() == {"refused", "used"}
    assert min(happened.values()) > 20
