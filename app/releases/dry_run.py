"""A dry run of a release: whether the budget would pay, what its name would do, and the certificate. No noise."""

from app.ledger.answers import Answer
from app.ledger.charges import Charge
from app.ledger.releases import RecordedRelease
from app.releases.asked import Client, Outcome, Posted, Terms
from app.releases.payments import Payments
from app.releases.schemas.release import DryBudget
from app.schemas.costs import CostOut
from gsh.accounting.budget_limits import Limit
from gsh.accounting.composition import Spent
from gsh.histogram.file_formats import JSON

__all__ = ["dry_run"]


async def dry_run(
    payments: Payments, charge: Charge | None, posted: Posted, client: Client, budget: str | None
) -> Outcome:
    """What the release would do, as JSON; an error if it would be refused. Nothing is charged or stored."""
    terms, after, earlier = (None, None, None) if charge is None else await _with_budget(payments, charge, posted)
    certificate = await posted.certificate(terms)
    await client.check_again(budget)
    shown = _encoded(certificate, after, earlier)
    return Outcome(Answer(JSON, lambda: [shown]))


async def _with_budget(
    payments: Payments, charge: Charge, posted: Posted
) -> tuple[Terms, DryBudget, RecordedRelease | None]:
    """What the certificate would say of the budget, what the budget would have spent, and the release to replay.

    An idempotency key that is used is compared and counted as for the release itself, so that a dry run is no way to
    guess a posted table.
    """
    key = charge.idempotency_key or None
    payable = await payments.payable(charge)
    if payable is not None and payable.unread is None:
        budget = payable.budget
        spent, limit = budget.spent.plus(charge.release, charge.cost), budget.limit.settled_by(charge.cost)
        return Terms.of(budget, key), _after(budget.id, spent, limit), None
    # It is charged already. If nobody has read the answer, it would be drawn again, and not charged again.
    earlier = await payments.recorded(charge, posted)
    budget = await payments.standing(charge.budget)
    after = _after(budget.id, budget.spent, budget.limit)
    return Terms.of(budget, key), after, None if earlier.is_unread else earlier


def _after(name: str, spent: Spent, limit: Limit) -> DryBudget:
    return DryBudget(id=name, after=CostOut.of(spent, limit), used=limit.used(spent))


def _encoded(certificate: str, after: DryBudget | None, earlier: RecordedRelease | None) -> bytes:
    """DryRunAnswer, with a certificate that is JSON already. A replay has the stored one."""
    budget = "null" if after is None else after.model_dump_json()
    at = "null"
    if earlier is not None:
        certificate, at = earlier.notes.certificate or certificate, f'"{earlier.at}"'
    return f'{{"dry_run":true,"certificate":{certificate},"budget":{budget},"released_at":{at}}}'.encode()
