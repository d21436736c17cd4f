"""Releases for platforms that add up their costs with the package dp-accounting."""

from typing import TYPE_CHECKING, Any, NamedTuple

from gsh.accounting.accountings import delta_infinite
from gsh.accounting.mechanism import checked_mechanism, mu_ball, release_of
from gsh.accounting.numerics.balls import round_down, round_up
from gsh.library.engines import EnginePrivacy
from gsh.library.privacy import Released, is_several_tables

if TYPE_CHECKING:
    from dp_accounting import GaussianDpEvent

__all__ = ["GaussianAndDelta", "dp_event"]


class GaussianAndDelta(NamedTuple):
    """What a release costs: a Gaussian, and the probability of an accident."""

    event: "GaussianDpEvent"
    """For an accountant of dp-accounting. Its noise multiplier is 1/μ, rounded down."""
    delta_infinite: float
    """To be added to the δ of the accountant, which has no event for it. Rounded up."""


def dp_event(released: "Released | EnginePrivacy", /) -> GaussianAndDelta:
    """What a release costs, as a ``DpEvent`` of dp-accounting and a δ. The extra ``dp-accounting`` installs it.

    Any number of releases, also if each is chosen after the results of the earlier ones, have at most the δ of the
    accountant for their events and all δ_infinite together [docs/math/composition.md]. For one release this is up to
    twice too much: ``gsh.exact`` finds δ itself.

    >>> import gsh
    >>> event, delta = gsh.dp_event(gsh.Mechanism(c_u=1, tau_star=20, sigma=4))
    >>> event, f"{delta:.4g}"
    (GaussianDpEvent(noise_multiplier=4.0), '1.017e-06')
    """
    if isinstance(released, EnginePrivacy):
        released = released.charged("released")
    listed: list[Any] = list(released.values()) if is_several_tables(released) else [released]
    release = release_of([checked_mechanism("released", each) for each in listed])
    from dp_accounting import GaussianDpEvent  # noqa: PLC0415 - optional

    (delta,) = round_up(lambda: [delta_infinite(release)], [1.0])
    return GaussianAndDelta(GaussianDpEvent(round_down(lambda: 1 / mu_ball(release))), delta)
