"""gsh.release is the core's release: the same numbers from the same entropy, whatever form the groups come in."""

import copy
import dataclasses
import inspect
import os
import pickle
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import gsh
from gsh.histogram.apply import apply_mechanism
from gsh.histogram.noise import Noise
from gsh.histogram.roles import Roles
from gsh.histogram.tables import release_table
from gsh.library import groups as front_door
from tests.gsh.histogram.recorded import Recorded
from tests.gsh.library.examples import COLUMNS

COUNTS_ONLY = gsh.Mechanism(c_u=3, tau=2, tau_star=40, sigma=10)
WITH_COLUMNS = gsh.Mechanism(c_u=3, tau=2, tau_star=40, sigma=10, aggregates=COLUMNS)
KEYS = ["weather", "news", "art", "sport", "music"]
COUNTS = [44, 812, 1, 39, 60]
VALUES = {"shares": [12.5, 40.0, 0.0, 3.0, 9.0], "likes": [77, 300, 1, 4, 10]}
SORTED = [2, 4, 1, 3, 0]


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The operating system's entropy, replaced by bits that are the same in every test."""
    monkeypatch.setattr(front_door, "operating_system", Recorded("the same"))


def by_core(mechanism: gsh.Mechanism, values: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    names = mechanism.aggregates.names if mechanism.aggregates is not None else ()
    columns = [np.array(values[name], np.float64) for name in names]
    released = apply_mechanism(
        Noise(mechanism), np.array(COUNTS), columns, np.array(SORTED, np.int32), Recorded("the same")
    )
    kept = {"key": [KEYS[row] for row in released.rows], "count": released.counts.tolist()}
    return kept | {name: column.tolist() for name, column in zip(names, released.values, strict=True)}


def shown(released: gsh.Groups) -> dict[str, list[Any]]:
    kept = {"key": list(released.keys), "count": released.counts.tolist()}
    return kept | {name: column.tolist() for name, column in released.values.items()}


FORMS: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "tuple": tuple,
    "numpy": np.array,
    "numpy objects": lambda items: [np.array([item])[0] for item in items],
    "pandas": pd.Series,
    "polars": pl.Series,
    "arrow": pa.array,
    "arrow chunks": lambda items: pa.chunked_array([items[:2], items[2:]]),
}


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("mechanism", [COUNTS_ONLY, WITH_COLUMNS], ids=["counts", "columns"])
def test_a_release_is_the_cores(mechanism: gsh.Mechanism, form: Callable[[list[Any]], Any]) -> None:
    posted = VALUES if mechanism is WITH_COLUMNS else {}

    released = gsh.release(
        mechanism, keys=form(KEYS), counts=form(COUNTS), values={name: form(column) for name, column in posted.items()}
    )

    assert shown(released) == by_core(mechanism, posted)
    assert 0 < len(released) < len(KEYS)


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize(
    "form",
    [
        lambda table: table,
        pl.from_arrow,
        lambda table: table.to_pandas(),
        lambda table: table.to_pandas().set_axis([9, 4, 7, 2, 5]),
        lambda table: pa.Table.from_pandas(table.to_pandas().set_axis(list("abcde"))).select(table.column_names),
        lambda table: table.to_pandas().set_index("topic"),
        lambda table: table.to_reader(),
    ],
    ids=["arrow", "polars", "pandas", "pandas filtered", "selected from pandas", "pandas index as key", "reader"],
)
def test_a_table_is_released_as_an_arrow_table(form: Callable[[pa.Table], Any]) -> None:
    """In the service's own way, and with the numbers of the lists."""
    table = pa.concat_tables(
        [pa.table({"topic": [key], "users": [count]}) for key, count in zip(KEYS, COUNTS, strict=True)]
    )
    table = table.append_column("likes", [VALUES["likes"]]).append_column("shares", [VALUES["shares"]])
    roles = Roles(("topic",), "users", ("likes", "shares"))

    released = gsh.release(WITH_COLUMNS, form(table), key_columns=["topic"], count_column="users")

    assert isinstance(released, pa.Table)
    expected = by_core(WITH_COLUMNS, VALUES)
    assert released.to_pydict() == {"topic": expected["key"], "users": expected["count"]} | {
        name: expected[name] for name in ("likes", "shares")
    }
    if form(table) is table:
        assert released.equals(release_table(Noise(WITH_COLUMNS), table, roles, Recorded("the same")).read_all())


