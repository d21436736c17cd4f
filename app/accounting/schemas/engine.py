"""Requests and answers of /account/engine."""

from typing import Annotated, Any, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError
from typing_extensions import TypeAliasType

from app.schemas.mechanism import TAU, MechanismIn
from app.schemas.scalars import Delta, Epsilon
from app.schemas.strict import Strict
from gsh.accounting.engines import noise
from gsh.accounting.engines.curves import MOST_C_U

__all__ = ["ENGINE_EXAMPLES", "EngineAnswer", "EngineNoise", "EngineRequest"]


NoiseKind = TypeAliasType(
    "NoiseKind", Annotated[noise.NoiseKind, Field(description="A distribution of noise on counts.")]
)
Keeps = TypeAliasType("Keeps", Annotated[noise.Keeps, Field(description="How a noisy count passes a threshold.")])


class EngineNoise(Strict):
    """The noise that an engine adds to each count."""

    kind: NoiseKind = Field(
        title="Noise",
        description="Gaussian; the same rounded to integers; discrete Gaussian; Laplace; or two-sided geometric noise.",
        examples=["laplace"],
    )
    scale: float = Field(
        gt=0,
        title="Scale",
        description="σ of the three Gaussian noises, b of Laplace noise; for geometric noise P(z) ∝ e^(−|z|/scale).",
        examples=[10],
    )


class EngineRequest(Strict):
    """The sparse histogram of an engine, and the ε or the δ at which to account for it."""

    noise: EngineNoise = Field(
        title="Noise",
        description="The noise on each count. Each group has a draw of its own, and its published count has the same "
        "draw as its test.",
        examples=[{"kind": "laplace", "scale": 10}],
    )
    c_u: int = Field(
        ge=1,
        le=MOST_C_U,
        title="C_u",
        description="The most groups in which one user is counted, once each.",
        examples=[5],
    )
    tau: int = Field(default=1, ge=0, **(TAU | {"examples": [1]}))
    threshold: float = Field(
        title="T", description="The threshold that a noisy count is compared with.", examples=[150]
    )
    keeps: Keeps = Field(
        default=">=", title="Test", description="Whether a noisy count equal to the threshold is kept.", examples=[">="]
    )
    epsilon: Epsilon | None = Field(default=None, title="ε", description="The ε at which to compute δ.", examples=[0.5])
    delta: Delta | None = Field(
        default=None, title="δ", description="The δ at which to compute the smallest ε.", examples=[1e-6]
    )

    @model_validator(mode="after")
    def _one_variable(self) -> Self:
        if (self.epsilon is None) == (self.delta is None):
            raise PydanticCustomError("stated", "", {"stated": "must have exactly one of epsilon and delta"})
        return self


class EngineAnswer(Strict):
    """A certified point of the privacy curve of an engine."""

    epsilon: float | None = Field(
        title="ε", description="null if no finite ε exists at the δ asked for.", examples=[0.5]
    )
    delta: float = Field(title="δ", description="Rounded up, to within 10⁻¹¹ of it.", examples=[8.451855852413389e-07])
    delta_infinite: float = Field(
        title="δ∞",
        description="The probability that a group of one user alone is published.",
        examples=[8.451855852405703e-07],
    )
    delta_noise: float = Field(
        title="δ of the noise",
        description="The cost at ε of the noise on groups that exist without the user.",
        examples=[5.169879334013033e-26],
    )
    groups_at_tau: int = Field(
        title="Groups at τ",
        description="How many of a user's groups have exactly τ users in the worst case; the others have many.",
        examples=[5],
    )
    exact: bool = Field(
        title="Exact", description="Whether δ is that of the engine; if not, it is a bound above it.", examples=[True]
    )
    method: str = Field(
        title="Method",
        description="How δ was found.",
        examples=["worst split of the groups, with the loss of all rows as a finite sum"],
    )
    as_mechanism: MechanismIn | None = Field(
        title="As a mechanism",
        description="The mechanism of this service with the same certificate, for all other endpoints; null for other "
        "noise than the Gaussian.",
        examples=[None],
    )


ENGINE_EXAMPLES: dict[str, Any] = {
    "laplace": {
        "summary": "Laplace noise",
        "description": "Five groups per user, a threshold of 150. δ is the chance that one user's groups are shown.",
        "value": {
            "noise": {"kind": "laplace", "scale": 10},
            "c_u": 5,
            "tau": 1,
            "threshold": 150,
            "keeps": ">=",
            "epsilon": 0.5,
        },
    },
    "geometric": {
        "summary": "The same with integers",
        "description": "Two-sided geometric noise on integers. A noisy count equal to the threshold is kept, so δ is "
        "larger.",
        "value": {
            "noise": {"kind": "geometric", "scale": 10},
            "c_u": 5,
            "tau": 1,
            "threshold": 150,
            "keeps": ">=",
            "epsilon": 0.5,
        },
    },
    "discrete": {
        "summary": "ε at a δ, discrete Gaussian noise",
        "description": "The smallest ε at which the engine meets δ. The formula of continuous noise is too small.",
        "value": {
            "noise": {"kind": "discrete-gaussian", "scale": 10},
            "c_u": 5,
            "tau": 1,
            "threshold": 60,
            "keeps": ">=",
            "delta": 1e-6,
        },
    },
    "rounded": {
        "summary": "SQL with HAVING",
        "description": "Gaussian noise, rounded to integers before the test, as in Presto's noisy_count_gaussian.",
        "value": {
            "noise": {"kind": "rounded-gaussian", "scale": 20},
            "c_u": 10,
            "tau": 1,
            "threshold": 120,
            "keeps": ">=",
            "epsilon": 1,
        },
    },
}
