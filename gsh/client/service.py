"""The operations of a client: the functions of the library with the same names, arguments and results."""

from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar, overload

from gsh.accounting.calibration.after_survey import SurveyPlan
from gsh.accounting.calibration.compared_tables import WayName
from gsh.accounting.column_costs import ColumnCaps
from gsh.accounting.mechanism import Aggregates, RelativeAggregates
from gsh.arguments import Integer, Real, Reals, integer
from gsh.client import accuracy, releasing
from gsh.client.access_keys import AccessKeys
from gsh.client.approvals import Approvals
from gsh.client.budgets import Budgets
from gsh.client.decoding import decoded
from gsh.client.encoding import (
    IN_A_MECHANISM,
    calibration_of,
    comparison_of,
    in_tables,
    points_of,
    release_json,
    tables_calibration_of,
    tables_comparison_of,
)
from gsh.client.operations import Answer, Bound, Driver, Mode, Operation, Overloaded, operation
from gsh.client.records import Version
from gsh.client.releases import Releases
from gsh.client.requests import ask, json_call
from gsh.documents import parsed
from gsh.errors import InvalidParameter
from gsh.library.privacy import Curve, Privacy, Released, SurveyGiven, accounted, asked_points, survey_noise
from gsh.library.tables import Table, TablesCalibration, TablesPrice, drafts_of
from gsh.library.targets import Calibration, Columns, Comparison, SurveyWanted, draft_of, survey_wanted, target_of
from gsh.wire import Json, after_survey_to_json, draft_to_json, survey_to_json, table_drafts_to_json

if TYPE_CHECKING:
    pass

__all__ = ["Service"]


M = TypeVar("M", bound=Mode)
P_co = TypeVar("P_co", covariant=True)
C_co = TypeVar("C_co", covariant=True)


Accounted: TypeAlias = Released | Calibration | TablesCalibration
"""What is accounted for: a mechanism, several tables by their names, or a calibration of either."""


class Account(Protocol[P_co, C_co]):
    """The calls of ``exact`` and ``add_deltas``: one number gives a point, several give a curve."""

    @overload
    def __call__(self, mechanism: Accounted, *, epsilon: Real, survey: SurveyGiven = None) -> P_co: ...
    @overload
    def __call__(self, mechanism: Accounted, *, delta: Real, survey: SurveyGiven = None) -> P_co: ...
    @overload
    def __call__(self, mechanism: Accounted, *, epsilon: Reals, survey: SurveyGiven = None) -> C_co: ...
    @overload
    def __call__(self, mechanism: Accounted, *, delta: Reals, survey: SurveyGiven = None) -> C_co: ...


BlockingAccount: TypeAlias = Account[Privacy, Curve]
AsyncAccount: TypeAlias = Account[Coroutine[Any, Any, Privacy], Coroutine[Any, Any, Curve]]


def _exact(
    self: Bound[Any],
    mechanism: Accounted,
    *,
    epsilon: Real | Reals | None = None,
    delta: Real | Reals | None = None,
    survey: SurveyGiven = None,
) -> Operation[Privacy | Curve]:
    """The smallest δ at ε, or the smallest ε at δ, as ``gsh.exact``. A list or an array gives a ``Curve``.

    A calibration after a survey brings its survey.
    """
    return (yield from _account(self, "exact", mechanism, epsilon, delta, survey))


def _add_deltas(
    self: Bound[Any],
    mechanism: Accounted,
    *,
    epsilon: Real | Reals | None = None,
    delta: Real | Reals | None = None,
    survey: SurveyGiven = None,
) -> Operation[Privacy | Curve]:
    """The same if the two deltas are added, as ``gsh.add_deltas``."""
    return (yield from _account(self, "add-deltas", mechanism, epsilon, delta, survey))


def _account(
    self: Bound[Any],
    accounting: str,
    mechanism: Accounted,
    epsilon: Real | Reals | None,
    delta: Real | Reals | None,
    survey: SurveyGiven,
) -> Operation[Privacy | Curve]:
    if isinstance(mechanism, Mapping):  # it may be JSON, which the library does not take
        accounted(mechanism)
    body: Json = release_json(mechanism)
    if survey is None and isinstance(mechanism, Calibration | TablesCalibration):
        survey = mechanism.survey
    if noise := survey_noise(survey):
        body["survey"] = survey_to_json(noise)
    name, values, several = asked_points(epsilon, delta)
    if not values:
        return Curve(())
    body[name] = list(values) if several else values[0]
    answer = yield from ask(self, json_call("POST", f"/account/{accounting}", body, is_safe=True), in_tables(body))
    points = decoded(answer, lambda document: points_of(document, len(values)))
    return Curve(points) if several else points[0]


