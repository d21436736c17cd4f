"""Dropped groups leave no trace: not in answer, headers, metrics or log; nor does the order of input."""

import json
import random
import re
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

from tests.app.client import Client, Json
from tests.app.process import PATIENCE, Service
from tests.app.releases.test_release_table import form
from tests.gsh.histogram.uploads import FORMATS, as_bytes, from_bytes

pytestmark = pytest.mark.slow

MECHANISM: Json = {"c_u": 3, "tau": 2, "tau_star": 120, "sigma": 20}
KEPT = {"b": 10**6, "d": 10**6, "f": 10**6}
DROPPED = {"a": 1, "c": 3, "e": 1, **{f"s3ntinel-{number}": 1 + number % 2 for number in range(300)}}
HISTOGRAMS = {"kept alone": KEPT, "with one dropped": KEPT | {"a": 1}, "with many dropped": KEPT | DROPPED}


def groups(histogram: dict[str, int], seed: int = 0) -> Json:
    keys = random.Random(seed).sample(list(histogram), len(histogram))
    return {"keys": keys, "counts": [histogram[key] for key in keys]}


def json_release(histogram: dict[str, int], seed: int = 0) -> dict[str, Any]:
    return {"json": {"mechanism": MECHANISM, "epsilon": 1, "groups": groups(histogram, seed)}}


def table_release(kind: str, histogram: dict[str, int], seed: int = 0, **further: Any) -> dict[str, Any]:
    shuffled = groups(histogram, seed)
    table = pa.table({"key": shuffled["keys"], "users": shuffled["counts"]})
    request = {"mechanism": MECHANISM, "epsilon": 1, "count_column": "users", "key_columns": ["key"]}
    request |= further
    return {"files": form(as_bytes(kind, table), request)}


def json_with_intervals(histogram: dict[str, int], seed: int = 0) -> dict[str, Any]:
    return {"json": json_release(histogram, seed)["json"] | {"intervals": 0.95}}


def table_with_intervals(histogram: dict[str, int], seed: int = 0) -> dict[str, Any]:
    return table_release("arrow", histogram, seed, intervals=0.95)


ENDPOINTS = {
    "json": ("/release", json_release),
    "json with intervals": ("/release", json_with_intervals),
    "arrow with intervals": ("/release/table", table_with_intervals),
    **{kind: ("/release/table", lambda *args, kind=kind: table_release(kind, *args)) for kind in FORMATS},
}


RANDOM = {"x-request-id", "content-length", "repr-digest"}
"""Headers that differ by chance: an id, and the length and the hash of noisy numbers."""


def without_chance(certificate: str) -> str:
    """A certificate without its id and time, and without the digests of noisy rows."""
    return re.sub(r'"(release_id|released_at|sha256)": ?"[^"]*"', "", certificate)


def shape(response: httpx.Response) -> Any:
    """The parts of a response that do not depend on the noise, the time or the release's id."""
    assert response.status_code == 200, response.text
    if response.headers["content-type"] == "application/json":
        answer = response.json()
        headers = {name: value for name, value in response.headers.items() if name not in RANDOM}
        certificate = without_chance(json.dumps(answer["certificate"]))
        return headers, answer["groups"]["keys"], len(answer["groups"]["counts"]), list(answer), certificate
    table = from_bytes(response.content)
    certificate = without_chance(table.schema.metadata[b"certificate"].decode())
    is_stream = "stream" in response.headers["content-type"]
    length = len(response.content) if is_stream else None  # the noise of Parquet is compressed
    headers = {name: value for name, value in response.headers.items() if name not in RANDOM}
    return headers, length, table.schema.remove_metadata(), table["key"].to_pylist(), certificate


