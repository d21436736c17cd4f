"""The tests do not depend on the shell: not on its proxy, settings, time zone, home, umask or temporary folder.

Nor on the signals that it ignores or blocks, its niceness, or its limit of open files.
"""

import os
import resource
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.postgres, pytest.mark.slow]

ROOT = Path(__file__).parent.parent
SOME = [
    "tests/app/server/test_process.py::test_a_process_answers_and_stops_at_sigterm_with_exit_code_zero",
    "tests/app/server/test_container_start.py::test_the_health_check_asks_the_service_of_the_same_settings",
    "tests/gsh/events/test_publish.py::test_a_signal_leaves_nothing",
    "tests/app/ledger/test_store.py::test_one_charge_costs_the_exact_delta",
    "tests/browser/test_code.py::test_the_copied_commands_run_and_agree_with_the_page[counts]",
]
NOBODY = "http://127.0.0.1:1"
HOSTILE = {
    "http_proxy": NOBODY,
    "HTTPS_PROXY": NOBODY,
    "ALL_PROXY": NOBODY,
    "GSH_PORT": "1",
    "GSH_LEDGER": "/nowhere/ledger.sqlite3",
    "TZ": "Pacific/Chatham",
    "LC_ALL": "C",
}


def as_after_nohup_and_nice() -> None:
    """In the new process: signals ignored and blocked, niceness, and few open files."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGUSR1})
    os.nice(1)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, most))


def test_tests_of_every_kind_pass_in_a_hostile_shell(tmp_path: Path) -> None:
    """A process, a database server and a browser, with another folder for temporary files."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    with tempfile.TemporaryDirectory(prefix="gsh-elsewhere-") as elsewhere:
        Path(elsewhere).chmod(0o755)  # if the tests run as root, the database server runs as another user
        finished = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *SOME],
            cwd=ROOT,
            env=inherited | HOSTILE | {"HOME": str(tmp_path / "no-home"), "TMPDIR": elsewhere},
            umask=0o077,
            preexec_fn=as_after_nohup_and_nice,
            capture_output=True,
            text=True,
            check=False,
        )

    assert finished.returncode == 0, finished.stdout + finished.stderr
