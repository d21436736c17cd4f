"""compose.yaml with a real engine: PostgreSQL, four workers, and the first access key from the settings."""

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.image.engine import PATIENCE, ROOT, called, engine_or_skip, inspected
from tests.image.walk import UnderWay, walk

pytestmark = pytest.mark.image
if engine_or_skip() != "docker" or called("compose", "version").returncode:
    pytest.skip("compose needs docker, with its plugin", allow_module_level=True)

KEY = "first-key-" + "k" * 32
SECRETS = {
    "postgres-password": "p" * 32,
    "ledger-url": f"postgresql://ledger:{'p' * 32}@postgres:5432/ledger",
    "ledger-secret": "s" * 32,
    "admin-key": KEY,
}
CHARGE = {"mechanism": {"c_u": 1, "tau": 1, "tau_star": 500, "sigma": 50}}
CHARGES = 40


COMMAND = ["docker", "compose", f"--file={ROOT / 'compose.yaml'}", "--project-name=gsh-image-test"]
FOLDER = Path(tempfile.mkdtemp(prefix="gsh-secrets-"))
VARIABLES = os.environ | {"PORT": "0", "SECRETS": str(FOLDER)}


def compose(*arguments: str) -> str:
    command = [*COMMAND, *arguments]
    done = subprocess.run(command, env=VARIABLES, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def running() -> Iterator[None]:
    """`up --wait` returns when both are healthy."""
    for name, secret in SECRETS.items():
        (FOLDER / name).write_text(f"{secret}\n")
        (FOLDER / name).chmod(0o444)
    try:
        compose("up", "--detach", "--wait")
        yield
    finally:
        compose("down", "--volumes", "--timeout=30")
        for path in FOLDER.iterdir():
            path.unlink()


def client() -> httpx.Client:
    address = re.findall(r"127\.0\.0\.1:\d+", compose("port", "service", "8000"))[0]
    return httpx.Client(base_url=f"http://{address}", headers={"authorization": f"Bearer {KEY}"}, timeout=PATIENCE)


def test_it_starts_at_once_charges_exactly_once_and_keeps_the_ledger(running: None) -> None:
    with client() as service:
        assert service.get("/readyz").json() == {"status": "ok", "ledger": "ok"}
        service.put("/budgets/web", json={"epsilon": 8, "delta": 1e-3}).raise_for_status()

        def charge(number: int) -> int:
            """Each one twice, on any of the workers."""
            headers = {"idempotency-key": f"charge-{number // 2}"}
            return service.post("/budgets/web/charges", json=CHARGE, headers=headers).status_code

        with ThreadPoolExecutor(16) as pool:
            assert set(pool.map(charge, range(2 * CHARGES))) <= {200, 201}
        before = service.get("/budgets/web").raise_for_status().json()
    log = compose("logs", "--no-log-prefix", "service")
    assert log.count("Application startup complete") == 4

    compose("restart", "--timeout=30")
    compose("up", "--detach", "--wait")
    with client() as service:
        after = service.get("/budgets/web").raise_for_status().json()
    assert after == before
    assert before["entries"] == 1 + CHARGES  # the first one is its limit

    assert KEY not in compose("logs")
    (container,) = compose("ps", "--quiet", "service").split()
    shown = json.dumps(inspected("container", container))
    assert not any(secret in shown for secret in SECRETS.values())


def test_it_answers_everything_and_ends_normally_with_a_request_under_way(running: None) -> None:
    logs = subprocess.Popen([*COMMAND, "logs", "--follow", "service"], env=VARIABLES, stdout=subprocess.PIPE, text=True)
    assert logs.stdout is not None
    with client() as service, ThreadPoolExecutor(1) as pool, logs.stdout as lines:
        walk(service)
        with UnderWay(service) as request:
            stop = pool.submit(compose, "stop")
            assert any("Shutting down" in line for line in lines)
            assert b"200 OK" in request.finished()
        stop.result(PATIENCE)
    logs.wait(PATIENCE)
    states = [json.loads(line) for line in compose("ps", "--all", "--format=json").splitlines()]
    assert {state["Service"]: state["ExitCode"] for state in states} == {"service": 0, "postgres": 0}
