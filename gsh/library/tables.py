"""Several tables in one release: described, and calibrated by shares of one privacy target."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from gsh.accounting.aggregates import Aggregates, RelativeAggregates
from gsh.accounting.calibration import compared_tables
from gsh.accounting.calibration import shares as by_shares
from gsh.accounting.calibration.after_survey import SurveyPlan, calibrate_after
from gsh.accounting.calibration.compared_tables import WayName
from gsh.accounting.calibration.draft import Draft
from gsh.accounting.mechanism import AnyMechanism
from gsh.accounting.sensitivity import MOST_C_U
from gsh.accuracy.bounds import centred
from gsh.arguments import Integer, Real, instance, real
from gsh.errors import InvalidParameter, pointer_part, renamed
from gsh.library.measures import measures_of
from gsh.library.privacy import Privacy, privacy_of
from gsh.library.targets import Columns, SurveyWanted, draft_of, survey_wanted, target_of
from gsh.wire import check_table_names

__all__ = [
    "Table",
    "TablesCalibration",
    "TablesPrice",
    "calibrate_tables",
    "check_tables",
    "compare_tables",
    "drafts_of",
    "table_places",
]


T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One group-by of a release, without its noise and its threshold.

    ``tau=None`` or ``public_keys`` say that the groups are public: all are published, and there is no threshold.
    ``share`` is relative to the shares of the other tables. ``events`` maps names to the most events of one user in one
    group: each is a further column, from 0 to that number. ``means`` maps names to ranges, as ``sums`` does; its
    columns are around the middle of them, ``seconds_centred`` from −300 to 300 for (0, 600). ``by``, ``public_keys``,
    ``units``, ``ratios`` and ``round`` are for ``gsh.publish``: the key columns, the list of public groups (a list, a
    column, a table or a file), the units of sums and means, the ratios of columns, and whether published numbers are
    rounded. The other fields are those of ``gsh.calibrate``.
    """

    by: str | Sequence[str] = ()
    c_u: Integer
    tau: Integer | None = 1
    public_keys: Any = None
    aggregates: Aggregates | RelativeAggregates | None = None
    sums: Mapping[str, tuple[Real, Real]] | None = None
    events: Mapping[str, Integer] | None = None
    means: Mapping[str, tuple[Real, Real]] | None = None
    units: Mapping[str, Real] | None = None
    ratios: Mapping[str, tuple[str, str]] | None = None
    round: bool = False
    caps: Mapping[str, Integer] | None = None
    weights: Mapping[str, Real] | None = None
    share: Real = 1

    @property
    def is_public(self) -> bool:
        """Whether the groups are listed: then there is no threshold."""
        return self.tau is None or self.public_keys is not None

    def draft(self) -> by_shares.TableDraft:
        caps, weights = self._named(self.caps), self._named(self.weights)
        columns = Columns(aggregates=self.aggregates, sums=self._ranges(), caps=caps, weights=weights)
        draft: Draft = draft_of(columns, c_u=self.c_u, tau=1 if self.tau is None else self.tau)
        return by_shares.TableDraft(draft, is_public=self.is_public)

    def _ranges(self) -> Mapping[str, tuple[Real, Real]] | None:
        """The range of each further column: the sums, the events, and then the means, around their middles."""
        if self.events is None and self.means is None:
            return self.sums
        units = {name: unit for name, unit in (self.units or {}).items() if name not in (self.sums or {})}
        made = measures_of(MOST_C_U, events=self.events, means=self.means, units=units)
        found = {each.column: each.range for each in made}
        if not isinstance(self.sums, Mapping | None) or found.keys() & (self.sums or {}).keys():
            raise InvalidParameter("events" if self.means is None else "means", "must have other names than sums")
        return {**(self.sums or {}), **found}

    def _named(self, given: Mapping[str, T] | None) -> Mapping[str, T] | None:
        """Caps or weights by the names of columns. Callers name a mean as its column of the events."""
        if not isinstance(given, Mapping) or not isinstance(self.means, Mapping):
            return given
        return {centred(name) if name in self.means else name: value for name, value in given.items()}


@dataclass(frozen=True, slots=True)
class TablesCalibration:
    """The mechanism of each table, its share, and the certified (ε, δ) of all tables together."""

    tables: Mapping[str, AnyMechanism]
    shares: Mapping[str, float]
    """They add up to 1, each to the nearest double."""
    privacy: Privacy
    survey: SurveyPlan | None = None
    """After a survey: its noise, and what was fixed for the tables together before it."""


