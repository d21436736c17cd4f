"""The notebook of examples/ runs from its first cell to its last, and shows what it promises."""

import re

import nbformat
import pytest

from docs.generate.notebook import NOTEBOOK, executed

pytestmark = pytest.mark.slow


def test_the_notebook_runs_and_plots() -> None:
    notebook = executed()
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    outputs = [output for cell in code for output in cell.outputs]

    nbformat.validate(notebook)
    assert [output for output in outputs if output.output_type == "error" or output.get("name") == "stderr"] == []
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 1
    (covered,) = re.findall(r"(\d+)% of the intervals", "".join(output.get("text", "") for output in outputs))
    assert int(covered) >= 75  # 95 % of about 100 groups: fewer is beyond nine standard deviations


def test_the_kept_outputs_are_of_these_cells() -> None:
    """Not of other code, and with nothing that depends on a machine."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]

    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert "/home" not in NOTEBOOK.read_text()
    assert [cell for cell in cells if "execution" in cell.metadata] == []
