"""The examples are true: those in docstrings and those of docs/library.md are run, and their outputs compared."""

import doctest
import importlib
import re
import tomllib
from pathlib import Path

import pytest

import gsh
from gsh import errors

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "library.md").read_text()
WITH_EXAMPLES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted((ROOT / "gsh").rglob("*.py"))
    if ">>> " in path.read_text() and "spark" not in path.parts
]
RANDOM = doctest.register_optionflag("RANDOM")
"""Set for examples with the comment ``# random``: noise is in their output, so that only its shape is compared."""


class Checker(doctest.OutputChecker):
    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        if optionflags & RANDOM:
            want, got = _shape(want), _shape(got)
        return super().check_output(want, got, optionflags)


def _shape(output: str) -> str:
    """All but the digits of the numbers and the spaces that align them."""
    return re.sub(r"[ \t]+", "", re.sub(r"-?\d+(\.\d*)?(e[+-]?\d+)?", "#", output))


def run(source: str) -> tuple[int, str]:
    """How many examples were run, and what was not as shown."""
    test = doctest.DocTestParser().get_doctest(source, {}, "library.md", "library.md", 0)
    for example in test.examples:
        example.options[RANDOM] = "# random" in example.source
    report: list[str] = []
    results = doctest.DocTestRunner(Checker()).run(test, out=report.append)
    return results.attempted, "".join(report) if results.failed else ""


def test_the_page_shows_what_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every block of Python, in the order of the page and with the names of the blocks before."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    source = "".join(block for language, block in blocks if language == "pycon")
    monkeypatch.chdir(tmp_path)

    attempted, differences = run(source)

    assert differences == ""
    assert attempted == source.count(">>> ") > 30
    assert {language for language, _ in blocks} == {"pycon", "console", "text"}


def test_a_wrong_output_would_be_found() -> None:
    assert run(">>> 1 + 1\n3\n")[1]
    assert run(">>> [0.5]  # random\n[0.7, 0.1]\n")[1]
    assert not run(">>> [0.5]  # random\n[0.7]\n")[1]


def test_the_page_installs_what_there_is() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]

    named = set(re.findall(r"pip install '\.\[(\w+)\]'", PAGE))
    assert named
    assert named <= extras.keys()


def test_the_page_shows_the_errors_of_the_code() -> None:
    """One text for the page and for gsh/errors.py; and it is the tree of the classes."""
    (tree,) = re.findall(r"^```text\n(gsh\.Error\n.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    lines = re.findall(r"^([│├└─ ]*)(\w+)(.*)$", tree.replace("gsh.", ""), re.MULTILINE)

    assert tree.replace("gsh.", "") in (errors.__doc__ or "")
    parents: list[type] = []
    for indent, name, _ in lines:
        depth = len(indent) // 4
        kind = getattr(gsh, name)
        assert kind.__bases__ == ((parents[depth - 1],) if depth else (Exception,))
        parents[depth:] = [kind]
    public = {
        name for name in gsh.__all__ if isinstance(kind := getattr(gsh, name), type) and issubclass(kind, gsh.Error)
    }
    assert {name for _, name, _ in lines} == public


def test_the_page_shows_every_name() -> None:
    """But for the results' classes, which nobody makes by hand."""
    made_by_functions = {
        "Calibration",
        "Comparison",
        "Curve",
        "Groups",
        "Interval",
        "Intervals",
        "Plan",
        "Price",
        "Privacy",
        "PrivateTables",
        "Published",
        "RealRelease",
        "Sensitivity",
        "Survey",
        "TablesCalibration",
        "TablesPrice",
        "Total",
        "Totals",
        "Utility",
        "Verification",
        "__version__",
    }

    for name in set(gsh.__all__) - made_by_functions:
        assert f"gsh.{name}" in PAGE, name


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_the_examples_of_docstrings_are_true(name: str) -> None:
    results = doctest.testmod(importlib.import_module(name))

    assert results.failed == 0
    assert results.attempted > 0


def test_the_modules_that_people_call_have_examples() -> None:
    names = ("accuracy", "groups", "privacy", "real_releases", "tables", "targets")
    called = {f"gsh.library.{name}" for name in names}
    called |= {f"gsh.accounting.{name}" for name in ("aggregates", "mechanism", "sensitivity")}

    assert called <= set(WITH_EXAMPLES)


CALLED = ["Aggregates", "Mechanism", "RelativeAggregates", "add_deltas", "box", "calibrate", "calibrate_tables"]
CALLED += [
    "compare",
    "compare_tables",
    "exact",
    "intervals",
    "l1",
    "l2",
    "real_releases",
    "release",
    "rest",
    "total",
    "utility",
    "vectors",
]


@pytest.mark.parametrize("name", CALLED)
def test_what_people_call_has_an_example(name: str) -> None:
    assert ">>> " in (getattr(gsh, name).__doc__ or "")
