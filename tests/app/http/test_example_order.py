"""Swagger UI on an empty service: each operation works as it is filled in, from the top to the bottom of the page."""

from pathlib import Path
from typing import Any

from tests.app.client import Client, Json
from tests.app.http.test_openapi import DOCUMENT

NEEDS_MORE = {
    "releaseTable": 422,  # these two take a file, which only a person can choose
    "verifyFile": 422,
    "getApproval": 404,  # a change that waits, from somebody with an access key
    "approve": 404,
    "refuse": 404,
    "createAccessKey": 403,  # the first one is made at the ledger
    "revokeAccessKey": 404,
    "rotateAccessKey": 404,
}
"""What does not, and the status. The descriptions of the tags say what is missing."""


def resolved(described: Json) -> Json:
    while "$ref" in described:
        place: Any = DOCUMENT
        for part in described["$ref"].split("/")[1:]:
            place = place[part]
        described = place
    return described


def filled_in(described: Json) -> Any:
    """The first example of a parameter or of a body, as Swagger UI takes it; None if there is none."""
    if "example" in described:
        return described["example"]
    for example in described.get("examples", {}).values():
        return example["value"]
    schema = resolved(described.get("schema", {}))
    return next(iter(schema.get("examples", [])), schema.get("default"))


def as_filled_in(path: str, operation: Json) -> tuple[str, Json]:
    """The path and the rest of a request."""
    places: dict[str, Json] = {"path": {}, "query": {}, "header": {}}
    for parameter in map(resolved, operation.get("parameters", [])):
        value = filled_in(parameter)
        if value is not None:
            places[parameter["in"]][parameter["name"]] = str(value).lower() if isinstance(value, bool) else str(value)
    content = operation.get("requestBody", {}).get("content", {})
    body = {"json": filled_in(content["application/json"])} if "application/json" in content else {}
    if "multipart/form-data" in content:  # without a file
        body = {"files": {"request": (None, b"{}", "application/json")}}
    return path.format(**places["path"]), {"params": places["query"], "headers": places["header"], **body}


def test_the_examples_work_from_top_to_bottom_on_an_empty_service(tmp_path: Path) -> None:
    client = Client(ledger=str(tmp_path / "ledger.sqlite3"))
    tags = [tag["name"] for tag in DOCUMENT["tags"]]
    operations = [
        (tags.index(operation["tags"][0]), method, path, operation)
        for path, methods in DOCUMENT["paths"].items()
        for method, operation in methods.items()
    ]
    found = {}
    for _, method, path, operation in sorted(operations, key=lambda each: each[0]):
        address, request = as_filled_in(path, operation)
        answer = client.request(method.upper(), address, **request)
        if answer.status_code >= 300:
            found[operation["operationId"]] = answer.status_code
    client.app.state.services.ledger_pool.close()

    assert found == NEEDS_MORE
