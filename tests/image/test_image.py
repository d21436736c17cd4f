"""The image with a real engine: what the documents say about it is tried. ``make image-test`` runs this."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.gsh.histogram.uploads import as_parquet
from tests.image.engine import IMAGE, VERSION, Container, called, checked, engine_or_skip, inspected, volume
from tests.image.walk import MECHANISM, UnderWay, release_table, walk

engine_or_skip()
pytestmark = pytest.mark.image

KEY = "first-key-" + "k" * 32
LIMIT = {"epsilon": 1, "delta": 1e-3}
MOST_BYTES = 520_000_000


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
    assert config["Labels"]["org.opencontainers.image.base.name"]
    assert config["User"] == "10001:10001"
    assert "app.server.healthcheck" in (config.get("Healthcheck") or found["Healthcheck"])["Test"]  # or podman's place
    assert checked("run", "--rm", IMAGE, "gsh", "--version") == f"gsh {VERSION}"
    assert checked("run", "--rm", IMAGE, "id") == "uid=10001(service) gid=10001(service) groups=10001(service)"


def test_every_endpoint_and_page_answers_with_a_key_from_a_file(tmp_path: Path, ledger: str) -> None:
    """Nothing that an endpoint needs was pruned."""
    (tmp_path / "key").write_text(KEY + "\n")
    mount = f"--volume={tmp_path / 'key'}:/run/secrets/key:ro"
    with Container(ledger, mount, admin_key_file="/run/secrets/key") as container, container.client(KEY) as client:
        assert client.get("/budgets", headers={"authorization": ""}).status_code == 401
        walk(client)
        assert called("exec", container.name, "python", "-m", "app.server.healthcheck").returncode == 0
        assert "gsh_ledger_up 1.0" in client.get("/metrics").text
        assert container.stop() == 0
    assert KEY not in container.output


def test_every_secret_may_be_in_a_file(tmp_path: Path, ledger: str) -> None:
    """Also the ledger, which the image names itself."""
    secrets = {"admin_key": KEY, "ledger_secret": "s" * 32, "ledger": "/var/lib/gsh/other.sqlite3"}
    for name, secret in secrets.items():
        (tmp_path / name).write_text(secret)
    mounts = [f"--volume={tmp_path / name}:/run/secrets/{name}:ro" for name in secrets]
    places = {f"{name}_file": f"/run/secrets/{name}" for name in secrets}
    with Container(ledger, *mounts, **places) as container, container.client(KEY) as client:
        assert client.get("/budgets").status_code == 200
        assert checked("exec", container.name, "ls", "/var/lib/gsh").split()[0] == "other.sqlite3"
        assert container.stop() == 0
    assert not any(secret in container.output for secret in (KEY, "s" * 32))


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
    with Container(open_access="true") as container, container.client() as client:
        with UnderWay(client) as request:
            checked("kill", "--signal=TERM", container.name)
            container.wait_for("Shutting down")
            assert b"200 OK" in request.finished()
        assert container.wait() == 0


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
