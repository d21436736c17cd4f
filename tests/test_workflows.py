"""The workflow for a public host asks for what exists. ``make check`` lints it; it was not run."""

import re
import tomllib

import pytest
import yaml

from tests.app.process import ROOT

WORKFLOW = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
JOBS = yaml.safe_load(WORKFLOW)["jobs"]
COMMANDS = [step["run"] for job in JOBS.values() for step in job["steps"] if "run" in step]


def test_every_action_is_pinned_to_a_commit_and_says_its_version() -> None:
    used = re.findall(r"uses: (\S+)(.*)", WORKFLOW)

    assert used
    for action, comment in used:
        assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action)
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment)


@pytest.mark.parametrize("target", ["check", "test", "docs", "image-test"])
def test_the_workflow_runs_targets_that_exist(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert any(re.search(rf"\bmake {target}\b", command) for command in COMMANDS)


def test_every_python_that_the_package_names_is_tried() -> None:
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(classifiers))

    assert JOBS["versions"]["strategy"]["matrix"]["python"] == named


def test_nothing_in_the_workflow_can_write() -> None:
    assert yaml.safe_load(WORKFLOW)["permissions"] == {"contents": "read"}
    assert all("permissions" not in job for job in JOBS.values())
