"""Allowed imports. The accounting core is pure, and only the API uses HTTP."""

import ast
import importlib.metadata
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MODULES = sorted([*(ROOT / "app").rglob("*.py"), *(ROOT / "gsh").rglob("*.py")])

PURE_STANDARD_LIBRARY = {
    "bisect",
    "collections",
    "dataclasses",
    "fractions",
    "functools",
    "heapq",
    "itertools",
    "math",
    "struct",
    "sys",
    "threading",
}
ALLOWED_IN_ACCOUNTING = PURE_STANDARD_LIBRARY | {
    "typing",
    "numpy",
    "flint",
    "scipy.special",
    "gsh.accounting",
    "gsh.arguments",
    "gsh.errors",
}
BASE = {"gsh.arguments", "gsh.errors", "gsh.wire"}
ALLOWED = {
    "gsh/accounting/numerics": {"gsh.accounting.numerics"},
    "gsh/accounting": {"gsh.accounting", "gsh.arguments", "gsh.errors"},
    "gsh/histogram": {"gsh.accounting", "gsh.histogram", "gsh.errors"},
    "gsh/accuracy": {"gsh.accounting", "gsh.accuracy", "gsh.errors"},
    "gsh/library": BASE | {"gsh.accounting", "gsh.accuracy", "gsh.histogram", "gsh.library"},
    "gsh/results": BASE
    | {"gsh.accounting", "gsh.certificate", "gsh.certificate_words", "gsh.documents", "gsh.histogram", "gsh.library"}
    | {"gsh.results"},
    "gsh/events": BASE
    | {"gsh.accounting", "gsh.certificate", "gsh.client", "gsh.events", "gsh.histogram", "gsh.library", "gsh.results"}
    | {"gsh.documents", "gsh.surveyed"},
    "gsh/spark": BASE
    | {"gsh.accounting", "gsh.certificate", "gsh.certificate_words", "gsh.client", "gsh.events"}
    | {"gsh.histogram", "gsh.library", "gsh.results", "gsh.spark", "gsh.surveyed"},
    "gsh/client": BASE
    | {
        "gsh.certificate",
        "gsh.documents",
        "gsh.accounting",
        "gsh.accuracy",
        "gsh.histogram",
        "gsh.library",
        "gsh.results",
        "gsh.client",
        "gsh.surveyed",
    },
    "gsh/duckdb": (BASE - {"gsh.wire"})
    | {"gsh.accounting", "gsh.certificate", "gsh.client", "gsh.duckdb", "gsh.events", "gsh.library", "gsh.results"}
    | {"gsh.certificate_words", "gsh.surveyed"},
    "app/proof": {"app.http", "app.releases", "app.schemas", "app.web", "gsh.errors"}
    | {"app.proof", "gsh.histogram", "gsh.proof"},
    "gsh/proof": {"gsh.accounting", "gsh.certificate", "gsh.documents", "gsh.errors", "gsh.histogram", "gsh.library"}
    | {"gsh.proof", "gsh.results", "gsh.surveyed"},
    "gsh/cli": {"gsh"},
    "gsh/errors.py": set(),
    "gsh/arguments.py": {"gsh.errors"},
    "gsh/certificate.py": {"gsh"},
    "gsh/certificate_words.py": set(),
    "gsh/surveyed.py": {"gsh.accounting", "gsh.errors"},
    "gsh/documents.py": {"gsh.accounting", "gsh.wire"},
    "gsh/wire.py": {"gsh.accounting", "gsh.arguments", "gsh.errors"},
    "gsh": {"gsh"},
    "app/ledger": {"gsh.accounting", "gsh.errors", "gsh.proof", "gsh.wire", "app.errors", "app.ledger", "app.places"},
    "app/workers": {"gsh.accounting", "gsh.histogram", "app.errors", "app.places", "app.schemas", "app.workers"},
    "app/schemas": {"gsh.accounting", "gsh.surveyed", "gsh.wire", "app.ledger", "app.schemas"},
    "app/http": {"gsh", "app.errors", "app.http", "app.ledger", "app.places", "app.schemas", "app.settings"}
    | {"app.version", "app.workers"},
    "app/web": {"app.http", "app.ledger", "app.schemas", "app.web"},
    "app/accounting": {"gsh", "app.accounting", "app.errors", "app.http", "app.schemas", "app.workers"},
    "app/access": {"app.access", "app.errors", "app.http", "app.ledger", "app.schemas"},
    "app/approvals": {"app.http", "app.ledger", "app.schemas"},
    "app/budgets": {
        "gsh.accounting",
        "gsh.errors",
        "app.accounting",
        "app.budgets",
        "app.errors",
        "app.http",
        "app.ledger",
    }
    | {"app.schemas", "app.workers"},
    "app/releases": {"gsh", "app.accounting", "app.budgets", "app.errors", "app.http", "app.ledger", "app.releases"}
    | {"app.schemas", "app.web", "app.workers", "app.version"},
    "app/openapi": {
        "gsh.accounting",
        "gsh.certificate",
        "app.accounting",
        "app.errors",
        "app.http",
        "app.ledger",
        "app.openapi",
    }
    | {"app.releases", "app.workers"},
    "app/server": {"app.http", "app.ledger", "app.main", "app.server", "app.settings", "app.workers"},
    "app/errors.py": set(),
    "app/places.py": {"app.errors"},
    "app/settings.py": set(),
    "app/commands.py": {"app.checkpoint", "app.keys", "app.verify"},
    "app/main.py": {"app", "gsh"},
    "app/keys.py": {"gsh.cli", "app.ledger", "app.settings"},
    "app/checkpoint.py": {"gsh.cli", "app.ledger", "app.settings"},
    "app/verify.py": {"gsh.cli", "gsh.errors", "gsh.proof", "app.ledger", "app.settings"},
    "app/__main__.py": {"app.server"},
    "app/version.py": set(),
    "app/__init__.py": set(),
}
"""The modules of ours that a package, or a single file, may import. The longest matching entry decides."""


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


