"""The mechanism applied to lists, arrays and Arrow tables. All noise comes from the operating system's entropy.

Nothing in a result depends on a dropped group: neither the order, nor the types, nor the memory behind an array.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gsh.accounting import mechanism as core
from gsh.histogram.entropy import operating_system
from gsh.histogram.errors import InvalidGroups, TooManyGroups
from gsh.histogram.groups import release_groups
from gsh.histogram.keys.json_keys import written
from gsh.histogram.noise import Noise
from gsh.histogram.tables import Roles, release_table
from gsh.library.arguments import texts
from gsh.library.parameters import as_mechanism

__all__ = ["ArrowTable", "GroupKey", "Groups", "Numbers", "release"]

GroupKey: TypeAlias = str | float | tuple[str | float, ...]
Numbers: TypeAlias = NDArray[np.float64] | NDArray[np.int64]

_MOST_GROUPS = 2**31 - 1
"""Positions of groups are 32-bit integers."""
_KEY_KINDS = "OTUfiu"
_PREVIEW = 5


class ArrowTable(Protocol):
    """A table of pyarrow, polars, pandas or DuckDB: whatever has the Arrow stream interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Groups:
    """The groups that were kept, sorted by group key, with their noisy numbers.

    Numbers are integers if the noise is on a grid of 1, else doubles.
    """

    keys: list[GroupKey]
    counts: Numbers
    values: Mapping[str, Numbers]

    def __len__(self) -> int:
        return len(self.keys)

    def __repr__(self) -> str:
        """The first rows, to read."""
        lines = ["".join(f"{name:>16}" for name in ("group key", "count", *self.values))]
        for row, key in enumerate(self.keys[:_PREVIEW]):
            numbers = (column[row] for column in (self.counts, *self.values.values()))
            lines.append(f"{key!r:>16}" + "".join(f"{number:>16.8g}" for number in numbers))
        if len(self) > _PREVIEW:
            lines.append(f"… {len(self)} groups")
        return "\n".join(lines)


@overload
def release(
    mechanism: core.Mechanism,
    *,
    keys: Sequence[Any] | NDArray[Any],
    counts: Sequence[int] | NDArray[np.integer[Any]],
    values: Mapping[str, Sequence[float] | NDArray[Any]] | None = None,
) -> Groups: ...
@overload
def release(
    mechanism: core.Mechanism, table: ArrowTable, *, key_columns: Sequence[str], count_column: str
) -> pa.Table: ...
def release(
    mechanism: core.Mechanism,
    table: ArrowTable | None = None,
    *,
    keys: Any = None,
    counts: Any = None,
    values: Mapping[str, Any] | None = None,
    key_columns: Sequence[str] | None = None,
    count_column: str | None = None,
) -> Any:
    """The groups that the mechanism keeps, with noise, sorted by group key.  [KKWZ Algorithm 1; docs/math/noise.md]

        drop groups with C < τ,   publish C + N(0, σ²) and A + N(0, Σ),   drop groups with C + N(0, σ²) < τ*

    Give lists or arrays (``keys``, ``counts``, and ``values`` for further columns) and get ``Groups``. Or give a table
    with its ``key_columns`` and ``count_column`` and get an Arrow table. Its other columns are the aggregates.

    Every call draws new noise and costs privacy again.

    >>> import gsh
    >>> mechanism = gsh.Mechanism(c_u=3, tau=1, tau_star=120, sigma=20)
    >>> private = gsh.release(mechanism, keys=["sport", "news", "weather"], counts=[2, 81200, 44000])
    >>> private.keys
    ['news', 'weather']
    >>> bool(abs(private.counts[0] - 81200) < 300)
    True
    """
    mechanism = as_mechanism(mechanism)
    if table is None:
        _refuse_given(key_columns=key_columns, count_column=count_column)
        return _release_columns(mechanism, _keys(keys), _column(counts, "counts"), _columns(values))
    _refuse_given(keys=keys, counts=counts, values=values)
    return _release_arrow(mechanism, table, key_columns, count_column)


