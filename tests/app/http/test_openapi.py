"""The OpenAPI document: committed as generated, complete, and every example in it works unchanged."""

import json
import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import httpx
import jsonschema_rs
import pyarrow as pa
import pytest
from pydantic import BaseModel

from app.http.problems import BudgetProblem, Problem, ProblemError, ReusedProblem
from app.main import create_app
from app.schemas.strict import Strict
from app.settings import Settings
from app.version import VERSION
from gsh.accounting.mechanism import Mechanism
from tests.app.client import Client, Json
from tests.app.example_requests import NEEDS_KEY, ask_example
from tests.app.http.test_access import Guarded
from tests.gsh.histogram.uploads import as_stream, from_bytes

COMMITTED = Path(__file__).parents[3] / "openapi" / "openapi.json"
# To make the document takes half a second, in each process that collects the tests.
DOCUMENT: Json = json.loads(COMMITTED.read_text(encoding="utf-8"))

OPERATIONS = {
    f"{method.upper()} {path}": operation
    for path, operations in DOCUMENT["paths"].items()
    for method, operation in operations.items()
}


def json_content(operation: Json) -> Json:
    """The description of an operation's JSON body, if it has one."""
    content: Json = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    return content


EXAMPLES = {
    f"{label} {name}": (label, operation, example["value"])
    for label, operation in OPERATIONS.items()
    for name, example in json_content(operation).get("examples", {}).items()
}
PROPERTIES = {
    f"{schema}.{name}": description
    for schema, definition in DOCUMENT["components"]["schemas"].items()
    if not schema.endswith("Form")  # its parts are files
    for name, description in definition.get("properties", {}).items()
}


REGISTRY = jsonschema_rs.Registry([("urn:document", DOCUMENT)])


def validator(schema: Json) -> jsonschema_rs.Validator:
    """For a schema of the document, which refers to other ones."""
    return jsonschema_rs.validator_for(absolute(schema), registry=REGISTRY)


def absolute(schema: Any) -> Any:
    """The same with references that lead from everywhere to the document."""
    if isinstance(schema, dict):
        own = {name: absolute(each) for name, each in schema.items() if name not in {"example", "examples"}}
        return own | ({"$ref": f"urn:document{own['$ref']}"} if isinstance(own.get("$ref"), str) else {})
    return [absolute(each) for each in schema] if isinstance(schema, list) else schema


def models(base: type[BaseModel] = Strict) -> Iterator[type[BaseModel]]:
    for model in base.__subclasses__():
        yield model
        yield from models(model)


def test_the_committed_document_is_the_generated_one() -> None:
    """It is made by `make openapi` and never edited."""
    generated = create_app(Settings()).openapi()

    assert COMMITTED.read_text(encoding="utf-8") == json.dumps(generated, indent=2, ensure_ascii=False) + "\n"


class Office(Guarded):
    """A service with an administrator, who asks."""

    key: str

    def request_as_admin(self, method: str, path: str, **options: Any) -> httpx.Response:
        headers = {"authorization": f"Bearer {self.key}"} | options.pop("headers", {})
        return self.request(method, path, headers=headers, **options)


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    made = Office(str(tmp_path_factory.mktemp("office") / "ledger.sqlite3"))
    made.key = made.make_key("admin")
    yield made
    made.app.state.services.ledger_pool.close()


@pytest.mark.parametrize(("label", "operation", "body"), EXAMPLES.values(), ids=EXAMPLES)
def test_every_example_of_a_request_works_unchanged(
    client: Client, office: Office, label: str, operation: Json, body: Json
) -> None:
    """It is valid by the document's own schema, is answered, and the answer is valid by its schema."""
    validator(json_content(operation)["schema"]).validate(body)
    method, path = label.split(" ")

    ask = office.request_as_admin if path.startswith(NEEDS_KEY) else client.request
    response, expected = ask_example(ask, method, path, body)

    assert response.status_code == int(expected), response.text
    validator(operation["responses"][expected]["content"]["application/json"]["schema"]).validate(response.json())


