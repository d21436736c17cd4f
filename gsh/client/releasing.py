"""``client.release``: sends tables or lists of groups to the service, and returns the private ones.

A call as of ``gsh.release`` gives the same results. A shorter call, for one table or several, gives a ``Release``.
"""

from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar, Unpack, overload

import pyarrow as pa

from gsh.accounting.mechanism import AnyMechanism
from gsh.arguments import Real
from gsh.client.answers import Release, ReleasedGroups, groups_of, release_of, tables_of
from gsh.client.asked import Asked, certified
from gsh.client.decoding import Renames, decoded
from gsh.client.encoding import MechanismLike, PaidOptions, any_mechanism, mechanism_json, stated
from gsh.client.operations import MOST_BYTES, MOST_TABLE_BYTES, Bound, Call, Operation
from gsh.client.records import DryRun
from gsh.client.requests import ask, json_call, once_headers
from gsh.client.uploads import SentTable, TableSource, form
from gsh.documents import parsed
from gsh.errors import InvalidParameter, pointer_part, renamed
from gsh.histogram.csv_format import CsvType
from gsh.histogram.file_formats import ARROW, JSON, ZIP
from gsh.histogram.public_keys import PublicKeys
from gsh.histogram.roles import Roles
from gsh.library.groups import check_lists, group_keys, number_column, number_columns, refuse_given, roles_of
from gsh.library.measures import COUNT
from gsh.library.rounding import rounded_to
from gsh.library.tables import TablesCalibration
from gsh.library.targets import Calibration
from gsh.wire import Json, check_table_name

__all__ = ["AsyncReleaseCall", "BlockingReleaseCall", "dry_run", "release"]

R_co = TypeVar("R_co", covariant=True)
T_co = TypeVar("T_co", covariant=True)
G_co = TypeVar("G_co", covariant=True)

MechanismsLike: TypeAlias = Mapping[str, MechanismLike] | TablesCalibration
"""The mechanism of each table by its name, or a calibration of several tables."""

_MECHANISMS = (AnyMechanism, Calibration)
_GROUPS: Renames = (("/groups", ""), ("/public_keys", "public_keys"), ("/units", "units"))
_TABLE: Renames = (
    ("/key_columns", "keys"),
    ("/count_column", "users"),
    ("/table", "table"),
    ("/public_keys", "public_keys"),
    ("/units", "units"),
)


class ReleaseCall(Protocol[R_co, T_co, G_co]):
    """The calls of ``release``, and the three kinds of result that they have."""

    @overload
    def __call__(
        self,
        table: TableSource,
        mechanism: MechanismLike,
        /,
        *,
        count: str = ...,
        users: str = ...,
        keys: Sequence[str],
        csv_types: Mapping[str, CsvType] | None = None,
        public_keys: PublicKeys | Any | None = None,
        round: bool = False,
        units: Mapping[str, Real] | None = None,
        **options: Unpack[PaidOptions],
    ) -> R_co: ...
    @overload
    def __call__(
        self,
        tables: Mapping[str, TableSource],
        mechanisms: MechanismsLike,
        /,
        *,
        count: str | Mapping[str, str] = ...,
        users: str | Mapping[str, str] = ...,
        keys: Mapping[str, Sequence[str]],
        csv_types: Mapping[str, Mapping[str, CsvType]] | None = None,
        public_keys: Mapping[str, PublicKeys | Any] | None = None,
        round: bool | Mapping[str, bool] = False,
        units: Mapping[str, Mapping[str, Real]] | None = None,
        **options: Unpack[PaidOptions],
    ) -> R_co: ...
    @overload
    def __call__(
        self,
        mechanism: MechanismLike,
        table: TableSource,
        *,
        key_columns: Sequence[str],
        count_column: str,
        csv_types: Mapping[str, CsvType] | None = None,
        public_keys: PublicKeys | Any | None = None,
        round: bool = False,
        units: Mapping[str, Real] | None = None,
        **options: Unpack[PaidOptions],
    ) -> T_co: ...
    @overload
    def __call__(
        self,
        mechanism: MechanismLike,
        *,
        keys: Sequence[Any] | Any,
        counts: Sequence[int] | Any,
        values: Mapping[str, Any] | None = None,
        public_keys: PublicKeys | Any | None = None,
        round: bool = False,
        units: Mapping[str, Real] | None = None,
        **options: Unpack[PaidOptions],
    ) -> G_co: ...


