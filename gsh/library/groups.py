"""The mechanism applied to lists, arrays and Arrow tables. All noise comes from the operating system's entropy.

Nothing in a result depends on a dropped group: neither the order, nor the types, nor the memory behind an array.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType, NoneType
from typing import Any, Protocol, TypeAlias, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gsh.accounting.mechanism import AnyMechanism, checked_mechanism
from gsh.arguments import Real, texts
from gsh.errors import InvalidGroups, InvalidParameter, TooManyGroups
from gsh.histogram.entropy import operating_system
from gsh.histogram.groups import check_groups
from gsh.histogram.keys.json_keys import normalised
from gsh.histogram.noise import Noise
from gsh.histogram.public_keys import PublicKeys
from gsh.histogram.roles import Roles
from gsh.histogram.tables import release_table
from gsh.library.measures import COUNT
from gsh.library.rounding import rounded_to

__all__ = [
    "ArrowTable",
    "GroupKey",
    "Groups",
    "Numbers",
    "answered_key",
    "check_lists",
    "group_keys",
    "number_column",
    "number_columns",
    "refuse_given",
    "release",
    "roles_of",
    "unnamed_index",
]

GroupKey: TypeAlias = str | float | tuple[str | float | None, ...] | None
Numbers: TypeAlias = NDArray[np.float64] | NDArray[np.int64]

_MOST_GROUPS = 2**31 - 1
"""Positions of groups are 32-bit integers."""
_KEY_KINDS = "OTUfiu"
_UNNAMED_INDEX = re.compile(r"__index_level_\d+__")
_PREVIEW = 5


class ArrowTable(Protocol):
    """A table of pyarrow, polars, pandas or DuckDB: anything with the Arrow stream interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Groups:
    """The groups that were kept, sorted by group key, with their noisy numbers. Nothing in it can be changed.

    Numbers are integers if the noise is on a grid of 1, else doubles. The rows are (group key, count, values …).
    """

    keys: tuple[GroupKey, ...]
    counts: Numbers
    values: Mapping[str, Numbers]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", MappingProxyType(dict(self.values)))
        for column in (self.counts, *self.values.values()):
            column.setflags(write=False)

    def __reduce__(self) -> tuple[type["Groups"], tuple[object, ...]]:
        """Copies are made by the constructor: a pickled array would not be read-only."""
        return Groups, (self.keys, self.counts, dict(self.values))

    def __len__(self) -> int:
        return len(self.keys)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self._rows(len(self))

    def _rows(self, most: int) -> Iterator[tuple[Any, ...]]:
        columns = (column[:most].tolist() for column in (self.counts, *self.values.values()))
        return zip(self.keys[:most], *columns, strict=True)

    def __repr__(self) -> str:
        """The first rows, to read."""
        names = ("group key", "count", *self.values)
        rows = [(repr(key), *(f"{number:.8g}" for number in numbers)) for key, *numbers in self._rows(_PREVIEW)]
        widths = [max(14, *map(len, column)) + 2 for column in zip(names, *rows, strict=True)]
        lines = ["".join(map(str.rjust, row, widths)) for row in (names, *rows)]
        if len(self) > _PREVIEW:
            lines.append(f"… {len(self)} groups")
        return "\n".join(lines)


