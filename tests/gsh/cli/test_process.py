"""The command as a process: what it loads, signals, pipes, terminals, completion, and the programs of the service."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from app.main import create_app
from app.settings import Settings
from tests.app.process import PATIENCE, Service
from tests.gsh.cli.running import PROGRAM, environment, groups_file, in_terminal, run_process

pytestmark = pytest.mark.slow

MECHANISM = ["--c-u", "3", "--tau-star", "120", "--sigma", "20"]
ROLES = ["--users", "users", "--keys", "url,country"]
HEAVY = {"numpy", "scipy", "pyarrow", "httpx", "flint", "pandas"} | {
    "app.main",
    "app.settings",
    "app.ledger.access.access_keys",
    "fastapi",
    "pydantic",
    "uvicorn",
    "sqlite3",
    "cryptography",
}


@pytest.mark.parametrize("arguments", [["--help"], ["release", "--help"], ["--version"], ["calibrate"]])
def test_help_loads_neither_numpy_nor_pyarrow_nor_httpx(arguments: list[str]) -> None:
    program = f"import sys, gsh.cli; gsh.cli.main({arguments!r}); sys.stderr.write(' '.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment()
    )

    loaded = set(done.stderr.split())
    assert {"gsh.cli.releasing", "app.keys"} <= loaded
    assert loaded & HEAVY == set()


def test_a_terminal_without_greek_letters_gets_an_answer() -> None:
    arguments = ["account", "--c-u", "51914", "--tau-star", "13948", "--sigma", "2228", "--delta", "1e-9"]

    answer = run_process(*arguments, PYTHONIOENCODING="ascii", PYTHONUTF8="0")

    assert (answer.code, answer.errors) == (0, "")
    assert "\\u221e" in answer.text


def test_one_command_feeds_the_next(tmp_path: Path) -> None:
    """calibrate | release | and a reader of the private table, by a shell."""
    groups_file(tmp_path)
    gsh = f"{sys.executable} -m gsh.cli"
    script = (
        f"set -e -o pipefail; {gsh} calibrate --c-u 3 --epsilon 1 --delta 1e-6 --json"
        f" | {gsh} release groups.parquet {' '.join(ROLES)} --mechanism - -o - > private.parquet"
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=False, cwd=tmp_path, env=environment())

    assert done.returncode == 0, done.stderr
    assert pq.read_table(tmp_path / "private.parquet")["url"].to_pylist() == ["a.org", "b.org"]


def test_a_reader_that_stops_early_is_no_error(tmp_path: Path) -> None:
    gsh = f"{sys.executable} -m gsh.cli"
    script = f"{gsh} compare --c-u 9 --epsilon 1 --delta 1e-6 --json | true"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False, env=environment())

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_leaves_nothing_half_written(number: signal.Signals, code: int, tmp_path: Path) -> None:
    """The command has begun its outputs, and waits for a table from a pipe that never ends."""
    pipe, private = tmp_path / "groups.csv", tmp_path / "private.parquet"
    os.mkfifo(pipe)
    arguments = ["release", str(pipe), *ROLES, *MECHANISM, "-o", str(private)]
    process = subprocess.Popen([*PROGRAM, *arguments], stderr=subprocess.PIPE, text=True, env=environment())
    # It opens when the command reads: the partial file is there. Nothing is kept to be written when it is closed.
    with pipe.open("wb", buffering=0) as writer:
        writer.write(b"url,country,users\n")
        assert [name for name in os.listdir(tmp_path) if name.endswith(".partial")]
        process.send_signal(number)
        # If the signal came just before a read, the read goes on. More bytes end it.
        with contextlib.suppress(BrokenPipeError):
            writer.write(b"a.org,US,3\n")
        _, errors = process.communicate(timeout=PATIENCE)

    assert process.returncode == code
    assert os.listdir(tmp_path) == [pipe.name]
    assert errors == ("gsh: interrupted; nothing was written\n" if number == signal.SIGINT else "")


def test_ctrl_c_while_the_service_works_says_how_to_go_on(tmp_path: Path) -> None:
    """The service has the connection, and nobody knows what it has done. No output is left half written."""
    given, private = groups_file(tmp_path), tmp_path / "private.parquet"
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = ["--service", f"http://127.0.0.1:{server.getsockname()[1]}", "--budget", "web", "--once", "W46"]
        arguments = ["release", str(given), *ROLES, *MECHANISM, "-o", str(private), *place]
        process = subprocess.Popen([*PROGRAM, *arguments], stderr=subprocess.PIPE, text=True, env=environment())
        connection, _ = server.accept()
        with connection:
            assert connection.recv(1)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=PATIENCE)

    assert process.returncode == 130
    assert errors.count("\n") == 1
    assert "the service may have made the release (hint: run it again with the same --once" in errors
    assert os.listdir(tmp_path) == [given.name]


def test_a_terminal_gets_colours_unless_no_color_is_set() -> None:
    arguments = ["calibrate", "--c-u", "3", "--epsilon", "1", "--delta", "1e-6"]

    coloured = in_terminal([*PROGRAM, *arguments])
    plain = in_terminal([*PROGRAM, *arguments], NO_COLOR="1")

    assert "\x1b[" in coloured
    assert "\x1b" not in plain
    assert "tau_star" in coloured
    assert "tau_star" in plain
    assert "\x1b" not in run_process(*arguments).text


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_gets_a_completion_script(shell: str) -> None:
    script = run_process(_GSH_COMPLETE=f"source_{shell}")

    assert script.code == 0
    assert "_GSH_COMPLETE" in script.text
    assert "gsh" in script.text


def test_completion_knows_commands_and_options() -> None:
    def completed(words: str, place: int) -> list[str]:
        found = run_process(_GSH_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=str(place))
        return found.text.split()

    assert completed("gsh ca", 1) == ["calibrate"]
    assert completed("gsh release --form", 2) == ["--format"]


@pytest.mark.slow
def test_serve_becomes_the_service_and_ends_by_a_signal(tmp_path: Path) -> None:
    with Service("-m", "gsh.cli", "serve", "--port", "0", temporary=tmp_path) as service:
        assert service.get("/readyz").status_code == 200
        assert service.stop() == 0


@pytest.mark.slow
def test_the_openapi_document_is_the_one_of_the_service(tmp_path: Path) -> None:
    answer = run_process("openapi", GSH_LEDGER=str(tmp_path / "ledger.sqlite3"))

    assert json.loads(answer.output) == create_app(Settings()).openapi()
