"""What passes through the making of a release: the request, the client, the draw and the outcome. No HTTP."""

import hashlib
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from pydantic_core import to_json

from app.ledger.answers import Answer
from app.ledger.lineage import Lineage, Use
from app.ledger.releases import Notes, RecordedRelease, ReleaseState
from app.ledger.state import Budget, By
from app.ledger.store import Ledger
from app.releases.bounds import check_certificate
from app.releases.schemas.stated import ProvenanceIn, Stated
from gsh.accounting.composition import Spent, fits
from gsh.accounting.mechanism import AnyMechanism, Joint, Release
from gsh.certificate import Certificate, certificate_of
from gsh.certificate_words import TRUST_ELSEWHERE, TRUST_MODEL
from gsh.errors import Error, renamed, renamed_pointer
from gsh.events.plan import Plan
from gsh.events.tables import plan_from_json
from gsh.histogram.meanings import Meaning
from gsh.histogram.noise import Noise
from gsh.histogram.roles import Roles
from gsh.surveyed import SurveyStatement
from gsh.wire import Json, places_in_request

__all__ = [
    "AfterCharge",
    "Asked",
    "BudgetTerms",
    "Client",
    "Collect",
    "Drawn",
    "Outcome",
    "Posted",
    "Sign",
    "Signed",
    "drafted",
    "encoded",
    "in_table",
    "judged",
    "meaning_of",
    "meaning_of_tables",
    "notes_of",
    "on_terms",
]

AfterCharge = Callable[[Lineage, int, str], bytes]
"""Makes a JSON answer without noise from the budget and its ancestors after the charge, the number of its entry and
its time."""
Collect = Callable[[Ledger, RecordedRelease], Answer]
"""Reads a stored answer, in a thread."""
Sign = Callable[[bytes], Awaitable[str | None]]
"""Makes the signed envelope of a statement, as JSON; None if the service has no key."""


class Signed(NamedTuple):
    """What a worker waits for between its two steps: the signed envelope, if the service signs."""

    signature: str | None


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request asks for: tables that share one certificate and one charge."""

    budget: str | None
    tables: tuple[AnyMechanism, ...]
    """The mechanism of each table, without its columns: μ₀ is all that a cost needs of them."""
    notes: Notes
    is_dry: bool = False
    """Whether only the checks are asked for."""
    state: ReleaseState = "made"
    places: tuple[str, ...] = ("",)
    """The pointer of each table in the request. A table that is alone and has no name is the request itself."""
    survey: SurveyStatement | None = None
    """The survey from which the bounds were chosen."""
    is_within: bool | None = None
    """Whether its δ keeps the operator's bound; None if there is none. Who reads the request computes it: a worker."""

    @property
    def release(self) -> Release:
        """What the rules bound and the budget pays for."""
        fixed = self.tables[0] if self.places == ("",) else Joint(self.tables)
        return fixed if self.survey is None else self.survey.release(fixed)


class BudgetTerms(NamedTuple):
    """What a certificate says of the budget that pays."""

    budget: str
    epsilon: float
    delta: float
    promised_delta: float
    """The promise that the charge keeps. Before the first one it is the limit, whichever release comes first."""
    privacy_unit: str
    period: str | None
    idempotency_key: str | None
    ancestors: tuple[Json, ...] = ()
    """What the budgets that pay too promise, the parent first."""

    @classmethod
    def of(cls, lineage: Lineage, idempotency_key: str | None) -> "BudgetTerms":
        budget, *above = lineage
        point = (budget.limit.epsilon, budget.limit.delta, _promised_delta(budget))
        unit = (budget.privacy_unit, budget.period)
        return cls(budget.id, *point, *unit, idempotency_key, tuple(map(_promising, above)))


def _promised_delta(budget: Budget) -> float:
    return budget.limit.delta if budget.promise is None else budget.promise


def _promising(ancestor: Budget) -> Json:
    epsilon, delta = ancestor.limit.epsilon, ancestor.limit.delta
    return {
        "id": ancestor.id,
        "privacy_unit": ancestor.privacy_unit,
        "period": ancestor.period,
        "promise": {"epsilon": epsilon, "delta": _promised_delta(ancestor)},
        "limit": {"epsilon": epsilon, "delta": delta},
    }