@overload
def release(
    mechanism: AnyMechanism,
    *,
    keys: Sequence[Any] | NDArray[Any],
    counts: Sequence[int] | NDArray[np.integer[Any]],
    values: Mapping[str, Sequence[float] | NDArray[Any]] | None = None,
    public_keys: Sequence[Any] | NDArray[Any] | None = None,
    round: bool = False,
    units: Mapping[str, Real] | None = None,
) -> Groups: ...
@overload
def release(
    mechanism: AnyMechanism,
    table: ArrowTable,
    *,
    key_columns: Sequence[str],
    count_column: str = COUNT,
    public_keys: Sequence[Any] | NDArray[Any] | ArrowTable | None = None,
    round: bool = False,
    units: Mapping[str, Real] | None = None,
) -> pa.Table: ...
def release(
    mechanism: AnyMechanism,
    table: ArrowTable | None = None,
    *,
    keys: Any = None,
    counts: Any = None,
    values: Mapping[str, Any] | None = None,
    key_columns: Sequence[str] | None = None,
    count_column: str | None = None,
    public_keys: Any = None,
    round: bool = False,  # noqa: A002 - the word for it
    units: Mapping[str, Real] | None = None,
) -> Any:
    """The groups that the mechanism keeps, with noise, sorted by group key.  [KKWZ Algorithm 1; docs/math/noise.md]

        drop groups with C < τ,   publish C + N(0, σ²) and A + N(0, Σ),   drop groups with C + N(0, σ²) < τ*

    Give lists or arrays (``keys``, ``counts``, and ``values`` for further columns) and get ``Groups``. Or give a table
    with its ``key_columns`` and ``count_column`` (``count`` unless given) and get an Arrow table. Its other columns are
    the aggregates.

    A ``gsh.PlainGaussian`` has no thresholds: its groups are public. ``public_keys`` lists them, from public knowledge
    and not from the data. All of them are published; a group that is not given counts 0. ``public_keys="posted"`` says
    that the given groups are this list.

    ``round=True`` rounds the noisy counts to integers, and other columns to integers or to their ``units``, such as
    ``{"price": 0.01}``. Then give ``is_rounded=True`` and the units to ``gsh.intervals``.

    Every call draws new noise and costs privacy again.

    >>> import gsh
    >>> mechanism = gsh.Mechanism(c_u=3, tau=1, tau_star=120, sigma=20)
    >>> private = gsh.release(mechanism, keys=["sport", "news", "weather"], counts=[2, 81200, 44000])
    >>> private.keys
    ('news', 'weather')
    >>> bool(abs(private.counts[0] - 81200) < 300)
    True
    """
    checked_mechanism("mechanism", mechanism)
    rounded = rounded_to(mechanism, round, units, "round")
    if table is None:
        refuse_given(key_columns=key_columns, count_column=count_column)
        check_lists(keys, counts)
        columns = number_column(counts, "counts"), number_columns(values)
        noise = Noise(mechanism, rounded)
        return _release_columns(mechanism, noise, group_keys(keys), *columns, _listed_keys(public_keys))
    refuse_given(keys=keys, counts=counts, values=values)
    is_table = hasattr(public_keys, "__arrow_c_stream__") and not hasattr(public_keys, "to_list")
    public = arrow_of(public_keys, "public_keys") if is_table else _listed_keys(public_keys)
    return _release_arrow(mechanism, Noise(mechanism, rounded), table, key_columns, count_column, public)


def _listed_keys(public: Any) -> PublicKeys | None:
    return public if public is None or isinstance(public, str) else group_keys(public, "public_keys")


def _release_columns(
    mechanism: AnyMechanism,
    noise: Noise,
    keys: Sequence[Any],
    counts: pa.Array,
    values: Mapping[str, pa.Array],
    public: PublicKeys | None,
) -> Groups:
    if len(keys) > _MOST_GROUPS:
        raise TooManyGroups("keys", "must have fewer than 2^31 groups")
    names = mechanism.column_names
    checked = check_groups(noise, names, keys, counts, values, public=public)
    released = checked.release(operating_system)
    return Groups(
        keys=tuple(answered_key(checked.keys[row]) for row in released.rows),
        # Copies: the core's arrays are views of memory with a place for every group, dropped ones included.
        counts=released.counts.copy(),
        values={name: column.copy() for name, column in zip(names, released.values, strict=True)},
    )


def _release_arrow(
    mechanism: AnyMechanism,
    noise: Noise,
    table: ArrowTable,
    key_columns: Sequence[str] | None,
    count_column: str | None,
    public: PublicKeys | pa.Table | None,
) -> pa.Table:
    arrow = arrow_of(table, "table")
    if len(arrow) > _MOST_GROUPS:
        raise TooManyGroups("table", "must have fewer than 2^31 groups")
    roles = roles_of(mechanism, key_columns, count_column)
    return release_table(noise, arrow, roles, operating_system, public).read_all()


