"""compose.yaml and the Dockerfile are read here, and not run: their variables are settings of the service."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from app.settings import Settings
from deploy.image.prune import UNUSED, prune

ROOT = Path(__file__).parent.parent
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())
DOCKERFILE = (ROOT / "Dockerfile").read_text()


def test_every_variable_is_a_setting_and_secrets_have_no_default() -> None:
    environment = COMPOSE["services"]["service"]["environment"]

    assert {name.removeprefix("GSH_").lower() for name in environment} <= set(Settings.model_fields)
    assert ":?" in environment["GSH_LEDGER_SECRET"]
    assert ":?" in environment["GSH_ADMIN_KEY"]
    assert ":?" in environment["GSH_LEDGER"]


def test_the_service_waits_for_a_database_that_keeps_its_data() -> None:
    services = COMPOSE["services"]

    assert services["service"]["depends_on"]["postgres"]["condition"] == "service_healthy"
    assert services["postgres"]["healthcheck"]
    assert {volume.partition(":")[0] for volume in services["postgres"]["volumes"]} == set(COMPOSE["volumes"])


def test_a_stopped_container_has_longer_than_its_requests() -> None:
    period = COMPOSE["services"]["service"]["stop_grace_period"]

    assert int(period.removesuffix("s")) >= 2 * Settings.model_fields["shutdown_seconds"].default


def test_the_image_is_labelled_with_the_version_and_sets_settings() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    names = re.findall(r"GSH_(\w+)=", DOCKERFILE)

    assert f'org.opencontainers.image.version="{version}"' in DOCKERFILE
    assert names
    assert {name.lower() for name in names} <= set(Settings.model_fields)
    assert "syntax=" not in DOCKERFILE  # an engine would ask a registry


def example(pattern: str) -> str:
    """A path that a pattern of the pruning matches."""
    return re.sub(r"\[.*?\]", "x", pattern.replace("**/", "package/")).replace("*", "1")


@pytest.mark.parametrize("missing", [None, UNUSED[0], UNUSED[-1]])
def test_pruning_deletes_what_is_unused_and_says_what_it_does_not_find(tmp_path: Path, missing: str | None) -> None:
    kept = tmp_path / "plotly" / "package_data" / "plotly.min.js"
    for path in (kept, *(tmp_path / example(pattern) for pattern in UNUSED if pattern != missing)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    assert prune(tmp_path) == ([] if missing is None else [missing])
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [kept]
