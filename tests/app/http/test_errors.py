"""Every class of error, of every route, is a problem document: 400, 404, 405, 413, 415, 422, 500 (503 elsewhere)."""

import json
import logging
import sys
from collections.abc import AsyncIterator

import pytest

from app.errors import InvalidRequest
from app.http.auth import PUBLIC
from app.main import create_app
from app.server.logs import JsonFormatter
from app.settings import Settings
from tests.app.client import CASE_STUDY, Client, problem_errors

SECRET = "s3ntinel"
LIMITS = dict.fromkeys(("max_body_bytes", "max_release_bytes", "max_intervals_bytes"), 1024)
BODY = json.dumps({"mechanism": CASE_STUDY, "epsilon": 0.349}).encode()
POSTS = ["/account/exact", "/account/add-deltas", "/calibrate", "/compare", "/intervals", "/utility", "/release"]
GETS = [
    "/healthz",
    "/readyz",
    "/version",
    "/real-releases",
    "/metrics",
    "/",
    "/what-epsilon-means",
    "/docs",
    "/openapi.json",
]
GETS += ["/problems", "/problems/busy"]


@pytest.mark.parametrize("path", POSTS)
def test_a_body_that_is_not_json_is_400(client: Client, path: str) -> None:
    assert problem_errors(client.post(path, b'{"mechanism": '), 400, "invalid-json") == {}


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
@pytest.mark.parametrize("path", ["/nothing", "/account", "/account/exactly", "/swagger/nothing", f"/{SECRET}"])
def test_an_unknown_path_is_404(client: Client, method: str, path: str) -> None:
    """For any method."""
    response = client.request(method, path)

    problem_errors(response, 404, "not-found")
    assert SECRET not in response.text


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        *((method, path, "POST") for path in POSTS for method in ("GET", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW")),
        *((method, path, "GET") for path in GETS for method in ("POST", "PUT", "DELETE", "BREW")),
        ("POST", "/swagger/swagger-ui.css", "GET"),
    ],
)
def test_405_lists_the_allowed_methods(client: Client, method: str, path: str, allowed: str) -> None:
    response = client.request(method, path)

    problem_errors(response, 405, "method-not-allowed")
    assert allowed in response.headers["allow"].replace(" ", "").split(",")


def test_a_declared_length_above_the_limit_is_413() -> None:
    client = Client(max_body_bytes=1024)
    padded = BODY + b" " * (1024 - len(BODY))

    assert client.post("/account/exact", padded).status_code == 200
    problem_errors(client.post("/account/exact", padded + b" "), 413, "content-too-large")


@pytest.mark.parametrize("declared", ["918273645", "9" * 30, "1025"])
@pytest.mark.parametrize("path", POSTS)
def test_a_body_declared_too_long_is_413_before_it_is_read(path: str, declared: str) -> None:
    """On every route, and for a Content-Length of any number of digits."""
    headers = {"content-type": "application/json", "content-length": declared}

    response = Client(**LIMITS).request("POST", path, content=BODY, headers=headers)

    problem_errors(response, 413, "content-too-large")
    assert declared not in response.text


@pytest.mark.parametrize("path", POSTS)
def test_a_chunked_body_above_the_limit_is_413(path: str) -> None:
    """A chunked body declares no length. Bytes after the limit are not read."""
    chunks_read = 0

    async def body() -> AsyncIterator[bytes]:
        nonlocal chunks_read
        for _ in range(1000):
            chunks_read += 1
            yield b" " * 100

    response = Client(**LIMITS).request("POST", path, content=body(), headers={"content-type": "application/json"})

    problem_errors(response, 413, "content-too-large")
    assert chunks_read == 11


def test_a_chunked_body_within_the_limit_is_read() -> None:
    async def body() -> AsyncIterator[bytes]:
        for k in range(len(BODY)):
            yield BODY[k : k + 1]

    response = Client(max_body_bytes=1024).request(
        "POST", "/account/exact", content=body(), headers={"content-type": "application/json"}
    )

    assert response.status_code == 200


