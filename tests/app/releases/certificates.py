"""Certificates of every shape: each kind of sensitivity, with and without thresholds, each way to ask for a point."""

import json
from collections.abc import Iterator

from app.releases import asked as requests
from app.releases.schemas.certified import AnyCertified
from gsh.accounting.mechanism import Mechanism
from gsh.certificate import Certificate
from gsh.histogram.noise import Noise
from tests.app.client import CASE_STUDY, Json

__all__ = ["RECORD", "SENSITIVITIES", "SHAPES", "complete", "drafted", "every_certificate"]

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
    request = AnyCertified.model_validate_json(json.dumps({"mechanism": mechanism, **asked}))
    domain = request.mechanism.to_domain()
    noise = {"": Noise(domain)} if isinstance(domain, Mechanism) and not is_elsewhere else None
    return requests.drafted(request, {"": domain}, noise)


def complete(mechanism: Json, **asked: object) -> Certificate:
    """A certificate with a budget and a record."""
    return (
        drafted(mechanism, **asked)
        .charged_to(
            budget="web",
            epsilon=1.0,
            delta=1e-4,
            promised_delta=1e-4,
            privacy_unit="user",
            period="week",
            idempotency_key="web-2026-46",
        )
        .recorded(RECORD)
    )


def every_certificate() -> Iterator[Certificate]:
    for mechanism in SHAPES.values():
        for point in POINTS:
            yield drafted(mechanism, **point)
            yield drafted(mechanism, is_elsewhere=True, unprotected=["c_u"], **point)
            yield complete(mechanism, **point)
