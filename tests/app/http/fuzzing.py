"""Requests to one operation of the document, made up by schemathesis, which takes a second to import."""

from typing import Any

import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import load_all_checks
from schemathesis.generation.feedback import FeedbackSources
from schemathesis.pytest._test_builder import build_operation_test
from schemathesis.python._constants.orchestrator import make_constants_value_source
from schemathesis.python.asgi import ASGIClient
from schemathesis.specs.openapi.checks import allow_header_conformance, positive_data_acceptance
from starlette.types import Receive, Scope, Send

from app.main import create_app
from app.settings import Settings
from tests.app.process import PATIENCE
from tests.surroundings import third_of

__all__ = ["check"]

APP = create_app(Settings())
# Rules across fields, such as τ* > τ or a positive definite Σ, do not fit into JSON Schema: 422 is correct too.
# So are 404, 409 and 429: a budget may not exist, or an idempotency key may have been used before. And 400: a body with
# a budget needs the header Idempotency-Key.
CONFIG = schemathesis.Config.from_dict(
    {
        "request-timeout": PATIENCE,
        "checks": {"positive_data_acceptance": {"expected-statuses": ["2xx", "400", "404", "409", "422", "429"]}},
    }
)


async def service(scope: Scope, receive: Receive, send: Send) -> None:
    """The service without its lifespan, which schemathesis would end after the first operation; asked by loopback."""
    assert scope["type"] == "http"
    headers = [(b"host", b"localhost"), *(each for each in scope["headers"] if each[0] != b"host")]
    await APP(scope | {"client": ("127.0.0.1", 1234), "headers": headers}, receive, send)


load_all_checks()
schema = schemathesis.openapi.from_asgi("/openapi.json", service, config=CONFIG)
# One session for all requests, which does not look for a proxy before each of them.
SESSION = ASGIClient(service)
SESSION.trust_env = False

EXCLUDED: dict[str, list[Any]] = {
    # GET /releases/verify is the release of that name. The document has it as GET /releases/{key}.
    "verifyCertificate": [allow_header_conformance],
    # GET /verify is a page, and not in the document.
    "verifyFile": [allow_header_conformance],
    # DELETE /access-keys/history is the access key of that name.
    "accessHistory": [allow_header_conformance],
    # This service has no access key, and the first one is not made over HTTP: 403.
    "createAccessKey": [positive_data_acceptance],
}


def check(name: str, place: int, examples: int) -> None:
    """What one operation answers to requests that are made up now.

    It makes up its requests when it runs. With ``parametrize`` of schemathesis every process would make up the requests
    of all operations when it collects the tests, which takes seconds. Those of the examples and of the coverage are
    complete, so a loop sends them: Hypothesis would spend longer on each than the service.

    Most of the coverage is that of a mechanism, which nine operations take. Each operation sends every third request,
    and its neighbours send the others. ``make thorough`` sends all.
    """

    @settings(max_examples=examples, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    def keeps_its_promises_whatever_is_sent(case: schemathesis.Case) -> None:
        assert case.operation.definition.raw["operationId"] == name
        case.call_and_validate(session=SESSION, excluded_checks=EXCLUDED.get(name, []))

    own = schema.include(operation_id=name)
    (found,) = own.get_all_operations()
    fuzzed: Any = build_operation_test(
        config=own.config,
        operation=found.ok(),
        test_func=keeps_its_promises_whatever_is_sent,
        given_kwargs={},
        feedback=FeedbackSources(constants_value_source=make_constants_value_source(own)),
    )
    complete = [example.kwargs["case"] for example in fuzzed.hypothesis_explicit_examples]
    assert len(complete) >= 8
    fuzzed.hypothesis_explicit_examples.clear()
    for case in third_of(complete, place):
        keeps_its_promises_whatever_is_sent(case)
    fuzzed()
