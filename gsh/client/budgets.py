"""``client.budgets``: limits, what is spent of them, and charges for releases that are made elsewhere."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeVar, Unpack

import pyarrow as pa

from gsh.accounting.column_costs import ColumnCaps
from gsh.accounting.mechanism import Aggregates, Mechanism, RelativeAggregates
from gsh.arguments import Integer, Real, integer, real
from gsh.client.decoding import decoded
from gsh.client.encoding import (
    AS_NAMED,
    IN_A_MECHANISM,
    ChargedLike,
    MechanismOrJson,
    ReleaseLike,
    ReleaseOptions,
    charged_json,
    in_period,
    in_tables,
    mechanism_json,
    release_json,
    stated,
    tables_budget_calibration_of,
)
from gsh.client.operations import (
    MOST_TABLE_BYTES,
    Awaiting,
    Blocking,
    Collection,
    Mode,
    Operation,
    Page,
    listing,
    operation,
)
from gsh.client.records import (
    Budget,
    BudgetCalibration,
    Charge,
    Entry,
    Period,
    Preview,
    TablesBudgetCalibration,
    Verification,
)
from gsh.client.requests import ask, json_call, part
from gsh.documents import parsed
from gsh.errors import InvalidParameter
from gsh.histogram.file_formats import ZIP
from gsh.library.tables import Table, drafts_of
from gsh.library.targets import Calibration, Columns, draft_of
from gsh.wire import Json, draft_to_json, table_drafts_to_json

__all__ = ["Budgets"]


M = TypeVar("M", bound=Mode)

_PAGE = 100


class Budgets(Collection[M]):
    """The budgets that the access key may see.  [docs/budgets.md]

    ``client.budgets["web"]`` is one of them, and a loop gives all of them.
    """

    @operation
    def get(self, id: str, mechanism: Mechanism | Calibration | None = None) -> Operation[Budget]:  # noqa: A002
        """A budget. With a mechanism, ``more`` is that of its ``preview``."""
        answer = yield from ask(self, json_call("GET", f"/budgets/{part('id', id)}"))
        found = decoded(answer, _budget)
        if mechanism is None:
            return found
        preview = yield from Budgets.preview(self, id, mechanism)
        return replace(found, more=preview.more)

    @operation
    def __getitem__(self, id: str) -> Operation[Budget]:  # noqa: A002
        return (yield from Budgets.get(self, id))

    @listing
    def list(self, _start: str | None) -> Operation[Page[Budget]]:
        """All budgets, by name."""
        answer = yield from ask(self, json_call("GET", "/budgets"))
        return Page(decoded(answer, lambda document: tuple(map(_budget, document["budgets"]))), None)

    def __iter__(self: "Budgets[Blocking]") -> Iterator[Budget]:
        return self.list()

    def __aiter__(self: "Budgets[Awaiting]") -> AsyncIterator[Budget]:
        return self.list()

    @operation
    def put(
        self,
        id: str,  # noqa: A002
        *,
        epsilon: Real,
        delta: Real,
        description: str | None = None,
        reason: str = "",
        privacy_unit: str | None = None,
        period: Period | None = None,
        parent: str | None = None,
        renews: Literal["week", "month", "quarter", "year"] | None = None,
        closes_after: Integer | None = None,
        most_sigma: Real | None = None,
        approval: Literal["none", "limits", "releases"] | None = None,
        mechanism: ReleaseLike | None = None,
    ) -> Operation[Budget]:
        """Create a budget, or change its limit with a ``reason``. The same limit again changes nothing.

        What is None stays as it is. ``mechanism`` is a typical release: noise and thresholds share the budget in its
        proportion. ``parent`` is a budget that is charged for every release of this one too; "" removes it.
        With ``renews`` each period has a budget of its own, which closes ``closes_after`` days after its end.
        ``most_sigma`` is the largest σ that ``calibrate`` gives if it is not told another. With ``approval`` changes,
        or changes and releases, wait for another access key: they raise ``AwaitsApproval``.
        """
        body: Json = {"epsilon": real("epsilon", epsilon), "delta": real("delta", delta)}
        optional = {"description": description, "reason": reason or None, "privacy_unit": privacy_unit}
        optional |= {"period": period, "parent": parent, "renews": renews, "approval": approval}
        body |= {name: value for name, value in optional.items() if value is not None}
        if closes_after is not None:
            body["closes_after"] = integer("closes_after", closes_after)
        if most_sigma is not None:
            body["most_sigma"] = real("most_sigma", most_sigma)
        if parent == "":
            body["parent"] = None
        if mechanism is not None:
            body |= release_json(mechanism)
        answer = yield from ask(self, json_call("PUT", f"/budgets/{part('id', id)}", body), _places(body))
        return decoded(answer, _budget)

    @operation
    def preview(
        self,
        id: str,  # noqa: A002
        mechanism: ChargedLike | Sequence[MechanismOrJson],
        *,
        period: str | None = None,
    ) -> Operation[Preview]:
        """Whether a mechanism, several tables in one release, or a list of mechanisms in order, fits.

        Nothing is charged. ``period`` is that of a renewed budget, such as ``2026-W46``; without it, the present one.
        """
        if isinstance(mechanism, Sequence):
            body: Json = {"mechanism": [mechanism_json(each) for each in mechanism]}
        else:
            body = charged_json(mechanism)
        body |= in_period(period)
        call = json_call("POST", f"/budgets/{part('id', id)}/preview", body, is_safe=True)
        answer = yield from ask(self, call, _places(body))
        return decoded(answer, lambda document: parsed(Preview, document))

    @operation
    def charge(
        self,
        id: str,  # noqa: A002
        mechanism: ChargedLike,
        *,
        once: str,
        period: str | None = None,
        **options: Unpack[ReleaseOptions],
    ) -> Operation[Charge]:
        """Charge a budget for a release that another engine makes: charge first, and release only after it.

        ``mechanism`` may be an answer of ``gsh.engine``. If a budget cannot be charged for that engine, the error says
        why. The same ``once`` with the same content is charged once. ``period`` is the one that pays of a renewed
        budget.
        """
        body = charged_json(mechanism) | in_period(period) | stated(mechanism, options)
        answer = yield from ask(
            self, json_call("POST", f"/budgets/{part('id', id)}/charges", body, once=once), _places(body)
        )
        return decoded(answer, lambda document: parsed(Charge, document | {"is_replayed": answer.is_replayed}))

    @listing
    def history(self, start: str | None, id: str) -> Operation[Page[Entry]]:  # noqa: A002
        """The entries of a budget's history, the latest first."""
        call = json_call("GET", f"/budgets/{part('id', id)}/charges", query={"before": start, "limit": _PAGE})
        return decoded((yield from ask(self, call)), _entries)

    @operation
    def verify(self, id: str) -> Operation[Verification]:  # noqa: A002
        """Whether the history of a budget is as it was recorded."""
        answer = yield from ask(self, json_call("GET", f"/budgets/{part('id', id)}/verify"))
        return decoded(answer, lambda document: parsed(Verification, document))

    @operation
    def bundle(self, id: str) -> Operation[pa.Buffer]:  # noqa: A002
        """Everything for an auditor, as a zip archive: histories, certificates, verification and heads."""
        call = json_call("GET", f"/budgets/{part('id', id)}/bundle", accept=ZIP, most_bytes=MOST_TABLE_BYTES)
        return (yield from ask(self, call)).content

    @operation
    def calibrate(
        self,
        id: str | None = None,  # noqa: A002
        *,
        epsilon: Real | None = None,
        delta: Real | None = None,
        releases: Integer = 1,
        c_u: Integer | None = None,
        tau: Integer = 1,
        tau_star: Real | None = None,
        sigma: Real | None = None,
        mu_0: Real = 0.0,
        aggregates: Aggregates | RelativeAggregates | None = None,
        sums: Mapping[str, tuple[Real, Real]] | None = None,
        caps: Mapping[str, Integer] | None = None,
        weights: Mapping[str, Real] | None = None,
        capped: ColumnCaps | None = None,
        most_sigma: Real | None = None,
    ) -> Operation[BudgetCalibration]:
        """The smallest noise with which this many equal ``releases`` fit the remaining part of a budget.

        Without a budget they fit a new one with the limit (``epsilon``, ``delta``), for the planning of one.
        ``TooLittleLeft`` if less than half of a usual release is left, or σ is above ``most_sigma``.  [docs/budgets.md]
        """
        columns = Columns(mu_0, capped, aggregates, sums, caps, weights)
        draft = draft_to_json(draft_of(columns, c_u=c_u, tau=tau, tau_star=tau_star, sigma=sigma))
        body: Json = {"mechanism": draft} | _aim(id, epsilon, delta, releases)
        if most_sigma is not None:
            body["most_sigma"] = real("most_sigma", most_sigma)
        answer = yield from ask(self, json_call("POST", "/calibrate", body, is_safe=True), IN_A_MECHANISM)
        return decoded(answer, lambda document: parsed(BudgetCalibration, document))

    @operation
    def calibrate_tables(
        self,
        id: str | None,  # noqa: A002
        tables: Mapping[str, Table],
        *,
        epsilon: Real | None = None,
        delta: Real | None = None,
        releases: Integer = 1,
        shares: Literal["balanced"] | None = None,
        most_sigma: Real | None = None,
    ) -> Operation[TablesBudgetCalibration]:
        """The smallest noise of each table for its share, so that this many equal ``releases`` fit what remains.

        ``TooLittleLeft`` as for ``calibrate``: ``most_sigma`` bounds the largest σ of the tables.
        """
        drafts, given = drafts_of(tables, shares)
        body: Json = {"tables": table_drafts_to_json(drafts, given)} | _aim(id, epsilon, delta, releases)
        body |= {"shares": shares} if shares else {}
        if most_sigma is not None:
            body["most_sigma"] = real("most_sigma", most_sigma)
        answer = yield from ask(self, json_call("POST", "/calibrate", body, is_safe=True), in_tables(body))
        return decoded(answer, lambda document: tables_budget_calibration_of(list(tables), document))


