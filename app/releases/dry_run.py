"""A dry run of a release: whether the budget would pay, what its name would do, and the answer without noise."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from app.http.auth import Access
from app.ledger.charges import Charge
from app.ledger.releases import Notes, RecordedRelease
from app.releases.making import ReleaseFacts
from app.releases.payments import Payments, Terms, payment_of
from app.releases.schemas.release import DryBudget
from app.schemas.costs import CostOut
from gsh.accounting.budget_limits import Limit
from gsh.accounting.composition import Spent

__all__ = ["DryRun", "check_dry_run", "dry_run"]


class DryRun(NamedTuple):
    """What a release would do, if it were made now."""

    terms: Terms | None
    """What the certificate would say of the budget; None without a budget."""
    after: DryBudget | None
    earlier: RecordedRelease | None = None
    """The release that has this idempotency key and this content already. It would be replayed."""

    def encoded(self, certificate: str) -> bytes:
        """The answer, with a certificate that is JSON already. A replay has the stored one."""
        budget = "null" if self.after is None else self.after.model_dump_json()
        at = "null"
        if self.earlier is not None:
            certificate, at = self.earlier.notes.certificate or certificate, f'"{self.earlier.at}"'
        return f'{{"dry_run":true,"certificate":{certificate},"budget":{budget},"released_at":{at}}}'.encode()


async def check_dry_run(payments: Payments, access: Access, facts: ReleaseFacts, key: str | None) -> None:
    """All that can be refused before the content is known."""
    charge = _charge(access, facts, key)
    if charge is not None:
        await payments.would_pay(charge)


async def dry_run(
    payments: Payments, access: Access, facts: ReleaseFacts, key: str | None, meaning: Callable[[], Awaitable[bytes]]
) -> DryRun:
    """What the release would do; an error if it would be refused.

    An idempotency key that is used is compared and counted as for the release itself, so that a dry run is no way to
    guess a posted table. ``meaning`` gives the digest of the content.
    """
    charge = _charge(access, facts, key)
    if charge is None:
        return DryRun(None, None)
    payable = await payments.would_pay(charge)
    if payable is not None and payable.unread is None:
        budget = payable.budget
        spent, limit = budget.spent.plus(charge.release, charge.cost), budget.limit.settled_by(charge.cost)
        return DryRun(Terms.of(budget, key), _after(budget.id, spent, limit))
    # It is charged already. If nobody has read the answer, it would be drawn again, and not charged again.
    earlier = await payments.recorded(charge, meaning)
    budget = await payments.standing(charge.budget)
    after = _after(budget.id, budget.spent, budget.limit)
    return DryRun(Terms.of(budget, key), after, None if earlier.is_unread else earlier)


def _after(name: str, spent: Spent, limit: Limit) -> DryBudget:
    return DryBudget(id=name, after=CostOut.of(spent, limit), used=limit.used(spent))


def _charge(access: Access, facts: ReleaseFacts, key: str | None) -> Charge | None:
    """What would be charged; None without a budget. A dry run needs no idempotency key: the empty one is never used."""
    payment = payment_of(access, facts.budget, "" if key is None and facts.budget is not None else key)
    return None if payment is None else payment.charge(facts.mechanism, Notes())
