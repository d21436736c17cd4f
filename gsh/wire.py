"""The JSON of mechanisms, tables, drafts, columns and sensitivities, both ways: of requests, answers and certificates.

Unknown and missing fields are refused. Errors name the field: ``mu_0`` of a call is ``aggregates/mu_0`` of the object.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from typing import Any, TypeAlias, TypeVar

from gsh.accounting.calibration.after_survey import SurveyPlan, SurveyShare
from gsh.accounting.calibration.balanced import balanced
from gsh.accounting.calibration.draft import Draft
from gsh.accounting.calibration.shares import TableDraft
from gsh.accounting.column_costs import Capped, capped_of
from gsh.accounting.composition import cost_of
from gsh.accounting.mechanism import (
    MOST_SURVEYS,
    MOST_TABLES,
    Aggregates,
    AnyMechanism,
    Joint,
    Mechanism,
    PlainGaussian,
    RelativeAggregates,
    Release,
    Surveyed,
    SurveyNoise,
)
from gsh.accounting.sensitivity import Box, L1Norm, L2Norm, Sensitivity, Vectors, caps
from gsh.arguments import integer, matrix, real, reals, texts
from gsh.errors import Error, InvalidParameter, pointer_part, renamed, renamed_pointer

__all__ = [
    "PLACES",
    "TABLE_NAME",
    "Json",
    "after_survey_from_json",
    "after_survey_to_json",
    "capped_to_json",
    "charged_from_json",
    "charged_to_json",
    "check_table_name",
    "check_table_names",
    "draft_from_json",
    "draft_to_json",
    "in_tables",
    "mechanism_from_json",
    "mechanism_to_json",
    "places_in_request",
    "priced_tables_to_json",
    "release_from_json",
    "sensitivity_to_json",
    "survey_draft_from_json",
    "survey_from_json",
    "survey_to_json",
    "table_drafts_from_json",
    "table_drafts_to_json",
    "table_name_fault",
    "tables_from_json",
    "tables_to_json",
]

Json: TypeAlias = dict[str, Any]

T = TypeVar("T")

TABLE_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,62}[A-Za-z0-9_-])?")
"""The names of tables: they become names of files and of JSON members. Readers skip files like .m and _m."""

PLACES = (("mu_0", "aggregates/mu_0"), ("capped", "aggregates/capped"))
"""Where parameters of a mechanism are in its JSON, if not at their own names."""


def check_table_name(pointer: str, name: object, others: Iterable[str] = ()) -> None:
    """Refuse a name that a table cannot have next to the others."""
    if fault := table_name_fault(name, others):
        raise InvalidParameter(pointer, fault)


def table_name_fault(name: object, others: Iterable[str]) -> str | None:
    """What is wrong with the name of a table, if anything is. Names are unique, and some disks ignore their case."""
    if not isinstance(name, str) or not TABLE_NAME.fullmatch(name):
        detail = "begin with a letter or a digit, and not end with a dot"
        return f"must be 1 to 64 letters, digits, dots, hyphens and underscores, {detail}"
    for other in others:
        if name == other:
            return "must be unique among the tables"
        if name.lower() == other.lower():
            return "must differ from the other names in more than upper and lower case"
    return None


def check_table_names(names: Iterable[object]) -> None:
    """Refuse names of a mapping of tables, at ``tables/<name>``."""
    checked: list[str] = []
    for name in names:
        check_table_name(f"tables/{pointer_part(str(name))}", name, checked)
        checked.append(str(name))


def places_in_request(root: str = "") -> tuple[tuple[str, str], ...]:
    """Where parameters of a call are in a request: ε and δ, and next to them ``mechanism`` or ``tables``."""
    direct = tuple((name, f"{root}/{name}") for name in _DIRECT)
    return *direct, *((name, f"{root}/mechanism/{place}") for name, place in PLACES), ("", f"{root}/mechanism")


@contextmanager
def in_tables() -> Iterator[None]:
    """Errors about several tables together name the list ``tables`` of a request."""
    with renamed(("sigma", "tables"), ("c_u", "tables"), ("mechanism", "tables")):
        yield


_DIRECT = ("epsilon", "delta", "tables", "shares", "survey", "after_survey")
# A tuple, not a union: to make and to search a union takes longer than to read a mechanism.
_OBJECT = (dict, Mapping)
_KIND = "aggregates/sensitivity/kind"
_THRESHOLDS = {"tau", "tau_star"}
_NEEDED = {"c_u", "sigma", *_THRESHOLDS}
_NAMED = {"names", "sensitivity"}
_COSTS = {"mu_squared", "hazard"}

_SENSITIVITIES: dict[str, tuple[set[str], Callable[[Mapping[str, Any]], Sensitivity]]] = {
    "box": (
        {"lower", "upper"},
        lambda given: Box(reals("lower", given["lower"]), reals("upper", given["upper"]), caps(given.get("groups"))),
    ),
    "l1": ({"bound"}, lambda given: L1Norm(real("bound", given["bound"]))),
    "l2": ({"bound"}, lambda given: L2Norm(real("bound", given["bound"]))),
    "vectors": ({"vectors"}, lambda given: Vectors(matrix("vectors", given["vectors"]))),
}
"""The fields of each kind, and how it is made. Its columns check it, because they know how many they are."""


def mechanism_to_json(mechanism: AnyMechanism) -> Json:
    """A mechanism as a JSON object. ``aggregates`` is absent for counts only, and thresholds for public groups."""
    written: Json = {"c_u": mechanism.c_u}
    if isinstance(mechanism, Mechanism):
        written |= {"tau": mechanism.tau, "tau_star": mechanism.tau_star}
    written["sigma"] = mechanism.sigma
    columns = mechanism.aggregates
    return written | _columns_to_json(mechanism.costs.mu_0 if columns is None else columns, mechanism.capped)


def mechanism_from_json(given: object) -> Mechanism:
    """The mechanism of a JSON object.

    >>> from gsh.wire import mechanism_from_json
    >>> mechanism_from_json({"c_u": 3, "tau": 1, "tau_star": 120, "sigma": 20})
    Mechanism(c_u=3, tau=1, tau_star=120.0, sigma=20.0)
    """
    fields = _object("mechanism", given, _NEEDED, {"aggregates"})
    try:
        return Mechanism(
            c_u=fields["c_u"],
            tau=fields["tau"],
            tau_star=fields["tau_star"],
            sigma=fields["sigma"],
            **_columns_from_json(fields.get("aggregates")),
        )
    except Error as error:
        raise error.at(renamed_pointer(error.pointer, *PLACES)) from None


def release_from_json(given: object) -> AnyMechanism:
    """The mechanism of a JSON object. Without ``tau`` and ``tau_star`` its groups are public."""
    if not isinstance(given, Mapping) or _THRESHOLDS & given.keys():
        return mechanism_from_json(given)
    fields = _object("mechanism", given, _NEEDED - _THRESHOLDS, {"aggregates"})
    with renamed(*PLACES):
        return PlainGaussian(c_u=fields["c_u"], sigma=fields["sigma"], **_columns_from_json(fields.get("aggregates")))


def tables_to_json(tables: Mapping[str, AnyMechanism]) -> list[Json]:
    """The tables of a release: a list of mechanisms with names."""
    return [{"name": name} | mechanism_to_json(table) for name, table in tables.items()]


def priced_tables_to_json(tables: Mapping[str, AnyMechanism]) -> list[Json]:
    """The tables of a release as answers have them: each with its noise cost and its threshold cost."""
    written = tables_to_json(tables)
    for k, table in enumerate(tables.values()):
        with renamed(("", f"tables/{k}")):
            cost = cost_of(table)
        written[k] |= {"mu_squared": cost.mu_squared, "hazard": cost.hazard}
    return written


def tables_from_json(given: object) -> dict[str, AnyMechanism]:
    """The tables of a release, by their names. One without ``tau`` and ``tau_star`` has public groups.

    The costs that answers have are left out: they follow from the other fields.

    >>> from gsh.wire import tables_from_json
    >>> tables_from_json([{"name": "by_country", "c_u": 1, "sigma": 7.3}])
    {'by_country': PlainGaussian(c_u=1, sigma=7.3)}
    """
    return _named(given, lambda table: release_from_json({name: table[name] for name in table if name not in _COSTS}))


def table_drafts_from_json(given: object) -> tuple[dict[str, TableDraft], list[float]]:
    """The tables of a calibration, by their names, and their shares, 1 unless given. Without ``tau``: public groups."""
    shares: list[float] = []

    def draft(table: Mapping[str, Any]) -> TableDraft:
        shares.append(real("share", table.get("share", 1.0)))
        rest = {name: value for name, value in table.items() if name != "share"}
        return TableDraft(draft_from_json({"tau": 1} | rest), is_public="tau" not in table)

    return _named(given, draft), shares


def table_drafts_to_json(drafts: Mapping[str, TableDraft], shares: Sequence[float] | None) -> list[Json]:
    """The tables of a calibration, with their shares unless others are chosen for them."""
    written = []
    for k, (name, each) in enumerate(drafts.items()):
        fields = draft_to_json(each.draft)
        if each.is_public:
            del fields["tau"]
        written.append({"name": name} | fields | ({} if shares is None else {"share": shares[k]}))
    return written


def _named(given: object, read: Callable[[Mapping[str, Any]], T]) -> dict[str, T]:
    """Objects with unique names. Errors name the place in the list."""
    if not isinstance(given, Sequence) or isinstance(given, str | bytes) or not 1 <= len(given) <= MOST_TABLES:
        raise InvalidParameter("tables", f"must be a list of 1 to {MOST_TABLES} tables")
    found: dict[str, T] = {}
    for k, table in enumerate(given):
        with renamed(("mechanism", f"tables/{k}"), ("", f"tables/{k}")):
            if not isinstance(table, Mapping) or not isinstance(table.get("name"), str):
                raise InvalidParameter("", "must be a JSON object with a name")
            name = table["name"]
            check_table_name("name", name, found)
            found[name] = read({field: value for field, value in table.items() if field != "name"})
    return found


def charged_to_json(release: Release) -> Json:
    """What a budget is charged for: all that its privacy depends on, without its columns, in one flat object.

    Several tables are a list of such objects. A survey is the list of its noise.
    """
    if isinstance(release, Surveyed):
        return {"survey": _noise_to_json(release.survey)} | charged_to_json(release.tables)
    if isinstance(release, Joint):
        return {"tables": [charged_to_json(table) for table in release.mechanisms]}
    thresholds = {"tau": release.tau, "tau_star": release.tau_star} if isinstance(release, Mechanism) else {}
    costs = release.costs
    written = {"c_u": release.c_u} | thresholds | {"sigma": release.sigma, "mu_0": costs.mu_0}
    # Without caps nothing is added: the hashes of earlier versions of the ledger stay true.
    return written | ({"capped": capped_to_json(costs.capped)} if costs.capped else {})


def charged_from_json(given: object) -> Release:
    """What a budget was charged for."""
    if isinstance(given, Mapping) and "survey" in given:
        tables = charged_from_json({name: value for name, value in given.items() if name != "survey"})
        assert not isinstance(tables, Surveyed)
        return Surveyed(survey_from_json(given["survey"]), tables)
    if isinstance(given, Mapping) and "tables" in given:
        return Joint([_charged_table(table) for table in _object("release", given, {"tables"})["tables"]])
    return _charged_table(given)


def _charged_table(given: object) -> AnyMechanism:
    fields = _object("release", given, {"c_u", "sigma"}, {*_THRESHOLDS, "mu_0", "capped"})
    kind = Mechanism if "tau_star" in fields else PlainGaussian
    return kind(**{**fields, "capped": tuple(Capped(**part) for part in fields.get("capped", ()))})


def survey_to_json(survey: Sequence[SurveyNoise | SurveyShare]) -> Json | list[Json]:
    """The histograms of a survey: one object, or a list of several."""
    listed = _noise_to_json(survey)
    return listed[0] if len(listed) == 1 else listed


def survey_from_json(given: object) -> tuple[SurveyNoise, ...]:
    """The noise of each histogram of a survey.

    >>> from gsh.wire import survey_from_json
    >>> survey_from_json({"sigma": 42.25})
    (SurveyNoise(sigma=42.25),)
    """
    return tuple(_survey_noise(place, each) for place, each in _histograms(given))


def survey_draft_from_json(given: object) -> tuple[SurveyNoise | SurveyShare, ...]:
    """The same, with a share in place of the noise of some."""
    return tuple(
        _survey_share(place, each) if isinstance(each, Mapping) and "share" in each else _survey_noise(place, each)
        for place, each in _histograms(given)
    )


def after_survey_to_json(plan: SurveyPlan) -> Json:
    """What is fixed for the tables before a survey."""
    return {"mu_squared": plan.mu_squared, "hazard": plan.hazard}


def after_survey_from_json(survey: Sequence[SurveyNoise], given: object) -> SurveyPlan:
    """The same, for the survey with this noise."""
    fields = _object("after_survey", given, _COSTS)
    with renamed(("", "after_survey")):
        return SurveyPlan(tuple(survey), mu_squared=fields["mu_squared"], hazard=fields["hazard"])


def _noise_to_json(survey: Sequence[SurveyNoise | SurveyShare]) -> list[Json]:
    return [{"share": each.share} if isinstance(each, SurveyShare) else {"sigma": each.sigma} for each in survey]


def _survey_noise(place: str, given: object) -> SurveyNoise:
    fields = _object(place, given, {"sigma"})
    with renamed(("", place)):
        return SurveyNoise(fields["sigma"])


def _survey_share(place: str, given: object) -> SurveyShare:
    fields = _object(place, given, {"share"})
    with renamed(("", place)):
        return SurveyShare(fields["share"])


def _histograms(given: object) -> list[tuple[str, object]]:
    """The histograms of a survey, each with its place."""
    if not isinstance(given, list | tuple):
        return [("survey", given)]
    if not 1 <= len(given) <= MOST_SURVEYS:
        raise InvalidParameter("survey", f"must be 1 to {MOST_SURVEYS} histograms")
    return [(f"survey/{place}", each) for place, each in enumerate(given)]


def draft_to_json(draft: Draft) -> Json:
    """A mechanism without the fields to solve for."""
    fields = {"c_u": draft.c_u, "tau": draft.tau, "tau_star": draft.tau_star, "sigma": draft.sigma}
    given = {name: value for name, value in fields.items() if value is not None}
    assert isinstance(draft.columns, Aggregates | RelativeAggregates | float | int)  # nobody sends unrounded columns
    return given | _columns_to_json(draft.columns, draft.capped)


def draft_from_json(given: object) -> Draft:
    """The draft of a JSON object: a mechanism without the fields to solve for."""
    fields = _object("mechanism", given, {"tau"}, {"c_u", "tau_star", "sigma", "aggregates"})
    c_u, tau_star, sigma = (fields.get(name) for name in ("c_u", "tau_star", "sigma"))
    groups = None if c_u is None else integer("c_u", c_u)
    columns, capped = _draft_columns_from_json(fields.get("aggregates"), groups)
    return Draft(
        c_u=groups,
        tau=integer("tau", fields["tau"]),
        tau_star=None if tau_star is None else real("tau_star", tau_star),
        sigma=None if sigma is None else real("sigma", sigma),
        columns=columns,
        capped=capped,
    )


def sensitivity_to_json(sensitivity: Sensitivity) -> Json:
    match sensitivity:
        case Box(lower, upper, groups):
            written = {"kind": "box", "lower": list(lower), "upper": list(upper)}
            return written if groups is None else written | {"groups": list(groups)}
        case L1Norm(bound):
            return {"kind": "l1", "bound": bound}
        case L2Norm(bound):
            return {"kind": "l2", "bound": bound}
        case listed:
            return {"kind": "vectors", "vectors": _listed(listed.vectors)}


def capped_to_json(capped: Sequence[Capped]) -> list[Json]:
    return [part._asdict() for part in capped]


def _columns_to_json(columns: Aggregates | RelativeAggregates | float, capped: tuple[Capped, ...]) -> Json:
    """The member ``aggregates``, or nothing."""
    if isinstance(columns, float | int):
        parts = {"capped": capped_to_json(capped)} if capped else {}
        return {"aggregates": {"mu_0": columns} | parts} if columns or capped else {}
    written: Json = {"names": list(columns.names)}
    if isinstance(columns, Aggregates):
        written["covariance"] = _listed(columns.covariance)
    elif columns.weights is None:
        written["relative_covariance"] = _listed(columns.relative_covariance)
    else:
        is_even = set(columns.weights) == {1.0}
        written |= {"noise": "balanced"} | ({} if is_even else {"weights": list(columns.weights)})
    return {"aggregates": written | {"sensitivity": sensitivity_to_json(columns.sensitivity)}}


def _columns_from_json(given: object) -> Json:
    """The further columns as arguments of a mechanism."""
    if given is None:
        return {}
    if isinstance(given, _OBJECT) and "mu_0" in given:
        mu_0, capped = _costs_from_json(given)
        return {"mu_0": mu_0, "capped": capped}
    fields = _object("aggregates", given, _NAMED | {"covariance"})
    sensitivity = _sensitivity_from_json(fields["sensitivity"])
    with _in_aggregates():
        columns = Aggregates(names=fields["names"], covariance=fields["covariance"], sensitivity=sensitivity)
    return {"aggregates": columns}


def _draft_columns_from_json(
    given: object, c_u: int | None
) -> tuple[Aggregates | RelativeAggregates | float, tuple[Capped, ...]]:
    """The further columns of a draft, and those with caps that are given by their costs alone."""
    if isinstance(given, Mapping) and "noise" in given:
        return _balanced_from_json(given, c_u), ()
    if isinstance(given, Mapping) and "relative_covariance" in given:
        fields = _object("aggregates", given, _NAMED | {"relative_covariance"})
        names, rows, sensitivity = fields["names"], fields["relative_covariance"], fields["sensitivity"]
        change = _sensitivity_from_json(sensitivity)
        with _in_aggregates():
            return RelativeAggregates(names=names, relative_covariance=rows, sensitivity=change), ()
    with renamed(*PLACES):
        found = _columns_from_json(given)
        columns = found.get("aggregates", real("mu_0", found.get("mu_0", 0.0)))
        return columns, capped_of(found.get("capped"))


def _balanced_from_json(given: Mapping[str, Any], c_u: int | None) -> RelativeAggregates:
    fields = _object("aggregates", given, _NAMED | {"noise"}, {"weights"})
    if fields["noise"] != "balanced":
        raise InvalidParameter("aggregates/noise", "must be balanced")
    change = _sensitivity_from_json(fields["sensitivity"])
    if not isinstance(change, Box):
        raise InvalidParameter(_KIND, "must be box if noise is balanced")
    weights = fields.get("weights")
    with _in_aggregates():
        shares = None if weights is None else reals("weights", weights)
        return balanced(texts("names", fields["names"]), change, c_u, shares)


def _sensitivity_from_json(given: object) -> Sensitivity:
    kind = given.get("kind") if isinstance(given, Mapping) else None
    if not isinstance(kind, str) or kind not in _SENSITIVITIES:
        raise InvalidParameter(_KIND, f"must be one of {', '.join(_SENSITIVITIES)}")
    needed, make = _SENSITIVITIES[kind]
    fields = _object("aggregates/sensitivity", given, {"kind", *needed}, {"groups"} if kind == "box" else set())
    with renamed(("", "aggregates/sensitivity")):
        return make(fields)


def _costs_from_json(given: Mapping[str, Any]) -> tuple[Any, tuple[tuple[Any, Any], ...]]:
    """μ₀ of columns, and of those with caps by their caps."""
    fields = _object("aggregates", given, {"mu_0"}, {"capped"})
    listed = fields.get("capped")
    if listed is not None and not isinstance(listed, list | tuple):
        raise InvalidParameter("aggregates/capped", "must be a list")
    parts = [_object("aggregates/capped", part, {"groups", "mu_0"}) for part in listed or ()]
    return fields["mu_0"], tuple((part["groups"], part["mu_0"]) for part in parts)


@contextmanager
def _in_aggregates() -> Iterator[None]:
    """Errors about columns name the fields of ``aggregates``."""
    try:
        yield
    except Error as error:
        # C_u is the only parameter here that is not of the columns. The kind of a sensitivity is a field of its own.
        pointer = renamed_pointer(error.pointer, ("c_u", "c_u"), ("", "aggregates"))
        raise error.at(_KIND if pointer == "aggregates/sensitivity" else pointer) from None


def _listed(rows: Sequence[Sequence[float]]) -> list[list[float]]:
    return [list(row) for row in rows]


def _object(pointer: str, given: object, needed: Set[str], allowed: Set[str] = frozenset()) -> Mapping[str, Any]:
    """The fields of an object, all that are needed and no unknown ones. An unknown name is not repeated."""
    if not isinstance(given, _OBJECT):
        raise InvalidParameter(pointer, "must be a JSON object")
    if missing := needed - given.keys():
        raise InvalidParameter(f"{pointer}/{min(missing)}", "is required")
    if len(given) > len(needed) and given.keys() - needed - allowed:
        raise InvalidParameter(pointer, f"must have no fields other than {', '.join(sorted(needed | allowed))}")
    return given
