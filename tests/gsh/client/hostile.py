"""Answers of a hostile server: real ones, changed in bytes, lengths, ends and types, and given to a client.

``python -m tests.gsh.client.hostile FILE SEED COUNT`` is the child process: a crash of Arrow ends it, and not the
tests. FILE has recorded answers. It prints how many changed answers were refused, how many could be used, and what else
happened.
"""

import asyncio
import base64
import io
import json
import random
import resource
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa

import gsh
from gsh.client import ServiceError
from gsh.histogram.conversion import write_rows

__all__ = ["CALLS", "KEYS", "MECHANISM", "RELEASE", "Recorder", "attack", "changed", "table", "use"]

MECHANISM = gsh.Mechanism(c_u=2, tau=1, tau_star=30, sigma=4)
KEYS = ("text", "long", "kind", "number", "real", "day", "at", "price", "flag", "raw", "id")
RELEASE = "hostile"
_MEMORY = 6 << 30
"""The address space of the child: it ends a test in which an answer takes what its headers declare."""
_EDGES = (0, 1, 2, 7, 8, 63, 2**15, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**63 - 1, 2**64 - 1)
_WRONG: tuple[Any, ...] = (None, True, -1, 1e300, 10**40, "", "\x1b[2J\u202e", [], {}, [[]], {"id": 5}, ["x"] * 3)


def _rows(client: Any) -> Any:
    return client.release(table(), MECHANISM, users="users", keys=KEYS, budget=RELEASE, once=RELEASE)


def _two_tables(client: Any) -> Any:
    tables, keys = {"one": table(), "two": table().slice(3)}, {"one": KEYS, "two": KEYS}
    return client.release(tables, dict.fromkeys(tables, MECHANISM), users="users", keys=keys)


CALLS: Mapping[str, Callable[[Any], Any]] = {
    "release": _rows,
    "tables": _two_tables,
    "load": lambda client: client.releases.load(RELEASE),
    "parquet": lambda client: client.releases.answer(RELEASE, "parquet"),
    "csv": lambda client: client.releases.answer(RELEASE, "csv"),
    "groups": lambda client: client.release(MECHANISM, keys=["a", "b"], counts=[500, 600]),
    "record": lambda client: client.releases.get(RELEASE),
    "certificate": lambda client: client.releases.certificate(RELEASE),
    "budget": lambda client: client.budgets.get(RELEASE),
    "calibrate": lambda client: client.calibrate(c_u=2, epsilon=1, delta=1e-6),
    "compare": lambda client: client.compare(c_u=2, epsilon=1, delta=1e-6),
    "intervals": lambda client: client.intervals(MECHANISM, counts=[40, 50]),
    "problem": lambda client: client.budgets.get("none"),
    "exceeded": lambda client: client.budgets.charge(
        "small", gsh.Mechanism(c_u=99, tau_star=3, sigma=0.1), once="much"
    ),
}
"""Tables come first: most changed answers are of them."""


def table() -> pa.Table:
    """Every kind of buffer: texts, views of a dictionary, bits, numbers of several widths; with nulls."""
    rows = 60
    texts = [None if row % 9 == 5 else f"page {row % 7} of a site" for row in range(rows)]
    columns: dict[str, Any] = {
        "text": pa.array(texts),
        "long": pa.array(texts, pa.large_string()),
        "kind": pa.array(texts).dictionary_encode(),
        "number": pa.array(range(rows)),
        "real": pa.array([row / 4 for row in range(rows)]),
        "day": pa.array(range(rows), pa.date32()),
        "at": pa.array(range(rows), pa.timestamp("us", "UTC")),
        "price": pa.array(range(rows), pa.int64()).cast(pa.decimal128(25, 2)),
        "flag": pa.array([row % 3 == 0 for row in range(rows)]),
        "raw": pa.array([bytes([row]) * (row % 5) for row in range(rows)]),
        "id": pa.array([bytes([row]) * 16 for row in range(rows)], pa.uuid()),
        "users": pa.array([1000] * rows),
    }
    return pa.table(columns)


