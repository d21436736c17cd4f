"""The tests on Spark pass in the environments that have it. A selection: ``make spark-test`` runs all of them."""

import subprocess
from pathlib import Path

import pytest

from tests.api.process import ROOT

pytestmark = pytest.mark.spark

PATIENCE = 1200
SELECTED = {
    "spark-env": ["-m", "not long"],
    "spark35-env": ["-m", "not long", "-k", "nasty or same_bytes or keeps_the_seed or two_shuffles"],
}


@pytest.mark.parametrize("name", SELECTED)
def test_the_tests_on_spark_pass(name: str, tmp_path: Path) -> None:
    python = ROOT / "build" / name / "bin" / "python"
    if not python.exists():
        pytest.skip(f"needs build/{name}: `make test` builds it")
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "filterwarnings=default"]
    command += ["--basetemp", tmp_path / "tests", *SELECTED[name], "tests/spark"]

    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)

    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
