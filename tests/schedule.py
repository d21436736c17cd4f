"""Which process of a parallel run gets which tests: whole files, so that their fixtures are made once; long ones first.

A run that ends with a long file leaves all cores but one idle. The order is a hint: a wrong one costs only time.
"""

import pytest
from xdist.scheduler import LoadScopeScheduling

__all__ = ["ByFile", "longest_first"]

_LONGEST = (
    "tests/test_spark.py",
    "tests/browser 1",
    "tests/browser 2",
    "tests/app/budgets/test_crashes.py",
    "tests/app/http/test_schemathesis.py",
    "types",
    "tests/test_examples.py",
    "tests/app/releases/test_guesses.py",
    "tests/gsh/histogram/test_answer_bytes.py",
    "tests/app/http/test_permission.py",
    "tests/test_readme.py",
    "tests/gsh/accounting/test_calibration.py",
    "tests/app/budgets/test_budgets.py",
    "tests/gsh/accounting/test_compared_tables.py",
    "tests/gsh/histogram/test_tables.py",
    "tests/app/ledger/test_store.py",
    "tests/gsh/cli/test_process.py",
    "tests/test_environment.py",
    "tests/gsh/accounting/test_against_reference.py",
    "tests/gsh/histogram/test_keys.py",
    "tests/app/server/test_process.py",
    "tests/test_wheel.py",
    "tests/app/releases/test_leftovers.py",
    "tests/gsh/client/test_hostile.py",
    "tests/app/server/test_instances.py",
    "tests/app/http/test_access.py",
    "tests/gsh/cli/test_documentation.py",
    "tests/test_run_folder.py",
)
# What mypy finds out about other libraries serves all of them (tests/type_checks.py).
_TYPES = {
    "tests/clients/test_datamodel_code_generator.py",
    "tests/clients/test_openapi_python_client.py",
    "tests/gsh/client/test_types.py",
    "tests/gsh/library/test_front_door.py",
}
_RANKS = {unit: rank for rank, unit in enumerate(_LONGEST)}


def longest_first(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: _RANKS.get(_unit(item.nodeid), len(_RANKS)))


class ByFile(LoadScopeScheduling):  # type: ignore[misc]
    """A process that is free gets the next file."""

    def __init__(self, config: pytest.Config, log: object = None) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False  # not by the number of tests

    def _split_scope(self, nodeid: str) -> str:
        return _unit(nodeid)


def _unit(nodeid: str) -> str:
    """The file of a test. Only two processes start browsers, which take memory and seconds; one runs mypy."""
    file = nodeid.partition("::")[0]
    if file in _TYPES:
        return "types"
    folder, _, name = file.rpartition("/")
    return f"{folder} {1 + (name < 'test_f')}" if folder == "tests/browser" else file
