"""Groups as columns of keys and numbers: checked, sorted by group key, and released."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import IO, Any

import pyarrow as pa

from gsh.errors import InvalidGroups, pointer_part
from gsh.histogram.apply import KeptGroups, apply_mechanism
from gsh.histogram.arrays import Integers, Positions, Values
from gsh.histogram.content import Column, digest_of, number_columns
from gsh.histogram.entropy import Entropy
from gsh.histogram.json_answers import key_columns, key_names, write_groups
from gsh.histogram.keys.json_keys import LISTS, MIXED, JsonKeys, columns_of, keys_as_json, normalised
from gsh.histogram.keys.order import matched, unique_order
from gsh.histogram.noise import Noise
from gsh.histogram.numbers import checked_counts, checked_values
from gsh.histogram.public_keys import PublicKeys, check_public
from gsh.histogram.released_content import ReleasedContent, content_of
from gsh.histogram.roles import Roles

__all__ = ["CheckedGroups", "check_groups"]

_KEYS_AT_ONCE = 4096


@dataclass(frozen=True, slots=True)
class CheckedGroups:
    """Groups that can be released, in the order of their keys."""

    noise: Noise
    keys: Sequence[Any]
    columns: JsonKeys
    counts: Integers
    values: Mapping[str, Values]
    order: Positions

    def digest(self) -> bytes:
        """A digest of the groups, whatever their order and the spelling of their numbers (content.py)."""
        numbers = number_columns("", self.counts, self.values.items(), self.order)
        layout = self.columns.layout.encode()
        if self.columns.layout == MIXED:
            return digest_of(numbers, layout, self._digest_of_texts())
        places = pa.array(self.order)
        parts = [Column("key", str(j), part.type, part, places) for j, part in enumerate(self.columns.columns)]
        return digest_of([*parts, *numbers], layout)

    def _digest_of_texts(self) -> bytes:
        """Of the keys as JSON in the form of an answer, in lists of a length that is part of the digest."""
        texts = hashlib.sha256()
        for start in range(0, len(self.order), _KEYS_AT_ONCE):
            rows = self.order[start : start + _KEYS_AT_ONCE].tolist()
            texts.update(json.dumps([normalised(self.keys[row]) for row in rows]).encode())
        return texts.digest()

    def release(self, entropy: Entropy) -> KeptGroups:
        """The kept groups, by position."""
        return apply_mechanism(self.noise, self.counts, list(self.values.values()), self.order, entropy)

    def write(self, kept: KeptGroups, sink: IO[bytes], encode: Callable[[Any], bytes]) -> None:
        """The kept groups as JSON, in the shape of POST /release."""
        write_groups([self._keys(kept.rows, encode)], (kept.counts, *kept.values), tuple(self.values), sink, encode)

    def content(self, kept: KeptGroups, level: float | None) -> ReleasedContent:
        """The content of the kept groups, as an answer in JSON has it in columns (json_answers.py).

        ``level`` is that of the intervals, if there are any.
        """
        has_intervals = level is not None
        values, rows, are_lists = tuple(self.values), kept.rows, self.columns.layout == LISTS
        if self.columns.layout == MIXED or not len(rows):
            keys = [normalised(self.keys[row]) for row in rows.tolist()]
            columns = key_columns(keys, values, has_intervals=has_intervals)
        else:
            names = key_names(len(self.columns.columns) if are_lists else 0, values, has_intervals=has_intervals)
            parts = [column.take(pa.array(rows)) for column in self.columns.columns]
            columns = dict(zip(names, parts, strict=True))
        roles = Roles(tuple(columns), "count", values)
        numbers = map(pa.array, (kept.counts, *kept.values))
        found = content_of(pa.table(columns | dict(zip(roles.numbers, numbers, strict=True))), roles)
        return replace(found, intervals=level)

    def _keys(self, rows: Positions, encode: Callable[[Any], bytes]) -> bytes:
        if self.columns.layout == MIXED:
            return encode([normalised(self.keys[row]) for row in rows.tolist()])
        places = pa.array(rows)
        columns = [column.take(places) for column in self.columns.columns]
        return keys_as_json(columns, are_lists=self.columns.layout == LISTS)


def check_groups(
    noise: Noise,
    names: Sequence[str],
    keys: Sequence[Any],
    counts: pa.Array,
    values: Mapping[str, pa.Array],
    *,
    public: PublicKeys | None = None,
    at: str = "",
    at_public: str = "public_keys",
) -> CheckedGroups:
    """The groups with every check made. ``at`` starts the pointers of errors.

    If the groups are public, ``public`` lists them. All of them are in the result: those that are not posted count 0.
    """
    check_public(noise, public, at_public)
    if values and noise.lacks_covariance:
        raise InvalidGroups("/mechanism/aggregates", "must have a covariance: mu_0 alone is not enough to draw noise")
    if values.keys() != set(names):
        raise InvalidGroups(f"{at}values", "must have a column for each of aggregates/names, and no others")
    places = [f"{at}counts", *(f"{at}values/{pointer_part(name)}" for name in names)]
    for column, place in zip((counts, *(values[name] for name in names)), places, strict=True):
        if len(column) != len(keys):
            raise InvalidGroups(place, "must have as many items as keys")
    true_counts = checked_counts(counts, places[0])
    checks = zip(names, noise.steps[1:], places[1:], strict=True)
    true_values = {name: checked_values(values[name], grid, place) for name, grid, place in checks}
    if public is None or isinstance(public, str):
        columns = columns_of(keys, f"{at}keys")
        order = unique_order(columns.columns, len(keys), f"{at}keys")
        return CheckedGroups(noise, keys, columns, true_counts, true_values, order)
    every = [*public, *keys]
    columns = columns_of(every, at_public)
    found = matched(columns.columns, len(public), len(every), (at_public, f"{at}keys"))
    completed = {name: found.completed_values(column) for name, column in true_values.items()}
    return CheckedGroups(noise, every, columns, found.completed(true_counts), completed, found.order)
