"""The ledger on a database. Each method is one transaction.

A charge and the answer that it pays for are written in one transaction: both are stored, or neither is.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

from app.ledger.access_keys import KeyTable
from app.ledger.answers import Answer, Stored, content_of, part_of
from app.ledger.audit import Audit
from app.ledger.budget_rows import add_budget, add_entry, all_budgets, find_budget, known_budget, set_budget
from app.ledger.charges import Charge, add_charge, fitting, is_used, stored_for
from app.ledger.connections import Connections, Taken
from app.ledger.errors import DivisionSettled, KeyReused, UnknownBudget
from app.ledger.heads import HeadTable
from app.ledger.secret import Secret
from app.ledger.state import UNREADABLE, Budget, Entry, HistoryFault, check_history
from gsh.accounting.budget_limits import Limit, admits_change, same_proportion
from gsh.accounting.composition import Cost, Part

__all__ = ["Ledger"]


class Ledger:
    """Budgets, their histories, and stored answers."""

    def __init__(self, connections: Connections, secret: Secret) -> None:
        self._connections = connections
        self._sql = connections.statements
        self._audit = Audit(connections.statements)
        self.secret = secret
        self.keys = KeyTable(connections, secret)
        self.heads = HeadTable(connections, self.keys)

    def put_budget(self, name: str, limit: Limit, description: str, at: str) -> Budget:
        """The budget with this limit. The first charge settles its proportion. A change is recorded."""
        try:
            return self._put_budget(name, limit, description, at)
        except Taken:  # another transaction has just made it: change that one
            return self._put_budget(name, limit, description, at)

    def _put_budget(self, name: str, limit: Limit, description: str, at: str) -> Budget:
        with self._connections.transaction() as execute:
            before = find_budget(execute, self._sql, name, lock=True)
            if before is None:
                made, entry = Budget(name, limit, description).with_limit(limit, description, at)
                add_budget(execute, self._sql, made)
                add_entry(execute, self._sql, entry)
                return made
            limit = _changed(before, limit)
            if (before.limit, before.description) == (limit, description):
                return before
            changed, entry = before.with_limit(limit, description, at)
            set_budget(execute, self._sql, changed)
            add_entry(execute, self._sql, entry)
            return changed

    def budgets(self) -> list[Budget]:
        with self._connections.reading() as execute:
            return all_budgets(execute, self._sql)

    def standing(self, name: str) -> Budget:
        """A budget by its sums alone, however long its history is."""
        with self._connections.reading() as execute:
            return known_budget(execute, self._sql, name)

    def budget(self, name: str) -> tuple[Budget, list[Part]]:
        """A budget, and the costs of its charges; charges of equal cost are counted together."""
        with self._connections.reading() as execute:
            budget = known_budget(execute, self._sql, name)
            rows = execute(self._sql.parts, (name,))
            return budget, [Part(Cost(s, d), times) for s, d, times in rows]

    def history(self, name: str, before: int | None, limit: int) -> list[Entry]:
        """Entries of a budget's history, the latest first."""
        with self._connections.reading() as execute:
            budget = known_budget(execute, self._sql, name)
            return [Entry(*row) for row in execute(self._sql.charges, (name, before or budget.entries + 1, limit))]

    def check(self, charge: Charge, at: str) -> bool:
        """Whether the idempotency key is used: then ``recall`` compares. If it is not, an error unless it fits now."""
        with self._connections.reading() as execute:
            if is_used(execute, self._sql, charge, self._client(charge), at):
                return True
            fitting(find_budget(execute, self._sql, charge.budget), charge)
            return False

    def recall(self, charge: Charge, at: str) -> Stored:
        """The answer that the same request has paid for."""
        with self._connections.transaction() as execute:
            found = stored_for(execute, self._sql, charge, self._client(charge), at)
        if isinstance(found, Stored):
            return found
        raise found or KeyReused  # an idempotency key that is used stays used

    def charge(self, charge: Charge, at: str, answer: Callable[[Budget, int], Answer]) -> Stored:
        """Charge and store the answer, or give the answer that is stored already."""
        client = self._client(charge)
        try:
            with self._connections.transaction() as execute:
                # Lock the budget first: another request with the same idempotency key has then ended, or waits.
                budget = find_budget(execute, self._sql, charge.budget, lock=True)
                found = stored_for(execute, self._sql, charge, client, at)
                if found is None:
                    return add_charge(execute, self._sql, fitting(budget, charge), charge, client, at, answer)
        except Taken:  # a request on another budget has used the idempotency key first
            return self.recall(charge, at)
        if isinstance(found, Stored):
            return found
        raise found

    def content(self, stored: Stored) -> Iterator[bytes]:
        """The bytes of an answer. Each part is a transaction of its own: answers never change."""
        if not stored.parts:
            with self._connections.reading() as execute:
                yield from content_of(execute, self._sql, stored.idempotency_key)
        for part in range(stored.parts):
            with self._connections.reading() as execute:
                content = part_of(execute, self._sql, stored.idempotency_key, part)
            yield content

    def names(self) -> list[str]:
        """All that there is to verify: budgets, and histories whose budget is gone."""
        with self._connections.reading() as execute:
            return self._audit.names(execute)

    def verify(self, name: str) -> tuple[Budget, HistoryFault | None]:
        """Check a budget's chain, add its charges again, compare the columns of each entry, and hash the answers.

        If the budget itself cannot be read, the result has an empty one.
        """
        with self._connections.reading() as execute:
            try:
                budget = find_budget(execute, self._sql, name)
            except UNREADABLE:
                return Budget(name, Limit(0.0, 0.0), ""), HistoryFault(0, "cannot be read")
            if budget is None:
                if name not in self._audit.names(execute):
                    raise UnknownBudget
                return Budget(name, Limit(0.0, 0.0), ""), HistoryFault(
                    0, "is gone, though there are entries of its history"
                )
            fault = check_history(budget, self._audit.entries(execute, name))
            if fault is None:
                faults = self._audit.faults(execute, name, lambda key: content_of(execute, self._sql, key))
                fault = next(faults, None)
            return budget, fault

    def close(self) -> None:
        self._connections.close()

    def _client(self, charge: Charge) -> str:
        return self.secret.fingerprint(b"client", charge.client.encode())


def _changed(budget: Budget, limit: Limit) -> Limit:
    """The limit that a budget may get. After its first charge it keeps its proportion."""
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