BlockingReleaseCall: TypeAlias = ReleaseCall[Release, pa.Table, ReleasedGroups]
AsyncReleaseCall: TypeAlias = ReleaseCall[
    Coroutine[Any, Any, Release],
    Coroutine[Any, Any, pa.Table],
    Coroutine[Any, Any, ReleasedGroups],
]


def release(
    self: Bound[Any],
    *given: Any,
    mechanism: Any = None,
    table: Any = None,
    count: Any = None,
    users: Any = None,
    keys: Any = None,
    counts: Any = None,
    values: Any = None,
    key_columns: Sequence[str] | None = None,
    count_column: str | None = None,
    csv_types: Any = None,
    public_keys: Any = None,
    round: Any = False,  # noqa: A002 - the word for it
    units: Any = None,
    **options: Unpack[PaidOptions],
) -> Operation[Any]:
    """The groups that the mechanism keeps, with noise, sorted by group key.  [KKWZ Algorithm 1; docs/client.md]

        release(table, mechanism, keys=["url", "country"])                          a Release
        release({"by_url": table, …}, {"by_url": mechanism, …},
                keys={"by_url": ["url"], …})                                        a Release of both
        release(mechanism, table, key_columns=["url"], count_column="users")        an Arrow table, as gsh.release
        release(mechanism, keys=["a.org", "b.org"], counts=[61004, 3])              groups, as gsh.release

    The column with the numbers of users is ``count``, unless ``count=`` (or ``users=``) names another one.

    A ``gsh.PlainGaussian`` is for public groups: ``public_keys`` lists all of them, or is the word "posted" if the
    given groups are this list. ``round=True`` rounds counts to integers, and other columns to integers or to their
    ``units``. Several tables are one release: fixed together, charged once, with one certificate.

    ``budget=`` and ``once=`` charge it to a budget, exactly once: a call with the same ``once=`` and content gets the
    same release again. Without ``once=`` every call draws new noise, and a call that fails is never sent again.
    """
    for each in given:
        if mechanism is None and _is_mechanism(each):
            mechanism = each
        elif table is None:
            table = each
        else:
            raise TypeError("release takes a mechanism and a table")
    if table is None:
        refuse_given(key_columns=key_columns, count_column=count_column, count=count, users=users)
        rounding = _rounding(any_mechanism(mechanism), round, units)
        return (yield from _release_groups(self, mechanism, keys, counts, values, public_keys, rounding, options))
    refuse_given(counts=counts, values=values)
    is_repeated = _is_repeated(self, options)
    if isinstance(table, Mapping):
        refuse_given(key_columns=key_columns, count_column=count_column)
        columns = _counted(count, users)
        sent = _named_tables(table, mechanism, columns, keys, csv_types, public_keys, round, units)
        call = _call(sent, mechanism, options, is_repeated=is_repeated)
        answer = yield from ask(self, call, _renames(sent))
        return tables_of(answer, _asked(sent, mechanism, options))
    is_short = key_columns is None and count_column is None
    if is_short:
        roles, renames = _short_roles(mechanism, keys, _counted(count, users)), _TABLE
    else:
        roles, renames = roles_of(any_mechanism(mechanism), key_columns, count_column), ()
    with renamed(*renames):
        own = any_mechanism(mechanism)
        one = _Sent(table, own, roles, csv_types, _listed(public_keys), _rounding(own, round, units))
        call = _call({"": one}, mechanism, options, is_repeated=is_repeated)
    answer = yield from ask(self, call, renames)
    released = release_of(answer, _asked({"": one}, mechanism, options))
    return released if is_short else released.table


