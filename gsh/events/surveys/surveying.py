"""A publication whose bounds a survey chooses: what is fixed before the survey, and what follows from it.

before     the plan with public defaults, the share of each histogram, S and D of the tables
after      the plan with the chosen bounds, the noise that costs S and D, and what the certificate says
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from gsh.accounting.calibration.after_survey import SurveyPlan, SurveyShare
from gsh.arguments import Integer, Real, real
from gsh.events.choosing import Choice
from gsh.events.plan import Plan
from gsh.events.surveys.asked import Asks, asked_digest, shares_asked
from gsh.events.surveys.choices import (
    DrawnHistogram,
    TableCost,
    bounded_by,
    chosen_bounds,
    digest_of_survey,
    drawn,
    sentence,
    stream_of_survey,
)
from gsh.events.surveys.histograms import Counts, Wanted, wanted
from gsh.events.tables import AnyPlan, Plans
from gsh.events.terms import Terms, terms_for, terms_for_tables
from gsh.histogram.entropy import Entropy
from gsh.library.tables import Table
from gsh.surveyed import Histogram, SurveyStatement

__all__ = ["Decided", "Surveying", "surveying_of"]


@dataclass(frozen=True, slots=True)
class Decided:
    """What a survey decided."""

    plan: AnyPlan
    terms: Terms
    survey: tuple[DrawnHistogram, ...]
    statement: SurveyStatement
    """With the digest of the survey, and what was chosen from it."""
    choices: tuple[tuple[str, str | None, Choice], ...]
    """The table, the column (None for C_u), and its bound."""


@dataclass(frozen=True, slots=True)
class Surveying:
    """What is fixed before the survey. ``calibrated`` gives the noise of a plan with other bounds."""

    plan: AnyPlan
    """With public defaults in place of the bounds that are asked for."""
    asks: Mapping[str, Asks]
    terms: Terms
    costs: Mapping[str, TableCost]
    calibrated: Callable[[AnyPlan], Terms]

    @property
    def tables(self) -> dict[str, Plan]:
        return {"": self.plan} if isinstance(self.plan, Plan) else self.plan.tables

    @property
    def digest(self) -> str:
        """Of all that was asked. Under one name, a job that starts again must ask the same."""
        return asked_digest(self.plan, self.asks, self.fixed, self.terms.stated)

    @property
    def histograms(self) -> tuple[Wanted, ...]:
        return wanted(self.plan, self.asks)

    @property
    def fixed(self) -> SurveyPlan:
        assert self.terms.survey is not None
        return self.terms.survey

    @property
    def statement(self) -> SurveyStatement:
        """What is known before the survey."""
        noise = zip(self.histograms, self.fixed.survey, strict=True)
        listed = tuple(Histogram(each, one.of, one.bins) for one, each in noise)
        return SurveyStatement(listed, self.fixed.mu_squared, self.fixed.hazard)

    def drawn(self, counts: Counts, entropy: Entropy) -> tuple[DrawnHistogram, ...]:
        return drawn(self.histograms, self.statement.histograms, counts, entropy)

    def choices(self, survey: tuple[DrawnHistogram, ...]) -> tuple[tuple[str, str | None, Choice], ...]:
        found = chosen_bounds(self.tables, self.asks, self.costs, survey)
        return tuple((name, column, each) for name, chosen in found.items() for column, each in chosen.items())

    def decided(self, counts: Counts, seed: bytes) -> Decided:
        """The survey of the seed, and what follows from it."""
        survey = self.drawn(counts, stream_of_survey(seed, self.digest, counts))
        choices = self.choices(survey)
        plan = self._bounded(choices)
        sentences = tuple(sentence(*each) for each in choices)
        statement = replace(self.statement, chosen=sentences, digest=digest_of_survey(survey))
        return Decided(plan, self.calibrated(plan), survey, statement, choices)

    def asks_for(self, plan: AnyPlan) -> bool:
        """Whether a plan with chosen bounds is of this survey: it differs in bounds that are asked for alone."""
        found = {"": plan} if isinstance(plan, Plan) else plan.tables
        if type(plan) is not type(self.plan) or list(found) != list(self.tables):
            return False
        defaults = {name: _reset(found[name], each, self.asks.get(name)) for name, each in self.tables.items()}
        again = replace(plan, named=tuple(defaults.items())) if isinstance(plan, Plans) else defaults[""]
        return again == self.plan

    def _bounded(self, choices: tuple[tuple[str, str | None, Choice], ...]) -> AnyPlan:
        chosen = {
            name: bounded_by(plan, {column: each for table, column, each in choices if table == name})
            for name, plan in self.tables.items()
        }
        if isinstance(self.plan, Plans):
            return replace(self.plan, named=tuple(chosen.items()))
        return chosen[""]


def _reset(plan: Plan, default: Plan, asks: Asks | None) -> Plan:
    """The plan with the defaults in place of what was asked for."""
    if asks is None:
        return plan
    uppers = {each.name: each.upper for each in default.measures if each.name in asks.columns}
    measures = tuple(replace(each, upper=uppers.get(each.name, each.upper)) for each in plan.measures)
    return replace(plan, c_u=default.c_u if asks.c_u else plan.c_u, measures=measures)


def surveying_of(
    plan: AnyPlan,
    asks: Mapping[str, Asks],
    aim: Mapping[str, Any],
    *,
    weights: Mapping[str, Real] | None = None,
    tables: Mapping[str, Table] | None = None,
    shares: Any = None,
    survey: SurveyShare | None = None,
    expected_users: Integer | None = None,
) -> Surveying | None:
    """The survey that a publication asks for; None if all its bounds are given. ``tables`` are those of several."""
    parts = shares_asked(asks, survey, expected_users)
    if not parts:
        return None

    def calibrated(chosen: AnyPlan, wanted: Any) -> Terms:
        if isinstance(chosen, Plans):
            assert tables is not None
            return terms_for_tables(chosen, tables, **aim, shares=shares, survey=wanted)
        return terms_for(chosen, **aim, weights=weights, survey=wanted)

    terms = calibrated(plan, parts)
    fixed = terms.survey
    assert fixed is not None
    if isinstance(plan, Plan):
        costs = {"": TableCost.of(plan, weights, 1.0, fixed)}
    else:
        assert tables is not None
        relative = {name: real(f"tables/{name}/share", tables[name].share) for name in plan.tables}
        whole = sum(relative.values())
        costs = {
            name: TableCost.of(each, tables[name].weights, relative[name] / whole, fixed)
            for name, each in plan.tables.items()
        }
    return Surveying(plan, asks, terms, costs, lambda chosen: calibrated(chosen, fixed))