@pytest.mark.parametrize("label", [label for label, operation in OPERATIONS.items() if json_content(operation)])
def test_every_operation_with_a_json_body_has_named_examples(label: str) -> None:
    examples = json_content(OPERATIONS[label])["examples"]

    assert len(examples) >= (2 if label.startswith(("POST /releases/", "POST /access-keys", "POST /approvals/")) else 4)
    assert all(example["summary"] for example in examples.values())


def test_the_example_of_a_form_works_unchanged(client: Client) -> None:
    """With a table of the columns that it names."""
    described = OPERATIONS["POST /release/table"]["requestBody"]["content"]["multipart/form-data"]
    request = described["example"]["request"]
    assert described["schema"] == {"$ref": "#/components/schemas/ReleaseTableForm"}
    form = DOCUMENT["components"]["schemas"]["ReleaseTableForm"]
    assert form["properties"]["request"]["$ref"] == "#/components/schemas/TableRequest"
    validator(form["properties"]["request"]).validate(request)
    table = pa.table({"url": ["a.org"], "country": ["US"], "users": [48211]})

    response = client.request(
        "POST",
        "/release/table",
        files={"request": (None, json.dumps(request)), "table": ("groups.arrow", as_stream(table))},
    )

    assert response.status_code == 200, response.text
    assert from_bytes(response.content).num_rows == 1


@pytest.mark.parametrize("described", PROPERTIES.values(), ids=PROPERTIES)
def test_every_property_is_described_for_people(described: Json) -> None:
    """A title with the printed symbol, a sentence, and examples that the property itself accepts."""
    assert (resolved(described) | described)["title"]  # Pydantic omits a title that the named schema has too
    assert described["description"].endswith(".")
    assert described["examples"]
    for example in described["examples"]:
        validator(described).validate(example)


@pytest.mark.parametrize(
    "model", [Problem, ProblemError, BudgetProblem, ReusedProblem, *models()], ids=lambda model: model.__name__
)
def test_every_field_has_its_own_title(model: type[BaseModel]) -> None:
    """pydantic would print tau_star as «Tau Star»."""
    for field in model.model_fields.values():
        assert field.title
        assert field.description
        assert field.examples


def test_every_schema_and_every_parameter_is_described_for_people() -> None:
    """A parameter has a title and a description."""
    assert [name for name, schema in DOCUMENT["components"]["schemas"].items() if not schema.get("description")] == []
    form = DOCUMENT["components"]["schemas"]["ReleaseTableForm"]
    assert all(part["title"] and part["description"].endswith(".") for part in form["properties"].values())
    parameters = [each for operation in OPERATIONS.values() for each in operation.get("parameters", [])]
    assert all(parameter["description"] for parameter in parameters)
    untitled = {each["name"] for each in parameters if not {"title", "$ref"} & each["schema"].keys()}
    assert untitled == {"Idempotency-Key"}  # described by hand


def stated(node: Any, field: str) -> Iterator[Any]:
    """Each value of a field in the examples of the document, and each example of the field itself."""
    if isinstance(node, dict):
        if field in node:
            own = node[field]
            yield from own.get("examples", []) if isinstance(own, dict) else [own]
        for each in node.values():
            yield from stated(each, field)
    elif isinstance(node, list):
        for each in node:
            yield from stated(each, field)


def test_examples_are_of_this_version_and_of_one_mechanism() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    versions = {*stated(schemas, "service_version"), *schemas["Version"]["properties"]["service"]["examples"]}
    assert versions == {VERSION}
    fields = schemas["MechanismOut"]["properties"]
    (tau,), (tau_star,), (gap,) = (fields[name]["examples"] for name in ("tau", "tau_star", "tau_gap"))
    assert gap == Mechanism(c_u=1, tau=tau, tau_star=tau_star, sigma=1.0).tau_gap


def test_every_operation_has_an_id_of_its_own_a_summary_and_a_description() -> None:
    ids = [operation["operationId"] for operation in OPERATIONS.values()]

    assert len(set(ids)) == len(ids)
    assert all("_" not in operation_id for operation_id in ids)
    assert all(operation["summary"] and operation["description"] for operation in OPERATIONS.values())


