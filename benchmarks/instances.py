"""Instances of the service behind nginx on one PostgreSQL, for measurements: started, restarted and stopped."""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from pathlib import Path

__all__ = ["Cluster", "cluster"]

PROXY = Path(__file__).parents[1] / "deploy" / "nginx" / "service.conf"
PATIENCE = 120
NGINX = """
worker_processes 1;
pid nginx.pid;
events { worker_connections 1024; }
http {
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path other;
    uwsgi_temp_path other;
    scgi_temp_path other;
    include service.conf;
}
"""


class Cluster:
    """``count`` instances with the same ledger. Each keeps its port when it is restarted, because nginx knows it."""

    def __init__(self, folder: Path, count: int, **settings: object) -> None:
        self._folder = folder
        self._settings = {f"GSH_{name.upper()}": str(value) for name, value in settings.items()}
        self.port, *self._ports = _free_ports(1 + count)
        self.url = f"http://127.0.0.1:{self.port}"
        self.instances = [self._started(port) for port in self._ports]
        for port in self._ports:
            _wait_for(port, "/readyz")
        self._nginx = self._proxy()

    def restart(self, number: int) -> None:
        """Stop an instance by SIGTERM, and start it again. The others go on."""
        self._stop(number)
        self.instances[number] = self._started(self._ports[number])
        _wait_for(self._ports[number], "/readyz")

    def close(self) -> None:
        self._nginx.terminate()
        self._nginx.wait(PATIENCE)
        for number in range(len(self.instances)):
            self._stop(number)

    def _stop(self, number: int) -> None:
        self.instances[number].terminate()
        code = self.instances[number].wait(PATIENCE)
        if code != 0:
            raise RuntimeError(f"an instance ended with {code}")

    def _started(self, port: int) -> "subprocess.Popen[bytes]":
        environment = os.environ | self._settings | {"GSH_PORT": str(port), "TMPDIR": str(self._folder)}
        return subprocess.Popen([sys.executable, "-m", "app"], env=environment, stdout=subprocess.DEVNULL)

    def _proxy(self) -> "subprocess.Popen[bytes]":
        """nginx with the configuration that operators get. Only the ports and the number of instances differ."""
        servers = iter(self._ports)
        lines = []
        for line in PROXY.read_text().splitlines():
            if re.match(r"\s+server 127", line):
                port = next(servers, None)
                lines += [] if port is None else [re.sub(r":\d+", f":{port}", line)]
            else:
                lines.append(re.sub(r"listen \S+;", f"listen 127.0.0.1:{self.port};", line))
        (self._folder / "service.conf").write_text("\n".join(lines))
        (self._folder / "nginx.conf").write_text(NGINX)
        program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
        assert program is not None, "nginx is needed: run `make nginx`, or apt-get install nginx"
        files = ("-p", str(self._folder), "-c", "nginx.conf", "-e", "nginx.log")
        process = subprocess.Popen([program, *files, "-g", "daemon off;"])
        _wait_for(self.port, "/healthz")
        return process


@contextmanager
def cluster(folder: Path, count: int, **settings: object) -> Iterator[Cluster]:
    folder.mkdir(mode=0o755)  # the workers of nginx are of another user
    made = Cluster(folder, count, **settings)
    try:
        yield made
    finally:
        made.close()


def _free_ports(count: int) -> list[int]:
    """All at the same time, so that they differ."""
    probes = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


def _wait_for(port: int, path: str) -> None:
    if not until(lambda: _status(port, path) == 200):
        raise RuntimeError("an instance or nginx did not start")


def until(is_true: Callable[[], bool], seconds: float = PATIENCE) -> bool:
    """Ask again and again; False if it does not become true in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if is_true():
            return True
        time.sleep(0.02)
    return False


def _status(port: int, path: str) -> int | None:
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except (OSError, HTTPException):
        return None
    finally:
        connection.close()
