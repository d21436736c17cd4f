"""``client.release``: a table or lists of groups to the service, and the private ones back.

It has the spelling of ``gsh.release``, and then its results; and a shorter one for tables, which gives a ``Release``.
"""

from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Protocol, Unpack, overload

import pyarrow as pa

from gsh.accounting.mechanism import Mechanism
from gsh.arguments import texts
from gsh.client.answers import Release, ReleasedGroups, groups_of, release_of
from gsh.client.calls import MOST_BYTES, MOST_TABLE_BYTES, Answer, Call, Operation
from gsh.client.decoding import decoded
from gsh.client.documents import parsed
from gsh.client.encoding import mechanism_json, one_mechanism
from gsh.client.json_calls import ask, json_call, once_headers
from gsh.client.operations import Bound
from gsh.client.options import PaidOptions, stated
from gsh.client.problems import Renames
from gsh.client.records import DryRun
from gsh.client.uploads import TableSource, form
from gsh.errors import InvalidGroups, InvalidParameter, renamed
from gsh.histogram.csv_format import CsvType
from gsh.histogram.file_formats import ARROW, JSON
from gsh.histogram.tables import Roles
from gsh.library.groups import group_keys, number_column, number_columns
from gsh.library.targets import Calibration

__all__ = ["AsyncReleaseCall", "ReleaseCall", "dry_run", "release"]

_GROUPS: Renames = (("/groups", ""),)
_TABLE: Renames = (("/key_columns", "keys"), ("/count_column", "users"), ("/table", "table"))
_BOTH = "must be omitted: give a table with key_columns and count_column, or keys and counts"


class ReleaseCall(Protocol):
    """The calls of ``Client.release``."""

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
    ) -> Release: ...
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
    ) -> pa.Table: ...
    @overload
    def __call__(
        self,
        mechanism: Mechanism | Calibration,
        *,
        keys: Sequence[Any] | Any,
        counts: Sequence[int] | Any,
        values: Mapping[str, Any] | None = None,
        **options: Unpack[PaidOptions],
    ) -> ReleasedGroups: ...


class AsyncReleaseCall(Protocol):
    """The calls of ``AsyncClient.release``."""

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
    ) -> Coroutine[Any, Any, Release]: ...
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
    ) -> Coroutine[Any, Any, pa.Table]: ...
    @overload
    def __call__(
        self,
        mechanism: Mechanism | Calibration,
        *,
        keys: Sequence[Any] | Any,
        counts: Sequence[int] | Any,
        values: Mapping[str, Any] | None = None,
        **options: Unpack[PaidOptions],
    ) -> Coroutine[Any, Any, ReleasedGroups]: ...


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
        _refuse(key_columns=key_columns, count_column=count_column, users=users)
        return (yield from _release_groups(self, mechanism, keys, counts, values, options))
    _refuse(counts=counts, values=values)
    is_short = key_columns is None and count_column is None
    names = (keys, users) if is_short else (key_columns, count_column)
    roles = _roles(mechanism, *names, is_short=is_short)
    renames = _TABLE if is_short else ()
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
    roles = _roles(mechanism, keys, users, is_short=True)
    with renamed(*_TABLE):
        call = _table_call(table, mechanism, roles, csv_types, options, is_repeated=True, is_dry=True)
    answer = yield from ask(self, call, _TABLE)
    return decoded(answer, lambda document: parsed(DryRun, document))


def _release_groups(
    self: Bound[Any], mechanism: Any, keys: Any, counts: Any, values: Any, options: PaidOptions
) -> Operation[ReleasedGroups]:
    one_mechanism(mechanism)
    if keys is None and counts is None:
        raise InvalidGroups("keys", "must be given with counts, or else a table with key_columns and count_column")
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


def _roles(mechanism: Mechanism | Calibration, keys: Any, users: Any, *, is_short: bool) -> Roles:
    """The roles of the columns. ``is_short``: the names of the parameters are ``keys`` and ``users``."""
    aggregates = one_mechanism(mechanism).aggregates
    named = ("keys", "users") if is_short else ("key_columns", "count_column")
    if not isinstance(users, str):
        raise InvalidGroups(named[1], "must be the name of a column")
    try:
        columns = texts(named[0], [keys] if isinstance(keys, str) else keys)
    except InvalidParameter as error:
        raise InvalidGroups(error.pointer, error.detail) from None
    if not columns:
        raise InvalidGroups(named[0], "must name at least one column")
    return Roles(columns, users, () if aggregates is None else aggregates.names)


def _refuse(**arguments: object) -> None:
    for name, value in arguments.items():
        if value is not None:
            raise InvalidGroups(name, _BOTH)
