"""The certificate of a release: what the release promises, as a value and as JSON.  [docs/certificate.md]

A release of one table has version 2 of the format. A release of named tables has version 3: ``tables`` in place of the
members that describe one table. Nothing in a certificate depends on the data, except for the digests of the released
rows. The service adds the budget that paid, and what its ledger recorded. ``budget`` is null for a release that the
library makes: nothing keeps count of it.
"""

import functools
import platform
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from importlib.metadata import version
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Self

import flint

from gsh import certificate_words as words
from gsh.accounting.accountings import EXACT, at_delta, at_epsilon
from gsh.accounting.composition import cost_of
from gsh.accounting.mechanism import AnyMechanism, Joint, Mechanism, Release, Surveyed, checked_mechanism
from gsh.accounting.sensitivity import Box, L1Norm, L2Norm
from gsh.accounting.two_stages import is_exact
from gsh.arguments import Real, real
from gsh.documents import Document, check_members
from gsh.errors import InfeasibleTarget, InvalidParameter, pointer_part
from gsh.histogram.meanings import Meaning
from gsh.histogram.noise import Noise
from gsh.histogram.roles import Roles
from gsh.surveyed import SurveyStatement, check_costs
from gsh.wire import Json, capped_to_json, mechanism_to_json, release_from_json

__all__ = ["ABOUT", "Certificate", "bounds_of", "certificate", "certificate_of"]

_MOST_CHOICES, _LONGEST_CHOICE = 16, 200

ABOUT: Mapping[str, str] = MappingProxyType(
    {
        "source": "Source of the data",
        "data_period": "Period of the data",
        "purpose": "Purpose",
        "approver": "Approved by",
        "budget_ends": "End of the budget",
    }
)
"""What a release may say about itself, with the words for people: questions of NIST SP 800-226."""

EnforcedBy = Literal["caller", "gsh.duckdb", "gsh.spark"]


