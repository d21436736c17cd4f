"""The privacy of a sparse histogram that another engine makes."""

from dataclasses import dataclass
from typing import Any

from gsh.accounting.engines.curves import (
    MOST_C_U,
    MOST_EPSILON,
    EnginePoint,
    as_mechanism,
    at_delta,
    at_epsilon,
    histogram_of,
)
from gsh.accounting.engines.gaussian import GaussianNoise
from gsh.accounting.engines.noise import AnyKind, Keeps, NoiseKind
from gsh.accounting.engines.presets import Claim, Preset, claims_of, preset_named
from gsh.accounting.engines.scan import Histogram
from gsh.accounting.mechanism import Mechanism
from gsh.arguments import Integer, Real, integer, real
from gsh.errors import InvalidParameter
from gsh.library.privacy import asked_points

__all__ = ["Claim", "EnginePrivacy", "engine", "method_of"]


@dataclass(frozen=True, slots=True)
class EnginePrivacy:
    """One certified point (ε, δ) of the privacy curve of an engine; every δ is rounded up, to within 10⁻¹¹ of it."""

    epsilon: float
    """Infinite if no finite ε exists at the δ asked for."""
    delta: float
    delta_infinite: float
    """The probability that a group of one user alone is published."""
    delta_noise: float
    """The cost at ε of the noise on groups that exist without the user."""
    groups_at_tau: int | None
    """How many of a user's groups are at τ in the worst split. The others are far above the threshold. None for a
    bound on all splits."""
    is_exact: bool
    """Whether δ is that of the engine. If not, it is a bound above it."""
    method: str
    """How δ was found, in words."""
    mechanism: Mechanism | None
    """The mechanism of this library with the same certificate; None if the noise is not Gaussian."""
    noise: AnyKind
    scale: float
    threshold: float | None
    """None if the tool has no threshold."""
    keeps: Keeps
    claims: tuple[Claim, ...]
    """What the tool of the preset says that this costs; without a preset, the tools with this noise and this test."""
    charge_refusal: str | None
    """Why no budget can be charged for it; None if one can, for ``mechanism``."""

    def charged(self, pointer: str) -> Mechanism:
        """The mechanism that a budget is charged for. An error at the pointer if there is none."""
        if self.mechanism is None:
            raise InvalidParameter(pointer, f"must be of Gaussian noise and a threshold: {self.charge_refusal}")
        return self.mechanism


def engine(
    *,
    preset: str | None = None,
    noise: NoiseKind | None = None,
    scale: Real | None = None,
    c_u: Integer,
    threshold: Real | None = None,
    tau: Integer = 1,
    keeps: Keeps | None = None,
    l_inf: Integer | None = None,
    l1: Integer | None = None,
    l2: Real | None = None,
    seed: Integer | None = None,
    epsilon: Real | None = None,
    delta: Real | None = None,
) -> EnginePrivacy:
    """What a sparse histogram costs that another engine makes: certified δ at ε, or ε at δ.  [docs/math/engines.md]

    A user is counted once in at most ``c_u`` groups. Groups with fewer than ``tau`` users are dropped. The engine adds
    ``noise`` to each count, and keeps it if it is ≥ or > the ``threshold``. ``scale`` is σ of the three Gaussian
    noises, b of Laplace noise, and for ``geometric`` noise P(z) ∝ e^(−|z|/scale). Published counts and the test must
    use the same draw, and every group a draw of its own.

    A ``preset`` is a tool (``gsh audit --list`` lists them): it knows noise and test, and the answer has its claim.
    Tools that choose noise and threshold themselves take ``epsilon`` and ``delta``.

    An engine may count rows, several of one user in a group: at most ``l_inf`` in one group, ``l1`` in all of them, or
    with the Euclidean norm ``l2``. The δ is then a bound. ``seed`` is refused: there is no privacy with a seed.

    >>> import gsh
    >>> found = gsh.engine(preset="opendp-laplace", scale=10, c_u=5, threshold=150, epsilon=0.5)
    >>> f"{found.delta:.5g}", found.is_exact, f"{found.claims[0].delta:.5g}"
    ('8.8741e-07', True, '8.0296e-07')
    >>> presto = gsh.engine(noise="rounded-gaussian", scale=20, c_u=10, threshold=120, epsilon=1)
    >>> presto.mechanism.tau_star
    119.5
    """
    if seed is not None:
        detail = "must be omitted: with a seed groups have the same noise, so that differences of counts are exact"
        raise InvalidParameter("seed", f"{detail}, and there is no privacy")
    tool = None if preset is None else preset_named(preset)
    given: dict[str, Any] = {
        "noise": noise,
        "scale": scale,
        "threshold": threshold,
        "keeps": keeps,
        "l_inf": l_inf,
        "l1": l1,
        "l2": l2,
    }
    if tool is not None and tool.chosen is not None:
        return _chosen(tool, given, c_u, tau, epsilon, delta)
    if tool is not None:
        given |= _of_tool(tool, given, integer("c_u", c_u))
    for name in ("noise", "scale", "threshold"):
        if given[name] is None:
            raise InvalidParameter(name, "is missing")
    given["keeps"] = given["keeps"] or ">="
    histogram = histogram_of(c_u=c_u, tau=tau, **given)
    name, (value,), _ = asked_points(epsilon, delta)
    point = at_epsilon(histogram, value) if name == "epsilon" else at_delta(histogram, value)
    if tool is None:
        return _answer(histogram, point, claims_of(histogram, point.epsilon))
    claim = tool.claim(histogram, point.epsilon)
    return _answer(histogram, point, () if claim is None else (claim,))


