"""Errors on the wire: RFC 9457 problem documents. Only this package knows HTTP statuses of errors."""

from app.api.problems.documents import (
    ACCESS_PROBLEMS,
    BUDGET_PROBLEMS,
    DIVISION_PROBLEMS,
    MEDIA_TYPE,
    PROBLEMS,
    BudgetProblem,
    Problem,
    ProblemError,
    problem_response,
)
from app.api.problems.errors import (
    ContentTooLarge,
    InvalidBody,
    InvalidEncoding,
    InvalidHeader,
    InvalidMultipart,
    InvalidQuery,
    NotAdmitted,
    UnsupportedEncoding,
)
from app.api.problems.handlers import install
from app.api.problems.kinds import CONNECTION_KINDS, KINDS

__all__ = [
    "ACCESS_PROBLEMS",
    "BUDGET_PROBLEMS",
    "CONNECTION_KINDS",
    "DIVISION_PROBLEMS",
    "KINDS",
    "MEDIA_TYPE",
    "PROBLEMS",
    "BudgetProblem",
    "ContentTooLarge",
    "InvalidBody",
    "InvalidEncoding",
    "InvalidHeader",
    "InvalidMultipart",
    "InvalidQuery",
    "NotAdmitted",
    "Problem",
    "ProblemError",
    "UnsupportedEncoding",
    "install",
    "problem_response",
]
