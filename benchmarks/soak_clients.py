"""The clients of the soak: each does one thing after the other, in an order of its own, and tells what was answered."""

import http.client
import itertools
import json
import random
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event

from benchmarks.setting import DELTA, EPSILON, MECHANISM, OUTLINE_BODY
from tests.app.crashes import BODY, digest_of, table

__all__ = ["CLOSED", "HUNG_UP", "Note", "client"]

CLOSED, HUNG_UP = 0, -1
"""In place of a status: the service has closed a connection without an answer, or the client did so on purpose."""
MOST_TABLES = 20
"""Of each client. Later it repeats them, so that the database stays small."""

JSON = {"Content-Type": "application/json"}
FORM = {"Content-Type": "multipart/form-data; boundary=frontier"}
TIMEOUT = 60
NONSENSE = (b"{", b"[]", b'{"mechanism": 1}', b'{"sigma": NaN}', b"\xff\xfe", b'{"epsilon": 1e999}')
PAGES = ("/", "/budgets", "/releases", "/openapi.json", "/metrics", "/readyz", "/budgets/web", "/budgets/web/verify")


@dataclass(frozen=True, slots=True)
class Note:
    """One answer, or none: then ``status`` says who closed the connection."""

    status: int
    seconds: float = 0.0
    is_timed: bool = False
    """Only small accounting is timed: the time of other requests depends on their size."""
    key: str | None = None
    content: bytes = b""


def client(port: int, number: int, stop: Event, notes: "Queue[Note]") -> None:
    """Until it is told to stop."""
    lots = random.Random(number)
    doing = Client(port, number, lots)
    things: dict[Callable[[], Note], int] = {
        doing.account: 60,
        doing.curve: 4,
        doing.calibrate: 4,
        doing.compare: 1,
        doing.release: 12,
        doing.repeat: 6,
        doing.read_answer: 6,
        doing.release_table: 2,
        doing.page: 4,
        doing.nonsense: 4,
        doing.hang_up: 2,
    }
    while not stop.is_set():
        (do,) = lots.choices(list(things), list(things.values()))
        notes.put(do())


class Client:
    """What one client can do, on a connection that it keeps as long as the service does."""

    def __init__(self, port: int, number: int, lots: random.Random) -> None:
        self._port, self._number, self._lots = port, number, lots
        self._connection = self._connected()
        self._keys = (f"{number}-{k}" for k in itertools.count())
        self._made: list[str] = []
        self._tables = [table(order) for order in range(2)]

    def account(self) -> Note:
        mechanism = MECHANISM | {"sigma": 2228 + self._lots.randrange(10**6) * 1e-6}
        return self._post("/account/exact", {"mechanism": mechanism, "epsilon": EPSILON}, is_timed=True)

    def curve(self) -> Note:
        epsilons = [self._lots.uniform(0.1, 1) for _ in range(200)]
        return self._post("/account/exact", {"mechanism": MECHANISM, "epsilon": epsilons})

    def calibrate(self) -> Note:
        return self._post("/calibrate", self._target())

    def compare(self) -> Note:
        return self._post("/compare", self._target())

    def release(self) -> Note:
        return self._paid(next(self._keys))

    def repeat(self) -> Note:
        """A release that was made, or was perhaps made: an answer may have been lost."""
        return self._paid(self._lots.choice(self._made)) if self._made else self.release()

    def read_answer(self) -> Note:
        if not self._made:
            return self.release()
        key = self._lots.choice(self._made)
        note = self._ask("GET", f"/releases/{key}/answer", b"", {})
        return Note(note.status)

    def release_table(self) -> Note:
        """A table whose answer is stored in parts; its rows are in one of two orders."""
        key = f"table-{self._number}-{self._lots.randrange(MOST_TABLES)}"
        note = self._ask("POST", "/release/table", self._lots.choice(self._tables), FORM | {"Idempotency-Key": key})
        return Note(note.status, key=key, content=note.content)

    def page(self) -> Note:
        return self._ask("GET", self._lots.choice(PAGES), b"", {})

    def nonsense(self) -> Note:
        return self._ask("POST", "/account/exact", self._lots.choice(NONSENSE), JSON)

    def hang_up(self) -> Note:
        """In the middle of an upload. The service may have refused it before."""
        upload = self._tables[0]
        head = f"POST /release/table HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(upload)}\r\n"
        head += f"Content-Type: {FORM['Content-Type']}\r\nIdempotency-Key: hung-up-{next(self._keys)}\r\n\r\n"
        with suppress(OSError), socket.create_connection(("127.0.0.1", self._port), TIMEOUT) as connection:
            connection.sendall(head.encode() + upload[: self._lots.randrange(len(upload))])
        return Note(HUNG_UP)

    def _target(self) -> dict[str, object]:
        return {"mechanism": OUTLINE_BODY, "epsilon": self._lots.uniform(0.3, 2), "delta": DELTA}

    def _paid(self, key: str) -> Note:
        if key not in self._made:
            self._made.append(key)
        note = self._ask("POST", "/release", json.dumps(BODY).encode(), JSON | {"Idempotency-Key": key})
        return Note(note.status, key=key, content=note.content)

    def _post(self, path: str, body: object, *, is_timed: bool = False) -> Note:
        note = self._ask("POST", path, json.dumps(body).encode(), JSON)
        return Note(note.status, note.seconds, is_timed)

    def _ask(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> Note:
        started = time.perf_counter()
        try:
            with suppress(BrokenPipeError, ConnectionResetError):  # it may answer before it has read everything
                self._connection.request(method, path, body or None, headers)
            answer = self._connection.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            self._connection = self._connected()
            return Note(CLOSED)
        return Note(answer.status, time.perf_counter() - started, content=digest_of(content))

    def _connected(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self._port, timeout=TIMEOUT)
