"""Examples of the answers of an operation, for the OpenAPI document: made of the examples of their fields.

Without them Swagger UI would show empty lists, and the same release in the same state for every operation.
"""

import json
from typing import Any

from app.accounting.schemas.account import PointOut
from app.releases.certificates.registry import registry_yaml
from app.releases.schemas.certificate import CERTIFICATE_EXAMPLE, Certificate
from gsh.accounting.accountings import ADD_DELTAS, at_epsilon
from gsh.accounting.case_study import PRINTED, TARGET

__all__ = ["AnswerExamples", "resolved"]

_Json = dict[str, Any]

_COMMITTED = "#/components/schemas/CommittedOut"
_CSV = "url,country,users\r\na.org,US,50173.984375\r\n"
_METRICS = """# HELP gsh_cache_hits_total Curve points found in the cache
# TYPE gsh_cache_hits_total counter
gsh_cache_hits_total 41.0
"""


class AnswerExamples:
    """Makes the examples from the schemas of one document."""

    def __init__(self, schemas: _Json) -> None:
        self._schemas = schemas
        certificate = Certificate.model_validate_json(json.dumps(CERTIFICATE_EXAMPLE))
        self._texts = {
            "application/yaml": registry_yaml(certificate),
            "text/csv": _CSV,
            "text/html": "<!doctype html>\n…",
            "text/plain": _METRICS,
        }
        added = PointOut.model_validate(at_epsilon(ADD_DELTAS, PRINTED, TARGET.epsilon))
        self._told_apart = {
            "accountAddDeltas": {"accounting": "add-deltas", "points": [added.model_dump(mode="json")]},
            "openRelease": {"state": "open", "answer": None},
            "commitRelease": {"state": "committed", "answer": None, "committed": self._of({"$ref": _COMMITTED})},
        }

    def add_to(self, operation: _Json) -> None:
        """Give each answer an example, unless it is a binary file."""
        for status, response in operation["responses"].items():
            for media_type, content in response.get("content", {}).items() if status < "400" else ():
                if media_type in self._texts:
                    content["example"] = self._texts[media_type]
                elif media_type == "application/json":
                    content["example"] = self._of(content["schema"]) | self._told_apart.get(
                        operation["operationId"], {}
                    )

    def _of(self, schema: _Json) -> Any:
        """The first option of a union; of an object all fields; of a list one item, if its own example has none."""
        schema = resolved(schema, self._schemas)
        options = schema.get("anyOf") or schema.get("oneOf")
        if options:
            return self._of(options[0])
        return {name: self._field(field) for name, field in schema["properties"].items()}

    def _field(self, schema: _Json) -> Any:
        (example, *_) = schema["examples"]
        items = schema.get("items", {})
        return [self._of(items)] if example == [] and ("$ref" in items or "oneOf" in items) else example


def resolved(schema: _Json, schemas: _Json) -> _Json:
    """The schema that a reference leads to."""
    while "$ref" in schema:
        schema = schemas[schema["$ref"].rpartition("/")[2]]
    return schema
