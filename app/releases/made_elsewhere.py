"""Releases that another engine makes: charged to a budget, with a seed or with noise of the engine's own."""

from collections.abc import Awaitable, Callable
from typing import ClassVar

from app.accounting.posted import naming
from app.ledger.answers import Answer
from app.ledger.figures import cost_figures
from app.ledger.releases import RecordedRelease, ReleaseState
from app.ledger.state import Budget
from app.ledger.store import Ledger
from app.releases.asked import (
    AfterCharge,
    Asked,
    Drawn,
    Terms,
    drafted,
    encoded,
    meaning_of,
    meaning_of_tables,
    notes_of,
    on_terms,
)
from app.releases.recorded import open_answer
from app.releases.schemas.releases import ChargeOut, MadeElsewhereIn
from app.schemas.costs import CostOut
from gsh.accounting.composition import cost_of
from gsh.accounting.mechanism import Release, tables_of
from gsh.histogram.file_formats import JSON

__all__ = ["ChargedRelease", "OpenedRelease"]

_NOT_COMPARED = {"name", "mu_squared", "hazard"}


class _MadeElsewhere:
    """A request to charge a budget. Nothing is drawn here."""

    state: ClassVar[ReleaseState]

    def __init__(self, budget: str, body: MadeElsewhereIn, mechanism: Callable[[], Awaitable[Release]]) -> None:
        self._budget = budget
        self._body = body
        self._mechanism = mechanism
        self._answer: AfterCharge | None = None

    async def ask(self) -> Asked:
        self._release = await self._mechanism()
        tables, posted = tables_of(self._release), self._body.tables
        names = [""] if posted is None else [table.name for table in posted]
        with naming(posted):
            self._draft = drafted(self._body, dict(zip(names, tables, strict=True)), None)
        costs, places = tables_of(self._release.without_columns), [""]
        if posted is not None:
            places = [f"/tables/{k}" for k in range(len(posted))]
        return Asked(self._budget, costs, notes_of(self._body), state=self.state, places=tuple(places))

    async def receive(self) -> bool:
        return False

    async def sent(self) -> tuple[bytes, ...]:
        return ()

    async def meaning(self) -> bytes:
        tables = self._body.tables
        if tables is None:
            return meaning_of(self.state, self._body, self._budget)
        said = {table.name: table.model_dump(mode="json", exclude=_NOT_COMPARED) for table in tables}
        return meaning_of_tables(self.state, self._body, self._budget, said)

    async def certificate(self, terms: Terms | None) -> str:
        return encoded(on_terms(self._draft, terms))

    async def draw(self, terms: Terms | None) -> Drawn:
        return Drawn(self._answer, self._draft.release_id, await self.certificate(terms), await self.meaning())

    async def stop(self) -> None:
        """No worker waits."""


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
        self, budget: str, body: MadeElsewhereIn, mechanism: Callable[[], Awaitable[Release]], content: bytes
    ) -> None:
        super().__init__(budget, body, mechanism)
        self._content = content
        self._answer = self._encoded

    async def sent(self) -> tuple[bytes, ...]:
        """Version 0.1 recognised charges by these bytes."""
        return b"charge", self._budget.encode(), self._content

    def collect(self, ledger: Ledger, release: RecordedRelease) -> Answer:
        stored = b"".join(ledger.content(release))
        return Answer(JSON, lambda: [stored])

    def _encoded(self, after: Budget, number: int, at: str) -> bytes:
        cost, spent = cost_of(self._release), CostOut(**cost_figures(after.spent, after.limit))
        charged = ChargeOut(
            budget=self._budget, number=number, at=at, mu_squared=cost.mu_squared, hazard=cost.hazard, spent=spent
        )
        return charged.model_dump_json().encode()
