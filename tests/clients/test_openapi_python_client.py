"""openapi-python-client: the client is complete, typed, and works against a live service."""

import json
import re
import sys
from pathlib import Path

import pytest

from tests.app.client import Json
from tests.app.process import Service
from tests.clients.generated import DOCUMENT, HERE, check_types, run

STORY = HERE / "story.py"


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the package gsh_client is in."""
    folder = tmp_path_factory.mktemp("openapi-python-client")
    said = run(
        *(sys.executable, "-m", "openapi_python_client", "generate", "--meta=none"),
        *("--path", DOCUMENT, "--output-path", folder / "gsh_client"),
        *("--config", HERE / "openapi_python_client.yaml"),
    )
    assert "warning" not in said.lower(), said
    return folder


def test_every_operation_has_a_function(generated: Path) -> None:
    operations = [each for methods in json.loads(DOCUMENT.read_text())["paths"].values() for each in methods.values()]

    functions = list((generated / "gsh_client" / "api").glob("*/[a-z]*.py"))

    assert len(functions) == len(operations)


def test_no_class_has_a_name_that_the_generator_made_up(generated: Path) -> None:
    """Each is a component, or the type of a free-form object within one."""
    components = json.loads(DOCUMENT.read_text())["components"]["schemas"]
    modules = {path.stem.replace("_", "") for path in (generated / "gsh_client" / "models").glob("[a-z]*.py")}

    free_form = {"gridoutvalues", "groupsinvalues", "groupsoutnoisyvalues", "roundedoutvalues", "approvaloutrelease"}
    assert modules - {name.lower() for name in components} == free_form


def test_the_client_and_a_program_for_it_pass_mypy_strict(generated: Path) -> None:
    check_types(generated, generated / "gsh_client", STORY)


def test_calibrate_account_release_and_budget_work_against_a_live_service(generated: Path, tmp_path: Path) -> None:
    ledger = str(tmp_path / "ledger.sqlite3")
    scopes = ("--scope=account", "--scope=release", "--scope=admin")
    (access_key,) = re.findall(r"gsh_\S+", run(sys.executable, "-m", "app.keys", "create", *scopes, GSH_LEDGER=ledger))
    with Service(temporary=tmp_path, ledger=ledger, account_keys="true") as service:
        told: Json = json.loads(run(sys.executable, STORY, service.url, access_key, PYTHONPATH=str(generated)))

    assert 0.99e-5 < told["delta"] <= 1e-5
    assert told["released"] == ["a.org"]
    assert told["same"] is True
    assert told["releases"] == 1
    assert told["refused"] == "/problems/budget-exceeded"
    assert 0.010 < told["asked"] < 0.011
    assert told["reused"] == "/problems/key-reused"
    assert told["header"] == "Idempotency-Key"
    assert "/calibrate" in told["what_to_do"]
    assert told["urls"] == ["a.org"]