def _aim(budget: str | None, epsilon: Real | None, delta: Real | None, releases: Integer) -> Json:
    """What so many releases must fit: a budget, or the limit of a new one."""
    number: Json = {"releases": integer("releases", releases)}
    if budget is not None:
        for name, value in (("epsilon", epsilon), ("delta", delta)):
            if value is not None:
                raise InvalidParameter(name, "must be omitted with a budget: what remains of it is the target")
        return number | {"budget": budget}
    if releases == 1:
        raise InvalidParameter("releases", "must be at least 2 without a budget: client.calibrate solves for one")
    if epsilon is None or delta is None:
        missing = "epsilon" if epsilon is None else "delta"
        raise InvalidParameter(missing, "must be given, with the other of epsilon and delta, or a budget")
    return number | {"epsilon": real("epsilon", epsilon), "delta": real("delta", delta)}


def _places(body: Json) -> tuple[tuple[str, str], ...]:
    """Tables by their names, and other fields by their own."""
    return in_tables(body) if "tables" in body else AS_NAMED


def _budget(document: Json) -> Budget:
    return parsed(Budget, document)


def _entries(document: Json) -> Page[Entry]:
    following = document["before"]
    entries = tuple(parsed(Entry, each) for each in document["entries"])
    return Page(entries, None if following is None else str(following))