class Certificate(Document):
    """The privacy of one release, as a statement that stands alone. Its members are those of its JSON, in their order.

    Members that this version does not know stay in it. Certificates of version 0.1 have fewer of them.
    """

    __slots__ = ()

    schema: str
    release_id: str
    idempotency_key: str | None
    released_at: str
    service_version: str
    python: str
    flint: str
    privacy_unit: str
    period: str | None
    adjacency: str
    tables: tuple[Document, ...]
    """Version 3: each table with its name, its two costs, and its ``roles``, ``content``, ``bounds``, ``mechanism``,
    ``tie_rule``, ``grid``, ``mu_0`` and ``capped``, which are then absent below."""
    roles: Document
    """Which columns of the table are ``keys``, which is the ``count``, and which are further ``values``. Absent if it
    is not known: groups in JSON have no columns, and another engine may have its own."""
    content: Document
    """The digest of the released rows (histogram/released_content.py). Absent before they are drawn, or unknown."""
    bounds: Document
    """``columns`` say of each further column its ``kind`` (``sum``, ``events`` or ``mean``) and its ``unit``, where
    these are known; of a mean also what it is ``of``, and the ``middle`` that was taken from each user."""
    ratios: Document
    """The ratios of columns that follow from the table: two columns for each name. Absent if there are none."""
    mechanism: Document
    tie_rule: str
    noise: str
    grid: Document | None
    rounded: Document
    """What the ``count`` and the ``values`` were rounded to afterwards. Absent if they were not."""
    accounting: str
    mu_0: float
    capped: tuple[Document, ...] | None
    """Absent if no column has a cap."""
    mu: float
    mu_squared: float
    hazard: float
    delta_infinite: float
    epsilon: float | None
    delta: float | None
    curve: str
    survey: Document
    """The histograms over the users from which bounds were chosen, and what was fixed before. Absent without them."""
    budget: Document | None
    """The budget that paid; None if nothing keeps count of the release."""
    unprotected: tuple[str, ...] | None
    """What the caller chose by looking at the data. Empty: nothing. None: nobody said."""
    about: Document
    """What people said of the release when they asked for it (``ABOUT``). Absent if nothing."""
    trust_model: str
    release_type: str
    record: Document | None
    """What the ledger says about it. None inside an answer, which cannot contain its own hash."""

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Raises ``ValueError``, ``TypeError`` or ``LookupError`` if the object is not a certificate."""
        check_members(cls, document)
        for name in ("epsilon", "delta", "mu_squared", "hazard", "budget", "idempotency_key"):
            document[name]
        if document["budget"] is not None and not isinstance(document["budget"]["id"], str):
            raise ValueError("must be of another type")
        for table in document.get("tables", [document]):
            table["mechanism"]
            if "bounds" in table and not isinstance(table["bounds"]["plan_digest"], str | None):
                raise ValueError("must be of another type")
            if "roles" in table:
                _roles(table["roles"])
            _meaning(table)
        if "survey" in document:
            SurveyStatement.from_json(document["survey"])
        return cls(document)

    @property
    def described(self) -> Mapping[str, Document]:
        """What describes each table, by its name. The only table of version 2 has the empty name."""
        return {table.name: table for table in self.tables} if "tables" in self else {"": self}

    @property
    def mechanisms(self) -> Mapping[str, AnyMechanism]:
        """The mechanism of each table, by its name. The only table of version 2 has the empty name."""
        return {name: release_from_json(table.mechanism) for name, table in self.described.items()}

    @property
    def unit(self) -> str:
        """The privacy unit with its period: ``user``, or ``user-week``."""
        unit, period = self.get("privacy_unit", "unit"), self.get("period")
        return unit if period is None else f"{unit}-{period}"

    @property
    def columns(self) -> Mapping[str, Roles]:
        """The roles of the columns of each table, by its name, where the certificate says them."""
        return {name: _roles(table.roles) for name, table in self.described.items() if "roles" in table}

    @property
    def contents(self) -> Mapping[str, Document]:
        """The digest of the rows of each table, by its name, where the certificate has it."""
        return {name: table.content for name, table in self.described.items() if "content" in table}

    def with_contents(self, contents: Mapping[str, Mapping[str, Any]]) -> Self:
        """The same release, with the digests of the released rows of its tables, by their names."""
        if "tables" not in self:
            return type(self)(_in_order({**self, "content": contents[""]}))
        return self._with(tables=[_with_content(table, contents[table.name]) for table in self.tables])

    @property
    def meanings(self) -> Mapping[str, Meaning]:
        """What the columns of each table mean, by its name."""
        return {name: _meaning(table) for name, table in self.described.items()}

    @property
    def release(self) -> Release:
        """What was released: all that its privacy depends on."""
        return _release_of(self.mechanisms, SurveyStatement.from_json(self.survey) if "survey" in self else None)

    def charged_to(
        self,
        *,
        budget: str,
        epsilon: float,
        delta: float,
        promised_delta: float,
        privacy_unit: str,
        period: str | None,
        idempotency_key: str | None,
        ancestors: Sequence[Json] = (),
    ) -> Self:
        """The same release, paid for by a budget with the limit (ε, δ) and the promised δ at this ε.

        A dry run has no idempotency key. ``ancestors`` are the budgets that pay too, the parent first, each with its
        ``id``, ``privacy_unit``, ``period``, ``promise`` and ``limit``.
        """
        promise, limit = {"epsilon": epsilon, "delta": promised_delta}, {"epsilon": epsilon, "delta": delta}
        paid: Json = {"id": budget, "promise": promise, "limit": limit}
        paid |= {"ancestors": list(ancestors)} if ancestors else {}
        return self._with(idempotency_key=idempotency_key, privacy_unit=privacy_unit, period=period, budget=paid)

    def after_survey(
        self,
        tables: Mapping[str, AnyMechanism],
        *,
        digest: str,
        chosen: Sequence[str],
        enforced_by: EnforcedBy,
        plan_digest: str | None,
        meanings: Mapping[str, Meaning] = MappingProxyType({}),
    ) -> Self:
        """The same release with the tables that its survey chose, which must cost what was charged for them.

        ``digest`` is that of the noisy histograms, and ``chosen`` says what was chosen in words. ``meanings`` are those
        of the columns, where they are others now. The only table has the empty name. An error if the release has no
        survey, or if these are other tables.
        """
        if "survey" not in self:
            raise InvalidParameter("survey", "must be stated when the release is opened")
        if list(tables) != list(self.described):
            raise InvalidParameter("tables", "must be those that the release was opened with, in the same order")
        statement = replace(SurveyStatement.from_json(self.survey), digest=digest, chosen=tuple(chosen))
        if _release_of(tables, statement) != self.release:
            detail = "must be what the tables cost: these would be charged otherwise than the release was"
            raise InvalidParameter("after_survey", detail)
        enforced: Json = {"enforced_by": enforced_by, "plan_digest": plan_digest}
        described = {
            name: _described(table, None, self.columns.get(name), meanings.get(name, self.meanings[name]), enforced)
            for name, table in tables.items()
        }
        own = {"tables": _listed(tables, described)} if _are_named(tables) else described[""]
        return type(self)({**_in_order({**self, **own, "survey": statement.to_json()})})

    def recorded(self, record: Mapping[str, Any] | None) -> Self:
        """The same release, with what the ledger says about it; or without, as it is inside an answer."""
        return self._with(record=record)

    def _with(self, **changes: Any) -> Self:
        return type(self)({**self, **changes})


def _meaning(table: Mapping[str, Any]) -> Meaning:
    """Raises ``ValueError``, ``TypeError`` or ``LookupError`` if it is not understood."""
    columns = table["mechanism"].get("aggregates") or {}
    return Meaning.from_members(table, columns.get("names") or ())


def _roles(given: Mapping[str, Any]) -> Roles:
    """Raises ``ValueError``, ``TypeError`` or ``LookupError`` if these are not roles."""
    keys, count, values = (given[name] for name in ("keys", "count", "values"))
    if not isinstance(keys, list | tuple) or not isinstance(values, list | tuple):
        raise TypeError("must be of another type")
    if not all(isinstance(name, str) for name in (*keys, count, *values)):
        raise TypeError("must be of another type")
    return Roles(tuple(keys), count, tuple(values))


def certificate(
    mechanism: AnyMechanism | Mapping[str, AnyMechanism],
    *,
    epsilon: Real | None = None,
    delta: Real | None = None,
    unprotected: Sequence[str] | None = None,
    privacy_unit: str = "user",
    enforced_by: EnforcedBy = "caller",
    plan_digest: str | None = None,
    roles: Roles | Mapping[str, Roles] | None = None,
    meanings: Meaning | Mapping[str, Meaning] | None = None,
    noise: str = words.NOISE,
    survey: SurveyStatement | None = None,
) -> Certificate:
    """What one release by the mechanism promises that the library makes.

    Several tables that are released together are given by their names. ``epsilon`` or ``delta`` chooses the stated
    point of the privacy curve. ``unprotected`` says what was chosen by looking at the data; it is empty if nothing was,
    and None if nobody says. ``enforced_by`` and ``plan_digest`` say what made sure that no user exceeds the bounds,
    ``roles`` which columns the tables have, ``meanings`` what they add up, ``noise`` how it is drawn, and ``survey``
    from which histograms bounds were chosen.
    """
    if not isinstance(privacy_unit, str) or not 0 < len(privacy_unit) <= _LONGEST_CHOICE:
        raise InvalidParameter("privacy_unit", f"must be a text of 1 to {_LONGEST_CHOICE} characters")
    if epsilon is not None and delta is not None:
        raise InvalidParameter("epsilon", "give at most one of epsilon and delta")
    tables = mechanism if isinstance(mechanism, Mapping) else {"": mechanism}
    for name, table in tables.items():
        checked_mechanism(f"tables/{pointer_part(name)}" if isinstance(mechanism, Mapping) else "mechanism", table)
    return certificate_of(
        tables,
        {name: Noise(table) for name, table in tables.items()},
        epsilon=None if epsilon is None else real("epsilon", epsilon) + 0.0,
        delta=None if delta is None else real("delta", delta),
        unprotected=_choices(unprotected),
        privacy_unit=privacy_unit,
        enforced_by=enforced_by,
        plan_digest=plan_digest,
        trust_model=words.TRUST_LIBRARY,
        roles={"": roles} if isinstance(roles, Roles) else roles or {},
        meanings={"": meanings} if isinstance(meanings, Meaning) else meanings or {},
        survey=survey,
    )._with(noise=noise)


def certificate_of(
    tables: Mapping[str, AnyMechanism],
    noise: Mapping[str, Noise] | None,
    *,
    epsilon: float | None,
    delta: float | None,
    unprotected: Sequence[str] | None,
    enforced_by: EnforcedBy,
    plan_digest: str | None,
    trust_model: str,
    privacy_unit: str = "user",
    roles: Mapping[str, Roles] = MappingProxyType({}),
    meanings: Mapping[str, Meaning] = MappingProxyType({}),
    survey: SurveyStatement | None = None,
    about: Mapping[str, str] | None = None,
) -> Certificate:
    """The certificate of a release, before a budget pays for it. Without ``noise``, another engine draws it.

    A single mechanism has the empty name.
    """
    release = _release_of(tables, survey)
    point, cost = _stated(release.without_columns, epsilon, delta), cost_of(release)
    drawn = words.NOISE_FROM_A_SEED if enforced_by == "gsh.spark" else words.NOISE_ELSEWHERE
    enforced: Json = {"enforced_by": enforced_by, "plan_digest": plan_digest}
    described = {
        name: _described(
            table, None if noise is None else noise[name], roles.get(name), meanings.get(name, Meaning()), enforced
        )
        for name, table in tables.items()
    }
    return Certificate(
        _in_order(
            {
                "schema": words.SCHEMA_OF_TABLES if _are_named(tables) else words.SCHEMA,
                "release_id": str(uuid.uuid4()),
                "idempotency_key": None,
                "released_at": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
                "service_version": _version(),
                "python": platform.python_version(),
                "flint": flint.__FLINT_VERSION__,
                "privacy_unit": privacy_unit,
                "period": None,
                "adjacency": words.ADJACENCY,
                **({"tables": _listed(tables, described)} if _are_named(tables) else described[""]),
                "noise": drawn if noise is None else words.NOISE,
                "accounting": "exact",
                "mu": point.mu,
                "mu_squared": cost.mu_squared,
                "hazard": cost.hazard,
                "delta_infinite": point.delta_infinite,
                "epsilon": point.epsilon,
                "delta": point.delta,
                "curve": _curve(release),
                **({} if survey is None else {"survey": survey.to_json()}),
                "budget": None,
                "unprotected": None if unprotected is None else list(unprotected),
                **({"about": dict(about)} if about else {}),
                "trust_model": trust_model,
                "release_type": words.RELEASE_TYPE,
                "record": None,
            }
        )
    )


def _in_order(members: Json) -> Json:
    """The members of a certificate in the order in which the class declares them; unknown ones come last."""
    return {name: members[name] for name in Certificate.__annotations__ if name in members} | members


def _with_content(table: Mapping[str, Any], content: Mapping[str, Any]) -> Json:
    """A table of version 3 with its content after its name and its roles."""
    before = {name: table[name] for name in ("name", "roles") if name in table}
    return before | {"content": content} | {name: value for name, value in table.items() if name != "content"}


def _are_named(tables: Mapping[str, AnyMechanism]) -> bool:
    return "" not in tables


def _release_of(tables: Mapping[str, AnyMechanism], survey: SurveyStatement | None = None) -> Release:
    fixed = Joint(list(tables.values())) if _are_named(tables) else tables[""]
    if survey is None:
        return fixed
    check_costs(survey.plan, fixed)
    return survey.release(fixed)


def _described(
    mechanism: AnyMechanism, noise: Noise | None, roles: Roles | None, meaning: Meaning, enforced: Json
) -> Json:
    """The members that describe one table."""
    capped = capped_to_json(mechanism.costs.capped)
    return {
        **({} if roles is None else {"roles": asdict(roles)}),
        "bounds": bounds_of(mechanism, meaning) | enforced,
        **meaning.members(mechanism.column_names),
        "mechanism": mechanism_to_json(mechanism),
        "tie_rule": words.TIE_RULE if isinstance(mechanism, Mechanism) else words.NO_THRESHOLD,
        "grid": None
        if noise is None
        else {"count": noise.count_grid, "values": _by_name(mechanism, noise.value_grids)},
        "mu_0": mechanism.costs.mu_0,
        **({"capped": capped} if capped else {}),
    }


def _listed(tables: Mapping[str, AnyMechanism], described: Mapping[str, Json]) -> list[Json]:
    """The tables in their order, each with its name and its costs."""
    return [{"name": name, **described[name], **asdict(cost_of(table))} for name, table in tables.items()]


def _curve(release: Release) -> str:
    if isinstance(release, Surveyed):
        return words.CURVE_AFTER_SURVEY if is_exact(release) else words.CURVE_BY_CHORDS
    if isinstance(release, Joint):
        return words.CURVE_OF_TABLES
    return words.CURVE_WITH_CAPS if isinstance(release, Mechanism) and release.caps else words.CURVE


@functools.cache
def _version() -> str:
    """The version of this library. Reading it from the disk takes a millisecond."""
    return version("gaussian-sparse-histogram")


class _StatedPoint(NamedTuple):
    """The stated point of the curve, and the two numbers that the curve follows from."""

    epsilon: float | None
    delta: float | None
    mu: float
    delta_infinite: float


def _stated(release: Release, epsilon: float | None, delta: float | None) -> _StatedPoint:
    """δ at the asked ε, or the smallest ε at the asked δ, or neither; every number is rounded up."""
    if delta is None:
        point = at_epsilon(EXACT, release, epsilon or 0.0)
        return _StatedPoint(epsilon, None if epsilon is None else point.delta, point.mu, point.delta_infinite)
    point = at_delta(EXACT, release, delta)
    if point.epsilon is None:
        raise InfeasibleTarget("delta", f"must be at least {point.delta_infinite}: below it no finite ε exists")
    return _StatedPoint(point.epsilon, point.delta, point.mu, point.delta_infinite)


def _by_name(mechanism: AnyMechanism, grids: Sequence[float]) -> dict[str, float]:
    return dict(zip(mechanism.column_names, grids, strict=True))


def bounds_of(mechanism: AnyMechanism, meaning: Meaning = Meaning()) -> Json:  # noqa: B008 - it is frozen
    """The most that one unit can change, and so what intervals of the released numbers cover."""
    bounds: Json = {"c_u": mechanism.c_u, "per_group": "", "columns": None, "norm": None, "vectors": None}
    columns = mechanism.aggregates
    if columns is None:
        bounds["per_group"] = words.MU_0 if mechanism.mu_0 or mechanism.capped else words.COUNTS_ONLY
    else:
        match columns.sensitivity:
            case Box(lower, upper, groups):
                ranges = zip(columns.names, lower, upper, groups or (None,) * len(lower), strict=True)
                bounds["per_group"] = words.BOX if groups is None else words.CAPPED_BOX
                bounds["columns"] = [_column(*each, meaning) for each in ranges]
            case L1Norm(bound):
                bounds |= {"per_group": words.NORM, "norm": {"kind": "l1", "bound": bound}}
            case L2Norm(bound):
                bounds |= {"per_group": words.NORM, "norm": {"kind": "l2", "bound": bound}}
            case listed:
                bounds |= {"per_group": words.VECTORS, "vectors": len(listed.vectors)}
    return bounds | {"intervals_cover": words.intervals_cover(bounds)}


def _column(name: str, lower: float, upper: float, cap: int | None, meaning: Meaning) -> Json:
    said = {} if name not in meaning.columns else meaning.columns[name].to_json()
    return {"name": name, "lower": lower, "upper": upper} | ({} if cap is None else {"groups": cap}) | said


def _choices(unprotected: Sequence[str] | None) -> list[str] | None:
    if unprotected is None:
        return None
    choices = list(unprotected)
    if len(choices) > _MOST_CHOICES or not all(0 < len(text) <= _LONGEST_CHOICE for text in choices):
        raise InvalidParameter("unprotected", "must be at most 16 texts of 1 to 200 characters")
    return choices