class Recorder(httpx.HTTPTransport):
    """Passes requests on, and keeps the answers of each call, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: list[dict[str, Any]] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = super().handle_request(request)
        answer.read()
        kept = {name: value for name, value in answer.headers.items() if name != "content-length"}
        body = base64.b64encode(answer.content).decode()
        self.answers.append({"status": answer.status_code, "headers": kept, "body": body})
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)


class _Replay:
    """One of the answers of a call is changed."""

    def __init__(self, answers: list[dict[str, Any]], chance: random.Random) -> None:
        self._answers = [(each["status"], dict(each["headers"]), base64.b64decode(each["body"])) for each in answers]
        place = chance.randrange(len(answers))
        status, headers, body = self._answers[place]
        if chance.random() < 0.9:  # else the digest finds every change
            headers.pop("repr-digest", None)
        self._answers[place] = status, headers, changed(body, chance)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        request.read()
        return self._answer()

    async def asynchronous(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        return self._answer()

    def _answer(self) -> httpx.Response:
        status, headers, body = self._answers.pop(0)
        return httpx.Response(status, headers=headers, content=body)


def changed(body: bytes, chance: random.Random) -> bytes:
    """An answer that is cut, longer, or has other bits, lengths or members."""
    how = chance.randrange(8)
    if how == 0:
        return body[: chance.randrange(len(body) + 1)]
    if how == 1 and body[:1] == b"{":
        return json.dumps(_other_member(json.loads(body), chance)).encode()
    if how == 2:
        return body + chance.randbytes(chance.choice((1, 8, 64)))
    content = bytearray(body)
    if how in (3, 4) and len(content) > 8:
        width = chance.choice((4, 8))
        place = chance.randrange(len(content) - 7) & ~3
        content[place : place + width] = (chance.choice(_EDGES) % 2 ** (8 * width)).to_bytes(width, "little")
        return bytes(content)
    for _ in range(chance.choice((1, 1, 2, 8, 40))):
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    return bytes(content)


def _other_member(document: Any, chance: random.Random) -> Any:
    """The document with one member of another type, or without it."""
    at = document
    while True:
        places = list(at) if isinstance(at, dict) else list(range(len(at)))
        place = chance.choice(places)
        if isinstance(at[place], dict | list) and at[place] and chance.random() < 0.8:
            at = at[place]
            continue
        if isinstance(at, dict) and chance.random() < 0.2:
            del at[place]
        else:
            at[place] = chance.choice(_WRONG)
        return document


def use(found: Any) -> None:
    """What a program does with an answer: writes it, and shows it."""
    if isinstance(found, gsh.PrivateTables):
        for name, roles in found.roles.items():
            with suppress(Exception):  # Python has fewer dates than Arrow
                found.tables[name].to_pylist()
            for into in ("arrow", "parquet", "csv"):
                write_rows(found.tables[name], roles, into, "", io.BytesIO())  # type: ignore[arg-type]
    repr(found)


def attempt(call: Callable[[Any], Any], answers: list[dict[str, Any]], chance: random.Random, *, is_async: bool) -> str:
    """What becomes of one changed answer."""
    replay = _Replay(answers, chance)
    try:
        if is_async:
            found = asyncio.run(_awaited(call, replay))
        else:
            with gsh.Client("http://127.0.0.1:9", retries=0, transport=httpx.MockTransport(replay)) as client:
                found = call(client)
    except ServiceError as error:
        str(error)
        return "refused"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    use(found)
    return "used"


async def _awaited(call: Callable[[Any], Any], replay: _Replay) -> Any:
    transport = httpx.MockTransport(replay.asynchronous)
    async with gsh.AsyncClient("http://127.0.0.1:9", retries=0, transport=transport) as client:
        return await call(client)


def attack(recorded: Mapping[str, list[dict[str, Any]]], seed: int, count: int) -> dict[str, int]:
    """How often each outcome happened."""
    chance = random.Random(seed)
    names = list(recorded)
    happened: Counter[str] = Counter()
    for number in range(count):
        name = names[number % 2] if number % 4 < 2 else chance.choice(names)
        happened[attempt(CALLS[name], recorded[name], chance, is_async=number % 16 == 0)] += 1
    return dict(happened)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    counted = attack(json.loads(Path(sys.argv[1]).read_text()), int(sys.argv[2]), int(sys.argv[3]))
    sys.stdout.write(json.dumps(counted))
