"""GET /healthz, /readyz and /version, and the effect of settings."""

import asyncio
import platform
import re
from pathlib import Path

import httpx
import pytest

from app.http import health as service
from app.ledger.opening import is_postgres
from app.main import create_app
from app.settings import Settings
from tests.app.budgets.test_budgets import SECRET
from tests.app.client import CASE_STUDY, Client, Json, problem_errors
from tests.app.process import Service, stopped
from tests.postgres import Postgres


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/healthz", {"status": "ok"}),
        ("/readyz", {"status": "ok", "ledger": "ok"}),
        ("/readyz?ledger=true", {"status": "ok", "ledger": "ok"}),
        ("/readyz?ledger=false", {"status": "ok", "ledger": "not asked"}),
    ],
)
def test_a_healthy_service_answers_ok(client: Client, path: str, answer: Json) -> None:
    response = client.get(path)

    assert (response.status_code, response.json()) == (200, answer)


def test_a_service_without_its_ledger_is_ready_for_accounting_alone(tmp_path: Path) -> None:
    client = Client(ledger=str(tmp_path / "missing" / "ledger.sqlite3"))

    refused = client.get("/readyz")
    problem_errors(refused, 503, "ledger-unavailable")
    assert str(tmp_path) not in refused.text
    assert client.get("/readyz?ledger=false").status_code == 200
    assert client.metrics()["gsh_ledger_up"] == 0
    assert set(problem_errors(client.get("/readyz?ledger=perhaps"), 422, "invalid-request")) == {"parameter ledger"}
    assert client.point(CASE_STUDY, 0.349)["delta"] == 1.003103848512688e-05


def test_a_ledger_that_is_deleted_is_down_and_up_again_when_it_is_back(ledger_url: str, tmp_path: Path) -> None:
    client = Client(ledger=ledger_url, ledger_secret=SECRET)
    clock = [0.0]
    services = client.app.state.services
    services.ledger_probe._clock = lambda: clock[0]
    assert client.get("/readyz").status_code == 200
    assert client.metrics()["gsh_ledger_up"] == 1

    if not is_postgres(ledger_url):
        place = Path(ledger_url)
        place.rename(tmp_path / "elsewhere")
        assert client.get("/readyz").status_code == 200  # the answer of this second
        clock[0] = 1.5
        problem_errors(client.get("/readyz"), 503, "ledger-unavailable")
        assert client.metrics()["gsh_ledger_up"] == 0
        (tmp_path / "elsewhere").rename(place)
        clock[0] = 3.0
        assert client.get("/readyz").status_code == 200
        assert client.metrics()["gsh_ledger_up"] == 1
    services.ledger_pool.close()


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


@pytest.mark.parametrize(("name", "value"), [("PORT", "70001"), ("CACHE_SIZE", "-1"), ("POOL_PROCESSES", "0")])
def test_settings_come_from_the_environment_and_are_checked(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv("GSH_MAX_CURVE_POINTS", "7")
    assert Settings().max_curve_points == 7

    monkeypatch.setenv(f"GSH_{name}", value)
    with pytest.raises(ValueError, match=name.lower()):
        Settings()


def test_the_old_name_of_a_setting_is_read_unless_the_new_one_has_another_value(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GSH_HEAVY_THREADS", "3")
    assert Settings().pool_processes == 3

    monkeypatch.setenv("GSH_POOL_PROCESSES", "3")
    assert Settings().pool_processes == 3
    monkeypatch.setenv("GSH_POOL_PROCESSES", "1")
    with pytest.raises(ValueError, match="is the old name of GSH_POOL_PROCESSES, which has another value"):
        Settings()
    monkeypatch.delenv("GSH_HEAVY_THREADS")
    assert Settings().pool_processes == 1


@pytest.mark.slow
def test_the_old_name_of_a_setting_is_logged_with_the_new_one(tmp_path: Path) -> None:
    with Service(temporary=tmp_path, heavy_threads="2") as running:
        lines = [line["message"] for line in running.log if line["logger"] == "app.settings"]

    assert lines == ["GSH_HEAVY_THREADS: the new name is GSH_POOL_PROCESSES"]


def test_a_server_that_hangs_does_not_hang_the_probe(postgres: Postgres) -> None:
    """The process that the ledger is connected to is stopped. The kernel still accepts what is sent to it."""
    client = Client(ledger=postgres.make_database(), ledger_secret=SECRET)
    services = client.app.state.services
    clock = [0.0]
    services.ledger_probe._clock = lambda: clock[0]
    assert client.get("/readyz").status_code == 200
    probing = services.ledger_pool._probing._threads._threads
    (connection,) = [services.ledger_pool._connections._open[thread.ident] for thread in probing]
    services.ledger_probe._patience = 0.01

    with stopped(connection.info.backend_pid):
        clock[0] = 2.0

        async def ask(http: httpx.AsyncClient) -> list[int]:
            return [(await http.get(path)).status_code for path in ("/readyz", "/readyz", "/healthz")]

        assert client.together(ask) == [503, 503, 200]
    services.ledger_pool.close()
