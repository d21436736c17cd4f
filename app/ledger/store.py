"""The ledger on a database: each method is one transaction, and the only place that reads or writes its rows.

Charging is one transaction with the answer that was paid for: either both are there, or neither.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from app.ledger.access_keys import KeyTable
from app.ledger.audit import Audit, digest_of
from app.ledger.comparisons import refusal, wait_before
from app.ledger.connections import Connections, Execute, Taken
from app.ledger.errors import BudgetExceeded, DivisionSettled, KeyReused, LedgerError, UnknownBudget
from app.ledger.records import seconds_of
from app.ledger.secret import Secret
from app.ledger.state import UNREADABLE, Budget, Entry, Fault, check_history, fraction_of, release_of, text_of
from app.ledger.state import json_of as release_json
from gsh.accounting.budget_limits import Caps, Limit, admits_change, same_proportion
from gsh.accounting.composition import Cost, Part, Release, Spent

__all__ = ["Answer", "Ledger", "Paid", "Stored"]

PART_BYTES = 4 * 1024**2
SMALL_BYTES = 64 * 1024  # up to here an answer stands in its row; else in parts of their own


@dataclass(frozen=True, slots=True)
class Answer:
    """The bytes of an answer, which may be read twice, and what they are."""

    media_type: str
    chunks: Callable[[], Iterable[bytes]]


@dataclass(frozen=True, slots=True)
class Stored:
    """An answer that was paid for, in the ledger; its content is read part by part."""

    key: str
    media_type: str
    size: int
    is_new: bool = False
    """Whether it was paid for just now; else it is what was paid for before."""

    @property
    def parts(self) -> int:
        return -(-self.size // PART_BYTES)


@dataclass(frozen=True, slots=True)
class Paid:
    """A release to be paid for by a budget, once for its idempotency key and request."""

    budget: str
    key: str
    request: str
    client: str
    """The id of its access key, or its address; a keyed hash of it is stored."""
    release: Release
    cost: Cost


class Ledger:
    """Budgets, their histories, and stored answers."""

    def __init__(self, connections: Connections, secret: Secret) -> None:
        self._connections = connections
        self._sql = connections.statements
        self._audit = Audit(connections.statements)
        self.secret = secret
        self.keys = KeyTable(connections, secret)

    def put_budget(self, name: str, limit: Limit, description: str, at: str) -> Budget:
        """The budget with this limit; the first charge settles its proportion. A change is recorded."""
        try:
            return self._put_budget(name, limit, description, at)
        except Taken:  # someone else has made it meanwhile, so now it is there
            return self._put_budget(name, limit, description, at)

    def _put_budget(self, name: str, limit: Limit, description: str, at: str) -> Budget:
        with self._connections.transaction() as execute:
            before = self._budget(execute, name, lock=True)
            if before is None:
                made, entry = Budget(name, limit, description).with_limit(limit, description, at)
                execute(self._sql.add_budget, (name, *_columns(made)))
                self._append(execute, entry)
                return made
            limit = _changed(before, limit)
            if (before.limit, before.description) == (limit, description):
                return before
            changed, entry = before.with_limit(limit, description, at)
            execute(self._sql.set_budget, (*_columns(changed), name))
            self._append(execute, entry)
            return changed

    def budgets(self) -> list[Budget]:
        with self._connections.reading() as execute:
            return [_budget_of(row) for row in execute(self._sql.budgets)]

    def standing(self, name: str) -> Budget:
        """A budget by its sums alone, however long its history is."""
        with self._connections.reading() as execute:
            return self._known(execute, name)

    def budget(self, name: str) -> tuple[Budget, list[Part]]:
        """A budget, and the costs of its charges, equal ones counted together."""
        with self._connections.reading() as execute:
            budget = self._known(execute, name)
            rows = execute(self._sql.parts, (name,))
            return budget, [Part(Cost(s, d), times) for s, d, times in rows]

    def history(self, name: str, before: int | None, limit: int) -> list[Entry]:
        """Entries of a budget's history, the latest first."""
        with self._connections.reading() as execute:
            budget = self._known(execute, name)
            return [Entry(*row) for row in execute(self._sql.charges, (name, before or budget.entries + 1, limit))]

    def check(self, asked: Paid, at: str) -> bool:
        """Whether the idempotency key is used: ``recall`` compares then. Else an error unless the release fits now."""
        with self._connections.reading() as execute:
            used = execute(self._sql.owner, (asked.key,))
            if not used:
                self._fitting(self._budget(execute, asked.budget), asked)
                return False
            by_owner = used == [(self._client(asked),)]
            too_many = wait_before(execute, self._sql, asked.key, by_owner=by_owner, now=seconds_of(at))
            if too_many is not None:
                raise too_many
            return True

    def recall(self, asked: Paid, at: str) -> Stored:
        """The answer that was paid for by the same request."""
        with self._connections.transaction() as execute:
            found = self._stored(execute, asked, at)
        if isinstance(found, Stored):
            return found
        raise found or KeyReused  # a key that is used stays used

    def charge(self, asked: Paid, at: str, answer: Callable[[Budget, int], Answer]) -> Stored:
        """Charge, and store the answer beside it, or give the answer that is stored already."""
        try:
            with self._connections.transaction() as execute:
                # Locked first: another request with the same key has then either ended, or waits.
                budget = self._budget(execute, asked.budget, lock=True)
                found = self._stored(execute, asked, at)
                if found is None:
                    return self._charge(execute, *self._fitting(budget, asked), asked, at, answer)
        except Taken:  # by a request on another budget, which came first
            return self.recall(asked, at)
        if isinstance(found, Stored):
            return found
        raise found

    def content(self, stored: Stored) -> Iterator[bytes]:
        """The bytes of an answer, in parts: each is a transaction of its own, for answers never change."""
        if stored.size <= SMALL_BYTES:
            with self._connections.reading() as execute:
                yield from self._all_parts(execute, stored.key)
            return
        for part in range(stored.parts):
            with self._connections.reading() as execute:
                ((content,),) = execute(self._sql.part, (stored.key, part))
            yield bytes(content)

    def names(self) -> list[str]:
        """All that there is to verify: budgets, and histories whose budget is gone."""
        with self._connections.reading() as execute:
            return self._audit.names(execute)

    def verify(self, name: str) -> tuple[Budget, Fault | None]:
        """Check a budget's chain, re-add its charges, compare what stands beside them, and hash the answers.

        Where the budget itself cannot be read, an empty one stands for it.
        """
        with self._connections.reading() as execute:
            try:
                budget = self._budget(execute, name)
            except UNREADABLE:
                return Budget(name, Limit(0.0, 0.0), ""), Fault(0, "cannot be read")
            if budget is None:
                if name not in self._audit.names(execute):
                    raise UnknownBudget
                return Budget(name, Limit(0.0, 0.0), ""), Fault(0, "is gone, though there are entries of its history")
            fault = check_history(budget, self._audit.entries(execute, name))
            if fault is None:
                fault = next(self._audit.faults(execute, name, lambda key: self._all_parts(execute, key)), None)
            return budget, fault

    def close(self) -> None:
        self._connections.close()

    def _charge(
        self,
        execute: Execute,
        budget: Budget,
        after: Spent,
        asked: Paid,
        at: str,
        answer: Callable[[Budget, int], Answer],
    ) -> Stored:
        number = budget.entries + 1
        made = answer(replace(budget, spent=after), number)
        digest, size = digest_of(made.chunks())
        recorded = {"answer": digest, "media_type": made.media_type, "size": size}
        client = self._client(asked)
        further: dict[str, Any] = {"key": asked.key, "request": asked.request, "client": client} | recorded
        charged, entry = budget.charged(after, asked.release, asked.cost, at, further)
        execute(self._sql.set_budget, (*_columns(charged), budget.id))
        content = b"".join(made.chunks()) if size <= SMALL_BYTES else None
        answered = (asked.key, asked.request, client, made.media_type, size, content)
        self._append(execute, entry, (asked.cost.mu_squared, asked.cost.hazard, *answered))
        if content is None:
            for place, part in enumerate(_parts(made.chunks())):
                execute(self._sql.add_part, (asked.key, place, part))
        return Stored(asked.key, made.media_type, size, is_new=True)

    def _fitting(self, budget: Budget | None, asked: Paid) -> tuple[Budget, Spent]:
        """The budget, and what will be spent of it, which it allows."""
        if budget is None:
            raise UnknownBudget
        after = budget.spent.plus(asked.release, asked.cost)
        if not budget.limit.settled_by(asked.cost).admits(after):
            raise BudgetExceeded(budget, asked.release)
        return budget, after

    def _budget(self, execute: Execute, name: str, *, lock: bool = False) -> Budget | None:
        rows = execute(self._sql.locked_budget if lock else self._sql.budget, (name,))
        return _budget_of(rows[0]) if rows else None

    def _known(self, execute: Execute, name: str) -> Budget:
        budget = self._budget(execute, name)
        if budget is None:
            raise UnknownBudget
        return budget

    def _stored(self, execute: Execute, asked: Paid, at: str) -> Stored | LedgerError | None:
        """What is stored for a key, if anything, or why it is not told. The attempt is counted (comparisons.py)."""
        rows = execute(self._sql.locked_answer, (asked.key,))
        if not rows:
            return None
        ((request, client, media_type, size),) = rows
        is_same, by_owner = request == asked.request, client == self._client(asked)
        refused = refusal(execute, self._sql, asked.key, is_same=is_same, by_owner=by_owner, now=seconds_of(at))
        return refused or Stored(asked.key, media_type, size)

    def _client(self, asked: Paid) -> str:
        return self.secret.fingerprint(b"client", asked.client.encode())

    def _append(self, execute: Execute, entry: Entry, charge: tuple[Any, ...] = (None,) * 8) -> None:
        """``charge`` is its cost, and the answer that it paid for."""
        values = (entry.budget, entry.number, entry.kind, entry.at, entry.payload, entry.hash)
        execute(self._sql.add_entry, (*values, *charge))

    def _all_parts(self, execute: Execute, key: str) -> Iterator[bytes]:
        rows = execute(self._sql.content, (key,))
        if rows and rows[0][0] is not None:
            yield bytes(rows[0][0])
            return
        part = 0
        while rows := execute(self._sql.part, (key, part)):
            yield bytes(rows[0][0])
            part += 1


