"""The tables that an audit gives to a black box, and the reading of what it publishes.

A table is made of many small copies of the same data, *blocks*, each with users and groups of its own. In half of the
blocks one more user is in some groups that are then at τ, and in others far above the threshold. So one run has many
samples of two neighbouring tables.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gsh.accounting.engines.scan import Histogram
from gsh.errors import InvalidParameter

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Blocks", "Seen", "Tables"]

Counts = NDArray[np.float64]

_FAR = 12
"""A count so many scales above the threshold is never dropped."""
_MOST_RECORDS = 5_000_000


@dataclass(frozen=True, slots=True)
class Blocks:
    """Blocks of one kind: in how many groups the user is, of which some are at τ and the others far above."""

    at_tau: int
    far: int
    is_there: bool
    """Whether the user is there; if not, the groups at τ have one user less."""

    @property
    def name(self) -> str:
        return f"{self.at_tau}-{self.far}-{self.is_there:d}"

    @property
    def without(self) -> "Blocks":
        return Blocks(self.at_tau, self.far, is_there=False)


@dataclass(frozen=True, slots=True)
class Seen:
    """The noisy counts of one run: a row per block, first the groups at τ; NaN for a group that was not published."""

    counts: Mapping[Blocks, Counts]
    unknown: int
    """Published groups that no event has."""

    @property
    def is_whole(self) -> bool:
        """Whether all counts are whole numbers."""
        return all(bool(np.all((each == np.round(each)) | np.isnan(each))) for each in self.counts.values())


@dataclass(frozen=True, slots=True)
class Tables:
    """The events of all blocks."""

    histogram: Histogram
    kinds: Sequence[Blocks]
    blocks: int
    """Of each kind."""
    records: int
    """Of one user in one group. A box that counts records is found by more than one."""

    @property
    def many(self) -> int:
        """The users of a group far above the threshold, without the one in question."""
        return math.ceil(max(float(self.histogram.threshold), self.histogram.tau) + _FAR * self.histogram.noise.scale)

    def check_size(self) -> None:
        """Refuse a table that is too large to make."""
        each = sum(kind.at_tau * (self.histogram.tau + 1) + kind.far * (self.many + 2) for kind in self.kinds)
        if each * self.blocks > _MOST_RECORDS:
            detail = f"must be at most {_MOST_RECORDS // each}: with this scale, threshold and c_u a block has {each}"
            raise InvalidParameter("blocks", f"{detail} records; or take a smaller scale and a lower threshold")

    def events(self) -> "pa.Table":
        """One row per record, in an order that says nothing."""
        import pyarrow as pa  # noqa: PLC0415 - the accounting of an engine needs none of it

        rows = [row for kind in self.kinds for block in range(self.blocks) for row in self._records(kind, block)]
        order = np.random.default_rng(0).permutation(len(rows))
        users, keys = zip(*rows, strict=True)
        return pa.table({"user": pa.array(users), "key": pa.array(keys)}).take(pa.array(order))

    def _records(self, kind: Blocks, block: int) -> Iterator[tuple[str, str]]:
        for group in range(kind.at_tau + kind.far):
            key = _key(kind, block, group)
            others = self.histogram.tau - 1 if group < kind.at_tau else self.many
            share = group // self.histogram.c_u  # so that no other user is in more than C_u groups
            yield from ((f"{kind.name} {block} {share} {other}", key) for other in range(others))
            if kind.is_there:
                yield from [(f"{kind.name} {block}", key)] * self.records

    def seen(self, published: object) -> Seen:
        """What a run has published."""
        found = _published(published)
        counts = {
            kind: np.array(
                [
                    [found.pop(_key(kind, block, group), math.nan) for group in range(kind.at_tau + kind.far)]
                    for block in range(self.blocks)
                ]
            )
            for kind in self.kinds
        }
        return Seen(counts, len(found))


def _key(kind: Blocks, block: int, group: int) -> str:
    return f"{kind.name} {block} {group}"


def _published(given: Any) -> dict[str, float]:
    """What the box returned: a mapping, or a table with the columns key and count."""
    if isinstance(given, Mapping):
        pairs = list(given.items())
    else:
        import pyarrow as pa  # noqa: PLC0415

        try:
            table = given if isinstance(given, pa.Table) else pa.table(given)
            pairs = list(zip(table["key"].to_pylist(), table["count"].to_pylist(), strict=True))
        except (KeyError, TypeError, ValueError, pa.ArrowException):
            detail = "must return a mapping from keys to noisy counts, or a table with the columns key and count"
            raise InvalidParameter("run", detail) from None
    found: dict[str, float] = {}
    for key, count in pairs:
        if not isinstance(key, str) or key in found:
            raise InvalidParameter("run", "must return keys that are texts, each of them once")
        found[key] = _number(count)
    return found


def _number(count: Any) -> float:
    try:
        number = float(count)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise InvalidParameter("run", "must return counts that are finite numbers")
    return number
