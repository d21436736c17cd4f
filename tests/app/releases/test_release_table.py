"""POST /release/table: real clients use it in both formats; an invalid form or table is refused."""

import io
import json
import os
import re
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import httpx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.app.client import Client, Json, problem_errors
from tests.app.process import PATIENCE, Service, fork_server_of, wait_for_end, worker_of
from tests.gsh.histogram.uploads import FORMATS, as_bytes, as_parquet, as_stream, from_bytes

pytestmark = pytest.mark.slow

MECHANISM: Json = {"c_u": 3, "tau": 2, "tau_star": 120, "sigma": 20}
REQUEST: Json = {"mechanism": MECHANISM, "epsilon": 1, "count_column": "users", "key_columns": ["url", "country"]}
MEDIA_TYPES = {"arrow": "application/vnd.apache.arrow.stream", "parquet": "application/vnd.apache.parquet"}
TABLE = pa.table(
    {
        "users": [2000, 1000, 3, 1, 4000],
        "url": ["b.org", "a.org", "a.org", "c.org", None],
        "country": ["FR", "US", "FR", "US", None],
    }
)
SORTED_KEYS = [("a.org", "US"), ("b.org", "FR"), (None, None)]


def form(table: bytes, request: Json | bytes = REQUEST) -> dict[str, Any]:
    content = request if isinstance(request, bytes) else json.dumps(request).encode()
    return {"request": (None, content, "application/json"), "table": ("table", table, "application/octet-stream")}


def post(client: Client, files: Any) -> httpx.Response:
    return client.request("POST", "/release/table", files=files)


def answer(client: Client, table: bytes, request: Json = REQUEST) -> httpx.Response:
    response = post(client, form(table, request))
    assert response.status_code == 200, response.text
    return response


def check_rows(keys: list[tuple[Any, Any]], users: list[float]) -> None:
    assert keys == SORTED_KEYS
    assert all(abs(noisy - true) < 200 for noisy, true in zip(users, [1000, 2000, 4000], strict=True))


@pytest.mark.parametrize("kind", FORMATS)
def test_the_answer_has_the_format_of_the_table(client: Client, kind: str) -> None:
    response = answer(client, as_bytes(kind, TABLE))
    table = from_bytes(response.content)

    assert response.headers["content-type"] == MEDIA_TYPES[kind]
    assert int(response.headers["content-length"]) == len(response.content)
    assert table.schema.names == ["url", "country", "users"]
    assert [field.type for field in table.schema] == [pa.string(), pa.string(), pa.float64()]
    check_rows(
        list(zip(table["url"].to_pylist(), table["country"].to_pylist(), strict=True)), table["users"].to_pylist()
    )


@pytest.mark.parametrize("kind", FORMATS)
def test_the_certificate_is_that_of_release(client: Client, kind: str) -> None:
    metadata = from_bytes(answer(client, as_bytes(kind, TABLE)).content).schema.metadata
    certificate = json.loads(metadata[b"certificate"])
    beside = client.answer("/release", {"mechanism": MECHANISM, "epsilon": 1, "groups": {"keys": [], "counts": []}})

    expected = beside["certificate"]
    assert certificate.pop("roles") == {"keys": ["url", "country"], "count": "users", "values": []}
    assert certificate.keys() == expected.keys()
    for name in certificate.keys() - {"release_id", "released_at", "content"}:
        assert certificate[name] == expected[name]


def test_pyarrow_writes_and_reads(client: Client) -> None:
    table = pq.read_table(io.BytesIO(answer(client, as_parquet(TABLE)).content))

    assert list(zip(table["url"].to_pylist(), table["country"].to_pylist(), strict=True)) == SORTED_KEYS


@pytest.mark.parametrize("kind", FORMATS)
def test_polars_writes_and_reads(client: Client, kind: str) -> None:
    sink = io.BytesIO()
    frame = pl.from_arrow(TABLE)
    assert isinstance(frame, pl.DataFrame)
    frame.write_parquet(sink) if kind == "parquet" else frame.write_ipc_stream(sink)

    content = io.BytesIO(answer(client, sink.getvalue()).content)

    back = pl.read_parquet(content) if kind == "parquet" else pl.read_ipc_stream(content)
    check_rows(back.select("url", "country").rows(), back["users"].to_list())


def test_pandas_writes_and_reads(client: Client) -> None:
    """Its index, and its metadata with the number of rows, are not in the answer."""
    sink = io.BytesIO()
    TABLE.to_pandas().to_parquet(sink)

    back = pd.read_parquet(io.BytesIO(answer(client, sink.getvalue()).content))

    keys = [
        (None if pd.isna(url) else url, None if pd.isna(at) else at)
        for url, at in zip(back.url, back.country, strict=True)
    ]
    check_rows(keys, back.users.tolist())


