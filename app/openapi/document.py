"""The OpenAPI document: what FastAPI says of the routes, made complete for readers and for client generators."""

from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI

from app.http.problems import MEDIA_TYPE
from app.openapi.answer_examples import AnswerExamples
from app.openapi.problem_examples import ProblemExamples

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
TAGS = [
    {"name": "account", "description": "The privacy of a given mechanism."},
    {"name": "calibrate", "description": "The smallest noise and threshold for a privacy target."},
    {"name": "accuracy", "description": "What a mechanism would publish, and what published numbers mean."},
    {"name": "release", "description": "The mechanism applied to a table: private groups from true ones."},
    {
        "name": "releases",
        "description": "What budgets have paid for: answers, certificates, and releases made elsewhere.",
    },
    {"name": "budgets", "description": "Limits on the privacy cost of all releases about the same users."},
    {"name": "service", "description": "Health, version, metrics, and the meaning of problems."},
]
_ACCESS_KEY = {
    "type": "http",
    "scheme": "bearer",
    "description": "Made by `python -m app.keys create`. Releases and budgets need one as soon as one exists.",
}


def complete(app: FastAPI) -> None:
    """Complete the document when it is made first."""
    describe = app.openapi

    def openapi() -> _Json:
        if app.openapi_schema is None:
            document = describe()
            document["components"]["securitySchemes"] = {"accessKey": _ACCESS_KEY}
            schemas = document["components"]["schemas"]
            _restore_nulls(schemas)
            answers, problems = AnswerExamples(schemas), ProblemExamples(schemas)
            for method, path, operation in _operations(document):
                _restore_example_nulls(operation, schemas)
                _name_forms(operation, schemas)
                _say_problem_json(operation)
                answers.add_to(operation)
                for status, response in operation["responses"].items():
                    if status >= "400":
                        response["content"][MEDIA_TYPE]["examples"] = problems.of(method, path, operation, status)
                if "401" in operation["responses"]:
                    operation["security"] = [{"accessKey": []}, {}]
            document["components"]["examples"] = problems.made
        return describe()

    app.openapi = openapi  # type: ignore[method-assign]


def _operations(document: _Json) -> Iterator[tuple[str, str, _Json]]:
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            yield method, path, operation


def _say_problem_json(operation: _Json) -> None:
    """Errors are problem documents; FastAPI would say application/json."""
    for status, response in operation["responses"].items():
        if status >= "400":
            response["content"] = {MEDIA_TYPE: response["content"]["application/json"]}


def _restore_nulls(schemas: _Json) -> None:
    """FastAPI leaves out the nulls of examples: a field that must be there, and is not, is null."""
    for schema in schemas.values():
        for described in schema.get("properties", {}).values():
            if "examples" in described:
                described["examples"] = [_with_nulls(each, described, schemas) for each in described["examples"]]


def _restore_example_nulls(operation: _Json, schemas: _Json) -> None:
    """The same for the examples of a body."""
    for content in operation.get("requestBody", {}).get("content", {}).values():
        for example in content.get("examples", {}).values():
            example["value"] = _with_nulls(example["value"], content["schema"], schemas)


def _with_nulls(value: Any, schema: _Json, schemas: _Json) -> Any:
    options = schema.get("anyOf") or schema.get("oneOf") or [schema]
    for option in options:
        described = schemas[option["$ref"].rpartition("/")[2]] if "$ref" in option else option
        if isinstance(value, list) and described.get("type") == "array":
            return [_with_nulls(each, described.get("items", {}), schemas) for each in value]
        properties, required = described.get("properties", {}), described.get("required", [])
        if isinstance(value, dict) and value.keys() <= properties.keys():
            names = sorted({*value, *required})
            if not all(name in value or _may_be_null(properties[name]) for name in names):
                continue
            return {name: _with_nulls(value.get(name), properties[name], schemas) for name in names}
    return value


def _may_be_null(schema: _Json) -> bool:
    return schema.get("type") == "null" or any(map(_may_be_null, schema.get("anyOf", [])))


def _name_forms(operation: _Json, schemas: _Json) -> None:
    """Forms are described by hand in their route: give them, and the JSON in their parts, a name in the components."""
    form = operation.get("requestBody", {}).get("content", {}).get("multipart/form-data")
    if form is not None:
        name = f"{operation['operationId'][0].upper()}{operation['operationId'][1:]}Form"
        parts = form["schema"]["properties"]
        described = {"title": name, "description": f"A form. Its parts are {' and '.join(parts)}."} | form["schema"]
        described["properties"] = {
            part: _part(part, schema, schemas) if schema["type"] == "object" else schema
            for part, schema in parts.items()
        }
        form["schema"] = _named(described, schemas)


def _part(name: str, schema: _Json, schemas: _Json) -> _Json:
    for each, definition in schema.get("$defs", {}).items():
        schemas.setdefault(each, definition)  # most are in the document already: other operations refer to them too
    alone = {key: value for key, value in schema.items() if key != "$defs"}
    return _named(alone, schemas) | {"title": name.capitalize(), "description": schema["description"]}


def _named(schema: _Json, schemas: _Json) -> _Json:
    schemas[schema["title"]] = schema
    return {"$ref": f"#/components/schemas/{schema['title']}"}
