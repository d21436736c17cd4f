"""The operations of a client: the functions of the library with the same names, arguments and results."""

from collections.abc import Coroutine, Mapping
from typing import Any, Literal, Protocol, TypeVar, overload

from gsh.accounting.column_costs import Caps
from gsh.accounting.mechanism import Aggregates, Mechanism, RelativeAggregates
from gsh.arguments import Integer, Real, Reals, integer, is_several, real, reals
from gsh.client import accuracy, releasing
from gsh.client.budgets import IN_A_MECHANISM, Budgets
from gsh.client.calls import Operation
from gsh.client.decoding import decoded
from gsh.client.documents import parsed
from gsh.client.encoding import (
    calibration_of,
    comparison_of,
    one_mechanism,
    points_of,
)
from gsh.client.json_calls import ask, json_call
from gsh.client.operations import Bound, Driver, Mode, Overloaded, operation
from gsh.client.records import Version
from gsh.client.releases import Releases
from gsh.errors import InvalidParameter
from gsh.library.columns import Columns
from gsh.library.privacy import Curve, Privacy
from gsh.library.targets import Calibration, Comparison, draft_of, target_of
from gsh.wire import Json, draft_to_json, mechanism_to_json

__all__ = ["Service"]

M = TypeVar("M", bound=Mode)


class Account(Protocol):
    """The calls of ``Client.exact`` and ``Client.add_deltas``."""

    @overload
    def __call__(self, mechanism: Mechanism | Calibration, *, epsilon: Real) -> Privacy: ...
    @overload
    def __call__(self, mechanism: Mechanism | Calibration, *, delta: Real) -> Privacy: ...
    @overload
    def __call__(self, mechanism: Mechanism | Calibration, *, epsilon: Reals) -> Curve: ...
    @overload
    def __call__(self, mechanism: Mechanism | Calibration, *, delta: Reals) -> Curve: ...


class AsyncAccount(Protocol):
    """The calls of ``AsyncClient.exact`` and ``AsyncClient.add_deltas``."""

    @overload
    def __call__(self, mechanism: Mechanism | Calibration, *, epsilon: Real) -> Coroutine[Any, Any, Privacy]: ...
    @overload
    def __call__(self, mechanism: Mechanism | Calibration, *, delta: Real) -> Coroutine[Any, Any, Privacy]: ...
    @overload
    def __call__(self, mechanism: Mechanism | Calibration, *, epsilon: Reals) -> Coroutine[Any, Any, Curve]: ...
    @overload
    def __call__(self, mechanism: Mechanism | Calibration, *, delta: Reals) -> Coroutine[Any, Any, Curve]: ...


def _exact(
    self: Bound[Any],
    mechanism: Mechanism | Calibration,
    *,
    epsilon: Real | Reals | None = None,
    delta: Real | Reals | None = None,
) -> Operation[Privacy | Curve]:
    """The smallest δ at ε, or the smallest ε at δ, as ``gsh.exact``. A list or an array gives a ``Curve``."""
    return (yield from _account(self, "exact", mechanism, epsilon, delta))


def _add_deltas(
    self: Bound[Any],
    mechanism: Mechanism | Calibration,
    *,
    epsilon: Real | Reals | None = None,
    delta: Real | Reals | None = None,
) -> Operation[Privacy | Curve]:
    """The same if the two deltas are added, as ``gsh.add_deltas``."""
    return (yield from _account(self, "add-deltas", mechanism, epsilon, delta))


def _account(
    self: Bound[Any],
    accounting: str,
    mechanism: Mechanism | Calibration,
    epsilon: Real | Reals | None,
    delta: Real | Reals | None,
) -> Operation[Privacy | Curve]:
    body: Json = {"mechanism": mechanism_to_json(one_mechanism(mechanism))}
    if (epsilon is None) == (delta is None):
        raise InvalidParameter("epsilon", "give exactly one of epsilon and delta")
    name, asked = ("epsilon", epsilon) if delta is None else ("delta", delta)
    several = is_several(asked)
    values = reals(name, asked) if several else (real(name, asked),)
    if not values:
        return Curve(())
    body[name] = list(values) if several else values[0]
    answer = yield from ask(self, json_call("POST", f"/account/{accounting}", body, is_safe=True), IN_A_MECHANISM)
    points = decoded(answer, lambda document: points_of(document, len(values)))
    return Curve(points) if several else points[0]


class Service(Bound[M]):
    """The operations of ``Client`` and ``AsyncClient``."""

    exact = Overloaded[Account, AsyncAccount](_exact)
    add_deltas = Overloaded[Account, AsyncAccount](_add_deltas)
    release = Overloaded[releasing.ReleaseCall, releasing.AsyncReleaseCall](releasing.release)
    dry_run = operation(releasing.dry_run)
    intervals = operation(accuracy.intervals)
    total = operation(accuracy.total)
    utility = operation(accuracy.utility)

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
        capped: Caps | None = None,
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
        capped: Caps | None = None,
    ) -> Operation[Comparison]:
        """The noise and the threshold that each accounting asks for the same target, as ``gsh.compare``."""
        columns = Columns(mu_0, capped, aggregates, sums, caps, weights)
        draft = draft_to_json(draft_of(columns, c_u=integer("c_u", c_u), tau=tau))
        body: Json = {"mechanism": draft, **_target(epsilon, delta)}
        call = json_call("POST", "/compare", body, is_safe=True)
        return decoded((yield from ask(self, call, IN_A_MECHANISM)), comparison_of)

    @operation
    def version(self) -> Operation[Version]:
        """The versions of the service and of its arithmetic."""
        answer = yield from ask(self, json_call("GET", "/version"))
        return decoded(answer, lambda document: parsed(Version, document))

    @operation
    def check(self, *, ledger: bool = True) -> Operation[None]:
        """Nothing, if the service is ready and its ledger answers. Else an error, at once: this is not tried again."""
        yield from ask(self, json_call("GET", "/readyz", query={"ledger": ledger}, is_safe=False))


def _target(epsilon: Real, delta: Real) -> Json:
    goal = target_of(epsilon=epsilon, delta=delta)
    return {"epsilon": goal.epsilon, "delta": goal.delta}