def exposition(client: Client) -> str:
    """The metrics without the creation times of their counters."""
    return re.sub(r"(?m)^\w+_created\b.*$", "", client.get("/metrics").text)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_dropped_groups_change_neither_answer_nor_metrics(endpoint: str) -> None:
    path, body = ENDPOINTS[endpoint]
    seen = []
    for histogram in HISTOGRAMS.values():
        client = Client()
        response = client.request("POST", path, **body(histogram))
        assert b"s3ntinel" not in response.content
        seen.append((shape(response), exposition(client)))

    assert seen[0] == seen[1] == seen[2]
    assert f'route="{path}",status="200"}} 1.0' in seen[0][1]


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_the_order_of_input_does_not_show(client: Client, endpoint: str) -> None:
    path, body = ENDPOINTS[endpoint]
    shapes = [shape(client.request("POST", path, **body(HISTOGRAMS["with many dropped"], seed))) for seed in range(5)]

    assert all(each == shapes[0] for each in shapes)


def test_dropped_groups_do_not_change_the_log(tmp_path: Path) -> None:
    """A line per request has no duration either: it would reveal how many groups were posted."""
    logs = []
    with Service(temporary=tmp_path, access_log="true", log_level="debug") as service:
        for path, body in ENDPOINTS.values():
            for histogram in HISTOGRAMS.values():
                start = len(service.log)
                assert httpx.post(service.url + path, **body(histogram), timeout=PATIENCE).status_code == 200
                service.wait_for(lambda line, path=path: line.get("route") == path)
                lines = [
                    {name: line[name] for name in line if name not in {"time", "request_id"}}
                    for line in service.log[start:]
                ]
                logs.append((path, [line for line in lines if line.get("route") == path]))

        assert "s3ntinel" not in service.output
    for path, lines in logs:
        assert lines == [
            {
                "level": "info",
                "logger": "app.access",
                "message": "request",
                "method": "POST",
                "route": path,
                "status": 200,
            }
        ]


MARKED_REQUEST: Json = {"mechanism": MECHANISM, "epsilon": 1, "count_column": "users", "key_columns": ["number", "key"]}


def marked_table(request: int) -> pa.Table:
    """All keys, numbers too, carry the mark of their request. By turns they are long and short texts."""
    length = 3000
    mark = b"%cmark" % request
    if request % 2:
        column = pa.array([None if i % 4 == 0 else mark + b"key" for i in range(length)], pa.binary(8))
    else:
        column = pa.array([None if i % 4 == 0 else (mark + b"key") * (1 + i % 7) for i in range(length)])
    numbers = [int.from_bytes(i.to_bytes(3, "little") + mark, "little") for i in range(length)]
    counts = [1 if i % 2 else 10**6 for i in range(length)]
    return pa.table({"key": column, "number": numbers, "users": counts})


def test_no_answer_has_a_byte_string_of_another_request(client: Client) -> None:
    """Requests reuse memory. None may publish bytes of an earlier request."""
    for request in range(1, 21):
        content = as_bytes("arrow", marked_table(request))
        response = client.request("POST", "/release/table", files=form(content, MARKED_REQUEST))

        assert response.status_code == 200, response.text
        assert set(re.findall(rb"([\x01-\x14])mark", response.content)) == {b"%c" % request}


REFUSED: dict[str, Json] = {
    "a duplicate key": {"keys": ["s3ntinel", "b", "s3ntinel"], "counts": [1, 2, 3]},
    "a negative count": {"keys": ["s3ntinel", "b", "c"], "counts": [1, -2, 3]},
    "two faults": {"keys": ["s3ntinel", "b", "c"], "counts": [-1, 2**53 + 1, 0.5]},
    "a length too short": {"keys": ["s3ntinel", "b", "c"], "counts": [1, 2]},
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_does_not_say_which_group_is_at_fault(client: Client, name: str) -> None:
    """The answer is the same wherever the fault is."""
    at_fault = REFUSED[name]
    turned = {column: list(reversed(values)) for column, values in at_fault.items()}
    bodies = ({"mechanism": MECHANISM, "groups": posted} for posted in (at_fault, turned))
    same = {"x-request-id": "the-same"}
    first, second = (client.request("POST", "/release", json=body, headers=same) for body in bodies)

    assert first.status_code == 422
    assert first.content == second.content
    assert b"s3ntinel" not in first.content