def _of_tool(tool: Preset, given: dict[str, Any], c_u: int) -> dict[str, Any]:
    """What the preset says; another value is an error."""
    known: dict[str, Any] = {"noise": tool.noise, "keeps": tool.keeps}
    if tool.claimed is None and given["keeps"] is not None:  # a condition that its users write
        known["keeps"] = given["keeps"]
    for name, value in known.items():
        if given[name] not in (None, value):
            raise InvalidParameter(name, f"must be omitted or {value}: the preset {tool.name} has it")
    if tool.counts_rows and given["l_inf"] is None:
        return known | {"l_inf": c_u if given["l1"] is None else given["l1"], "l1": given["l1"] or c_u}
    return known


def _chosen(
    tool: Preset, given: dict[str, Any], c_u: Integer, tau: Integer, epsilon: Real | None, delta: Real | None
) -> EnginePrivacy:
    """A tool that is given ε and δ: the certified δ at this ε, and its claim."""
    for name, value in given.items():
        if value is not None:
            raise InvalidParameter(name, f"must be omitted: {tool.tool} chooses it from epsilon and delta")
    if epsilon is None or delta is None:
        raise InvalidParameter(
            "epsilon" if epsilon is None else "delta", f"is missing: {tool.tool} is given epsilon and delta"
        )
    at, promised, groups, users = (
        real("epsilon", epsilon),
        real("delta", delta),
        integer("c_u", c_u),
        integer("tau", tau),
    )
    if not 0 < at <= MOST_EPSILON:
        raise InvalidParameter("epsilon", f"must be greater than 0 and at most {MOST_EPSILON:g}")
    if not 1e-300 <= promised < 1:
        raise InvalidParameter("delta", "must be from 1e-300 to less than 1")
    if not 1 <= groups <= MOST_C_U:
        raise InvalidParameter("c_u", f"must be an integer from 1 to {MOST_C_U}")
    if not 1 <= users <= 2**53:
        raise InvalidParameter("tau", "must be an integer from 1 to 2^53")
    assert tool.chosen is not None
    histogram = tool.chosen(at, promised, groups, users)
    claim = Claim(tool.name, tool.tool, tool.version, promised, tool.source)
    return _answer(histogram, at_epsilon(histogram, at), (claim,))


def _answer(histogram: Histogram, point: EnginePoint, claims: tuple[Claim, ...]) -> EnginePrivacy:
    has_threshold = histogram.noise.kind != "truncated-geometric"
    return EnginePrivacy(
        epsilon=point.epsilon,
        delta=point.delta,
        delta_infinite=point.delta_infinite,
        delta_noise=point.delta_noise,
        groups_at_tau=point.groups_at_tau,
        is_exact=point.is_exact,
        method=method_of(histogram, point),
        mechanism=as_mechanism(histogram),
        noise=histogram.noise.kind,
        scale=histogram.noise.scale,
        threshold=float(histogram.threshold) if has_threshold else None,
        keeps=histogram.keeps,
        claims=claims,
        charge_refusal=_charge_refusal(histogram),
    )


def _charge_refusal(histogram: Histogram) -> str | None:
    if as_mechanism(histogram) is not None:
        return None
    if not histogram.reach.is_counted_once:
        return "a budget adds up what users cost who are counted once in a group, and this engine counts rows"
    if not isinstance(histogram.noise, GaussianNoise):
        return f"a budget adds up mu_squared and hazard, which {histogram.noise.kind} noise does not have"
    return "a budget adds up mu_squared and hazard, and the threshold is not above tau"


_METHODS = {
    "gaussian": "closed form: the larger of δ_infinite and the δ of the Gaussian mechanism",
    "rounded-gaussian": "closed form with τ* at the edge of rounding; the δ of the noise is that before rounding",
    "discrete-gaussian": "worst split of the groups, with sums of discrete Gaussian probabilities",
    "laplace": "worst split of the groups, with the loss of all rows as a finite sum",
    "rounded-laplace": "worst split of the groups, with τ* at the edge of rounding, and the loss before rounding",
    "geometric": "worst split of the groups, with binomial losses",
    "truncated-geometric": "every group has the accident of the threshold and a loss of ±ε/C_u",
}
_LAPLACE_BOUND = (
    "worst split of the groups, with randomised response in place of the loss of so many rows: an upper bound"
)
_ROWS_BOUND = (
    "the accident of the threshold and the noise of all rows together: an upper bound for every split of the rows"
)


def method_of(histogram: Histogram, point: EnginePoint) -> str:
    """How δ was found, in words."""
    if not histogram.reach.is_counted_once:
        return _ROWS_BOUND
    if histogram.noise.kind == "laplace" and not point.is_exact:
        return _LAPLACE_BOUND
    return _METHODS[histogram.noise.kind]