def test_the_document_has_every_endpoint() -> None:
    posts = {"POST /account/exact", "POST /account/add-deltas", "POST /calibrate", "POST /compare", "POST /bound"}
    posts |= {"POST /account/engine"}
    posts |= {"POST /intervals", "POST /release", "POST /release/table", "POST /utility"}
    presets = {"GET /real-releases"}
    budgets = {"GET /budgets", "GET /budgets/{id}", "PUT /budgets/{id}", "GET /budgets/{id}/charges"}
    budgets |= {"POST /budgets/{id}/charges", "POST /budgets/{id}/preview", "GET /budgets/{id}/verify"}
    budgets |= {"GET /budgets/{id}/bundle"}
    service = {"GET /healthz", "GET /readyz", "GET /version", "GET /metrics", "GET /problems", "GET /problems/{name}"}
    service |= {"GET /.well-known/gsh-keys.json", "POST /verify"}

    releases = {"GET /releases", "POST /releases", "POST /releases/verify", "GET /releases/{key}"}
    releases |= {"GET /releases/{key}/answer", "GET /releases/{key}/certificate", "POST /releases/{key}/commit"}
    releases |= {"POST /releases/{key}/survey"}

    keys = {"GET /access-keys", "POST /access-keys", "GET /access-keys/history", "DELETE /access-keys/{id}"}
    keys |= {"POST /access-keys/{id}/rotate"}

    keys |= {"GET /approvals", "GET /approvals/{id}", "POST /approvals/{id}/approve", "POST /approvals/{id}/refuse"}

    assert posts | presets | budgets | releases | keys | service == set(OPERATIONS)


@pytest.mark.parametrize("label", OPERATIONS)
def test_documented_errors_are_problem_documents(label: str) -> None:
    """Operations with a body document 400, 413, 415, 422, 500 and 503; nothing falls back to FastAPI's own errors."""
    errors = {status: each for status, each in OPERATIONS[label]["responses"].items() if status >= "400"}

    method, path = label.split(" ")
    expected = {"400", "413", "415", "422", "500", "503"} if method in {"POST", "PUT"} else {"422", "500"}
    if method in {"GET", "DELETE"} and path.startswith(("/budgets", "/releases", "/access-keys", "/approvals")):
        expected |= {"503"}
    if path == "/readyz":
        expected |= {"503"}
    charges = path in {"/release", "/release/table"} or label in {"POST /releases", "POST /budgets/{id}/charges"}
    if "{" in path or charges or label in {"POST /calibrate", "GET /releases"}:
        expected |= {"404"}
    may_conflict = path.endswith(("/commit", "/survey", "/rotate", "/approve", "/refuse", "/calibrate"))
    if charges or method == "PUT" or may_conflict:
        expected |= {"409"}
    if path.endswith(("/answer", "/certificate")):
        expected |= {"406"}
    if path.endswith("/answer"):
        expected |= {"410"}
    asked = ("/account", "/bound", "/calibrate", "/compare", "/intervals", "/utility")
    if method == "PUT" or path.startswith(("/budgets", "/release", "/access-keys", "/approvals", *asked)):
        expected |= {"401", "403", "429"}
    assert set(errors) == expected
    for response in errors.values():
        assert response["description"]
        (media_type, content), *others = response["content"].items()
        problem = {"$ref": "#/components/schemas/Problem"}
        assert (media_type, others) == ("application/problem+json", [])
        narrower = [{"$ref": f"#/components/schemas/{name}"} for name in ("BudgetProblem", "ReusedProblem")]
        assert content["schema"] in [problem, *({"anyOf": [each, problem]} for each in narrower)] or {
            **content["schema"],
            "title": "",
        } in [{"anyOf": [each, problem], "title": ""} for each in narrower]
    assert "HTTPValidationError" not in DOCUMENT["components"]["schemas"]


