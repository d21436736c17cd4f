"""The OpenAPI document: what FastAPI generates from the routes, completed for readers and client generators."""

from typing import Any

from fastapi import FastAPI
from fastapi.encoders import jsonable_encoder
from fastapi.openapi import utils
from fastapi.openapi.models import OpenAPI

from app.http.problems import MEDIA_TYPE
from app.openapi.examples import AnswerExamples, Operation, ProblemExamples, resolved

__all__ = ["DESCRIPTION", "SERVERS", "SUMMARY", "TAGS", "TITLE", "complete"]

_Json = dict[str, Any]

TITLE = "Gaussian sparse histogram accounting"
SUMMARY = "The exact (ε, δ) of private group-by tables"
DESCRIPTION = r"""
Exact and certified privacy accounting for the Gaussian sparse histogram mechanism: drop groups with fewer than τ
users, add Gaussian noise, drop groups whose noisy count is below τ\*. Every δ, ε, σ and τ\* is rounded to the safe side
of the true value from ball arithmetic.

Start with `/calibrate`, compare with other accountings in `/compare`, and check the result with `/account/exact`. Then
`/release` runs the mechanism, with ideal Gaussian noise that is rounded exactly. A budget in `/budgets` adds up the
privacy cost of all releases about the same users, and refuses a release that does not fit.

Every error is a problem document (RFC 9457). Its `type` is the path of a page that says what to do: see `/problems`.
""".strip()
SERVERS = [{"url": "/", "description": "This service. Behind a path prefix, the served document names the prefix."}]
_METHODS = ("put", "post", "get", "delete")
"""What makes a thing comes before what reads it, so that the examples work from top to bottom on an empty service."""
TAGS = [
    {"name": "account", "description": "The privacy of a given mechanism."},
    {"name": "calibrate", "description": "The smallest noise and threshold for a privacy target."},
    {"name": "accuracy", "description": "What a mechanism would publish, and what published numbers mean."},
    {
        "name": "budgets",
        "description": "Limits on the privacy cost of all releases about the same users. The examples below need the "
        "budget web: PUT /budgets/{id} makes it.",
    },
    {"name": "release", "description": "The mechanism applied to a table: private groups from true ones."},
    {
        "name": "releases",
        "description": "What budgets have paid for: answers, certificates, and releases made elsewhere.",
    },
    {
        "name": "approvals",
        "description": "What waits for a second access key, if a budget asks for it.",
    },
    {
        "name": "access keys",
        "description": "Who may do what, and the history of access. The first access key is made at the ledger: "
        "`gsh keys create`. From then on, releases and budgets need one.",
    },
    {"name": "proof", "description": "Who signs certificates, and whether a file is as it was released."},
    {"name": "service", "description": "Health, version, metrics, and the meaning of problems."},
]
_ACCESS_KEY = {
    "type": "http",
    "scheme": "bearer",
    "description": "Made by `gsh keys create`. Releases and budgets need one as soon as one exists.",
}


def complete(app: FastAPI) -> None:
    """Complete the document when it is made first."""
    describe = app.openapi

    def openapi() -> _Json:
        if app.openapi_schema is None:
            vars(utils)["jsonable_encoder"] = _encoded
            document = describe()
            vars(utils)["jsonable_encoder"] = jsonable_encoder
            components = document["components"]
            components["securitySchemes"] = {"accessKey": _ACCESS_KEY}
            answers, problems = AnswerExamples(components["schemas"]), ProblemExamples()
            for path, operations in document["paths"].items():
                for method, operation in operations.items():
                    _name_form(operation, components["schemas"])
                    answers.add_to(operation)
                    _add_problems(problems, method, path, operation, components["schemas"])
            components["examples"] = problems.made
            document["paths"] = {path: _ordered(each) for path, each in document["paths"].items()}
        return describe()

    app.openapi = openapi  # type: ignore[method-assign]


def _ordered(operations: _Json) -> _Json:
    """The operations of one path, by their methods."""
    return {method: operations[method] for method in sorted(operations, key=_METHODS.index)}


def _encoded(value: Any, **options: Any) -> Any:
    """As FastAPI encodes a document, but with the nulls of examples: it leaves out those of every dictionary."""
    if isinstance(value, OpenAPI):
        return value.model_dump(mode="json", by_alias=True, exclude_none=True)
    return jsonable_encoder(value, **options)


def _add_problems(problems: ProblemExamples, method: str, path: str, described: _Json, schemas: _Json) -> None:
    """Errors are problem documents, and have examples; FastAPI would say application/json."""
    contents = described.get("requestBody", {}).get("content", {})
    has_form = "multipart/form-data" in contents
    charges = any(each["name"] == "Idempotency-Key" for each in described.get("parameters", []))
    operation = Operation(method, path, _required(contents, schemas), has_form, charges)
    for status, response in described["responses"].items():
        if status >= "400":
            content = response["content"]["application/json"] | {"examples": problems.of(operation, status)}
            response["content"] = {MEDIA_TYPE: content}
    if "401" in described["responses"]:
        described["security"] = [{"accessKey": []}, {}]


def _required(contents: _Json, schemas: _Json) -> str | None:
    """The first field that a body must have; in a form, that of the part ``request``, or the first part.

    A body that needs none by its schema has one table or several: without any, its mechanism is missing.
    """
    for media_type, content in contents.items():
        schema = resolved(content["schema"], schemas)
        if media_type == "multipart/form-data" and "request" in schema["properties"]:
            schema = resolved(schema["properties"]["request"], schemas)
        if "oneOf" in schema:
            schema = resolved(schema["oneOf"][0], schemas)
        return str(next((each for each in schema["properties"] if each in schema.get("required", ())), "mechanism"))
    return None


def _name_form(operation: _Json, schemas: _Json) -> None:
    """A form is described by hand in its route. It, and the JSON of a part ``request``, get names here."""
    form = operation.get("requestBody", {}).get("content", {}).get("multipart/form-data")
    if form is not None:
        operation_id, described = operation["operationId"], form["schema"]
        parts = described["properties"]
        if "request" in parts:
            request = parts["request"]
            # Most of the definitions are in the document already: other operations refer to them too.
            schemas.update(request.pop("$defs") | schemas | {request["title"]: request})
            parts |= {"request": _reference(request) | {"title": "Request", "description": request["description"]}}
        described["title"] = f"{operation_id[0].upper()}{operation_id[1:]}Form"
        described["description"] = f"A form. Its part{'s are' if len(parts) > 1 else ' is'} {' and '.join(parts)}."
        schemas[described["title"]] = described
        form["schema"] = _reference(described)


def _reference(schema: _Json) -> _Json:
    return {"$ref": f"#/components/schemas/{schema['title']}"}
