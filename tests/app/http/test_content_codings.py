"""Bodies with Content-Encoding gzip or zstd: the same answers, the same limits, and no harm from bombs or damage."""

import asyncio
import gzip
import io
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import httpx
import pyarrow as pa
import pytest
from backports import zstd
from hypothesis import given
from hypothesis import strategies as st

from app.errors import Busy
from app.http.bodies import Body, BodyLimit, BodyQuotas, CompressedBody
from app.http.content_codings import Decoder, decoder_of
from app.http.problems.errors import InvalidEncoding
from app.settings import Settings
from tests.app.budgets.test_budgets import SECRET
from tests.app.client import CASE_STUDY, Client, Json, problem_errors

COMPRESS: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "zstd": zstd.compress}
CODINGS = pytest.mark.parametrize("coding", COMPRESS)
POINT: Json = {"mechanism": CASE_STUDY, "epsilon": 0.349}
PLAIN = json.dumps(POINT).encode()
LIMIT = Settings().max_body_bytes


def post(
    client: Client, content: bytes | AsyncIterator[bytes], *codings: str, path: str = "/account/exact"
) -> httpx.Response:
    headers = [("content-type", "application/json"), *(("content-encoding", coding) for coding in codings)]
    return client.request("POST", path, content=content, headers=headers)


def decoded(coding: str, pieces: list[bytes]) -> bytes:
    """The content of a body that arrives in pieces, as ``Body`` reads it."""
    decoder = decoder_of([coding.encode()])
    assert decoder is not None
    content = b""
    for piece in pieces:
        decoder.feed(piece)
        while not decoder.needs_input:
            content += decoder.slice()
    decoder.end()
    return content


@CODINGS
def test_a_compressed_body_gets_the_answer_of_the_plain_one(client: Client, coding: str) -> None:
    expected = post(client, PLAIN)
    assert expected.status_code == 200

    for name in (coding, coding.upper(), f" {coding} ", f"{coding},"):
        assert post(client, COMPRESS[coding](PLAIN), name).content == expected.content
    for names in (["identity"], [""], []):
        assert post(client, PLAIN, *names).content == expected.content
    assert post(client, gzip.compress(PLAIN), "x-gzip").content == expected.content


@CODINGS
def test_every_route_with_a_body_takes_compressed_ones(tmp_path: Path, coding: str) -> None:
    client = Client(ledger=str(tmp_path / "ledger.sqlite3"), ledger_secret=SECRET)
    headers = {"content-type": "application/json", "content-encoding": coding, "idempotency-key": "1"}

    def send(method: str, path: str, body: Json) -> httpx.Response:
        content = COMPRESS[coding](json.dumps(body).encode())
        return client.request(method, path, content=content, headers=headers)

    assert send("PUT", "/budgets/web", {"epsilon": 1, "delta": 1e-4}).status_code == 200
    assert send("POST", "/budgets/web/charges", {"mechanism": CASE_STUDY}).status_code == 200
    groups = {"keys": [f"{number:060}" for number in range(2000)], "counts": [70000] * 2000}
    large = client.request(
        "POST",
        "/release",
        content=COMPRESS[coding](json.dumps({"mechanism": CASE_STUDY, "groups": groups}).encode()),
        headers={"content-type": "application/json", "content-encoding": coding},
    )
    assert large.json()["groups"]["keys"] == groups["keys"]

    sink = io.BytesIO()
    table = pa.table({"url": ["a", "b"], "users": [70000, 80000]})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    request = {"mechanism": CASE_STUDY, "count_column": "users", "key_columns": ["url"]}
    form = httpx.Request(
        "POST",
        "http://localhost/release/table",
        files={"request": (None, json.dumps(request)), "table": ("t", sink.getvalue())},
    )
    answer = client.request(
        "POST",
        "/release/table",
        content=COMPRESS[coding](form.read()),
        headers={"content-type": form.headers["content-type"], "content-encoding": coding},
    )
    assert pa.ipc.open_stream(answer.content).read_all()["url"].to_pylist() == ["a", "b"]
    client.app.state.services.ledger_pool.close()
    client.app.state.services.close_pools()


