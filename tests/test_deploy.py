"""deploy/kubernetes and deploy/nginx are valid by the published schemas, and agree with the service and the image."""

import re
import shutil
import subprocess
import textwrap
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from app.ledger.pool import LedgerPool
from app.proof import verified_files
from app.settings import Settings
from app.version import VERSION
from tests.app.client import Client, problem_errors

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "deploy" / "kubernetes"
VERSIONS = ("1.29", kubernetes_validate.latest_version())
"""The oldest Kubernetes that clouds still offer, and the newest with published schemas."""
BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "k": 2**10, "m": 2**20, "g": 2**30}
USUAL_CONNECTIONS = 97
"""PostgreSQL's max_connections is 100, and three of them are for its superuser."""


def listed(folder: Path) -> dict[str, Any]:
    """Each resource of a kustomization, by kind."""
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    documents = [yaml.safe_load((folder / name).read_text()) for name in kustomization["resources"]]
    return {document["kind"]: document for document in documents}


RESOURCES = listed(FOLDER)
POD = RESOURCES["Deployment"]["spec"]["template"]["spec"]
(CONTAINER,) = POD["containers"]
KUSTOMIZATION = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
SETTINGS = dict(
    line.split("=", 1) for line in (FOLDER / "settings.env").read_text().splitlines() if not line.startswith("#")
)


def size(text: str) -> int:
    number, unit = re.fullmatch(r"(\d+)(\w+)", text).groups()  # type: ignore[union-attr]
    return int(number) * BINARY[unit]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", RESOURCES)
def test_every_resource_is_valid_by_the_published_schemas(kind: str, version: str) -> None:
    kubernetes_validate.validate(RESOURCES[kind], version, strict=True)


def test_a_misspelt_field_would_be_found() -> None:
    deployment = yaml.safe_load((FOLDER / "deployment.yaml").read_text())
    deployment["spec"]["template"]["spec"]["containers"][0]["readinesProbe"] = {}

    with pytest.raises(kubernetes_validate.ValidationError, match="readinesProbe"):
        kubernetes_validate.validate(deployment, VERSIONS[-1], strict=True)


def test_every_file_is_listed() -> None:
    files = {path.name for path in FOLDER.glob("*.yaml")} - {"kustomization.yaml"}

    assert files == set(KUSTOMIZATION["resources"])


