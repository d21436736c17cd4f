"""How much memory does a worker take for a request that is made to take as much as possible?

``python -m benchmarks.bombs`` sends some 200 of them to a service with the settings of deploy/kubernetes, and prints
the peak of any of its processes for each. ``python -m benchmarks.bombs parquet json`` sends only those whose names have
one of these words. It fails if a peak is above four times the limit of a table and 200 MB.
"""

import gzip
import http.client
import json
import re
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from benchmarks.bomb_tables import Table, arrow_bombs, csv_bombs, parquet_bombs
from benchmarks.markdown import table as markdown
from benchmarks.server import Server, serving
from benchmarks.setting import MECHANISM
from benchmarks.sizing import MIB, SETTINGS, settings_of
from tests.app.process import family

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

__all__ = ["Bomb", "bombs", "json_bombs", "peaks", "table_bombs"]

_POLL = 0.01
_SECONDS = 30
_BOUNDARY = "bomb"


class Bomb(NamedTuple):
    name: str
    path: str
    headers: dict[str, str]
    make: Callable[[], bytes]


def main() -> None:
    wanted = sys.argv[1:]
    settings = settings_of(SETTINGS) | {"host": "127.0.0.1", "require_budget": False, "log_level": "error"}
    limit = int(settings["max_table_bytes"])  # type: ignore[call-overload]
    bar = 4 * limit + 200 * 10**6
    deadlines = {"release_seconds": _SECONDS, "heavy_seconds": _SECONDS}
    rows, over = [], 0
    with (
        tempfile.TemporaryDirectory(prefix="gsh-bombs-") as folder,
        serving("app", ledger=f"{folder}/ledger.sqlite3", **settings | deadlines) as server,
    ):
        for bomb in bombs(limit):
            if wanted and not any(word in bomb.name for word in wanted):
                continue
            content = bomb.make()
            found = peaks(server, bomb, content)
            largest = max(found.by_process, key=found.by_process.__getitem__)
            peak = found.by_process[largest]
            over += peak > bar
            sizes = [f"{len(content):,}", f"{peak / MIB:,.0f}", f"{found.kept / MIB:,.0f}"]
            rows.append((bomb.name, *sizes, largest, str(found.status), f"{found.seconds:.1f}"))
            print(*rows[-1], sep=" | ", flush=True)
    print(f"\n## {len(rows)} bombs: the peak of a process; goal: at most {bar / MIB:,.0f} MiB\n")
    print(markdown(("bomb", "bytes", "peak, MiB", "kept, MiB", "process", "status", "seconds"), rows))
    print(f"\nAbove the goal: {over} of {len(rows)}.", dict(Counter(row[-2] for row in rows)))
    sys.exit(over > 0)


class Peaks(NamedTuple):
    by_process: dict[str, int]
    """The largest resident size of the processes of each name."""
    kept: int
    """What a worker that is left has afterwards."""
    status: int
    seconds: float


def peaks(server: Server, bomb: Bomb, content: bytes) -> Peaks:
    """The peaks of the service's processes while it answers one request."""
    statuses: list[int] = []

    def send() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=2 * _SECONDS)
        try:
            connection.request("POST", bomb.path, content, bomb.headers)
            answer = connection.getresponse()
            answer.read()
            statuses.append(answer.status)
        except OSError:
            statuses.append(0)
        finally:
            connection.close()

    _forget_peaks(server)
    sending = threading.Thread(target=send)
    started = time.perf_counter()
    sending.start()
    found: Counter[str] = Counter()
    while sending.is_alive():
        _look(server, found)
        time.sleep(_POLL)
    seconds = time.perf_counter() - started
    _look(server, found)
    return Peaks(found, _kept(server), statuses[0], seconds)


def _forget_peaks(server: Server) -> None:
    for pid in family(server.process.pid):
        with suppress(OSError):
            Path(f"/proc/{pid}/clear_refs").write_text("5")


def _look(server: Server, found: Counter[str]) -> None:
    for pid in family(server.process.pid):
        with suppress(OSError, KeyError):
            status = _status(pid)
            found[status["Name"]] = max(found[status["Name"]], _bytes(status["VmHWM"]))


def _kept(server: Server) -> int:
    kept = [0]
    for pid in family(server.process.pid):
        with suppress(OSError, KeyError):
            status = _status(pid)
            if status["Name"] in {"gsh-releases", "gsh-accounting", "gsh-conversions"}:
                kept.append(_bytes(status["VmRSS"]))
    return max(kept)


def _status(pid: int) -> dict[str, str]:
    return dict(re.findall(r"(?m)^(\w+):\s+(.*)$", Path(f"/proc/{pid}/status").read_text()))


def _bytes(kilobytes: str) -> int:
    return int(kilobytes.split(maxsplit=1)[0]) * 1024


