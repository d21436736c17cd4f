"""What is known of a real release, and how it reads as the Gaussian sparse histogram mechanism."""

from dataclasses import dataclass, replace

from gsh.library.privacy import Privacy, exact
from gsh.library.targets import Calibration, calibrate

__all__ = ["Fact", "RealRelease", "Source", "Translation"]


@dataclass(frozen=True, slots=True)
class Source:
    """A public document."""

    title: str
    authors: str
    year: int | None
    """None: the document has no date."""
    address: str


@dataclass(frozen=True, slots=True)
class Fact:
    """What a source says, in our words."""

    text: str
    source: Source


@dataclass(frozen=True, slots=True)
class Translation:
    """The arguments of ``gsh.calibrate`` that come closest to the release. None: solve for this parameter.

    The release itself is another mechanism, or has other keys: ``differs`` says how.
    """

    epsilon: float
    delta: float
    c_u: int
    summary: str
    """What of it is ours, in one sentence."""
    ours: tuple[str, ...]
    """What we chose or computed."""
    differs: tuple[str, ...]
    """What the release did in another way."""
    tau: int = 1
    sigma: float | None = None
    tau_star: float | None = None

    def calibrate(self) -> Calibration:
        """The whole mechanism: the omitted parameters solved for, as ``gsh.calibrate`` does."""
        return calibrate(
            epsilon=self.epsilon,
            delta=self.delta,
            c_u=self.c_u,
            tau=self.tau,
            sigma=self.sigma,
            tau_star=self.tau_star,
        )

    def least_gap(self) -> float:
        """The smallest τ* − τ at the σ of the mechanism, also if τ* is given."""
        least = replace(self, sigma=self.calibrate().mechanism.sigma, tau_star=None).calibrate().mechanism
        return least.tau_star - least.tau


@dataclass(frozen=True, slots=True)
class RealRelease:
    """A release that an organisation has made: its published parameters, each with its source, and our translation."""

    name: str
    organisation: str
    year: int
    privacy_unit: str
    publishes: str
    summary: str
    """What is known, in one sentence."""
    known: tuple[Fact, ...]
    translation: Translation
    threshold: float | None
    """The count from which on they publish. None: they have no threshold on these counts."""

    def at_their_threshold(self) -> Privacy | None:
        """The cost of the translated mechanism if τ* were their threshold. None: they have none."""
        if self.threshold is None:
            return None
        mechanism = replace(self.translation.calibrate().mechanism, tau_star=self.threshold)
        return exact(mechanism, epsilon=self.translation.epsilon)
