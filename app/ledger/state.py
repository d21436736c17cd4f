"""Budgets and their histories as values, and the rules that both must obey.

A history is append-only. Each entry has a hash over itself and the hash before it,

    hashₙ = SHA-256(hashₙ₋₁ ‖ budget, n, kind, time, payload)

and the budget has the last hash. To change, remove or insert an entry changes all hashes after it.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypedDict

from app.ledger.periods import PERIOD_ID, Renews, name_of
from gsh.accounting.budget_limits import Account, Caps, Limit, promised_delta
from gsh.accounting.composition import NOTHING, Cost, Release, Spent, cost_of
from gsh.accounting.numerics.doubles import next_below
from gsh.errors import AccountingError
from gsh.wire import charged_from_json, charged_to_json

__all__ = [
    "BUDGET_ID",
    "GENESIS",
    "UNREADABLE",
    "ApprovalRule",
    "Budget",
    "By",
    "Entry",
    "EntryName",
    "HistoryFault",
    "Settings",
    "chained",
    "check_history",
    "fraction_of",
    "ray_and_hull_of",
    "text_of",
]

EntryKind = Literal[
    "created", "changed", "charge", "redrawn", "surveyed", "committed", "requested", "approved", "refused"
]
ApprovalRule = Literal["limits", "releases"]
"""What waits for a second access key: changes, or changes and releases."""

BUDGET_ID = rf"^[A-Za-z0-9][A-Za-z0-9._-]{{0,99}}{PERIOD_ID}$"
"""Names of budgets: letters, digits, dots, dashes and underscores, which no place needs to quote. And of periods."""

GENESIS = "0" * 64
"""The hash before the first entry of every history."""

UNREADABLE = (ValueError, KeyError, TypeError, ArithmeticError, RecursionError, AccountingError)
"""What reading a row may raise if it was not written by us, or was changed."""

_WIRE_NAMES = {"s": "mu_squared", "d": "hazard", "key": "idempotency_key"}
"""Entries keep the names of version 0.1, because they are hashed as text. The API has better names."""
_HIDDEN = {"request", "content_hash", "client", "ray"}
"""Keyed hashes of the request, its content and the client, and the rule of the caps, which only the ledger needs."""

_ordered_json = json.JSONEncoder(sort_keys=True).encode


@dataclass(frozen=True, slots=True)
class By:
    """The access key that made an entry: its id, and the note that people gave it."""

    id: str
    note: str


class EntryName(NamedTuple):
    """An entry of the history of a budget."""

    budget: str
    number: int


class Settings(TypedDict, total=False):
    """The settings of a budget besides its limit. A change keeps those that it does not name."""

    description: str
    privacy_unit: str
    period: str | None
    parent: str | None
    renews: Renews | None
    closes_after: int | None
    most_sigma: float | None
    approval: ApprovalRule | None


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a budget's history; ``payload`` is JSON, kept as the text that was hashed."""

    budget: str
    number: int
    kind: EntryKind
    at: str
    payload: str
    hash: str

    @property
    def details(self) -> dict[str, Any]:
        details = json.loads(self.payload)
        if not isinstance(details, dict):
            raise ValueError("a payload is a JSON object")
        return details

    @property
    def shown(self) -> dict[str, Any]:
        """The details without keyed hashes, and with the changes of each field in place of what was there before."""
        details = {name: value for name, value in self.details.items() if name not in _HIDDEN}
        before = details.pop("before", None)
        if before is None:
            return _renamed(details)
        after = details.pop("after", details)
        changes = [{"field": name, "before": value, "after": after.get(name)} for name, value in before.items()]
        return _renamed(details | {"changes": changes})


