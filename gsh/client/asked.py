"""What a release was asked for, and whether its certificate says the same.

A certificate is read in this order, so that a server cannot make a client work for long:

    the names of its tables      must be unique, at most 64, and those that were asked for
    the JSON of each mechanism   must be what was sent; if nothing was sent, it must have at most 100 columns
    the mechanism                is made only now
    the survey                   must be the one that was sent, and what was fixed before it
    the stated point, the budget and the idempotency key
                                 must be those of the request, also if the release is replayed: a request with the same
                                 key and another content is refused by the service
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gsh.accounting.calibration.after_survey import SurveyPlan
from gsh.accounting.mechanism import AnyMechanism, release_of
from gsh.certificate import Certificate
from gsh.client.decoding import Contradiction
from gsh.client.records import is_it_or_its_period, period_budget
from gsh.histogram.roles import Roles
from gsh.results import certificates
from gsh.surveyed import SurveyStatement, check_costs
from gsh.wire import Json, mechanism_to_json

__all__ = ["Asked", "certified"]


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request says that the certificate of its answer repeats."""

    mechanisms: Mapping[str, AnyMechanism]
    """By the names of the tables. The only table without a name has the empty one."""
    epsilon: float | None = None
    delta: float | None = None
    budget: str | None = None
    once: str | None = None
    period: str | None = None
    """Of a renewed budget: the period that pays, if the request names it in a field of its own."""
    roles: Mapping[str, Roles] = field(default_factory=dict)
    """The columns of each table; nothing for groups in JSON."""
    survey: SurveyPlan | None = None
    """What was fixed before a survey, if there is one."""
    is_open: bool = False
    """Whether the release is open: an earlier run may have chosen other bounds from the survey, which cost as much."""

    @classmethod
    def of(
        cls,
        mechanisms: Mapping[str, AnyMechanism],
        request: Mapping[str, Any],
        once: str | None,
        roles: Mapping[str, Roles] | None = None,
        *,
        is_open: bool = False,
    ) -> "Asked":
        """From the fields of a request."""
        epsilon, delta, budget, period = (request.get(name) for name in ("epsilon", "delta", "budget", "period"))
        survey = None
        if "survey" in request:
            told = {"histograms": request["survey"], **request["after_survey"], "chosen": ()}
            survey = SurveyStatement.from_json(told).plan
        return cls(mechanisms, epsilon, delta, budget, once, period, roles or {}, survey, is_open)

    def is_paid_by(self, budget: str | None) -> bool:
        """Whether this budget may pay. A renewed one is paid for by the period that the request names, or by any."""
        if self.budget is None or budget is None:
            return budget is self.budget
        return is_it_or_its_period(period_budget(self.budget, self.period), budget)


def certified(document: Json, asked: Asked | None = None) -> tuple[Certificate, Mapping[str, AnyMechanism]]:
    """The certificate of a JSON object and its mechanisms, which must be those that were asked for.

    ``Contradiction`` if they are not, and an error of Python or of the library if it is no certificate.
    """
    if asked is None:
        return certificates.certified(document)
    described = certificates.described_in(document)
    if described.keys() != asked.mechanisms.keys():
        raise Contradiction("its certificate is about other tables")
    if any(each != mechanism_to_json(asked.mechanisms[name]) for name, each in described.items()):
        if not (asked.is_open and "digest" in (document.get("survey") or {})):
            raise Contradiction("its certificate has another mechanism")
        certificates.check_sizes(document)
    certificate = Certificate.from_json(document)
    _check_survey(certificate, asked.survey)
    _check_point(certificate, asked)
    if not asked.is_paid_by(None if certificate.budget is None else certificate.budget.id):
        raise Contradiction("its certificate names another budget")
    if certificate.idempotency_key != asked.once:
        raise Contradiction("its certificate has another idempotency key")
    return certificate, certificate.mechanisms


def _check_survey(certificate: Certificate, survey: SurveyPlan | None) -> None:
    """The tables cost what was fixed before the survey, whatever was chosen from it."""
    found = SurveyStatement.from_json(certificate.survey).plan if "survey" in certificate else None
    if found != survey:
        raise Contradiction("its certificate has another survey")
    if survey is not None:
        check_costs(survey, release_of(list(certificate.mechanisms.values())))


def _check_point(certificate: Certificate, asked: Asked) -> None:
    """At an asked ε the certificate states a δ, and at an asked δ an ε; this δ may be smaller than the asked one."""
    epsilon, delta = certificate.epsilon, certificate.delta
    if asked.epsilon is None and asked.delta is None:
        if (epsilon, delta) != (None, None):
            raise Contradiction("its certificate states an ε that was not asked for")
        return
    if epsilon is None or delta is None or asked.epsilon not in (epsilon, None):
        raise Contradiction("its certificate states another ε")
    if asked.delta is not None and not 0 <= delta <= asked.delta:
        raise Contradiction("its certificate states another δ")
