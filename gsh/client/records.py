"""What the service says about budgets, charges, releases and itself, as frozen dataclasses."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from gsh.accounting.mechanism import AnyMechanism, Mechanism
from gsh.certificate import Certificate
from gsh.documents import Document
from gsh.results.budget_use import BudgetUse

__all__ = [
    "AccessEntry",
    "AccessKey",
    "Approval",
    "Budget",
    "BudgetCalibration",
    "By",
    "Charge",
    "Committed",
    "Cost",
    "Decision",
    "DryRun",
    "Entry",
    "EntryName",
    "Fault",
    "Limit",
    "NewAccessKey",
    "Opened",
    "Period",
    "Preview",
    "Promise",
    "Provenance",
    "Remaining",
    "Shortage",
    "StoredAnswer",
    "TablesBudgetCalibration",
    "Verification",
    "Verified",
    "Version",
    "WouldSpend",
    "is_it_or_its_period",
    "period_budget",
]

Period: TypeAlias = Literal["day", "week", "month", "quarter", "year"]


@dataclass(frozen=True, slots=True)
class Limit:
    """What a budget allows. The caps are None until the budget is divided between noise and thresholds."""

    epsilon: float
    delta: float
    mu_squared: float | None
    hazard: float | None


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of some releases together: two sums, and the certified (ε, δ). ε is None if it is not finite."""

    releases: int
    mu_squared: float
    hazard: float
    epsilon: float | None
    delta: float
    epsilon_lower: float | None = None
    delta_lower: float | None = None


@dataclass(frozen=True, slots=True)
class Remaining:
    """What remains for each of the two sums, and of δ."""

    mu_squared: float
    hazard: float
    delta: float


@dataclass(frozen=True, slots=True)
class Promise:
    """The (ε, δ) that holds for everything that a budget released and can still release."""

    epsilon: float
    delta: float


@dataclass(frozen=True, slots=True)
class Budget:
    """A budget: its limit, what is spent and what remains.  [docs/budgets.md]"""

    id: str
    description: str
    privacy_unit: str
    period: Period | None
    limit: Limit
    spent: Cost
    used: float
    """From 0 to 1: the used share of the cap that is closer to full."""
    remaining: Remaining
    """What can still be charged: the least that the budget or an ancestor has left."""
    promise: Promise | None
    parent: str | None = None
    """The budget that is charged for every release of this one too."""
    renews: Literal["week", "month", "quarter", "year"] | None = None
    """How often it is renewed: then charges are to the budgets of its periods, such as ``web@2026-W46``."""
    closes_after: int | None = None
    """How many days after its end a period can be charged; None if it is never closed."""
    most_sigma: float | None = None
    """The largest σ that is calibrated to what remains; None for the usual rules."""
    period_of: str | None = None
    """The renewed budget that this one is a period of."""
    approval: Literal["none", "limits", "releases"] = "none"
    """What another access key must approve."""
    ancestors: "tuple[Budget, ...] | None" = None
    """The parent, the parent of that one, and so on; None in a list of budgets."""
    periods: "tuple[Budget, ...] | None" = None
    """The periods of a renewed budget so far; None in a list of budgets."""
    more: int | None = None
    """How many more releases like the last one fit, or like the typical one before it; or of the mechanism that was
    given to ``get``. None in a list of budgets, and without any release."""
    shortage: "Shortage | None" = None
    """What is short if no more fits."""
    days_left: float | None = None
    """The days until a cap is full, at the rate of the last 28 days; None in a list, and if nothing was charged."""
    entries: int | None = None
    """The number of entries in the history; None in a list of budgets."""
    head: str | None = None


def period_budget(budget: str, period: str | None) -> str:
    """The name of a budget, or that of one of its periods: ``web@2026-W46``."""
    return budget if period is None else f"{budget}@{period}"


def is_it_or_its_period(budget: str, paid: str) -> bool:
    """Whether the budget that paid is this one, or that of one of its periods."""
    return paid == budget or paid.startswith(f"{budget}@")


@dataclass(frozen=True, slots=True)
class Shortage:
    """What is short for releases that do not fit, and a limit that would do; None if none near the present one."""

    binding: Literal["noise", "threshold", "both"]
    """Noise: ε is too small. Threshold: δ is too small."""
    releases: int
    epsilon: float | None
    delta: float | None
    detail: str
    """The same in a sentence."""
    budget: str | None = None
    """The one that is short: the budget of the plan, or an ancestor."""


@dataclass(frozen=True, slots=True)
class Preview:
    """Whether planned releases fit a budget, and what would remain. Nothing was charged."""

    fits: bool
    fitting: int
    """How many of the releases fit, in order."""
    asked: Cost
    after: Cost
    used: float
    remaining: Remaining | None
    more: int | None = None
    """How many more releases like the first one fit."""
    shortage: Shortage | None = None
    """What is short; None if all of the releases fit."""


@dataclass(frozen=True, slots=True)
class BudgetCalibration:
    """A mechanism, and the number of its releases that fit the remaining part of a budget."""

    mechanism: Mechanism
    solved: tuple[str, ...]
    budget: str | None
    """None: they fit a new budget with the limit that was asked for."""
    releases: int
    epsilon: float
    delta: float
    """What would be spent after all of the releases."""


