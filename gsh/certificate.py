"""The certificate of a release, version 2: what the release promises, as a value and as JSON.  [docs/certificate.md]

Nothing in it depends on the data. The service adds the budget that paid, and what its ledger recorded. ``budget`` is
null for a release that the library makes: nothing keeps count of it.
"""

import functools
import platform
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, Literal, NamedTuple

import flint

from gsh import certificate_words as words
from gsh.accounting.accountings import EXACT, at_delta, at_epsilon
from gsh.accounting.composition import NOTHING, Release, cost_of, delta_at, epsilon_at
from gsh.accounting.mechanism import Mechanism, PlainGaussian
from gsh.accounting.sensitivity import Box, L1Norm, L2Norm
from gsh.arguments import Real, instance, real
from gsh.errors import InfeasibleTarget, InvalidParameter
from gsh.histogram.noise import Noise
from gsh.wire import Json, capped_to_json, mechanism_to_json

__all__ = ["Certificate", "certificate", "certificate_of"]

_MOST_CHOICES, _LONGEST_CHOICE = 16, 200

EnforcedBy = Literal["caller", "gsh.duckdb", "gsh.spark"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """The privacy of one release. The fields are those of its JSON, in their order."""

    schema: str = words.SCHEMA
    release_id: str
    idempotency_key: str | None = None
    released_at: datetime
    service_version: str
    python: str
    flint: str
    privacy_unit: str
    period: str | None = None
    adjacency: str = words.ADJACENCY
    bounds: Json
    mechanism: Json
    tie_rule: str
    noise: str
    grid: Json | None
    accounting: Literal["exact"] = "exact"
    mu_0: float
    capped: list[Json] | None
    mu: float
    mu_squared: float
    hazard: float
    delta_infinite: float
    epsilon: float | None
    delta: float | None
    curve: str
    budget: Json | None = None
    unprotected: list[str]
    trust_model: str
    release_type: str = words.RELEASE_TYPE
    record: Json | None = None

    def members(self) -> dict[str, Any]:
        """The members of its JSON object. ``capped`` is absent if no column has a cap."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in values.items() if name != "capped" or value is not None}

    def to_json(self) -> Json:
        return self.members() | {"released_at": self.released_at.strftime("%Y-%m-%dT%H:%M:%SZ")}


def certificate(
    mechanism: Mechanism,
    *,
    epsilon: Real | None = None,
    delta: Real | None = None,
    unprotected: Sequence[str] = (),
    privacy_unit: str = "user",
    enforced_by: EnforcedBy = "caller",
    plan_digest: str | None = None,
) -> Json:
    """What one release by the mechanism promises that the library makes, as a JSON object.

    ``epsilon`` or ``delta`` chooses the stated point of the privacy curve. ``unprotected`` says what was chosen by
    looking at the data. ``enforced_by`` and ``plan_digest`` say what made sure that no user exceeds the bounds.
    """
    if not isinstance(privacy_unit, str) or not 0 < len(privacy_unit) <= _LONGEST_CHOICE:
        raise InvalidParameter("privacy_unit", f"must be a text of 1 to {_LONGEST_CHOICE} characters")
    if epsilon is not None and delta is not None:
        raise InvalidParameter("epsilon", "give at most one of epsilon and delta")
    return certificate_of(
        instance("mechanism", mechanism, Mechanism),
        Noise(mechanism),
        epsilon=None if epsilon is None else real("epsilon", epsilon) + 0.0,
        delta=None if delta is None else real("delta", delta),
        unprotected=_choices(unprotected),
        privacy_unit=privacy_unit,
        enforced_by=enforced_by,
        plan_digest=plan_digest,
        trust_model=words.TRUST_LIBRARY,
    ).to_json()


def certificate_of(
    mechanism: Release,
    noise: Noise | None,
    *,
    epsilon: float | None,
    delta: float | None,
    unprotected: Sequence[str],
    enforced_by: EnforcedBy,
    plan_digest: str | None,
    trust_model: str,
    privacy_unit: str = "user",
) -> Certificate:
    """The certificate of a release, before a budget pays for it. Without ``noise``, another engine draws it."""
    point, cost = _stated(mechanism.without_columns, epsilon, delta), cost_of(mechanism)
    drawn = words.NOISE_FROM_A_SEED if enforced_by == "gsh.spark" else words.NOISE_ELSEWHERE
    grid = None if noise is None else {"count": noise.count_grid, "values": _by_name(mechanism, noise.value_grids)}
    return Certificate(
        release_id=str(uuid.uuid4()),
        released_at=datetime.now(UTC).replace(microsecond=0),
        service_version=_version(),
        python=platform.python_version(),
        flint=flint.__FLINT_VERSION__,
        privacy_unit=privacy_unit,
        bounds=_bounds(mechanism) | {"enforced_by": enforced_by, "plan_digest": plan_digest},
        mechanism=mechanism_to_json(mechanism),
        tie_rule=words.TIE_RULE if isinstance(mechanism, Mechanism) else words.NO_THRESHOLD,
        noise=drawn if noise is None else words.NOISE,
        grid=grid,
        mu_0=mechanism.costs.mu_0,
        capped=capped_to_json(mechanism.costs.capped) or None,
        mu=point.mu,
        mu_squared=cost.mu_squared,
        hazard=cost.hazard,
        delta_infinite=point.delta_infinite,
        epsilon=point.epsilon,
        delta=point.delta,
        curve=words.CURVE_WITH_CAPS if isinstance(mechanism, Mechanism) and mechanism.caps else words.CURVE,
        unprotected=list(unprotected),
        trust_model=trust_model,
    )


@functools.cache
def _version() -> str:
    """The version of this library. Reading it from the disk takes a millisecond."""
    return version("gaussian-sparse-histogram")


class _StatedPoint(NamedTuple):
    """The stated point of the curve, and the two numbers that the curve follows from."""

    epsilon: float | None
    delta: float | None
    mu: float
    delta_infinite: float


def _stated(mechanism: Release, epsilon: float | None, delta: float | None) -> _StatedPoint:
    """δ at the asked ε, or the smallest ε at the asked δ, or neither; every number is rounded up."""
    if isinstance(mechanism, PlainGaussian):
        return _stated_without_threshold(mechanism, epsilon, delta)
    if delta is None:
        point = at_epsilon(EXACT, mechanism, epsilon or 0.0)
        return _StatedPoint(epsilon, None if epsilon is None else point.delta, point.mu, point.delta_infinite)
    point = at_delta(EXACT, mechanism, delta)
    if point.epsilon is None:
        raise InfeasibleTarget("delta", f"must be at least {point.delta_infinite}: below it no finite ε exists")
    return _StatedPoint(point.epsilon, point.delta, point.mu, point.delta_infinite)


def _stated_without_threshold(plain: PlainGaussian, epsilon: float | None, delta: float | None) -> _StatedPoint:
    spent = NOTHING.plus(plain, cost_of(plain))
    if epsilon is not None:
        delta = delta_at(spent, epsilon)
    elif delta is not None:
        epsilon = epsilon_at(spent, delta)
        if epsilon is None:
            raise InvalidParameter("sigma", "must be large enough that ε is a finite double")
    return _StatedPoint(epsilon, delta, plain.mu, 0.0)


def _by_name(mechanism: Release, grids: Sequence[float]) -> dict[str, float]:
    return dict(zip(mechanism.column_names, grids, strict=True))


def _bounds(mechanism: Release) -> Json:
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