def calibrate_tables(
    tables: Mapping[str, Table],
    *,
    epsilon: Real,
    delta: Real,
    shares: Literal["balanced"] | None = None,
    survey: SurveyWanted = None,
) -> TablesCalibration:
    """The smallest noise of each table for its share, and then the smallest threshold.  [docs/math/joint-tables.md]

    Table k has the share w_k of the noise cost and of the threshold cost of one table that meets (ε, δ). All tables
    together then have exactly the privacy curve of that table. The tables must be fixed together, before anything is
    published: tables that are chosen one after the other are releases of their own. ``shares="balanced"`` takes
    shares in proportion to √C_u, more for tables with further columns: the sum of all σ² is then the smallest.
    ``survey`` is as in ``gsh.calibrate``: the C_u of all tables may then be chosen from what it shows.

    >>> import gsh
    >>> found = gsh.calibrate_tables(
    ...     {"by_country": gsh.Table(c_u=1), "by_url": gsh.Table(c_u=16)}, epsilon=1, delta=1e-6
    ... )
    >>> {name: (round(each.sigma, 3), round(each.tau_star, 2)) for name, each in found.tables.items()}
    {'by_country': (5.975, 30.23), 'by_url': (23.898, 130.33)}
    >>> gsh.exact(found.tables, epsilon=1).delta <= 1e-6
    True
    """
    drafts, given = drafts_of(tables, shares)
    with renamed(*table_places(drafts)):
        target = target_of(epsilon=epsilon, delta=delta)
        listed, plan = list(drafts.values()), None
        wanted: by_shares.Shares = given or "balanced"
        if survey is None:
            found = by_shares.calibrate_tables(listed, wanted, target)
        else:
            found, plan = calibrate_after(listed, wanted, target, survey_wanted(survey))
    return TablesCalibration(
        tables=dict(zip(tables, found.tables, strict=True)),
        shares=dict(zip(tables, map(float, found.shares), strict=True)),
        privacy=privacy_of("exact", found.point),
        survey=plan,
    )


@dataclass(frozen=True, slots=True)
class TablesPrice:
    """The tables that a way to account for them needs, and the δ that it claims for all of them, rounded up."""

    tables: Mapping[str, AnyMechanism]
    delta: float
    sigma_ratios: Mapping[str, float]
    """The σ of each table divided by its σ in one release by shares."""
    tau_star_ratios: Mapping[str, float | None]
    """The τ* of each table divided by its τ* in one release by shares; None if its groups are public."""


def compare_tables(
    tables: Mapping[str, Table],
    *,
    epsilon: Real,
    delta: Real,
    shares: Literal["balanced"] | None = None,
) -> Mapping[WayName, TablesPrice | None]:
    """What ways to account for the same tables need, with the same shares: None if one cannot meet the target.

    ``shares`` is one release of all tables. ``composition`` and ``zcdp`` add up the costs of a release for each table.
    ``separate`` gives each table a certificate of its own at its share of ε and of δ.

    >>> import gsh
    >>> found = gsh.compare_tables(
    ...     {"by_country": gsh.Table(c_u=1), "by_url": gsh.Table(c_u=16)}, epsilon=1, delta=1e-6
    ... )
    >>> {way: round(price.sigma_ratios["by_url"], 3) for way, price in found.items()}
    {'shares': 1.0, 'composition': 1.025, 'zcdp': 1.099, 'separate': 1.397}
    """
    drafts, given = drafts_of(tables, shares)
    with renamed(*table_places(drafts)):
        target = target_of(epsilon=epsilon, delta=delta)
        prices = compared_tables.compare_tables(list(drafts.values()), given or "balanced", target)
    return {way: None if price is None else _price(tables, price) for way, price in prices.items()}


def _price(names: Iterable[str], price: compared_tables.PricedTables) -> TablesPrice:
    return TablesPrice(
        tables=dict(zip(names, price.tables, strict=True)),
        delta=price.delta,
        sigma_ratios=dict(zip(names, price.sigma_ratios, strict=True)),
        tau_star_ratios=dict(zip(names, price.tau_star_ratios, strict=True)),
    )


def check_tables(tables: object) -> None:
    """Refuse what is no mapping, an empty one, and names that tables cannot have."""
    if not isinstance(tables, Mapping) or not tables:
        raise InvalidParameter("tables", "must be a mapping from names to gsh.Table, with one table at least")
    check_table_names(tables)


def drafts_of(
    tables: Mapping[str, Table], shares: Literal["balanced"] | None
) -> tuple[dict[str, by_shares.TableDraft], list[float] | None]:
    """The tables without their noise, and their shares; None if these are balanced. Errors name the table."""
    check_tables(tables)
    if shares not in (None, "balanced"):
        raise InvalidParameter("shares", "must be 'balanced', or omitted: each table has a share")
    drafts, given = {}, []
    for name, table in tables.items():
        with renamed(("", f"tables/{pointer_part(name)}")):
            drafts[name] = instance("", table, Table).draft()
            given.append(real("share", table.share))
            by_shares.check_share("share", given[-1])  # also if balanced ones replace it
    return drafts, None if shares else given


def table_places(names: Iterable[str]) -> list[tuple[str, str]]:
    """Places in a list of tables, and those in a mapping."""
    return [(f"tables/{k}", f"tables/{pointer_part(name)}") for k, name in enumerate(names)]