@dataclass(frozen=True, slots=True)
class Budget:
    """A limit, the spent amount, and the length and last hash of its history."""

    id: str
    limit: Limit
    description: str
    spent: Spent = field(default=NOTHING)
    entries: int = 0
    head: str = GENESIS
    hull: Caps | None = None
    """The largest caps since the first charge; None before it."""
    privacy_unit: str = "user"
    """Whose records are protected together: all records of one unit, or of one unit in one period."""
    period: str | None = None
    parent: str | None = None
    """The budget that is charged for every release that this one is charged for."""
    renews: Renews | None = None
    """How often it is renewed: then nothing is charged to it, but to the budgets of its periods."""
    closes_after: int | None = None
    """How many days after its end a period can be charged; None if there is no end to it."""
    most_sigma: float | None = None
    """The largest σ that is calibrated to what remains, unless a request says another one."""
    period_of: str | None = None
    """The renewed budget, if this one is for one of its periods."""
    approval: ApprovalRule | None = None
    """What another access key must approve than the one that asks for it; None: nothing."""

    def of_period(self, label: str) -> "Budget":
        """The budget of one period of this renewed one, before it is stored."""
        assert self.renews is not None
        kept = (self.limit, self.description)
        return Budget(
            name_of(self.id, label),
            *kept,
            privacy_unit=self.privacy_unit,
            period=self.renews,
            parent=self.parent,
            closes_after=self.closes_after,
            most_sigma=self.most_sigma,
            period_of=self.id,
            approval=self.approval,
        )

    @property
    def account(self) -> Account:
        return Account(self.spent, self.limit)

    @property
    def promise(self) -> float | None:
        """The δ at the limit's ε that holds for all releases within the caps; None before the first charge."""
        if self.spent.releases == 0:
            return None
        return promised_delta(self.limit.caps.joined(self.hull), self.spent, self.limit.epsilon)

    def changed_to(
        self,
        limit: Limit,
        at: str,
        settings: Settings | None = None,
        *,
        reason: str = "",
        by: By | None = None,
        further: Mapping[str, Any] = MappingProxyType({}),
    ) -> tuple["Budget", Entry]:
        """The budget with another limit and other settings, and the entry that records all of them.

        The first entry records that the budget was made. Later ones also say what was there before.
        """
        kind: EntryKind = "changed" if self.entries else "created"
        changed = replace(self, **(settings or {}))._limited(limit)
        details = {name: value for name, value in changed.recorded.items() if value is not None or name == "period"}
        if self.entries:
            after = changed.recorded
            details["before"] = {name: value for name, value in self.recorded.items() if value != after[name]}
        details |= ({"reason": reason} if reason else {}) | dict(further)
        if self.spent.releases:
            details["ray"] = True
        return changed._appended(kind, at, details | _signed(by))

    @property
    def recorded(self) -> dict[str, Any]:
        """The limit and the settings as an entry records them. Those that are not set are None."""
        proportion = self.limit.proportion
        return {
            "epsilon": self.limit.epsilon,
            "delta": self.limit.delta,
            "proportion": None if proportion is None else _stored(proportion),
            "description": self.description,
            "privacy_unit": self.privacy_unit,
            "period": self.period,
            "parent": self.parent,
            "renews": self.renews,
            "closes_after": self.closes_after,
            "most_sigma": self.most_sigma,
            "period_of": self.period_of,
            "approval": self.approval,
        }

    def charged(
        self, after: Spent, release: Release, cost: Cost, at: str, further: dict[str, Any], by: By | None = None
    ) -> tuple["Budget", Entry]:
        """The budget with one more release, whose sums are ``after``, and the entry that records it."""
        details = {"release": charged_to_json(release)} | _stored(cost) | further | _signed(by)
        return self._after(after, cost)._appended("charge", at, details)

    def committed(self, at: str, details: dict[str, Any], by: By | None) -> tuple["Budget", Entry]:
        """The budget, unchanged except for the entry that records what was published under an open release."""
        return self._appended("committed", at, details | _signed(by))

    def surveyed(self, at: str, details: dict[str, Any], by: By | None) -> tuple["Budget", Entry]:
        """The budget, unchanged except for the entry that records what an open release chose from its survey."""
        return self._appended("surveyed", at, details | _signed(by))

    def noted(self, kind: EntryKind, at: str, details: dict[str, Any], by: By) -> tuple["Budget", Entry]:
        """The budget, unchanged except for an entry that says what somebody asked for or decided."""
        return self._appended(kind, at, details | _signed(by))

    def redrawn(self, at: str, details: dict[str, Any], by: By | None) -> tuple["Budget", Entry]:
        """The budget, unchanged except for the entry that records the second draw of an answer that nobody has read."""
        return self._appended("redrawn", at, details | _signed(by))

    def _appended(self, kind: EntryKind, at: str, details: dict[str, Any]) -> tuple["Budget", Entry]:
        payload, number = _ordered_json(details), self.entries + 1
        entry = Entry(self.id, number, kind, at, payload, chained(self.head, self.id, number, kind, at, payload))
        return replace(self, entries=number, head=entry.hash), entry

    def _after(self, spent: Spent, cost: Cost) -> "Budget":
        """The budget after a charge. The first one fixes the ray of all caps to come."""
        if self.spent.releases:
            return replace(self, spent=spent)
        limit = self.limit.settled_by(cost)
        return replace(self, spent=spent, limit=limit.with_ray_through(limit.caps), hull=limit.caps)

    def _limited(self, limit: Limit) -> "Budget":
        """The budget with another limit. If it has charges, the hull covers the caps before and after."""
        if self.spent.releases == 0:
            return replace(self, limit=limit)
        return replace(self, limit=limit, hull=limit.caps.joined(self.limit.caps).joined(self.hull))

    def _limited_before_rays(self, limit: Limit) -> "Budget":
        """The same by the rule of versions 0.1 and 0.2, whose caps of one proportion could cross.

        The budget keeps the hull of all its caps. From now on it grows along the ray through this hull.
        """
        if self.spent.releases == 0:
            return replace(self, limit=limit)
        hull = limit.caps.joined(self.hull)
        return replace(self, limit=limit.with_ray_through(hull), hull=hull)


