"""What a container relies on: a stop signal is obeyed while the service starts, and the health check is light."""

import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from app.settings import Settings
from tests.app.process import NEW, PATIENCE, ROOT, Service, environment


def ended(port: str, **settings: str) -> int:
    command = [sys.executable, "-m", "app.server.healthcheck"]
    variables = environment(port=port, **settings)
    return subprocess.run(command, cwd=ROOT, env=variables, timeout=PATIENCE, check=False).returncode


MODULES = ["uvicorn.config", "app.ledger.clock", "app.settings", "app.openapi", "app.ledger.upkeep"]
"""Before uvicorn has handlers of its own, and after."""


@pytest.mark.slow
@pytest.mark.parametrize("module", MODULES)
def test_a_stop_signal_while_modules_load_is_a_normal_end(tmp_path: Path, module: str) -> None:
    """The first process of a container has no default for the signal. Any handler shows here as exit code zero."""
    process = subprocess.Popen(
        [sys.executable, "-X", "importtime", "-m", "app"],  # it writes a line as soon as it has loaded a module
        cwd=ROOT,
        env=environment(port="0", ledger=str(tmp_path / "ledger.sqlite3")) | {"TMPDIR": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    with process.stderr as lines:
        assert any(line.split("|")[-1].strip().startswith(module) for line in lines)
        process.send_signal(signal.SIGTERM)
        said = [line for line in lines if not line.startswith("import time:")]

    assert process.wait(PATIENCE) == 0
    assert said == []


@pytest.mark.slow
def test_a_stop_before_web_workers_start_leaves_no_folder(tmp_path: Path) -> None:
    """The folder for their metrics is there for a few milliseconds before uvicorn has a handler for the signal."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    settings = environment(port="0", ledger=str(tmp_path / "ledger.sqlite3"), workers="2")
    command = [sys.executable, "-m", "app"]
    with subprocess.Popen(
        command, cwd=ROOT, env=settings | {"TMPDIR": str(temporary)}, stdout=subprocess.PIPE
    ) as process:
        while not any(temporary.glob("gsh-metrics-*")):
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0

    assert list(temporary.iterdir()) == []


@pytest.mark.slow
def test_the_health_check_asks_the_service_of_the_same_settings(tmp_path: Path) -> None:
    with Service(*NEW, temporary=tmp_path) as service:
        port = str(urlsplit(service.url).port)
        assert ended(port) == 0
        assert ended(port, host="0.0.0.0") == 0
        service.stop()
    assert ended(port) == 1


@pytest.mark.parametrize("port", ["", "many", "70000", "-1", "9" * 5000])
def test_a_wrong_port_is_not_healthy(port: str) -> None:
    assert ended(port) == 1


@pytest.mark.parametrize("answer", [b"HTTP/1.1 503 Service Unavailable\r\n\r\n", b"200\r\n", b"\xff" * 1000, b""])
def test_another_answer_than_200_is_not_healthy(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def reply() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(answer)

        thread = threading.Thread(target=reply)
        thread.start()
        assert ended(str(listener.getsockname()[1])) == 1
        thread.join(PATIENCE)


LOADED = "import sys, app.server.healthcheck; print(*sorted({name.split('.')[0] for name in sys.modules}))"


def test_the_health_check_loads_no_package_but_the_standard_library() -> None:
    command = [sys.executable, "-S", "-c", LOADED]
    loaded = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()

    assert set(loaded) - sys.stdlib_module_names == {"__main__", "app"}
    assert not {"http", "email", "ssl", "asyncio"} & set(loaded)


def test_the_health_check_has_the_defaults_of_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads two of them itself."""
    asked: list[object] = []
    for name in [name for name in os.environ if name.startswith("GSH_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(socket, "create_connection", lambda address, _seconds: asked.append(address) or socket.socket())
    from app.server.healthcheck import main  # noqa: PLC0415

    assert main() == 1
    assert asked == [(Settings.model_fields["host"].default, Settings.model_fields["port"].default)]
