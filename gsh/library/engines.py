"""The privacy of a sparse histogram that another engine makes."""

from dataclasses import dataclass

from gsh.accounting.engines.curves import EnginePoint, as_mechanism, at_delta, at_epsilon, histogram_of
from gsh.accounting.engines.noise import Keeps, NoiseKind
from gsh.accounting.engines.scan import Histogram
from gsh.accounting.mechanism import Mechanism
from gsh.arguments import Integer, Real
from gsh.library.privacy import asked_points

__all__ = ["EnginePrivacy", "engine", "method_of"]


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
    groups_at_tau: int
    """How many of a user's groups are at τ in the worst split. The others are far above the threshold."""
    is_exact: bool
    """Whether δ is that of the engine. If not, it is a bound above it."""
    method: str
    """How δ was found, in words."""
    mechanism: Mechanism | None
    """The mechanism of this library with the same certificate; None if the noise is not Gaussian."""


def engine(
    *,
    noise: NoiseKind,
    scale: Real,
    c_u: Integer,
    threshold: Real,
    tau: Integer = 1,
    keeps: Keeps = ">=",
    epsilon: Real | None = None,
    delta: Real | None = None,
) -> EnginePrivacy:
    """What a sparse histogram costs that another engine makes: certified δ at ε, or ε at δ.  [docs/math/engines.md]

    A user is counted once in at most ``c_u`` groups. Groups with fewer than ``tau`` users are dropped. The engine adds
    ``noise`` to each count, and keeps it if it is ≥ or > the ``threshold``. ``scale`` is σ of the three Gaussian
    noises, b of Laplace noise, and for ``geometric`` noise P(z) ∝ e^(−|z|/scale). Published counts and the test must
    use the same draw, and every group a draw of its own.

    >>> import gsh
    >>> found = gsh.engine(noise="geometric", scale=10, c_u=5, threshold=150, epsilon=0.5)
    >>> f"{found.delta:.5g}", found.is_exact
    ('8.8741e-07', True)
    >>> presto = gsh.engine(noise="rounded-gaussian", scale=20, c_u=10, threshold=120, epsilon=1)
    >>> presto.mechanism.tau_star
    119.5
    """
    histogram = histogram_of(noise=noise, scale=scale, c_u=c_u, threshold=threshold, tau=tau, keeps=keeps)
    name, (value,), _ = asked_points(epsilon, delta)
    point = at_epsilon(histogram, value) if name == "epsilon" else at_delta(histogram, value)
    return EnginePrivacy(
        epsilon=point.epsilon,
        delta=point.delta,
        delta_infinite=point.delta_infinite,
        delta_noise=point.delta_noise,
        groups_at_tau=point.groups_at_tau,
        is_exact=point.is_exact,
        method=method_of(histogram, point),
        mechanism=as_mechanism(histogram),
    )


_METHODS = {
    "gaussian": "closed form: the larger of δ_infinite and the δ of the Gaussian mechanism",
    "rounded-gaussian": "closed form with τ* at the edge of rounding; the δ of the noise is that before rounding",
    "discrete-gaussian": "worst split of the groups, with sums of discrete Gaussian probabilities",
    "laplace": "worst split of the groups, with the loss of all rows as a finite sum",
    "geometric": "worst split of the groups, with binomial losses",
}
_LAPLACE_BOUND = (
    "worst split of the groups, with randomised response in place of the loss of so many rows: an upper bound"
)


def method_of(histogram: Histogram, point: EnginePoint) -> str:
    """How δ was found, in words."""
    if histogram.noise.kind == "laplace" and not point.is_exact:
        return _LAPLACE_BOUND
    return _METHODS[histogram.noise.kind]