def test_duckdb_writes_and_reads(client: Client, tmp_path: Path) -> None:
    posted, back = tmp_path / "posted.parquet", tmp_path / "released.parquet"
    database = duckdb.connect()
    database.register("groups", TABLE)
    database.sql(f"COPY (SELECT * FROM groups) TO '{posted}' (FORMAT parquet)")

    back.write_bytes(answer(client, posted.read_bytes()).content)

    rows = database.sql(f"SELECT url, country, users FROM '{back}'").fetchall()
    check_rows([row[:2] for row in rows], [row[2] for row in rows])
    stream = from_bytes(answer(client, as_stream(TABLE)).content)
    database.register("stream", stream)
    assert database.sql("SELECT count(*) FROM stream").fetchall() == [(3,)]


def test_columns_are_released_with_the_count(client: Client) -> None:
    columns = {
        "names": ["likes", "seconds"],
        "covariance": [[400, 30], [30, 10000]],
        "sensitivity": {"kind": "box", "lower": [0, 0], "upper": [1, 5]},
    }
    table = TABLE.append_column("seconds", pa.array([9000.5] * 5)).append_column("likes", pa.array([70] * 5))
    request = REQUEST | {"mechanism": MECHANISM | {"aggregates": columns}}

    back = from_bytes(answer(client, as_stream(table), request).content)

    assert back.schema.names == ["url", "country", "users", "likes", "seconds"]
    assert all(abs(value - 9000.5) < 1000 for value in back["seconds"].to_pylist())
    assert all(abs(value - 70) < 200 for value in back["likes"].to_pylist())


@pytest.mark.parametrize("kind", FORMATS)
def test_a_table_without_groups_is_released(client: Client, kind: str) -> None:
    assert from_bytes(answer(client, as_bytes(kind, TABLE.slice(0, 0))).content).num_rows == 0


def test_the_request_must_come_before_the_table(client: Client) -> None:
    parts = list(form(as_stream(TABLE)).items())
    refused = post(client, dict(reversed(parts)))

    assert problem_errors(refused, 422, "invalid-request") == {"/request": "must be the first part of the form"}
    assert post(client, dict(parts)).status_code == 200


def test_the_request_may_be_sent_as_a_file(client: Client) -> None:
    """As curl does with @."""
    files = form(as_stream(TABLE)) | {"request": ("request.json", json.dumps(REQUEST).encode())}

    assert post(client, files).status_code == 200


STREAM = as_stream(TABLE)


