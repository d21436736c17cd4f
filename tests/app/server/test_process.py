"""`python -m app`: it starts, answers, logs JSON without posted data, adds up metrics, and stops at a signal."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

import httpx
import pytest

from tests.app.client import CASE_STUDY, Client, Json
from tests.app.process import (
    NEW,
    PATIENCE,
    ROOT,
    Service,
    environment,
    family,
    fork_server_of,
    run_command,
    stopped,
    wait_for_end,
    worker_of,
)

pytestmark = pytest.mark.slow

WORD, NUMBER = "s3ntinel", 918273645
BODY: Json = {"mechanism": CASE_STUDY, "epsilon": 0.349}


def test_a_process_answers_and_stops_at_sigterm_with_exit_code_zero(tmp_path: Path) -> None:
    with Service(*NEW, temporary=tmp_path) as service:
        response = service.post("/account/exact", BODY)
        assert (response.status_code, response.json()) == (200, Client().answer("/account/exact", BODY))
        assert "server" not in response.headers

        assert service.stop() == 0
    assert service.errors == ""
    assert service.log[-1]["message"].startswith("Finished server process")
    assert list(tmp_path.iterdir()) == []


def test_a_request_under_way_is_answered_before_the_process_ends(tmp_path: Path) -> None:
    """Its body is still on the way when the signal comes: «100 Continue» says that the request is being read."""
    content = b'{"mechanism": {"c_u": 51914, "tau": 1, "tau_star": 13948, "sigma": 2228}, "epsilon": 0.349}'
    head = (
        "POST /account/exact HTTP/1.1\r\nhost: service\r\ncontent-type: application/json\r\n"
        f"content-length: {len(content)}\r\nexpect: 100-continue\r\n\r\n"
    )
    with Service(temporary=tmp_path) as service:
        address = urlsplit(service.url)
        with socket.create_connection((address.hostname, address.port), PATIENCE) as connection:
            connection.sendall(head.encode())
            assert b"100 Continue" in connection.recv(1000)
            service.terminate()
            service.wait_for_message("Shutting down")
            connection.sendall(content)
            answer = b"".join(iter(lambda: connection.recv(10_000), b""))
        service.wait()

    assert b"200 OK" in answer
    assert b"1.003103848512688e-05" in answer or b"0.00001003103848512688" in answer


@pytest.mark.parametrize("access_log", ["true", "false"])
def test_every_log_line_is_json_and_holds_nothing_posted(tmp_path: Path, access_log: str) -> None:
    with Service(temporary=tmp_path, access_log=access_log, log_level="debug") as service:
        service.post("/account/exact", {"mechanism": CASE_STUDY | {"tau_star": NUMBER}, "epsilon": 0.349})
        service.post("/account/exact", {"mechanism": CASE_STUDY | {"sigma": WORD}, WORD: NUMBER})
        service.post(f"/{WORD}?{WORD}={NUMBER}", {WORD: NUMBER})
        service.get(f"/healthz?{WORD}={NUMBER}")
        service.get("/healthz")
        service.stop()

    assert WORD not in service.output + service.errors
    assert str(NUMBER) not in service.output + service.errors
    assert all({"time", "level", "logger", "message"} <= set(line) for line in service.log)
    requests = [line for line in service.log if "route" in line]
    expected = [("POST", "/account/exact", 200), ("POST", "/account/exact", 422), ("POST", "none", 404)]
    expected += [("GET", "/healthz", 422), ("GET", "/healthz", 200)]
    assert [(line["method"], line["route"], line["status"]) for line in requests] == (
        expected if access_log == "true" else []
    )


BROKEN = f"""
import uvicorn
from app.http.auth import PUBLIC
from app.server.logs import log_config
from app.main import create_app

app = create_app()

@app.get("/broken", dependencies=[PUBLIC])
async def broken() -> None:
    raise RuntimeError("{WORD}")

