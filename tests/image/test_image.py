"""The image with a real engine: what the documents say about it is tried. ``make image-test`` runs this."""

import json
import os
import re
import socket
import tomllib
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pyarrow as pa
import pytest

from app.web.pages import PAGES
from tests.api.example_requests import ask_example
from tests.histogram.uploads import as_parquet, as_stream, from_bytes
from tests.image.engine import (
    IMAGE,
    PATIENCE,
    ROOT,
    Container,
    called,
    checked,
    engine_or_skip,
    extra,
    inspected,
    volume,
)

ENGINE = engine_or_skip()
pytestmark = pytest.mark.image

KEY = "first-key-" + "k" * 32
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
MECHANISM = {"c_u": 3, "tau": 1, "tau_star": 120, "sigma": 20}
LIMIT = {"epsilon": 1, "delta": 1e-3}
MOST_BYTES = 520_000_000


@pytest.fixture(scope="module", autouse=True)
def image() -> None:
    """As `make image` builds it. Podman's own format of images has no health check."""
    options = ["--format=docker"] if ENGINE == "podman" else []
    tags = [f"--tag={IMAGE}:{VERSION}", f"--tag={IMAGE}"]
    checked("build", *options, *extra("IMAGE_BUILD_OPTIONS"), *tags, ".", cwd=ROOT)


@pytest.fixture
def ledger() -> Iterator[str]:
    """The option that mounts a new volume for the ledger."""
    with volume() as name:
        yield f"--volume={name}:/var/lib/gsh"


def test_the_image_is_small_labelled_and_unprivileged() -> None:
    found = inspected("image", f"{IMAGE}:{VERSION}")
    config = found["Config"]

    assert found["Size"] <= MOST_BYTES
    assert config["Labels"]["org.opencontainers.image.version"] == VERSION
    assert config["Labels"]["org.opencontainers.image.licenses"] == "Apache-2.0"
    assert config["User"] == "10001:10001"
    assert "app.healthcheck" in config["Healthcheck"]["Test"]
    assert checked("run", "--rm", IMAGE, "gsh", "--version") == f"gsh {VERSION}"
    assert checked("run", "--rm", IMAGE, "id") == "uid=10001(service) gid=10001(service) groups=10001(service)"


def test_the_code_is_in_a_small_layer_of_its_own() -> None:
    sizes = checked("history", "--human=false", "--format={{.Size}}", IMAGE).splitlines()
    code, dependencies = [int(size) for size in sizes if int(size) > 100_000][:2]

    assert code < 10_000_000 < dependencies


def test_every_endpoint_and_page_answers_with_a_key_from_a_file(tmp_path: Path, ledger: str) -> None:
    """Nothing that an endpoint needs was pruned."""
    (tmp_path / "key").write_text(KEY + "\n")
    mount = f"--volume={tmp_path / 'key'}:/run/secrets/key:ro"
    with Container(ledger, mount, admin_key_file="/run/secrets/key") as container, container.client(KEY) as client:
        assert client.get("/budgets", headers={"authorization": ""}).status_code == 401
        paths = client.get("/openapi.json").raise_for_status().json()["paths"]
        for path, operations in paths.items():
            for method, operation in operations.items():
                content = operation.get("requestBody", {}).get("content", {})
                if "multipart/form-data" in content:
                    continue  # tried below
                for example in content.get("application/json", {}).get("examples", {"": {"value": None}}).values():
                    response, expected = ask_example(client.request, method, path, example["value"])
                    assert response.status_code == int(expected), (method, path, response.text)
        for table in (as_stream, as_parquet):
            released = release_table(client, table(pa.table({"url": ["b", "a"], "users": [1000, 2000]})))
            assert released["url"].to_pylist() == ["a", "b"]
        for page in PAGES:
            html = client.get(f"/{page.path.removeprefix('.')}").raise_for_status().text
            for asset in re.findall(r'(?:src|href)="([^"#:]+\.(?:js|css|svg|png))"', html):
                assert client.get(f"/{asset.removeprefix('./').removeprefix('/')}").status_code == 200, asset
        assert client.get("/plotly/plotly.min.js").status_code == 200
        assert client.get("/swagger/swagger-ui-bundle.js").status_code == 200
        assert called("exec", container.name, "python", "-m", "app.healthcheck").returncode == 0
        assert "gsh_ledger_up 1.0" in client.get("/metrics").text
        assert container.stop() == 0
    assert KEY not in container.output


