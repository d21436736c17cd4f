"""Who keeps the seed of a release and records its commit: the service, which charges a budget, or a file.

The seed is the same whenever a job runs again, until the commit. Then it is gone for ever.
"""

import base64
import dataclasses
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from gsh.accounting.mechanism import AnyMechanism
from gsh.certificate import Certificate, certificate
from gsh.certificate_words import NOISE_FROM_A_SEED
from gsh.errors import InvalidParameter
from gsh.events.lots import new_salt
from gsh.events.plan import Plan
from gsh.events.tables import AnyPlan, Plans
from gsh.events.terms import Payer, Terms, check_plan, plan_digest_of, provenance_of
from gsh.results.budget_use import BudgetUse
from gsh.spark.noise import SEED_BYTES
from gsh.spark.places import SEED_FILE, Finished, Place
from gsh.wire import Json, mechanism_to_json

__all__ = ["ENGINE", "ByFile", "ByService", "Keeper", "Opening"]

ENGINE: Final = "gsh.spark"
_OF_ONE_RUN = {"release_id", "released_at", "service_version", "python", "flint"}


def _json_of(mechanisms: Mapping[str, AnyMechanism]) -> Json:
    found = {name: mechanism_to_json(each) for name, each in mechanisms.items()}
    only: Json | None = found.get("")
    return found if only is None else only


@dataclass(frozen=True, slots=True)
class Opening:
    """An open release with its seed, or a committed one with the digest of its rows."""

    plan: AnyPlan
    """As given; but without a service the salt is that of the driver which was first."""
    seed: bytes | None = field(repr=False)
    certificate: Certificate
    """As it is inside the rows: without a record."""
    committed: str | None = None
    budget_use: BudgetUse | None = None


class Keeper(Protocol):
    """Opens a release, and records its commit."""

    def open(self, plan: AnyPlan, terms: Terms) -> Opening:
        """The seed: the same for every run, until the commit."""

    def commit(self, made: Finished) -> None:
        """Record what was made, and erase the seed. Other rows than those of the first commit are refused."""

    def certificate(self) -> Certificate:
        """The certificate of the committed release."""


class ByService:
    """The service charges the budget once, and erases the seed with the commit."""

    def __init__(self, payer: Payer, unprotected: Sequence[str] | None = None) -> None:
        self._payer, self._unprotected = payer, unprotected

    def open(self, plan: AnyPlan, terms: Terms) -> Opening:
        opened = self._payer.service.releases.open(
            terms.released,
            **self._payer.paid,
            unprotected=self._unprotected,
            provenance=provenance_of(ENGINE, plan),
            epsilon=terms.stated.get("epsilon"),
            delta=terms.stated.get("delta"),
        )
        check_plan(plan_digest_of(opened.certificate), plan)
        record = opened.certificate.record
        inside = opened.certificate.recorded(None)
        committed = None if record is None else record.committed_digest
        return Opening(plan, opened.seed, inside, committed, opened.budget_use)

    def commit(self, made: Finished) -> None:
        self._payer.commit(made.digest, made.rows, made.contents)

    def certificate(self) -> Certificate:
        return self._payer.service.releases.certificate(self._payer.once)


class ByFile:
    """A file next to the output keeps the seed. Nothing keeps count, and the certificate says so.

    The commit is the certificate: it appears in the folder of the attempt, and then the seed goes.
    """

    def __init__(self, place: Place, privacy_unit: str = "user", unprotected: Sequence[str] | None = None) -> None:
        if not place.is_local:
            raise InvalidParameter("service", "must be given, or else the output must be on a local file system")
        self._place, self._file = place, f"{place.staging}/{SEED_FILE}"
        self._words: dict[str, Any] = {"privacy_unit": privacy_unit, "unprotected": unprotected}
        self._plan: Json = {}
        self._mechanism: Json = {}

    def salt(self) -> str:
        """That of the release which was begun here before, or a new one."""
        return self._known_salt() or new_salt()

    def open(self, plan: AnyPlan, terms: Terms) -> Opening:
        if self._known_salt() is None:
            seed = base64.b64encode(secrets.token_bytes(SEED_BYTES)).decode()
            stated = {"digest": plan.digest, "mechanism": _json_of(terms.mechanisms)}
            stated["certificate"] = self._certified(plan, terms).to_dict()
            self._place.write_secret(self._file, {"seed": seed, "plan": plan.to_json(), **stated})
        # Another driver may have been first, and may even have committed meanwhile. Then its salt counts.
        plan = _salted(plan, self._known_salt() or plan.salt)
        self._plan, self._mechanism = plan.to_json(), _json_of(terms.mechanisms)
        self._certificate = self._certified(plan, terms)
        begun, made = self._place.read(self._file), self._place.finished()
        known = None if made is None else self._place.certificate(made.attempt)
        if self._place.certificate(self._place.folder) is not None:
            return Opening(plan, None, self._certificate)
        if made is not None and known is not None:
            self._check(plan_digest_of(known), _json_of(known.mechanisms))
            self._certificate = known
            self._place.remove(self._file)
            return Opening(plan, None, known, made.digest)
        if begun is None:
            raise InvalidParameter("to", f"must not be changed during a run: {self._place.staging} is gone")
        self._check(begun["digest"], begun["mechanism"])
        if "certificate" in begun:  # not if version 0.2 has begun
            self._certificate = self._agreed(Certificate.from_json(begun["certificate"]))
        return Opening(plan, base64.b64decode(begun["seed"]), self._certificate)

    def commit(self, made: Finished) -> None:
        if made.contents is not None:
            self._certificate = self._certificate.with_contents(made.contents)
        self._place.certify(made, self._plan, self._certificate)
        self._place.remove(self._file)

    def certificate(self) -> Certificate:
        return self._certificate

    def _known_salt(self) -> str | None:
        """Read in the order in which a release moves: so none of another driver is missed."""
        self._place.check_secrets()
        begun, made = self._place.read(self._file), self._place.finished()
        staged = None if made is None else self._place.plan(made.attempt)
        plan = self._place.plan(self._place.folder) or staged or (begun and begun["plan"])
        return None if plan is None else str(plan["salt"])

    def _check(self, digest: str | None, mechanism: object) -> None:
        if (digest, mechanism) != (plan_digest_of(self._certificate), self._mechanism):
            raise self._other()

    def _certified(self, plan: AnyPlan, terms: Terms) -> Certificate:
        words = {**self._words, **terms.stated, "enforced_by": ENGINE, "plan_digest": plan.digest, "roles": plan.roles}
        words["meanings"] = plan.meaning
        return certificate(terms.released, **words, noise=NOISE_FROM_A_SEED)

    def _agreed(self, begun: Certificate) -> Certificate:
        """The certificate of the run that has begun, so that all runs write the same bytes. It must say the same."""
        ours, theirs = self._certificate.to_dict(), begun.to_dict()
        if any(ours.get(name) != theirs.get(name) for name in (ours.keys() | theirs.keys()) - _OF_ONE_RUN):
            raise self._other()
        return begun

    def _other(self) -> InvalidParameter:
        detail = f"must be another folder: a run with other parameters has begun in {self._place.staging}"
        return InvalidParameter("to", detail)


def _salted(plan: AnyPlan, salt: str) -> AnyPlan:
    """The same plan with the salt of another driver."""
    if isinstance(plan, Plan):
        return dataclasses.replace(plan, salt=salt)
    return Plans.from_json(plan.to_json() | {"salt": salt})
