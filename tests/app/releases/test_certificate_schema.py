"""The JSON Schema of certificates: committed as generated, and exactly as strict as the service."""

import json
from typing import Any

import jsonschema_rs
import pytest
from pydantic import ValidationError

from app.releases.schemas.certificate import CERTIFICATE_EXAMPLE, SCHEMA, AnyCertificate, json_schema
from gsh.certificate_words import SCHEMA_OF_TABLES
from tests.app.client import Json
from tests.app.process import ROOT
from tests.app.releases.certificates import SHAPES, complete, every_certificate

COMMITTED = ROOT / "openapi" / "certificate.schema.json"
VALIDATOR = jsonschema_rs.Draft202012Validator(json.loads(COMMITTED.read_text()), validate_formats=True)
WHOLE: Json = json.loads(complete(SHAPES["box"], epsilon=0.5).to_json())


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


@pytest.mark.parametrize("name", WHOLE)
def test_every_field_is_needed(name: str) -> None:
    assert not VALIDATOR.is_valid({each: value for each, value in WHOLE.items() if each != name})


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
