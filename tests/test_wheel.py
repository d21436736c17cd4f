"""Two wheels are all that is installed: the library, and the service on top of it.

``make test`` builds the wheels and two environments: one has the library, the other one also the service. The tests
use them outside of the checkout, like an executor or the container.
"""

import json
import os
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import httpx
import pyarrow as pa
import pytest

from tests.app.example_requests import NEEDS_KEY, ask_example
from tests.app.process import PATIENCE
from tests.gsh.histogram.uploads import as_stream, from_bytes

pytestmark = pytest.mark.wheel

ROOT = Path(__file__).parent.parent
LIBRARY = ROOT / "build" / "library-env" / "bin" / "python"
PYTHON = ROOT / "build" / "service-env" / "bin" / "python"
NAME, SERVICE = "gaussian-sparse-histogram", "gaussian-sparse-histogram-service"
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def printed(python: Path, program: str) -> str:
    """The output of a program in one of the environments, outside of the checkout."""
    assert python.exists(), "run `make test`, which builds the environments of the wheel"
    done = subprocess.run([python, "-I", "-c", program], capture_output=True, text=True, check=True, cwd="/")
    return done.stdout.strip()


ACCOUNTS = """
import gsh
mechanism = gsh.Mechanism(c_u=51914, tau=1, tau_star=13948, sigma=2228)
print(gsh.exact(mechanism, epsilon=0.349).delta, gsh.calibrate(c_u=51914, epsilon=0.349, delta=1e-5).mechanism.sigma)
"""
RELEASES = """
import gsh, pyarrow
mechanism = gsh.Mechanism(c_u=3, tau=1, tau_star=120, sigma=20)
table = pyarrow.table({"url": ["b", "a", "c"], "users": [100000, 200000, 1]})
released = gsh.release(mechanism, table, key_columns=["url"], count_column="users")
print(released["url"].to_pylist(), gsh.release(mechanism, keys=["x"], counts=[100000]).keys)
"""
INTERVALS = """
import gsh
mechanism = gsh.Mechanism(c_u=3, tau=1, tau_star=120, sigma=20)
found, total = gsh.intervals(mechanism, counts=[400]), gsh.total(mechanism, counts=[400, 500])
print(found.counts.low.round(3), total.counts.estimate)
"""
PACKAGES = """
import importlib.metadata
files = importlib.metadata.distribution({!r}).files
print(*sorted({{file.parts[0] for file in files if file.parts[0] != ".." and "dist-info" not in file.parts[0]}}))
"""
SAYS_WHAT_IT_IS = """
import gsh, importlib.metadata, importlib.resources
wheel = importlib.metadata.distribution({!r})
texts = [file.name for file in wheel.files if "licenses" in file.parts]
is_typed = (importlib.resources.files("gsh") / "py.typed").is_file()
print(gsh.__version__, is_typed, wheel.metadata["License-Expression"], texts)
"""


def test_the_base_accounts_and_calibrates() -> None:
    assert printed(LIBRARY, ACCOUNTS) == "1.003103848512688e-05 2228.482632459166"


def test_the_base_releases_arrow_tables_and_lists() -> None:
    assert printed(LIBRARY, RELEASES) == "['a', 'b'] ('x',)"


def test_the_base_says_what_published_numbers_mean() -> None:
    assert printed(LIBRARY, INTERVALS) == "[360.801] 900.0"


@pytest.mark.parametrize("package", ["app", "fastapi", "starlette", "pydantic", "uvicorn", "psycopg", "pytest"])
def test_the_base_has_neither_the_service_nor_the_tests(package: str) -> None:
    found = "import importlib.util; print(importlib.util.find_spec({!r}) is not None)"

    assert printed(LIBRARY, found.format(package)) == "False"
    assert printed(PYTHON, found.format(package)) == str(package != "pytest")


@pytest.mark.parametrize(
    ("python", "name"),
    [(LIBRARY, NAME), (PYTHON, NAME), (PYTHON, SERVICE)],
    ids=["library", "library of the service", "service"],
)
def test_the_wheel_is_typed_licensed_and_of_this_version(python: Path, name: str) -> None:
    assert printed(python, SAYS_WHAT_IT_IS.format(name)) == f"{VERSION} True Apache-2.0 ['LICENSE']"


