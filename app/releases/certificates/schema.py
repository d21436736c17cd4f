"""The JSON Schema of a certificate. Run as a program, it prints it: openapi/certificate.schema.json."""

import json
import sys
from typing import Any

from app.releases.schemas.certificate import SCHEMA, Certificate

__all__ = ["json_schema"]


def json_schema() -> dict[str, Any]:
    """The schema by which any program can check a certificate."""
    described = Certificate.model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SCHEMA, **described}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n")