def arrow_of(table: ArrowTable, pointer: str) -> pa.Table:
    """Whatever has the Arrow stream interface as a table, without the row numbers of pandas."""
    if not hasattr(table, "__arrow_c_stream__"):
        raise InvalidGroups(pointer, f"must have the Arrow stream interface: {type(table).__name__} does not have it")
    try:
        arrow = pa.table(table)
        return arrow.drop_columns(unnamed_index(arrow.schema))
    except pa.ArrowException:
        raise InvalidGroups(pointer, "must have columns of types that pyarrow knows") from None


def roles_of(
    mechanism: AnyMechanism, keys: object, count: object, parameters: tuple[str, str] = ("key_columns", "count_column")
) -> Roles:
    """The roles of the columns of a table. ``parameters`` are the names of the arguments ``keys`` and ``count``.

    The count has one name, unless another is given.
    """
    for_keys, for_count = parameters
    count = COUNT if count is None else count
    if not isinstance(count, str):
        raise InvalidGroups(for_count, "must be the name of a column")
    if keys is None:
        raise InvalidGroups(for_keys, "must be given: the names of the key columns")
    try:
        names = texts(for_keys, keys)
    except InvalidParameter as error:
        raise InvalidGroups(error.pointer, error.detail) from None
    if not names:
        raise InvalidGroups(for_keys, "must name at least one column")
    return Roles(names, count, mechanism.column_names)


def unnamed_index(schema: pa.Schema) -> list[str]:
    """A filtered data frame of pandas brings its row numbers as a column. They are not part of the data."""
    index = (schema.pandas_metadata or {}).get("index_columns", [])
    unnamed = [name for name in index if isinstance(name, str) and _UNNAMED_INDEX.fullmatch(name)]
    # The metadata outlives a selection of columns.
    return [name for name in unnamed if schema.get_field_index(name) >= 0]


def refuse_given(**arguments: object) -> None:
    """Refuse arguments of the other way to give groups."""
    for name, value in arguments.items():
        if value is not None:
            detail = "must be omitted: give a table with key_columns and count_column, or keys and counts"
            raise InvalidGroups(name, detail)


def check_lists(keys: object, counts: object) -> None:
    """Refuse a call without any groups."""
    if keys is None and counts is None:
        raise InvalidGroups("keys", "must be given with counts, or else a table with key_columns and count_column")


def group_keys(keys: Any, pointer: str = "keys") -> Sequence[Any]:
    """Group keys as lists of Python's own strings, numbers and None."""
    if isinstance(keys, np.ndarray):
        # Numpy turns dates into plain integers, and the key would lose its meaning.
        if keys.ndim == 0 or keys.dtype.kind not in _KEY_KINDS:
            raise InvalidGroups(pointer, "must be an array of strings or numbers; an Arrow table takes other types")
        keys = keys.tolist()
    for to_list in ("to_pylist", "to_list"):  # of Arrow, pandas and polars
        keys = getattr(keys, to_list, lambda keys=keys: keys)()
    if isinstance(keys, str | bytes | bytearray | memoryview) or not isinstance(keys, Sequence):
        raise InvalidGroups(pointer, "must be a list or an array")
    if set(map(type, keys)) <= {str, int, float, NoneType}:
        return keys
    return [[_scalar(part) for part in key] if isinstance(key, tuple | list) else _scalar(key) for key in keys]


def _scalar(value: Any) -> Any:
    return value.item() if isinstance(value, np.str_ | np.integer | np.floating) else value


def answered_key(key: Any) -> GroupKey:
    """A group key with several parts is a tuple, which can be the key of a dictionary."""
    answer = normalised(key)
    return tuple(answer) if isinstance(answer, list) else answer


def number_columns(values: Mapping[str, Any] | None) -> dict[str, pa.Array]:
    if not isinstance(values, Mapping | None):
        raise InvalidGroups("values", f"must map each name to a column, and {type(values).__name__} does not")
    return {name: number_column(column, f"values/{name}") for name, column in (values or {}).items()}


def number_column(numbers: Any, pointer: str) -> pa.Array:
    try:
        if hasattr(numbers, "__arrow_c_stream__"):
            return pa.chunked_array(numbers).combine_chunks()
        column = pa.array(numbers)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise InvalidGroups(pointer, "must be a list or an array of numbers") from None
    # A list without items has no type.
    return column.cast(pa.int64()) if pa.types.is_null(column.type) and not len(column) else column
