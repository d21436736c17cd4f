"""Releases that another engine makes: charged to a budget, with a seed or with noise of the engine's own."""

import json
import pickle
from collections.abc import Callable
from typing import ClassVar, NamedTuple, ParamSpec, TypeVar

from app.accounting.posted import naming
from app.http.workload import RequestWorkers
from app.ledger.answers import Answer
from app.ledger.figures import cost_figures
from app.ledger.lineage import Lineage
from app.ledger.releases import RecordedRelease, ReleaseState
from app.ledger.store import Ledger
from app.releases.asked import (
    AfterCharge,
    Asked,
    BudgetTerms,
    Drawn,
    drafted,
    encoded,
    judged,
    meaning_of,
    meaning_of_tables,
    notes_of,
    on_terms,
    planned,
)
from app.releases.bounds import Bounds
from app.releases.recorded import open_answer
from app.releases.schemas.releases import ChargeOut, MadeElsewhereIn, SurveyedIn
from app.schemas.costs import CostOut
from app.schemas.ledger_record import EntryNameOut
from app.schemas.mechanism import read_release
from gsh.accounting.composition import cost_of
from gsh.accounting.mechanism import Release, mechanisms_of
from gsh.certificate import Certificate
from gsh.errors import renamed
from gsh.histogram.file_formats import JSON

__all__ = ["ChargedRelease", "OpenedRelease", "check_bounds", "chosen_certificate"]

P = ParamSpec("P")
T = TypeVar("T")

_NOT_COMPARED = {"name", "mu_squared", "hazard"}


class _Read(NamedTuple):
    """What is asked, and what it means."""

    asked: Asked
    release: Release
    """Without its columns."""
    meaning: bytes
    release_id: str
    packed: bytes
    """The draft of the certificate, which the event loop need not unpack."""


class _MadeElsewhere:
    """A request to charge a budget. Nothing is drawn here."""

    state: ClassVar[ReleaseState]

    def __init__(self, budget: str, body: MadeElsewhereIn, workers: RequestWorkers, bounds: Bounds) -> None:
        self._budget = budget
        self._body = body
        self._workers = workers
        self._bounds = bounds
        self._answer: AfterCharge | None = None

    async def ask(self) -> Asked:
        """A worker makes a certificate that takes long, and adds to it what the budget says."""
        self._is_short = check_bounds(self._body, self._bounds)
        self._read = await self._made(_read, self._budget, self._body, self.state, self._bounds.most)
        return self._read.asked

    async def receive(self) -> bool:
        return False

    async def sent(self) -> tuple[bytes, ...]:
        return ()

    async def meaning(self) -> bytes:
        return self._read.meaning

    async def certificate(self, terms: BudgetTerms | None) -> str:
        return await self._made(_certificate, self._read.packed, terms)

    async def draw(self, terms: BudgetTerms | None) -> Drawn:
        return Drawn(self._answer, self._read.release_id, await self.certificate(terms), self._read.meaning)

    async def stop(self) -> None:
        """No worker waits."""

    async def _made(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return function(*args, **kwargs) if self._is_short else await self._workers.run(function, *args, **kwargs)


def check_bounds(body: MadeElsewhereIn, bounds: Bounds) -> bool:
    """An error if it asks for too much. Whether the event loop may make the certificate."""
    if body.tables is not None:
        return bounds.check(body, body.tables, are_tables=True)
    assert body.mechanism is not None
    return bounds.check(body, [body.mechanism], are_tables=False)


def _read(budget: str, body: MadeElsewhereIn, state: ReleaseState, most: tuple[float, float] | None) -> _Read:
    posted = body.tables
    names = [""] if posted is None else [table.name for table in posted]
    with naming(posted):
        release = read_release(body.mechanism, posted)
        tables = dict(zip(names, mechanisms_of(release), strict=True))
        roles = {name: plan.roles for name, plan in planned(body, tables).items()}
        draft = drafted(body, tables, None, roles)
    slim = release.without_columns
    places = ("",) if posted is None else tuple(f"/tables/{k}" for k in range(len(posted)))
    draw = Asked(budget, mechanisms_of(slim), notes_of(body), state=state, places=places, survey=body.statement)
    asked = judged(draw, most)
    return _Read(asked, slim, _meaning(budget, body, state), draft.release_id, pickle.dumps(draft))


def _meaning(budget: str, body: MadeElsewhereIn, state: ReleaseState) -> bytes:
    if body.tables is None:
        return meaning_of(state, body, budget)
    described = {table.name: table.model_dump(mode="json", exclude=_NOT_COMPARED) for table in body.tables}
    return meaning_of_tables(state, body, budget, described)


def _certificate(packed: bytes, terms: BudgetTerms | None) -> str:
    return encoded(on_terms(pickle.loads(packed), terms))  # noqa: S301 - made by _read


def chosen_certificate(opened: str, body: SurveyedIn) -> str:
    """The certificate of an open release with the bounds that its survey chose."""
    certificate, posted = Certificate.from_json(json.loads(opened)), body.tables
    names = [""] if posted is None else [table.name for table in posted]
    with naming(posted), renamed(*((name, f"/{name}") for name in ("after_survey", "survey", "tables"))):
        release = read_release(body.mechanism, posted)
        tables = dict(zip(names, mechanisms_of(release), strict=True))
        found = certificate.after_survey(
            tables,
            digest=body.digest,
            chosen=body.chosen,
            enforced_by=body.provenance.enforced_by,
            plan_digest=body.provenance.plan_digest,
            meanings={name: plan.meaning for name, plan in planned(body, tables).items()},
        )
    return encoded(found)


class OpenedRelease(_MadeElsewhere):
    """The body of POST /releases. The answer has the seed, which only the ledger knows."""

    state = "open"

    def collect(self, ledger: Ledger, release: RecordedRelease) -> Answer:
        """Without a seed the release is committed, perhaps since it was read."""
        seed = ledger.seed(release)
        content = open_answer(release if seed is not None else ledger.release(release.key), seed)
        return Answer(JSON, lambda: [content])


class ChargedRelease(_MadeElsewhere):
    """The body of POST /budgets/{id}/charges. The answer says what is spent after the charge."""

    state = "charged"

    def __init__(
        self, budget: str, body: MadeElsewhereIn, workers: RequestWorkers, bounds: Bounds, content: bytes
    ) -> None:
        super().__init__(budget, body, workers, bounds)
        self._content = content
        self._answer = self._encoded

    async def sent(self) -> tuple[bytes, ...]:
        """Version 0.1 recognised charges by these bytes."""
        return b"charge", self._budget.encode(), self._content

    def collect(self, ledger: Ledger, release: RecordedRelease) -> Answer:
        stored = b"".join(ledger.content(release))
        return Answer(JSON, lambda: [stored])

    def _encoded(self, after: Lineage, number: int, at: str) -> bytes:
        budget, *above = after
        cost, spent = cost_of(self._read.release), CostOut(**cost_figures(budget.spent, budget.limit))
        charged = ChargeOut(
            budget=budget.id,
            number=number,
            ancestors=[EntryNameOut(budget=each.id, number=each.entries + 1) for each in above],
            at=at,
            mu_squared=cost.mu_squared,
            hazard=cost.hazard,
            spent=spent,
        )
        return charged.model_dump_json().encode()
