"""The notebooks of examples/. ``python -m docs.generate.notebook NAME…`` runs them again, and keeps their outputs.

Without a name it is the first release. Those of the gallery need its environment, which ``make gallery-test`` builds:
``build/gallery-env/bin/python -m docs.generate.notebook gallery/flights gallery/orders gallery/health``. With ``--to
FOLDER`` the results go there.
"""

import argparse
import os
import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import patch

import nbformat
from nbclient import NotebookClient

from docs.generate import ROOT

__all__ = ["GALLERY", "NOTEBOOK", "executed", "plots", "texts"]

EXAMPLES = ROOT / "examples"
NOTEBOOK = EXAMPLES / "first_release.ipynb"
GALLERY = sorted((EXAMPLES / "gallery").glob("*.ipynb"))


def executed(path: Path) -> Any:
    """A notebook with the outputs of a new run, in a folder of its own."""
    notebook: Any = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory(prefix="gsh-notebook-") as folder:
        # Neither settings of a user nor fonts that were found before.
        places = dict.fromkeys(("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"), folder)
        places |= {"MPLCONFIGDIR": folder, "PYTHONPATH": str(ROOT), "JUPYTER_PLATFORM_DIRS": "1"}
        with patch.dict(os.environ, places):
            resources = {"metadata": {"path": folder}}
            NotebookClient(notebook, timeout=300, kernel_name="python3", resources=resources).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # times
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return notebook


def _outputs(notebook: Any) -> list[Any]:
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


def plots(notebook: Any) -> int:
    """How many plots it shows."""
    return sum("image/png" in output.get("data", {}) for output in _outputs(notebook))


def texts(notebook: Any) -> str:
    """What it printed."""
    return "".join(output.get("text", "") for output in _outputs(notebook))


if __name__ == "__main__":
    arguments = argparse.ArgumentParser()
    arguments.add_argument("names", nargs="*", default=[NOTEBOOK.stem])
    arguments.add_argument("--to", type=Path)
    given = arguments.parse_args()
    for name in given.names:
        path = EXAMPLES / f"{name}.ipynb"
        nbformat.write(executed(path), path if given.to is None else given.to / path.name)