def test_every_resource_selects_the_instances() -> None:
    labels = RESOURCES["Deployment"]["spec"]["template"]["metadata"]["labels"]
    selectors = [
        RESOURCES["Deployment"]["spec"]["selector"]["matchLabels"],
        RESOURCES["Service"]["spec"]["selector"],
        RESOURCES["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
        RESOURCES["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"],
        POD["topologySpreadConstraints"][0]["labelSelector"]["matchLabels"],
    ]

    assert all(selector.items() <= labels.items() for selector in selectors)
    assert RESOURCES["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]["name"] == "gsh"
    assert POD["serviceAccountName"] == RESOURCES["ServiceAccount"]["metadata"]["name"]


def test_the_pod_is_restricted() -> None:
    """By the Pod Security Standards' strictest profile; and its root file system cannot be written."""
    assert POD["securityContext"]["runAsNonRoot"] is True
    assert POD["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert CONTAINER["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not {"hostNetwork", "hostPID", "hostIPC"} & POD.keys()
    assert all(set(volume) <= {"name", "emptyDir", "secret", "configMap"} for volume in POD["volumes"])
    assert POD["automountServiceAccountToken"] is False


def test_the_image_is_that_of_the_dockerfile() -> None:
    (image,) = KUSTOMIZATION["images"]
    dockerfile = (ROOT / "Dockerfile").read_text()

    assert image == {"name": CONTAINER["image"], "newTag": VERSION}
    assert f"USER {POD['securityContext']['runAsUser']}" in dockerfile
    assert f"EXPOSE {CONTAINER['ports'][0]['containerPort']}" in dockerfile
    assert {"name": "tmp", "mountPath": "/tmp"} in CONTAINER["volumeMounts"]


def test_settings_are_accepted_and_secrets_come_from_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)
    settings = Settings()
    files = {variable["name"]: variable["value"] for variable in CONTAINER["env"]}
    (mount,) = (each for each in CONTAINER["volumeMounts"] if each["name"] == "secrets")
    (volume,) = (each["secret"] for each in POD["volumes"] if each["name"] == "secrets")

    assert {name.removeprefix("GSH_").lower() for name in SETTINGS.keys() | files.keys()} <= set(Settings.model_fields)
    assert {name: path.removeprefix(f"{mount['mountPath']}/") for name, path in files.items()} == {
        "GSH_LEDGER_FILE": "url",
        "GSH_LEDGER_SECRET_FILE": "secret",
        "GSH_ADMIN_KEY_FILE": "admin-key",
    }
    assert volume == {"secretName": "gsh-ledger", "defaultMode": 0o440}
    assert POD["securityContext"]["fsGroup"] == POD["securityContext"]["runAsGroup"]
    assert not files.keys() & SETTINGS.keys()
    assert settings.port == CONTAINER["ports"][0]["containerPort"]
    # A variable GSH_PORT=tcp://… of the Service named gsh would end the start.
    assert POD["enableServiceLinks"] is False


def test_requests_may_finish_before_an_instance_is_killed() -> None:
    waits = int(CONTAINER["lifecycle"]["preStop"]["exec"]["command"][1])
    finishing = int(SETTINGS["GSH_SHUTDOWN_SECONDS"])

    # An instance is out of the proxies' lists one probe after it is told to stop; uvicorn then closes connections.
    assert waits >= CONTAINER["readinessProbe"]["periodSeconds"]
    assert POD["terminationGracePeriodSeconds"] >= waits + finishing + 5


def test_the_connections_of_all_instances_fit_into_postgresql() -> None:
    """Each thread of the ledger pool has one. A rollout has an instance more."""
    pool = LedgerPool("postgresql://nobody@127.0.0.1:1/nothing", "s" * 32)
    threads = sum(
        each._threads._max_workers for name, each in vars(pool).items() if name.endswith("ing") and name != "_opening"
    )
    pool.close()
    most = RESOURCES["HorizontalPodAutoscaler"]["spec"]["maxReplicas"]
    surge = RESOURCES["Deployment"]["spec"]["strategy"]["rollingUpdate"]["maxSurge"]

    assert threads == 12
    assert (most + surge) * int(SETTINGS["GSH_WORKERS"]) * threads <= USUAL_CONNECTIONS


def test_tables_fit_into_memory() -> None:
    """Two uploads may be open at a time, each with its answer, in /tmp. Two workers read tables at a time, one for a
    release and one for a stored answer: each takes four times a table and 200 MB. One more reads files of /verify.
    """
    (volume,) = (each for each in POD["volumes"] if each["name"] == "tmp")
    table, temporary = int(SETTINGS["GSH_MAX_TABLE_BYTES"]), size(volume["emptyDir"]["sizeLimit"])
    memory = size(CONTAINER["resources"]["limits"]["memory"])

    assert volume["emptyDir"]["medium"] == "Memory"
    assert temporary >= 2 * 2 * table + 2 * int(SETTINGS["GSH_MAX_VERIFY_BYTES"])
    workers = 2 * (4 * table + 200 * 10**6) + verified_files.memory_of(int(SETTINGS["GSH_MAX_VERIFY_BYTES"]))
    assert memory >= temporary + workers + 2 * Settings().max_release_bytes + size("512Mi")


def test_the_instances_reach_names_and_the_database_alone() -> None:
    """The operator fills in where the database is: the address in the file is nobody's."""
    names, database = RESOURCES["NetworkPolicy"]["spec"]["egress"]

    assert {port["port"] for port in names["ports"]} == {53}
    assert all(each["namespaceSelector"]["matchLabels"] for each in names["to"])
    assert database["ports"] == [{"protocol": "TCP", "port": 5432}]
    assert database["to"] == [
        {"podSelector": {"matchLabels": {"gsh-ledger": "true"}}},
        {"ipBlock": {"cidr": "192.0.2.1/32"}},
    ]


def test_only_the_startup_probe_asks_the_ledger() -> None:
    """So a wrong password stops a rollout, and a database that is down takes no instance away."""
    client = Client(ledger="postgresql://nobody@127.0.0.1:1/nothing", ledger_secret="s" * 32)
    paths = {name: CONTAINER[f"{name}Probe"]["httpGet"]["path"] for name in ("startup", "readiness", "liveness")}

    problem_errors(client.get(paths["startup"]), 503, "ledger-unavailable")
    assert client.get(paths["readiness"]).status_code == 200
    assert client.get(paths["liveness"]).status_code == 200


def test_the_proxy_is_as_patient_and_as_large_as_the_service() -> None:
    found = dict(re.findall(r"^ *(client_\w+|proxy_\w+_timeout) (\w+);", PROXY, re.MULTILINE))
    settings = Settings()

    assert size(found["client_max_body_size"]) >= settings.max_table_bytes
    assert size(found["client_body_buffer_size"]) >= settings.max_body_bytes
    assert int(found["proxy_read_timeout"].removesuffix("s")) > settings.release_seconds
    assert int(found["proxy_send_timeout"].removesuffix("s")) > settings.release_seconds
    # Raw tables never go to a disk of the proxy.
    assert re.search(r"location ~ \^/release\(/table\)\?\$ \{\s+proxy_request_buffering off;", PROXY)
    assert "proxy_buffering off;" in PROXY


PROXY = (ROOT / "deploy" / "nginx" / "service.conf").read_text()


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kustomize_builds_the_example_of_the_operations_guide(tmp_path: Path) -> None:
    """With monitoring and the dashboard. Every name that the deployment refers to is there, but for the Secret."""
    guide = (ROOT / "docs" / "operations.md").read_text()
    (example,) = re.findall(r"^ *```yaml\n( *# kustomization.yaml\n.*?)^ *```", guide, re.MULTILINE | re.DOTALL)
    shutil.copytree(ROOT / "deploy", tmp_path / "deploy")
    (tmp_path / "kustomization.yaml").write_text(textwrap.dedent(example))

    built = subprocess.run(["kubectl", "kustomize", tmp_path], capture_output=True, text=True, check=False)

    assert built.returncode == 0, built.stderr
    documents = {(each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(built.stdout)}
    assert RESOURCES.keys() | {"Namespace", "ServiceMonitor", "PrometheusRule", "ConfigMap"} >= {
        kind for kind, _ in documents
    }
    (container,) = documents["Deployment", "gsh"]["spec"]["template"]["spec"]["containers"]
    assert ("ConfigMap", container["envFrom"][0]["configMapRef"]["name"]) in documents
    assert documents["ConfigMap", "gsh-dashboard"]["metadata"]["labels"] == {"grafana_dashboard": "1"}
    assert container["image"].endswith(f":{VERSION}")
    for document in documents.values():
        if document["kind"] not in {"ServiceMonitor", "PrometheusRule"}:
            kubernetes_validate.validate(document, VERSIONS[-1], strict=True)
