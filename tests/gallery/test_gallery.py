"""The notebooks of the gallery run from the first cell to the last, in the environment that has their data."""

import re
import subprocess
from pathlib import Path

import nbformat
import pytest

from docs.generate import ROOT
from docs.generate.notebook import GALLERY, plots, texts

pytestmark = pytest.mark.long

PYTHON = ROOT / "build" / "gallery-env" / "bin" / "python"
SAYS = {
    "flights": r"336776 flights of 4043 aircraft to 105 airports\n",
    "orders": r"18 groups published, \(ε, δ\) = \(1, 1e-06\)",
    "health": "",
}


@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_a_notebook_runs_and_plots(path: Path, tmp_path: Path) -> None:
    command = [PYTHON, "-m", "docs.generate.notebook", f"gallery/{path.stem}", "--to", tmp_path]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]

    notebook = nbformat.read(tmp_path / path.name, as_version=4)

    nbformat.validate(notebook)
    assert plots(notebook) == 1
    assert re.search(SAYS[path.stem], texts(notebook))
