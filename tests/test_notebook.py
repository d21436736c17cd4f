"""The notebooks of examples/ show what they promise. The first one runs here; those of the gallery need real data."""

import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from docs.generate.notebook import GALLERY, NOTEBOOK, executed, plots, texts

pytestmark = pytest.mark.slow


def test_the_notebook_runs_and_plots() -> None:
    notebook = executed(NOTEBOOK)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]

    nbformat.validate(notebook)
    assert [output for output in outputs if output.output_type == "error" or output.get("name") == "stderr"] == []
    assert plots(notebook) == 1
    (covered,) = re.findall(r"(\d+)% of the intervals", texts(notebook))
    assert int(covered) >= 75  # 95 % of about 100 groups: fewer is beyond nine standard deviations


@pytest.mark.parametrize("path", [NOTEBOOK, *GALLERY], ids=lambda path: path.stem)
def test_the_kept_outputs_are_of_these_cells(path: Path) -> None:
    """Not of other code, and with nothing that depends on a machine."""
    notebook = nbformat.read(path, as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    outputs = [output for cell in cells for output in cell.outputs]

    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert plots(notebook) == 1
    assert [output for output in outputs if output.output_type == "error" or output.get("name") == "stderr"] == []
    assert not re.search(r'"/|/home|/root|/work|/tmp', path.read_text())
    assert [cell for cell in cells if "execution" in cell.metadata] == []


def test_the_gallery_has_three_notebooks_which_name_their_data() -> None:
    """Where the data is not installed, the first cell says what to install, and the first text says it before."""
    assert len(GALLERY) == 3
    for path in GALLERY:
        text, code, *_ = nbformat.read(path, as_version=4).cells
        (package,) = re.findall(r"this notebook needs its data: pip install ([a-z0-9]+)\"\) from None", code.source)
        assert package in text.source
        assert "`pip install '.[duckdb]' " in text.source


def test_events_are_published_in_a_notebook() -> None:
    """DuckDB refuses to say how far a query is where it believes in widgets, and there are none."""
    notebook = nbformat.v4.new_notebook()
    source = (
        "import gsh, pyarrow as pa\n"
        "events = pa.table({'user': list(range(300)), 'page': ['a'] * 300})\n"
        "print(gsh.publish(events, user='user', by='page', c_u=1, epsilon=1, delta=1e-6).summary())"
    )
    notebook.cells.append(nbformat.v4.new_code_cell(source))
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute()

    assert texts(notebook).startswith("1 group published")
