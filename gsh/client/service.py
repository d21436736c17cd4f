"""The operations of a client: the functions of the library with the same names, arguments and results."""

from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar, overload

import numpy as np

from gsh.accounting.calibration.compared_tables import WayName
from gsh.accounting.column_costs import ColumnCaps
from gsh.accounting.mechanism import Aggregates, Mechanism, RelativeAggregates
from gsh.arguments import Integer, Real, Reals, integer, real, reals
from gsh.client import releasing
from gsh.client.budgets import Budgets
from gsh.client.decoding import decoded
from gsh.client.encoding import (
    IN_A_MECHANISM,
    MechanismLike,
    any_mechanism,
    calibration_of,
    comparison_of,
    in_tables,
    one_mechanism,
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
from gsh.library.privacy import Curve, Privacy, Released, accounted, asked_points
from gsh.library.tables import Table, TablesCalibration, TablesPrice, drafts_of
from gsh.library.targets import Calibration, Columns, Comparison, draft_of, target_of
from gsh.wire import Json, draft_to_json, mechanism_to_json, table_drafts_to_json

if TYPE_CHECKING:
    from gsh.accuracy.utility import Utility
    from gsh.library.accuracy import Integers, Intervals, Totals

__all__ = ["Service"]


def _intervals(
    self: Bound[Any],
    mechanism: MechanismLike,
    *,
    counts: Reals,
    values: Mapping[str, Reals] | None = None,
    level: Real = 0.95,
) -> Operation["Intervals"]:
    """Where the true numbers of published groups are, as ``gsh.intervals``. It costs no privacy."""
    from gsh.library.accuracy import Interval, Intervals  # noqa: PLC0415

    def interval(column: Mapping[str, list[float]]) -> Interval:
        return Interval(*(np.array(column[end], np.float64) for end in ("low", "estimate", "high")))

    def found(answer: Json) -> Intervals:
        columns = {name: interval(column) for name, column in answer["values"].items()}
        return Intervals(float(answer["level"]), interval(answer["counts"]), columns)

    return decoded((yield from _published(self, mechanism, counts, values, level, is_total=False)), found)


def _total(
    self: Bound[Any],
    mechanism: MechanismLike,
    *,
    counts: Reals,
    values: Mapping[str, Reals] | None = None,
    level: Real = 0.95,
) -> Operation["Totals"]:
    """The sum of the true numbers of some published groups, as ``gsh.total``. It costs no privacy."""
    from gsh.library.accuracy import Total, Totals  # noqa: PLC0415

    def found(answer: Json) -> Totals:
        sums = answer["total"]
        columns = {name: parsed(Total, column) for name, column in sums["values"].items()}
        return Totals(float(answer["level"]), parsed(Total, sums["counts"]), columns)

    return decoded((yield from _published(self, mechanism, counts, values, level, is_total=True)), found)


def _published(
    self: Bound[Any],
    mechanism: MechanismLike,
    counts: Reals,
    values: Mapping[str, Reals] | None,
    level: Real,
    *,
    is_total: bool,
) -> Operation[Answer]:
    """The answer about published numbers. The library checks them, so that its errors name them."""
    from gsh.library.accuracy import level_of, published_numbers  # noqa: PLC0415

    used, chosen = any_mechanism(mechanism), level_of(level)
    numbers, others = published_numbers(used, counts, values)
    columns = {name: column.tolist() for name, (_, column) in others.items()}
    body: Json = {"mechanism": mechanism_to_json(used), "level": chosen, "counts": numbers.tolist(), "values": columns}
    call = json_call("POST", "/intervals", body | {"total": is_total}, is_safe=True)
    return (yield from ask(self, call, IN_A_MECHANISM))


def _utility(
    self: Bound[Any],
    mechanism: Mechanism | Calibration,
    *,
    sizes: "Integers",
    times: "Integers | None" = None,
    below: Real | None = None,
    quantiles: Reals = (0.5, 0.9, 0.95),
) -> Operation["Utility"]:
    """What the mechanism would publish of groups of these sizes, as ``gsh.utility``.

    Only the histogram of the sizes is sent. The result depends on the sizes exactly: use public or made-up ones.
    """
    from gsh.accuracy.bounds import counted  # noqa: PLC0415 - these load SciPy
    from gsh.library.accuracy import integers  # noqa: PLC0415

    used = one_mechanism(mechanism)
    found, groups = counted(integers("sizes", sizes), None if times is None else integers("times", times))
    body: Json = {"mechanism": mechanism_to_json(used), "sizes": found.tolist(), "times": groups.tolist()}
    body["quantiles"] = list(reals("quantiles", quantiles))
    if below is not None:
        body["below"] = real("below", below)
    call = json_call("POST", "/utility", body, is_safe=True)
    return decoded((yield from ask(self, call, IN_A_MECHANISM)), _utility_of)


def _utility_of(answer: Mapping[str, Any]) -> "Utility":
    from gsh.accuracy.utility import ColumnNoise, Utility  # noqa: PLC0415

    groups, volume, false = answer["groups"], answer["volume"], answer["false_groups"]
    columns: dict[str, list[Any]] = {
        name: [each[name] for each in answer["sizes"]] for name in ("size", "times", "probability")
    }
    errors = [each["error"] for each in answer["relative_errors"]]
    share = false["share"]
    return Utility(
        sizes=np.array(columns["size"], np.int64),
        times=np.array(columns["times"], np.int64),
        probabilities=np.array(columns["probability"], np.float64),
        all_groups=groups["total"],
        groups=float(groups["expected"]),
        groups_deviation=float(groups["standard_deviation"]),
        all_volume=float(volume["total"]),
        volume=float(volume["expected"]),
        below=float(false["below"]),
        false_groups=float(false["expected"]),
        false_share=None if share is None else float(share),
        quantiles=tuple(float(each["quantile"]) for each in answer["relative_errors"]),
        relative_errors=None if share is None else tuple(map(float, errors)),
        columns=tuple(
            ColumnNoise(each["name"], float(each["standard_deviation"]), float(each["total_standard_deviation"]))
            for each in answer["columns"]
        ),
    )


M = TypeVar("M", bound=Mode)
P_co = TypeVar("P_co", covariant=True)
C_co = TypeVar("C_co", covariant=True)


Accounted: TypeAlias = Released | Calibration | TablesCalibration
"""What is accounted for: a mechanism, several tables by their names, or a calibration of either."""


class Account(Protocol[P_co, C_co]):
    """The calls of ``exact`` and ``add_deltas``: one number gives a point, several give a curve."""

    @overload
    def __call__(self, mechanism: Accounted, *, epsilon: Real) -> P_co: ...
    @overload
    def __call__(self, mechanism: Accounted, *, delta: Real) -> P_co: ...
    @overload
    def __call__(self, mechanism: Accounted, *, epsilon: Reals) -> C_co: ...
    @overload
    def __call__(self, mechanism: Accounted, *, delta: Reals) -> C_co: ...


BlockingAccount: TypeAlias = Account[Privacy, Curve]
AsyncAccount: TypeAlias = Account[Coroutine[Any, Any, Privacy], Coroutine[Any, Any, Curve]]


def _exact(
    self: Bound[Any],
    mechanism: Accounted,
    *,
    epsilon: Real | Reals | None = None,
    delta: Real | Reals | None = None,
) -> Operation[Privacy | Curve]:
    """The smallest δ at ε, or the smallest ε at δ, as ``gsh.exact``. A list or an array gives a ``Curve``."""
    return (yield from _account(self, "exact", mechanism, epsilon, delta))


def _add_deltas(
    self: Bound[Any],
    mechanism: Accounted,
    *,
    epsilon: Real | Reals | None = None,
    delta: Real | Reals | None = None,
) -> Operation[Privacy | Curve]:
    """The same if the two deltas are added, as ``gsh.add_deltas``."""
    return (yield from _account(self, "add-deltas", mechanism, epsilon, delta))


def _account(
    self: Bound[Any],
    accounting: str,
    mechanism: Accounted,
    epsilon: Real | Reals | None,
    delta: Real | Reals | None,
) -> Operation[Privacy | Curve]:
    if isinstance(mechanism, Mapping):  # it may be JSON, which the library does not take
        accounted(mechanism)
    body: Json = release_json(mechanism)
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
    intervals = operation(_intervals)
    total = operation(_total)
    utility = operation(_utility)

    @property
    def _driver(self) -> Driver[M]:
        raise NotImplementedError

    @property
    def budgets(self) -> Budgets[M]:
        """Limits, and what is spent of them: ``client.budgets["web"]``."""
        return Budgets(self._driver)

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
    ) -> Operation[Calibration]:
        """Solve for the omitted parameters, so that the mechanism meets (ε, δ), as ``gsh.calibrate``."""
        if accounting not in ("exact", "add-deltas"):
            raise InvalidParameter("accounting", "must be 'exact' or 'add-deltas'")
        columns = Columns(mu_0, capped, aggregates, sums, caps, weights)
        draft = draft_to_json(draft_of(columns, c_u=c_u, tau=tau, tau_star=tau_star, sigma=sigma))
        body: Json = {"mechanism": draft, **_target(epsilon, delta), "accounting": accounting}
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
    ) -> Operation[TablesCalibration]:
        """The smallest noise of each table for its share of (ε, δ), as ``gsh.calibrate_tables``."""
        answer = yield from _shared(self, "/calibrate", tables, shares, _target(epsilon, delta))
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


def _target(epsilon: Real, delta: Real) -> Json:
    goal = target_of(epsilon=epsilon, delta=delta)
    return {"epsilon": goal.epsilon, "delta": goal.delta}