uvicorn.run(app, port=0, access_log=False, log_config=log_config("info"))
"""


def test_the_log_of_a_failure_has_the_place_and_not_the_message(tmp_path: Path) -> None:
    with Service("-c", BROKEN, temporary=tmp_path) as service:
        response = service.get("/broken")
        failure = service.wait_for(lambda line: line["level"] == "error")
        service.stop()

    assert response.status_code == 500
    assert failure["exception"] == "RuntimeError"
    assert failure["frames"]
    assert WORD not in response.text + service.output + service.errors


def test_the_process_that_workers_are_forked_from_starts_with_the_service(tmp_path: Path) -> None:
    """So the first heavy request waits for a fork, and not for an interpreter that imports everything."""
    with Service(*NEW, temporary=tmp_path) as service:
        fork_server = fork_server_of(service.pid)
        assert service.post("/compare", COMPARE).status_code == 200
        assert fork_server_of(service.pid) == fork_server
        assert worker_of(service.pid, "accounting")


COMPARE = {"mechanism": {"c_u": 3, "tau": 1}, "epsilon": 1, "delta": 1e-6}


class Pair(Service):
    """A service with two web workers, which notes heads when it stops."""

    def __init__(self, folder: Path) -> None:
        self.temporary, self.heads = folder / "temporary", folder / "heads"
        self.temporary.mkdir()
        super().__init__(temporary=self.temporary, workers="2", heads_file=str(self.heads))

    def __enter__(self) -> Self:
        super().__enter__()
        for _ in range(2):
            self.wait_for_message("Application startup complete")
        return self

    @property
    def workers(self) -> list[int]:
        started = [line["message"] for line in self.log if "Started server process" in line["message"]]
        return [int(message.split("[")[1].rstrip("]")) for message in started]


@pytest.fixture(scope="module")
def pairs() -> Iterator[ExitStack]:
    with ExitStack() as running:
        yield running


_running: list[Pair] = []


@pytest.fixture
def pair(pairs: ExitStack, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """Tests share one, until one of them ends it: it starts as five interpreters."""
    if not _running or _running[-1].has_ended:
        _running.append(pairs.enter_context(Pair(tmp_path_factory.mktemp("pair"))))
    return _running[-1]


def test_each_of_two_workers_exposes_the_metrics_of_both(pair: Pair) -> None:
    assert len(pair.workers) == 2
    for worker in pair.workers:
        with stopped(worker):
            assert pair.post("/account/exact", BODY).status_code == 200
            assert pair.post("/compare", COMPARE).status_code == 200  # by a process of its own
            assert pair.get("/healthz").status_code == 200  # the first request is counted by now
    for worker in pair.workers:
        with stopped(worker):
            metrics = pair.get("/metrics").text.splitlines()
            assert 'gsh_requests_total{method="POST",route="/account/exact",status="200"} 2.0' in metrics
            assert "gsh_cache_misses_total 2.0" in metrics


@pytest.mark.parametrize(
    ("name", "value"),
    [("port", WORD), ("port", "70000"), ("workers", "0"), ("log_level", WORD), ("max_body_bytes", "1"), ("port", "")],
)
def test_a_wrong_setting_is_one_line_that_names_it(name: str, value: str) -> None:
    finished = run_command("app", **{name: value})

    assert finished.returncode == 2
    assert finished.stdout == ""
    (line,) = finished.stderr.splitlines()
    assert line.startswith(f"GSH_{name.upper()}: ")
    assert WORD not in line


def test_a_new_interpreter_says_the_same_of_a_wrong_setting() -> None:
    finished = subprocess.run(
        [sys.executable, "-m", "app"],
        cwd=ROOT,
        env=environment(port=WORD),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )

    known = run_command("app", port=WORD)
    assert (finished.returncode, finished.stdout, finished.stderr) == (2, known.stdout, known.stderr)


def test_workers_draw_noise_of_their_own(pair: Pair) -> None:
    """Each worker, and each process that it starts, asks the operating system. Forking copies no random state."""
    mechanism = {"c_u": 1, "tau": 1, "tau_star": 50.0, "sigma": 5.0}
    keys = [f"{'k' * 60}{number}" for number in range(2000)]
    small = {"mechanism": mechanism, "groups": {"keys": ["a", "b"], "counts": [1000, 1000]}}
    large = {"mechanism": mechanism, "groups": {"keys": keys, "counts": [1000] * len(keys)}}
    answers = [pair.post("/release", body).json() for body in [small] * 20 + [large] * 6]

    assert len({tuple(answer["groups"]["counts"][:2]) for answer in answers}) == 26


def test_several_workers_note_each_head_once_and_leave_nothing(pair: Pair) -> None:
    """When they are stopped: no process, and no other file."""
    limit = {"epsilon": 1, "delta": 1e-4}
    assert httpx.put(f"{pair.url}/budgets/web", json=limit, timeout=PATIENCE).status_code == 200
    assert pair.post("/compare", COMPARE).status_code == 200
    fork_server = fork_server_of(pair.pid)

    assert pair.stop() == 0

    wait_for_end(fork_server)
    notes = list(map(json.loads, pair.heads.read_text().splitlines()))
    (line,) = (note for note in notes if "budget" in note)
    assert (line["budget"], line["entries"], len(notes)) == ("web", 1, 2)  # and the checkpoint
    assert pair.errors == ""
    assert list(pair.temporary.iterdir()) == []


def test_no_process_outlives_a_killed_service(pair: Pair) -> None:
    """Without their parent, web workers would keep the port, and nobody would stop them."""
    assert pair.post("/compare", COMPARE).status_code == 200
    started = family(pair.pid)
    assert len(started) >= 5  # the parent, two web workers, the fork server, a worker of a pool
    os.kill(pair.pid, signal.SIGKILL)
    pair.wait()
    for process in started:
        wait_for_end(process)
