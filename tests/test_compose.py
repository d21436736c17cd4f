"""compose.yaml and the Dockerfile are read here, and not run: their variables are settings of the service."""

import re
import subprocess
import tomllib
from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml

from app.proof import verified_files
from app.settings import Settings
from deploy.image.prune import UNUSED, prune

ROOT = Path(__file__).parent.parent
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())
DOCKERFILE = (ROOT / "Dockerfile").read_text()


SERVICE, POSTGRES = COMPOSE["services"]["service"], COMPOSE["services"]["postgres"]
UNITS = {"m": 2**20, "g": 2**30}


def size(text: str) -> int:
    return int(text[:-1]) * UNITS[text[-1]]


def test_every_variable_is_a_setting_and_every_secret_is_a_file() -> None:
    """No variable has a secret: `docker inspect` shows variables."""
    environment = SERVICE["environment"]
    files = {name: path for name, path in environment.items() if name.endswith("_FILE")}

    assert {name.removeprefix("GSH_").lower() for name in environment} <= set(Settings.model_fields)
    assert files.keys() == {"GSH_LEDGER_FILE", "GSH_LEDGER_SECRET_FILE", "GSH_ADMIN_KEY_FILE"}
    assert [path.removeprefix("/run/secrets/") for path in files.values()] == SERVICE["secrets"]
    assert POSTGRES["environment"]["POSTGRES_PASSWORD_FILE"] == f"/run/secrets/{POSTGRES['secrets'][0]}"
    assert {*SERVICE["secrets"], *POSTGRES["secrets"]} == COMPOSE["secrets"].keys()
    assert all(secret == {"file": f"${{SECRETS:-./secrets}}/{name}"} for name, secret in COMPOSE["secrets"].items())
    assert "/secrets/" in (ROOT / ".gitignore").read_text().split()
    assert (ROOT / ".dockerignore").read_text().startswith("*\n")


def test_the_first_lines_of_compose_make_the_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the service reads them."""
    monkeypatch.delenv("GSH_LEDGER", raising=False)
    lines = re.findall(r"^#   (.+)$", (ROOT / "compose.yaml").read_text(), re.MULTILINE)
    script = "\n".join(line for line in lines if "docker" not in line)
    subprocess.run(["sh", "-ec", script], cwd=tmp_path, check=True)
    folder = tmp_path / "secrets"
    names = {name: str(folder / Path(path).name) for name, path in SERVICE["environment"].items() if "_FILE" in name}
    settings = Settings(**{name.removeprefix("GSH_").lower(): path for name, path in names.items()})  # type: ignore[arg-type]

    assert {path.name for path in folder.iterdir()} == COMPOSE["secrets"].keys()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o444}
    password = (folder / "postgres-password").read_text().strip()
    assert settings.ledger == f"postgresql://ledger:{password}@postgres:5432/ledger"
    assert len({password, settings.ledger_secret.get_secret_value(), settings.admin_key.get_secret_value()}) == 3


def test_only_the_service_reaches_the_database_and_it_reaches_nothing_else() -> None:
    assert POSTGRES["networks"] == ["ledger"]
    assert "ports" not in POSTGRES
    assert COMPOSE["networks"]["ledger"] == {"internal": True}
    assert COMPOSE["networks"]["front"]["driver_opts"] == {"com.docker.network.bridge.enable_ip_masquerade": "false"}


def test_tables_of_all_workers_fit_into_memory() -> None:
    """As in tests/test_deploy.py, for each of the workers."""
    names = ("GSH_WORKERS", "GSH_MAX_TABLE_BYTES", "GSH_MAX_VERIFY_BYTES")
    workers, table, verified = (int(SERVICE["environment"][name]) for name in names)
    (options,) = SERVICE["tmpfs"]
    temporary = size(re.findall(r"size=(\w+)", options)[0])
    each = 2 * (4 * table + 200 * 10**6) + verified_files.memory_of(verified)
    each += 2 * Settings().max_release_bytes + size("512m")

    assert temporary >= workers * (2 * 2 * table + 2 * verified)
    assert size(SERVICE["mem_limit"]) >= temporary + workers * each
    assert SERVICE["memswap_limit"] == SERVICE["mem_limit"]
    assert size(POSTGRES["mem_limit"])


def pinned(name: str) -> dict[str, tuple[str, int]]:
    """The version and the number of hashes of each package in a list of the image."""
    text = (ROOT / "deploy" / "image" / name).read_text()
    assert not re.search(r"://|find-links|index", text), "a list names no place"
    hashes = r"((?: +--hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)"
    found = re.findall(r"^([\w.-]+)==(\S+)(?: ;[^\\\n]*)? \\\n" + hashes, text, re.MULTILINE)
    assert len(found) == len(re.findall(r"^[\w.-]+==", text, re.MULTILINE))
    return {canonical(package): (version, listed.count("--hash")) for package, version, listed in found}


def canonical(package: str) -> str:
    return re.sub(r"[-_.]+", "-", package).lower()


def names_of(requirements: Iterable[str]) -> set[str]:
    return {canonical(re.findall(r"[\w.-]+", each)[0]) for each in requirements}


def test_the_image_installs_exact_versions_with_hashes() -> None:
    """`make hashes` writes the lists from what is declared and constraints.txt. Nobody keeps them by hand."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    declared = (ROOT / "service" / "requirements.txt").read_text().splitlines()[1:]
    wanted = names_of([*project["project"]["dependencies"], *declared])
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    constrained = {canonical(name): version for name, _, version in (line.partition("==") for line in lines)}
    service, build = pinned("service.txt"), pinned("build.txt")

    assert wanted <= service.keys()
    assert names_of(project["build-system"]["requires"]) <= build.keys()
    for package, (version, hashes) in (service | build).items():
        assert constrained.get(package, version) == version, f"{package}: run make hashes"
        assert hashes
    installations = re.findall(r"pip install(?:.|\\\n)+?--requirement .*", DOCKERFILE)
    assert len(installations) == DOCKERFILE.count("--requirement") == 3
    for line in installations:
        assert {"--require-hashes", "--no-deps", "--only-binary=:all:"} <= {*line.split()}


def test_the_base_may_have_a_digest_and_the_image_says_which() -> None:
    assert {line for line in DOCKERFILE.splitlines() if line.startswith("FROM")} >= {"FROM ${BASE}"}
    assert not re.search(r"^FROM (?!\$\{BASE\}|dependencies)", DOCKERFILE, re.MULTILINE)
    assert 'org.opencontainers.image.base.name="${BASE}"' in DOCKERFILE
    assert SERVICE["build"]["args"] == {"BASE": "${BASE:-python:3.13-slim}"}
    for base, is_allowed in (("python:3.13-slim", False), (f"python:3.13-slim@sha256:{'a' * 64}", True)):
        command = ["make", "release-image", f"BASE={base}", "ENGINE=true"]
        said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert (said.returncode == 0) == is_allowed, said.stderr


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
