"""The notebook of examples/. ``python -m docs.generate.notebook`` runs it again, and keeps its outputs."""

import os
import tempfile
from typing import Any
from unittest.mock import patch

import nbformat
from nbclient import NotebookClient

from docs.generate import ROOT

__all__ = ["NOTEBOOK", "executed"]

NOTEBOOK = ROOT / "examples" / "first_release.ipynb"


def executed() -> Any:
    """The notebook with the outputs of a new run, in a folder of its own."""
    notebook: Any = nbformat.read(NOTEBOOK, as_version=4)
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


if __name__ == "__main__":
    nbformat.write(executed(), NOTEBOOK)
