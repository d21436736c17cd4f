"""Certificates of every shape: each kind of sensitivity, with and without thresholds, each way to ask for a point."""

import json
from collections.abc import Iterator

from app.releases import asked as requests
from app.releases.schemas.stated import Stated
from gsh.certificate import Certificate
from gsh.histogram.noise import Noise
from gsh.wire import release_from_json
from tests.app.client import CASE_STUDY, Json

__all__ = [
    "RECORD",
    "SENSITIVITIES",
    "SHAPES",
    "TABLES",
    "complete",
    "drafted",
    "drafted_tables",
    "every_certificate",
]

SENSITIVITIES: dict[str, Json] = {
    "box": {"kind": "box", "lower": [0, -1], "upper": [1, 600]},
    "l1": {"kind": "l1", "bound": 2},
    "l2": {"kind": "l2", "bound": 1.5},
    "vectors": {"kind": "vectors", "vectors": [[1, 0], [1, 1], [0, 0]]},
}
COLUMNS = {"names": ["likes", "<u>seconds</u>"], "covariance": [[400, 10], [10, 9e6]]}
AGGREGATES: dict[str, Json] = {
    **{kind: {**COLUMNS, "sensitivity": sensitivity} for kind, sensitivity in SENSITIVITIES.items()},
    "mu_0": {"mu_0": 0.07},
}
THRESHOLDS = {"tau": 1, "tau_star": 140.5}
SMALL = {"c_u": 3, "sigma": 20}
SHAPES: dict[str, Json] = {
    "case-study": CASE_STUDY,
    "plain": SMALL,
    **{kind: SMALL | THRESHOLDS | {"aggregates": columns} for kind, columns in AGGREGATES.items()},
    **{f"plain-{kind}": SMALL | {"aggregates": columns} for kind, columns in AGGREGATES.items()},
}
TABLES = {"by_url": SHAPES["box"], "by.country": SHAPES["plain"], "by-page": SHAPES["case-study"]}
"""The second one has public groups."""
POINTS: tuple[Json, ...] = ({}, {"epsilon": 0.5}, {"delta": 0.01})
RECORD = {
    "state": "made",
    "entry": 2,
    "head": "ab" * 32,
    "at": "2026-11-16T12:00:00Z",
    "answer_sha256": "cd" * 32,
    "media_type": "application/json",
    "size": 812,
    "committed_digest": None,
}


def drafted(mechanism: Json, *, is_elsewhere: bool = False, **asked: object) -> Certificate:
    """A certificate without a budget, of a release that the service makes if it can."""
    request = Stated.model_validate_json(json.dumps(asked))
    domain = release_from_json(mechanism)
    noise = None if is_elsewhere else {"": Noise(domain)}
    return requests.drafted(request, {"": domain}, noise)


def drafted_tables(tables: dict[str, Json], *, is_elsewhere: bool = False, **asked: object) -> Certificate:
    """The same for several tables."""
    domains = {name: release_from_json(table) for name, table in tables.items()}
    noise = None if is_elsewhere else {name: Noise(table) for name, table in domains.items()}
    return requests.drafted(Stated.model_validate_json(json.dumps(asked)), domains, noise)


def complete(mechanism: Json, **asked: object) -> Certificate:
    """A certificate with a budget and a record."""
    return paid(drafted(mechanism, **asked))


def paid(certificate: Certificate) -> Certificate:
    return certificate.charged_to(
        budget="web",
        epsilon=1.0,
        delta=1e-4,
        promised_delta=1e-4,
        privacy_unit="user",
        period="week",
        idempotency_key="web-2026-46",
    ).recorded(RECORD)


def every_certificate() -> Iterator[Certificate]:
    for mechanism in SHAPES.values():
        for point in POINTS:
            yield drafted(mechanism, **point)
            yield drafted(mechanism, is_elsewhere=True, unprotected=["c_u"], **point)
            yield complete(mechanism, **point)
    for tables in (TABLES, {"alone": SHAPES["box"]}):
        for point in POINTS:
            yield drafted_tables(tables, **point)
            yield drafted_tables(tables, is_elsewhere=True, **point)
            yield paid(drafted_tables(tables, **point))
