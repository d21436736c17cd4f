"""Which bounds a call leaves to a survey: ``c_u="survey"``, ``sums={"seconds": "survey"}``, and so on.

With ``("survey", 16)`` in its place, 16 is the bound that holds if the survey says too little. Both are public: the
words, and the defaults. A clip that is chosen is the upper bound; the lower one is 0, and sums below it count 0.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final, Literal, TypeAlias

from gsh.accounting.calibration.after_survey import SurveyPlan, SurveyShare
from gsh.accounting.mechanism import MOST_SURVEYS
from gsh.arguments import Integer, Real, instance, integer, real
from gsh.errors import InvalidParameter
from gsh.events.plan import Plan
from gsh.events.tables import AnyPlan, place_of
from gsh.library.tables import Table

__all__ = ["DEFAULT_C_U", "SURVEY", "Asks", "SurveyBound", "asked_digest", "asks_in_tables", "settled", "shares_asked"]

SURVEY: Final = "survey"
SurveyBound: TypeAlias = Literal["survey"] | tuple[Literal["survey"], Real]
"""A bound that a survey chooses, perhaps with the public one that holds if the survey says too little."""
DEFAULT_C_U: Final = 32
"""C_u if a survey says too little and the call names no other number."""

_DEFAULT_EVENTS, _DEFAULT_UNITS = 32, 1024
_MANY_USERS, _SHARE_OF_MANY, _SHARE = 10**5, 0.002, 0.01
_MOST_CHOICES = 16
"""A certificate has room for so many sentences."""


@dataclass(frozen=True, slots=True)
class Asks:
    """What one table leaves to the survey."""

    c_u: bool
    columns: tuple[str, ...]
    """The sums, and then the numbers of events, whose clips are chosen."""

    @property
    def histograms(self) -> int:
        return self.c_u + len(self.columns)


def settled(table: Mapping[str, Any]) -> tuple[dict[str, Any], Asks | None]:
    """The bounds of a table with public defaults, and what is left to a survey."""
    units = table.get("units")
    found, columns = dict(table), []
    if is_c_u := _is_asked(table.get("c_u")):
        found["c_u"] = _default("c_u", table["c_u"], DEFAULT_C_U)
    for argument in ("sums", "means", "events"):
        given = table.get(argument)
        if not isinstance(given, Mapping):
            continue
        bounds = dict(given)
        for name, bound in given.items():
            if _is_asked(bound):
                columns.append(name)
                if argument == "events":
                    bounds[name] = _default(f"events/{name}", bound, _DEFAULT_EVENTS)
                else:
                    unit = units.get(name, 1) if isinstance(units, Mapping) else 1
                    bounds[name] = (0.0, _default(f"{argument}/{name}", bound, _DEFAULT_UNITS * unit))
        found[argument] = bounds
    if not is_c_u and not columns:
        return found, None
    if table.get("caps"):
        raise InvalidParameter("caps", "must be omitted with a survey: what caps cost depends on the C_u it chooses")
    return found, Asks(is_c_u, tuple(columns))


def asks_in_tables(tables: Mapping[str, Table]) -> tuple[dict[str, Table], dict[str, Asks]]:
    """The tables with public defaults, and what each of them leaves to the survey."""
    found, asks = dict(tables), {}
    for name, table in tables.items():
        if isinstance(table, Table):
            own = {field.name: getattr(table, field.name) for field in fields(table)}
            try:
                settled_fields, asked = settled(own)
            except InvalidParameter as error:
                raise InvalidParameter(f"{place_of(name)}/{error.pointer}", error.detail) from None
            if asked is not None:
                found[name], asks[name] = replace(table, **settled_fields), asked
    if asks:
        for name, table in found.items():
            if isinstance(table, Table) and table.caps:
                raise InvalidParameter(f"{place_of(name)}/caps", "must be omitted with a survey")
        if len({table.is_public for table in found.values() if isinstance(table, Table)}) > 1:
            detail = "must be given for all tables of a release with a survey, or for none: publish the others apart"
            raise InvalidParameter("public_keys", detail)
    return found, asks


def shares_asked(
    asks: Mapping[str, Asks], survey: SurveyShare | None, expected_users: Integer | None
) -> tuple[SurveyShare, ...]:
    """The share of each histogram. The number of users is private, so the default follows from the argument alone."""
    for name, value in (("survey", survey), ("expected_users", expected_users)):
        if value is not None and not asks:
            raise InvalidParameter(name, f"must be omitted unless a bound is {SURVEY!r}")
    if not asks:
        return ()
    histograms = sum(each.histograms for each in asks.values())
    if histograms > min(MOST_SURVEYS, _MOST_CHOICES):
        raise InvalidParameter("survey", f"must choose at most {_MOST_CHOICES} bounds")
    if expected_users is not None and integer("expected_users", expected_users) < 1:
        raise InvalidParameter("expected_users", "must be at least 1")
    if survey is None:
        is_large = expected_users is not None and integer("expected_users", expected_users) >= _MANY_USERS
        survey = SurveyShare(_SHARE_OF_MANY if is_large else _SHARE)
    return (SurveyShare(instance("survey", survey, SurveyShare).share / histograms),) * histograms


def asked_digest(plan: AnyPlan, asks: Mapping[str, Asks], fixed: SurveyPlan, stated: Mapping[str, float]) -> str:
    """The SHA-256 of what is fixed before the survey: the plan with defaults, what is chosen, and the costs."""
    plans = {"": plan} if isinstance(plan, Plan) else plan.tables
    chosen = {name: [each.c_u, *each.columns] for name, each in asks.items() if name in plans}
    costs = [[each.sigma for each in fixed.survey], fixed.mu_squared, fixed.hazard]
    document = {"plan": plan.digest, "survey": chosen, "costs": costs, "stated": dict(stated)}
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def _is_asked(given: object) -> bool:
    if isinstance(given, list | tuple):
        return len(given) == 2 and isinstance(given[0], str) and given[0] == SURVEY
    return isinstance(given, str) and given == SURVEY


def _default(pointer: str, given: Any, otherwise: float) -> Any:
    return otherwise if isinstance(given, str) else given[1] if isinstance(given[1], int) else real(pointer, given[1])
