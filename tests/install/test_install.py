"""Each documented line that installs this package gives what the documents promise, on a machine that has nothing."""

import re
from pathlib import Path

import pytest

from tests.install.environments import ROOT, Bare, console_blocks, install_lines

pytestmark = [pytest.mark.long, pytest.mark.spark]

JOB = "python3 examples/spark_job.py --week W1 --partitions 2 --to published/missing/W1"
CONNECT = f"SPARK_REMOTE='local[2]' {JOB}"
PUBLISHES = """
gsh demo events.parquet --users 2000
gsh publish events.parquet --user user_id --by url --c-u 4 --epsilon 8 --delta 1e-3 -o private.parquet
"""
PAGES = ("publish.md", "levels.md", "choosing-bounds.md", "access.md")
EMPTY = "rm -rf page && mkdir page && cd page && export GSH_LEDGER=$PWD/ledger.sqlite3\n"
MAKES_UP = "gsh demo events.parquet --users 20000\n"
USES = {
    "pip install .": "gsh calibrate --c-u 16 --epsilon 1 --delta 1e-6",
    "pip install '.[duckdb]'": PUBLISHES,
    "pip install . ./service": "gsh openapi",
    "pip install '.[spark]'": JOB,
    "pip install '.[connect]'": f"{JOB} && rm -r published && {CONNECT}",
    "pip install -e '.[bench]'": "python3 -m benchmarks.case_study",
}


@pytest.fixture
def bare(tmp_path: Path) -> Bare:
    return Bare(tmp_path)


def test_all_documented_lines_are_tried() -> None:
    assert install_lines() == sorted(USES)


@pytest.mark.parametrize("line", USES)
def test_a_documented_line_installs_what_its_commands_need(bare: Bare, line: str) -> None:
    """The extra alone: nothing is installed by hand, and the folder of the output is made."""
    assert bare.run(f"{line} >&2\n{USES[line]}")


def test_the_commands_for_a_cluster_run_as_printed(bare: Bare) -> None:
    """The wheel, the archive, and spark-submit on a cluster of two executors, whose Python is in the archive."""
    image, archive, home = console_blocks(ROOT / "docs" / "publish-spark.md")
    path = 'export PATH="$SPARK_HOME/bin:$PATH"\n'

    said = bare.run(f"{image}{home}{path}{archive}", MASTER="local-cluster[2,1,1024]")

    assert "groups" in said
    assert list((bare.checkout / "published" / "2026-W46").glob("part-*.parquet"))


def test_the_commands_of_pages_run_as_printed(bare: Bare) -> None:
    """In an empty folder for each page and language, with made-up events where the page has some already."""
    bare.run("pip install '.[duckdb]' ./service >&2")
    for page in PAGES:
        text = (ROOT / "docs" / page).read_text()
        python = "".join(re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
        console = "".join(console_blocks(ROOT / "docs" / page))
        (bare.checkout / "page.py").write_text(f"import gsh\n{python}")
        assert python or console
        made = "" if MAKES_UP.split(" --", maxsplit=1)[0] in console else MAKES_UP
        first = "$(gsh keys list | head -n 1 | cut -d ' ' -f 1)"
        bare.run(f"{EMPTY}{made}{console}".replace("3f9a1c07", first))
        bare.run(f"{EMPTY}{MAKES_UP}python3 ../page.py")


def test_a_worker_without_the_package_is_found_before_anything_is_written(bare: Bare) -> None:
    said = bare.run(f"pip install '.[spark]' >&2\n! PYSPARK_PYTHON=/usr/bin/python3 {JOB} 2>&1")

    assert "spark: executors must" in said
    assert not list((bare.checkout / "published" / "missing").iterdir())
