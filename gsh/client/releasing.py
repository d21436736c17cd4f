"""``client.release``: sends a table or lists of groups to the service, and returns the private ones.

A call as of ``gsh.release`` gives the same results. A shorter call for tables gives a ``Release``.
"""

from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar, Unpack, overload

import pyarrow as pa

from gsh.accounting.mechanism import Mechanism
from gsh.client.answers import Release, ReleasedGroups, groups_of, release_of
from gsh.client.decoding import Renames, decoded
from gsh.client.encoding import PaidOptions, mechanism_json, one_mechanism, stated
from gsh.client.operations import MOST_BYTES, MOST_TABLE_BYTES, Answer, Bound, Call, Operation
from gsh.client.records import DryRun
from gsh.client.requests import ask, json_call, once_headers
from gsh.client.uploads import TableSource, form
from gsh.documents import parsed
from gsh.errors import renamed
from gsh.histogram.csv_format import CsvType
from gsh.histogram.file_formats import ARROW, JSON
from gsh.histogram.tables import Roles
from gsh.library.groups import check_lists, group_keys, number_column, number_columns, refuse_given, roles_of
from gsh.library.targets import Calibration

__all__ = ["AsyncReleaseCall", "BlockingReleaseCall", "dry_run", "release"]

R_co = TypeVar("R_co", covariant=True)
T_co = TypeVar("T_co", covariant=True)
G_co = TypeVar("G_co", covariant=True)

_GROUPS: Renames = (("/groups", ""),)
_TABLE: Renames = (("/key_columns", "keys"), ("/count_column", "users"), ("/table", "table"))


class ReleaseCall(Protocol[R_co, T_co, G_co]):
    """The calls of ``release``, and the three kinds of result that they have."""

    @overload
    def __call__(
        self,
        table: TableSource,
        mechanism: Mechanism | Calibration,
        /,
        *,
        users: str,
        keys: Sequence[str],
        csv_types: Mapping[str, CsvType] | None = None,
        **options: Unpack[PaidOptions],
    ) -> R_co: ...
    @overload
    def __call__(
        self,
        mechanism: Mechanism | Calibration,
        table: TableSource,
        *,
        key_columns: Sequence[str],
        count_column: str,
        csv_types: Mapping[str, CsvType] | None = None,
        **options: Unpack[PaidOptions],
    ) -> T_co: ...
    @overload
    def __call__(
        self,
        mechanism: Mechanism | Calibration,
        *,
        keys: Sequence[Any] | Any,
        counts: Sequence[int] | Any,
        values: Mapping[str, Any] | None = None,
        **options: Unpack[PaidOptions],
    ) -> G_co: ...


BlockingReleaseCall: TypeAlias = ReleaseCall[Release, pa.Table, ReleasedGroups]
AsyncReleaseCall: TypeAlias = ReleaseCall[
    Coroutine[Any, Any, Release], Coroutine[Any, Any, pa.Table], Coroutine[Any, Any, ReleasedGroups]
]


