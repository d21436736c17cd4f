"""The noisy histograms of a survey, and the bounds that follow from them and from public numbers alone.

Every bin gets exactly rounded noise, the empty ones too, from the seed of the release. On the same counts a job that
starts again draws the same noise; on others it draws unrelated noise, and so has another digest.

    σ(C) = √(C (1 + κ²)/(w S)),     τ*(C) = τ + σ(C) Φ⁻¹(e^(−w D/C))         κ²: the shares of the columns of a table

S and D are fixed before the survey, and w is the share of the table. The rule for C_u reads τ*(C), or 5σ(C) if the
groups are public. That for a clip asks for the best one in a group of 50σ users, about ten times the smallest one that
is published.  [choosing.py]
"""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np

from gsh.accounting.calibration.after_survey import SurveyPlan
from gsh.accounting.mechanism import PlainGaussian
from gsh.arguments import Real
from gsh.events.choosing import Choice, best_share, chosen_c_u, chosen_clip
from gsh.events.plan import Plan
from gsh.events.surveys.asked import Asks
from gsh.events.surveys.histograms import Counts, Wanted
from gsh.histogram.entropy import Entropy, stream
from gsh.histogram.noise import Noise
from gsh.surveyed import Histogram

__all__ = [
    "DrawnHistogram",
    "TableCost",
    "bounded_by",
    "chosen_bounds",
    "digest_of_survey",
    "drawn",
    "sentence",
    "stream_of_survey",
]

_LABEL = b"gsh survey stream 1"
_USUAL_GROUP, _SEEN = 50.0, 5.0
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class DrawnHistogram:
    """A histogram with its noise: what the survey publishes."""

    wanted: Wanted
    stated: Histogram
    users: tuple[float, ...]
    """The noisy numbers of users in its bins."""

    @property
    def sigma(self) -> float:
        """The standard deviation of the noise."""
        return self.stated.noise.sigma

    def intervals(self, level: float) -> tuple[tuple[float, float], ...]:
        """For each bin an interval that covers the true number of users with this probability."""
        reach = self.sigma * NormalDist().inv_cdf((1 + level) / 2)
        return tuple((max(n - reach, 0.0), max(n + reach, 0.0)) for n in self.users)

    def to_json(self) -> dict[str, Any]:
        return self.stated.to_json() | {"users": list(self.users)}


@dataclass(frozen=True, slots=True)
class TableCost:
    """What is fixed for a table before the survey: its part of S and of D, τ, and the shares of its columns."""

    mu_squared: float
    hazard: float
    tau: int
    weights: Mapping[str, float]

    @classmethod
    def of(cls, plan: Plan, weights: Mapping[str, Real] | None, part: float, fixed: SurveyPlan) -> "TableCost":
        shares = {each.name: float((weights or {}).get(each.name, 1)) for each in plan.measures}
        return cls(part * fixed.mu_squared, part * fixed.hazard, plan.tau, shares)

    def sigma(self, c_u: int) -> float:
        return math.sqrt(c_u * (1 + math.fsum(self.weights.values())) / self.mu_squared)

    def tau_star(self, c_u: int) -> float:
        """The smallest published group; without a threshold, the smallest one that noise does not hide."""
        if not self.hazard:
            return _SEEN * self.sigma(c_u)
        return max(self.tau, 1) - self.sigma(c_u) * NormalDist().inv_cdf(-math.expm1(-self.hazard / c_u))

    def clipped_share(self, column: str, c_u: int) -> float:
        """The share of values above the best clip, in a group of the usual size."""
        square = self.mu_squared * self.weights[column] / (1 + math.fsum(self.weights.values()))
        return best_share(c_u, square, _USUAL_GROUP * self.sigma(c_u))


def stream_of_survey(seed: bytes, asked: str, counts: Counts) -> Entropy:
    """The random bits of a survey: of its seed, of what was asked, and of the true counts."""
    content = json.dumps({name: [each.tolist() for each in listed] for name, listed in counts.items()})
    return stream(seed, _LABEL, asked.encode(), hashlib.sha256(content.encode()).digest())


def drawn(
    histograms: Sequence[Wanted], survey: Sequence[Histogram], counts: Counts, entropy: Entropy
) -> tuple[DrawnHistogram, ...]:
    """All bins with noise. ``survey`` says how much, in the same order."""
    true = [each for table in dict.fromkeys(each.table for each in histograms) for each in counts[table]]
    found = []
    for wanted, stated, users in zip(histograms, survey, true, strict=True):
        noise = Noise(PlainGaussian(c_u=1, sigma=stated.noise.sigma))
        noisy = noise.add(users, np.empty((len(users), 0)), entropy).counts
        found.append(DrawnHistogram(wanted, stated, tuple(noisy.tolist())))
    return tuple(found)


def digest_of_survey(survey: Sequence[DrawnHistogram]) -> str:
    """The SHA-256 of what the survey publishes, as canonical JSON."""
    written = json.dumps([each.to_json() for each in survey], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(written.encode()).hexdigest()


def chosen_bounds(
    plans: Mapping[str, Plan],
    asks: Mapping[str, Asks],
    costs: Mapping[str, TableCost],
    survey: Sequence[DrawnHistogram],
) -> dict[str, dict[str | None, Choice]]:
    """Of each table, the choices by column; that of C_u has no column. Where it was not asked, C_u is the plan's."""
    chosen: dict[str, dict[str | None, Choice]] = {name: {} for name in asks}
    for each in survey:
        table, column, sigma = each.wanted.table, each.wanted.column, each.sigma
        plan, cost, found = plans[table], costs[table], chosen[each.wanted.table]
        if column is None:
            found[None] = chosen_c_u(each.users, sigma, cost.tau_star, plan.c_u)
            continue
        (measure,) = (one for one in plan.measures if one.name == column)
        share = cost.clipped_share(column, _c_u(plan, found))
        found[column] = chosen_clip(each.users, sigma, each.wanted.bins, share, measure.upper)
    return chosen


def _c_u(plan: Plan, found: Mapping[str | None, Choice]) -> int:
    return int(found[None].bound) if None in found else plan.c_u


def bounded_by(plan: Plan, chosen: Mapping[str | None, Choice]) -> Plan:
    """The plan with the chosen bounds."""
    measures = tuple(
        replace(each, upper=chosen[each.name].bound) if each.name in chosen else each for each in plan.measures
    )
    return replace(plan, c_u=_c_u(plan, chosen), measures=measures)


def sentence(table: str, column: str | None, choice: Choice) -> str:
    """A choice with its reason. It is in the certificate, which has room for 200 characters."""
    said = choice.reason if column is None else f"{column}: 0 to {choice.reason}"
    written = f"{table}: {said}" if table else said
    return written if len(written) <= _LONGEST else f"…{written[1 - _LONGEST :]}"
