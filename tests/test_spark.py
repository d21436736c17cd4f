"""The tests on Spark that do not take long, in the environment that has Spark. And its Java."""

import os
import shutil
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
    done = subprocess.run([*command, "tests/gsh/spark"], cwd=ROOT, env=own, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-1000:]


@pytest.mark.parametrize("is_home", [False, True])
@pytest.mark.parametrize(
    ("version", "is_enough"),
    [
        ('openjdk version "1.8.0_392"', False),
        ('openjdk version "11.0.22" 2024-01-16', False),
        ('openjdk version "17.0.15" 2025-04-15', True),
        ('Picked up JAVA_TOOL_OPTIONS: -Da="b"\nopenjdk version "25" 2025-09-16', True),
        ("java: no version at all", False),
    ],
)
def test_an_old_java_is_refused_with_one_line(tmp_path: Path, version: str, is_enough: bool, is_home: bool) -> None:
    """Nothing is installed: the path of the script has nothing but this Java, and no user to ask for."""
    place = tmp_path / "home" / "bin" if is_home else tmp_path
    place.mkdir(parents=True, exist_ok=True)
    java = place / "java"
    java.write_text(f"#!/bin/sh\necho '{version}' >&2\n")
    java.chmod(0o755)
    settings = {"PATH": str(tmp_path)} | ({"JAVA_HOME": str(tmp_path / "home")} if is_home else {})
    script = [shutil.which("sh") or "sh", str(ROOT / "tests" / "gsh" / "spark" / "java.sh")]
    done = subprocess.run(script, env=settings, capture_output=True, text=True, check=False)

    assert done.returncode == (not is_enough)
    assert done.stdout.splitlines() == (
        [] if is_enough else ["The tests on Spark need Java 17 or newer: apt-get install default-jre-headless"]
    )
