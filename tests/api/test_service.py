"""GET /healthz, /readyz and /version, and the effect of settings."""

import asyncio
import platform
import re

import httpx
import pytest

from app.api.endpoints import health as service
from app.main import create_app
from app.settings import Settings
from tests.api.client import CASE_STUDY, Client, Json, problem_errors


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_a_healthy_service_answers_ok(client: Client, path: str) -> None:
    response = client.get(path)

    assert (response.status_code, response.json()) == (200, {"status": "ok"})


def test_a_service_whose_arithmetic_is_off_by_one_bit_is_alive_but_not_ready(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The self-test compares with a double computed elsewhere to sixty digits."""
    monkeypatch.setattr(service, "_KNOWN_DELTA", 1.0031038485126879e-05)

    problem_errors(client.get("/readyz"), 503, "busy")
    assert client.get("/healthz").status_code == 200


def test_the_version_names_the_service_python_and_flint(client: Client) -> None:
    version = client.get("/version").json()

    assert set(version) == {"service", "python", "flint"}
    assert version["python"] == platform.python_version()
    assert version["service"] == create_app(Settings()).version
    assert re.fullmatch(r"\d+\.\d+.*", version["flint"])


def test_behind_a_proxy_the_document_names_the_prefix(client: Client) -> None:
    """The document names the prefix, so relative URLs of pages are right too."""

    async def document() -> Json:
        transport = httpx.ASGITransport(client.app, root_path="/privacy")
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
            served: Json = (await http.get("/privacy/openapi.json")).json()
            return served

    assert asyncio.run(document())["servers"] == [{"url": "/privacy"}]


def test_a_prefix_may_be_set_without_a_warning() -> None:
    """Warnings are errors here, and would be lines that are not JSON in a log."""
    create_app(Settings(root_path="/privacy"))


@pytest.mark.parametrize(
    ("path", "body", "pointer"),
    [
        ("/account/exact", {"mechanism": CASE_STUDY, "epsilon": [0.1] * 4}, "/epsilon"),
        ("/account/add-deltas", {"mechanism": CASE_STUDY, "delta": [0.1] * 4}, "/delta"),
        (
            "/calibrate",
            {"mechanism": {"c_u": 9, "tau": 1, "sigma": [50] * 4}, "epsilon": 1, "delta": 1e-05},
            "/mechanism/sigma",
        ),
    ],
)
def test_the_most_points_of_a_request_are_as_set(path: str, body: Json, pointer: str) -> None:
    client = Client(max_curve_points=3)

    errors = problem_errors(client.post(path, body), 422, "limit-exceeded")

    assert set(errors) == {pointer}
    assert "3" in errors[pointer]
    assert Client(max_curve_points=4).post(path, body).status_code == 200


def test_the_most_evaluations_of_the_theorem_are_as_set() -> None:
    """C_u times the points; without the theorem, or with one evaluation fewer, the request is answered."""
    client = Client(max_theorem_evaluations=200)
    body = {"mechanism": CASE_STUDY | {"c_u": 100}, "epsilon": [0.1, 0.2, 0.3], "theorem": True}

    errors = problem_errors(client.post("/account/exact", body), 422, "limit-exceeded")

    assert set(errors) == {"/theorem"}
    assert "200" in errors["/theorem"]
    assert client.post("/account/exact", body | {"epsilon": [0.1, 0.2]}).status_code == 200
    assert client.post("/account/exact", body | {"theorem": False}).status_code == 200


def test_the_theorem_is_not_attempted_beyond_its_limit(client: Client) -> None:
    """10¹⁸ evaluations would never end, but this test does."""
    body = {"mechanism": CASE_STUDY | {"c_u": 10**18}, "epsilon": 0.349, "theorem": True}

    assert set(problem_errors(client.post("/account/exact", body), 422, "limit-exceeded")) == {"/theorem"}


@pytest.mark.parametrize(("name", "value"), [("PORT", "70001"), ("CACHE_SIZE", "-1"), ("HEAVY_THREADS", "0")])
def test_settings_come_from_the_environment_and_are_checked(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv("GSH_MAX_CURVE_POINTS", "7")
    assert Settings().max_curve_points == 7

    monkeypatch.setenv(f"GSH_{name}", value)
    with pytest.raises(ValueError, match=name.lower()):
        Settings()
