"""What HTTP takes, the client and the command take too: each field of a request has an argument and an option.

A new field fails here until both have it, or until ``WITHOUT_ARGUMENT`` or ``WITHOUT_OPTION`` says why not.
"""

import inspect
import json
from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command

import gsh
from gsh.cli import program
from gsh.cli.errors import _OPTIONS
from gsh.client.encoding import PaidOptions
from gsh.events import plan_file
from gsh.events.bounding import noisy_query
from gsh.events.plan import make_plan
from tests.app.process import ROOT

DOCUMENT = json.loads((ROOT / "openapi" / "openapi.json").read_text())
CLIENT = gsh.Client("http://a.org")

OFFERED: dict[str, tuple[Any, tuple[str, ...]]] = {
    "accountExact": (CLIENT.exact, ("account",)),
    "accountAddDeltas": (CLIENT.add_deltas, ("account",)),
    "calibrate": ((CLIENT.calibrate, CLIENT.calibrate_tables, CLIENT.budgets.calibrate), ("calibrate",)),
    "compare": ((CLIENT.compare, CLIENT.compare_tables), ("compare",)),
    "intervals": ((CLIENT.intervals, CLIENT.total, CLIENT.means, CLIENT.ratios), ("intervals",)),
    "utility": (CLIENT.utility, ("utility",)),
    "release": (CLIENT.release, ("release", "intervals")),
    "putBudget": (CLIENT.budgets.put, ("budgets put",)),
    "previewBudget": (CLIENT.budgets.preview, ("budgets preview",)),
    "chargeBudget": (CLIENT.budgets.charge, ("budgets charge",)),
    "openRelease": (CLIENT.releases.open, ()),
    "surveyRelease": (CLIENT.releases.survey, ()),
    "commitRelease": (CLIENT.releases.commit, ()),
    "bound": ((make_plan, noisy_query), ("bound",)),
    "approve": (CLIENT.approvals.approve, ("approvals approve",)),
    "refuse": (CLIENT.approvals.refuse, ("approvals refuse",)),
    "createAccessKey": (CLIENT.access_keys.create, ("keys create",)),
    "rotateAccessKey": (CLIENT.access_keys.rotate, ("keys rotate",)),
}
"""The calls and the commands that ask for each operation. Jobs open, survey and commit releases, not people."""
ELSEWHERE = {
    "releaseTable": "the same call and command as release, for a table",
    "verifyCertificate": "it has one field, the certificate",
    "accountEngine": "gsh.exact and gsh.add_deltas of the library do it, without a service",
}
SAME = {
    "groups": ("keys", "--keys"),
    "scopes": ("scopes", "--scope"),
    "budgets": ("budgets", "--budget"),
    "overlap_seconds": ("overlap_seconds", "--overlap"),
    "expires_at": ("expires_at", "--expires"),
    "sizes": ("sizes", "table"),
    "values": ("values", "table"),
    "counts": ("counts", "table"),
    "tables": ("tables", "--mechanism"),
    "privacy_unit": ("privacy_unit", "--unit"),
    "sums": ("sums", "--sum"),
    "labels": ("labels", "--label"),
    "types": ("types", "--type"),
    "is_rounded": ("is_rounded", "--rounded"),
    "means": ("means", "--mean"),
    "ratios": ("ratios", "--ratio"),
    "units": ("units", "--sum-unit"),
    "intervals": ("intervals", "--level"),
    "id": ("id", "name"),
    "source": ("source", "--from"),
    "survey": ("survey", "--survey-sigma"),
    "after_survey": ("survey", "--survey-sigma"),
    "chosen": ("survey", "--survey-sigma"),
}
"""Fields whose argument or option has another name."""
OF_A_MECHANISM = {"mechanism", "tables"}
"""The client takes them as arguments of their own, or as one argument for both; so do commands."""

