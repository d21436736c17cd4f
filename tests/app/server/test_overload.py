"""Before admission, a client's bytes, time and connections are bounded, and other clients are served."""

import http.client
import json
import re
import select
import socket
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from tests.app.client import CASE_STUDY, Json
from tests.app.process import PATIENCE, Service, family, proportional_memory

pytestmark = pytest.mark.slow

MIB = 1024**2
RELEASE: Json = {"mechanism": CASE_STUDY, "groups": {"keys": ["a"], "counts": [70000]}}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """With small limits, so little data exceeds them."""
    with Service(
        temporary=tmp_path_factory.mktemp("overload"),
        head_seconds="1",
        body_seconds="1",
        max_body_bytes=str(100_000),
        max_release_bytes=str(MIB),
        max_connections="40",
    ) as running:
        yield running


def connected(service: Service) -> socket.socket:
    address = httpx.URL(service.url)
    return socket.create_connection((address.host, address.port or 80), timeout=PATIENCE)


def everything(connection: socket.socket) -> bytes:
    """Everything that the service sends until it closes the connection. It must not reset it."""
    return b"".join(iter(lambda: connection.recv(65536), b""))


def told(service: Service, *parts: bytes) -> bytes:
    """The answer to these bytes."""
    with closing(connected(service)) as connection:
        for part in parts:
            connection.sendall(part)
        return everything(connection)


def problem(answer: bytes) -> tuple[int, str]:
    """The status and type of a problem document, which has all the headers that every answer has."""
    head, _, body = answer.partition(b"\r\n\r\n")
    fields = head.lower()
    assert b"content-type: application/problem+json" in fields
    assert b"content-security-policy: " in fields
    assert b"connection: close" in fields
    document = json.loads(body)
    assert document["status"] == int(head.split()[1])
    assert f"x-request-id: {document['request_id']}\r\n".encode() in fields
    return document["status"], document["type"].removeprefix("/problems/")


