"""The names inside uvicorn that the service leans on are still there, and app/http/uvicorn_internals.py lists all."""

import ast
import importlib.metadata
import inspect
import re
import textwrap
from collections import defaultdict
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from uvicorn import _subprocess
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from app.http import protocol
from app.http.protocol import BoundedProtocol
from app.http.uvicorn_internals import METHODS, STATE, STATUS_LINE, HttpToolsProtocol

ROOT = Path(__file__).parents[3]
UVICORN = next(
    Requirement(line)
    for line in (ROOT / "service" / "requirements.txt").read_text().splitlines()
    if line.startswith("uvicorn")
)


def attributes(kind: type) -> dict[str, set[str]]:
    """The names that a class reads or sets, by the expression before the dot."""
    found = defaultdict(set)
    for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(kind)))):
        if isinstance(node, ast.Attribute):
            found[ast.unparse(node.value)].add(node.attr)
    return found


@pytest.mark.parametrize(
    ("kind", "name", "parameters"),
    [(kind, name, parameters) for kind, methods in METHODS.items() for name, parameters in methods.items()],
    ids=lambda each: getattr(each, "__name__", str(each)),
)
def test_a_method_takes_what_the_service_gives(kind: type, name: str, parameters: list[str]) -> None:
    assert list(inspect.signature(getattr(kind, name)).parameters) == ["self", *parameters]


@pytest.mark.parametrize("kind", STATE, ids=lambda kind: kind.__name__)
def test_an_attribute_is_still_used_by_uvicorn(kind: type) -> None:
    assert STATE[kind] <= attributes(kind)["self"]


def test_the_protocol_uses_no_name_that_is_not_listed() -> None:
    used, inherited = (
        attributes(BoundedProtocol),
        vars(HttpToolsProtocol).keys() | attributes(HttpToolsProtocol)["self"],
    )
    own = vars(BoundedProtocol).keys() - inherited

    assert (used["self"] - own) & inherited <= STATE[HttpToolsProtocol] | METHODS[HttpToolsProtocol].keys()
    assert (
        used["super()"]
        | (vars(BoundedProtocol).keys() & vars(HttpToolsProtocol).keys())
        - {
            "__module__",
            "__doc__",
        }
        <= METHODS[HttpToolsProtocol].keys()
    )
    assert used["self.cycle"] == STATE[RequestResponseCycle]
    assert used["self.flow"] == STATE[FlowControl] | METHODS[FlowControl].keys()
    assert "uvicorn" not in re.findall(r"^(?:import|from) (\w+)", inspect.getsource(protocol), re.MULTILINE)


def test_no_other_module_imports_what_uvicorn_does_not_document() -> None:
    imports = {
        (str(path.relative_to(ROOT)), line)
        for path in (ROOT / "app").rglob("*.py")
        for line in re.findall(r"(?m)^[ ]*(?:import|from) uvicorn.*", path.read_text())
    }

    assert {path for path, line in imports if line != "import uvicorn"} == {"app/http/uvicorn_internals.py"}


def test_workers_are_started_by_the_name_that_is_replaced() -> None:
    """``get_subprocess`` looks ``spawn`` up when it is called, and gives a target and its arguments by name."""
    source = inspect.getsource(_subprocess.get_subprocess)

    assert hasattr(_subprocess, "spawn")
    assert "spawn.Process(target=subprocess_started, kwargs=kwargs)" in source


def test_a_status_line_is_whole() -> None:
    assert STATUS_LINE[431] == b"HTTP/1.1 431 Request Header Fields Too Large\r\n"


def test_the_version_is_capped_and_the_cap_holds() -> None:
    constrained = re.findall(r"(?m)^uvicorn==(\S+)$", (ROOT / "constraints.txt").read_text())

    assert {each.operator for each in UVICORN.specifier} == {">=", "<"}
    assert importlib.metadata.version("uvicorn") in UVICORN.specifier
    assert len(constrained) == 1
    assert constrained[0] in UVICORN.specifier
    major, minor = map(int, constrained[0].split(".")[:2])
    assert f"{major}.{minor + 1}" not in UVICORN.specifier