def _columns(budget: Budget) -> tuple[Any, ...]:
    limit, spent = budget.limit, budget.spent
    proportion = (None, None) if limit.proportion is None else (limit.proportion.mu_squared, limit.proportion.hazard)
    only = None if spent.only is None else json.dumps(release_json(spent.only))
    sums = (text_of(spent.mu_squared), text_of(spent.hazard), spent.releases, only)
    hull = (None, None) if budget.hull is None else (text_of(budget.hull.mu_squared), text_of(budget.hull.hazard))
    return (limit.epsilon, limit.delta, *proportion, budget.description, *sums, budget.entries, budget.head, *hull)


def _changed(budget: Budget, limit: Limit) -> Limit:
    """The limit that a budget may get: once it has charges, in the proportion that it has."""
    if limit.proportion is None:
        limit = replace(limit, proportion=budget.limit.proportion)
    if budget.spent.releases == 0:
        return limit
    if not same_proportion(limit, budget.limit):
        raise DivisionSettled(names_mechanism=True)
    limit = replace(limit, proportion=budget.limit.proportion)
    if not admits_change(budget.hull or budget.limit.caps, limit):
        raise DivisionSettled(names_mechanism=False)
    return limit


def _budget_of(row: Sequence[Any]) -> Budget:
    name, epsilon, delta, proportion_s, proportion_d, description, s, d, charges, only, entries, head, *hull = row
    limit = Limit(epsilon, delta, None if proportion_s is None else Cost(proportion_s, proportion_d))
    release = None if only is None else release_of(json.loads(only))
    spent = Spent(fraction_of(s), fraction_of(d), charges, release)
    caps = None if None in hull else Caps(*map(fraction_of, hull))
    return Budget(name, limit, description, spent, entries, head, caps)


def _parts(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes, in parts of PART_BYTES but for the last."""
    pending = bytearray()
    for chunk in chunks:
        pending += chunk
        while len(pending) >= PART_BYTES:
            yield bytes(pending[:PART_BYTES])
            del pending[:PART_BYTES]
    if pending:
        yield bytes(pending)
