"""Releases that another engine makes: what a charge and an open release share."""

from dataclasses import dataclass, replace
from typing import Literal

from fastapi import Request

from app.budgets.budget_route import posted_release
from app.http.auth import access_of
from app.http.idempotency import idempotency_key
from app.http.services import services_of
from app.ledger.charges import Charge
from app.releases.meaning import meaning_of
from app.releases.payments import Terms, payment_of
from app.releases.release_route import releases_of
from app.releases.schemas.certificate import Certificate
from app.releases.schemas.described import Described

__all__ = ["MadeElsewhere", "made_elsewhere"]


@dataclass(frozen=True, slots=True)
class MadeElsewhere:
    """A charge, and the certificate of its release while no budget is known."""

    charge: Charge
    draft: Certificate
    meaning: bytes

    def certificate(self, terms: Terms) -> str:
        """The certificate with the budget that pays, as JSON."""
        return self.draft.charged_to(**terms._asdict()).model_dump_json()


async def made_elsewhere(
    request: Request, budget: str, body: Described, state: Literal["open", "charged"]
) -> MadeElsewhere:
    """What a client may charge to a budget for a release that it makes itself."""
    services, releases, access = services_of(request), releases_of(request), access_of(request.scope)
    payment = payment_of(access, budget, idempotency_key(request))
    assert payment is not None
    release = await posted_release(request, services, body.mechanism)
    releases.rules.check(release, budget, is_exempt=access.is_admin)
    draft = Certificate.draft(body, release, None)
    notes = replace(body.notes(), release_id=draft.release_id)
    charge = replace(payment.charge(release, notes), state=state)
    await services.authorizer.check_again(request.scope, budget)
    return MadeElsewhere(charge, draft, meaning_of(state, body, budget))
