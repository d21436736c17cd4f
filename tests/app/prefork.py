"""The service with workers forked from a parent that has loaded everything, so a killed worker is replaced at once.

``python -m tests.app.prefork PORT WORKERS`` starts a service for each line of its input, once the one before is killed,
prints its process when it listens, and prints ``serving`` when a worker does. It serves like ``python -m app``, which
takes a second to start, as its workers do.
"""

import errno
import gc
import os
import socket
import sys
from typing import NoReturn

import pyarrow as pa
import uvicorn
import uvloop  # noqa: F401 - loaded before the workers are forked

import app.ledger.databases.postgres  # noqa: F401 - likewise
import gsh.accounting.theorem  # noqa: F401 - likewise
from app.http.protocol import BoundedProtocol
from app.main import create_app
from app.server.logs import log_config
from app.workers.fork_server import FORK_SERVER
from gsh.histogram import quantiles

__all__: list[str] = []


class Worker(uvicorn.Server):
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        say("serving")


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def serve(listener: socket.socket) -> None:
    """In a worker: an application of its own, on the parent's socket."""
    FORK_SERVER.start_by_fork(())  # before there are threads, with which to fork is not safe
    app = create_app()
    config = uvicorn.Config(
        app, http=BoundedProtocol, ws="none", loop="uvloop", access_log=False, log_config=log_config("error")
    )
    Worker(config).run(sockets=[listener])


def listen(port: int) -> socket.socket:
    """As soon as the last worker of a killed service is gone, which still listens until then."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    while True:
        try:
            listener.bind(("127.0.0.1", port))
            listener.listen(128)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
        else:
            return listener


def supervise(port: int, workers: int) -> NoReturn:
    """In a service: keep so many workers, until it is killed."""
    os.setsid()
    listener = listen(port)
    say(f"process {os.getpid()}")
    running: set[int] = set()
    while True:
        while len(running) < workers:
            child = os.fork()
            if child == 0:
                serve(listener)
                os._exit(0)
            running.add(child)
        ended, _ = os.wait()
        running.discard(ended)


def main() -> None:
    port, workers = map(int, sys.argv[1:])
    quantiles.polynomials()
    pa.array([""])  # loads pandas, if it is there
    gc.collect()
    gc.freeze()  # so a worker has little to collect when it starts
    for _ in sys.stdin:
        child = os.fork()
        if child == 0:
            supervise(port, workers)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