def test_group_keys_of_several_parts_come_back_as_tuples() -> None:
    """Sorted part by part, as Python's own strings and numbers, fit for a dictionary."""
    mechanism = gsh.Mechanism(c_u=3, tau_star=100, sigma=1)
    keys = [("b", 2), ["a", np.int64(10)], (np.str_("a"), 9.0), "z", 5]

    released = gsh.release(mechanism, keys=keys, counts=[10_000] * 5)

    assert released.keys == (5, "z", ("a", 9), ("a", 10), ("b", 2))
    assert {type(part) for key in released.keys if isinstance(key, tuple) for part in key} == {str, int}
    assert len(dict(zip(released.keys, released.counts, strict=True))) == 5


@pytest.mark.parametrize("form", [list, pa.array, pl.Series, lambda keys: np.array(keys, object)])
def test_none_is_a_group_key_after_all_others(form: Callable[[list[Any]], Any]) -> None:
    mechanism = gsh.Mechanism(c_u=3, tau_star=100, sigma=1)

    released = gsh.release(mechanism, keys=form([None, "b", "a"]), counts=[10_000] * 3)

    assert released.keys == ("a", "b", None)
    assert gsh.release(mechanism, keys=[("a", None), ("a", 1), None], counts=[10_000] * 3).keys == (
        ("a", 1),
        ("a", None),
        None,
    )


def test_a_result_holds_no_memory_of_dropped_groups() -> None:
    """An array that is a view would tell how many groups there were."""
    released = gsh.release(WITH_COLUMNS, keys=KEYS, counts=COUNTS, values=VALUES)

    assert [column.base for column in (released.counts, *released.values.values())] == [None] * 3


def test_nothing_in_nothing_out() -> None:
    released = gsh.release(WITH_COLUMNS, keys=[], counts=[], values={"likes": [], "shares": []})

    assert (released.keys, len(released.counts), sorted(released.values)) == ((), 0, ["likes", "shares"])


def test_numbers_on_a_grid_of_one_are_integers() -> None:
    released = gsh.release(gsh.Mechanism(c_u=1, tau_star=2.0**25, sigma=2.0**20), keys=["a"], counts=[2**40])

    assert released.counts.dtype == np.int64


def test_the_noise_comes_from_the_operating_system_and_nobody_chooses_it() -> None:
    """No seed, and numpy's own generator plays no part."""
    assert front_door.operating_system is os.urandom
    assert not {"seed", "rng", "random_state", "entropy"} & inspect.signature(gsh.release).parameters.keys()
    drawn = set()
    for _ in range(3):
        np.random.seed(0)
        drawn.add(float(gsh.release(COUNTS_ONLY, keys=["a"], counts=[10_000]).counts[0]))
    assert len(drawn) == 3


def test_a_result_cannot_be_changed() -> None:
    """Nor can its copies."""
    released = gsh.release(WITH_COLUMNS, keys=KEYS, counts=COUNTS, values=VALUES)

    for groups in (released, pickle.loads(pickle.dumps(released)), copy.deepcopy(released)):
        assert shown(groups) == shown(released)
        assert isinstance(groups.keys, tuple)
        for column in (groups.counts, *groups.values.values()):
            assert not column.flags.writeable
        with pytest.raises(TypeError):
            groups.values["likes"] = groups.counts  # type: ignore[index]
        with pytest.raises(dataclasses.FrozenInstanceError):
            groups.counts = groups.values["likes"]  # type: ignore[misc]


def test_a_result_is_its_rows() -> None:
    released = gsh.release(WITH_COLUMNS, keys=KEYS, counts=COUNTS, values=VALUES)

    frame = pd.DataFrame(released, columns=["key", "count", "likes", "shares"])

    assert len(released) > 1
    assert frame.to_dict("list") == shown(released)
    assert {type(number) for _, *numbers in released for number in numbers} == {float}


def test_columns_are_as_wide_as_their_keys() -> None:
    keys = ["a", "b" * 40]
    released = gsh.release(gsh.Mechanism(c_u=1, tau_star=100, sigma=1), keys=keys, counts=[10_000] * 2)

    header, *rows = repr(released).splitlines()
    assert {len(row) for row in rows} == {len(header)}
    assert [row.split()[0] for row in rows] == list(map(repr, keys))