def release(
    self: Bound[Any],
    *given: Any,
    mechanism: Any = None,
    table: Any = None,
    users: str | None = None,
    keys: Any = None,
    counts: Any = None,
    values: Any = None,
    key_columns: Sequence[str] | None = None,
    count_column: str | None = None,
    csv_types: Mapping[str, CsvType] | None = None,
    **options: Unpack[PaidOptions],
) -> Operation[Any]:
    """The groups that the mechanism keeps, with noise, sorted by group key.  [KKWZ Algorithm 1; docs/client.md]

        release(table, mechanism, users="users", keys=["url", "country"])           a Release
        release(mechanism, table, key_columns=["url"], count_column="users")        an Arrow table, as gsh.release
        release(mechanism, keys=["a.org", "b.org"], counts=[61004, 3])              groups, as gsh.release

    ``budget=`` and ``once=`` charge it to a budget, exactly once: a call with the same ``once=`` and content gets the
    same release again. Without ``once=`` every call draws new noise, and a call that fails is never sent again.
    """
    for each in given:
        if mechanism is None and isinstance(each, Mechanism | Calibration):
            mechanism = each
        elif table is None:
            table = each
        else:
            raise TypeError("release takes a mechanism and a table")
    if table is None:
        refuse_given(key_columns=key_columns, count_column=count_column, users=users)
        return (yield from _release_groups(self, mechanism, keys, counts, values, options))
    refuse_given(counts=counts, values=values)
    is_short = key_columns is None and count_column is None
    if is_short:
        roles, renames = _short_roles(mechanism, keys, users), _TABLE
    else:
        roles, renames = roles_of(one_mechanism(mechanism), key_columns, count_column), ()
    with renamed(*renames):
        call = _table_call(table, mechanism, roles, csv_types, options, _is_repeated(self, options))
    answer: Answer = yield from ask(self, call, renames)
    released = release_of(answer, roles)
    return released if is_short else released.table


def dry_run(
    self: Bound[Any],
    table: TableSource,
    mechanism: Mechanism | Calibration,
    *,
    users: str,
    keys: Sequence[str],
    csv_types: Mapping[str, CsvType] | None = None,
    **options: Unpack[PaidOptions],
) -> Operation[DryRun]:
    """All checks of a release: whether the table is in order, the budget would pay, and the name ``once`` is free.

    Nothing is drawn or charged.
    """
    roles = _short_roles(mechanism, keys, users)
    with renamed(*_TABLE):
        call = _table_call(table, mechanism, roles, csv_types, options, is_repeated=True, is_dry=True)
    answer = yield from ask(self, call, _TABLE)
    return decoded(answer, lambda document: parsed(DryRun, document))


def _release_groups(
    self: Bound[Any], mechanism: Any, keys: Any, counts: Any, values: Any, options: PaidOptions
) -> Operation[ReleasedGroups]:
    one_mechanism(mechanism)
    check_lists(keys, counts)
    groups = {
        "keys": [list(key) if isinstance(key, tuple) else key for key in group_keys(keys)],
        "counts": number_column(counts, "counts").to_pylist(),
        "values": {name: column.to_pylist() for name, column in number_columns(values).items()},
    }
    body = {"mechanism": mechanism_json(mechanism), "groups": groups} | stated(mechanism, options)
    once = options.get("once")
    answer = yield from ask(self, json_call("POST", "/release", body, once=once), _GROUPS)
    return decoded(answer, lambda document: groups_of(document, answer.is_replayed, answer.released_at))


def _table_call(
    table: TableSource,
    mechanism: Mechanism | Calibration,
    roles: Roles,
    csv_types: Mapping[str, CsvType] | None,
    options: PaidOptions,
    is_repeated: bool,
    is_dry: bool = False,
) -> Call:
    request = {
        "mechanism": mechanism_json(mechanism),
        "key_columns": list(roles.keys),
        "count_column": roles.count,
        **stated(mechanism, options),
        **({"dry_run": True} if is_dry else {}),
    }
    once = options.get("once")
    return Call(
        "POST",
        "/release/table",
        is_safe=is_dry or once is not None,
        headers={"Accept": JSON if is_dry else ARROW} | once_headers(once),
        body=form(request, table, roles, csv_types, is_repeated=is_repeated),
        most_bytes=MOST_BYTES if is_dry else MOST_TABLE_BYTES,
    )


def _is_repeated(bound: Bound[Any], options: PaidOptions) -> bool:
    """Whether the client would send the release again."""
    return options.get("once") is not None and bound._driver.retries.most > 0


def _short_roles(mechanism: Mechanism | Calibration, keys: Any, users: Any) -> Roles:
    """The roles of the columns that ``keys`` and ``users`` name. One key column need not be in a list."""
    return roles_of(one_mechanism(mechanism), [keys] if isinstance(keys, str) else keys, users, ("keys", "users"))
