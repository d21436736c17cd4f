"""The (ε, δ) that a certificate is quoted by: the stated point, or one from its curve."""

from typing import NamedTuple

from flint import arb

from app.releases.schemas.certificate import Certificate
from gsh.accounting import gaussian
from gsh.accounting.numerics.balls import round_up

__all__ = ["QuotedPoint", "quoted_point"]


class QuotedPoint(NamedTuple):
    """One point of the curve. ``is_stated`` says whether the request asked for it."""

    epsilon: float
    delta: float
    is_stated: bool


def quoted_point(certificate: Certificate) -> QuotedPoint:
    """The stated point; without one, δ at the budget's ε, or at ε = 1 if there is no budget.

    f(μ, ε) grows with μ, and the certificate's μ is rounded up. So δ is not too small.
    """
    if certificate.epsilon is not None and certificate.delta is not None:
        return QuotedPoint(certificate.epsilon, certificate.delta, is_stated=True)
    epsilon = 1.0 if certificate.budget is None else certificate.budget.stated.epsilon
    (noise,) = round_up(lambda: [gaussian.delta(arb(certificate.mu), arb(epsilon))], ceilings=(1.0,))
    return QuotedPoint(epsilon, max(certificate.delta_infinite, noise), is_stated=False)
