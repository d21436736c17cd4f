"""The point of the privacy curve that a certificate states: the one that the request asks for."""

from typing import NamedTuple

from app.releases.schemas.certified import AnyCertified
from gsh.accounting.accountings import EXACT, at_delta, at_epsilon
from gsh.accounting.composition import NOTHING, Release, cost_of, delta_at, epsilon_at
from gsh.accounting.mechanism import PlainGaussian
from gsh.errors import InfeasibleTarget, InvalidParameter

__all__ = ["StatedPoint", "stated_point"]


class StatedPoint(NamedTuple):
    """The stated point of the curve, and the two numbers that the curve follows from."""

    epsilon: float | None
    delta: float | None
    mu: float
    delta_infinite: float


def stated_point(asked: AnyCertified, mechanism: Release) -> StatedPoint:
    """δ at the asked ε, or the smallest ε at the asked δ, or neither; every number is rounded up."""
    if isinstance(mechanism, PlainGaussian):
        return _plain_point(asked, mechanism)
    if asked.delta is None:
        point = at_epsilon(EXACT, mechanism, asked.epsilon or 0.0)
        delta = None if asked.epsilon is None else point.delta
        return StatedPoint(asked.epsilon, delta, point.mu, point.delta_infinite)
    point = at_delta(EXACT, mechanism, asked.delta)
    if point.epsilon is None:
        raise InfeasibleTarget("delta", f"must be at least {point.delta_infinite}: below it no finite ε exists")
    return StatedPoint(point.epsilon, point.delta, point.mu, point.delta_infinite)


def _plain_point(asked: AnyCertified, mechanism: PlainGaussian) -> StatedPoint:
    spent = NOTHING.plus(mechanism, cost_of(mechanism))
    epsilon, delta = asked.epsilon, asked.delta
    if epsilon is not None:
        delta = delta_at(spent, epsilon)
    elif delta is not None:
        epsilon = epsilon_at(spent, delta)
        if epsilon is None:
            raise InvalidParameter("sigma", "must be large enough that ε is a finite double")
    return StatedPoint(epsilon, delta, mechanism.mu, 0.0)
