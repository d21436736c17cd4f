"""Real releases with their published parameters and sources.  [docs/real-releases.md]

A fact is here only if a public document says it. What we computed or chose is in the translation.
"""

import math
from dataclasses import dataclass, replace

from gsh.library.privacy import Privacy, exact
from gsh.library.targets import Calibration, calibrate

__all__ = ["Fact", "RealRelease", "Source", "Translation", "real_releases"]


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


_REGISTRY = "https://github.com/opendp/deployments-registry-data/blob"


def _registry(entry: str, commit: str, file: str) -> Source:
    """An entry of the registry in the version that was read."""
    address = f"{_REGISTRY}/{commit}/deployments/{file}.yaml"
    return Source(f"Differential Privacy Deployments Registry: {entry}", "OpenDP", None, address)


_THE_PAPER = Source(
    "Exact Privacy Analysis of the Gaussian Sparse Histogram Mechanism",
    "Karrer, Kifer, Wilkins, Zhang",
    2022,
    "https://arxiv.org/abs/2202.01100",
)
_README = Source(
    "Pageviews Differential Privacy — Current",
    "Wikimedia Foundation",
    2023,
    "https://analytics.wikimedia.org/published/datasets/country_project_page/00_README.html",
)
_WIKIMEDIA_PAPER = Source(
    "Publishing Wikipedia usage data with strong privacy guarantees",
    "Adeleye, Berghel, Desfontaines and others",
    2023,
    "https://arxiv.org/abs/2308.16298",
)
_WIKIMEDIA_ENTRY = _registry(
    "Current Pageviews", "017edf7af6ad6d4448fc0ac9c1850423ad353bc4", "wikimedia_current_usage_data"
)
_CODEBOOK = Source(
    "Facebook Privacy-Protected Full URLs Data Set",
    "Messing, DeGregorio, Hillenbrand and others",
    2020,
    "https://doi.org/10.7910/DVN/TDOAPG",
)
_URLS_ENTRY = _registry("User-URL Privacy Dataset", "017edf7af6ad6d4448fc0ac9c1850423ad353bc4", "user_url_privacy")
_LIST = Source(
    "A list of real-world uses of differential privacy",
    "Desfontaines",
    2021,
    "https://desfontain.es/privacy/real-world-differential-privacy.html",
)
_MOBILITY_PAPER = Source(
    "Google COVID-19 Community Mobility Reports: Anonymization Process Description",
    "Aktay, Bavadekar, Cossoul and others",
    2020,
    "https://arxiv.org/abs/2004.04145",
)
_MOBILITY_ENTRY = _registry(
    "Community Mobility Place Visits", "03860b3310066fd2fc1a79d247eb0ad772af7789", "google_mobility"
)
_SYMPTOMS_PAPER = Source(
    "Google COVID-19 Search Trends Symptoms Dataset: Anonymization Process Description",
    "Bavadekar, Dai, Davis and others",
    2020,
    "https://arxiv.org/abs/2009.01265",
)
_SYMPTOMS_ENTRY = _registry(
    "COVID-19 Search Trends Symptoms", "0c38378084fc7c1b3b5ccdb98fbef7343fcf1dc9", "covid19_search_trends_symptoms"
)

_PAGES, _RHO = 10, 0.015  # of Wikimedia: pages per device and day, and the budget in zCDP

_WIKIMEDIA = RealRelease(
    name="Wikimedia pageviews",
    organisation="Wikimedia Foundation, with Tumult Labs",
    year=2023,
    privacy_unit="one device on one day",
    publishes="Views per country, project and page, for every day since 6 February 2023.",
    summary="At most 10 pages per device and day, Gaussian noise with ρ = 0.015, rows above 90.",
    known=(
        Fact("A device counts with the first 10 different pages of a day.", _README),
        Fact("The noise is Gaussian. Its budget in zero-concentrated differential privacy is ρ = 0.015.", _README),
        Fact("The foundation calls this roughly ε = 1 and δ = 1e-7.", _README),
        Fact("Only rows with more than 90 noisy views are published.", _README),
        Fact("All keys are listed first, about 125 million, and each gets noise.", _README),
        Fact("The keys are all published countries with all pages of more than 150 views in the world.", _README),
        Fact("Since 15 February 2024, countries at more risk are published too, with other parameters.", _README),
        Fact("The noise is the Gaussian's discrete form, on integers.", _WIKIMEDIA_ENTRY),
        Fact("The data is published since June 2023.", _WIKIMEDIA_PAPER),
    ),
    translation=Translation(
        epsilon=1,
        delta=1e-7,
        c_u=_PAGES,
        sigma=math.sqrt(_PAGES / (2 * _RHO)),
        summary="σ from ρ, and a threshold that also protects who is in the table, because no keys are listed.",
        ours=(
            "σ = √(C_u/2ρ), because a device adds 1 to at most 10 counts.",
            "We do not use the noise scale of 10 that the README also names.",
            "We ask the threshold, too, for δ = 1e-7. In the release it costs nothing.",
            "τ = 1: nothing is dropped before noise.",
        ),
        differs=(
            "Their keys are pages with more than 150 views in the world. The release counts this choice among "
            "its unprotected quantities. So their threshold only removes noise.",
            "This mechanism lists no keys. It sees only pages that were viewed, and its threshold hides a device that "
            "is alone on a page.",
        ),
    ),
    threshold=90,
)

