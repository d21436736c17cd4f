"""Examples of the problems that an operation can answer with, for the OpenAPI document: one for each kind.

Those with a list of errors are made as the service makes them: by the handler of a real error. The others follow from
their kind alone.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from fastapi import Request

from app.accounting.schemas.account import FEWER_COLUMNS
from app.errors import LimitExceeded, MissingIdempotencyKey
from app.http.auth import Access
from app.http.problems import (
    CONNECTION_KINDS,
    KINDS,
    InvalidBody,
    InvalidEncoding,
    InvalidQuery,
    answer_to,
    kinds,
    problem_response,
)
from app.http.problems.kinds import Kind
from app.ledger.errors import BudgetExceeded, DivisionSettled, KeyReused
from app.ledger.state import Budget
from app.workers.work_bounds import check_work
from gsh.accounting.accountings import EXACT
from gsh.accounting.budget_limits import Limit
from gsh.accounting.calibration.target import calibrate
from gsh.accounting.calibration.usual_noise import calibrate_usual
from gsh.accounting.case_study import OUTLINE, TARGET, WHOLE
from gsh.accounting.composition import NOTHING, cost_of
from gsh.accounting.errors import InfeasibleTarget, TooLittleLeft

__all__ = ["ProblemExamples"]

_Json = dict[str, Any]

_REQUEST_ID = "0a6c3f0e5f5b4d9f8a3d1c2b7e9f4a61"
_SCOPE = {"type": "http", "access": Access(frozenset(), "", frozenset())}


class _Operation(NamedTuple):
    """What decides which problems an operation has."""

    method: str
    path: str
    described: _Json

    @property
    def has_body(self) -> bool:
        return "requestBody" in self.described

    @property
    def has_form(self) -> bool:
        return "multipart/form-data" in self.described.get("requestBody", {}).get("content", {})

    @property
    def charges(self) -> bool:
        """Whether it may charge a budget: then it takes an idempotency key."""
        return any(each["name"] == "Idempotency-Key" for each in self.described.get("parameters", []))

    @property
    def commits(self) -> bool:
        return self.path.endswith("/commit")

    @property
    def computes(self) -> bool:
        """Whether its body can ask for much work."""
        return self.has_body and not self.path.startswith("/releases/")

    @property
    def uses_the_ledger(self) -> bool:
        return self.path.startswith(("/budgets", "/release", "/readyz", "/calibrate"))


# Where a kind occurs, among the operations that have its status. What is not here occurs in all of them.
_WHERE: Mapping[Kind, Callable[[_Operation], bool]] = {
    **dict.fromkeys(CONNECTION_KINDS.values(), lambda _: False),
    kinds.INVALID_MULTIPART: lambda it: it.has_form,
    kinds.KEY_MISSING: lambda it: it.charges,
    kinds.NOT_FOUND: lambda it: it.path.startswith("/problems"),
    kinds.UNKNOWN_BUDGET: lambda it: "{key}" not in it.path and not it.path.startswith("/problems"),
    kinds.UNKNOWN_RELEASE: lambda it: "{key}" in it.path,
    kinds.NO_CERTIFICATE: lambda it: it.path.endswith("/certificate"),
    kinds.BUDGET_EXCEEDED: lambda it: it.charges,
    kinds.TOO_LITTLE_LEFT: lambda it: it.path == "/calibrate",
    kinds.DIVISION_SETTLED: lambda it: it.method == "PUT",
    kinds.UNIT_SETTLED: lambda it: it.method == "PUT",
    kinds.NOT_OPEN: lambda it: it.commits,
    kinds.ALREADY_COMMITTED: lambda it: it.commits,
    kinds.INFEASIBLE_TARGET: lambda it: it.path == "/calibrate",
    kinds.KEY_REUSED: lambda it: it.charges,
    kinds.LIMIT_EXCEEDED: lambda it: it.computes,
    kinds.BUSY: lambda it: it.path != "/readyz",
    kinds.LEDGER_UNAVAILABLE: lambda it: it.uses_the_ledger,
    kinds.DEADLINE_PASSED: lambda it: it.computes,
}


class ProblemExamples:
    """Makes the examples for the operations of one document, as the handlers of errors make them."""

    def __init__(self, schemas: _Json) -> None:
        self._schemas = schemas
        self._errors: Mapping[Kind, Exception] = {
            kinds.INVALID_ENCODING: InvalidEncoding(),
            kinds.KEY_MISSING: MissingIdempotencyKey(),
            kinds.BUDGET_EXCEEDED: _budget_exceeded(),
            kinds.TOO_LITTLE_LEFT: _too_little_left(),
            kinds.DIVISION_SETTLED: DivisionSettled(),
            kinds.INFEASIBLE_TARGET: _infeasible_target(),
            kinds.KEY_REUSED: KeyReused("web-2026-46", "web", has_answer=True),
            kinds.LIMIT_EXCEEDED: _limit_exceeded(),
        }
        self.made: dict[str, _Json] = {}
        """The examples so far, by their names in the components of the document: most are for many operations."""

    def of(self, method: str, path: str, described: _Json, status: str) -> _Json:
        """References to the examples of one status of one operation, by the names of their kinds."""
        operation = _Operation(method.upper(), path, described)
        return {
            kind.name: {"$ref": f"#/components/examples/{self._named(kind, operation)}"}
            for kind in KINDS
            if str(kind.status) == status and (kind not in _WHERE or _WHERE[kind](operation))
        }

    def _named(self, kind: Kind, operation: _Operation) -> str:
        name, error = kind.name, self._errors.get(kind)
        if kind is kinds.INVALID_REQUEST and operation.has_body:
            required = self._required(operation)
            name = f"{name}-{required}"
            error = InvalidBody(((f"/{required}", "is required"),), 1, is_json=True)
        elif kind is kinds.INVALID_REQUEST:
            error = InvalidQuery(("verbose", "is not a parameter of this operation"))
        if name not in self.made:
            self.made[name] = {"summary": kind.title, "value": self._document(kind, error)}
        return name

    def _document(self, kind: Kind, error: Exception | None) -> _Json:
        response = problem_response(kind.status, kind) if error is None else answer_to(Request(_SCOPE), error)
        document: _Json = json.loads(bytes(response.body))
        return document | {"request_id": _REQUEST_ID}

    def _required(self, operation: _Operation) -> str:
        """The first field that a body must have."""
        (content,) = operation.described["requestBody"]["content"].values()
        schema = self._resolved(content["schema"])
        if operation.has_form:
            schema = self._resolved(schema["properties"]["request"])
        name: str = next(each for each in schema["properties"] if each in schema["required"])
        return name

    def _resolved(self, schema: _Json) -> _Json:
        while "$ref" in schema:
            schema = self._schemas[schema["$ref"].rpartition("/")[2]]
        return schema


def _too_little_left() -> TooLittleLeft:
    """What a budget says whose limit was lowered below what two releases of the case study cost."""
    cost = cost_of(WHOLE)
    try:
        calibrate_usual(NOTHING.plus(WHOLE, cost, 2), OUTLINE, 1, Limit(0.1, 1e-5).settled_by(cost))
    except TooLittleLeft as error:
        return error
    raise AssertionError


def _budget_exceeded() -> BudgetExceeded:
    """Seven weeks of the case study are paid for, and the eighth does not fit."""
    cost, spent = cost_of(WHOLE), NOTHING
    limit = Limit(1.0, 1e-4).settled_by(cost)
    for _ in range(7):
        spent = spent.plus(WHOLE, cost)
    return BudgetExceeded(Budget("web", limit, "page views, all users", spent), WHOLE, cost)


def _infeasible_target() -> InfeasibleTarget:
    """The case study, with less noise than its target needs."""
    try:
        calibrate(EXACT, replace(OUTLINE, sigma=2000.0), TARGET)
    except InfeasibleTarget as error:
        return error
    raise AssertionError("σ = 2000 is too little noise for the target")


def _limit_exceeded() -> LimitExceeded:
    """More columns than the service is set up to compute."""
    try:
        check_work(20_000, "/mechanism/aggregates", 31_000.0, FEWER_COLUMNS)
    except LimitExceeded as error:
        return error
    raise AssertionError("31 000 is more than 20 000")
