"""Converts arguments of the library to JSON of requests, and JSON of answers to results of the library."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, TypedDict

from gsh.accounting.accountings import AccountingName, Point
from gsh.accounting.calibration import comparison
from gsh.accounting.calibration.after_survey import SurveyPlan
from gsh.accounting.calibration.compared_tables import WayName
from gsh.accounting.calibration.comparison import ComparedName
from gsh.accounting.mechanism import AnyMechanism, Mechanism
from gsh.arguments import Real, instance, real
from gsh.client.records import Provenance, TablesBudgetCalibration
from gsh.documents import Document, parsed
from gsh.library.engines import EnginePrivacy
from gsh.library.privacy import Privacy, Released, is_several_tables, privacy_of
from gsh.library.tables import TablesCalibration, TablesPrice, table_places
from gsh.library.targets import Calibration, Comparison, Price
from gsh.surveyed import SurveyStatement
from gsh.wire import (
    PLACES,
    Json,
    after_survey_from_json,
    after_survey_to_json,
    mechanism_from_json,
    mechanism_to_json,
    survey_from_json,
    tables_from_json,
    tables_to_json,
)

__all__ = [
    "AS_NAMED",
    "IN_A_MECHANISM",
    "ChargedLike",
    "MechanismLike",
    "MechanismOrJson",
    "PaidOptions",
    "ReleaseLike",
    "ReleaseOptions",
    "any_mechanism",
    "calibration_of",
    "charged_json",
    "comparison_of",
    "in_period",
    "in_tables",
    "mechanism_json",
    "one_mechanism",
    "points_of",
    "provenance_json",
    "release_json",
    "stated",
    "tables_budget_calibration_of",
    "tables_calibration_of",
    "tables_comparison_of",
]

MechanismLike: TypeAlias = AnyMechanism | Calibration
"""The mechanism of a table. That of public groups is a ``PlainGaussian``."""
MechanismOrJson: TypeAlias = MechanismLike | Mapping[str, Any]
"""A mechanism, a calibration that has one, or the JSON object of the contract."""
ReleaseLike: TypeAlias = MechanismOrJson | TablesCalibration | Released
"""The same, or several tables in one release: by their names, or a calibration of them."""
ChargedLike: TypeAlias = ReleaseLike | EnginePrivacy
"""The same, or what another engine does: an answer of ``gsh.engine``."""

AS_NAMED = (("", ""),)
"""Fields of a request are parameters of the same name."""
IN_A_MECHANISM = (*((f"/mechanism/{place}", name) for name, place in PLACES), ("/mechanism", ""), ("", ""))
"""Fields of a mechanism are parameters of their own in the library."""


def one_mechanism(given: Mechanism | Calibration) -> Mechanism:
    """The mechanism itself, or that of a calibration."""
    return instance("mechanism", given.mechanism if isinstance(given, Calibration) else given, Mechanism)


def any_mechanism(given: MechanismLike) -> AnyMechanism:
    """The same, also for public groups."""
    return given if isinstance(given, AnyMechanism) else one_mechanism(given)


def mechanism_json(given: MechanismOrJson) -> Json:
    if isinstance(given, Mapping):
        return dict(given)
    return mechanism_to_json(any_mechanism(given))


def charged_json(given: ChargedLike) -> Json:
    """The same as ``release_json``, and of another engine the mechanism that costs as much."""
    return release_json(given.charged("mechanism") if isinstance(given, EnginePrivacy) else given)


def release_json(given: ReleaseLike) -> Json:
    """The member ``mechanism`` of a request, or ``tables``."""
    tables = given.tables if isinstance(given, TablesCalibration) else given
    if is_several_tables(tables):
        return {"tables": tables_to_json(tables)}
    return {"mechanism": mechanism_json(tables)}


def in_tables(body: Json) -> tuple[tuple[str, str], ...]:
    """Fields of several tables are those of a mapping; fields of one mechanism are parameters of their own."""
    places = table_places([str(table["name"]) for table in body.get("tables", ())])
    return *((f"/{before}", after) for before, after in places), *IN_A_MECHANISM


def calibration_of(answer: Mapping[str, Any]) -> Calibration:
    """An answer of /calibrate for a target (ε, δ)."""
    privacy = privacy_of(answer["accounting"], _point(answer, float(answer["mu"])))
    return parsed(Calibration, {**answer, "privacy": privacy, "survey": _plan(answer)})


def _plan(answer: Mapping[str, Any]) -> SurveyPlan | None:
    """What was fixed before a survey, if there is one."""
    if "survey" not in answer:
        return None
    return after_survey_from_json(survey_from_json(answer["survey"]), answer["after_survey"])


def points_of(answer: Mapping[str, Any], several: int) -> tuple[Privacy, ...]:
    """The points of an answer of /account, as many as were asked for."""
    accounting: AccountingName = answer["accounting"]
    mu = float(answer["mu"] if "tables" in answer else answer["mechanism"]["mu"])
    points = tuple(privacy_of(accounting, _point(each, mu)) for each in answer["points"])
    if len(points) != several:
        raise ValueError
    return points


def _point(point: Mapping[str, Any], mu: float) -> Point:
    epsilon, gaussian = (None if point[name] is None else float(point[name]) for name in ("epsilon", "delta_gaussian"))
    return Point(epsilon, float(point["delta"]), gaussian, float(point["delta_infinite"]), point["binding"], mu)


def comparison_of(answer: Mapping[str, Any]) -> Comparison:
    """The prices of an answer of /compare."""
    found = {each["accounting"]: each["price"] for each in answer["accountings"]}
    exact = mechanism_from_json(found["exact"]["mechanism"])
    prices = tuple((name, _price(name, price, exact)) for name, price in found.items())
    capped = answer.get("without_caps")
    without = None if capped is None else _price("exact", capped["price"], exact)
    return Comparison(float(answer["epsilon"]), float(answer["delta"]), prices, without, has_caps=capped is not None)


def tables_calibration_of(names: Sequence[str], answer: Mapping[str, Any]) -> TablesCalibration:
    """An answer of /calibrate for several tables and a target (ε, δ)."""
    return TablesCalibration(
        tables=_tables(names, answer),
        shares=dict(zip(names, map(float, answer["shares"]), strict=True)),
        privacy=privacy_of("exact", _point(answer, float(answer["mu"]))),
        survey=_plan(answer),
    )


def tables_budget_calibration_of(names: Sequence[str], answer: Mapping[str, Any]) -> TablesBudgetCalibration:
    """An answer of /calibrate for several tables and the rest of a budget."""
    return TablesBudgetCalibration(
        tables=_tables(names, answer),
        shares=dict(zip(names, map(float, answer["shares"]), strict=True)),
        budget=None if answer["budget"] is None else str(answer["budget"]),
        releases=int(answer["releases"]),
        epsilon=float(answer["epsilon"]),
        delta=float(answer["delta"]),
    )


def tables_comparison_of(names: Sequence[str], answer: Mapping[str, Any]) -> dict[WayName, TablesPrice | None]:
    """An answer of /compare for several tables."""
    return {
        each["way"]: None if each["price"] is None else _tables_price(names, each["price"]) for each in answer["ways"]
    }


def _tables_price(names: Sequence[str], price: Mapping[str, Any]) -> TablesPrice:
    tau_stars = [None if ratio is None else float(ratio) for ratio in price["tau_star_ratios"]]
    return TablesPrice(
        tables=_tables(names, price),
        delta=float(price["delta"]),
        sigma_ratios=dict(zip(names, map(float, price["sigma_ratios"]), strict=True)),
        tau_star_ratios=dict(zip(names, tau_stars, strict=True)),
    )


def _tables(names: Sequence[str], answer: Mapping[str, Any]) -> dict[str, AnyMechanism]:
    """The tables of an answer, which must be those that were asked for."""
    found = tables_from_json(answer["tables"])
    if list(found) != list(names):
        raise ValueError
    return found


def _price(name: ComparedName, price: Mapping[str, Any] | None, exact: Mechanism) -> Price | None:
    if price is None:
        return None
    mechanism = mechanism_from_json(price["mechanism"])
    privacy = privacy_of(name, _point(price, float(price["mu"])))
    ratios = list(comparison.column_ratios(mechanism, exact))
    return parsed(Price, {**price, "privacy": privacy, "column_ratios": ratios})


class ReleaseOptions(TypedDict, total=False):
    """``epsilon`` or ``delta`` is the point that the certificate states. None of the texts may depend on the data."""

    epsilon: Real | None
    delta: Real | None
    description: str
    labels: Sequence[str]
    unprotected: Sequence[str] | None
    """What you chose by looking at the data; an empty list: nothing. The certificate repeats it."""
    about: Mapping[str, str] | None
    """What people ask of a release: source, data_period, purpose, approver, budget_ends."""
    provenance: Provenance | Mapping[str, Any] | None
    survey: SurveyStatement | None
    """The survey from which the bounds were chosen. A calibration after a survey brings its own."""


class PaidOptions(ReleaseOptions, total=False):
    """The budget that pays, and the idempotency key, which names the release: it is made and charged once."""

    budget: str | None
    period: str | None
    """Of a renewed budget: the period that pays, such as ``2026-W46``; without it, the present one."""
    once: str | None


def in_period(period: str | None) -> Json:
    """The member of a request that names the period of a renewed budget."""
    return {} if period is None else {"period": period}


def stated(mechanism: ChargedLike, options: ReleaseOptions) -> Json:
    """The options as fields of a request. A calibration states the ε of its target, if no other point is given."""
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    fields: Json = {name: real(name, given[name]) for name in ("epsilon", "delta") if name in given}
    if not fields and isinstance(mechanism, Calibration | TablesCalibration):
        fields["epsilon"] = mechanism.privacy.epsilon
    fields |= {name: given[name] for name in ("description", "budget", "period") if name in given}
    fields |= {name: list(given[name]) for name in ("labels", "unprotected") if name in given}
    fields |= {"about": dict(given["about"])} if given.get("about") else {}
    survey = given.get("survey")
    if survey is None and isinstance(mechanism, Calibration | TablesCalibration) and mechanism.survey is not None:
        survey = SurveyStatement.of_plan(mechanism.survey)
    fields |= {} if survey is None else _surveyed(survey)
    if "provenance" in given:
        fields["provenance"] = provenance_json(given["provenance"])
    return fields


def _surveyed(survey: SurveyStatement) -> Json:
    """The members of a request for a release after a survey."""
    return {
        "survey": [each.to_json() for each in survey.histograms],
        "after_survey": after_survey_to_json(survey.plan),
        "chosen": list(survey.chosen),
    }


def provenance_json(given: Provenance | Mapping[str, Any]) -> Json:
    """Where a table comes from, as a member of a request."""
    if not isinstance(given, Provenance):
        return dict(given)
    fields = {field.name: getattr(given, field.name) for field in dataclasses.fields(given)}
    plain = {name: value.to_dict() if isinstance(value, Document) else value for name, value in fields.items()}
    return {name: value for name, value in plain.items() if value is not None}