class Service(Bound[M]):
    """The operations of ``Client`` and ``AsyncClient``."""

    exact = Overloaded[BlockingAccount, AsyncAccount](_exact)
    add_deltas = Overloaded[BlockingAccount, AsyncAccount](_add_deltas)
    release = Overloaded[releasing.BlockingReleaseCall, releasing.AsyncReleaseCall](releasing.release)
    dry_run = operation(releasing.dry_run)
    intervals = operation(accuracy.intervals)
    total = operation(accuracy.total)
    means = operation(accuracy.means)
    ratios = operation(accuracy.ratios)
    utility = operation(accuracy.utility)

    @property
    def _driver(self) -> Driver[M]:
        raise NotImplementedError

    @property
    def budgets(self) -> Budgets[M]:
        """Limits, and what is spent of them: ``client.budgets["web"]``."""
        return Budgets(self._driver)

    @property
    def approvals(self) -> Approvals[M]:
        """What waits for a second access key: ``client.approvals.approve(id, reason="as planned")``."""
        return Approvals(self._driver)

    @property
    def access_keys(self) -> AccessKeys[M]:
        """Who may do what: ``client.access_keys.create(["release"], budgets=["web"])``."""
        return AccessKeys(self._driver)

    @property
    def releases(self) -> Releases[M]:
        """What budgets have paid for: ``client.releases["web-2026-W46"].table``."""
        return Releases(self._driver)

    @operation
    def calibrate(
        self,
        *,
        epsilon: Real,
        delta: Real,
        c_u: Integer | None = None,
        tau: Integer = 1,
        tau_star: Real | None = None,
        sigma: Real | None = None,
        mu_0: Real = 0.0,
        aggregates: Aggregates | RelativeAggregates | None = None,
        sums: Mapping[str, tuple[Real, Real]] | None = None,
        caps: Mapping[str, Integer] | None = None,
        weights: Mapping[str, Real] | None = None,
        capped: ColumnCaps | None = None,
        accounting: Literal["exact", "add-deltas"] = "exact",
        survey: SurveyWanted = None,
    ) -> Operation[Calibration]:
        """Solve for the omitted parameters, so that the mechanism meets (ε, δ), as ``gsh.calibrate``."""
        if accounting not in ("exact", "add-deltas"):
            raise InvalidParameter("accounting", "must be 'exact' or 'add-deltas'")
        columns = Columns(mu_0, capped, aggregates, sums, caps, weights)
        draft = draft_to_json(draft_of(columns, c_u=c_u, tau=tau, tau_star=tau_star, sigma=sigma))
        body: Json = {"mechanism": draft, **_target(epsilon, delta), "accounting": accounting, **_survey(survey)}
        answer = yield from ask(self, json_call("POST", "/calibrate", body, is_safe=True), IN_A_MECHANISM)
        return decoded(answer, calibration_of)

    @operation
    def compare(
        self,
        *,
        c_u: Integer,
        epsilon: Real,
        delta: Real,
        tau: Integer = 1,
        mu_0: Real = 0.0,
        aggregates: Aggregates | RelativeAggregates | None = None,
        sums: Mapping[str, tuple[Real, Real]] | None = None,
        caps: Mapping[str, Integer] | None = None,
        weights: Mapping[str, Real] | None = None,
        capped: ColumnCaps | None = None,
    ) -> Operation[Comparison]:
        """The noise and the threshold that each accounting asks for the same target, as ``gsh.compare``."""
        columns = Columns(mu_0, capped, aggregates, sums, caps, weights)
        draft = draft_to_json(draft_of(columns, c_u=integer("c_u", c_u), tau=tau))
        body: Json = {"mechanism": draft, **_target(epsilon, delta)}
        call = json_call("POST", "/compare", body, is_safe=True)
        return decoded((yield from ask(self, call, IN_A_MECHANISM)), comparison_of)

    @operation
    def calibrate_tables(
        self,
        tables: Mapping[str, Table],
        *,
        epsilon: Real,
        delta: Real,
        shares: Literal["balanced"] | None = None,
        survey: SurveyWanted = None,
    ) -> Operation[TablesCalibration]:
        """The smallest noise of each table for its share of (ε, δ), as ``gsh.calibrate_tables``."""
        answer = yield from _shared(self, "/calibrate", tables, shares, _target(epsilon, delta) | _survey(survey))
        return decoded(answer, lambda document: tables_calibration_of(list(tables), document))

    @operation
    def compare_tables(
        self,
        tables: Mapping[str, Table],
        *,
        epsilon: Real,
        delta: Real,
        shares: Literal["balanced"] | None = None,
    ) -> Operation[Mapping[WayName, TablesPrice | None]]:
        """What ways to account for the same tables need, as ``gsh.compare_tables``."""
        answer = yield from _shared(self, "/compare", tables, shares, _target(epsilon, delta))
        return decoded(answer, lambda document: tables_comparison_of(list(tables), document))

    @operation
    def version(self) -> Operation[Version]:
        """The versions of the service and of its arithmetic."""
        answer = yield from ask(self, json_call("GET", "/version"))
        return decoded(answer, lambda document: parsed(Version, document))

    @operation
    def check(self, *, ledger: bool = True) -> Operation[None]:
        """Nothing, if the service is ready and its ledger answers. Else an error, at once: this is not tried again."""
        yield from ask(self, json_call("GET", "/readyz", query={"ledger": ledger}, is_safe=False))


def _shared(
    self: Bound[Any], path: str, tables: Mapping[str, Table], shares: Literal["balanced"] | None, target: Json
) -> Operation[Answer]:
    """The answer about tables that share a target."""
    drafts, given = drafts_of(tables, shares)
    body: Json = {"tables": table_drafts_to_json(drafts, given)} | ({"shares": shares} if shares else {}) | target
    return (yield from ask(self, json_call("POST", path, body, is_safe=True), in_tables(body)))


def _survey(given: SurveyWanted) -> Json:
    """The members of a request for a survey: none without one."""
    if given is None:
        return {}
    wanted = survey_wanted(given)
    if isinstance(wanted, SurveyPlan):
        return {"survey": survey_to_json(wanted.survey), "after_survey": after_survey_to_json(wanted)}
    return {"survey": survey_to_json(wanted)}


def _target(epsilon: Real, delta: Real) -> Json:
    goal = target_of(epsilon=epsilon, delta=delta)
    return {"epsilon": goal.epsilon, "delta": goal.delta}
