"""A server may answer with anything. The client refuses it with one error: it never crashes, and never obeys it."""

import json
import logging
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

import gsh
from gsh.certificate import certificate
from gsh.client import BudgetExceeded, Release, UnexpectedAnswer, UnknownBudget
from gsh.histogram.conversion import write_rows
from gsh.histogram.file_formats import ARROW
from gsh.histogram.roles import Roles
from gsh.results import arrow_streams
from tests.app.process import PATIENCE, Service
from tests.gsh.client.hostile import CALLS, MECHANISM, RELEASE, Recorder
from tests.gsh.client.modes import MODES, Mode, outcome

ROOT = Path(__file__).parents[3]
CERTIFICATE = certificate(MECHANISM).to_json()
Arrays = dict[str, pa.Array]


@pytest.fixture(scope="module")
def recorded(running: Service, service: gsh.Client, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Answers of the service to all calls."""
    service.budgets.put(RELEASE, epsilon=1000, delta=0.5)
    service.budgets.put("small", epsilon=1, delta=1e-6)
    answers = {}
    for name, call in CALLS.items():
        recorder = Recorder()
        with gsh.Client(running.url, retries=0, transport=recorder) as client:
            try:
                call(client)
            except (UnknownBudget, BudgetExceeded):
                assert name in {"problem", "exceeded"}
        answers[name] = recorder.answers
    path = tmp_path_factory.mktemp("hostile") / "answers.json"
    path.write_text(json.dumps(answers))
    return path


@pytest.mark.parametrize("seed", range(2))
def test_changed_answers_are_refused_or_harmless_and_never_crash(recorded: Path, seed: int) -> None:
    """In a process of its own: without the checks, Arrow ends it with a signal."""
    command = [sys.executable, "-m", "tests.gsh.client.hostile", str(recorded), str(seed), "300"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False, cwd=ROOT)

    assert done.returncode == 0, done.stderr
    happened = json.loads(done.stdout)
    assert happened.keys() == {"refused", "used"}
    assert happened["refused"] > 100


def stream(columns: Arrays, certified: str = CERTIFICATE, options: pa.ipc.IpcWriteOptions | None = None) -> bytes:
    """An answer of one batch."""
    batch = pa.record_batch(list(columns.values()), list(columns))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema.with_metadata({"certificate": certified}), options=options) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue().to_pybytes())


def answering(body: bytes, status: int = 200, **headers: str) -> httpx.MockTransport:
    """A server that answers everything with this."""
    named = {name.replace("_", "-"): value.encode() for name, value in headers.items()}
    return httpx.MockTransport(lambda _request: httpx.Response(status, headers=named, stream=httpx.ByteStream(body)))


def loaded(body: bytes, **headers: str) -> Release:
    with gsh.Client(
        "http://a.org", retries=0, transport=answering(body, **{"content_type": ARROW} | headers)
    ) as client:
        return client.releases.load("a")


NUMBERS = pa.array([100.5, 200.25])
GOOD: Arrays = {"url": pa.array(["a.org", None]), "users": NUMBERS}


def test_an_answer_that_points_outside_of_its_bytes_is_refused_and_nothing_is_written() -> None:
    """552 bytes put the memory of a client into the file that it published."""
    body = stream({"url": pa.array(["a.org", "b"]), "users": NUMBERS})
    ends = struct.pack("<3i", 0, 5, 6)
    assert body.count(ends) == 1

    assert loaded(body).table["url"].to_pylist() == ["a.org", "b"]
    with pytest.raises(UnexpectedAnswer, match="the answer, of status 200, is not one of the service"):
        loaded(body.replace(ends, struct.pack("<3i", 0, 5, 1 << 20)))


WRONG: dict[str, Arrays] = {
    "no key": {"users": NUMBERS},
    "nested key": {"url": pa.array([["a"], ["b"]]), "users": NUMBERS},
    "struct": {"url": pa.array([{"a": 1}, {"a": 2}]), "users": NUMBERS},
    "list view": {"url": pa.array([["a"], ["b"]], pa.list_view(pa.string())), "users": NUMBERS},
    "union": {
        "url": pa.UnionArray.from_dense(pa.array([0, 0], pa.int8()), pa.array([0, 1], pa.int32()), [NUMBERS]),
        "users": NUMBERS,
    },
    "dictionary of a dictionary": {
        "url": pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", "b"]).dictionary_encode()),
        "users": NUMBERS,
    },
    "ordered dictionary": {
        "url": pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), pa.array(["a", "b"]), ordered=True),
        "users": NUMBERS,
    },
    "wide indices": {"url": pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", "b"])), "users": NUMBERS},
    "texts as counts": {"url": GOOD["url"], "users": pa.array(["1", "2"])},
    "dictionary of counts": {"url": GOOD["url"], "users": NUMBERS.dictionary_encode()},
    "narrow counts": {"url": GOOD["url"], "users": NUMBERS.cast(pa.float32())},
    "null count": {"url": GOOD["url"], "users": pa.array([100.5, None])},
    "null type": {"url": GOOD["url"], "users": pa.nulls(2)},
}


@pytest.mark.parametrize("name", WRONG)
def test_only_tables_that_the_service_could_have_made_are_read(name: str) -> None:
    with pytest.raises(UnexpectedAnswer):
        loaded(stream(WRONG[name]))


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_nothing_is_decompressed(codec: str) -> None:
    """The service compresses nothing, and 500 bytes could stand for gigabytes."""
    texts = pa.array(["a" * 10_000, "b"])
    for url in (texts, texts.dictionary_encode()):
        with pytest.raises(UnexpectedAnswer):
            loaded(stream({"url": url, "users": NUMBERS}, options=pa.ipc.IpcWriteOptions(compression=codec)))
    with pytest.raises(UnexpectedAnswer, match="the answer is compressed, which was not asked for"):
        loaded(stream(GOOD), content_encoding="gzip")


def test_other_columns_than_those_asked_for_are_refused() -> None:
    asked = pa.table({"site": ["a.org"], "users": [500]})
    with gsh.Client("http://a.org", retries=0, transport=answering(stream(GOOD), content_type=ARROW)) as client:
        with pytest.raises(UnexpectedAnswer):
            client.release(asked, MECHANISM, users="users", keys=["site"])
        assert len(client.release(asked.rename_columns(["url", "users"]), MECHANISM, users="users", keys=["url"])) == 2


def test_metadata_of_a_server_does_not_reach_the_table() -> None:
    """pandas obeys some of it: indexes, types and names of columns."""
    fields = [pa.field("url", pa.string(), metadata={"a": "b"}), pa.field("users", pa.float64())]
    schema = pa.schema(fields, {"certificate": CERTIFICATE, "pandas": "{}"})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(pa.record_batch(list(GOOD.values()), schema))
    found = loaded(sink.getvalue().to_pybytes()).table.schema

    assert list(found.metadata) == [b"certificate"]
    assert found.field(0).metadata is None


@pytest.mark.parametrize(
    "damage",
    [
        {"mechanism": 5},
        {"mechanism": {}},
        {"epsilon": "1"},
        {"budget": []},
        {"budget": {"id": 5}},
        {"unprotected": "x"},
    ],
)
def test_a_certificate_that_is_none_is_refused(damage: dict[str, Any]) -> None:
    for text in (json.dumps(json.loads(CERTIFICATE) | damage), "[" * 100_000, "{", "null", '{"mu": NaN}'):
        with pytest.raises(UnexpectedAnswer):
            loaded(stream(GOOD, text))


def test_an_answer_must_have_the_digest_that_the_service_states(recorded: Path, service: gsh.Client) -> None:
    """Of tables and of stored answers; a replay has one too, also in another format."""
    answers = json.loads(recorded.read_text())
    for name in ("release", "load", "parquet", "csv"):
        (answer,) = answers[name]
        assert answer["headers"]["repr-digest"].startswith("sha-256=:"), name
    body = stream(GOOD)
    for stated in (f"sha-256=:{'A' * 43}=:", "sha-256=::", "sha-512=:AAAA:, sha-256=:é:"):
        with pytest.raises(UnexpectedAnswer, match="is damaged: its SHA-256 is not the one"):
            loaded(body, repr_digest=stated)
    assert len(loaded(body, repr_digest="sha-512=:AAAA:")) == 2
    again = CALLS["release"](service)
    assert again.is_replayed


def test_a_stored_answer_must_have_the_digest_of_its_record(
    running: Service, service: gsh.Client, recorded: Path
) -> None:
    """Also if the answer itself states another one."""
    (answer,) = json.loads(recorded.read_text())["load"]

    class Forged(Recorder):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            if request.url.path.endswith("/answer"):
                return httpx.Response(200, headers={"content-type": ARROW}, content=stream(GOOD))
            return super().handle_request(request)

    assert service.releases[RELEASE].stored is not None
    assert answer["status"] == 200
    with gsh.Client(running.url, retries=0, transport=Forged()) as client:
        record = client.releases[RELEASE]
        for read in (record.load, record.answer, lambda: record.table):
            with pytest.raises(UnexpectedAnswer, match="SHA-256"):
                read()


PROBLEM = {"type": "/problems/unknown-budget", "title": "T", "status": 404, "detail": "no", "errors": []}
MALFORMED: dict[str, bytes] = {
    "not JSON": b"{",
    "not UTF-8": b"\xff\xfe",
    "not an object": b"[]",
    "deep": b'{"a":' * 100_000,
    "deep and closed": b'{"a":' * 500 + b"1" + b"}" * 500,
    "long": json.dumps(PROBLEM | {"detail": "x" * (2 << 20)}).encode(),
    "number": b'{"type": "/problems/busy", "status": ' + b"9" * 5000 + b"}",
    "nan": b'{"type": "/problems/busy", "status": NaN}',
    "type": json.dumps(PROBLEM | {"type": ["/problems/busy"]}).encode(),
    "detail": json.dumps(PROBLEM | {"detail": {"a": 1}}).encode(),
    "errors": json.dumps(PROBLEM | {"errors": 5}).encode(),
    "an error": json.dumps(PROBLEM | {"errors": ["pointer"]}).encode(),
    "a pointer": json.dumps(PROBLEM | {"errors": [{"pointer": 5, "detail": "x"}]}).encode(),
    "request id": json.dumps(PROBLEM | {"request_id": [5]}).encode(),
    "limit": json.dumps(PROBLEM | {"type": "/problems/budget-exceeded", "limit": 5}).encode(),
    "spent": json.dumps(PROBLEM | {"type": "/problems/budget-exceeded", "spent": {"releases": "x"}}).encode(),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_problem_is_one_clear_error(name: str, mode: Mode) -> None:
    transport = answering(MALFORMED[name], 404, content_type="application/problem+json", retry_after="1" * 400)
    with pytest.raises(UnexpectedAnswer) as caught:
        outcome(
            mode, "http://a.org", lambda client: client.budgets.get("a"), gsh.client.Retries(0), transport=transport
        )

    assert str(caught.value).startswith("the answer")
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    "retry_after", ["Mon, 01 Jan 2024 00:00:00 +99999999999", "soon", "-1", "²", "Mon, 01 Jan 99999"]
)
def test_a_strange_retry_after_is_ignored(retry_after: str) -> None:
    transport = answering(b"", 503, retry_after=retry_after)
    with gsh.Client("http://a.org", retries=0, transport=transport) as client, pytest.raises(UnexpectedAnswer):
        client.version()


def test_an_answer_without_end_is_given_up() -> None:
    """Before it fills the disk."""

    def endless() -> Any:
        while True:
            yield b"x" * (1 << 16)

    transport = httpx.MockTransport(lambda _request: httpx.Response(500, content=endless()))
    with (
        gsh.Client("http://a.org", retries=0, transport=transport) as client,
        pytest.raises(UnexpectedAnswer, match="longer than 1048576 bytes"),
    ):
        client.version()


def test_no_character_of_a_server_is_obeyed_in_an_error() -> None:
    detail = "\x1b]0;owned\x07 \x9b2J \u202e\r\n\u2028 é"
    body = json.dumps(PROBLEM | {"detail": detail, "request_id": "\x1b[1A"}).encode()
    with (
        gsh.Client(
            "http://a.org", retries=0, transport=answering(body, 404, content_type="application/problem+json")
        ) as a,
        pytest.raises(UnknownBudget) as caught,
    ):
        a.budgets["a"]

    shown, advice, request = str(caught.value).partition(f" {UnknownBudget.advice}")
    assert advice
    assert shown + request == r"\x1b]0;owned\x07 \x9b2J \u202e\r\n\u2028 é (request \x1b[1A)"
    assert caught.value.detail == detail


SECRETS: dict[str, Callable[[], Any]] = {
    "user and password": lambda: gsh.Client("http://me:pa%2Fss-word@127.0.0.1:9", retries=0).version(),
    "no escape": lambda: gsh.Client("http://me:ss-word/x@127.0.0.1:9"),
    "a port": lambda: gsh.Client("http://me:9/ss-word@127.0.0.1:9"),
    "a fragment": lambda: gsh.Client("http://me:ss-word#x@127.0.0.1:9"),
    "with a key": lambda: gsh.Client("http://me:ss-word@127.0.0.1:9", key="gsh_ss-word"),
    "proxy": lambda: gsh.Client("http://a.org", proxy="http://me:ss-word@127.0.0.1:9", retries=0).version(),
    "bad proxy": lambda: gsh.Client("http://a.org", proxy="http://me:ss-word#x@127.0.0.1:9"),
    "async": lambda: gsh.AsyncClient("http://a.org", proxy="http://me:ss-word#x@127.0.0.1:9"),
}


@pytest.mark.parametrize("name", SECRETS)
def test_a_password_in_a_url_reaches_no_error(name: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with pytest.raises(gsh.Error) as caught:
        SECRETS[name]()
    seen: list[str] = [caplog.text]
    error: BaseException | None = caught.value
    while error is not None:
        seen += [str(error), repr(error), repr(vars(error))]
        error = error.__cause__ or error.__context__

    assert "ss-word" not in "".join(seen)


def test_a_password_in_a_url_is_sent_and_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    """httpx logs the URL of each request."""
    caplog.set_level(logging.DEBUG)
    sent: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(200, json={"service": "1", "python": "3", "flint": "3"})

    with gsh.Client("http://me:pass-word@a.org/x", transport=httpx.MockTransport(answer)) as client:
        client.version()
    assert sent[0].headers["authorization"] == "Basic bWU6cGFzcy13b3Jk"
    assert str(sent[0].url) == "http://a.org/x/version"
    assert "http://a.org/x/version" in caplog.text
    assert "pass-word" not in caplog.text


@pytest.mark.parametrize("into", ["arrow", "arrow_file", "parquet", "csv"])
def test_a_written_file_has_values_only(into: Any, tmp_path: Path) -> None:
    """Neither what is under nulls, nor entries of a dictionary that no row has, nor bytes between texts."""
    texts = pa.Array.from_buffers(
        pa.string(), 2, [pa.py_buffer(b"\x01"), pa.py_buffer(struct.pack("<3i", 2, 3, 8)), pa.py_buffer(b"SEaCRET.")]
    )
    words = pa.DictionaryArray.from_arrays(pa.array([1, 1], pa.int32()), pa.array(["SECRET", "b"]))
    found = loaded(stream({"url": texts, "word": words, "users": NUMBERS}))
    assert found.table["url"].to_pylist() == ["a", None]
    path = tmp_path / "written"
    with path.open("wb") as sink:
        write_rows(found.table, Roles(("url", "word"), "users", ()), into, CERTIFICATE, sink)

    content = path.read_bytes()
    assert b"CRET" not in content
    assert b"b" in content


@pytest.mark.parametrize(
    ("options", "is_refused"),
    [
        ({}, False),
        ({"metadata_version": pa.ipc.MetadataVersion.V4}, True),
        ({"emit_dictionary_deltas": True}, True),
        ({"compression": "zstd"}, True),
    ],
    ids=["plain", "an old version", "a dictionary that grows", "compressed"],
)
def test_a_table_takes_no_more_memory_than_its_answer(options: dict[str, Any], is_refused: bool) -> None:
    """Old versions name the compression in their metadata, and each batch would have its own copy of a dictionary."""
    kind = pa.dictionary(pa.int32(), pa.string())
    batches = [
        pa.record_batch({"key": pa.DictionaryArray.from_arrays(pa.array([0], pa.int32()), names).cast(kind)})
        for names in (["a"], ["a", "b"])
    ]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        for batch in batches:
            writer.write_batch(batch)

    def refused(message: pa.Message) -> bool:
        try:
            arrow_streams._check_message(message)
        except ValueError:
            return True
        return False

    assert any(map(refused, arrow_streams._messages(sink.getvalue()))) == is_refused
