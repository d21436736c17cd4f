"""Schemathesis over the whole document: no server error, no answer or status that the document does not have."""

import json

import pytest

from tests.app.process import ROOT
from tests.surroundings import some_of

DOCUMENT = json.loads((ROOT / "openapi" / "openapi.json").read_text())
OPERATIONS = [each["operationId"] for operations in DOCUMENT["paths"].values() for each in operations.values()]


@pytest.mark.slow
@pytest.mark.parametrize(("operation", "place"), [*zip(OPERATIONS, range(len(OPERATIONS)), strict=True)])
def test_an_operation_keeps_its_promises_whatever_is_sent(operation: str, place: int) -> None:
    from tests.app.http import fuzzing  # noqa: PLC0415 - each process collects this file, and one needs schemathesis

    fuzzing.check(operation, place, some_of(24))
