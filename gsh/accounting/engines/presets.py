"""Tools that run sparse histograms: what each does, what it claims, and where that was read.  [docs/math/engines.md]

Some tools are given the scale of the noise and the threshold, and claim a δ for them. Others are given ε and δ, and
choose the noise and the threshold. ``python -m benchmarks.engines`` compares the claims with the tools themselves.

    b = C/ε,  δ₀ = 1 − (1 − δ)^(1/C),  T = τ − b ln(2δ₀)                           Laplace strategies
    σ = √C/μ,  f(μ, ε) = δ/2,  δ₀ = 1 − (1 − δ/2)^(1/C),  T = τ + σ Φ⁻¹(1 − δ₀)    Gaussian strategies
    t = P(Z > T − 1),  δ = 1 − (1 − t)^C                                           OpenDP, for Laplace noise at ε = C/b
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Literal

from flint import arb

from gsh.accounting import gaussian, zcdp
from gsh.accounting.engines.curves import histogram_of, selection_of
from gsh.accounting.engines.gaussian import GaussianNoise
from gsh.accounting.engines.geometric import GeometricNoise
from gsh.accounting.engines.laplace import LaplaceNoise
from gsh.accounting.engines.noise import CountNoise, Keeps, NoiseKind
from gsh.accounting.engines.scan import Histogram
from gsh.accounting.numerics.balls import approximate
from gsh.errors import InvalidParameter

__all__ = ["PRESETS", "Claim", "Preset", "PresetName", "claims_of", "preset_named"]


PresetName = Literal[
    "opendp-gaussian",
    "opendp-gaussian-float",
    "opendp-laplace",
    "opendp-laplace-float",
    "python-dp-laplace",
    "python-dp-gaussian",
    "python-dp-truncated-geometric",
    "pipelinedp-laplace",
    "pipelinedp-gaussian",
    "pipelinedp-truncated-geometric",
    "tumult",
    "presto",
    "zetasql",
]


@dataclass(frozen=True, slots=True)
class Claim:
    """What a tool says that the same parameters cost."""

    preset: PresetName
    tool: str
    version: str
    delta: float
    """δ at the ε that was asked for."""
    source: str
    """The function, and where it is."""


@dataclass(frozen=True, slots=True)
class Preset:
    """A tool. ``chosen`` is there if it is given ε and δ; ``claimed`` if it states a δ for a scale and a threshold."""

    name: PresetName
    tool: str
    version: str
    source: str
    note: str
    noise: NoiseKind | None
    """None: keys alone are published."""
    keeps: Keeps
    claimed: Callable[[Histogram, float], float | None] | None = None
    chosen: Callable[[float, float, int, int], Histogram] | None = None
    counts_rows: bool = False
    """Whether the tool counts rows: c_u of them in all, in any groups."""

    def fits(self, histogram: Histogram) -> bool:
        """Whether the tool has this noise and this test."""
        same_noise = histogram.noise.kind == self.noise and histogram.keeps == self.keeps
        return self.claimed is not None and same_noise and histogram.tau == 1 and not self.counts_rows

    def claim(self, histogram: Histogram, epsilon: float) -> Claim | None:
        """Its claim at ε, if it makes one."""
        delta = None if self.claimed is None or math.isinf(epsilon) else self.claimed(histogram, epsilon)
        return None if delta is None else Claim(self.name, self.tool, self.version, delta, self.source)


def preset_named(name: str) -> Preset:
    if name not in PRESETS:
        raise InvalidParameter("preset", f"must be one of {', '.join(PRESETS)}")
    return PRESETS[name]  # type: ignore[index]


def claims_of(histogram: Histogram, epsilon: float) -> tuple[Claim, ...]:
    """What the tools with this noise and this test claim."""
    if not histogram.reach.is_counted_once:
        return ()
    found = (each.claim(histogram, epsilon) for each in PRESETS.values() if each.fits(histogram))
    return tuple(each for each in found if each is not None)


def _opendp_laplace(histogram: Histogram, epsilon: float) -> float | None:
    """The tail beyond T − 1: the mass at the threshold itself is missing if the noise has integers."""
    if Fraction(epsilon) * Fraction(histogram.noise.scale) < histogram.c_u:
        return None
    noise = LaplaceNoise if histogram.noise.kind == "laplace" else GeometricNoise
    return float(approximate(lambda: _shown(histogram, noise(histogram.noise.scale))))


def _shown(histogram: Histogram, noise: CountNoise) -> arb:
    """1 − (1 − P(Z > T − 1))^C."""
    return -(histogram.c_u * (-noise.published(histogram.threshold - 1, ">")).log1p()).expm1()


def _opendp_gaussian(histogram: Histogram, epsilon: float) -> float | None:
    """The δ of zCDP with ρ = C/2σ², and the tail of continuous noise."""

    def claimed() -> arb:
        scale = histogram.noise.scale
        return zcdp.delta(arb(histogram.c_u).sqrt() / arb(scale), arb(epsilon)) + _shown(
            histogram, GaussianNoise(scale)
        )

    return min(float(approximate(claimed)), 1.0) if epsilon > 0 else None


def _tumult(histogram: Histogram, epsilon: float) -> float | None:
    """D e^(D/α) P(Z ≥ T − 1) at ε = D/α; for one row without the first two factors."""
    rows, scale = histogram.reach.l1, histogram.noise.scale
    if Fraction(epsilon) * Fraction(scale) < rows:
        return None
    alone = float(approximate(lambda: GeometricNoise(scale).published(histogram.threshold - 1, ">=")))
    return alone if rows == 1 else min(1.0, rows * math.exp(min(rows / scale, 700.0)) * alone)


def _in_one_group(delta: float, c_u: int) -> float:
    """δ₀ = 1 − (1 − δ)^(1/C)."""
    return -math.expm1(math.log1p(-delta) / c_u)


def _laplace_threshold(epsilon: float, delta: float, c_u: int, tau: int) -> tuple[float, float]:
    scale, alone = c_u / epsilon, _in_one_group(delta, c_u)
    distance = -math.log(2 * alone) if alone <= 0.5 else math.log(2 * (1 - alone))
    return scale, tau + scale * distance


def _laplace(epsilon: float, delta: float, c_u: int, tau: int) -> Histogram:
    scale, threshold = _laplace_threshold(epsilon, delta, c_u, tau)
    return histogram_of(noise="laplace", scale=scale, c_u=c_u, threshold=threshold, tau=tau, keeps=">")


def _gaussian(epsilon: float, delta: float, c_u: int, tau: int) -> Histogram:
    half = delta / 2
    sigma = float(approximate(lambda: arb(c_u).sqrt() / gaussian.mu_at(arb(epsilon), arb(half))))
    quantile = float(approximate(lambda: gaussian.quantile(arb(_in_one_group(half, c_u)))))
    threshold = tau + sigma * quantile
    return histogram_of(noise="gaussian", scale=sigma, c_u=c_u, threshold=threshold, tau=tau, keeps=">")


def _truncated_geometric(epsilon: float, delta: float, c_u: int, tau: int) -> Histogram:
    return selection_of(scale=c_u / epsilon, delta=_in_one_group(delta, c_u), c_u=c_u, tau=tau)


def _zetasql(epsilon: float, delta: float, c_u: int, tau: int) -> Histogram:
    scale, threshold = _laplace_threshold(epsilon, delta, c_u, 1)
    whole = math.ceil(threshold) + tau - 1
    return histogram_of(noise="rounded-laplace", scale=scale, c_u=c_u, threshold=whole, tau=tau, keeps=">=")


_OPENDP = "0.16.0"
_OPENDP_NOTE = "Integer counts. The comparison keeps a noisy count equal to the threshold, and the claim leaves it out."
_OPENDP_FLOAT_NOTE = "Counts as floats: noise on so fine a grid that a tie has no weight."
_STRATEGIES: tuple[tuple[Any, ...], ...] = (
    ("laplace", "laplace", _laplace, "Laplace noise, kept above T = τ − (C/ε) ln 2δ₀."),
    (
        "gaussian",
        "gaussian",
        _gaussian,
        "Half of δ is for the noise and half for the threshold; the larger of them counts.",
    ),
    ("truncated-geometric", None, _truncated_geometric, "Publishes keys alone. Counts need noise of their own."),
)
_PYTHON_DP_SOURCE = (
    "cc/algorithms/partition-selection.h of google/differential-privacy; pydp.algorithms.partition_selection"
)
_PIPELINE_DP_SOURCE = "pipeline_dp/partition_selection.py, which calls python-dp"


def _strategies(prefix: str, tool: str, version: str, source: str) -> list[Preset]:
    return [
        Preset(f"{prefix}-{name}", tool, version, source, note, noise, ">", chosen=chosen)  # type: ignore[arg-type]
        for name, noise, chosen, note in _STRATEGIES
    ]


PRESETS: Final[Mapping[PresetName, Preset]] = {
    each.name: each
    for each in (
        Preset(
            "opendp-gaussian",
            "OpenDP",
            _OPENDP,
            "opendp.measurements.make_gaussian_threshold, integers",
            _OPENDP_NOTE,
            "discrete-gaussian",
            ">=",
            claimed=_opendp_gaussian,
        ),
        Preset(
            "opendp-gaussian-float",
            "OpenDP",
            _OPENDP,
            "opendp.measurements.make_gaussian_threshold, floats",
            _OPENDP_FLOAT_NOTE,
            "gaussian",
            ">=",
            claimed=_opendp_gaussian,
        ),
        Preset(
            "opendp-laplace",
            "OpenDP",
            _OPENDP,
            "opendp.measurements.make_laplace_threshold, integers",
            _OPENDP_NOTE,
            "geometric",
            ">=",
            claimed=_opendp_laplace,
        ),
        Preset(
            "opendp-laplace-float",
            "OpenDP",
            _OPENDP,
            "opendp.measurements.make_laplace_threshold, floats",
            _OPENDP_FLOAT_NOTE,
            "laplace",
            ">=",
            claimed=_opendp_laplace,
        ),
        *_strategies("python-dp", "python-dp", "1.1.5", _PYTHON_DP_SOURCE),
        *_strategies("pipelinedp", "PipelineDP", "0.3.1", _PIPELINE_DP_SOURCE),
        Preset(
            "tumult",
            "Tumult Core",
            "0.20.0",
            "tmlt.core.measurements.spark_measurements.GeometricPartitionSelection",
            "Counts rows: c_u is the number of rows of a user, in one group or in several. The claim is that of one "
            "row by group privacy.",
            "geometric",
            ">=",
            claimed=_tumult,
            counts_rows=True,
        ),
        Preset(
            "presto",
            "Presto and Velox",
            "commits c20175e, 26dfdab",
            "noisy_count_gaussian: NoisyCountGaussianColumnAggregation.java, functions/noisy.rst",
            "With HAVING. The noisy count is rounded to an integer, so that a threshold of T is one of T − 1/2. No δ "
            "is claimed. With random_seed all groups have the same noise, and there is no privacy.",
            "rounded-gaussian",
            ">=",
        ),
        Preset(
            "zetasql",
            "ZetaSQL",
            "commit 10866fc",
            "zetasql/public/anonymization_utils.cc, zetasql/resolved_ast/gen_resolved_ast.py",
            "A noisy integer COUNT(DISTINCT user) is kept if it is at least the threshold of the Laplace strategy, "
            "rounded up. Read, not run. Published columns have noise of their own, with the rest of ε.",
            "rounded-laplace",
            ">=",
            chosen=_zetasql,
        ),
    )
}
"""The tools by name."""
