"""Importing the library loads SciPy only for the theorem and for audits, and pyarrow only for tables and group keys."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
ABOUT_ARROW = tuple(
    f"gsh.histogram.{name}"
    for name in (
        "archives",
        "content",
        "conversion",
        "csv_format",
        "formats",
        "groups",
        "json_answers",
        "keys.",
        "numbers",
        "public_keys",
        "released_content",
        "tables",
        "texts",
    )
)
ABOUT_SCIPY = ("gsh.accounting.theorem", "gsh.accounting.engines.evidence")


def modules_of(package: str) -> list[str]:
    paths = sorted((ROOT / "gsh" / package).rglob("*.py"))
    return [".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in paths]


def loaded_by(modules: list[str]) -> set[str]:
    """The names of all modules that are loaded after importing these in a new process."""
    lines = [f"import {module}" for module in modules]
    program = "\n".join(["import sys", *lines, "print(*sys.modules)"])
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("package", ["accounting", "histogram"])
def test_accounting_and_noise_need_neither_scipy_nor_pyarrow(package: str) -> None:
    modules = [name for name in modules_of(package) if name not in ABOUT_SCIPY and not name.startswith(ABOUT_ARROW)]
    loaded = loaded_by(modules)

    assert {"gsh.accounting.mechanism", *modules} <= loaded
    assert loaded.isdisjoint({"scipy", "pyarrow", "pandas"})


@pytest.mark.parametrize("module", ABOUT_SCIPY)
def test_the_exceptions_load_scipy(module: str) -> None:
    assert "scipy" in loaded_by([module])
