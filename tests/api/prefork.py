"""The service with workers forked from a parent that has loaded everything, so a killed worker is replaced at once.

``python -m tests.api.prefork PORT WORKERS``. It serves like ``python -m app``, whose workers take a second to start.
"""

import gc
import os
import socket
import sys

import pyarrow as pa
import uvicorn
import uvloop  # noqa: F401 - loaded before the workers are forked

import app.ledger.postgres  # noqa: F401 - likewise
from app.http_protocol import BoundedProtocol
from app.logs import log_config
from app.main import create_app
from gsh.histogram import quantiles

__all__: list[str] = []


def serve(listener: socket.socket) -> None:
    """In a worker: an application of its own, on the parent's socket."""
    config = uvicorn.Config(
        create_app(), http=BoundedProtocol, ws="none", loop="uvloop", access_log=False, log_config=log_config("error")
    )
    uvicorn.Server(config).run(sockets=[listener])


def main() -> None:
    port, workers = map(int, sys.argv[1:])
    quantiles.table()
    pa.array([""])  # loads pandas, if it is there
    gc.collect()
    gc.freeze()  # so a worker has little to collect when it starts
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(128)
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


if __name__ == "__main__":
    main()
