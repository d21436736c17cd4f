"""How much of the events each C_u keeps, and what clips do to sums: for the owner's eyes. It is not private."""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import duckdb
import numpy as np

from gsh.accounting.mechanism import AnyMechanism, Mechanism
from gsh.arguments import Integer, Real, integer, is_several
from gsh.duckdb.aggregates import Query, answered
from gsh.duckdb.clipping import Clip, clips_of, clips_query
from gsh.duckdb.sources import Events, Source, open_source
from gsh.duckdb.workspace import workspace
from gsh.errors import InvalidParameter
from gsh.events.bounding import ranked_query
from gsh.events.kinds import Kind
from gsh.events.lots import new_salt
from gsh.events.plan import Plan, make_plan
from gsh.events.terms import terms_for

__all__ = ["Kept", "preview"]


@dataclass(frozen=True, slots=True)
class Kept:
    """What a publication with this C_u would keep. A pair is a user in a group."""

    c_u: int
    sigma: float
    tau_star: float
    groups: float
    """The expected number of published groups."""
    bounded: float
    """The share of all pairs that C_u keeps."""
    published: float
    """The expected share of all pairs that is in published groups."""
    clips: tuple[Clip, ...]
    """Of each column, the given bounds and others around them."""


def preview(
    data: Events,
    /,
    *,
    user: str,
    by: Sequence[str],
    c_u: Sequence[Integer],
    epsilon: Real,
    delta: Real,
    tau: Integer = 1,
    sums: Mapping[str, tuple[Real, Real]] | None = None,
    events: Mapping[str, Integer] | None = None,
    means: Mapping[str, tuple[Real, Real]] | None = None,
    units: Mapping[str, Real] | None = None,
    caps: Mapping[str, Integer] | None = None,
    types: Mapping[str, Kind] | None = None,
    connection: duckdb.DuckDBPyConnection | None = None,
    memory_limit: str | None = None,
    temporary: str | os.PathLike[str] | None = None,
    _salt: str | None = None,
    _buckets: int | None = None,
) -> tuple[Kept, ...]:
    """Groups and volume at each C_u, and what the bounds of sums, events and means do there, and other bounds.

    The columns take a share of the noise, so they count here too. If you choose C_u or a clip from it, say so in
    ``unprotected``: no ε covers the choice.
    """
    if not is_several(c_u):
        raise InvalidParameter("c_u", "must be a list of integers")
    choices = sorted({integer("c_u", each) for each in c_u})
    if not choices:
        raise InvalidParameter("c_u", "must have at least one number")
    common = {"user": user, "by": by, "sums": sums, "events": events, "units": units, "tau": tau, "types": types}
    common |= {"means": means, "salt": _salt or new_salt()}
    plans = [make_plan(**common, c_u=each, caps=_within(caps, each)) for each in choices]  # type: ignore[arg-type]
    mechanisms = [terms_for(plan, epsilon=epsilon, delta=delta).only for plan in plans]
    with workspace(memory_limit, None, temporary) as space:
        source = open_source(space, data, plans[0], connection)
        queries = [_counts(plans[0], source, choices)]
        if plans[0].measures:
            queries.append(clips_query(plans, source))
        table, *clipped = answered(space, source, user, queries, lambda _progress: None, _buckets)
    deviations = [_deviations(each) for each in mechanisms]
    clips = clips_of(plans, deviations, clipped[0]) if clipped else [()] * len(plans)
    every = max(int(table["c0"].to_numpy().sum()), 1)
    kept = []
    for plan, mechanism, of_columns in zip(plans, mechanisms, clips, strict=True):
        assert isinstance(mechanism, Mechanism)
        counts = table[f"c{plan.c_u}"].to_numpy()
        counts = counts[counts >= max(plan.tau, 1)].astype(np.float64)
        chance = _chance(counts, mechanism.tau_star, mechanism.sigma)
        all_pairs = table[f"c{plan.c_u}"].to_numpy().sum()
        published = math.fsum(counts * chance) / every
        bounded = float(all_pairs) / every
        kept.append(
            Kept(plan.c_u, mechanism.sigma, mechanism.tau_star, math.fsum(chance), bounded, published, of_columns)
        )
    return tuple(kept)


def _deviations(mechanism: AnyMechanism) -> list[float]:
    matrix = () if mechanism.aggregates is None else mechanism.aggregates.covariance
    return [math.sqrt(row[place]) for place, row in enumerate(matrix)]


def _counts(plan: Plan, source: Source, choices: Sequence[int]) -> Query:
    """A row per group, with the number of its users: in all (``c0``), and with each C_u."""
    keys = ", ".join(f"_key{j}" for j in range(1, len(plan.by) + 1))
    counted = ", ".join(f"COUNT(*) FILTER (_place <= {each}) AS c{each}" for each in choices)
    added = ", ".join(f"SUM(c{each})::BIGINT AS c{each}" for each in (0, *choices))

    def counts(scan: str) -> str:
        ranked = ranked_query(plan, source.kinds, "duckdb", scan)
        return f"SELECT {keys}, COUNT(*) AS c0, {counted} FROM ({ranked}) AS _pairs GROUP BY {keys}"

    def numbers(query: str) -> str:
        return f"SELECT {', '.join(f'c{each}' for each in (0, *choices))} FROM ({query}) AS _groups"

    def total(partial: str) -> str:
        return f"SELECT {added} FROM {partial} GROUP BY {keys}"

    return Query(whole=lambda scan: numbers(counts(scan)), partial=counts, total=total)


def _within(caps: Mapping[str, Integer] | None, c_u: int) -> dict[str, int] | None:
    if caps is not None and not isinstance(caps, Mapping):
        raise InvalidParameter("caps", "must be a mapping from names of columns")
    return None if caps is None else {name: min(integer(f"caps/{name}", cap), c_u) for name, cap in caps.items()}


def _chance(
    counts: "np.ndarray[tuple[int], np.dtype[np.float64]]", tau_star: float, sigma: float
) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """The probability that a group is kept: P[C + N(0, σ²) ≥ τ*]."""
    distinct, places = np.unique(counts, return_inverse=True)
    chances = [math.erfc((tau_star - count) / sigma / math.sqrt(2)) / 2 for count in distinct.tolist()]
    return np.array(chances, np.float64)[places]
