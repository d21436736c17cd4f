"""Examples for the OpenAPI document: of the answers of each operation, and of each kind of problem that it can have."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from fastapi import Request

from app.accounting.schemas.account import FEWER_COLUMNS, PointOut
from app.errors import MissingIdempotencyKey
from app.http.auth import Access
from app.http.problems import kinds, problem_response
from app.http.problems.errors import InvalidBody, InvalidEncoding, InvalidQuery
from app.http.problems.handlers import answer_to
from app.http.problems.kinds import CONNECTION_KINDS, KINDS, Kind
from app.ledger.errors import BudgetExceeded, DivisionSettled, KeyReused
from app.ledger.state import Budget
from app.releases.certificates.registry import registry_yaml
from app.releases.schemas.certificate import CERTIFICATE_EXAMPLE
from app.workers.work_bounds import check_work
from gsh.accounting.accountings import ADD_DELTAS, EXACT, at_epsilon
from gsh.accounting.budget_limits import Limit
from gsh.accounting.calibration.target import calibrate
from gsh.accounting.calibration.usual_noise import calibrate_usual
from gsh.accounting.case_study import OUTLINE, PRINTED, TARGET, WHOLE
from gsh.accounting.composition import NOTHING, cost_of
from gsh.certificate import Certificate

__all__ = ["AnswerExamples", "Operation", "ProblemExamples", "resolved"]

_Json = dict[str, Any]

_REQUEST_ID = "0a6c3f0e5f5b4d9f8a3d1c2b7e9f4a61"
_SCOPE = {"type": "http", "access": Access(frozenset(), "", frozenset())}


class Operation(NamedTuple):
    """What decides which problems an operation has."""

    method: str
    path: str
    required: str | None
    """The first field that its body must have; None without a body."""
    has_form: bool
    charges: bool
    """Whether it may charge a budget: then it takes an idempotency key."""

    @property
    def computes(self) -> bool:
        return self.required is not None and not self.path.startswith(("/releases/", "/access-keys", "/approvals"))


_WITHOUT_BUDGET = ("/problems", "/access-keys", "/approvals")
_DECISIONS = ("/approve", "/refuse")
_ON_THE_LEDGER = ("/access-keys", "/approvals", "/budgets", "/calibrate", "/readyz", "/release")
# Where a kind occurs, among the operations that have its status. What is not here occurs in all of them.
_WHERE: Mapping[Kind, Callable[[Operation], bool]] = {
    **dict.fromkeys(CONNECTION_KINDS.values(), lambda _: False),
    **dict.fromkeys((kinds.KEY_MISSING, kinds.BUDGET_EXCEEDED, kinds.KEY_REUSED), lambda it: it.charges),
    **dict.fromkeys((kinds.TOO_LITTLE_LEFT, kinds.INFEASIBLE_TARGET), lambda it: it.path == "/calibrate"),
    **dict.fromkeys((kinds.DIVISION_SETTLED, kinds.UNIT_SETTLED, kinds.PARENT_SETTLED), lambda it: it.method == "put"),
    kinds.NOT_OPEN: lambda it: it.path.endswith(("/commit", "/survey")),
    kinds.ALREADY_COMMITTED: lambda it: it.path.endswith("/commit"),
    kinds.ALREADY_SURVEYED: lambda it: it.path.endswith("/survey"),
    **dict.fromkeys((kinds.LIMIT_EXCEEDED, kinds.DEADLINE_PASSED), lambda it: it.computes),
    kinds.INVALID_MULTIPART: lambda it: it.has_form,
    kinds.NOT_FOUND: lambda it: it.path.startswith("/problems"),
    kinds.UNKNOWN_BUDGET: lambda it: "{key}" not in it.path and not it.path.startswith(_WITHOUT_BUDGET),
    **dict.fromkeys((kinds.UNKNOWN_ACCESS_KEY, kinds.ACCESS_KEY_ENDED), lambda it: it.path.startswith("/access-keys")),
    kinds.UNKNOWN_RELEASE: lambda it: "{key}" in it.path,
    kinds.UNKNOWN_APPROVAL: lambda it: it.path.startswith("/approvals"),
    kinds.APPROVAL_REFUSED: lambda it: it.charges,
    kinds.NO_SECOND_KEY: lambda it: it.charges or it.method == "put" or it.path.endswith(_DECISIONS),
    **dict.fromkeys((kinds.ALREADY_DECIDED, kinds.OUTDATED_REQUEST), lambda it: it.path.endswith(_DECISIONS)),
    kinds.NO_CERTIFICATE: lambda it: it.path.endswith("/certificate"),
    kinds.BUSY: lambda it: it.path != "/readyz",
    kinds.LEDGER_UNAVAILABLE: lambda it: it.path.startswith(_ON_THE_LEDGER),
}


class ProblemExamples:
    """Makes examples of problems for the operations of one document: one for each kind.

    Those with a list of errors are made as the service makes them: by the handler of a real error. The others follow
    from their kind alone.
    """

    def __init__(self) -> None:
        cost = cost_of(WHOLE)
        lowered, weekly = Limit(0.1, 1e-5).settled_by(cost), Limit(1.0, 1e-4).settled_by(cost)
        paid = Budget("web", weekly, "page views, all users", NOTHING.plus(WHOLE, cost, 7))
        self._errors: Mapping[Kind, Exception] = {
            kinds.INVALID_ENCODING: InvalidEncoding(),
            kinds.KEY_MISSING: MissingIdempotencyKey(),
            kinds.BUDGET_EXCEEDED: BudgetExceeded(paid, WHOLE, cost),
            kinds.TOO_LITTLE_LEFT: _raised(calibrate_usual, NOTHING.plus(WHOLE, cost, 2), OUTLINE, 1, lowered),
            kinds.DIVISION_SETTLED: DivisionSettled(),
            kinds.INFEASIBLE_TARGET: _raised(calibrate, EXACT, replace(OUTLINE, sigma=2000.0), TARGET),
            kinds.KEY_REUSED: KeyReused("web-2026-46", "web", has_answer=True),
            kinds.LIMIT_EXCEEDED: _raised(check_work, 20_000, "/mechanism/aggregates", 31_000.0, FEWER_COLUMNS),
        }
        self.made: dict[str, _Json] = {}
        """The examples so far, by their names in the components of the document: most are for many operations."""

    def of(self, operation: Operation, status: str) -> _Json:
        """References to the examples of one status of one operation, by the names of their kinds."""
        return {
            kind.name: {"$ref": f"#/components/examples/{self._named(kind, operation.required)}"}
            for kind in KINDS
            if str(kind.status) == status and (kind not in _WHERE or _WHERE[kind](operation))
        }

    def _named(self, kind: Kind, required: str | None) -> str:
        name, error = kind.name, self._errors.get(kind)
        if kind is kinds.INVALID_REQUEST and required is not None:
            name, error = f"{name}-{required}", InvalidBody(((f"/{required}", "is required"),), 1, is_json=True)
        elif kind is kinds.INVALID_REQUEST:
            error = InvalidQuery(("verbose", "is not a parameter of this operation"))
        if name not in self.made:
            answer = problem_response(kind.status, kind) if error is None else answer_to(Request(_SCOPE), error)
            document = json.loads(bytes(answer.body)) | {"request_id": _REQUEST_ID}
            self.made[name] = {"summary": kind.title, "value": document}
        return name


def _raised(function: Callable[..., object], *arguments: object) -> Exception:
    """The error that a call raises."""
    try:
        function(*arguments)
    except Exception as error:
        return error
    raise AssertionError(f"{function.__name__} refuses this")


_COMMITTED = "#/components/schemas/CommittedOut"
_OF_TABLES = {
    "accountExact": ("tables", "mu"),
    "accountAddDeltas": ("tables", "mu"),
    "compare": ("ways",),
}
"""Fields of answers about several tables: the examples are about one mechanism."""
_CSV = "url,country,users\r\na.org,US,50173.984375\r\n"
_METRICS = """# HELP gsh_cache_hits_total Curve points found in the cache
# TYPE gsh_cache_hits_total counter
gsh_cache_hits_total 41.0
"""


class AnswerExamples:
    """Makes examples of answers from the schemas of one document, of the examples of their fields.

    Without them Swagger UI would show empty lists, and the same release in the same state for every operation.
    """

    def __init__(self, schemas: _Json) -> None:
        self._schemas = schemas
        certificate = Certificate.from_json(CERTIFICATE_EXAMPLE)
        self._texts = {
            "application/yaml": registry_yaml(certificate),
            "text/csv": _CSV,
            "text/html": "<!doctype html>\n…",
            "text/plain": _METRICS,
        }
        added = PointOut.model_validate(at_epsilon(ADD_DELTAS, PRINTED, TARGET.epsilon))
        self._of_operation = {
            "accountAddDeltas": {"accounting": "add-deltas", "points": [added.model_dump(mode="json")]},
            "openRelease": {"state": "open", "answer": None},
            "surveyRelease": {"state": "open", "answer": None},
            "commitRelease": {"state": "committed", "answer": None, "committed": self._of({"$ref": _COMMITTED})},
        }

    def add_to(self, operation: _Json) -> None:
        """Give each answer an example, unless it is a binary file."""
        for status, response in operation["responses"].items():
            for media_type, content in response.get("content", {}).items() if status < "400" else ():
                if media_type in self._texts:
                    content["example"] = self._texts[media_type]
                elif media_type == "application/json":
                    name = operation["operationId"]
                    content["example"] = self._of(content["schema"])
                    if status != "202":  # it waits for an approval
                        content["example"] |= self._of_operation.get(name, {})
                        for field in _OF_TABLES.get(name, ()):
                            del content["example"][field]

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
