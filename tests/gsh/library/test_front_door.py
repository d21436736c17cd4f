"""``import gsh`` is quick, complete for people and for type checkers, and knows nothing of the service."""

import ast
import importlib.metadata
import json
import subprocess
import sys
from pathlib import Path

import pytest

import gsh
from tests.type_checks import check_programs

ROOT = Path(__file__).parents[3]
SERVICE = {"app", "fastapi", "pydantic", "starlette", "uvicorn", "prometheus_client", "psycopg", "sqlite3"}
MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted((ROOT / "gsh").rglob("*.py"))
    if "import pyspark" not in (text := path.read_text()) and "from pyspark" not in text
]
"""Those that need Spark are loaded by the tests on Spark."""


def loaded_by(program: str) -> set[str]:
    """The top-level packages that a fresh interpreter has loaded after the program."""
    script = f"import sys\n{program}\nimport json\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in json.loads(done.stdout.splitlines()[-1])}


def test_import_gsh_loads_nothing_but_itself() -> None:
    assert loaded_by("import gsh; dir(gsh)").isdisjoint(SERVICE | {"numpy", "flint", "pyarrow", "scipy", "httpx"})


def test_accounting_loads_neither_pyarrow_nor_scipy() -> None:
    program = """
import gsh
m = gsh.Mechanism(c_u=10, tau=1, tau_star=100, sigma=20)
gsh.exact(m, epsilon=[0.5, 1.0]), gsh.add_deltas(m, delta=1e-3)
gsh.calibrate(c_u=10, epsilon=1, delta=1e-6), gsh.compare(c_u=10, epsilon=1, delta=1e-6)
gsh.Aggregates(names=["a"], covariance=[[1]], sensitivity=gsh.l2(1))
gsh.InvalidGroups
"""
    loaded = loaded_by(program)

    assert loaded.isdisjoint(SERVICE | {"pyarrow", "scipy", "httpx"})
    assert {"numpy", "flint"} <= loaded


def test_a_release_loads_neither_scipy_nor_a_web_framework() -> None:
    program = "import gsh; gsh.release(gsh.Mechanism(c_u=1, tau_star=9, sigma=1), keys=['a'], counts=[5])"
    loaded = loaded_by(program)

    assert loaded.isdisjoint(SERVICE | {"scipy", "httpx"})
    assert "pyarrow" in loaded


def test_intervals_load_scipy_and_no_arrow() -> None:
    program = "import gsh; gsh.intervals(gsh.Mechanism(c_u=1, tau_star=9, sigma=1), counts=[12])"
    loaded = loaded_by(program)

    assert loaded.isdisjoint(SERVICE | {"pyarrow", "httpx"})
    assert "scipy" in loaded


def test_no_module_of_the_library_loads_the_service() -> None:
    imports = "\n".join(f"import {name}" for name in MODULES)

    assert len(MODULES) > 30
    assert loaded_by(imports).isdisjoint(SERVICE - {"sqlite3"})


def test_people_and_type_checkers_see_the_same_names() -> None:
    """``dir``, ``__all__``, the lazy names, and the imports that only type checkers run."""
    tree = ast.parse((ROOT / "gsh" / "__init__.py").read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    typed = {
        (node.module, alias.name) for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }

    engines = {("gsh", engine) for engine in gsh._ENGINES}
    assert typed == engines | {(module, name) for module, names in gsh._NAMES.items() for name in names}
    assert {name for _, name in typed} | {"__version__"} == set(gsh.__all__) == set(dir(gsh))
    assert all(getattr(gsh, name) is not None for name in gsh.__all__)


def test_every_public_name_says_what_it_is() -> None:
    """In its own words: a dataclass without them has its signature instead."""
    for name in set(gsh.__all__) - {"__version__", "Sensitivity"}:
        said = (getattr(gsh, name).__doc__ or "").strip()
        assert said, name
        assert not said.startswith(f"{name}("), name


def test_a_name_that_is_none_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'gsh' has no attribute 'exakt'"):
        gsh.exakt  # noqa: B018


def test_the_version_is_the_distributions() -> None:
    assert gsh.__version__ == importlib.metadata.version("gaussian-sparse-histogram")


USER_PROGRAM = """
import numpy as np
import gsh

mechanism = gsh.Mechanism(c_u=np.int64(51914), tau=1, tau_star=13948, sigma=np.float32(2228))
delta: float = gsh.exact(mechanism, epsilon=0.349).delta
deltas: list[float] = gsh.exact(mechanism, epsilon=np.linspace(0.1, 1, 5)).delta.tolist()
epsilons: list[float] = [point.epsilon for point in gsh.add_deltas(mechanism, delta=[1e-4, 1e-5])]
columns = gsh.Aggregates(names=["likes"], covariance=[[4]], sensitivity=gsh.box(lower=[0], upper=[1]))
found: gsh.Calibration = gsh.calibrate(c_u=5, epsilon=1, delta=1e-6, aggregates=columns)
price = gsh.compare(c_u=5, epsilon=1, delta=1e-6)["zcdp"]
ratio: float = 0.0 if price is None else price.sigma_ratio
groups: gsh.Groups = gsh.release(found.mechanism, keys=["a"], counts=[3], values={"likes": np.array([1.0])})
found_intervals: gsh.Intervals = gsh.intervals(mechanism, counts=[14000.5], level=0.9)
low: list[float] = found_intervals.counts.low.tolist()
total: float = gsh.total(mechanism, counts=np.array([14000.5])).counts.estimate
expected: gsh.Utility = gsh.utility(mechanism, sizes=np.array([5, 7]), times=[1, 2], below=6, quantiles=[0.5])
version: str = gsh.__version__
try:
    gsh.calibrate(c_u=5, sigma=1.0, epsilon=1, delta=1e-6)
except gsh.Error as error:
    detail: str = error.detail
"""
MISTAKES = """
import gsh

gsh.Mechanism(51914, 1, 13948, 2228)
gsh.Mechanism(c_u="5", tau_star=9, sigma=1)
gsh.exact(gsh.Mechanism(c_u=5, tau_star=9, sigma=1), epsilon=1.0).epsilom
gsh.calibrate(c_u=5, epsilon=1, delta=1e-6, accounting="zcdp")
gsh.release(gsh.Mechanism(c_u=5, tau_star=9, sigma=1), keys=["a"], counts=[1], seed=7)
gsh.intervals(gsh.Mechanism(c_u=5, tau_star=9, sigma=1), [12])
gsh.utility(gsh.Mechanism(c_u=5, tau_star=9, sigma=1), sizes=5)
"""


@pytest.mark.slow
def test_programs_of_users_are_type_checked(tmp_path: Path) -> None:
    check_programs(tmp_path, USER_PROGRAM, MISTAKES, after="import gsh")


def test_the_package_says_that_it_is_typed() -> None:
    assert (ROOT / "gsh" / "py.typed").exists()
