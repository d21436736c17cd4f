"""The examples of answers and problems in the OpenAPI document: each is of its status, valid, and as the service says.

Swagger UI shows them: without an example of its own, every error would show the same 422.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.http.problems.kinds import CONNECTION_KINDS, KINDS
from tests.app.budgets.test_budgets import SECRET
from tests.app.client import Client, Json
from tests.app.http.test_access import Guarded
from tests.app.http.test_openapi import DOCUMENT, OPERATIONS, json_content, resolved, validator

PROBLEM = "application/problem+json"
EXAMPLES: dict[str, Json] = DOCUMENT["components"]["examples"]
ANSWERED = {
    f"{label} {status} {media_type}": content
    for label, operation in OPERATIONS.items()
    for status, response in operation["responses"].items()
    for media_type, content in response.get("content", {}).items()
    if status < "400" and not media_type.startswith(("application/vnd.", "application/zip"))
}


def problems_of(label: str, status: str) -> dict[str, Json]:
    """The documented problems of a status, by kind."""
    listed: Json = OPERATIONS[label]["responses"][status]["content"][PROBLEM]["examples"]
    return {kind: EXAMPLES[each["$ref"].rpartition("/")[2]]["value"] for kind, each in listed.items()}


@pytest.mark.parametrize("label", OPERATIONS)
def test_every_error_status_has_examples_of_that_status(label: str) -> None:
    for status, response in OPERATIONS[label]["responses"].items():
        if status >= "400":
            shown = problems_of(label, status)
            assert shown, status
            for kind, problem in shown.items():
                assert (problem["status"], problem["type"]) == (int(status), f"/problems/{kind}")
                validator(response["content"][PROBLEM]["schema"]).validate(problem)


def test_every_kind_of_problem_is_an_example_of_some_operation() -> None:
    """Only those of a connection, and of a path or method that no operation has, are not."""
    shown = {each["value"]["type"] for each in EXAMPLES.values()}
    without_operation = {*CONNECTION_KINDS.values(), *(kind for kind in KINDS if kind.name == "method-not-allowed")}

    assert shown == {kind.type for kind in KINDS if kind not in without_operation}


@pytest.mark.parametrize("content", ANSWERED.values(), ids=ANSWERED)
def test_every_answer_has_an_example(content: Json) -> None:
    """It is valid, and no list is empty that people want to see."""
    example = content["example"]
    validator(content["schema"]).validate(example)
    if isinstance(example, dict):
        assert [name for name, value in example.items() if value == []] in ([], ["differences"])


def test_examples_of_one_schema_differ_where_the_operations_do() -> None:
    shown = {
        name: OPERATIONS[label]["responses"][status]["content"]["application/json"]["example"]
        for name, label, status in (
            ("exact", "POST /account/exact", "200"),
            ("add-deltas", "POST /account/add-deltas", "200"),
            ("open", "POST /releases", "201"),
            ("committed", "POST /releases/{key}/commit", "200"),
            ("made", "GET /releases/{key}", "200"),
        )
    }
    assert all(shown[name]["accounting"] == name for name in ("exact", "add-deltas"))
    assert shown["add-deltas"]["points"][0]["delta"] > shown["exact"]["points"][0]["delta"]
    assert all(shown[name]["state"] == name for name in ("open", "committed", "made"))
    assert shown["committed"]["committed"]
    assert not shown["open"]["committed"]


def provocations(label: str) -> Iterator[tuple[str, str, Json]]:
    """The status, the kind and the request of problems that any client can cause."""
    operation = OPERATIONS[label]
    body = next(iter(json_content(operation).get("examples", {}).values()), {}).get("value")
    key = {"idempotency-key": "web-2026-47"}
    if body is None:
        if label not in {"POST /release/table", "POST /verify"}:
            yield "422", "invalid-request", {"params": {"verbose": "true"}}
        return
    schema = resolved(json_content(operation)["schema"])
    schema = resolved(schema["oneOf"][0]) if "oneOf" in schema else schema
    required = schema.get("required", ["mechanism"])  # or tables in its place
    first = next((name for name in schema["properties"] if name in required), None)
    if first is not None:
        yield "422", "invalid-request", {"json": {name: body[name] for name in body if name != first}, "headers": key}
    yield "400", "invalid-json", {"content": "{", "headers": key | {"content-type": "application/json"}}
    yield "415", "unsupported-media-type", {"content": "{}", "headers": key | {"content-type": "text/plain"}}
    zipped = {"content-type": "application/json", "content-encoding": "gzip"}
    yield "400", "invalid-encoding", {"content": b"{}", "headers": key | zipped}
    if label == "POST /release":
        yield "404", "unknown-budget", {"json": body | {"budget": "nothing"}, "headers": key}
        yield "400", "idempotency-key-missing", {"json": body | {"budget": "nothing"}}
    if label == "POST /calibrate":
        fixed = {"c_u": 51914, "tau": 1, "sigma": 2000}
        yield "422", "infeasible-target", {"json": {"mechanism": fixed, "epsilon": 0.349, "delta": 1e-5}}


@pytest.mark.parametrize("label", OPERATIONS)
def test_an_example_is_what_the_service_answers(client: Client, label: str) -> None:
    method, path = label.split(" ")
    name = "4f1c2a9b" if path.startswith("/access-keys") else "9c2f0a7be1d44c50"
    for status, kind, request in provocations(label):
        answer = client.request(method, path.format(id=name, key="nothing", name="busy"), **request)
        expected = problems_of(label, status)[kind]
        assert answer.json() | {"request_id": ""} == expected | {"request_id": ""}


def locked(client: Client) -> dict[str, list[Json]]:
    document = client.get("/openapi.json?padlocks=now").json()
    assert ("securitySchemes" in document["components"]) == ("security" in json.dumps(document["paths"]))
    return {
        f"{method.upper()} {path}": operation["security"]
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        if "security" in operation
    }


def test_a_padlock_is_where_an_access_key_is_needed_now(tmp_path: Path) -> None:
    ledger = str(tmp_path / "ledger.sqlite3")
    guarded = Guarded(ledger)
    paid = {
        label
        for label in OPERATIONS
        if label.split(" ")[1].startswith(("/release", "/budgets", "/access-keys", "/approvals"))
    }
    asked = {label for label, each in OPERATIONS.items() if "401" in each["responses"]} - paid

    assert locked(guarded) == {}

    guarded.make_key("release")
    needed = locked(guarded)
    assert {label for label, each in needed.items() if each == [{"accessKey": []}]} == paid
    assert {label for label, each in needed.items() if {} in each} == {"POST /calibrate"}  # with a budget alone

    closed = Client(ledger=ledger, ledger_secret=SECRET, account_keys=True)
    assert set(locked(closed)) == paid | asked
    for each in (guarded, closed):
        assert each.get("/openapi.json").json() == DOCUMENT  # the contract is the same for all
        each.app.state.services.ledger_pool.close()
        each.app.state.services.close_pools()
