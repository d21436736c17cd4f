"""What several forms of a certificate say: its phrases, and the (ε, δ) that it is quoted by."""

from decimal import ROUND_CEILING, Context
from typing import NamedTuple

from gsh.accounting.accountings import EXACT, at_epsilon
from gsh.certificate import Certificate
from gsh.certificate_words import digits
from gsh.documents import Document

__all__ = [
    "QuotedPoint",
    "change_of",
    "enforced",
    "enforcer",
    "few_up",
    "first_bounds",
    "promised",
    "promises",
    "quoted_point",
    "unit_of",
]

_NORMS = {"l1": "the sum of the absolute changes", "l2": "the Euclidean norm of the changes"}
_ENFORCERS = {
    "caller": "the caller's own query",
    "gsh.duckdb": "the library's plan in DuckDB",
    "gsh.spark": "the library's plan in Spark",
}


class QuotedPoint(NamedTuple):
    """One point of the curve. ``is_stated`` says whether the request asked for it."""

    epsilon: float
    delta: float
    is_stated: bool


def quoted_point(certificate: Certificate) -> QuotedPoint:
    """The stated point; without one, δ at the budget's ε, or at ε = 1 if there is no budget."""
    if certificate.epsilon is not None and certificate.delta is not None:
        return QuotedPoint(certificate.epsilon, certificate.delta, is_stated=True)
    epsilon = 1.0 if certificate.budget is None else promised(certificate.budget).epsilon
    point = at_epsilon(EXACT, certificate.release.without_columns, epsilon)
    return QuotedPoint(epsilon, point.delta, is_stated=False)


def first_bounds(certificate: Certificate) -> Document:
    """The bounds of the first table. What enforced them is the same for all tables."""
    described: Document = next(iter(certificate.described.values()))
    bounds: Document = described.bounds
    return bounds


def change_of(bounds: Document) -> str:
    """What one unit can change in one group, with the numbers."""
    numbers = [
        f"{_named(each)} {digits(each.lower)} to {digits(each.upper)}"
        + ("" if each.get("groups") is None else f" in at most {each.groups} groups")
        for each in bounds.columns or ()
    ]
    if bounds.norm is not None:
        numbers.append(f"{_NORMS[bounds.norm.kind]} is at most {digits(bounds.norm.bound)}")
    if bounds.vectors is not None:
        numbers.append(f"there are {bounds.vectors}")
    change: str = bounds.per_group
    return f"{change.removesuffix('.')}: {'; '.join(numbers)}." if numbers else change


def _named(column: Document) -> str:
    """The column, and what it is the sum of if this is not plain."""
    if column.get("kind") == "mean":
        return f"{column.name} ({column.of} less {digits(column.middle)}, for a mean)"
    return f"{column.name} (number of events)" if column.get("kind") == "events" else str(column.name)


def few_up(number: float) -> str:
    """At most four digits of a number, rounded up: ``1e-6``. All digits stand elsewhere.

    The number is what people read and write: 1e-05, not the double a little above it.
    """
    few = Context(prec=4, rounding=ROUND_CEILING).create_decimal(repr(number))
    return digits(float(few)).replace("e-0", "e-")


def promises(paid: Document) -> str:
    """The verb of a budget. Certificates before version 0.3 have its limit only."""
    return "allowed" if paid.get("promise") is None else "promises"


def unit_of(paid: Document) -> str:
    """The privacy unit of an ancestor, with its period."""
    return str(paid.privacy_unit) if paid.period is None else f"{paid.privacy_unit}-{paid.period}"


def promised(paid: Document) -> Document:
    """The (ε, δ) that a budget promises. Certificates before version 0.3 have its limit only."""
    point: Document = paid.get("promise") or paid.limit
    return point


def enforcer(bounds: Document) -> str:
    """What enforced the bounds."""
    return _ENFORCERS[bounds.enforced_by]


def enforced(bounds: Document) -> str:
    """What enforced the bounds, with the digest of its plan."""
    plan = "" if bounds.plan_digest is None else f" with the digest {bounds.plan_digest}"
    return f"{enforcer(bounds)}{plan}"
