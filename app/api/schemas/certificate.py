"""The certificate of a release: its privacy cost. Nothing in it depends on the data."""

import uuid
from datetime import UTC, datetime
from typing import Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from app.api.schemas.case_study import CASE_STUDY
from app.api.schemas.mechanism import MechanismIn
from app.api.schemas.scalars import Delta, Epsilon
from app.api.schemas.strict import Strict
from app.version import VERSION
from gsh.accounting.accountings import EXACT, Point, at_delta, at_epsilon
from gsh.accounting.errors import InfeasibleTarget
from gsh.accounting.mechanism import Mechanism
from gsh.histogram.noise import Noise

__all__ = ["CASE_STUDY", "Certificate", "Certified"]


class Certified(Strict):
    """A complete mechanism, and the point of its privacy curve that the certificate states."""

    mechanism: MechanismIn = Field(
        title="Mechanism",
        description="The complete mechanism to run, as /calibrate returns it.",
        examples=[CASE_STUDY],
    )
    epsilon: Epsilon | None = Field(
        default=None, title="ε", description="The ε at which the certificate states δ.", examples=[0.349]
    )
    delta: Delta | None = Field(
        default=None,
        title="δ",
        description="The δ at which the certificate states ε; refused if no finite ε exists.",
        examples=[1e-5],
    )

    @model_validator(mode="after")
    def _at_most_one(self) -> Self:
        if self.epsilon is not None and self.delta is not None:
            raise PydanticCustomError("stated", "", {"stated": "must have at most one of epsilon and delta"})
        return self


class GridOut(Strict):
    """The steps to which released numbers are rounded: powers of two that depend only on σ and Σ."""

    count: float = Field(title="Count", description="The step of counts.", examples=[0.001953125])
    values: dict[str, float] = Field(
        title="Values", description="The step of each further column.", examples=[{"likes": 1.52587890625e-05}]
    )


class Certificate(Strict):
    """The privacy of one release. Its whole curve is δ(ε) = max(δ_infinite, f(μ, ε))."""

    release_id: str = Field(
        title="Release",
        description="The random identifier of this release.",
        examples=["5f0c66f2-1d5c-4d5e-9a6b-3b1f0c8f7a10"],
    )
    released_at: datetime = Field(title="Time", description="When it was made.", examples=["2026-11-16T12:00:00Z"])
    service_version: str = Field(
        title="Version", description="The version of the service that made it.", examples=[VERSION]
    )
    accounting: Literal["exact"] = Field(title="Accounting", description="How δ was computed.", examples=["exact"])
    mechanism: MechanismIn = Field(title="Mechanism", description="The mechanism that was run.", examples=[CASE_STUDY])
    mu_0: float = Field(title="μ₀", description="What further columns add to μ, per group; rounded up.", examples=[0.0])
    mu: float = Field(
        title="μ",
        description="μ of the equivalent Gaussian mechanism; rounded up.",
        examples=[0.10224286368],
    )
    delta_infinite: float = Field(
        title="δ_infinite",
        description="The probability that a group of one user alone is released; rounded up.",
        examples=[9.999999999999999e-06],
    )
    epsilon: float | None = Field(
        title="ε",
        description="The ε of the request, or the smallest ε at δ; null if the request has neither.",
        examples=[0.349],
    )
    delta: float | None = Field(
        title="δ",
        description="The δ of the request, or the smallest δ at ε; null if the request has neither.",
        examples=[9.999999999999999e-06],
    )
    grid: GridOut = Field(
        title="Grid",
        description="The steps to which the released numbers are rounded.",
        examples=[{"count": 0.001953125, "values": {}}],
    )

    @classmethod
    def of(cls, asked: Certified, mechanism: Mechanism, noise: Noise) -> Self:
        point = _point(asked, mechanism)
        nothing_asked = asked.epsilon is None and asked.delta is None
        names = mechanism.column_names
        return cls(
            release_id=str(uuid.uuid4()),
            released_at=datetime.now(UTC).replace(microsecond=0),
            service_version=VERSION,
            accounting="exact",
            mechanism=asked.mechanism,
            mu_0=mechanism.mu_0,
            mu=point.mu,
            delta_infinite=point.delta_infinite,
            epsilon=None if nothing_asked else point.epsilon,
            delta=None if nothing_asked else point.delta,
            grid=GridOut(count=noise.count_grid, values=dict(zip(names, noise.value_grids, strict=True))),
        )


def _point(asked: Certified, mechanism: Mechanism) -> Point:
    if asked.delta is None:
        return at_epsilon(EXACT, mechanism, asked.epsilon or 0.0)
    point = at_delta(EXACT, mechanism, asked.delta)
    if point.epsilon is None:
        raise InfeasibleTarget("delta", f"must be at least {point.delta_infinite}: below it no finite ε exists")
    return point