def test_the_first_rows_are_shown() -> None:
    released = gsh.release(gsh.Mechanism(c_u=1, tau_star=100, sigma=1), keys=list(range(9)), counts=[10_000] * 9)

    header, *rows, last = repr(released).splitlines()
    assert header.split() == ["group", "key", "count"]
    assert [row.split()[0] for row in rows] == ["0", "1", "2", "3", "4"]
    assert last == "… 9 groups"


GROUPS: dict[str, Any] = {"keys": KEYS, "counts": COUNTS, "values": VALUES}
TABLE: dict[str, Any] = {
    "table": pa.table({"key": KEYS, "users": COUNTS} | VALUES),
    "key_columns": ["key"],
    "count_column": "users",
}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "keys: must be given with counts, or else a table with key_columns and count_column"),
        (GROUPS | {"keys": None}, "keys: must be a list or an array"),
        (GROUPS | {"keys": "abcde"}, "keys: must be a list or an array"),
        (GROUPS | {"keys": [*KEYS[1:], "news"]}, "keys: must be unique"),
        (GROUPS | {"keys": [*KEYS[2:], None, None]}, "keys: must be unique"),
        (GROUPS | {"keys": [*KEYS[1:], True]}, "keys: must be strings, numbers, null, or lists of these"),
        (GROUPS | {"keys": np.arange(5).astype("M8[ns]")}, "keys: must be an array of strings or numbers"),
        (GROUPS | {"keys": [np.datetime64(n, "ns") for n in range(5)]}, "keys: must be strings, numbers"),
        (GROUPS | {"keys": [float("nan"), 1, 2, 3, 4]}, "keys: must be finite if they are numbers"),
        (GROUPS | {"counts": None}, "counts: must be a list or an array of numbers"),
        (GROUPS | {"counts": COUNTS[1:]}, "counts: must have as many items as keys"),
        (GROUPS | {"counts": [-1, 1, 1, 1, 1]}, "counts: must be integers from 0 to 2^53"),
        (GROUPS | {"counts": [1.0] * 5}, "counts: must be of an integer type"),
        (GROUPS | {"counts": [True] * 5}, "counts: must be of an integer type"),
        (GROUPS | {"counts": ["1"] * 5}, "counts: must be of an integer type"),
        (GROUPS | {"counts": [1, "1", 1, 1, 1]}, "counts: must be a list or an array of numbers"),
        (GROUPS | {"counts": [1, None, 1, 1, 1]}, "counts: must not have missing values"),
        (GROUPS | {"counts": [10**30] * 5}, "counts: must be a list or an array of numbers"),
        (GROUPS | {"counts": np.ones((5, 1), int)}, "counts: must be a list or an array of numbers"),
        (GROUPS | {"values": None}, "values: must have a column for each of aggregates/names"),
        (GROUPS | {"values": [1]}, "values: must map each name to a column"),
        (GROUPS | {"values": VALUES | {"views": [1] * 5}}, "values: must have a column for each"),
        (GROUPS | {"values": VALUES | {"likes": [np.nan] * 5}}, "values/likes: must be finite"),
        (GROUPS | {"values": VALUES | {"likes": [1]}}, "values/likes: must have as many items as keys"),
        (GROUPS | {"key_columns": ["key"]}, "key_columns: must be omitted"),
        (TABLE | {"counts": COUNTS}, "counts: must be omitted"),
        (TABLE | {"table": {"key": KEYS}}, "table: must have the Arrow stream interface: dict does not have it"),
        (
            TABLE | {"table": pl.DataFrame({"key": KEYS, "users": pl.Series(COUNTS, dtype=pl.Int128)})},
            "table: must have columns of types that pyarrow knows",
        ),
        (TABLE | {"count_column": None}, "count_column: must name exactly one column of the table; there is no count"),
        (
            TABLE | {"count_column": "people"},
            "count_column: must name exactly one column of the table; there is",
        ),
        (TABLE | {"key_columns": None}, "key_columns: must be given: the names of the key columns"),
        (TABLE | {"key_columns": "key"}, "key_columns: must be a list or an array of strings, not str"),
        (TABLE | {"key_columns": []}, "key_columns: must name at least one column"),
        (TABLE | {"key_columns": ["kye"]}, "key_columns/0: must name exactly one column"),
    ],
    ids=lambda case: case.partition(":")[0] if isinstance(case, str) else "",
)
def test_groups_that_are_none_are_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], said: str
) -> None:
    """Before any noise is drawn."""
    monkeypatch.setattr(front_door, "operating_system", lambda _size: pytest.fail("noise was drawn"))

    with pytest.raises(gsh.InvalidGroups) as raised:
        gsh.release(WITH_COLUMNS, **given)

    assert str(raised.value).startswith(said)