@pytest.mark.parametrize("declared", ["", "abc", "-1", "1e3", "0x10", "٣"])
def test_an_invalid_content_length_is_no_server_error(client: Client, declared: str) -> None:
    """A proxy may let it through. It must not become a 500."""
    headers = [(b"content-type", b"application/json"), (b"content-length", declared.encode())]

    response = client.request("POST", "/account/exact", content=BODY, headers=headers)

    assert response.status_code in {200, 400, 413, 415}


@pytest.mark.parametrize("path", POSTS)
@pytest.mark.parametrize(
    "media_type", [None, "", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", SECRET]
)
def test_a_body_of_another_media_type_is_415(client: Client, path: str, media_type: str | None) -> None:
    """Even if the body is valid JSON: browsers send these media types without a preflight request."""
    headers = {} if media_type is None else {"content-type": media_type}

    response = client.request("POST", path, content=BODY, headers=headers)

    problem_errors(response, 415, "unsupported-media-type")
    assert SECRET not in response.text


@pytest.mark.parametrize("media_type", ["application/json", "application/json; charset=utf-8", "Application/JSON"])
def test_every_spelling_of_the_json_media_type_is_accepted(client: Client, media_type: str) -> None:
    response = client.request("POST", "/account/exact", content=BODY, headers={"content-type": media_type})

    assert response.status_code == 200


def test_422_has_a_type_for_each_of_its_three_reasons(client: Client) -> None:
    """Invalid, infeasible, and above a limit of the service."""
    target = {"epsilon": 1, "delta": 1e-05}
    invalid = client.post("/calibrate", {"mechanism": {"c_u": 0, "tau": 1}, **target})
    infeasible = client.post("/calibrate", {"mechanism": {"c_u": 9, "tau": 1, "sigma": 0.1}, **target})
    beyond = client.post(
        "/account/exact", {"mechanism": CASE_STUDY | {"c_u": 10**8}, "epsilon": 0.349, "theorem": True}
    )

    assert set(problem_errors(invalid, 422, "invalid-request")) == {"/mechanism/c_u"}
    assert set(problem_errors(infeasible, 422, "infeasible-target")) == {"/mechanism/sigma"}
    assert set(problem_errors(beyond, 422, "limit-exceeded")) == {"/theorem"}


def test_a_use_case_can_refuse_a_request_by_its_place() -> None:
    app = create_app(Settings())

    @app.get("/refused", dependencies=[PUBLIC])
    async def refused() -> None:
        raise InvalidRequest("/mechanism/aggregates", "must have a covariance")

    response = Client(app).get("/refused")

    assert problem_errors(response, 422, "invalid-request") == {"/mechanism/aggregates": "must have a covariance"}


def test_500_does_not_reveal_the_exception() -> None:
    app = create_app(Settings())

    @app.get("/broken", dependencies=[PUBLIC])
    async def broken() -> None:
        raise RuntimeError(SECRET)

    response = Client(app).get("/broken")

    assert problem_errors(response, 500, "internal-error") == {}
    assert SECRET not in response.text
    assert "Traceback" not in response.text


def test_the_log_line_of_an_exception_has_its_place_and_not_its_message() -> None:
    """Messages of exceptions and of their causes may contain posted data."""
    try:
        try:
            raise ValueError(SECRET)
        except ValueError as error:
            raise RuntimeError(SECRET) from error
    except RuntimeError:
        record = logging.LogRecord("app", logging.ERROR, __file__, 1, "failed", (), sys.exc_info())

    line = JsonFormatter().format(record)

    assert SECRET not in line
    assert "\n" not in line
    assert json.loads(line)["exception"] == "RuntimeError"
    assert any("test_errors.py" in frame for frame in json.loads(line)["frames"])
