"""The certificate of a release that the library makes: version 2, the same as the service's.  [docs/certificate.md]

Nothing in it depends on the data. ``budget`` is null: nothing keeps count of a release without the service.
"""

import platform
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Literal

import flint

from gsh.accounting.accountings import EXACT, Point, at_delta, at_epsilon
from gsh.accounting.mechanism import Mechanism
from gsh.accounting.mechanism import Mechanism as CoreMechanism
from gsh.accounting.sensitivity import Box, L1Norm, L2Norm
from gsh.arguments import Real, instance, real
from gsh.errors import InfeasibleTarget, InvalidParameter
from gsh.histogram.noise import Noise
from gsh.library import certificate_words as words
from gsh.wire import Json, capped_to_json, mechanism_to_json

__all__ = ["certificate"]

_MOST_CHOICES, _LONGEST_CHOICE = 16, 200


def certificate(
    mechanism: Mechanism,
    *,
    epsilon: Real | None = None,
    delta: Real | None = None,
    unprotected: Sequence[str] = (),
    privacy_unit: str = "user",
    enforced_by: Literal["caller", "gsh.duckdb", "gsh.spark"] = "caller",
    plan_digest: str | None = None,
) -> Json:
    """What one release by the mechanism promises, as a JSON object.

    ``epsilon`` or ``delta`` chooses the stated point of the privacy curve. ``unprotected`` says what was chosen by
    looking at the data. ``enforced_by`` and ``plan_digest`` say what made sure that no user exceeds the bounds.
    """
    if not isinstance(privacy_unit, str) or not 0 < len(privacy_unit) <= _LONGEST_CHOICE:
        raise InvalidParameter("privacy_unit", f"must be a text of 1 to {_LONGEST_CHOICE} characters")
    point, stated = _stated(instance("mechanism", mechanism, Mechanism), epsilon, delta)
    noise = Noise(mechanism)
    capped = capped_to_json(mechanism.costs.capped)
    return {
        "schema": words.SCHEMA,
        "release_id": str(uuid.uuid4()),
        "idempotency_key": None,
        "released_at": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "service_version": version("gaussian-sparse-histogram"),
        "python": platform.python_version(),
        "flint": flint.__FLINT_VERSION__,
        "privacy_unit": privacy_unit,
        "period": None,
        "adjacency": words.ADJACENCY,
        "bounds": _bounds(mechanism) | {"enforced_by": enforced_by, "plan_digest": plan_digest},
        "mechanism": mechanism_to_json(mechanism),
        "tie_rule": words.TIE_RULE,
        "noise": words.NOISE,
        "grid": {
            "count": noise.count_grid,
            "values": dict(zip(mechanism.column_names, noise.value_grids, strict=True)),
        },
        "accounting": "exact",
        "mu_0": mechanism.costs.mu_0,
        **({"capped": capped} if capped else {}),
        "mu": point.mu,
        "mu_squared": mechanism.mu_squared,
        "hazard": mechanism.hazard,
        "delta_infinite": point.delta_infinite,
        "epsilon": point.epsilon if stated else None,
        "delta": point.delta if stated else None,
        "curve": words.CURVE_WITH_CAPS if mechanism.caps else words.CURVE,
        "budget": None,
        "unprotected": _choices(unprotected),
        "trust_model": words.TRUST_LIBRARY,
        "release_type": words.RELEASE_TYPE,
        "record": None,
    }


def _stated(mechanism: CoreMechanism, epsilon: Real | None, delta: Real | None) -> tuple[Point, bool]:
    """The point to state, and whether one was asked for."""
    if epsilon is not None and delta is not None:
        raise InvalidParameter("epsilon", "give at most one of epsilon and delta")
    if delta is None:
        asked = 0.0 if epsilon is None else real("epsilon", epsilon) + 0.0
        return at_epsilon(EXACT, mechanism.without_columns, asked), epsilon is not None
    point = at_delta(EXACT, mechanism.without_columns, real("delta", delta))
    if point.epsilon is None:
        raise InfeasibleTarget("delta", f"must be at least {point.delta_infinite}: below it no finite ε exists")
    return point, True


def _bounds(mechanism: Mechanism) -> Json:
    said: Json = {"c_u": mechanism.c_u, "per_group": "", "columns": None, "norm": None, "vectors": None}
    columns = mechanism.aggregates
    if columns is None:
        said["per_group"] = words.MU_0 if mechanism.mu_0 or mechanism.capped else words.COUNTS_ONLY
    else:
        match columns.sensitivity:
            case Box(lower, upper, groups):
                ranges = zip(columns.names, lower, upper, groups or (None,) * len(lower), strict=True)
                said["per_group"] = words.BOX if groups is None else words.CAPPED_BOX
                said["columns"] = [_column(*each) for each in ranges]
            case L1Norm(bound):
                said |= {"per_group": words.NORM, "norm": {"kind": "l1", "bound": bound}}
            case L2Norm(bound):
                said |= {"per_group": words.NORM, "norm": {"kind": "l2", "bound": bound}}
            case listed:
                said |= {"per_group": words.VECTORS, "vectors": len(listed.vectors)}
    return said


def _column(name: str, lower: float, upper: float, cap: int | None) -> Json:
    return {"name": name, "lower": lower, "upper": upper} | ({} if cap is None else {"groups": cap})


def _choices(unprotected: Sequence[str]) -> list[str]:
    choices = list(unprotected)
    if len(choices) > _MOST_CHOICES or not all(0 < len(text) <= _LONGEST_CHOICE for text in choices):
        raise InvalidParameter("unprotected", "must be at most 16 texts of 1 to 200 characters")
    return choices
