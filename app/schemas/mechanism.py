"""The mechanism object: the same in every request, and in the answer of /calibrate."""

from typing import Annotated, Any, Self, TypeAlias

from pydantic import Discriminator, Field, Tag
from typing_extensions import TypeAliasType

from app.schemas.aggregates import (
    AGGREGATES,
    CAPPED,
    BalancedColumnsIn,
    CappedIn,
    ColumnsIn,
    MuZeroIn,
    RelativeColumnsIn,
)
from app.schemas.case_study import CASE_STUDY
from app.schemas.scalars import GroupsPerUser, Sigma, Sigmas, TauStar, a_list
from app.schemas.strict import OneOrMany, Strict
from gsh.accounting import case_study
from gsh.accounting.calibration.draft import Draft
from gsh.accounting.mechanism import Mechanism, Table
from gsh.wire import draft_from_json, mechanism_from_json, mechanism_to_json, release_from_json

__all__ = [
    "AnyMechanismIn",
    "DraftIn",
    "GaussianIn",
    "MechanismIn",
    "MechanismOut",
    "Mechanisms",
    "OutlineIn",
    "PostedMechanism",
]

C_U: dict[str, Any] = {
    "title": "C_u",
    "description": "The most groups that one user can touch.",
    "examples": [CASE_STUDY["c_u"]],
}
TAU: dict[str, Any] = {
    "title": "τ",
    "description": "Groups with fewer users than this are dropped before noise is drawn; 0 acts as 1.",
    "examples": [CASE_STUDY["tau"]],
}
TAU_STAR: dict[str, Any] = {
    "title": "τ*",
    "description": "Groups whose noisy count is below this are dropped; greater than τ. A count equal to it is kept.",
    "examples": [CASE_STUDY["tau_star"]],
}
SIGMA: dict[str, Any] = {
    "title": "σ",
    "description": "Standard deviation of the Gaussian noise on counts.",
    "examples": [CASE_STUDY["sigma"]],
}


def _has(value: Any, name: str) -> bool:
    return name in value if isinstance(value, dict) else hasattr(value, name)


def _shape(value: Any) -> str:
    return "<mu_0>" if _has(value, "mu_0") else "<columns>"


def _draft_shape(value: Any) -> str:
    if _has(value, "noise"):
        return "<balanced>"
    return "<relative>" if _has(value, "relative_covariance") else _shape(value)


_Columns = Annotated[ColumnsIn, Tag("<columns>")]
_RelativeColumns = Annotated[RelativeColumnsIn, Tag("<relative>")]
_BalancedColumns = Annotated[BalancedColumnsIn, Tag("<balanced>")]
_MuZero = Annotated[MuZeroIn, Tag("<mu_0>")]
_FurtherColumns = Annotated[
    Annotated[_Columns | _MuZero, Discriminator(_shape)] | None,
    Field(default=None, exclude_if=lambda value: value is None, **AGGREGATES),
]
_DraftColumns = Annotated[
    Annotated[_Columns | _RelativeColumns | _BalancedColumns | _MuZero, Discriminator(_draft_shape)] | None,
    Field(default=None, **AGGREGATES),
]


class MechanismIn(Strict):
    """A complete Gaussian sparse histogram mechanism."""

    c_u: GroupsPerUser = Field(**C_U)
    tau: int = Field(ge=0, **TAU)
    tau_star: TauStar = Field(**TAU_STAR)
    sigma: Sigma = Field(**SIGMA)
    aggregates: _FurtherColumns

    @classmethod
    def of(cls, mechanism: Mechanism) -> Self:
        return cls.model_validate(mechanism_to_json(mechanism))

    def to_domain(self) -> Mechanism:
        return mechanism_from_json(self.model_dump())


class GaussianIn(Strict):
    """Gaussian noise without thresholds, on public groups."""

    c_u: GroupsPerUser = Field(**C_U)
    sigma: Sigma = Field(**SIGMA)
    aggregates: _FurtherColumns

    def to_domain(self) -> Table:
        return release_from_json(self.model_dump())


def _thresholded(value: Any) -> str:
    return "<threshold>" if _has(value, "tau") or _has(value, "tau_star") else "<plain>"


AnyMechanismIn = Annotated[
    Annotated[MechanismIn, Tag("<threshold>")] | Annotated[GaussianIn, Tag("<plain>")], Discriminator(_thresholded)
]
"""A mechanism. Without tau and tau_star it is plain Gaussian noise on public groups."""
PostedMechanism: TypeAlias = MechanismIn | GaussianIn
Mechanisms = TypeAliasType("Mechanisms", Annotated[list[AnyMechanismIn], a_list("Several mechanisms, in order.")])


class DraftIn(Strict):
    """A mechanism without the fields to solve for."""

    c_u: GroupsPerUser | None = Field(default=None, **C_U)
    tau: int = Field(ge=0, **TAU)
    tau_star: TauStar | None = Field(default=None, **TAU_STAR)
    sigma: OneOrMany[Sigma, Sigmas] | None = Field(default=None, **SIGMA)
    aggregates: _DraftColumns

    def to_domain(self) -> Draft:
        """Without σ, if there are several."""
        several = {"sigma"} if isinstance(self.sigma, list) else None
        return draft_from_json(self.model_dump(exclude_none=True, exclude=several))


class OutlineIn(Strict):
    """A mechanism before its noise and its threshold are chosen."""

    c_u: GroupsPerUser = Field(**C_U)
    tau: int = Field(ge=0, **TAU)
    aggregates: _DraftColumns

    def to_domain(self) -> Draft:
        return draft_from_json(self.model_dump(exclude_none=True))


class MechanismOut(Strict):
    """The mechanism of the request, and the numbers that follow from it."""

    c_u: int = Field(**C_U)
    tau: int = Field(**TAU)
    tau_star: float = Field(**TAU_STAR)
    sigma: float = Field(**SIGMA)
    tau_gap: float = Field(
        title="τ* − τ",
        description="Privacy depends on the thresholds through this difference only; rounded down.",
        examples=[case_study.CASE_STUDY.tau_gap],
    )
    mu_0: float = Field(
        title="μ₀", description="What the further columns add to μ, per group; rounded up.", examples=[0.0]
    )
    capped: list[CappedIn] | None = Field(default=None, exclude_if=lambda value: value is None, **CAPPED)
    mu: float = Field(title="μ", description="μ of the equivalent Gaussian mechanism; rounded up.", examples=[0.1022])