HEAD = b"POST /account/exact HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize(
    "parts",
    [
        [b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: ", b"x" * 200_000],
        [b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: ", b"x" * 70_000, b"\r\n\r\n"],
        [b"GET /", b"x" * 200_000, b" HTTP/1.1\r\nHost: localhost\r\n\r\n"],
        [b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n", *[b"x: y\r\n"] * 101, b"\r\n"],
        [b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + b"x: y\r\n" * 30_000],
    ],
    ids=["a header without an end", "a header", "a URL", "many headers one by one", "many headers at once"],
)
def test_a_head_that_is_too_large_is_refused_before_its_end(service: Service, parts: list[bytes]) -> None:
    assert problem(told(service, *parts)) == (431, "headers-too-large")


def test_a_head_of_the_usual_size_is_served(service: Service) -> None:
    for headers in ({"x-long": "x" * 60_000}, {f"x-{number}": "y" for number in range(90)}):
        assert httpx.get(f"{service.url}/healthz", headers=headers).status_code == 200


def test_a_connection_is_used_again_after_a_long_body(service: Service) -> None:
    padded = json.dumps(RELEASE).encode().ljust(900_000)
    headers = {"content-type": "application/json"}
    with httpx.Client(base_url=service.url, timeout=PATIENCE) as client:
        for _ in range(3):
            assert client.post("/release", content=padded, headers=headers).status_code == 200
            assert client.get("/healthz").status_code == 200
            in_chunks = (padded[start : start + 1000] for start in range(0, len(padded), 1000))
            assert client.post("/release", content=in_chunks, headers=headers).status_code == 200


def test_requests_that_come_together_are_answered_in_turn(service: Service) -> None:
    one = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"x" * 50_000
    last = b"\r\nConnection: close\r\n\r\n"
    answers = told(service, (one + b"\r\n\r\n") * 4 + one + last)

    assert answers.count(b"HTTP/1.1 200 OK") == 5


@pytest.mark.parametrize(
    "sent", [b"", b"GET /healthz HTTP/1.1\r\nHost: lo", b"GET"], ids=["nothing", "half a header", "half a line"]
)
def test_a_head_that_does_not_arrive_in_time_ends_its_connection(service: Service, sent: bytes) -> None:
    assert problem(told(service, sent)) == (408, "request-timeout")


def test_a_second_head_has_as_much_time_as_the_first(service: Service) -> None:
    whole = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    answers = told(service, whole + b"GET /healthz HT")

    assert answers.startswith(b"HTTP/1.1 200")
    assert problem(answers[answers.index(b"HTTP/1.1 408") :]) == (408, "request-timeout")


@pytest.mark.parametrize("framing", [b"Content-Length: 1000\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n5\r\n"])
def test_a_body_that_stops_arriving_ends_its_connection(service: Service, framing: bytes) -> None:
    assert problem(told(service, HEAD + framing + b'{"me')) == (408, "request-timeout")


@pytest.mark.parametrize(
    "sent",
    [
        b"\x00\x01\x02\r\n\r\n",
        b"GET /healthz HTTP/9.9\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"1;" + b"x" * 300_000,
        HEAD + b"Content-Length: x\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" * 2_000,
    ],
    ids=["no HTTP", "another version", "an endless chunk extension", "no length", "two thousand requests at once"],
)
def test_invalid_http_is_refused_and_not_logged(service: Service, sent: bytes) -> None:
    before = len(service.log)
    answers = told(service, sent)

    assert problem(answers[answers.rindex(b"HTTP/1.1") :]) == (400, "invalid-http")
    assert service.get("/healthz").status_code == 200
    assert service.log[before:] == []


def test_a_flood_of_pipelined_requests_takes_bounded_work_and_memory(tmp_path: Path) -> None:
    """Fourteen thousand requests fit into one read."""
    flood = b"GET /version HTTP/1.1\r\n\r\n" * 10_000
    with Service(temporary=tmp_path) as service, ExitStack() as stack:
        before = proportional_memory(service.pid)
        for _ in range(50):
            connection = stack.enter_context(closing(connected(service)))
            with suppress(ConnectionError):
                connection.sendall(flood)
        metrics = service.get("/metrics").text
        done = re.findall(r'gsh_requests_total\{method="GET",route="/version",status="200"\} (\d+)', metrics)

        assert sum(map(int, done)) <= 50 * 5
        assert proportional_memory(service.pid) - before < 50 * 10**6


@pytest.mark.parametrize("path", ["/", "/budgets", "/release", "/nothing"])
def test_an_upgrade_to_websocket_gets_a_problem_document_and_leaves_nothing_in_the_log(
    service: Service, path: str
) -> None:
    before = len(service.log)
    headers = {
        "connection": "Upgrade",
        "upgrade": "websocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    }
    response = httpx.get(service.url + path, headers=headers)

    assert (response.status_code, response.headers["content-type"]) == (404, "application/problem+json")
    assert "content-security-policy" in response.headers
    assert service.log[before:] == []


def test_other_upgrades_are_ignored(service: Service) -> None:
    """curl sends such a request to ask for HTTP/2."""
    headers = {"connection": "Upgrade, HTTP2-Settings", "upgrade": "h2c", "http2-settings": "AAMAAABkAAQAAP__"}

    response = httpx.get(f"{service.url}/healthz", headers=headers)

    assert (response.status_code, response.headers["connection"]) == (200, "close")


def test_half_open_connections_make_room_for_others(service: Service) -> None:
    with ExitStack() as stack:
        half_open = [stack.enter_context(closing(connected(service))) for _ in range(200)]
        for connection in half_open[:100]:
            with suppress(ConnectionError):
                connection.sendall(b"GET /healthz HTTP/1.1\r\n")

        for _ in range(20):
            assert service.get("/healthz").status_code == 200


def test_connections_with_half_a_body_make_room_for_others(tmp_path: Path) -> None:
    """The oldest are closed long before their time limit, which would be a 408."""
    with Service(temporary=tmp_path, max_connections="40") as service, ExitStack() as stack:
        held = [stack.enter_context(closing(unfinished(service, 100))) for _ in range(100)]

        for _ in range(20):
            assert service.get("/healthz").status_code == 200
        for connection in held[:50]:
            with suppress(ConnectionResetError):
                assert connection.recv(1) == b""


TRAILED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n0\r\n"


def test_trailers_are_bounded_like_headers(service: Service) -> None:
    assert problem(told(service, TRAILED + b"a:\r\n" * 150)) == (431, "headers-too-large")
    assert problem(told(service, TRAILED + b"a: " + b"x" * 300_000)) == (400, "invalid-http")


def test_a_trailer_is_no_header(service: Service) -> None:
    """Only headers before the body count."""
    for missing, path in ((b"Content-Type: application/json", b"/account/exact"), (b"Host: localhost", b"/release")):
        lines = TRAILED.replace(b"/account/exact", path).replace(missing + b"\r\n", b"Connection: close\r\n")
        answer = told(service, lines + missing + b"\r\n\r\n")
        assert problem(answer)[0] in {403, 415}


def test_a_query_that_is_too_long_is_refused(service: Service) -> None:
    """Parameters are parsed on the event loop."""
    answer = told(service, b"GET /healthz?" + b"a=b&" * 3000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")

    assert problem(answer) == (431, "headers-too-large")


def test_an_attack_leaves_the_memory_bounded_and_others_served(tmp_path: Path) -> None:
    """Half-open connections, unfinished bodies, a header and trailers without an end; with the usual bounds."""
    release = HEAD.replace(b"/account/exact", b"/release") + b"Content-Length: %d\r\n\r\n" % (40 * MIB)
    chunked = HEAD + b"Transfer-Encoding: chunked\r\n\r\nea60\r\n"
    attacks = [
        *[(b"GET /healthz HTTP/1.1\r\nHost: loc",)] * 300,
        *[(release, bytes(40 * MIB - 1))] * 30,
        *[(chunked, bytes(60_000), b"\r\n0\r\n", b"a:\r\n" * 40_000)] * 50,
        (b"GET /healthz HTTP/1.1\r\nX-Long: ", b"x" * 60 * MIB),
    ]
    with Service(temporary=tmp_path) as service, ExitStack() as stack, ThreadPoolExecutor(32) as threads:

        def hold(*parts: bytes) -> None:
            connection = stack.enter_context(closing(connected(service)))
            with suppress(OSError):
                for part in parts:
                    connection.sendall(part)

        under_way = [threads.submit(hold, *attack) for attack in attacks]
        for _ in range(20):
            assert service.get("/healthz").status_code == 200
        for each in under_way:
            each.result()

        assert service.get("/healthz").status_code == 200
        assert sum(map(proportional_memory, family(service.pid))) < 600 * 10**6


def unfinished(service: Service, size: int, path: str = "/release") -> socket.socket:
    """A connection that has sent its body except the last byte."""
    connection = connected(service)
    connection.sendall(HEAD.replace(b"/account/exact", path.encode()) + b"Content-Length: %d\r\n\r\n" % size)
    connection.sendall(b" " * (size - 1))
    return connection


def test_unfinished_bodies_take_bounded_memory(tmp_path: Path) -> None:
    """The quota fits two of three large bodies, so one is refused. Small bodies are still accepted."""
    with Service(temporary=tmp_path, max_release_bytes=str(MIB)) as service, ExitStack() as stack:
        held = [stack.enter_context(closing(unfinished(service, MIB))) for _ in range(3)]
        (refused,) = select.select(held, [], [], PATIENCE)[0]
        assert problem(everything(refused)) == (503, "busy")
        held.remove(refused)
        assert service.post("/release", RELEASE).status_code == 200
        assert service.post("/account/exact", {"mechanism": CASE_STUDY, "epsilon": 1}).status_code == 200
        for connection in held:
            connection.sendall(b" ")
            assert b"HTTP/1.1 400" in connection.recv(65536)
        padded = json.dumps(RELEASE).encode().ljust(MIB - 1)
        for _ in range(5):
            response = httpx.post(
                f"{service.url}/release",
                content=padded,
                headers={"content-type": "application/json"},
                timeout=PATIENCE,
            )
            assert response.status_code == 200


def by_urllib(url: str, body: bytes) -> int:
    """Sends Connection: close, and writes all before it reads."""
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"}, method="POST")
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(request, timeout=PATIENCE)
    with caught.value as answer:
        assert json.loads(answer.read())["type"] == "/problems/content-too-large"
        return answer.code


def by_httpx(url: str, body: bytes) -> int:
    return httpx.post(url, content=body, headers={"content-type": "application/json"}, timeout=PATIENCE).status_code


def in_chunks(url: str, body: bytes) -> int:
    pieces = (body[start : start + 100_000] for start in range(0, len(body), 100_000))
    return httpx.post(url, content=pieces, headers={"content-type": "application/json"}, timeout=PATIENCE).status_code


@contextmanager
def _connection(url: str) -> Iterator[http.client.HTTPConnection]:
    parsed = httpx.URL(url)
    with closing(http.client.HTTPConnection(parsed.host, parsed.port, timeout=PATIENCE)) as connection:
        yield connection


def write_then_read(url: str, body: bytes) -> int:
    """As requests and urllib3 do over a connection that stays open."""
    with _connection(url) as connection:
        connection.putrequest("POST", httpx.URL(url).path)
        connection.putheader("Content-Type", "application/json")
        connection.putheader("Content-Length", str(len(body)))
        connection.endheaders()
        for start in range(0, len(body), 16_384):
            connection.send(body[start : start + 16_384])
        answer = connection.getresponse()
        assert json.loads(answer.read())["status"] == 413
        return answer.status


@pytest.mark.parametrize("path", ["/account/exact", "/release", "/budgets/web/preview"])
@pytest.mark.parametrize("send", [by_urllib, by_httpx, in_chunks, write_then_read])
def test_413_reaches_clients_that_write_before_they_read(
    service: Service, path: str, send: Callable[[str, bytes], int]
) -> None:
    for size in (2 * MIB, 30 * MIB):
        assert send(service.url + path, b" " * size) == 413


def test_connections_that_were_ended_are_counted(service: Service) -> None:
    told(service, b"\x00\r\n\r\n")

    assert 'gsh_connection_refusals_total{status="400"}' in service.get("/metrics").text