@pytest.mark.parametrize(
    ("schema", "name", "bounds"),
    [
        ("MechanismIn", "c_u", {"type": "integer", "minimum": 1, "maximum": 10**18}),
        ("MechanismIn", "tau", {"type": "integer", "minimum": 0}),
        ("MechanismIn", "tau_star", {"type": "number", "exclusiveMinimum": 1}),
        ("MechanismIn", "sigma", {"type": "number", "exclusiveMinimum": 0}),
        ("BudgetIn", "epsilon", {"type": "number", "minimum": 0}),
        ("BudgetIn", "delta", {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}),
        ("MuZeroIn", "mu_0", {"type": "number", "minimum": 0}),
    ],
)
def test_bounds_are_in_the_document(schema: str, name: str, bounds: dict[str, Any]) -> None:
    described = resolved(PROPERTIES[f"{schema}.{name}"])

    assert {key: described[key] for key in bounds} == bounds
    assert DOCUMENT["components"]["schemas"][schema]["additionalProperties"] is False


def inline_objects(schema: Any, is_named: bool) -> Iterator[Json]:
    """Objects with properties that are described in place, and not by name."""
    if isinstance(schema, dict):
        if "properties" in schema and not is_named:
            yield schema
        for name, each in schema.items():
            if name not in {"properties", "example", "examples"}:
                yield from inline_objects(each, False)
        for each in schema.get("properties", {}).values():
            yield from inline_objects(each, False)
    elif isinstance(schema, list):
        for each in schema:
            yield from inline_objects(each, False)


def test_every_object_has_a_name_in_the_components() -> None:
    """A generator would invent one."""
    assert list(inline_objects(DOCUMENT["paths"], False)) == []
    for name, schema in DOCUMENT["components"]["schemas"].items():
        assert list(inline_objects(schema, True)) == [], name
        assert re.fullmatch("[A-Z][A-Za-z0-9]*", name)
        assert schema.get("title", name) == name


def unions(schema: Any) -> Iterator[Json]:
    if isinstance(schema, dict):
        if "oneOf" in schema or "anyOf" in schema:
            yield schema
        for name, each in schema.items():
            if name not in {"example", "examples"}:
                yield from unions(each)
    elif isinstance(schema, list):
        for each in schema:
            yield from unions(each)


UNIONS = [each for each in unions(DOCUMENT) if any("$ref" in option for option in each.get("oneOf", each.get("anyOf")))]


def resolved(option: Json) -> Json:
    schema: Json = DOCUMENT["components"]["schemas"][option["$ref"].rpartition("/")[2]] if "$ref" in option else option
    return schema


def are_apart(one: Json, other: Json) -> bool:
    """Whether no value is of both schemas: another JSON type, another constant, or a field that the other forbids."""
    if one.get("type") != other.get("type") or one.get("type") != "object":
        return bool(one.get("type") != other.get("type"))
    constants = [{name: each.get("const") for name, each in schema["properties"].items()} for schema in (one, other)]
    if any(value and constants[1].get(name) not in {None, value} for name, value in constants[0].items()):
        return True
    return any(
        closed["additionalProperties"] is False and not set(schema["required"]) <= set(closed["properties"])
        for schema, closed in ((one, other), (other, one))
    )


@pytest.mark.parametrize("union", UNIONS, ids=lambda union: union.get("title", "union"))
def test_the_options_of_every_union_exclude_each_other(union: Json) -> None:
    """By a tag, by their JSON type, or by a required field that the other does not have.

    Problems are the one exception: a BudgetProblem is a Problem too, comes first, and has a constant type.
    """
    options = [resolved(option) for option in union.get("oneOf", union.get("anyOf"))]
    if "discriminator" in union:
        tag = union["discriminator"]["propertyName"]
        assert {option["properties"][tag]["const"] for option in options} == set(union["discriminator"]["mapping"])
        assert all(tag in option["required"] for option in options)
    elif options[0].get("title") in {"BudgetProblem", "ReusedProblem"}:
        assert options[0]["properties"]["type"]["const"].startswith("/problems/")
        assert set(options[1]["properties"]) < set(options[0]["properties"])
    else:
        alternatives = [each for option in options for each in map(resolved, option.get("oneOf", [option]))]
        assert all(are_apart(one, other) for one, other in combinations(alternatives, 2))


def test_servers_and_tags_are_described() -> None:
    used = {tag for operation in OPERATIONS.values() for tag in operation["tags"]}

    assert DOCUMENT["servers"][0]["url"] == "/"
    assert {tag["name"] for tag in DOCUMENT["tags"]} == used
    assert all(tag["description"].endswith(".") for tag in DOCUMENT["tags"])
