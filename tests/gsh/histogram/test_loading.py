"""Importing the library loads SciPy only for the theorem, and pyarrow only for tables and group keys."""

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
ABOUT_SCIPY = "gsh.accounting.theorem"


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
    modules = [name for name in modules_of(package) if name != ABOUT_SCIPY and not name.startswith(ABOUT_ARROW)]
    loaded = loaded_by(modules)

    assert {"gsh.accounting.mechanism", *modules} <= loaded
    assert loaded.isdisjoint({"scipy", "pyarrow", "pandas"})


def test_only_the_theorem_loads_scipy() -> None:
    everything = [name for package in ("accounting", "histogram") for name in modules_of(package)]

    assert "scipy" not in loaded_by([name for name in everything if name != ABOUT_SCIPY])
    assert "scipy" in loaded_by([ABOUT_SCIPY])