def dry_run(
    self: Bound[Any],
    table: TableSource | Mapping[str, TableSource],
    mechanism: MechanismLike | MechanismsLike,
    *,
    count: str | Mapping[str, str] | None = None,
    users: str | Mapping[str, str] | None = None,
    keys: Sequence[str] | Mapping[str, Sequence[str]],
    csv_types: Any = None,
    public_keys: Any = None,
    round: Any = False,  # noqa: A002 - the word for it
    units: Any = None,
    **options: Unpack[PaidOptions],
) -> Operation[DryRun]:
    """All checks of a release: whether the tables are in order, the budget would pay, and the name ``once`` is free.

    Nothing is drawn or charged.
    """
    columns = _counted(count, users)
    if isinstance(table, Mapping):
        sent = _named_tables(table, mechanism, columns, keys, csv_types, public_keys, round, units)
        renames: Renames = _renames(sent)
    else:
        one = any_mechanism(mechanism)  # type: ignore[arg-type]
        roles, rounding = _short_roles(one, keys, columns), _rounding(one, round, units)
        sent = {"": _Sent(table, one, roles, csv_types, _listed(public_keys), rounding)}
        renames = _TABLE
    with renamed(*renames):
        call = _call(sent, mechanism, options, is_repeated=True, is_dry=True)
    answer = yield from ask(self, call, renames)
    asked = _asked(sent, mechanism, options)

    def read(document: Json) -> DryRun:
        certified(document["certificate"], asked)
        return parsed(DryRun, document)

    return decoded(answer, read)


def _counted(count: Any, users: Any) -> Any:
    """The column with the numbers of users: both arguments mean the same."""
    if count is not None and users is not None:
        raise InvalidParameter("users", "must be omitted with count: they mean the same")
    return COUNT if count is None and users is None else users if count is None else count


def _is_mechanism(given: object) -> bool:
    if isinstance(given, Mapping):
        return bool(given) and all(isinstance(each, _MECHANISMS) for each in given.values())
    return isinstance(given, (*_MECHANISMS, TablesCalibration))


def _release_groups(
    self: Bound[Any],
    mechanism: Any,
    keys: Any,
    counts: Any,
    values: Any,
    public_keys: Any,
    rounding: Json,
    options: PaidOptions,
) -> Operation[ReleasedGroups]:
    one = any_mechanism(mechanism)
    check_lists(keys, counts)
    groups = {
        "keys": _as_lists(group_keys(keys)),
        "counts": number_column(counts, "counts").to_pylist(),
        "values": {name: column.to_pylist() for name, column in number_columns(values).items()},
    }
    body = {"mechanism": mechanism_json(mechanism), "groups": groups, **_public(_listed(public_keys))}
    body |= stated(mechanism, options) | rounding
    once = options.get("once")
    answer = yield from ask(self, json_call("POST", "/release", body, once=once), _GROUPS)
    asked = Asked.of({"": one}, body, once)
    return decoded(answer, lambda document: groups_of(document, asked, answer))


class _Sent(NamedTuple):
    """A table of a release, and what the request says about it."""

    table: TableSource
    mechanism: AnyMechanism
    roles: Roles
    csv_types: Mapping[str, CsvType] | None
    public_keys: PublicKeys | None
    rounding: Json

    @property
    def fields(self) -> dict[str, Any]:
        return {
            "mechanism": mechanism_json(self.mechanism),
            "key_columns": list(self.roles.keys),
            "count_column": self.roles.count,
            **_public(self.public_keys),
            **self.rounding,
        }


def _call(
    tables: Mapping[str, _Sent], mechanism: Any, options: PaidOptions, *, is_repeated: bool, is_dry: bool = False
) -> Call:
    """The call of a release. The only table without a name has the empty one."""
    parts = [
        SentTable(each.table, each.roles, each.csv_types, name or "table", _places(name))
        for name, each in tables.items()
    ]
    if "" in tables:
        request = tables[""].fields
    else:
        request = {"tables": [{"name": name, **each.fields} for name, each in tables.items()]}
    request |= stated(mechanism, options) | ({"dry_run": True} if is_dry else {})
    once = options.get("once")
    accept = ARROW if "" in tables else ZIP
    return Call(
        "POST",
        "/release/table",
        is_safe=is_dry or once is not None,
        headers={"Accept": JSON if is_dry else accept} | once_headers(once),
        body=form(request, parts, is_repeated=is_repeated),
        most_bytes=MOST_BYTES if is_dry else MOST_TABLE_BYTES,
    )


def _asked(tables: Mapping[str, _Sent], mechanism: Any, options: PaidOptions) -> Asked:
    """What the call asks for, to compare its answer with."""
    mechanisms = {name: each.mechanism for name, each in tables.items()}
    roles = {name: each.roles for name, each in tables.items()}
    return Asked.of(mechanisms, stated(mechanism, options), options.get("once"), roles)