def bombs(limit: int) -> Iterator[Bomb]:
    yield from table_bombs(limit)
    yield from json_bombs()


def table_bombs(limit: int) -> Iterator[Bomb]:
    """Tables for /release/table. Those that compress well come compressed too."""
    for makers in (parquet_bombs, arrow_bombs, csv_bombs):
        for bomb in makers(limit):
            yield _posted(bomb)
    for name, members, make in csv_bombs(limit):
        yield _compressed(_posted((name, members, make)), "gzip", gzip.compress)


def _posted(bomb: Table) -> Bomb:
    name, members, make = bomb
    request = json.dumps({"mechanism": MECHANISM, "epsilon": 1, **members}).encode()
    headers = {"Content-Type": f"multipart/form-data; boundary={_BOUNDARY}"}
    return Bomb(name, "/release/table", headers, lambda: _form(request, make()))


def _form(request: bytes, table: bytes) -> bytes:
    start = f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="'.encode()
    end = f"\r\n--{_BOUNDARY}--\r\n".encode()
    return b"".join([start, b'request"\r\n\r\n', request, b"\r\n", start, b'table"\r\n\r\n', table, end])


def json_bombs(release: int = 64 * MIB) -> Iterator[Bomb]:
    """Bodies as JSON, compressed: lists and objects take far more memory than their text."""
    start = json.dumps({"mechanism": MECHANISM, "epsilon": 1})[:-1].encode()
    public = json.dumps({"mechanism": MECHANISM})[:-1].encode()
    for name, unit in _UNITS.items():
        for place, before, after in (
            ("keys", b',"groups":{"counts":[],"keys":[', b"]}}"),
            ("counts", b',"groups":{"keys":[],"counts":[', b"]}}"),
        ):
            yield _json(f"json, {place} of {name}", "/release", start + before, unit, after, release)
        yield _json(
            f"json, values of {name}",
            "/release",
            start + b',"groups":{"keys":[],"counts":[],"values":{"a":[',
            unit,
            b"]}}}",
            release,
        )
        yield _json(f"json, published {name}", "/intervals", public + b',"counts":[', unit, b"]}", release // 4)
        yield _json(f"json, sizes of {name}", "/utility", public + b',"sizes":[', unit, b"]}", 2 * MIB)
    for name, unit in (("members", b'"a":0'), ("objects", b'"a":{}')):
        for path in ("/release", "/intervals"):
            yield _json(f"json, {name} of {path}", path, start + b",", unit, b"}", release)
        yield _json(f"json, {name} of /account/exact", "/account/exact", start + b",", unit, b"}", 2 * MIB)
    yield _json(
        "json, depth",
        "/release",
        start + b',"groups":' + b"[" * (release // 2 - 1000),
        b"1",
        b"]" * (release // 2 - 1000) + b"}",
        1,
    )
    yield _json(
        "json, one text of emoji",
        "/release",
        start + b',"groups":{"counts":[1],"keys":["',
        "😀".encode() * 1000,
        b'"]}}',
        release,
        b"",
    )
    yield _json(
        "json, one escaped text",
        "/release",
        start + b',"groups":{"counts":[1],"keys":["',
        b"\\ud83d\\ude00" * 100,
        b'"]}}',
        release,
        b"",
    )
    yield _json(
        "json, one long number",
        "/release",
        start + b',"groups":{"counts":[1],"keys":[',
        b"1" * 1000,
        b"]}}",
        release,
        b"",
    )


_UNITS = {
    "lists": b"[]",
    "lists of lists": b"[[]]",
    "objects": b"{}",
    "zeros": b"0",
    "integers": b"123456",
    "long integers": b"1" * 40,
    "doubles": b"1.5",
    "texts": b'""',
    "nulls": b"null",
}


def _json(name: str, path: str, before: bytes, unit: bytes, after: bytes, size: int, comma: bytes = b",") -> Bomb:
    count = max(1, (size - len(before) - len(after)) // len(unit + comma))

    def make() -> bytes:
        return before + (unit + comma) * (count - 1) + unit + after

    plain = Bomb(name, path, {"Content-Type": "application/json"}, make)
    coding, compress = ("zstd", zstd.compress) if len(name) % 2 else ("gzip", _fast_gzip)
    return _compressed(plain, coding, compress)


def _fast_gzip(content: bytes) -> bytes:
    return gzip.compress(content, 1)


def _compressed(bomb: Bomb, coding: str, compress: Callable[[bytes], bytes]) -> Bomb:
    headers = bomb.headers | {"Content-Encoding": coding}
    return Bomb(f"{bomb.name}, {coding}", bomb.path, headers, lambda: compress(bomb.make()))


if __name__ == "__main__":
    main()