def test_values_need_a_covariance() -> None:
    mechanism = gsh.Mechanism(c_u=3, tau_star=40, sigma=10, mu_0=0.1)

    with pytest.raises(gsh.InvalidGroups, match=r"^mechanism/aggregates: must have a covariance"):
        gsh.release(mechanism, **GROUPS)


def test_a_table_of_too_many_groups_is_refused() -> None:
    """Positions have 32 bits. A column of nulls takes no memory."""
    table = pa.table({"key": pa.nulls(2**31), "users": pa.nulls(2**31)})

    with pytest.raises(gsh.TooManyGroups, match=r"^table: must have fewer than 2\^31 groups"):
        gsh.release(COUNTS_ONLY, table, key_columns=["key"], count_column="users")


@pytest.mark.parametrize("keys", [["secret\ud800", "b"], ["secret\ud800", 1], [["a", "secret\udfff"], ["b", "c"]]])
def test_a_string_that_is_not_unicode_is_refused_without_its_text(keys: list[Any]) -> None:
    """Python's own error would carry the whole group key."""
    with pytest.raises(gsh.InvalidGroups, match="must be valid Unicode") as raised:
        gsh.release(COUNTS_ONLY, keys=keys, counts=[1, 2000])

    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None
    assert "secret" not in repr(raised.value)


@pytest.mark.parametrize("keys", [b"ab", bytearray(b"ab"), memoryview(b"ab"), "ab"])
def test_bytes_and_strings_are_not_lists_of_group_keys(keys: Any) -> None:
    with pytest.raises(gsh.InvalidGroups, match="keys: must be a list or an array"):
        gsh.release(COUNTS_ONLY, keys=keys, counts=[1, 2])


def test_rounded_numbers_are_those_of_the_core_rounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the noise and after the threshold: the same groups, and the nearest multiples of the units."""
    given: dict[str, Any] = {"keys": KEYS, "counts": COUNTS, "values": VALUES}
    monkeypatch.setattr(front_door, "operating_system", Recorded("the same"))
    plain = gsh.release(WITH_COLUMNS, **given)
    monkeypatch.setattr(front_door, "operating_system", Recorded("the same"))
    rounded = gsh.release(WITH_COLUMNS, **given, round=True, units={"shares": 0.01, "likes": 4})

    assert rounded.keys == plain.keys
    assert rounded.counts.dtype == np.int64
    assert rounded.counts.tolist() == np.rint(plain.counts).tolist()
    assert rounded.values["shares"].tolist() == [float(f"{share:.2f}") for share in plain.values["shares"]]
    assert rounded.values["likes"].tolist() == [4 * float(np.rint(likes / 4)) for likes in plain.values["likes"]]
    table = pa.table({"url": KEYS, "users": COUNTS, **VALUES})
    as_table = gsh.release(WITH_COLUMNS, table, key_columns=["url"], count_column="users", round=True)
    assert as_table["users"].type == as_table["likes"].type == pa.int64()


@pytest.mark.parametrize(
    ("options", "detail"),
    [
        ({"round": 1}, "round: must be True or False"),
        ({"units": {"likes": 2}}, "units: must be omitted"),
        ({"round": True, "units": {"clicks": 2}}, "units/clicks: must be"),
        ({"round": True, "units": {"likes": -1}}, "units/likes: must be greater"),
    ],
)
def test_a_rounding_that_cannot_be_is_refused(options: dict[str, Any], detail: str) -> None:
    with pytest.raises(gsh.InvalidParameter, match=detail):
        gsh.release(WITH_COLUMNS, keys=KEYS, counts=COUNTS, values=VALUES, **options)
