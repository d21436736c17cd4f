"""The noise of a plan, and who pays for it: a budget of the service under a name, or nobody.

The mechanism is calibrated to a target or to a share of a budget, or it is given and checked against the plan.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from gsh.accounting.calibration.after_survey import SurveyPlan
from gsh.accounting.calibration.usual_noise import MOST_SIGMA
from gsh.accounting.mechanism import AnyMechanism, Mechanism
from gsh.accounting.sensitivity import Box
from gsh.arguments import Integer, Real, instance, real, text, texts
from gsh.certificate import ABOUT, Certificate
from gsh.errors import InfeasibleTarget, InvalidParameter, renamed
from gsh.events.lots import new_salt, salt_of_release
from gsh.events.plan import Plan
from gsh.events.tables import AnyPlan, Plans, place_of
from gsh.library.tables import Table, calibrate_tables
from gsh.library.targets import SurveyWanted, calibrate
from gsh.wire import mechanism_from_json

if TYPE_CHECKING:
    from gsh.client import Client
    from gsh.client.operations import Blocking
    from gsh.client.releases import RecordedRelease

__all__ = [
    "Payer",
    "Terms",
    "check_plan",
    "payer_of",
    "plan_digest_of",
    "provenance_of",
    "repeated",
    "salt_for",
    "terms_for",
    "terms_for_tables",
]


@dataclass(frozen=True, slots=True)
class Payer:
    """A budget, and the idempotency key under which it pays exactly once; and what the ledger keeps with the charge."""

    service: "Client"
    budget: str
    once: str
    description: str = ""
    labels: tuple[str, ...] = ()
    about: Mapping[str, str] = field(default_factory=dict)

    @property
    def paid(self) -> dict[str, Any]:
        """The arguments of a release that the budget pays for."""
        charged = {"budget": self.budget, "once": self.once}
        return charged | {"description": self.description, "labels": list(self.labels), "about": self.about}

    def earlier(self) -> "RecordedRelease[Blocking] | None":
        """The release that this name has, if there is one. It must be of the same budget."""
        from gsh.client.errors import UnknownRelease  # noqa: PLC0415 - only with a service
        from gsh.client.records import is_it_or_its_period  # noqa: PLC0415

        try:
            found = self.service.releases.get(self.once)
        except UnknownRelease:
            return None
        if not is_it_or_its_period(self.budget, found.budget):
            detail = f"a release of the budget {found.budget} has it already, not of {self.budget}"
            raise InvalidParameter("once", f"must be a new name: {detail}")
        return found

    def commit(self, digest: str, rows: int, contents: Mapping[str, Mapping[str, Any]] | None) -> None:
        """Record the rows that an engine has made under this name. Other rows than those of the first commit stop."""
        from gsh.client.errors import AlreadyCommitted  # noqa: PLC0415 - only with a service

        try:
            self.service.releases.commit(self.once, digest, rows, contents)
        except AlreadyCommitted:
            detail = "must be a new name: this one was committed with other rows, from other events"
            raise InvalidParameter("once", detail) from None

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
            certificate = earlier.certificate
            check_plan(plan_digest_of(certificate), plan)
            stated = {} if certificate.epsilon is None else {"epsilon": certificate.epsilon}
            return mechanism_from_json(certificate.to_dict()["mechanism"]), stated
        found = self.service.budgets.calibrate(
            self.budget, releases=releases, **_described(plan, weights), most_sigma=most_sigma
        )
        return found.mechanism, {"epsilon": found.epsilon}

    def share_tables(
        self,
        plan: AnyPlan,
        tables: Mapping[str, Table],
        releases: Integer,
        shares: Literal["balanced"] | None,
        most_sigma: Real | None,
    ) -> tuple[Mapping[str, AnyMechanism], Mapping[str, float]]:
        """The same for several tables in one release."""
        earlier = self.earlier()
        if earlier is None:
            budgets = self.service.budgets
            found = budgets.calibrate_tables(
                self.budget, tables, releases=releases, shares=shares, most_sigma=most_sigma
            )
            return found.tables, {"epsilon": found.epsilon}
        certificate = earlier.certificate
        check_plan(plan_digest_of(certificate), plan)
        return certificate.mechanisms, {} if certificate.epsilon is None else {"epsilon": certificate.epsilon}


def repeated(
    mechanism: AnyMechanism | Mapping[str, AnyMechanism] | None, mechanism_of: str | None, payer: Payer | None
) -> AnyMechanism | Mapping[str, AnyMechanism] | None:
    """The mechanism that is given, or that of an earlier release of the service."""
    if mechanism_of is None:
        return mechanism
    if mechanism is not None:
        raise InvalidParameter("mechanism_of", "must be omitted with a mechanism")
    if payer is None:
        raise InvalidParameter("mechanism_of", "must be omitted without a service: it names a release of one")
    found = payer.service.releases.certificate(text("mechanism_of", mechanism_of)).mechanisms
    return found.get("", found)


def payer_of(
    service: "Client | None",
    budget: str | None,
    once: str | None,
    period: str | None,
    description: str,
    labels: Sequence[str],
    privacy_unit: str | None,
    about: Mapping[str, str] | None = None,
) -> Payer | None:
    """The payer, if there is a service; arguments that do not go together are refused."""
    if service is None:
        given: dict[str, Any] = {"budget": budget, "period": period, "once": once}
        given |= {"description": description or None, "about": about or None}
        for name, value in {**given, "labels": texts("labels", labels) or None}.items():
            if value is not None:
                raise InvalidParameter(name, "must be omitted without a service: nothing else keeps count")
        return None
    if not (hasattr(service, "releases") and hasattr(service, "budgets")):
        raise InvalidParameter("service", f"must be a gsh.Client, not {type(service).__name__}")
    from gsh.client.records import period_budget  # noqa: PLC0415 - only with a service
    from gsh.client.requests import checked_name  # noqa: PLC0415

    for name, value in (("budget", budget), ("once", once)):
        if value is None:
            raise InvalidParameter(name, "must be given with a service: a release is charged once, under its name")
    words = text("description", description), texts("labels", labels)
    named = checked_name("budget", budget)
    if period is not None:
        checked_name("period", period)
    payer = Payer(service, period_budget(named, period), checked_name("once", once), *words, _about(about))
    if privacy_unit is not None:
        paying = service.budgets.get(named.partition("@")[0])  # a period has the unit of its budget
        if text("privacy_unit", privacy_unit) != paying.privacy_unit:
            detail = f"must be the unit of the budget {payer.budget}, {paying.privacy_unit}, or omitted"
            raise InvalidParameter("privacy_unit", f"{detail}; not {privacy_unit}")
    return payer


def _about(given: Mapping[str, str] | None) -> Mapping[str, str]:
    """What a release says about itself. The service bounds the texts."""
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not given.keys() <= ABOUT.keys():
        raise InvalidParameter("about", f"must be a mapping with some of the names {', '.join(ABOUT)}")
    return {name: text(f"about/{name}", value) for name, value in given.items()}


def salt_for(payer: Payer | None) -> str:
    """The salt of a publication: that of its name, or a new one without a service."""
    return new_salt() if payer is None else salt_of_release(payer.budget, payer.once)


class _WithDigest(Protocol):
    @property
    def digest(self) -> str: ...


def plan_digest_of(said: Certificate) -> str | None:
    """The digest of the plan in a certificate; None if it has no plan, or several."""
    digests: set[str | None] = {each.bounds.plan_digest for each in said.described.values()}
    return digests.pop() if len(digests) == 1 else None


def provenance_of(engine: str, plan: AnyPlan, digest: str | None = None) -> dict[str, Any]:
    """Which engine made sure that no user exceeds the bounds, and by which plan; ``digest`` is that of the plan."""
    return {"enforced_by": engine, "plan_digest": plan.digest if digest is None else digest, "plan": plan.to_json()}


def check_plan(digest: str | None, plan: _WithDigest) -> None:
    """Refuse the name of a release by another plan."""
    if digest != plan.digest:
        raise InvalidParameter("once", "must be a new name: a release by another plan has it already")


@dataclass(frozen=True, slots=True)
class Terms:
    """The mechanism of each table, and the point of the privacy curve of all that the certificate states.

    The only table has the empty name.
    """

    mechanisms: Mapping[str, AnyMechanism]
    stated: Mapping[str, float]
    """``epsilon`` or ``delta``, or nothing."""
    survey: SurveyPlan | None = None
    """What is fixed before a survey, if the bounds are chosen from one."""

    @classmethod
    def of_one(cls, mechanism: AnyMechanism, stated: Mapping[str, float], survey: SurveyPlan | None = None) -> "Terms":
        """The terms of the only table."""
        return cls({"": mechanism}, stated, survey)

    @property
    def only(self) -> AnyMechanism:
        """The mechanism of the only table."""
        return self.mechanisms[""]

    @property
    def released(self) -> AnyMechanism | Mapping[str, AnyMechanism]:
        """What is certified: the mechanism of the only table, or those of several by their names."""
        return self.mechanisms.get("", self.mechanisms)


def terms_for(
    plan: Plan,
    *,
    epsilon: Real | None = None,
    delta: Real | None = None,
    mechanism: AnyMechanism | None = None,
    weights: Mapping[str, Real] | None = None,
    releases: Integer | None = None,
    most_sigma: Real | None = None,
    payer: Payer | None = None,
    survey: SurveyWanted = None,
) -> Terms:
    """The smallest noise for the target (ε, δ), or for one of ``releases`` from what a budget has; or a mechanism.

    With a complete mechanism, ``epsilon`` or ``delta`` is only the point that the certificate states. Public groups get
    noise without a threshold. A ``survey`` comes first, or has come with the same fixed costs.
    """
    _check_aim(epsilon, delta, mechanism, releases, most_sigma, payer)
    _check_survey(survey, mechanism=mechanism, releases=releases)
    if releases is not None:
        assert payer is not None
        found: AnyMechanism
        if plan.public_keys is None:
            with _in_plan(plan):
                found, stated = payer.share(plan, releases, weights, most_sigma)
        else:
            with _in_plan(plan):
                several, stated = payer.share_tables(plan, {_ONLY: _table(plan, weights)}, releases, None, most_sigma)
            (found,) = several.values()
        _check(plan, found)
        return Terms.of_one(found, stated)
    if mechanism is not None:
        if weights is not None:
            raise InvalidParameter("weights", "must be omitted with a complete mechanism")
        _check(plan, mechanism)
        return Terms.of_one(mechanism, _stated(epsilon, delta))
    assert epsilon is not None
    assert delta is not None
    stated = {"epsilon": real("epsilon", epsilon)}
    if plan.public_keys is not None:
        with _in_plan(plan):
            solved = calibrate_tables({_ONLY: _table(plan, weights)}, epsilon=epsilon, delta=delta, survey=survey)
        _expect_use(solved.tables.values(), most_sigma, survey)
        return Terms.of_one(solved.tables[_ONLY], stated, solved.survey)
    with _in_plan(plan):
        one = calibrate(epsilon=epsilon, delta=delta, **_described(plan, weights), survey=survey)
    _expect_use([one.mechanism], most_sigma, survey)
    return Terms.of_one(one.mechanism, stated, one.survey)


_ONLY = "table"


def _in_plan(plan: Plan) -> AbstractContextManager[None]:
    """Errors of a calibration are about the arguments of publish: those of the only table have no name before them."""
    inside = [
        (f"{before}{place}", argument) for before in ("", f"{place_of(_ONLY)}/") for place, argument in plan.places
    ]
    return renamed(*inside, (place_of(_ONLY), ""))


def _in_plans(plans: Plans) -> AbstractContextManager[None]:
    """The same for several tables."""
    named = ((place_of(name), pair) for name, plan in plans.named for pair in plan.places)
    return renamed(*((f"{table}/{place}", f"{table}/{argument}") for table, (place, argument) in named))


def terms_for_tables(
    plans: Plans,
    tables: Mapping[str, Table],
    *,
    epsilon: Real | None = None,
    delta: Real | None = None,
    mechanism: Mapping[str, AnyMechanism] | None = None,
    shares: Literal["balanced"] | None = None,
    releases: Integer | None = None,
    most_sigma: Real | None = None,
    payer: Payer | None = None,
    survey: SurveyWanted = None,
) -> Terms:
    """The noise of several tables by their shares of the target (ε, δ) or of a budget; or a mechanism for each."""
    _check_aim(epsilon, delta, mechanism, releases, most_sigma, payer)
    _check_survey(survey, mechanism=mechanism, releases=releases, shares=shares)
    drafts = {name: _table(plan, tables[name].weights, share=tables[name].share) for name, plan in plans.tables.items()}
    if releases is not None:
        assert payer is not None
        with _in_plans(plans):
            shared, stated = payer.share_tables(plans, drafts, releases, shares, most_sigma)
        for name, plan in plans.tables.items():
            _check(plan, shared[name])
        return Terms({name: shared[name] for name in plans.tables}, stated)
    if mechanism is None:
        assert epsilon is not None
        assert delta is not None
        with _in_plans(plans):
            solved = calibrate_tables(drafts, epsilon=epsilon, delta=delta, shares=shares, survey=survey)
        _expect_use(solved.tables.values(), most_sigma, survey)
        return Terms(solved.tables, {"epsilon": real("epsilon", epsilon)}, solved.survey)
    if shares is not None:
        raise InvalidParameter("shares", "must be omitted with complete mechanisms")
    if not isinstance(mechanism, Mapping) or set(mechanism) != set(plans.tables):
        raise InvalidParameter("mechanism", "must be a mapping from the name of each table to its mechanism")
    for name, plan in plans.tables.items():
        place = place_of(name)
        with renamed(("mechanism", f"mechanism/{place.removeprefix('tables/')}"), ("", place)):
            if tables[name].weights is not None:
                raise InvalidParameter("weights", "must be omitted with a complete mechanism")
            _check(plan, mechanism[name])
    return Terms({name: mechanism[name] for name in plans.tables}, _stated(epsilon, delta))


def _check_aim(
    epsilon: object, delta: object, mechanism: object, releases: object, most_sigma: object, payer: Payer | None
) -> None:
    """Exactly one target: (ε, δ), a share of a budget, or complete noise."""
    if most_sigma is not None and mechanism is not None:
        raise InvalidParameter("most_sigma", "must be omitted with a complete mechanism: its noise is given")
    if releases is not None:
        for name, other in (("epsilon", epsilon), ("delta", delta), ("mechanism", mechanism)):
            if other is not None:
                raise InvalidParameter(name, "must be omitted with releases: what remains of the budget is the target")
        if payer is None:
            raise InvalidParameter("releases", "must be omitted without a service: only a budget can be shared")
    elif mechanism is not None:
        if epsilon is not None and delta is not None:
            raise InvalidParameter("epsilon", "must not be given with both delta and a complete mechanism")
    else:
        for name, value in (("epsilon", epsilon), ("delta", delta)):
            if value is None:
                detail = "must be given, with the other of epsilon and delta, or a complete mechanism"
                raise InvalidParameter(name, detail)
        if epsilon == 0:
            raise InvalidParameter("epsilon", "must be above 0: at 0 the noise hides every group, and nothing is left")


def _check_survey(survey: SurveyWanted, **arguments: object) -> None:
    """What would depend on the bounds that a survey chooses cannot be fixed before it."""
    for name, value in arguments.items():
        if survey is not None and value is not None:
            raise InvalidParameter(name, "must be omitted with a survey: give epsilon, delta and shares of tables")


def _expect_use(mechanisms: Iterable[AnyMechanism], most_sigma: Real | None, survey: SurveyWanted = None) -> None:
    """Refuse a target whose noise hides every group, before anything is read or charged."""
    if isinstance(survey, SurveyPlan):  # it is charged already
        return
    bound = MOST_SIGMA if most_sigma is None else real("most_sigma", most_sigma)
    sigma = max(each.sigma for each in mechanisms)
    if sigma > bound:
        detail = f"must be larger, or delta: sigma would be {sigma:.6g}, and most_sigma is {bound:g}"
        raise InfeasibleTarget("epsilon", detail)


def _stated(epsilon: Real | None, delta: Real | None) -> dict[str, float]:
    given = {"epsilon": epsilon, "delta": delta}
    return {name: real(name, value) for name, value in given.items() if value is not None}


def _table(plan: Plan, weights: Mapping[str, Real] | None, **more: Any) -> Table:
    """The same as a table without noise. ``more`` are fields of it."""
    public = {} if plan.public_keys is None else {"tau": None}
    return Table(**_described(plan, weights) | public, **more)


def _described(plan: Plan, weights: Mapping[str, Real] | None) -> dict[str, Any]:
    """What a calibration must know of the plan: its bounds in whole units."""
    bounds = {"c_u": plan.c_u, "tau": plan.tau, "sums": plan.ranges, "caps": plan.caps}
    return {**bounds, "weights": plan.weights(weights)}


def _check(plan: Plan, mechanism: AnyMechanism) -> None:
    """The bounds that the mechanism promises are at least as wide as those that the plan enforces."""
    bounds = [("c_u", plan.c_u)]
    if plan.public_keys is not None:
        if not isinstance(mechanism, AnyMechanism) or isinstance(mechanism, Mechanism):
            raise InvalidParameter("mechanism", "must be a gsh.PlainGaussian: public keys have no thresholds")
    else:
        instance("mechanism", mechanism, Mechanism)
        bounds.append(("tau", plan.tau))
    for name, enforced in bounds:
        if getattr(mechanism, name) != enforced:
            raise InvalidParameter(f"mechanism/{name}", f"must be the {name} of the call")
    names = plan.roles.values
    columns = mechanism.aggregates
    if columns is None:
        if names or mechanism.mu_0 or mechanism.capped:
            raise InvalidParameter(
                "mechanism/aggregates", "must have the columns of sums, then of events, then of means, in their order"
            )
        return
    if columns.names != names:
        raise InvalidParameter(
            "mechanism/aggregates/names", "must be the columns of sums, then of events, then of means, in their order"
        )
    box = columns.sensitivity
    if not isinstance(box, Box):
        raise InvalidParameter("mechanism/aggregates/sensitivity", "must be a box: publish clips each column")
    caps = box.groups or (None,) * len(names)
    for each, lower, upper, cap in zip(plan.measures, box.lower, box.upper, caps, strict=True):
        least, most = each.range
        if lower > least or upper < most:
            detail = f"must stay within the box of the mechanism, which must have {least!r} to {most!r}"
            raise InvalidParameter(each.pointer, detail)
        if cap is not None and cap < (each.groups or plan.c_u):
            raise InvalidParameter(f"caps/{each.name}", "must be at most the cap of the mechanism")
