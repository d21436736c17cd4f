"""Requests and answers of /account/engine."""

from typing import Annotated, Any, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError
from typing_extensions import TypeAliasType

from app.schemas.mechanism import TAU, MechanismIn
from app.schemas.scalars import Delta, Epsilon
from app.schemas.strict import Strict
from gsh.accounting.engines import noise, presets
from gsh.accounting.engines.curves import MOST_C_U
from gsh.accounting.engines.reach import MOST_ROWS

__all__ = ["ENGINE_EXAMPLES", "ClaimOut", "EngineAnswer", "EngineNoise", "EngineRequest"]


NoiseKind = TypeAliasType(
    "NoiseKind", Annotated[noise.NoiseKind, Field(description="A distribution of noise on counts.")]
)
AnyNoiseKind = TypeAliasType(
    "AnyNoiseKind", Annotated[noise.AnyKind, Field(description="A distribution of noise, or a selection of keys.")]
)
PresetName = TypeAliasType(
    "PresetName", Annotated[presets.PresetName, Field(description="A tool that publishes sparse histograms.")]
)
Keeps = TypeAliasType("Keeps", Annotated[noise.Keeps, Field(description="How a noisy count passes a threshold.")])


class EngineNoise(Strict):
    """The noise that an engine adds to each count."""

    kind: NoiseKind | None = Field(
        default=None,
        title="Noise",
        description="Gaussian or Laplace noise; the same rounded to integers before the test; discrete Gaussian; or "
        "two-sided geometric noise. Null: that of the preset.",
        examples=["laplace"],
    )
    scale: float = Field(
        gt=0,
        title="Scale",
        description="σ of the Gaussian noises, b of the Laplace noises; for geometric noise P(z) ∝ e^(−|z|/scale).",
        examples=[10],
    )


class EngineRequest(Strict):
    """The sparse histogram of an engine, and the ε or the δ at which to account for it."""

    preset: PresetName | None = Field(
        default=None,
        title="Preset",
        description="A tool that has this engine: it knows the noise and the test, and the answer has its claim. Some "
        "choose noise and threshold from ε and δ.",
        examples=["opendp-laplace"],
    )
    noise: EngineNoise | None = Field(
        default=None,
        title="Noise",
        description="The noise on each count. Each group has a draw of its own, and its published count has the same "
        "draw as its test. Null only if the preset chooses it.",
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
    threshold: float | None = Field(
        default=None,
        title="T",
        description="The threshold that a noisy count is compared with. Null only if the preset chooses it.",
        examples=[150],
    )
    keeps: Keeps | None = Field(
        default=None,
        title="Test",
        description="Whether a noisy count equal to the threshold is kept. Null: that of the preset, else >=.",
        examples=[">="],
    )
    l_inf: int | None = Field(
        default=None,
        ge=1,
        le=MOST_ROWS,
        title="L∞",
        description="The most rows of a user in one group, if rows are counted. Null: 1, or what L1 and L2 allow.",
        examples=[1],
    )
    l1: int | None = Field(
        default=None,
        ge=1,
        le=MOST_C_U,
        title="L1",
        description="The most rows of a user in all groups together.",
        examples=[5],
    )
    l2: float | None = Field(
        default=None, ge=1, title="L2", description="The most of the Euclidean norm of a user's rows.", examples=[2.5]
    )
    seed: int | None = Field(
        default=None,
        title="Seed",
        description="The seed of the engine's noise, which is refused: there is no privacy with it.",
        examples=[None],
    )
    epsilon: Epsilon | None = Field(default=None, title="ε", description="The ε at which to compute δ.", examples=[0.5])
    delta: Delta | None = Field(
        default=None, title="δ", description="The δ at which to compute the smallest ε.", examples=[1e-6]
    )

    @model_validator(mode="after")
    def _one_variable(self) -> Self:
        chooses = self.preset is not None and presets.PRESETS[self.preset].chosen is not None
        if chooses and (self.epsilon is None or self.delta is None):
            raise PydanticCustomError("stated", "", {"stated": "must have epsilon and delta, which this tool is given"})
        if not chooses and (self.epsilon is None) == (self.delta is None):
            raise PydanticCustomError("stated", "", {"stated": "must have exactly one of epsilon and delta"})
        return self


class ClaimOut(Strict):
    """What a tool says that the same parameters cost."""

    preset: PresetName = Field(title="Preset", description="The name of the tool here.", examples=["opendp-laplace"])
    tool: str = Field(title="Tool", description="The tool.", examples=["OpenDP"])
    version: str = Field(title="Version", description="The version that was read or run.", examples=["0.16.0"])
    delta: float = Field(title="δ", description="The δ that it claims at ε.", examples=[8.029615004258612e-07])
    source: str = Field(
        title="Source",
        description="The function of the tool.",
        examples=["opendp.measurements.make_laplace_threshold, integers"],
    )


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
    groups_at_tau: int | None = Field(
        title="Groups at τ",
        description="How many of a user's groups have exactly τ users in the worst case; the others have many. null "
        "for a bound on all cases.",
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
    charge_refusal: str | None = Field(
        title="No charge, because",
        description="Why no budget can be charged for it; null if one can be: charge it for as_mechanism.",
        examples=["a budget adds up mu_squared and hazard, which laplace noise does not have"],
    )
    noise: AnyNoiseKind = Field(
        title="Noise", description="The noise; truncated-geometric publishes keys alone.", examples=["laplace"]
    )
    scale: float = Field(title="Scale", description="Its scale.", examples=[10])
    threshold: float | None = Field(title="T", description="The threshold; null if the tool has none.", examples=[150])
    keeps: Keeps = Field(title="Test", description="Whether a noisy count equal to it is kept.", examples=[">="])
    claims: list[ClaimOut] = Field(
        title="Claims",
        description="What the tool of the preset says that this costs; without a preset, the tools with this noise and "
        "this test.",
        examples=[[]],
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
    "preset": {
        "summary": "A tool, and its claim",
        "description": "OpenDP keeps a noisy count equal to the threshold, and its claim leaves that out.",
        "value": {
            "preset": "opendp-laplace",
            "noise": {"scale": 10},
            "c_u": 5,
            "threshold": 150,
            "epsilon": 0.5,
        },
    },
    "chosen": {
        "summary": "A tool that is given ε and δ",
        "description": "python-dp chooses noise and threshold. Its Gaussian strategy claims twice the δ that it costs.",
        "value": {"preset": "python-dp-gaussian", "c_u": 10, "epsilon": 1, "delta": 1e-6},
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