def test_each_wheel_has_one_package() -> None:
    """A notebook that installs the library gets no package ``app``."""
    assert printed(LIBRARY, PACKAGES.format(NAME)) == "gsh"
    assert printed(PYTHON, PACKAGES.format(SERVICE)) == "app"


def test_the_service_needs_the_library_of_its_own_version() -> None:
    needs = printed(PYTHON, f"import importlib.metadata; print(*importlib.metadata.requires({SERVICE!r}), sep='\\n')")

    declared = (ROOT / "service" / "requirements.txt").read_text().splitlines()[1:]
    assert f"{NAME}=={VERSION}" in needs.splitlines()
    assert len(needs.splitlines()) == len(declared) + 1


@pytest.mark.parametrize("python", [LIBRARY, PYTHON], ids=["library", "service"])
def test_the_wheel_has_the_command(python: Path) -> None:
    done = subprocess.run([python.with_name("gsh"), "--version"], capture_output=True, text=True, check=True, cwd="/")

    assert done.stdout == f"gsh {VERSION}\n"


@pytest.mark.parametrize("command", ["serve", "keys", "ledger verify", "openapi"])
def test_without_the_service_the_command_says_what_to_install(command: str) -> None:
    done = subprocess.run(
        [LIBRARY.with_name("gsh"), *command.split()], capture_output=True, text=True, check=False, cwd="/"
    )

    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "pip install . ./service" in done.stderr


def test_the_service_has_the_version_of_the_wheel() -> None:
    assert printed(PYTHON, "import app.version; print(app.version.VERSION)") == VERSION


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    assert PYTHON.exists(), "run `make test`, which builds the environments of the wheel"
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
        with httpx.Client(base_url=address, timeout=PATIENCE) as client:
            yield client
    finally:
        process.terminate()
        assert process.wait(timeout=PATIENCE) == 0
        process.stdout.close()


@pytest.mark.parametrize(("python", "package"), [(LIBRARY, "gsh"), (PYTHON, "gsh"), (PYTHON, "app")])
def test_the_service_runs_from_the_wheel(python: Path, package: str) -> None:
    """Not the checkout: the package is found in the environment."""
    found = printed(python, f"import {package}; print({package}.__file__)")

    assert Path(found).is_relative_to(python.parent.parent)


def test_every_operation_answers_its_examples(service: httpx.Client) -> None:
    """All endpoints, with the examples of the service's own OpenAPI document."""
    paths = service.get("/openapi.json").raise_for_status().json()["paths"]
    for path, operations in paths.items():
        for method, operation in operations.items():
            if path.startswith(NEEDS_KEY):
                continue  # no access key was made
            content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
            if "multipart/form-data" in operation.get("requestBody", {}).get("content", {}):
                continue  # tried below
            for example in content.get("examples", {"none": {"value": None}}).values():
                response, expected = ask_example(service.request, method, path, example["value"])
                assert response.status_code == int(expected), (method, path, response.text)


def test_a_table_is_released(service: httpx.Client) -> None:
    """By the process that large releases go to."""
    mechanism = {"c_u": 3, "tau": 1, "tau_star": 120, "sigma": 20}
    request = {"mechanism": mechanism, "count_column": "users", "key_columns": ["url"]}
    table = as_stream(pa.table({"url": ["b", "a"], "users": [1000, 2000]}))

    response = service.post("/release/table", files={"request": (None, json.dumps(request)), "table": ("t", table)})

    assert from_bytes(response.raise_for_status().content)["url"].to_pylist() == ["a", "b"]


@pytest.mark.parametrize(
    "path",
    ["/", "/docs", "/web/explorer/explorer.js", "/plotly/plotly.min.js", "/swagger/swagger-ui-bundle.js"],
)
def test_package_data_is_found(service: httpx.Client, path: str) -> None:
    assert service.get(path).status_code == 200
