"""The JSON Schema of certificates: committed as generated, and exactly as strict as the service."""

import json
from typing import Any

import jsonschema_rs
import pytest
from pydantic import ValidationError

from app.releases.schemas.certificate import (
    CERTIFICATE_EXAMPLE,
    SCHEMA,
    TABLES_CERTIFICATE_EXAMPLE,
    AnyCertificate,
    json_schema,
)
from gsh.certificate_words import SCHEMA_OF_TABLES
from tests.app.client import Json
from tests.app.process import ROOT
from tests.app.releases.certificates import SHAPES, TABLES, complete, drafted_tables, every_certificate

COMMITTED = ROOT / "openapi" / "certificate.schema.json"
VALIDATOR = jsonschema_rs.Draft202012Validator(json.loads(COMMITTED.read_text()), validate_formats=True)
WHOLE: Json = json.loads(complete(SHAPES["box"], epsilon=0.5).to_json())
OF_TABLES: Json = json.loads(drafted_tables(TABLES, epsilon=0.5).to_json())


def test_the_committed_schema_is_the_generated_one() -> None:
    """It is made by `make openapi` and never edited."""
    assert COMMITTED.read_text(encoding="utf-8") == json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def test_it_is_a_valid_schema_with_a_name() -> None:
    schema = json_schema()

    jsonschema_rs.meta.validate(schema)
    assert schema["$id"] == "urn:gsh:certificate"
    versions = (schema["$defs"][name]["properties"]["schema"]["const"] for name in ("Certificate", "TablesCertificate"))
    assert tuple(versions) == (SCHEMA, SCHEMA_OF_TABLES)


def test_every_certificate_is_valid() -> None:
    for certificate in every_certificate():
        VALIDATOR.validate(json.loads(certificate.to_json()))
    VALIDATOR.validate(CERTIFICATE_EXAMPLE)
    VALIDATOR.validate(TABLES_CERTIFICATE_EXAMPLE)


def test_the_example_of_tables_is_what_the_library_says() -> None:
    tables = {table["name"]: table["mechanism"] for table in TABLES_CERTIFICATE_EXAMPLE["tables"]}
    made = drafted_tables(tables, epsilon=TABLES_CERTIFICATE_EXAMPLE["epsilon"]).to_dict()

    versions = {"release_id", "idempotency_key", "released_at", "python", "flint", "service_version", "budget"}
    assert {name for name, value in made.items() if value != TABLES_CERTIFICATE_EXAMPLE[name]} <= versions


@pytest.mark.parametrize("whole", [WHOLE, OF_TABLES], ids=["version 2", "version 3"])
def test_every_field_is_needed(whole: Json) -> None:
    for name in whole:
        assert not VALIDATOR.is_valid({each: value for each, value in whole.items() if each != name})


@pytest.mark.parametrize("name", OF_TABLES["tables"][0])
def test_every_field_of_a_table_is_needed(name: str) -> None:
    first, *others = OF_TABLES["tables"]
    less = {each: value for each, value in first.items() if each != name}

    assert not VALIDATOR.is_valid(OF_TABLES | {"tables": [less, *others]})


@pytest.mark.parametrize(
    "damage",
    [
        {"schema": SCHEMA},
        {"tables": []},
        {"tables": OF_TABLES["tables"] * 22},
        {"mechanism": WHOLE["mechanism"]},
        {"bounds": WHOLE["bounds"]},
        {"tables": [OF_TABLES["tables"][0] | {"tau": 1}]},
    ],
    ids=str,
)
def test_what_the_service_refuses_of_tables_the_schema_refuses(damage: dict[str, Any]) -> None:
    damaged = OF_TABLES | damage

    assert not VALIDATOR.is_valid(damaged)
    with pytest.raises(ValidationError):
        AnyCertificate.model_validate_json(json.dumps(damaged))


@pytest.mark.parametrize(
    "damage",
    [
        {"schema": "urn:gsh:certificate:1"},
        {"accounting": "add-deltas"},
        {"adjacency": "change one record"},
        {"period": "hour"},
        {"mu": "0.1"},
        {"mechanism": {"c_u": 1}},
        {"mechanism": {**WHOLE["mechanism"], "sigma": 0}},
        {"bounds": {**WHOLE["bounds"], "enforced_by": "nobody"}},
        {"record": {**WHOLE["record"], "head": "AB"}},
        {"record": {}},
        {"budget": {"id": "web"}},
        {"more": 1},
    ],
    ids=str,
)
def test_what_the_service_refuses_the_schema_refuses(damage: dict[str, Any]) -> None:
    damaged = WHOLE | damage

    assert not VALIDATOR.is_valid(damaged)
    with pytest.raises(ValidationError):
        AnyCertificate.model_validate_json(json.dumps(damaged))
