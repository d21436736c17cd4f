"""Groups as columns of keys and numbers: checked, sorted by group key, and released."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from gsh.histogram.apply import ReleasedGroups, apply_mechanism
from gsh.histogram.entropy import Entropy
from gsh.histogram.errors import InvalidGroups
from gsh.histogram.keys.json_keys import columns_of
from gsh.histogram.keys.order import unique_order
from gsh.histogram.noise import Noise
from gsh.histogram.numbers import checked_counts, checked_values
from gsh.pointers import pointer_part

__all__ = ["release_groups"]


def release_groups(
    noise: Noise,
    names: Sequence[str],
    keys: Sequence[Any],
    counts: pa.Array,
    values: Mapping[str, pa.Array],
    entropy: Entropy,
    *,
    at: str = "",
) -> ReleasedGroups:
    """The kept groups, by position. All checks come before any noise; ``at`` starts the pointers of errors."""
    if values and noise.lacks_covariance:
        raise InvalidGroups("/mechanism/aggregates", "must have a covariance: mu_0 alone is not enough to draw noise")
    if values.keys() != set(names):
        raise InvalidGroups(f"{at}values", "must have a column for each of aggregates/names, and no others")
    places = [f"{at}counts", *(f"{at}values/{pointer_part(name)}" for name in names)]
    for column, place in zip((counts, *(values[name] for name in names)), places, strict=True):
        if len(column) != len(keys):
            raise InvalidGroups(place, "must have as many items as keys")
    true_counts = checked_counts(counts, places[0])
    checks = zip(names, noise.value_grids, places[1:], strict=True)
    true_values = [checked_values(values[name], grid, place) for name, grid, place in checks]
    order = unique_order(columns_of(keys, f"{at}keys"), len(keys), f"{at}keys")
    return apply_mechanism(noise, true_counts, true_values, order, entropy)
