"""The wheel alone is the service: built from the tree, installed with what it declares, run outside the checkout.

``make test`` builds that environment; this is as near to the container as one can get without a container engine.
"""

import json
import os
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import httpx
import pyarrow as pa
import pytest

from tests.release.uploads import as_stream, from_bytes

pytestmark = pytest.mark.wheel

ROOT = Path(__file__).parent.parent
PYTHON = ROOT / "build" / "wheel-env" / "bin" / "python"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    assert PYTHON.exists(), "run `make test`, which builds the wheel's environment"
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    process = subprocess.Popen(
        [PYTHON, "-I", "-m", "app"],
        cwd=elsewhere,
        env={"PATH": os.environ["PATH"], "GSH_PORT": "0", "GSH_LEDGER": str(elsewhere / "ledger.sqlite3")},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        address = next(
            message.split(" ")[3]
            for message in (json.loads(line)["message"] for line in process.stdout)
            if message.startswith("Uvicorn running on ")
        )
        with httpx.Client(base_url=address, timeout=30) as client:
            yield client
    finally:
        process.terminate()
        assert process.wait(timeout=30) == 0
        process.stdout.close()


def test_the_wheel_is_what_runs(service: httpx.Client) -> None:
    """Not the checkout: the package is found in the wheel's own environment."""
    found = subprocess.run(
        [PYTHON, "-I", "-c", "import app; print(app.__file__)"], capture_output=True, text=True, check=True, cwd="/"
    )

    assert Path(found.stdout.strip()).is_relative_to(PYTHON.parent.parent)


def test_every_operation_answers_its_examples(service: httpx.Client) -> None:
    """All endpoints, with the examples of the service's own OpenAPI document."""
    paths = service.get("/openapi.json").raise_for_status().json()["paths"]
    service.put("/budgets/web", json={"epsilon": 1, "delta": 1e-3}).raise_for_status()
    for path, operations in paths.items():
        for method, operation in operations.items():
            content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
            if "multipart/form-data" in operation.get("requestBody", {}).get("content", {}):
                continue  # tried below
            for example in content.get("examples", {"none": {"value": None}}).values():
                headers = {"idempotency-key": str(uuid.uuid4())} if path.endswith("/charges") else {}
                named = path.replace("{id}", "web")
                response = service.request(method, named, json=example["value"], headers=headers)
                assert response.status_code == 200, (method, path, response.text)


def test_a_table_is_released(service: httpx.Client) -> None:
    """By the process that large releases go to."""
    mechanism = {"c_u": 3, "tau": 1, "tau_star": 120, "sigma": 20}
    request = {"mechanism": mechanism, "count_column": "users", "key_columns": ["url"]}
    table = as_stream(pa.table({"url": ["b", "a"], "users": [1000, 2000]}))

    response = service.post("/release/table", files={"request": (None, json.dumps(request)), "table": ("t", table)})

    assert from_bytes(response.raise_for_status().content)["url"].to_pylist() == ["a", "b"]


@pytest.mark.parametrize(
    "path",
    ["/", "/reference", "/docs", "/web/explorer/explorer.js", "/plotly/plotly.min.js", "/swagger/swagger-ui-bundle.js"],
)
def test_package_data_is_found(service: httpx.Client, path: str) -> None:
    assert service.get(path).status_code == 200
