"""Make a release: from a posted request to an answer that is charged and stored. No HTTP.

    ask → rules and permission → the ledger decides → draw → permission again → the ledger charges → answer

Groups in JSON, tables in files, and releases that another engine makes differ only in what reads and writes them
(``Posted``). A dry run ends before the draw, and a request that comes again gets the stored answer.
"""

from dataclasses import dataclass, replace

from app.errors import InvalidRequest, LimitExceeded, MissingIdempotencyKey
from app.ledger.answers import Answer
from app.ledger.charges import Charge
from app.ledger.figures import cost_figures
from app.releases.asked import Asked, BudgetTerms, Client, Outcome, Posted, encoded
from app.releases.payments import Payments, Rehearsal
from app.releases.recorded import released_certificate
from app.releases.schemas.release import DryBudget
from app.schemas.costs import CostOut
from gsh.accounting.composition import cost_of
from gsh.errors import renamed
from gsh.histogram.file_formats import JSON

__all__ = ["ReleaseRules", "Releases"]


@dataclass(frozen=True, slots=True)
class ReleaseRules:
    """An operator's bounds on one release. A budget bounds many, but only for clients that name one."""

    require_budget: bool = False
    least_sigma: float | None = None
    most: tuple[float, float] | None = None
    """An ε, and the most δ that a release may have there."""

    def check(self, asked: Asked, *, is_exempt: bool) -> None:
        """Refuse a release that breaks a rule. No rule applies to an exempt client."""
        if is_exempt:
            return
        if self.require_budget and asked.budget is None:
            raise InvalidRequest("/budget", "is required: a budget must pay for every release (GSH_REQUIRE_BUDGET)")
        for table, place in zip(asked.tables, asked.places, strict=True):
            if self.least_sigma is not None and table.sigma < self.least_sigma:
                detail = f"must be at least {self.least_sigma:g} (GSH_LEAST_SIGMA)"
                raise LimitExceeded(f"{place}/mechanism/sigma", detail)
        for noise in () if asked.survey is None else asked.survey.plan.survey:
            if self.least_sigma is not None and noise.sigma < self.least_sigma:
                raise LimitExceeded("/survey", f"must have a sigma of at least {self.least_sigma:g} (GSH_LEAST_SIGMA)")
        if self.most is not None and not asked.is_within:
            epsilon, delta = self.most
            raise LimitExceeded(
                "/mechanism" if asked.places == ("",) else "/tables",
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

        try:
            asked = await posted.ask()
            charge = self._charge(asked, client)
            if asked.is_dry:
                return await self._dry_run(charge, posted, client)
            if charge is not None:
                return await self.payments.exactly_once(charge, posted, client)
            await posted.receive()
            drawn = await posted.draw(None)
            await client.check_again(asked.budget)
            assert isinstance(drawn.answer, Answer)
            return Outcome(drawn.answer)
        finally:
            await posted.stop()

    async def _dry_run(self, charge: Charge | None, posted: Posted, client: Client) -> Outcome:
        """What the release would do, as JSON; an error if it would be refused. No noise, no charge, nothing stored."""
        if charge is None:
            await posted.receive()
            rehearsal, terms = None, None
        else:
            rehearsal = await self.payments.rehearse(charge, posted)
            terms = BudgetTerms.of(rehearsal.lineage, charge.idempotency_key or None)
        certificate = await posted.certificate(terms)
        await client.check_again(None if charge is None else charge.budget)
        shown = _dry_answer(certificate, rehearsal)
        return Outcome(Answer(JSON, lambda: [shown]))

    def _charge(self, asked: Asked, client: Client) -> Charge | None:
        """What the client may charge, by the rules; None if no budget pays.

        A budget and an idempotency key, both or neither: without a budget nothing makes a release exactly-once. A dry
        run may leave the idempotency key out. It is then the empty one, which is never used.
        """
        self.rules.check(asked, is_exempt=client.is_admin)
        _admit(client, asked.budget, is_dry=asked.is_dry)
        if asked.budget is None:
            return None
        release = asked.release
        with renamed(("sigma", "/mechanism/sigma" if asked.places == ("",) else "/tables")):
            cost = cost_of(release)
        return Charge(
            budget=asked.budget,
            idempotency_key=client.idempotency_key or "",
            request="",
            client=client.id,
            release=release,
            cost=cost,
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


def _dry_answer(certificate: str, rehearsal: Rehearsal | None) -> bytes:
    """DryRunAnswer, with a certificate that is JSON already. A replay has the stored one."""
    budget = at = "null"
    if rehearsal is not None:
        (paying, *_), spent, limit, earlier = rehearsal
        after = CostOut(**cost_figures(spent, limit))
        budget = DryBudget(id=paying.id, after=after, used=limit.used(spent)).model_dump_json()
        if earlier is not None:
            certificate = encoded(released_certificate(earlier)) if earlier.notes.certificate else certificate
            at = f'"{earlier.at}"'
    return f'{{"dry_run":true,"certificate":{certificate},"budget":{budget},"released_at":{at}}}'.encode()
