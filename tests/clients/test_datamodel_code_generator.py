"""datamodel-code-generator: the models pass mypy --strict, have good names, and accept every example."""

import functools
import importlib.util
import json
import operator
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pydantic import TypeAdapter

from tests.clients.generated import DOCUMENT, check_types, run

DESCRIBED = json.loads(DOCUMENT.read_text())


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("datamodel-code-generator") / "gsh_models.py"
    run(
        *(sys.executable, "-m", "datamodel_code_generator", "--input", DOCUMENT, "--input-file-type=openapi"),
        *("--output", path, "--output-model-type=pydantic_v2.BaseModel", "--formatters=builtin"),
        *("--target-python-version=3.11", "--use-annotated", "--use-union-operator", "--use-standard-collections"),
        *("--enum-field-as-literal=all", "--collapse-root-models", "--disable-timestamp"),
    )
    return path


def test_the_models_pass_mypy_strict(models: Path) -> None:
    check_types(models.parent, models)


def test_no_model_has_a_numbered_name(models: Path) -> None:
    """A generator numbers what has no name of its own: Epsilon1Item."""
    names = re.findall(r"(?m)^class (\w+)", models.read_text())

    assert len(names) > 60
    assert [name for name in names if re.search(r"\d", name) and name not in {"L1In", "L2In", "L1", "L2"}] == []


def imported(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("gsh_models", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["gsh_models"] = module  # pydantic resolves forward references by it
    spec.loader.exec_module(module)
    return module


def bodies() -> list[tuple[str, Any]]:
    """The name of the schema and the value of each example of a request."""
    found = []
    for operations in DESCRIBED["paths"].values():
        for operation in operations.values():
            content = operation.get("requestBody", {}).get("content", {}).get("application/json")
            if content is not None:
                name = content["schema"]["$ref"].rpartition("/")[2]
                found += [(name, example["value"]) for example in content["examples"].values()]
    return found


def test_the_models_read_every_example_and_refuse_an_unknown_field(models: Path) -> None:
    module = imported(models)

    assert len(bodies()) > 30
    for name, value in bodies():
        # A schema that is one of several has no model of its own.
        schemas = DESCRIBED["components"]["schemas"][name].get("oneOf", [{"$ref": name}])
        kinds = [getattr(module, schema["$ref"].rpartition("/")[2]) for schema in schemas]
        model: TypeAdapter[Any] = TypeAdapter(functools.reduce(operator.or_, kinds))
        model.validate_python(value)
        with pytest.raises(ValueError, match="unkn0wn"):
            model.validate_python(value | {"unkn0wn": 1})