@pytest.mark.parametrize(
    "codings", [["br"], ["deflate"], ["gzip, zstd"], ["gzip", "gzip"], ["identity, gzip"], ["gzip;q=1"]]
)
def test_other_codings_are_415_and_the_answer_lists_ours(client: Client, codings: list[str]) -> None:
    refused = post(client, PLAIN, *codings)

    assert set(problem_errors(refused, 415, "unsupported-media-type")) == {"header Content-Encoding"}
    assert refused.headers["accept-encoding"] == "gzip, zstd, identity"
    assert client.request("GET", "/healthz", headers={"content-encoding": "br"}).status_code == 200


@CODINGS
def test_truncated_damaged_and_prolonged_data_is_400(client: Client, coding: str) -> None:
    whole = COMPRESS[coding](PLAIN)
    damaged = [whole[:size] for size in range(1, len(whole))]
    damaged += [b"", PLAIN, whole + b"\0", whole + b"{}", whole + whole[:-1], b"\0" + whole]

    async def scenario(http: httpx.AsyncClient) -> list[httpx.Response]:
        async def chunked(content: bytes) -> AsyncIterator[bytes]:
            yield content

        headers = {"content-type": "application/json", "content-encoding": coding}
        return [await http.post("/account/exact", content=chunked(each), headers=headers) for each in damaged]

    for refused in client.together(scenario):
        problem_errors(refused, 400, "invalid-encoding")


@CODINGS
def test_several_members_are_one_body(client: Client, coding: str) -> None:
    expected = post(client, PLAIN).content
    parts = (PLAIN[:7], b"", PLAIN[7:90], PLAIN[90:])

    assert post(client, b"".join(map(COMPRESS[coding], parts)), coding).content == expected


@CODINGS
@given(content=st.binary(max_size=2000), cuts=st.lists(st.integers(0, 2000), max_size=4))
def test_the_content_does_not_depend_on_how_it_arrives(coding: str, content: bytes, cuts: list[int]) -> None:
    whole = COMPRESS[coding](content) + COMPRESS[coding](content * 3)
    places = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]

    pieces = [whole[start:end] for start, end in pairwise(places)]
    assert decoded(coding, pieces) == content * 4


@CODINGS
@given(
    noise=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=5),
    data=st.binary(max_size=300),
)
def test_damage_is_another_content_or_an_error_of_ours(coding: str, noise: list[tuple[int, int]], data: bytes) -> None:
    whole = bytearray(COMPRESS[coding](data))
    for place, value in noise:
        whole[place % len(whole)] = value
    with suppress(InvalidEncoding):
        decoded(coding, [bytes(whole)])


@CODINGS
def test_a_large_body_is_decoded_exactly(coding: str) -> None:
    content = os.urandom(300_000) + bytes(2_000_000) + os.urandom(300_000)
    whole = COMPRESS[coding](content)

    assert decoded(coding, [whole]) == content
    assert decoded(coding, [whole[start : start + 70_000] for start in range(0, len(whole), 70_000)]) == content


class Arriving:
    """A body that arrives, and how much of it was asked for."""

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = pieces
        self.asked = 0

    async def __call__(self) -> Json:
        piece = self._pieces[self.asked]
        self.asked += 1
        return {"type": "http.request", "body": piece, "more_body": self.asked < len(self._pieces)}


def bound(arriving: Arriving, coding: str, quotas: BodyQuotas | None = None, **limit: int) -> Body:
    body = CompressedBody(arriving, None, [coding.encode()])
    body.bind(BodyLimit(**limit), quotas or BodyQuotas(Settings()))
    return body


def bomb(coding: str, size: int) -> bytes:
    if coding == "zstd":
        return zstd.compress(bytes(size), options={zstd.CompressionParameter.window_log: 20})
    return gzip.compress(bytes(size), 9)


@CODINGS
def test_a_bomb_is_stopped_at_the_limit_of_its_route(client: Client, coding: str) -> None:
    sent = bomb(coding, 40 * LIMIT)
    assert len(sent) < LIMIT / 20

    problem_errors(post(client, sent, coding), 413, "content-too-large")
    arriving = Arriving([sent[start : start + 1000] for start in range(0, len(sent), 1000)])
    body = bound(arriving, coding)

    async def read() -> int:
        size = 0
        while (message := await body())["more_body"]:
            assert len(message["body"]) <= 256 * 1024
            size += len(message["body"])
            assert size <= LIMIT
        return size

    with pytest.raises(Exception, match=f"at most {LIMIT}|{LIMIT}"):
        asyncio.run(read())
    assert arriving.asked <= len(arriving._pieces) / 20 + 2
    assert not body.complete  # so the connection is closed, and the rest is not read


