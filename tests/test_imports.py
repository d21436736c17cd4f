"""Who may import whom. The accounting core stays pure, and nothing below the API knows of HTTP."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

APP = Path(__file__).parent.parent / "app"
MODULES = sorted(APP.rglob("*.py"))

PURE_STANDARD_LIBRARY = {
    "collections",
    "dataclasses",
    "fractions",
    "functools",
    "itertools",
    "math",
    "struct",
    "sys",
    "threading",
}
ALLOWED_IN_ACCOUNTING = PURE_STANDARD_LIBRARY | {"typing", "numpy", "flint", "scipy.special", "app.accounting"}
ALLOWED_APP_PACKAGES = {
    "accounting": {"app.accounting"},
    "release": {"app.accounting", "app.release"},
    "ledger": {"app.accounting", "app.ledger"},
    "service": {"app.accounting", "app.release", "app.ledger", "app.service", "app.settings"},
    "api": {"app.accounting", "app.release", "app.ledger", "app.service", "app.api"}
    | {"app.settings", "app.metrics", "app.loopback"},
    "web": set(),
    "metrics.py": {"app.accounting"},
    "logs.py": set(),
    "http_protocol.py": {"app.api", "app.metrics"},
    "settings.py": set(),
    "healthcheck.py": {"app.settings"},
    "verify.py": {"app.ledger", "app.settings"},
    "main.py": {"app"},
    "keys.py": {"app.ledger", "app.settings"},
    "__main__.py": {"app.ledger", "app.loopback", "app.logs", "app.settings"},
    "loopback.py": set(),
    "__init__.py": set(),
}


def imported(module: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: relative import"
            assert node.module is not None
            yield node.module


def within(name: str, packages: set[str]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


@pytest.mark.parametrize("module", sorted((APP / "accounting").glob("*.py")), ids=lambda path: path.name)
def test_the_accounting_core_imports_only_what_is_pure(module: Path) -> None:
    """No clock, randomness, files, network, logging or web framework."""
    assert [name for name in imported(module) if not within(name, ALLOWED_IN_ACCOUNTING)] == []


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(APP)))
def test_imports_point_one_way(module: Path) -> None:
    """accounting ← release, ledger ← api ← main; a new room of the house needs a line in the table above."""
    allowed = ALLOWED_APP_PACKAGES[module.relative_to(APP).parts[0]]

    assert [name for name in imported(module) if within(name, {"app"}) and not within(name, allowed)] == []


def test_no_module_is_a_drawer_for_odds_and_ends() -> None:
    """A file is one idea, and its name says which."""
    assert {path.stem for path in MODULES}.isdisjoint({"utils", "util", "helpers", "common", "misc"})


def test_every_third_party_import_is_a_declared_dependency() -> None:
    """What the wheel needs, it declares."""
    declared = {
        "fastapi",
        "fastapi_swagger",
        "flint",
        "httptools",
        "multipart",
        "numpy",
        "prometheus_client",
        "psycopg",
    }
    declared |= {"pyarrow", "pydantic", "pydantic_core", "pydantic_settings", "scipy", "starlette", "uvicorn"}
    tops = {name.partition(".")[0] for module in MODULES for name in imported(module)}

    assert tops - set(sys.stdlib_module_names) - {"app"} <= declared