def room_of(module: Path) -> str:
    path = module.relative_to(ROOT)
    return next(place for place in (str(path), *map(str, path.parents)) if place in ALLOWED)


@pytest.mark.parametrize(
    "module",
    sorted([*(ROOT / "gsh/accounting").rglob("*.py"), ROOT / "gsh/arguments.py"]),
    ids=lambda path: path.name,
)
def test_the_accounting_core_imports_only_pure_modules(module: Path) -> None:
    """No clock, randomness, files, network, logging or web framework."""
    assert [name for name in imported(module) if not within(name, ALLOWED_IN_ACCOUNTING)] == []


@pytest.mark.parametrize("module", sorted((ROOT / "gsh/accuracy").rglob("*.py")), ids=lambda path: path.name)
def test_intervals_are_a_pure_function_of_published_numbers(module: Path) -> None:
    """What published numbers mean needs nothing that could draw noise or read a table."""
    allowed = (ALLOWED_IN_ACCOUNTING | {"gsh.accuracy"}) - {"flint", "threading", "sys"}

    assert [name for name in imported(module) if not within(name, allowed)] == []


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_one_way(module: Path) -> None:
    """app → gsh, and within each as the table says. A new package needs a line in the table."""
    ours = [name for name in imported(module) if within(name, {"app", "gsh"})]

    assert [name for name in ours if not within(name, ALLOWED[room_of(module)])] == []


@pytest.mark.parametrize("room", ALLOWED)
def test_the_table_allows_only_what_is_used(room: str) -> None:
    used = [name for module in MODULES if room_of(module) == room for name in imported(module)]

    assert {package for package in ALLOWED[room] if not any(within(name, {package}) for name in used)} == set()