@dataclass(frozen=True, slots=True)
class TablesBudgetCalibration:
    """Several tables in one release, and the number of such releases that fit the remaining part of a budget."""

    tables: Mapping[str, AnyMechanism]
    shares: Mapping[str, float]
    budget: str | None
    releases: int
    epsilon: float
    delta: float
    """What would be spent after all of the releases."""


@dataclass(frozen=True, slots=True)
class EntryName:
    """An entry of the history of a budget."""

    budget: str
    number: int


@dataclass(frozen=True, slots=True)
class Charge:
    """A recorded charge."""

    budget: str
    number: int
    at: str
    mu_squared: float
    hazard: float
    spent: Cost
    ancestors: tuple[EntryName, ...] = ()
    """The entries of the same charge in the histories of the budget's ancestors."""
    is_replayed: bool = False
    """Whether an earlier request with the same idempotency key was charged."""


@dataclass(frozen=True, slots=True)
class Entry:
    """created, changed, charge, redrawn, surveyed or committed. ``details`` depend on the kind."""

    number: int
    kind: str
    at: str
    hash: str
    details: Document


@dataclass(frozen=True, slots=True)
class Fault:
    """The first entry that does not match a history."""

    number: int
    detail: str


@dataclass(frozen=True, slots=True)
class Verification:
    """Whether a history is as it was recorded."""

    intact: bool
    entries: int
    head: str
    fault: Fault | None


@dataclass(frozen=True, slots=True)
class By:
    """The access key that made a record."""

    id: str
    note: str


@dataclass(frozen=True, slots=True)
class AccessKey:
    """An access key, without what proves it.  [docs/access.md]"""

    id: str
    state: Literal["active", "expired", "revoked", "unsealed"]
    scopes: tuple[str, ...]
    budgets: tuple[str, ...]
    """The patterns of budgets that it is bound to; none: all."""
    note: str
    made_at: str
    expires_at: str | None
    revoked_at: str | None
    replaces: str | None
    """The id of the access key that was rotated to this one."""
    replaced_by: str | None


@dataclass(frozen=True, slots=True)
class NewAccessKey(AccessKey):
    """A new access key. ``key`` is shown once: the service keeps its hash alone."""

    key: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class AccessEntry:
    """An entry of the history of access: an access key was made, rotated or revoked, or an answer was read."""

    number: int
    kind: str
    at: str
    hash: str
    key: str | None = None
    """The id of the access key."""
    keys: tuple[str, ...] | None = None
    """Those that were there when the history began."""
    scopes: tuple[str, ...] | None = None
    budgets: tuple[str, ...] | None = None
    note: str | None = None
    replaces: str | None = None
    until: str | None = None
    expires_at: str | None = None
    release: str | None = None
    """The release whose answer was read."""
    budget: str | None = None
    by: By | None = None
    """The access key that did it; None for a command at the ledger."""


@dataclass(frozen=True, slots=True)
class Decision:
    """That a request was approved or refused."""

    at: str
    by: By
    reason: str
    number: int


@dataclass(frozen=True, slots=True)
class Approval:
    """A request that waits for a second access key, or waited for one.  [docs/budgets.md]"""

    id: str
    kind: Literal["change", "release"]
    budget: str
    state: Literal["waiting", "approved", "refused", "done"]
    at: str
    by: By
    number: int
    """The entry of the budget's history that records it."""
    decision: Decision | None
    changes: tuple[Document, ...] | None = None
    """Of a change: each field before and after."""
    reason: str | None = None
    idempotency_key: str | None = None
    """Of a release: its name."""
    release: Document | None = None
    mu_squared: float | None = None
    hazard: float | None = None
    description: str | None = None
    labels: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """The stored answer of a release."""

    media_type: str
    size: int
    sha256: str
    erased_at: str | None


@dataclass(frozen=True, slots=True)
class Committed:
    """What another engine published."""

    digest: str
    rows: int | None
    at: str


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a table comes from, and what enforced the bounds of the mechanism on it."""

    enforced_by: Literal["caller", "gsh.duckdb", "gsh.spark"] = "caller"
    plan_digest: str | None = None
    plan: Document | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """A release that another engine makes. ``seed`` is as secret as the raw data; None after the commit."""

    key: str
    state: str
    budget: str
    entry: int
    at: str
    certificate: Certificate
    seed: bytes | None
    is_replayed: bool
    budget_use: BudgetUse | None = None
    """What it uses of the budget, and how many more like it fit."""

    def __repr__(self) -> str:
        return f"Opened(key={self.key!r}, state={self.state!r}, budget={self.budget!r}, entry={self.entry}, seed=…)"


@dataclass(frozen=True, slots=True)
class Verified:
    """Whether a ledger made a certificate, and for which bytes."""

    made_here: bool
    differences: tuple[str, ...]
    key: str | None = None
    budget: str | None = None
    entry: int | None = None
    answer_sha256: str | None = None
    committed_digest: str | None = None


@dataclass(frozen=True, slots=True)
class WouldSpend:
    """What a budget would have spent."""

    id: str
    after: Cost
    used: float


@dataclass(frozen=True, slots=True)
class DryRun:
    """The request is in order, and the budget would pay. Nothing was drawn, charged or stored."""

    certificate: Certificate
    budget: WouldSpend | None
    released_at: str | None = None
    """When the release was made that has this name and content already: it would be replayed, and not charged."""


@dataclass(frozen=True, slots=True)
class Version:
    """The versions of the service and of its arithmetic."""

    service: str
    python: str
    flint: str