def _named_tables(
    tables: Mapping[str, Any],
    mechanisms: Any,
    users: Any,
    keys: Any,
    csv_types: Any,
    public_keys: Any,
    are_rounded: Any,
    units: Any,
) -> dict[str, _Sent]:
    """Several tables, and what the request says about each."""
    chosen = mechanisms.tables if isinstance(mechanisms, TablesCalibration) else mechanisms
    if not isinstance(chosen, Mapping) or chosen.keys() != tables.keys() or not tables:
        raise InvalidParameter("mechanism", "must have a mechanism for each table, by its name, and no others")
    columns = dict.fromkeys(tables, users) if isinstance(users, str) else users
    rounds = are_rounded if isinstance(are_rounded, Mapping) else dict.fromkeys(tables, are_rounded)
    for parameter, given, needed in (
        ("users", columns, True),
        ("keys", keys, True),
        ("csv_types", csv_types, False),
        ("public_keys", public_keys, False),
        ("round", rounds, False),
        ("units", units, False),
    ):
        _check_names(parameter, given, tables, needed)
    sent: dict[str, _Sent] = {}
    for name, table in tables.items():
        check_table_name(f"table/{pointer_part(str(name))}", name, sent)
        own = any_mechanism(chosen[name])
        places = ("mechanism", "keys", "users", "public_keys", "round", "units")
        with renamed(*((each, f"{each}/{name}") for each in places)):
            roles = _short_roles(chosen[name], keys[name], columns[name])
            listed = _listed((public_keys or {}).get(name))
            rounding = _rounding(own, rounds.get(name, False), (units or {}).get(name))
        sent[name] = _Sent(table, own, roles, (csv_types or {}).get(name), listed, rounding)
    return sent


def _check_names(parameter: str, given: object, tables: Mapping[str, Any], needed: bool) -> None:
    if given is None and not needed:
        return
    is_right = isinstance(given, Mapping) and (
        given.keys() == tables.keys() if needed else given.keys() <= tables.keys()
    )
    if not is_right:
        raise InvalidParameter(parameter, "must have a value for each table, by its name, and no others")


def _renames(tables: Mapping[str, _Sent]) -> Renames:
    """Places in the request as the call has them."""
    places = (
        ("key_columns", "keys"),
        ("count_column", "users"),
        ("public_keys", "public_keys"),
        ("units", "units"),
        ("mechanism", "mechanism"),
    )
    named = [
        (f"/tables/{k}/{field}", f"{parameter}/{name}") for k, name in enumerate(tables) for field, parameter in places
    ]
    return [*named, *((f"/tables/{k}", f"table/{name}") for k, name in enumerate(tables)), ("/tables", "table")]


def _places(name: str) -> Renames:
    """Places of a table as the call has them, if it is one of several."""
    if not name:
        return ()
    places = {"/key_columns": "keys", "/count_column": "users", "/mechanism": "mechanism", "/table": "table"}
    return [(place, f"{parameter}/{name}") for place, parameter in (places | {"table": "table"}).items()]


def _listed(public_keys: Any) -> PublicKeys | None:
    """Listed keys as JSON has them."""
    if public_keys is None or isinstance(public_keys, str):
        return public_keys
    return _as_lists(group_keys(public_keys, "public_keys"))


def _as_lists(keys: Sequence[Any]) -> list[Any]:
    return [list(key) if isinstance(key, tuple) else key for key in keys]


def _public(public_keys: PublicKeys | None) -> dict[str, Any]:
    return {} if public_keys is None else {"public_keys": public_keys}


def _rounding(mechanism: AnyMechanism, is_rounded: bool, units: Mapping[str, Real] | None) -> Json:
    """The members of a request that say to what published numbers are rounded; none if they are not."""
    steps = rounded_to(mechanism, is_rounded, units, "round")
    return {} if steps is None else {"round": True, "units": dict(zip(mechanism.column_names, steps[1:], strict=True))}


def _is_repeated(bound: Bound[Any], options: PaidOptions) -> bool:
    """Whether the client would send the release again."""
    return options.get("once") is not None and bound._driver.retries.are_on


def _short_roles(mechanism: MechanismLike, keys: Any, users: Any) -> Roles:
    """The roles of the columns that ``keys`` and ``users`` name. One key column need not be in a list."""
    return roles_of(any_mechanism(mechanism), [keys] if isinstance(keys, str) else keys, users, ("keys", "users"))