@dataclass(frozen=True, slots=True)
class Drawn:
    """A release that nobody has seen yet."""

    answer: Answer | AfterCharge | None
    """None if only the ledger can make it: an open release has a seed."""
    release_id: str
    certificate: str
    """JSON, as it is in the answer, but without the content."""
    meaning: bytes
    contents: str = ""
    """JSON: the content of each table by its name. Empty if the rows are not known here."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """An answer that may be shown."""

    answer: Answer
    earlier: RecordedRelease | None = None
    """The release that an earlier request has paid for; None if the answer is new."""
    use: Use | None = None
    """What it used of its budget; None without a budget, or if the ledger could not say it."""

    @property
    def replayed_at(self) -> str | None:
        """When the earlier release was made."""
        return None if self.earlier is None else self.earlier.at


class Client(Protocol):
    """Who asks for a release, and under which idempotency key."""

    @property
    def id(self) -> str: ...
    @property
    def by(self) -> By | None: ...
    @property
    def is_admin(self) -> bool: ...
    @property
    def idempotency_key(self) -> str | None: ...

    def check(self, budget: str | None) -> None:
        """An error if the client may not use the budget."""

    async def check_again(self, budget: str | None) -> None:
        """The same right before an answer is charged or shown: the request may have begun long ago."""


class Posted(Protocol):
    """One posted request. It is a reader of what is asked, and a writer of the answer."""

    async def ask(self) -> Asked:
        """Read what is asked for. A table that comes after it is not read yet."""

    async def receive(self) -> bool:
        """Read the table that comes after, which may take hours. False if there is none, or if it is here."""

    async def sent(self) -> tuple[bytes, ...]:
        """The bytes by which a request that comes again is recognised; none if they are not compared."""

    async def meaning(self) -> bytes:
        """The digest of what the request means, in whatever form it came."""

    async def certificate(self, terms: BudgetTerms | None) -> str:
        """For a dry run: the certificate as JSON, after all checks and without noise."""

    async def draw(self, terms: BudgetTerms | None) -> Drawn:
        """Draw noise, and make the answer. Without terms it is free. Nobody sees it before it is paid for."""

    def collect(self, ledger: Ledger, release: RecordedRelease) -> Answer:
        """The stored answer in place of what was drawn. Runs in a thread."""

    async def stop(self) -> None:
        """Draw nothing more. A worker that waits to draw is then free."""


def meaning_of(operation: str, body: Stated, budget: str | None, groups: bytes = b"", **names: Any) -> bytes:
    """The digest of what a request means: equal for equal requests, in whatever form they come.

    It covers the operation, the mechanism, the stated ε or δ, the budget, the names of columns, the digest of the set
    of groups, and the level of intervals, because they are part of the answer. It does not cover the description,
    labels and provenance: a job that restarts may say them in other words.
    """
    stated = body.model_dump(mode="json", include={"mechanism", "epsilon", "delta"}) | _surveyed(body)
    document = {"operation": operation, "budget": budget, "groups": groups.hex(), "names": names, **stated}
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).digest()


def meaning_of_tables(
    operation: str, body: Stated, budget: str | None, tables: Mapping[str, Mapping[str, Any]], **names: Any
) -> bytes:
    """The same for several tables: what the request says of each, by its name. Their order does not matter."""
    stated = body.model_dump(mode="json", include={"epsilon", "delta"}) | _surveyed(body)
    document = {"operation": operation, "budget": budget, "tables": tables, "names": names, **stated}
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).digest()


def _surveyed(body: Stated) -> dict[str, Any]:
    """The costs of a survey, if there is one: requests without one keep the digests that they had."""
    if body.statement is None:
        return {}
    plan = body.statement.plan
    return {"survey": [each.sigma for each in plan.survey], "after_survey": [plan.mu_squared, plan.hazard]}


def notes_of(body: Stated, layout: str = "") -> Notes:
    """What a client says about a release for people: it is kept with it, and nothing depends on it."""
    provenance = body.provenance.model_dump_json()
    return Notes(description=body.description, labels=tuple(body.labels), provenance=provenance, layout=layout)


@contextmanager
def in_table(place: str) -> Iterator[None]:
    """Errors inside this block are about the table at this place of the request."""
    try:
        yield
    except Error as error:
        pointer = error.pointer
        if not pointer.startswith("/"):  # the core names parameters of a mechanism
            pointer = renamed_pointer(pointer, *places_in_request())
        if place and pointer == "/table":  # its file, which is a part of a form
            pointer = ""
        raise error.at(f"{place}{pointer}") from None


def judged(asked: Asked, most: tuple[float, float] | None) -> Asked:
    """The same with whether its δ at an ε is at most a bound, if there is one."""
    return asked if most is None else replace(asked, is_within=fits(Spent(releases=1, only=asked.release), *most))


def drafted(
    body: Stated,
    tables: Mapping[str, AnyMechanism],
    noise: Mapping[str, Noise] | None,
    roles: Mapping[str, Roles] = MappingProxyType({}),
) -> Certificate:
    """The certificate of a request, before a budget pays. Without ``noise``, another engine draws it.

    ``roles`` are those of the columns, where they are known. An error if that of named tables is too large.
    """
    plans = planned(body, tables)
    with renamed(("after_survey", "/after_survey")):
        draft = certificate_of(
            tables,
            noise,
            epsilon=body.epsilon,
            delta=body.delta,
            unprotected=body.unprotected,
            enforced_by=body.provenance.enforced_by,
            plan_digest=body.provenance.plan_digest,
            trust_model=TRUST_ELSEWHERE if noise is None else TRUST_MODEL,
            roles=roles,
            meanings={name: _meaning(plans.get(name), None if noise is None else noise[name]) for name in tables},
            survey=body.statement,
            about=None if body.about is None else body.about.model_dump(),
        )
    if "" not in tables:
        check_certificate(encoded(draft), len(tables))
    return draft


class _WithProvenance(Protocol):
    @property
    def provenance(self) -> ProvenanceIn: ...


def planned(body: _WithProvenance, tables: Mapping[str, AnyMechanism]) -> dict[str, Plan]:
    """The plan of each table, if a plan of the library enforces the bounds, and has these columns."""
    try:
        found = plan_from_json(body.provenance.plan)
    except Error:  # no plan, or that of another program
        return {}
    plans = {"": found} if isinstance(found, Plan) else found.tables
    columns = {name: table.column_names for name, table in tables.items()}
    return plans if {name: plan.roles.values for name, plan in plans.items()} == columns else {}


def _meaning(plan: Plan | None, noise: Noise | None) -> Meaning:
    """What the columns of a table mean. Noise that is drawn here knows to what it is rounded."""
    meaning = Meaning() if plan is None else plan.meaning
    return meaning if noise is None else replace(meaning, rounded=noise.rounded)


def on_terms(draft: Certificate, terms: BudgetTerms | None) -> Certificate:
    """The certificate of a release that is charged on these terms, or that is free."""
    return draft if terms is None else draft.charged_to(**terms._asdict())


def encoded(certificate: Certificate) -> str:
    """A certificate as JSON, as it is in answers and in the ledger."""
    return to_json(certificate.to_dict()).decode()