def release_table(client: httpx.Client, table: bytes) -> pa.Table:
    request = {"mechanism": MECHANISM, "count_column": "users", "key_columns": ["url"]}
    response = client.post("/release/table", files={"request": (None, json.dumps(request)), "table": ("t", table)})
    return from_bytes(response.raise_for_status().content)


def test_without_a_key_it_refuses_with_a_command_that_works_and_keeps_its_ledger(ledger: str) -> None:
    refused = Container(ledger)
    assert refused.wait() == 2
    refused.wait_for("GSH_HOST: ")
    command = re.findall("`(.+?)`", refused.output)[0].split()
    key = checked("run", "--rm", ledger, IMAGE, *command).splitlines()[0]
    assert key.startswith("gsh_")

    release = {"mechanism": MECHANISM, "budget": "web", "groups": {"keys": ["a"], "counts": [9000]}}
    answers = []
    for _ in range(2):
        with Container(ledger) as container, container.client(key) as client:
            client.put("/budgets/web", json=LIMIT).raise_for_status()
            answers.append(client.post("/release", json=release, headers={"idempotency-key": "week-1"}).json())
            charged = client.get("/releases").raise_for_status().json()
            assert container.stop() == 0
    assert answers[0] == answers[1]
    assert [each["key"] for each in charged["releases"]] == ["week-1"]
    assert "web" in checked("run", "--rm", ledger, IMAGE, "python", "-m", "app.verify")


def test_open_access_is_one_command() -> None:
    """To explore: nothing is set but that everyone may."""
    with Container(open_access="true") as container, container.client() as client:
        assert client.get("/budgets").status_code == 200
        assert container.stop() == 0


def test_a_stop_while_it_starts_is_a_normal_end() -> None:
    container = Container(command=("python", "-X", "importtime", "-m", "app"), open_access="true")
    container.wait_for("app.settings")
    assert container.stop() == 0


def test_a_stop_at_once_is_not_lost_with_an_init_process() -> None:
    """143 is the signal itself, before Python has set a handler."""
    container = Container("--init", command=("sh", "-c", "echo begins; exec python -m app"), open_access="true")
    container.wait_for("begins")
    assert container.stop() in {0, 143}


def test_a_request_under_way_is_answered_before_the_container_ends() -> None:
    content = json.dumps({"mechanism": MECHANISM, "epsilon": 0.349}).encode()
    head = (
        "POST /account/exact HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        f"content-length: {len(content)}\r\nexpect: 100-continue\r\n\r\n"
    )
    with Container(open_access="true") as container, container.client() as client:
        address = client.base_url
        with socket.create_connection((address.host, address.port), PATIENCE) as connection:
            connection.sendall(head.encode())
            assert b"100 Continue" in connection.recv(1000)
            checked("kill", "--signal=TERM", container.name)
            container.wait_for("Shutting down")
            connection.sendall(content)
            answer = b"".join(iter(lambda: connection.recv(10_000), b""))
        assert container.wait() == 0
    assert b"200 OK" in answer


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make a folder that others own")
def test_a_volume_of_another_owner_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "owned").mkdir(mode=0o700)
    container = Container(f"--volume={tmp_path / 'owned'}:/var/lib/gsh", admin_key=KEY)
    assert container.wait() == 2
    container.wait_for("GSH_LEDGER: cannot be opened")
    assert "Traceback" not in container.output


def test_two_million_groups_fit_into_512_megabytes(ledger: str) -> None:
    """Also the tmpfs counts as memory of the container."""
    names = pa.array(np.arange(2_000_000).astype("U7"))
    counts = pa.array(np.full(2_000_000, 1000))
    with Container(ledger, "--memory=512m", admin_key=KEY) as container, container.client(KEY) as client:
        released = release_table(client, as_parquet(pa.table({"url": names, "users": counts})))
        assert released.num_rows == 2_000_000
        assert client.get("/readyz").status_code == 200
        assert container.stop() == 0