BELOW_HTTP = [
    *(path for folder in ("workers", "ledger") for path in sorted((ROOT / "app" / folder).rglob("*.py"))),
    *(ROOT / "app" / "releases" / f"{name}.py" for name in ("asked", "making", "payments", "spool")),
]
OF_HTTP = {"fastapi", "starlette", "uvicorn", "http", "httptools", "multipart"}


@pytest.mark.parametrize("module", BELOW_HTTP, ids=lambda path: str(path.relative_to(ROOT)))
def test_use_cases_and_the_ledger_import_no_http(module: Path) -> None:
    assert [name for name in imported(module) if within(name, OF_HTTP)] == []


def test_the_use_case_of_releases_loads_no_http() -> None:
    """Neither a web framework nor a module of ``app.http``, not even through another module."""
    program = "import sys, app.releases.making; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)

    assert {"app.releases.payments", "app.ledger.store"} <= set(loaded.stdout.split())
    assert [name for name in loaded.stdout.split() if within(name, OF_HTTP - {"http"} | {"app.http"})] == []


def test_no_module_has_a_catch_all_name() -> None:
    """A file is one idea, and its name says so."""
    assert {path.stem for path in MODULES}.isdisjoint({"utils", "util", "helpers", "common", "misc"})


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SERVICE = (ROOT / "service" / "requirements.txt").read_text().splitlines()[1:]
EXTRAS = [
    each for extra in ("dp-accounting", "duckdb", "proof", "spark") for each in PROJECT["optional-dependencies"][extra]
]


def distributions(requirements: list[str]) -> set[str]:
    return {re.split(r"[^\w.-]", requirement)[0].lower().replace("_", "-") for requirement in requirements}


@pytest.mark.parametrize(("package", "further"), [("gsh", EXTRAS), ("app", SERVICE)], ids=["gsh", "app"])
def test_every_third_party_import_is_a_declared_dependency(package: str, further: list[str]) -> None:
    """The library's in its dependencies and extras, the service's in its own list."""
    declared = distributions(PROJECT["dependencies"]) | distributions(further)
    # Pydantic is made of the two; custom errors are in this one.
    declared |= {"pydantic-core"} if "pydantic" in declared else set()
    found = importlib.metadata.packages_distributions()
    undeclared = {
        (str(module.relative_to(ROOT)), top)
        for module in (ROOT / package).rglob("*.py")
        for top in (name.partition(".")[0] for name in imported(module))
        if top not in {*sys.stdlib_module_names, "compression", "app", "gsh"}  # compression is new in Python 3.14
        and declared.isdisjoint(name.lower().replace("_", "-") for name in found.get(top, [top]))
    }

    assert undeclared == set()


def test_the_library_does_not_depend_on_the_service() -> None:
    """A dependency of the service alone is no dependency of the library."""
    base, service = distributions(PROJECT["dependencies"]), distributions(SERVICE)

    assert base == {"httpx", "numpy", "pyarrow", "python-flint", "rich", "scipy", "typer"}
    assert base.isdisjoint(service)


def test_every_version_is_constrained() -> None:
    """Every package that ``make run`` and ``make test`` install by name has an exact version."""
    extras = PROJECT["optional-dependencies"]
    wanted = distributions(PROJECT["dependencies"] + SERVICE).union(
        *(distributions(extras[name]) for name in ("duckdb", "test", "bench"))
    )
    exact = re.findall(r"^([\w.-]+)==\S+$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)

    assert wanted <= {name.lower().replace("_", "-") for name in exact}


@pytest.mark.parametrize("package", ["duckdb", "events", "results", "spark"])
def test_a_package_that_lists_its_modules_lists_all(package: str) -> None:
    folder = ROOT / "gsh" / package
    said = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
    listed = re.findall(r"^(\w+\.py) +\S", said, re.MULTILINE)

    assert sorted(listed) == sorted(path.name for path in folder.glob("*.py") if path.name != "__init__.py")
