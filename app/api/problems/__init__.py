"""Errors on the wire: RFC 9457 problem documents. Only this package knows HTTP statuses of errors."""

from app.api.problems.documents import (
    ACCESS_PROBLEMS,
    ANSWER_PROBLEMS,
    BUDGET_PROBLEMS,
    CERTIFICATE_PROBLEMS,
    COMMIT_PROBLEMS,
    DIVISION_PROBLEMS,
    KEY_NOT_FOUND,
    MEDIA_TYPE,
    PROBLEMS,
    BudgetProblem,
    Problem,
    ProblemError,
    ReusedProblem,
    problem_response,
)
from app.api.problems.errors import (
    ContentTooLarge,
    InvalidBody,
    InvalidHeader,
    InvalidMultipart,
    InvalidQuery,
    NoCertificate,
    NotAdmitted,
)
from app.api.problems.handlers import install
from app.api.problems.kinds import CONNECTION_KINDS, KINDS

__all__ = [
    "ACCESS_PROBLEMS",
    "ANSWER_PROBLEMS",
    "BUDGET_PROBLEMS",
    "CERTIFICATE_PROBLEMS",
    "COMMIT_PROBLEMS",
    "CONNECTION_KINDS",
    "DIVISION_PROBLEMS",
    "KEY_NOT_FOUND",
    "KINDS",
    "MEDIA_TYPE",
    "PROBLEMS",
    "BudgetProblem",
    "ContentTooLarge",
    "InvalidBody",
    "InvalidHeader",
    "InvalidMultipart",
    "InvalidQuery",
    "NoCertificate",
    "NotAdmitted",
    "Problem",
    "ProblemError",
    "ReusedProblem",
    "install",
    "problem_response",
]
