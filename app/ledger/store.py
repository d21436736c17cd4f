"""The ledger on a database. Each method is one transaction, except for a charge.

A charge and the answer that it pays for are stored together, or neither is. The answer is encrypted, and a second
transaction stores its key (answer_keys.py). The parts of a large answer are written before.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from app.ledger.access.access_keys import KeyTable
from app.ledger.answer_keys import Facts, renew_marks, store_key
from app.ledger.answers import (
    Answer,
    Staging,
    erase_answers,
    readable_part,
    remove_abandoned,
    seal_erasures,
    whole_answer,
)
from app.ledger.approvals import (
    Approval,
    Approver,
    ask_for_change,
    ask_for_release,
    check_current,
    decide,
    find_approval,
    find_for_release,
    finish,
    list_approvals,
    wanted_by,
)
from app.ledger.auditing.audit import Audit
from app.ledger.auditing.checkpoints import Checkpoints
from app.ledger.auditing.heads import HeadTable
from app.ledger.budget_rows import all_budgets, find_budget, known_budget, periods_of
from app.ledger.changes import Change, make_change, plan_change
from app.ledger.charges import (
    Charge,
    Charged,
    ChargedAnswer,
    CheckedBudget,
    add_charge,
    demands_approval,
    draw_again,
    fitting,
)
from app.ledger.clock import now, seconds_of
from app.ledger.databases import Connections, Execute, Taken
from app.ledger.errors import (
    AnswerErased,
    AwaitsApproval,
    KeyReused,
    LedgerError,
    LedgerUnavailable,
    NoSecondKey,
    UnknownBudget,
    UnknownRelease,
)
from app.ledger.lineage import Lineage, ancestors_of, find_lineage, lock_tree
from app.ledger.open_releases import add_nonce, commit, record_survey, seed_of
from app.ledger.pace import Standing, days_left, standings
from app.ledger.releases import (
    ChosenBounds,
    Commit,
    RecordedRelease,
    find_by_id,
    find_release,
    list_releases,
    seal_releases,
)
from app.ledger.renewing import check_open, find_paying, make_period
from app.ledger.repeats import has_same_bytes, is_of_another, refusal, released_for, used_by
from app.ledger.secret import Secret
from app.ledger.signing.listed_keys import SigningKeys
from app.ledger.state import UNREADABLE, Budget, By, Entry, HistoryFault, Settings, check_history
from gsh.accounting.budget_limits import Limit
from gsh.accounting.composition import Cost, Part, Release
from gsh.wire import charged_from_json

__all__ = ["Account", "Ledger"]


class Like(NamedTuple):
    """The last release that a budget was charged for, or before it the cost of the typical one."""

    cost: Cost
    release: Release | None


class Account(NamedTuple):
    """A budget, the costs of its charges, and its ancestors. Charges of equal cost are counted together."""

    budget: Budget
    parts: list[Part]
    ancestors: Lineage
    periods: tuple[Budget, ...] = ()
    """Of a renewed budget, the earliest first."""
    like: Like | None = None
    paying: Lineage = ()
    """The budget that would pay for one more now, and its ancestors."""
    days_left: float | None = None

    @property
    def lineage(self) -> Lineage:
        return (self.budget, *self.ancestors)


class Ledger:
    """Budgets, their histories, and stored answers."""

    def __init__(self, connections: Connections, secret: Secret) -> None:
        self._connections = connections
        self._sql = connections.statements
        self._audit = Audit(connections.statements, secret)
        self.secret = secret
        self.keys = KeyTable(connections, secret)
        self.heads = HeadTable(connections, self.keys)
        self.checkpoints = Checkpoints(connections, self.heads)
        self.signing_keys = SigningKeys(connections, secret)
        self._seeds_left = True
        """Whether files of the database may still have deleted seeds: an earlier process may have left some."""

    def put_budget(
        self,
        name: str,
        limit: Limit,
        description: str | None,
        at: str,
        *,
        settings: Settings | None = None,
        reason: str = "",
        by: By | None = None,
        client: str = "",
    ) -> Budget:
        """The budget with this limit. The first charge settles its proportion, unit and parent. A change is recorded.

        What ``settings`` does not name stays, and so does the description if it is None. ``reason`` says why an
        existing budget is changed.
        """
        wanted = (settings or {}) | ({} if description is None else {"description": description})
        put = partial(self._put_budget, Change(name, limit, wanted, reason), at, by, client)
        try:
            made = put()
        except Taken:  # another transaction has just made it: change that one
            made = put()
        if isinstance(made, Approval):
            raise AwaitsApproval(made)
        return made

    def _put_budget(self, change: Change, at: str, by: By | None, client: str) -> Budget | Approval:
        with self._connections.transaction() as execute:
            planned = plan_change(execute, self._sql, change)
            if planned.is_none:
                return planned.before
            if planned.needs_approval:
                return ask_for_change(execute, self._sql, planned, self._asker(by, client), at)
            return make_change(execute, self._sql, planned, at, by)

    def _asker(self, by: By | None, client: str) -> Approver:
        if by is None:
            raise NoSecondKey
        return Approver(by, self._hashed(client))

    def request_release(self, charge: Charge, at: str) -> Approval:
        """The request for a release, made now or before. Another client must approve it before it is drawn.

        An error if the idempotency key belongs to another request. Comparisons count, as those of releases do.
        """
        try:
            return self._request_release(charge, at)
        except Taken:  # a request on another budget has used the idempotency key first
            return self._request_release(charge, at)

    def _request_release(self, charge: Charge, at: str) -> Approval:
        asker = self._asker(charge.notes.by, charge.client)
        with self._connections.transaction() as execute:
            budget = find_paying(execute, self._sql, charge.budget, at, lock=True)
            found = find_for_release(execute, self._sql, charge.idempotency_key, lock=True)
            if found is None:
                if budget is None:
                    raise UnknownBudget
                check_open(budget, at)
                lineage = fitting((budget, *ancestors_of(execute, self._sql, budget)), charge)
                if not budget.entries:
                    budget = make_period(execute, self._sql, lineage[0], at, charge.notes.by)
                return ask_for_release(execute, self._sql, charge, budget, asker, at)
            reused = KeyReused(charge.idempotency_key, found.budget, has_answer=False, approval=found.id)
            details = found.details
            if is_of_another(details["client"], asker.client):
                raise reused
            is_same = details["content_hash"] == charge.content
            refused = refusal(execute, self._sql, reused, is_same=is_same, now=seconds_of(at))
        if refused is not None:
            raise refused
        return found

    def approvals(self) -> list[Approval]:
        """All requests, the newest first."""
        with self._connections.reading() as execute:
            return list_approvals(execute, self._sql)

    def approval(self, name: str) -> Approval:
        with self._connections.reading() as execute:
            return find_approval(execute, self._sql, name)

    def decide(self, name: str, at: str, *, by: By | None, client: str, reason: str, is_approved: bool) -> Approval:
        """Approve or refuse a request. A change is made at once. A release waits for the request that comes again."""
        approver = self._asker(by, client)
        with self._connections.transaction() as execute:
            lock_tree(execute, self._sql)  # before the budget: the change may be one of its parent
            known_budget(execute, self._sql, find_approval(execute, self._sql, name).budget, lock=True)
            found = find_approval(execute, self._sql, name, lock=True)  # after the budget, as charges lock them
            budget = decide(execute, self._sql, found, approver, reason, at, is_approved=is_approved)
            if is_approved and found.kind == "change":
                planned = plan_change(execute, self._sql, wanted_by(found, budget))
                check_current(found, planned)
                asker = By(**found.details["by"])
                make_change(execute, self._sql, planned, at, asker, approval_id=found.id)
                finish(execute, self._sql, name)
            return find_approval(execute, self._sql, name)

    def budgets(self) -> list[Budget]:
        with self._connections.reading() as execute:
            return all_budgets(execute, self._sql)

    def standings(self, at: str) -> list[Standing]:
        """What an operator watches of all budgets."""
        with self._connections.reading() as execute:
            return standings(execute, self._sql, at)

    def standing(self, name: str) -> Budget:
        """A budget by its sums alone, however long its history is."""
        with self._connections.reading() as execute:
            return known_budget(execute, self._sql, name)

    def paying(self, name: str, at: str | None = None) -> Lineage:
        """The budget that pays at a time, or now, and its ancestors: the present period of a renewed budget."""
        with self._connections.reading() as execute:
            return self._paying(execute, name, at or now())

    def lineage(self, name: str) -> Lineage:
        """A budget with its ancestors."""
        with self._connections.reading() as execute:
            budget = known_budget(execute, self._sql, name)
            return (budget, *ancestors_of(execute, self._sql, budget))

    def _paying(self, execute: Execute, name: str, at: str, *, lock: bool = False) -> Lineage:
        """The budget that pays at a time, and its ancestors."""
        budget = find_paying(execute, self._sql, name, at, lock=lock)
        if budget is None:
            raise UnknownBudget
        return (budget, *ancestors_of(execute, self._sql, budget, lock=lock))

    def budget(self, name: str) -> Account:
        with self._connections.reading() as execute:
            budget = known_budget(execute, self._sql, name)
            parts = [Part(Cost(s, d), times) for s, d, times in execute(self._sql.parts, (name,))]
            periods = tuple(periods_of(execute, self._sql, name)) if budget.renews is not None else ()
            like, at = self._like(execute, budget, periods), now()
            paying, left = self._paying(execute, name, at), days_left(execute, self._sql, budget, at)
            return Account(budget, parts, ancestors_of(execute, self._sql, budget), periods, like, paying, left)

    def _like(self, execute: Execute, budget: Budget, periods: Sequence[Budget]) -> Like | None:
        charged = periods[-1] if periods else budget
        rows = execute(self._sql.last_charge, (charged.id,))
        if not rows:
            return None if budget.limit.proportion is None else Like(budget.limit.proportion, None)
        with suppress(*UNREADABLE):  # if somebody has changed the entry, a verification says so
            details = Entry(*rows[0]).details
            return Like(Cost(details["s"], details["d"]), charged_from_json(details["release"]))
        return None

    def history(self, name: str, before: int | None, limit: int) -> list[Entry]:
        """Entries of a budget's history, the latest first."""
        with self._connections.reading() as execute:
            budget = known_budget(execute, self._sql, name)
            return [Entry(*row) for row in execute(self._sql.charges, (name, before or budget.entries + 1, limit))]

    def check(self, charge: Charge, at: str) -> CheckedBudget | None:
        """The budget that can pay now; None if the idempotency key is used: then ``recall`` compares.

        If the answer is charged, and nobody can have read it, the budget has paid already: ``charge`` compares.
        """
        with self._connections.reading() as execute:
            used = used_by(execute, self._sql, self.secret, charge, self._hashed(charge.client), at)
            if used is None:
                return CheckedBudget(self._payable(execute, charge, at))
            if used.is_unread and used.place is not None:
                return CheckedBudget(find_lineage(execute, self._sql, used.budget), used.place.answer)
            return None

    def check_fit(self, charge: Charge, at: str) -> CheckedBudget:
        """The budget that could pay for a release, whatever its idempotency key."""
        with self._connections.reading() as execute:
            return CheckedBudget(self._payable(execute, charge, at))

    def _payable(self, execute: Execute, charge: Charge, at: str) -> Lineage:
        lineage = self._paying(execute, charge.budget, at)
        check_open(lineage[0], at)
        return fitting(lineage, charge)

    def recall_same_bytes(self, charge: Charge, at: str) -> RecordedRelease | None:
        """The release that a request of the same bytes has paid for; None if its content must be compared.

        Not a reading: where nothing can be written, guesses cannot be counted, and nothing may be compared.
        """
        with self._connections.transaction() as execute:
            return has_same_bytes(execute, self._sql, self.secret, charge, self._hashed(charge.client), at)

    def recall(self, charge: Charge, at: str) -> RecordedRelease:
        """The release that the same request has paid for."""
        with self._connections.transaction() as execute:
            found = released_for(execute, self._sql, self.secret, charge, self._hashed(charge.client), at)
        if isinstance(found, RecordedRelease):
            return found
        raise found or LedgerUnavailable("a release is gone")  # an idempotency key that is used stays used

    def staging(self, answer: Answer, at: str) -> Staging:
        """Write an answer before its charge."""
        return Staging(self._connections, answer, at)

    def charge(
        self,
        charge: Charge,
        at: str,
        answer: ChargedAnswer | None = None,
        *,
        unread: str | None = None,
    ) -> Charged:
        """Charge and store the answer, or give the release that is stored already. Not every release has an answer.

        ``unread`` is the id of a draw that is charged, and whose key was never stored: ``answer`` takes its place, and
        is not charged again. Without it, the result may be a release that is unread: its key may come in a moment.
        """
        client = self._hashed(charge.client)
        try:
            with self._connections.transaction() as execute:
                # Lock the budget first: another request with the same idempotency key has then ended, or waits.
                budget = find_paying(execute, self._sql, charge.budget, at, lock=True)
                found = released_for(execute, self._sql, self.secret, charge, client, at)
                made = None
                if found is None:
                    if budget is None:
                        raise UnknownBudget
                    check_open(budget, at)
                    lineage = fitting((budget, *ancestors_of(execute, self._sql, budget, lock=True)), charge)
                    if demands_approval(lineage):
                        charge = self._approved(execute, charge, lineage[0], client)
                    if not budget.entries:
                        made_now = make_period(execute, self._sql, budget, at, charge.notes.by)
                        lineage = (made_now, *lineage[1:])
                    made = add_charge(
                        execute, self._sql, self.secret, charge, lineage=lineage, client=client, at=at, answer=answer
                    )
                    if charge.state == "open":
                        add_nonce(execute, self._sql, charge.idempotency_key)
                elif isinstance(found, RecordedRelease) and found.is_unread_draw(unread) and answer is not None:
                    if budget is None or budget.id != found.budget:
                        raise LedgerUnavailable("a release was paid for by another budget than its request names")
                    drawn, notes = answer((budget,), found.number), charge.notes
                    made = draw_again(
                        execute, self._sql, self.secret, found, budget=budget, notes=notes, made=drawn, at=at
                    )
        except Taken:  # a request on another budget has used the idempotency key first
            return Charged(self.recall(charge, at), is_new=False)
        if made is not None:
            return self._with_key(made)
        if isinstance(found, RecordedRelease):
            return Charged(found if unread is None else self.release(found.key), is_new=False)
        assert found is not None
        raise found

    def _with_key(self, release: RecordedRelease) -> Charged:
        """Store the key of an answer that is charged now. If another draw has taken its place, that is the release."""
        place = release.place
        if place is None or place.key is None:
            return Charged(release, is_new=True)
        assert release.answer_sha256 is not None
        assert release.size is not None
        facts = Facts.of(place.key, release.answer_sha256, release.size)
        if store_key(self._connections, self.secret, place.answer, place.key, facts):
            return Charged(release, is_new=True)
        stored = self.release(release.key)
        if stored.erased_at is not None:
            raise AnswerErased(stored.erased_at)
        # The same key: it was stored, and only the acknowledgement was lost.
        return Charged(stored, is_new=stored.place == place)

    def seed(self, release: RecordedRelease) -> bytes | None:
        """The seed of an open release; None after its commit."""
        with self._connections.reading() as execute:
            return seed_of(execute, self._sql, self.secret, release)

    def commit(self, key: str, made: Commit, by: By | None, client: str | None = None) -> RecordedRelease:
        """End an open release: what was published is recorded, and the seed is erased.

        Only the client that opened it may do that; None is for an administrator.
        """
        owner = None if client is None else self._hashed(client)
        with self._connections.transaction() as execute:
            committed = commit(execute, self._sql, self.secret, key, made, by=by, client=owner)
        self.purge_seeds()
        return committed

    def record_survey(self, key: str, made: ChosenBounds, by: By | None, client: str | None = None) -> RecordedRelease:
        """Record what an open release chose from its survey, before anything is drawn with it."""
        owner = None if client is None else self._hashed(client)
        with self._connections.transaction() as execute:
            return record_survey(execute, self._sql, self.secret, key, made, by=by, client=owner)

    def release(self, key: str) -> RecordedRelease:
        with self._connections.reading() as execute:
            found = find_release(execute, self._sql, key)
        if found is None:
            raise UnknownRelease
        return found

    def release_by_id(self, release_id: str) -> RecordedRelease | None:
        with self._connections.reading() as execute:
            return find_by_id(execute, self._sql, release_id)

    def releases(self, budgets: Sequence[str], before: str | None, limit: int) -> list[RecordedRelease]:
        """Releases of some budgets, or of all, the newest first."""
        with self._connections.reading() as execute:
            named = [*budgets, *(each.id for name in budgets for each in periods_of(execute, self._sql, name))]
            return list_releases(execute, self._sql, named, before, limit)

    def content(self, release: RecordedRelease) -> Iterator[bytes]:
        """The bytes of an answer. Each part is a transaction of its own: answers never change, but may be erased."""
        size = number = 0
        while size < (release.size or 0) or release.is_unread:
            with self._connections.reading() as execute:
                part = readable_part(execute, self._sql, release.key, release.place, number)
            if part is None:
                raise self._lost(release.key)
            size, number = size + len(part), number + 1
            yield part

    def _lost(self, key: str) -> LedgerError:
        """Why a part of an answer is not there."""
        erased_at = self.release(key).erased_at
        return LedgerUnavailable("an answer is not complete") if erased_at is None else AnswerErased(erased_at)

    def erase_answers(self, before: str, at: str) -> int:
        """Erase some answers of releases before a time, and return how many. Their parts are removed later."""
        with self._connections.transaction() as execute:
            return erase_answers(execute, self._sql, self.secret, before, at)

    def seal(self) -> None:
        """Seal releases, unread answers and erasures as they are now: for an operator who has changed the secret."""
        with self._connections.transaction() as execute:
            seal_releases(execute, self._sql, self.secret)
            renew_marks(execute, self._sql, self.secret)
            seal_erasures(execute, self._sql, self.secret)

    def purge_seeds(self) -> None:
        """Overwrite deleted seeds. If that fails now, ``purge_seeds_if_left`` tries again."""
        self._seeds_left = not self._connections.purge()

    def purge_seeds_if_left(self) -> None:
        """Overwrite them, if that failed before."""
        if self._seeds_left:
            self.purge_seeds()

    def remove_abandoned(self, before: str) -> bool:
        """Remove some parts of answers that were never charged, or are erased; False if there are none."""
        with self._connections.transaction() as execute:
            return remove_abandoned(execute, self._sql, before)

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
                faults = self._audit.faults(execute, budget, lambda *where: whole_answer(execute, self._sql, *where))
                fault = next(faults, None)
            return budget, fault

    def close(self) -> None:
        self._connections.close()

    def _approved(self, execute: Execute, charge: Charge, budget: Budget, client: str) -> Charge:
        """The charge with the request that was approved for it: by its name, its client, its budget and its content."""
        found = find_for_release(execute, self._sql, charge.idempotency_key, lock=True)
        if found is None or found.state != "approved" or found.budget != budget.id:
            raise LedgerUnavailable("a budget demands an approval since a moment ago: the request must come again")
        if (found.details["client"], found.details["content_hash"]) != (client, charge.content):
            raise KeyReused(charge.idempotency_key, budget.id, has_answer=False, approval=found.id)
        finish(execute, self._sql, found.id)
        return replace(charge, approval=found.id)

    def _hashed(self, client: str) -> str:
        return self.secret.fingerprint(b"client", client.encode())
