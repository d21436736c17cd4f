"""A run that is killed or interrupted leaves nothing: no database server, no service, no file."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.app.process import PATIENCE, ROOT, wait_for_end
from tests.run_folder import processes_of

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

SMALL = """
import os, signal, tempfile

from tests.app.process import Service
from tests.postgres import Postgres

def test_two_servers(postgres: Postgres, tmp_path) -> None:
    postgres.make_database()
    with Service(temporary=tmp_path):
        with open(os.environ["READY"], "w") as ready:
            ready.write(os.environ["TMPDIR"])
        signal.pause()
"""


@pytest.mark.parametrize(
    ("number", "option"),
    [(signal.SIGKILL, "--numprocesses=1"), (signal.SIGINT, "--numprocesses=0")],
    ids=["killed in parallel", "Ctrl-C"],
)
def test_a_run_that_ends_early_leaves_nothing(number: signal.Signals, option: str, tmp_path: Path) -> None:
    """SIGKILL ends one process. Ctrl-C goes to all processes of the terminal's group."""
    (tmp_path / "test_small.py").write_text(SMALL)
    os.mkfifo(tmp_path / "ready")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    run = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tests.conftest", option, tmp_path],
        cwd=ROOT,
        env=inherited | {"READY": str(tmp_path / "ready")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    with open(os.open(tmp_path / "ready", os.O_RDONLY | os.O_NONBLOCK)) as ready:
        assert select.select([ready], [], [], PATIENCE)[0]
        folder = ready.read()
    began = processes_of(folder)

    (cleaner,) = processes_of(f"run_folder.py\0{run.pid}\0{folder}")
    os.kill(cleaner, signal.SIGTERM)  # as if all processes of a run were ended by their names
    if number == signal.SIGINT:
        os.killpg(run.pid, number)
    else:
        run.send_signal(number)
    run.wait(PATIENCE)
    for process in began:
        wait_for_end(process)

    assert len(began) > 3
    assert processes_of(folder) == []
    assert not Path(folder).exists()