_FACEBOOK = RealRelease(
    name="Facebook URLs",
    organisation="Facebook, with Social Science One",
    year=2020,
    privacy_unit="one action of one user on one URL",
    publishes="Users who viewed, shared or otherwise used each URL, by demographic group, from January 2017 on.",
    summary="ρ = 0.0052 and ε up to 0.35 at δ = 1e-5 for each type of action; URLs with over 100 public shares.",
    known=(
        Fact("A URL is included if it was shared publicly more than 100 times, with Laplace(5) noise.", _CODEBOOK),
        Fact("For each type of action ρ is 0.0052. For all types together it is 0.0728.", _URLS_ENTRY),
        Fact("At δ = 1e-5, ε is between 0.34 and 0.35 for one type of action, and 1.453 for all.", _URLS_ENTRY),
        Fact("The guarantee is for an action. The parameters are chosen to protect 99 % of users.", _LIST),
        Fact("The case study of this mechanism's paper counts users per URL: C_u = 51914, σ = 2228.", _THE_PAPER),
    ),
    translation=Translation(
        epsilon=0.35,
        delta=1e-5,
        c_u=51914,
        sigma=2228,
        summary="C_u and σ from the case study of this mechanism's paper, for one type of action.",
        ours=(
            "C_u and σ are the paper's. They have ρ = C_u/2σ², to its digits the ρ of one type of action.",
            "The noise is taken as Gaussian, as in the paper.",
            "ε = 0.35 is the larger end of the published range. For the paper's ε = 0.349, its rounded σ is too small.",
            "τ = 1: nothing is dropped before noise.",
        ),
        differs=(
            "They choose URLs by public shares. This mechanism needs no choice before: τ* drops rare URLs.",
            "Their unit is an action. Here C_u bounds every user, and the query enforces it.",
        ),
    ),
    threshold=None,
)

_MOBILITY = RealRelease(
    name="Google mobility",
    organisation="Google",
    year=2020,
    privacy_unit="one user on one day",
    publishes="COVID-19 Community Mobility Reports: visits to kinds of places per region and day, in percent.",
    summary="Laplace noise, ε = 1.76 a day for visits, noisy counts below 100 dropped.",
    known=(
        Fact("The data comes from users who opted in to Location History.", _MOBILITY_PAPER),
        Fact("Counts of users have Laplace noise.", _MOBILITY_ENTRY),
        Fact(
            "A user counts in at most 4 pairs of kind and place a day, at each of 3 levels of regions.",
            _MOBILITY_ENTRY,
        ),
        Fact("ε is 2.64 a day: 1.76 for visits, 0.44 for time at home, 0.44 for work.", _MOBILITY_ENTRY),
        Fact("One count of visits has ε = 0.11 for a country or a state, and 0.22 for a county.", _MOBILITY_ENTRY),
        Fact("A number is dropped if its noisy count of users is below 100.", _MOBILITY_ENTRY),
        Fact("It is also dropped if it is unreliable, or if the region is smaller than 3 km².", _MOBILITY_ENTRY),
    ),
    translation=Translation(
        epsilon=1.76,
        delta=1e-9,
        c_u=4 * 3,
        tau_star=100,
        summary="Gaussian instead of Laplace noise and a δ of our choice: only the threshold and the bound translate.",
        ours=(
            "C_u = 12: 4 pairs at each of 3 levels. We translate visits alone.",
            "δ = 1e-9 is our choice. Their guarantee has no δ.",
            "One σ for all levels, where they have two scales of noise.",
        ),
        differs=(
            "Laplace noise is not this mechanism. Their ε does not follow from our σ, nor ours from theirs.",
            "Regions and kinds of places are known in advance. Their threshold is for reliability, not for privacy.",
        ),
    ),
    threshold=100,
)

_SYMPTOMS = RealRelease(
    name="Google symptoms",
    organisation="Google",
    year=2020,
    privacy_unit="one user on one day",
    publishes="COVID-19 Search Trends: searches for about 400 symptoms per region, relative to all searches.",
    summary="Laplace noise, ε = 1.638 a day for searches, at most 3 symptoms at each of 3 levels.",
    known=(
        Fact("ε is 1.68 for the searches of a user on one day.", _SYMPTOMS_PAPER),
        Fact("Of this, 1.638 is for counts of symptoms, the rest for counts of all searches.", _SYMPTOMS_ENTRY),
        Fact("A user counts for at most 3 symptoms a day, once each, at each of 3 levels of regions.", _SYMPTOMS_ENTRY),
        Fact("The noise is Laplace noise.", _SYMPTOMS_ENTRY),
        Fact("A number is published if it is within 25 % of the truth with probability 50 % or more.", _SYMPTOMS_ENTRY),
    ),
    translation=Translation(
        epsilon=1.638,
        delta=1e-9,
        c_u=3 * 3,
        summary="Gaussian instead of Laplace noise, a δ of our choice, and a threshold that they do not need.",
        ours=(
            "C_u = 9: 3 symptoms at each of 3 levels.",
            "δ = 1e-9 is our choice. Their guarantee has no δ.",
            "One σ for all levels, where they have three scales of noise.",
        ),
        differs=(
            "Laplace noise is not this mechanism.",
            "Their list of symptoms is fixed. With this mechanism any phrase could be a group, and τ* drops rare ones.",
        ),
    ),
    threshold=None,
)


def real_releases() -> tuple[RealRelease, ...]:
    """Releases of other organisations, each as this mechanism: what is known, and what of it is our translation.

    Wikimedia adds noise to about 125 million keys and publishes what is above 90. Without a list of keys, the
    threshold protects privacy too, and has to be higher:

    >>> import gsh
    >>> wikimedia = gsh.real_releases()[0]
    >>> wikimedia.name, wikimedia.privacy_unit
    ('Wikimedia pageviews', 'one device on one day')
    >>> found = wikimedia.translation.calibrate().mechanism
    >>> round(found.tau_star - found.tau, 1)
    102.5
    >>> wikimedia.at_their_threshold().delta_infinite
    5.447834322136091e-06
    """
    return (_WIKIMEDIA, _FACEBOOK, _MOBILITY, _SYMPTOMS)