@pytest.mark.parametrize(
    ("files", "status", "kind", "pointer"),
    [
        ({"request": form(STREAM)["request"]}, 422, "invalid-request", "/table"),
        ({"table": form(STREAM)["table"]}, 422, "invalid-request", "/request"),
        (form(STREAM) | {"s3ntinel": ("x", b"s3ntinel")}, 422, "invalid-request", ""),
        ([*form(STREAM).items(), *form(STREAM).items()], 422, "invalid-request", ""),
        (form(STREAM, b"s3ntinel"), 400, "invalid-json", None),
        (form(STREAM, REQUEST | {"unkn0wn": 1}), 422, "invalid-request", "/unkn0wn"),
        (form(STREAM, REQUEST | {"key_columns": []}), 422, "invalid-request", "/key_columns"),
        (form(STREAM, REQUEST | {"key_columns": ["url", "s3ntinel"]}), 422, "invalid-request", "/key_columns/1"),
        (form(STREAM, REQUEST | {"key_columns": ["url"]}), 422, "invalid-request", "/table"),
        (form(STREAM, REQUEST | {"count_column": "url", "key_columns": ["users"]}), 422, "invalid-request", "/table"),
        (form(STREAM, REQUEST | {"count_column": "s3ntinel"}), 422, "invalid-request", "/count_column"),
        (form(STREAM, REQUEST | {"mechanism": MECHANISM | {"sigma": 0}}), 422, "invalid-request", "/mechanism/sigma"),
        (form(STREAM, REQUEST | {"groups": {}}), 422, "invalid-request", "/groups"),
        (form(b"s3ntinel" * 100), 422, "invalid-request", "/table"),
        (form(b""), 422, "invalid-request", "/table"),
        (form(as_parquet(TABLE)[:-20]), 422, "invalid-request", "/table"),
        (form(STREAM[:-8]), 422, "invalid-request", "/table"),
        (form(as_stream(pa.concat_tables([TABLE, TABLE]))), 422, "invalid-request", "/key_columns"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_an_invalid_request_or_table_is_refused_and_not_echoed(
    client: Client, files: Any, status: int, kind: str, pointer: str | None
) -> None:
    response = post(client, files)

    errors = problem_errors(response, status, kind)
    assert set(errors) == (set() if pointer is None else {pointer})
    assert "s3ntinel" not in response.text
    assert "a.org" not in response.text


def test_csv_without_the_types_of_its_columns_is_told_what_it_needs(client: Client) -> None:
    """Its first letters, read as the length of an Arrow schema, would be a very long one."""
    errors = problem_errors(post(client, form(b"url,country,users\na.org,US,3\n")), 422, "invalid-request")

    assert list(errors) == ["/table"]
    assert errors["/table"].endswith("CSV needs the types of its columns (csv_types)")


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize(
    ("counts", "detail"),
    [([1, -2], "from 0 to 2^53"), ([1, None], "missing"), ([1.5, 2], "integer type"), ([1, 2**53 + 1], "2^53")],
    ids=str,
)
def test_invalid_counts_are_refused(client: Client, kind: str, counts: list[Any], detail: str) -> None:
    table = pa.table({"url": ["s3ntinel", "b"], "country": ["US", "FR"], "users": counts})

    response = post(client, form(as_bytes(kind, table)))

    assert detail in problem_errors(response, 422, "invalid-request")["/count_column"]
    assert "s3ntinel" not in response.text


def raw(client: Client, body: bytes, media_type: str) -> httpx.Response:
    return client.request("POST", "/release/table", content=body, headers={"content-type": media_type})


def test_another_media_type_is_415(client: Client) -> None:
    problem_errors(raw(client, json.dumps(REQUEST).encode(), "application/json"), 415, "unsupported-media-type")
    problem_errors(raw(client, STREAM, MEDIA_TYPES["arrow"]), 415, "unsupported-media-type")


@pytest.mark.parametrize(
    ("body", "media_type"),
    [
        (b"", "multipart/form-data"),
        (b"--x\r\n", "multipart/form-data; boundary=x"),
        (b"s3ntinel", "multipart/form-data; boundary=x"),
        (b'--x\r\nContent-Disposition: form-data; name="request"\r\n\r\ns3ntinel', "multipart/form-data; boundary=x"),
        (b"--x\r\nContent-Type: text/plain\r\n\r\ns3ntinel\r\n--x--\r\n", "multipart/form-data; boundary=x"),
    ],
    ids=["no boundary", "cut off", "no form", "a part cut off", "a part without a name"],
)
def test_an_invalid_form_is_400(client: Client, body: bytes, media_type: str) -> None:
    response = raw(client, body, media_type)

    assert problem_errors(response, 400, "invalid-multipart") == {}
    assert "s3ntinel" not in response.text


def test_limits_are_as_set(client: Client) -> None:
    small = Client(max_table_groups=4)
    errors = problem_errors(post(small, form(STREAM)), 413, "content-too-large")
    assert "4" in errors["/table"]

    small = Client(max_table_bytes=1024)
    errors = problem_errors(post(small, form(b"x" * 1024)), 413, "content-too-large")
    assert "1024" in errors[""]

    small = Client(max_body_bytes=1024)
    errors = problem_errors(post(small, form(STREAM, b" " * 1025)), 413, "content-too-large")
    assert "1024" in errors["/request"]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, Path]]:
    temporary = tmp_path_factory.mktemp("spool")
    with Service(temporary=temporary, access_log="true") as running:
        yield running, temporary


def test_a_real_client_sends_a_large_table_in_pieces(service: tuple[Service, Path]) -> None:
    """A chunked body, over a socket; the spool leaves nothing behind, not even an open file."""
    running, temporary = service
    length = 300_000
    table = pa.table({"k": np.arange(length)[::-1], "users": np.full(length, 10**6)})
    request = REQUEST | {"key_columns": ["k"]}
    encoded = httpx.Request("POST", running.url, files=form(as_stream(table), request))
    content, headers = encoded.read(), {"content-type": encoded.headers["content-type"]}
    pieces = (content[start : start + 50_000] for start in range(0, len(content), 50_000))

    response = httpx.post(running.url + "/release/table", content=pieces, headers=headers, timeout=PATIENCE)

    assert response.status_code == 200, response.text
    assert from_bytes(response.content)["k"].to_pylist() == list(range(length))
    assert list(temporary.iterdir()) == []
    assert spooled(running.pid) == []


def spooled(pid: int) -> list[str]:
    """The files without a name that a process has open."""
    names = [os.readlink(entry) for entry in Path(f"/proc/{pid}/fd").iterdir() if os.path.lexists(entry)]
    return [name for name in names if "deleted" in name]


def test_a_release_whose_worker_is_killed_is_503(tmp_path: Path) -> None:
    """No data of the table remains, and the next release starts a new worker."""
    with Service(temporary=tmp_path) as service:
        assert httpx.post(service.url + "/release/table", files=form(STREAM), timeout=PATIENCE).status_code == 200
        worker = worker_of(service.pid)
        os.kill(worker, signal.SIGSTOP)
        with ThreadPoolExecutor() as pool:
            posts = [
                pool.submit(httpx.post, service.url + "/release/table", files=form(STREAM), timeout=PATIENCE)
                for _ in range(3)
            ]
            while len(spooled(service.pid)) < 6:  # uploads and answers of all three
                assert service.get("/healthz").status_code == 200
            os.kill(worker, signal.SIGKILL)
            answers = [post.result() for post in posts]

        # Those that waited get a new worker. The worker may have been killed before it was given the first one.
        refused = [answer for answer in answers if answer.status_code != 200]
        assert len(refused) <= 1
        for answer in refused:
            problem_errors(answer, 503, "busy")
        assert spooled(service.pid) == []
        assert httpx.post(service.url + "/release/table", files=form(STREAM), timeout=PATIENCE).status_code == 200


def test_the_release_worker_ends_with_a_killed_service(tmp_path: Path) -> None:
    with Service(temporary=tmp_path) as service:
        assert httpx.post(service.url + "/release/table", files=form(STREAM), timeout=PATIENCE).status_code == 200
        compare = {"mechanism": {"c_u": 3, "tau": 1}, "epsilon": 1, "delta": 1e-6}
        assert service.post("/compare", compare).status_code == 200
        started = [worker_of(service.pid), worker_of(service.pid, "accounting"), fork_server_of(service.pid)]
        os.kill(service.pid, signal.SIGKILL)
        service.wait()

        for process in started:
            wait_for_end(process)
    assert list(tmp_path.iterdir()) == []


def test_a_small_file_that_unpacks_to_too_much_memory_is_413() -> None:
    """Ten gigabytes from a few kilobytes. The worker's memory is bounded."""
    length = 10**5
    texts = pa.DictionaryArray.from_arrays(pa.array(np.zeros(length, np.int32)), pa.array(["x" * length]))
    bomb = pa.table({"url": texts, "country": ["US"] * length, "users": [1] * length})
    sink = io.BytesIO()
    pq.write_table(bomb, sink, store_schema=False)  # so it is read as plain strings
    small = Client(max_table_bytes=10**7)

    assert len(sink.getvalue()) < 10**6
    assert set(problem_errors(post(small, form(sink.getvalue())), 413, "content-too-large")) == {"/table"}
    assert post(small, form(STREAM)).status_code == 200


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize(
    "category", [pl.Categorical, pl.Enum(["b.org", "a.org", "c.org"])], ids=["categorical", "enum"]
)
def test_categories_of_polars_are_released(client: Client, kind: str, category: Any) -> None:
    frame = pl.from_arrow(TABLE)
    assert isinstance(frame, pl.DataFrame)
    frame = frame.with_columns(pl.col("url").cast(category))
    sink = io.BytesIO()
    frame.write_parquet(sink) if kind == "parquet" else frame.write_ipc_stream(sink)

    content = io.BytesIO(answer(client, sink.getvalue()).content)

    back = pl.read_parquet(content) if kind == "parquet" else pl.read_ipc_stream(content)
    assert back["url"].cast(pl.String).to_list() == ["a.org", "b.org", None]


def test_categories_of_pandas_are_released_sorted_and_unordered(client: Client) -> None:
    """The posted order may be that of the true counts. How many categories there were does not show either."""
    frame = TABLE.to_pandas()
    frame["url"] = pd.Categorical(frame.url, ["c.org", "b.org", "a.org"], ordered=True)
    sink = io.BytesIO()
    frame.to_parquet(sink)

    back = pd.read_parquet(io.BytesIO(answer(client, sink.getvalue()).content))

    assert not back.url.cat.ordered
    assert list(back.url.cat.categories) == ["a.org", "b.org"]
    assert back.url.tolist()[:2] == ["a.org", "b.org"]


def test_nothing_of_a_table_is_logged(service: tuple[Service, Path]) -> None:
    running, _ = service
    for table in (TABLE, pa.concat_tables([TABLE, TABLE])):
        httpx.post(running.url + "/release/table", files=form(as_stream(table)), timeout=PATIENCE)
    httpx.post(running.url + "/release/table", files=form(b"s3ntinel"), timeout=PATIENCE)
    running.wait_for(lambda line: line.get("route") == "/release/table" and line["status"] == 422)

    lines = [line for line in running.log if line.get("route") == "/release/table"]
    fields = {"time", "level", "logger", "message", "request_id", "method", "route", "status"}
    assert all(set(line) == fields for line in lines)
    assert not re.search(r"s3ntinel|a\.org|url|country", running.output)