def _release_columns(
    mechanism: core.Mechanism, keys: Sequence[Any], counts: pa.Array, values: Mapping[str, pa.Array]
) -> Groups:
    if len(keys) > _MOST_GROUPS:
        raise TooManyGroups("keys", "must have fewer than 2^31 groups")
    if values and mechanism.aggregates is None and mechanism.mu_0:
        detail = "must have a covariance: mu_0 alone is not enough to draw noise"
        raise InvalidGroups("mechanism/aggregates", detail)
    names = mechanism.column_names
    released = release_groups(Noise(mechanism), names, keys, counts, values, operating_system)
    return Groups(
        keys=[_answered(keys[row]) for row in released.rows],
        # Copies: the core's arrays are views of memory with a place for every group, dropped ones included.
        counts=released.counts.copy(),
        values={name: column.copy() for name, column in zip(names, released.values, strict=True)},
    )


def _release_arrow(
    mechanism: core.Mechanism, table: ArrowTable, key_columns: Sequence[str] | None, count_column: str | None
) -> pa.Table:
    if not hasattr(table, "__arrow_c_stream__"):
        raise InvalidGroups("table", f"must have the Arrow stream interface, which {type(table).__name__} has not")
    arrow = pa.table(table)
    if len(arrow) > _MOST_GROUPS:
        raise TooManyGroups("table", "must have fewer than 2^31 groups")
    if not isinstance(count_column, str):
        raise InvalidGroups("count_column", "must be the name of a column")
    keys = texts("key_columns", key_columns)
    if not keys:
        raise InvalidGroups("key_columns", "must name at least one column")
    return release_table(
        Noise(mechanism), arrow, Roles(keys, count_column, mechanism.column_names), operating_system
    ).read_all()


def _refuse_given(**arguments: object) -> None:
    for name, value in arguments.items():
        if value is not None:
            raise InvalidGroups(
                name, "must be omitted: give a table with key_columns and count_column, or keys and counts"
            )


def _keys(keys: Any) -> Sequence[Any]:
    """Group keys as lists of Python's own strings and numbers."""
    if isinstance(keys, np.ndarray):
        # Numpy turns dates into plain integers, and the key would lose its meaning.
        if keys.ndim == 0 or keys.dtype.kind not in _KEY_KINDS:
            raise InvalidGroups("keys", "must be an array of strings or numbers; an Arrow table takes other types")
        keys = keys.tolist()
    for to_list in ("to_pylist", "to_list"):  # of Arrow, pandas and polars
        keys = getattr(keys, to_list, lambda keys=keys: keys)()
    if isinstance(keys, str | bytes) or not isinstance(keys, Sequence):
        raise InvalidGroups("keys", "must be a list or an array")
    if set(map(type, keys)) <= {str, int, float}:
        return keys
    return [[_scalar(part) for part in key] if isinstance(key, tuple | list) else _scalar(key) for key in keys]


def _scalar(value: Any) -> Any:
    return value.item() if isinstance(value, np.str_ | np.integer | np.floating) else value


def _answered(key: Any) -> GroupKey:
    """A group key with several parts is a tuple, which can be the key of a dictionary."""
    answer = written(key)
    return tuple(answer) if isinstance(answer, list) else answer


def _columns(values: Mapping[str, Any] | None) -> dict[str, pa.Array]:
    if not isinstance(values, Mapping | None):
        raise InvalidGroups("values", f"must map each name to a column, and {type(values).__name__} does not")
    return {name: _column(column, f"values/{name}") for name, column in (values or {}).items()}


def _column(numbers: Any, pointer: str) -> pa.Array:
    try:
        if hasattr(numbers, "__arrow_c_stream__"):
            return pa.chunked_array(numbers).combine_chunks()
        column = pa.array(numbers)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise InvalidGroups(pointer, "must be a list or an array of numbers") from None
    # A list without items has no type.
    return column.cast(pa.int64()) if pa.types.is_null(column.type) and not len(column) else column
