"""Phrases about a certificate that several of its forms use."""

from decimal import ROUND_CEILING, Context

from app.releases.schemas.bounds import BoundsOut
from app.releases.schemas.certificate import Certificate
from app.schemas.ledger_record import PaidBy

__all__ = ["change_of", "digits", "enforced", "enforcer", "few_up", "promises", "unit_of"]

_NORMS = {"l1": "the sum of the absolute changes", "l2": "the Euclidean norm of the changes"}
_ENFORCERS = {
    "caller": "the caller's own query",
    "gsh.duckdb": "the library's plan in DuckDB",
    "gsh.spark": "the library's plan in Spark",
}


def unit_of(certificate: Certificate) -> str:
    """The privacy unit with its period: ``user``, or ``user-week``."""
    return (
        certificate.privacy_unit if certificate.period is None else f"{certificate.privacy_unit}-{certificate.period}"
    )


def change_of(bounds: BoundsOut) -> str:
    """What one unit can change in one group, with the numbers."""
    numbers = [
        f"{each.name} {digits(each.lower)} to {digits(each.upper)}"
        + ("" if each.groups is None else f" in at most {each.groups} groups")
        for each in bounds.columns or []
    ]
    if bounds.norm is not None:
        numbers.append(f"{_NORMS[bounds.norm.kind]} is at most {digits(bounds.norm.bound)}")
    if bounds.vectors is not None:
        numbers.append(f"there are {bounds.vectors}")
    return f"{bounds.per_group.removesuffix('.')}: {'; '.join(numbers)}." if numbers else bounds.per_group


def digits(number: float) -> str:
    """All digits of a number, without the point of a whole one."""
    return repr(number).removesuffix(".0")


def few_up(number: float) -> str:
    """At most four digits of a number, rounded up: ``1e-6``. All digits stand elsewhere."""
    few = Context(prec=4, rounding=ROUND_CEILING).create_decimal(number)
    return digits(float(few)).replace("e-0", "e-")


def promises(paid: PaidBy) -> str:
    """The verb of a budget. Certificates before version 0.3 have its limit only."""
    return "allowed" if paid.promise is None else "promises"


def enforcer(bounds: BoundsOut) -> str:
    """What enforced the bounds."""
    return _ENFORCERS[bounds.enforced_by]


def enforced(bounds: BoundsOut) -> str:
    """What enforced the bounds, with the digest of its plan."""
    plan = "" if bounds.plan_digest is None else f" with the digest {bounds.plan_digest}"
    return f"{enforcer(bounds)}{plan}"
