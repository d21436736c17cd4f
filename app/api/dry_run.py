"""A dry run of a release: whether the budget would pay, and the answer without noise."""

from app.api.auth import Access
from app.api.dependencies import Services
from app.api.schemas.costs import CostOut
from app.api.schemas.release import DryBudget
from app.ledger.releases import Notes
from app.service.payments import Payment, Terms
from app.service.releases import ReleaseFacts

__all__ = ["dry_run_terms", "encoded_dry_run"]


async def dry_run_terms(
    services: Services, access: Access, facts: ReleaseFacts
) -> tuple[Terms | None, DryBudget | None]:
    """What the certificate would say of the budget, and what would be spent; an error if the budget would not pay."""
    access.check(facts.budget)
    if facts.budget is None:
        return None, None
    charge = Payment(facts.budget, "", access.client).charge(facts.mechanism, Notes())
    budget = await services.payments.would_pay(charge)
    spent, limit = budget.spent.plus(charge.release, charge.cost), budget.limit.settled_by(charge.cost)
    after = DryBudget(id=budget.id, after=CostOut.of(spent, limit), used=limit.used(spent))
    return Terms.of(budget, None), after


def encoded_dry_run(certificate: str, after: DryBudget | None) -> bytes:
    """The answer, from a certificate that is JSON already."""
    budget = "null" if after is None else after.model_dump_json()
    return f'{{"dry_run":true,"certificate":{certificate},"budget":{budget}}}'.encode()