def test_the_limit_itself_is_accepted_and_a_byte_more_is_not() -> None:
    client = Client(max_body_bytes=4096)
    for size, status in ((4096, 200), (4097, 413)):
        assert post(client, gzip.compress(PLAIN.ljust(size)), "gzip").status_code == status


def test_input_without_content_is_bounded_too() -> None:
    """Empty members, and frames that zstd skips, have no content to count."""
    client = Client(max_body_bytes=100_000)
    for coding, empty in (("gzip", gzip.compress(b"")), ("zstd", b"\x50\x2a\x4d\x18\0\0\0\0")):
        problem_errors(post(client, empty * 3000, coding), 400, "invalid-encoding")
        problem_errors(post(client, empty * 1000 + COMPRESS[coding](b"["), coding), 400, "invalid-json")

    async def endless() -> AsyncIterator[bytes]:
        yield bytes.fromhex("1f8b0800000000000003")
        while True:
            yield b"\0\0\0\xff\xff" * 6000  # stored blocks without content

    problem_errors(post(client, endless(), "gzip"), 413, "content-too-large")


def test_a_large_window_of_zstd_is_refused(client: Client) -> None:
    content = PLAIN.ljust(2_000_000)
    for window, status in ((23, 200), (24, 400)):
        compressor = zstd.ZstdCompressor(options={zstd.CompressionParameter.window_log: window})
        sent = compressor.compress(content) + compressor.flush()  # of unknown size, so the frame names its window
        assert post(client, sent, "zstd").status_code == status


def test_the_content_is_taken_from_the_quota_and_returned() -> None:
    quotas = BodyQuotas(Settings())
    sent = gzip.compress(bytes(1_000_000))

    async def read(body: Body) -> None:
        while (await body())["more_body"]:
            pass

    _, quota = quotas.of(BodyLimit())
    before = quota.remaining
    body = bound(Arriving([sent]), "gzip", quotas)
    asyncio.run(read(body))
    assert before - quota.remaining == 1_000_000 - 64 * 1024
    body.release()
    assert quota.remaining == before

    quota.remaining = 500_000
    with pytest.raises(Busy):
        asyncio.run(read(bound(Arriving([sent]), "gzip", quotas)))
    assert quota.remaining == 500_000


@CODINGS
def test_other_requests_get_a_turn_after_each_slice(coding: str) -> None:
    size = 32 * 1024**2

    async def scenario() -> tuple[int, int]:
        turns = 0
        body = bound(Arriving([bomb(coding, size)]), coding, setting="max_release_bytes")

        async def others() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        task = asyncio.create_task(others())
        slices = 0
        while (await body())["more_body"]:
            slices += 1
        task.cancel()
        return slices, turns

    slices, turns = asyncio.run(scenario())
    assert slices >= size // (256 * 1024)
    assert turns >= slices - 1


def test_a_client_that_hangs_up_in_a_compressed_body_is_noticed() -> None:
    async def gone() -> Json:
        return {"type": "http.disconnect"}

    body = CompressedBody(gone, None, [b"gzip"])
    body.bind(BodyLimit(), BodyQuotas(Settings()))

    assert asyncio.run(body()) == {"type": "http.disconnect"}


def test_a_slice_may_end_within_a_repetition() -> None:
    """zlib has then taken the input of content that is still to come."""
    for extra in range(0, 600, 41):
        content = os.urandom(50) + bytes(256 * 1024 - 50 + extra)
        whole = gzip.compress(content)
        assert decoded("gzip", [whole]) == content
        assert decoded("gzip", [whole[start : start + 1] for start in range(len(whole))]) == content


def test_a_decoder_is_not_made_for_bodies_without_a_coding() -> None:
    assert decoder_of([b"identity"]) is None
    assert isinstance(decoder_of([b"zstd"]), Decoder)
