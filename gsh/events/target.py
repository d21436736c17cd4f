"""The noise of a plan, and who pays for it: a budget of the service under a name, or nobody.

The mechanism is calibrated to a target or to a share of a budget, or it is given and checked against the plan.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gsh.accounting.mechanism import Mechanism
from gsh.accounting.sensitivity import Box
from gsh.arguments import Integer, Real, instance, real, text
from gsh.errors import InvalidParameter
from gsh.events.plan import Plan
from gsh.library.targets import calibrate
from gsh.wire import mechanism_from_json

if TYPE_CHECKING:
    from gsh.client import Client
    from gsh.client.operations import Blocking
    from gsh.client.releases import RecordedRelease

__all__ = ["Payer", "Target", "check_plan", "mechanism_for", "payer_of"]


@dataclass(frozen=True, slots=True)
class Payer:
    """A budget, and the idempotency key under which it pays exactly once."""

    service: "Client"
    budget: str
    once: str

    def earlier(self) -> "RecordedRelease[Blocking] | None":
        """The release that this name has, if there is one."""
        from gsh.client.errors import UnknownRelease  # noqa: PLC0415 - only with a service

        try:
            return self.service.releases.get(self.once)
        except UnknownRelease:
            return None

    def share(
        self,
        plan: Plan,
        releases: Integer,
        weights: Mapping[str, Real] | None,
        most_sigma: Real | None = None,
    ) -> tuple[Mechanism, Mapping[str, float]]:
        """The smallest noise with which so many equal releases fit what remains, and the ε of the budget.

        The restart of a job gets the mechanism of its first run, which may have used some of the budget.
        """
        earlier = self.earlier()
        if earlier is not None:
            said = earlier.certificate
            check_plan(said.bounds.plan_digest, plan)
            stated = {} if said.epsilon is None else {"epsilon": said.epsilon}
            return mechanism_from_json(said.to_dict()["mechanism"]), stated
        found = self.service.budgets.calibrate(
            self.budget,
            releases=releases,
            c_u=plan.c_u,
            tau=plan.tau,
            sums=plan.ranges,
            caps=plan.caps,
            weights=weights,
            most_sigma=most_sigma,
        )
        return found.mechanism, {"epsilon": found.epsilon}


def payer_of(
    service: "Client | None", budget: str | None, once: str | None, description: str, privacy_unit: str | None
) -> Payer | None:
    """The payer, if there is a service; arguments that do not go together are refused."""
    if service is None:
        for name, value in (("budget", budget), ("once", once), ("description", description or None)):
            if value is not None:
                raise InvalidParameter(name, "must be omitted without a service: nothing else keeps count")
        return None
    if not (hasattr(service, "releases") and hasattr(service, "budgets")):
        raise InvalidParameter("service", f"must be a gsh.Client, not {type(service).__name__}")
    from gsh.client.requests import checked_name  # noqa: PLC0415 - only with a service

    for name, value in (("budget", budget), ("once", once)):
        if value is None:
            raise InvalidParameter(name, "must be given with a service: a release is charged once, under its name")
    text("description", description)
    if privacy_unit is not None:
        raise InvalidParameter("privacy_unit", "must be omitted with a service: the budget has it")
    return Payer(service, checked_name("budget", budget), checked_name("once", once))


def check_plan(digest: str | None, plan: Plan) -> None:
    """Refuse the name of a release by another plan."""
    if digest != plan.digest:
        raise InvalidParameter("once", "must be a new name: a release by another plan has it already")


@dataclass(frozen=True, slots=True)
class Target:
    """The mechanism, and the point of its privacy curve that the certificate states."""

    mechanism: Mechanism
    stated: Mapping[str, float]
    """``epsilon`` or ``delta``, or nothing."""


def mechanism_for(
    plan: Plan,
    *,
    epsilon: Real | None = None,
    delta: Real | None = None,
    mechanism: Mechanism | None = None,
    weights: Mapping[str, Real] | None = None,
    releases: Integer | None = None,
    most_sigma: Real | None = None,
    payer: Payer | None = None,
) -> Target:
    """The smallest noise for the target (ε, δ), or for one of ``releases`` from what a budget has; or a mechanism.

    With a complete mechanism, ``epsilon`` or ``delta`` is only the point that the certificate states.
    """
    if most_sigma is not None and releases is None:
        raise InvalidParameter("most_sigma", "must be omitted without releases: it bounds the noise of a share")
    if releases is not None:
        for name, other in (("epsilon", epsilon), ("delta", delta), ("mechanism", mechanism)):
            if other is not None:
                raise InvalidParameter(name, "must be omitted with releases: what remains of the budget is the target")
        if payer is None:
            raise InvalidParameter("releases", "must be omitted without a service: only a budget can be shared")
        found, stated = payer.share(plan, releases, weights, most_sigma)
        _check(plan, found)
        return Target(found, stated)
    if mechanism is not None:
        if epsilon is not None and delta is not None:
            raise InvalidParameter("epsilon", "must not be given with both delta and a complete mechanism")
        if weights is not None:
            raise InvalidParameter("weights", "must be omitted with a complete mechanism")
        _check(plan, mechanism)
        given = {"epsilon": epsilon, "delta": delta}
        return Target(mechanism, {name: real(name, value) for name, value in given.items() if value is not None})
    for name, value in (("epsilon", epsilon), ("delta", delta)):
        if value is None:
            raise InvalidParameter(name, "must be given, with the other of epsilon and delta, or a complete mechanism")
    assert epsilon is not None
    assert delta is not None
    solved = calibrate(
        epsilon=epsilon,
        delta=delta,
        c_u=plan.c_u,
        tau=plan.tau,
        sums=plan.ranges,
        caps=plan.caps,
        weights=weights,
    )
    return Target(solved.mechanism, {"epsilon": real("epsilon", epsilon)})


def _check(plan: Plan, mechanism: Mechanism) -> None:
    """The bounds that the mechanism promises are at least as wide as those that the plan enforces."""
    instance("mechanism", mechanism, Mechanism)
    for name, promised, enforced in (("c_u", mechanism.c_u, plan.c_u), ("tau", mechanism.tau, plan.tau)):
        if promised != enforced:
            raise InvalidParameter(f"mechanism/{name}", f"must be the {name} of the call")
    names = tuple(column.name for column in plan.sums)
    columns = mechanism.aggregates
    if columns is None:
        if names or mechanism.mu_0 or mechanism.capped:
            raise InvalidParameter("mechanism/aggregates", "must have the columns of sums, in their order")
        return
    if columns.names != names:
        raise InvalidParameter("mechanism/aggregates/names", "must be the columns of sums, in their order")
    box = columns.sensitivity
    if not isinstance(box, Box):
        raise InvalidParameter("mechanism/aggregates/sensitivity", "must be a box: publish clips each column")
    caps = box.groups or (None,) * len(names)
    for column, lower, upper, cap in zip(plan.sums, box.lower, box.upper, caps, strict=True):
        if lower > column.least * column.scale or upper < column.most * column.scale:
            raise InvalidParameter(f"sums/{column.name}", "must stay within the box of the mechanism")
        if cap is not None and cap < (column.groups or plan.c_u):
            raise InvalidParameter(f"caps/{column.name}", "must be at most the cap of the mechanism")