WITHOUT_ARGUMENT = {
    ("accountExact", "theorem"): "a comparison with the printed theorem, for the page that explains it",
    ("release", "intervals"): "Release.intervals computes them without a request",
    ("release", "dry_run"): "client.dry_run is a call of its own",
    ("utility", "target"): "client.calibrate finds the mechanism of a target",
    ("intervals", "total"): "client.total is a call of its own",
}
WITHOUT_OPTION = {
    ("accountExact", "theorem"): "as above",
    ("calibrate", "shares"): "gsh publish --tables calibrates several tables",
    ("calibrate", "tables"): "as above",
    ("compare", "tables"): "client.compare_tables",
    ("compare", "shares"): "as above",
    ("utility", "target"): "gsh calibrate finds the mechanism of a target",
    ("utility", "quantiles"): "the usual quantiles are printed",
    ("utility", "times"): "for plans of several weeks: client.utility",
    ("utility", "below"): "for the pages: client.utility",
    ("release", "provenance"): "gsh publish fills it in; a person cannot vouch for an engine",
    ("chargeBudget", "provenance"): "as above",
    **{
        (operation, field): "a job that made a survey states it: the survey= of the client"
        for operation in ("release", "chargeBudget")
        for field in ("survey", "after_survey", "chosen")
    },
}

IN_PLANS_ONLY = {"shares", "rest", "format"}
"""They are about several tables, which a file describes."""
FOR_PROGRAMS = {"connection", "threads", "temporary", "progress"}
"""Objects of Python, and what DuckDB finds itself."""
OF_ONE_RUN = {"data", "to", "overwrite", "memory_limit", "service", "mechanism"}
"""A plan file describes what is published, not from where to where."""


def properties(schema: dict[str, Any]) -> set[str]:
    while "$ref" in schema:
        schema = DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    found = set(schema.get("properties", {}))
    return found.union(*(properties(each) for key in ("anyOf", "oneOf", "allOf") for each in schema.get(key, [])))


def fields() -> Iterator[tuple[str, str]]:
    """Each field of each JSON body."""
    for operations in DOCUMENT["paths"].values():
        for operation in operations.values():
            if not isinstance(operation, dict) or operation.get("operationId") in (None, *ELSEWHERE):
                continue
            schema = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
            for name in sorted(properties(schema) if schema else ()):
                yield operation["operationId"], name


def arguments_of(calls: Any) -> set[str]:
    found: set[str] = set()
    for call in calls if isinstance(calls, tuple) else (calls,):
        names = set(inspect.signature(call).parameters)
        found |= names | (set(PaidOptions.__annotations__) if "options" in names else set())
    return found


def options_of(command: str) -> set[str]:
    found: Any = get_command(program())
    for part in command.split():
        found = found.commands[part]
    return {name for option in found.params for name in (*option.opts, option.name)}


def test_every_operation_with_a_body_is_offered() -> None:
    assert {operation for operation, _ in fields()} == OFFERED.keys()
    assert all(reason for reason in (*ELSEWHERE.values(), *WITHOUT_OPTION.values()))


@pytest.mark.parametrize(("operation", "field"), [*fields()])
def test_every_field_has_an_argument_and_an_option(operation: str, field: str) -> None:
    calls, commands = OFFERED[operation]
    argument, option = SAME.get(field, (field, f"--{field.replace('_', '-')}"))
    argument = "id" if (operation, field) == ("calibrate", "budget") else argument
    argument = field if operation == "surveyRelease" else argument
    arguments = arguments_of(calls) | (OF_A_MECHANISM if {"mechanism", "tables"} & arguments_of(calls) else set())

    assert (argument in arguments) != ((operation, field) in WITHOUT_ARGUMENT)
    if commands:
        options = set().union(*map(options_of, commands))
        options |= {"--mechanism"} if field == "mechanism" and "--c-u" in options else set()
        assert (option in options) != ((operation, field) in WITHOUT_OPTION)


@pytest.mark.parametrize(("call", "command"), [(gsh.publish, "publish"), (gsh.survey, "survey")])
def test_every_argument_of_publish_has_an_option_and_a_field_of_plan_files(call: Any, command: str) -> None:
    arguments = {name for name in inspect.signature(call).parameters if not name.startswith("_")}
    options, fields = options_of(command), {*plan_file._FIELDS, *plan_file._TABLE_FIELDS}

    named, without = _OPTIONS | {"events": "--events"}, IN_PLANS_ONLY | FOR_PROGRAMS | {"data"}
    assert not {name for name in arguments - without if named.get(name) not in options}
    if call is gsh.publish:
        assert {*IN_PLANS_ONLY, *FOR_PROGRAMS} <= arguments
        assert fields - arguments == {"share"}
        assert arguments - fields == FOR_PROGRAMS | OF_ONE_RUN
        text = (ROOT / "docs" / "publish.md").read_text()
        assert not {field for field in fields if f"`{field}" not in text}


def test_a_missing_option_would_be_found() -> None:
    assert "--period" in options_of("budgets put")
    assert "--nothing" not in options_of("budgets put")
