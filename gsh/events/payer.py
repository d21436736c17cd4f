"""Who pays for a release: a budget of the service under a name, or nobody."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gsh.accounting.mechanism import Mechanism
from gsh.arguments import Integer, Real, text
from gsh.errors import InvalidParameter
from gsh.events.plan import Plan
from gsh.wire import mechanism_from_json

if TYPE_CHECKING:
    from gsh.client import Client
    from gsh.client.operations import Blocking
    from gsh.client.releases import RecordedRelease

__all__ = ["Payer", "check_plan", "payer_of"]


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
    from gsh.client.json_calls import checked_name  # noqa: PLC0415 - only with a service

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
