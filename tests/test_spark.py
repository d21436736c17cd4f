"""The tests on Spark that do not take long, in the environment that has Spark."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PYTHON = ROOT / "build" / "spark-env" / "bin" / "python"


@pytest.mark.spark
@pytest.mark.slow
def test_spark_publishes_as_the_reference_says_and_once() -> None:
    command = [PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "filterwarnings=default", "-m", "not long"]
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run([*command, "tests/spark"], cwd=ROOT, env=own, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-1000:]
