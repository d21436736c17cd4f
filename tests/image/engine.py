"""Containers of a real engine, docker or podman, which ``make image-test`` names.

``IMAGE_BUILD_OPTIONS`` and ``IMAGE_RUN_OPTIONS`` are for machines with a special network.
"""

import json
import os
import queue
import re
import shlex
import shutil
import subprocess
import threading
import tomllib
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx
import pytest

__all__ = ["IMAGE", "PATIENCE", "ROOT", "VERSION", "Container", "build", "called", "checked", "engine_or_skip"]
__all__ += ["inspected", "volume"]

ROOT = Path(__file__).parents[2]
PATIENCE = 180
"""Seconds after which an engine that says nothing is given up."""
IMAGE = "gaussian-sparse-histogram"
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
_LISTENS = "Uvicorn running on"


def engine_or_skip() -> str:
    """The engine's name. Without one, the tests of this file are skipped, with one line that says so."""
    engine = os.environ.get("IMAGE_ENGINE", "")
    if not engine:
        pytest.skip("no container engine is asked for: make image-test ENGINE=docker", allow_module_level=True)
    if shutil.which(engine) is None or subprocess.run([engine, "info"], capture_output=True, check=False).returncode:
        pytest.skip(f"no engine answers to `{engine} info`", allow_module_level=True)
    return engine


def called(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """A command of the engine, with its output."""
    command = [os.environ["IMAGE_ENGINE"], *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False, **options)


def checked(*arguments: str, **options: Any) -> str:
    done = called(*arguments, **options)
    assert done.returncode == 0, (arguments, done.stdout, done.stderr)
    return done.stdout.strip()


def inspected(kind: str, name: str) -> Any:
    (found,) = json.loads(checked(kind, "inspect", name))
    return found


def extra(variable: str) -> list[str]:
    return shlex.split(os.environ.get(variable, ""))


def build(tree: Path, *tags: str) -> None:
    """Podman's own format of images has no health check."""
    options = ["--format=docker"] if os.environ["IMAGE_ENGINE"] == "podman" else []
    checked("build", *options, *extra("IMAGE_BUILD_OPTIONS"), *(f"--tag={tag}" for tag in tags), ".", cwd=tree)


@contextmanager
def volume() -> Iterator[str]:
    """A new named volume: the engine gives it the owner that the image's folder has."""
    name = f"gsh-test-{uuid.uuid4().hex[:12]}"
    checked("volume", "create", name)
    try:
        yield name
    finally:
        checked("volume", "rm", "--force", name)


class Container:
    """A service that runs as the documents say: read-only, with a tmpfs, and nothing more permitted than it needs."""

    def __init__(self, *options: str, command: tuple[str, ...] = (), **settings: str) -> None:
        self.name = f"gsh-test-{uuid.uuid4().hex[:12]}"
        variables = [part for name, value in settings.items() for part in ("--env", f"GSH_{name.upper()}={value}")]
        guards = ["--read-only", "--tmpfs=/tmp", "--cap-drop=ALL", "--security-opt=no-new-privileges"]
        places = [f"--name={self.name}", "--publish=127.0.0.1::8000", *extra("IMAGE_RUN_OPTIONS")]
        self._process = subprocess.Popen(
            [os.environ["IMAGE_ENGINE"], "run", "--rm", *places, *guards, *variables, *options, IMAGE, *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.output = ""
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            self.output += line
            self._lines.put(line)
        self._lines.put("")

    def __enter__(self) -> Self:
        self.wait_for(_LISTENS)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._process.poll() is None:
            called("rm", "--force", self.name)
            self.wait()

    def wait_for(self, part: str) -> str:
        """The next line with these words."""
        while part not in (line := self._lines.get(timeout=PATIENCE)):
            assert line, self.output
        return line

    def client(self, key: str = "") -> httpx.Client:
        address = re.findall(r"127\.0\.0\.1:\d+", checked("port", self.name, "8000/tcp"))[0]
        headers = {"authorization": f"Bearer {key}"} if key else {}
        return httpx.Client(base_url=f"http://{address}", headers=headers, timeout=PATIENCE)

    def stop(self) -> int:
        """The exit code: 137 if the engine had to kill it. The grace period is that of compose.yaml."""
        checked("stop", "--time=30", self.name)
        return self.wait()

    def wait(self) -> int:
        code = self._process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        assert self._process.stdout
        self._process.stdout.close()
        return code
