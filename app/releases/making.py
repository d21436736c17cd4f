"""Make a release: from a posted request to an answer that is charged and stored. No HTTP.

    read → rules and permission → the ledger decides → draw → permission again → the ledger charges → answer

Groups in JSON, tables in files, and releases that another engine makes differ only in what reads and writes them
(``Posted``). A dry run ends before the draw, and a request that comes again gets the stored answer.
"""

from dataclasses import dataclass, replace

from app.errors import InvalidRequest, LimitExceeded, MissingIdempotencyKey
from app.ledger.answers import Answer
from app.ledger.charges import Charge
from app.releases.asked import Asked, Client, Outcome, Posted
from app.releases.dry_run import dry_run
from app.releases.payments import Payments
from gsh.accounting.composition import Release, Spent, cost_of, fits

__all__ = ["ReleaseRules", "Releases"]


@dataclass(frozen=True, slots=True)
class ReleaseRules:
    """An operator's bounds on one release. A budget bounds many, but only for clients that name one."""

    require_budget: bool = False
    least_sigma: float | None = None
    most: tuple[float, float] | None = None
    """An ε, and the most δ that a release may have there."""

    def check(self, release: Release, budget: str | None, *, is_exempt: bool) -> None:
        """Refuse a release that breaks a rule. No rule applies to an exempt client."""
        if is_exempt:
            return
        if self.require_budget and budget is None:
            raise InvalidRequest("/budget", "is required: a budget must pay for every release (GSH_REQUIRE_BUDGET)")
        if self.least_sigma is not None and release.sigma < self.least_sigma:
            raise LimitExceeded("/mechanism/sigma", f"must be at least {self.least_sigma:g} (GSH_LEAST_SIGMA)")
        if self.most is not None and not fits(Spent(releases=1, only=release), *self.most):
            epsilon, delta = self.most
            raise LimitExceeded(
                "/mechanism",
                f"must have a δ of at most {delta:g} at ε = {epsilon:g} (GSH_MOST_EPSILON, GSH_MOST_DELTA)",
            )


@dataclass(frozen=True, slots=True)
class Releases:
    """Makes releases by the operator's rules, and charges budgets for them."""

    payments: Payments
    rules: ReleaseRules

    async def make(self, posted: Posted, client: Client, *, budget: str | None = None) -> Outcome:
        """The answer to a request, which may now be shown. If a budget pays, it is charged and stored before.

        ``budget`` is the one that pays, if it is known before the request is read: then nothing is computed for a
        client that may not use it.
        """
        if budget is not None:
            _admit(client, budget)

        async def check(asked: Asked) -> None:
            charge = self._charge(asked, client)
            if charge is not None:
                await self.payments.payable(charge)

        try:
            asked = await posted.read(check)
            charge = self._charge(asked, client)
            if asked.is_dry:
                return await dry_run(self.payments, charge, posted, client, asked.budget)
            if charge is not None:
                return await self.payments.exactly_once(charge, posted, client)
            drawn = await posted.draw(None)
            await client.check_again(asked.budget)
            assert isinstance(drawn.answer, Answer)
            return Outcome(drawn.answer)
        finally:
            await posted.stop()

    def _charge(self, asked: Asked, client: Client) -> Charge | None:
        """What the client may charge, by the rules; None if no budget pays.

        A budget and an idempotency key, both or neither: without a budget nothing makes a release exactly-once. A dry
        run may leave the idempotency key out. It is then the empty one, which is never used.
        """
        self.rules.check(asked.release, asked.budget, is_exempt=client.is_admin)
        _admit(client, asked.budget, is_dry=asked.is_dry)
        if asked.budget is None:
            return None
        return Charge(
            budget=asked.budget,
            idempotency_key=client.idempotency_key or "",
            request="",
            client=client.id,
            release=asked.release,
            cost=cost_of(asked.release),
            state=asked.state,
            notes=replace(asked.notes, by=client.by),
        )


def _admit(client: Client, budget: str | None, *, is_dry: bool = False) -> None:
    """Refuse a client that may not use the budget, and a budget without an idempotency key, or the reverse."""
    client.check(budget)
    if budget is None:
        if client.idempotency_key is not None:
            raise InvalidRequest("/budget", "is required with an Idempotency-Key, which works only with a budget")
    elif client.idempotency_key is None and not is_dry:
        raise MissingIdempotencyKey