@dataclass(frozen=True, slots=True)
class HistoryFault:
    """What is wrong with a history, and at which entry; ``number`` is 0 for the budget itself."""

    number: int
    detail: str


def check_history(budget: Budget, entries: Iterable[Entry]) -> HistoryFault | None:
    """Check a history from its beginning: the chain, the cost of every charge, and the sums and limit of the budget."""
    rebuilt = Budget(budget.id, budget.limit, budget.description)
    for entry in entries:
        number = rebuilt.entries + 1
        if entry.number != number:
            return HistoryFault(number, "is missing")
        try:
            if entry.hash != chained(rebuilt.head, budget.id, number, entry.kind, entry.at, entry.payload):
                return HistoryFault(number, "does not have the hash of its content and its predecessor")
            rebuilt = _replayed(rebuilt, entry)
        except UNREADABLE:
            return HistoryFault(number, "cannot be read, or is charged less than its release costs")
    if rebuilt != budget:
        return HistoryFault(0, "does not match its history")
    return None


def ray_and_hull_of(entries: Iterable[Entry]) -> tuple[Caps, Caps] | None:
    """The ray and the hull, from the changes of a limit and the first charge, in order; None without a charge."""
    budget = Budget("", Limit(0.0, 0.0), "")
    for entry in entries:
        budget = _replayed(budget, entry)
    return None if budget.limit.ray is None or budget.hull is None else (budget.limit.ray, budget.hull)


def text_of(exact: Fraction) -> str:
    """The fraction as n/d: databases have no exact numbers of this range."""
    return f"{exact.numerator}/{exact.denominator}"


def fraction_of(text: str) -> Fraction:
    numerator, denominator = text.split("/")
    return Fraction(int(numerator), int(denominator))


def _replayed(budget: Budget, entry: Entry) -> Budget:
    details = entry.details
    budget = replace(budget, entries=entry.number, head=entry.hash)
    if entry.kind in {"committed", "redrawn", "surveyed", "requested", "approved", "refused"}:
        return budget
    if entry.kind != "charge":
        if any(budget.recorded[name] != value for name, value in details.get("before", {}).items()):
            raise ValueError
        settled = _cost_in(details["proportion"]) if "proportion" in details else None
        limit = Limit(details["epsilon"], details["delta"], settled)
        if entry.kind == "changed" and settled is None:
            limit = replace(limit, proportion=budget.limit.proportion)  # recorded before there were proportions
        budget = replace(
            budget,
            description=details["description"],
            privacy_unit=details.get("privacy_unit", "user"),
            period=details.get("period"),
            parent=details.get("parent"),
            renews=details.get("renews"),
            closes_after=details.get("closes_after"),
            most_sigma=details.get("most_sigma"),
            period_of=details.get("period_of"),
            approval=details.get("approval"),
        )
        if "ray" in details:
            return budget._limited(replace(limit, ray=budget.limit.ray))
        return budget._limited_before_rays(limit)
    release, cost = charged_from_json(details["release"]), _cost_in(details)
    least = cost_of(release)
    # The last bit may differ between versions of the arithmetic, if a real number is itself a double.
    if cost.mu_squared < next_below(least.mu_squared) or cost.hazard < next_below(least.hazard):
        raise ValueError
    return budget._after(budget.spent.plus(release, cost), cost)


def _signed(by: By | None) -> dict[str, Any]:
    return {} if by is None else {"by": asdict(by)}


def _stored(cost: Cost) -> dict[str, float]:
    return {"s": cost.mu_squared, "d": cost.hazard}


def _cost_in(details: dict[str, Any]) -> Cost:
    return Cost(details["s"], details["d"])


def _renamed(details: dict[str, Any]) -> dict[str, Any]:
    """The same with the API's names, at any depth."""
    return {_WIRE_NAMES.get(name, name): _renamed_within(value) for name, value in details.items()}


def _renamed_within(value: Any) -> Any:
    if isinstance(value, list):
        return [_renamed_within(each) for each in value]
    return _renamed(value) if isinstance(value, dict) else value


def chained(before: str, *fields: str | int) -> str:
    """The hash of an entry and of the hash before it."""
    return hashlib.sha256((before + json.dumps(fields)).encode()).hexdigest()
