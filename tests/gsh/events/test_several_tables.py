"""Several tables in one publication: bounded as by the reference, written all or none, with one certificate."""

import dataclasses
import datetime
import json
import math
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gsh
from gsh.duckdb import coded
from gsh.duckdb.aggregates import aggregated, aggregated_tables
from gsh.duckdb.public_keys import KeysTable, keys_table, keys_tables
from gsh.duckdb.sources import open_source
from gsh.duckdb.workspace import workspace
from gsh.events.plan import make_plan
from gsh.events.public_keys import public_keys_of
from gsh.events.published import Progress
from gsh.events.tables import Plans, plan_from_json, planned
from gsh.results.rest import child_of, rests_asked
from tests.gsh.cli.running import environment
from tests.gsh.events.tables import KEYS, NUMBERS, as_events
from tests.gsh.events.test_duckdb import EVENTS, SALT, in_units
from tests.reference.bounding import Aggregates, bounded, bounded_tables

pytestmark = pytest.mark.slow

DAYS = [datetime.date(1970, 1, day) for day in (1, 2, 31)] + [None]
TABLES: dict[str, gsh.Table] = {
    "by_day": gsh.Table(by="day", public_keys=DAYS, c_u=2, sums={"likes": (0, 3)}),
    "by_url": gsh.Table(by=["url"], c_u=3, sums={"seconds": (0, 64)}, units={"seconds": 0.5}),
    "detail": gsh.Table(
        by=["url", "day"],
        c_u=6,
        sums={"likes": (0, 2), "seconds": (0, 64)},
        units={"seconds": 2**-10},
        caps={"likes": 3},
    ),
}
EVERY_KIND = TABLES | {"views": gsh.Table(by="url", c_u=5, sums={"likes": (0, 9)}, events={"n": 3}, caps={"n": 4})}
TARGET: dict[str, Any] = {"user": "user_id", "tables": TABLES, "epsilon": 1, "delta": 1e-6}


def counted(events: pa.Table, tables: dict[str, gsh.Table], buckets: int | None = None) -> dict[str, Aggregates]:
    """The aggregates of DuckDB in units, as the reference has them."""
    plans, keys = planned(tables, user="user_id", salt=SALT)
    with workspace() as space:
        source = open_source(space, events, plans)
        listed = keys_tables(space, source, plans.tables, keys)
        found = aggregated_tables(space, source, plans.tables, lambda _progress: None, buckets, listed)
    return {name: in_units(table, plans.tables[name]) for name, table in found.items()}


def judged(events: pa.Table, tables: dict[str, gsh.Table]) -> dict[str, Aggregates]:
    plans, keys = planned(tables, user="user_id", salt=SALT)
    lists = {name: [tuple(row.values()) for row in each.table.to_pylist()] for name, each in keys.items()}
    return bounded_tables(as_events(events), plans.to_json(), lists)


@pytest.mark.parametrize("buckets", [None, 1, 5])
def test_tables_are_bounded_as_by_the_reference(buckets: int | None) -> None:
    found = counted(EVENTS, EVERY_KIND, buckets)

    assert found == judged(EVENTS, EVERY_KIND)
    assert found["by_day"][DAYS[2],] == (0, 0)  # listed, and no record has it
    assert {key for (key,) in found["by_day"]} == set(DAYS)


@st.composite
def several(draw: st.DrawFn) -> tuple[pa.Table, dict[str, gsh.Table]]:
    """Events of few users, and two or three tables over their columns, some with public keys."""
    rows = draw(st.integers(0, 25))
    kinds = draw(st.lists(st.sampled_from(sorted(KEYS)), min_size=2, max_size=3, unique=True))
    few = {kind: draw(st.lists(KEYS[kind][2] | st.none(), min_size=1, max_size=3)) for kind in kinds}
    columns: dict[str, pa.Array] = {"user_id": pa.array(draw(_several(st.sampled_from(["a", "ü", "", None]), rows)))}
    columns |= {
        f"k {kind}": pa.array(draw(_several(st.sampled_from(few[kind]), rows)), KEYS[kind][0]) for kind in kinds
    }
    sums = draw(st.lists(st.sampled_from(sorted(NUMBERS)), max_size=2, unique=True))
    columns |= {name: pa.array(draw(_several(NUMBERS[name][3] | st.none(), rows)), NUMBERS[name][0]) for name in sums}
    columns["user_id"] = columns["user_id"].cast(pa.string())
    tables = {}
    for place in range(draw(st.integers(2, 3))):
        by = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=2, unique=True))
        keys = None
        if draw(st.booleans()):  # of the values of records, and of others
            part = st.tuples(*(st.sampled_from(few[kind]) | KEYS[kind][2] | st.none() for kind in by))
            listed = draw(st.lists(part, min_size=1, max_size=5))
            values = zip(*listed, strict=True)
            typed = {f"k {kind}": pa.array(each, KEYS[kind][0]) for kind, each in zip(by, values, strict=True)}
            keys = pa.table(typed)
        own = [name for name in sums if draw(st.booleans())]
        unit = {name: NUMBERS[name][2] for name in own}
        c_u, events = draw(st.integers(1, 4)), draw(st.dictionaries(st.just("records"), st.integers(1, 4)))
        tables[f"t{place}"] = gsh.Table(
            by=[f"k {kind}" for kind in by],
            public_keys=keys,
            c_u=c_u,
            tau=1 if keys is not None else draw(st.integers(0, 2)),
            sums={name: (0, 2 * draw(st.integers(1, 9)) * max(unit[name] or 1, 1)) for name in own},
            events=events,
            units={
                name: each * draw(st.sampled_from([1, 2] if math.frexp(each)[0] == 0.5 else [1, 10]))
                for name, each in unit.items()
                if each is not None
            },
            caps={name: draw(st.integers(1, c_u)) for name in [*own, *events] if draw(st.booleans())},
        )
    return pa.table(columns), tables


def _several(each: st.SearchStrategy[Any], rows: int) -> st.SearchStrategy[list[Any]]:
    return st.lists(each, min_size=rows, max_size=rows)


@settings(max_examples=30, deadline=None)
@given(several(), st.sampled_from([None, 2]))
def test_duckdb_bounds_tables_as_the_reference(
    drawn: tuple[pa.Table, dict[str, gsh.Table]], buckets: int | None
) -> None:
    events, tables = drawn

    assert counted(events, tables, buckets) == judged(events, tables)


def test_a_table_keeps_the_same_whatever_the_other_tables_are() -> None:
    alone = {name: counted(EVENTS, {name: table})[name] for name, table in TABLES.items()}

    assert counted(EVENTS, dict(reversed(TABLES.items()))) == alone


@pytest.mark.parametrize(("is_text", "buckets"), [(False, None), (True, None), (False, 3), (True, 3)])
def test_events_are_read_for_all_tables_together(is_text: bool, buckets: int | None, tmp_path: Path) -> None:
    """At once each column for its codes, and then all; texts once. In buckets there is one spool."""
    pyarrow.csv.write_csv(EVENTS, tmp_path / "events.csv")
    tables = {name: dataclasses.replace(each, public_keys=None) for name, each in TABLES.items()}
    plans, _ = planned(tables, user="user_id", salt=SALT, types={"day": "date"})
    statements: list[str] = []
    with workspace() as space:
        source = open_source(space, tmp_path / "events.csv" if is_text else EVENTS, plans)

        class Recorded:
            def __getattr__(self, name: str) -> Any:
                wanted = getattr(space.connection, name)
                if name not in ("execute", "sql"):
                    return wanted
                return lambda query, *rest: (statements.append(query), wanted(query, *rest))[1]

        watched = type(space)(Recorded(), space.folder)  # type: ignore[arg-type]
        found = aggregated_tables(watched, source, plans.tables, lambda _progress: None, buckets)
    events = "events.csv" if is_text else "_gsh_events"
    reading = [each for each in statements if events in each and not each.startswith("DESCRIBE")]

    if buckets is not None:
        assert [each[:4] for each in reading] == ["COPY"]
    elif is_text:
        assert len(reading) == 1
    else:
        *codes, base = reading
        assert [each.partition(" AS ")[0] for each in codes] == [f"CREATE TEMP TABLE _gsh_code{n}" for n in range(3)]
        assert base.startswith("CREATE TEMP TABLE _gsh_base")
    assert {name: in_units(table, plans.tables[name]) for name, table in found.items()} == judged(EVENTS, tables)


def test_events_that_change_while_they_are_read_are_an_error(tmp_path: Path) -> None:
    """Users and keys get codes first. Later events with others must not be lost in silence."""
    path = tmp_path / "events.parquet"
    pq.write_table(EVENTS, path)
    plans, _ = planned({"t": gsh.Table(by="url", c_u=3)}, user="user_id", salt=SALT)

    for change in ({"user_id": "new"}, {"url": "new"}, {"url": None}):
        rows = pa.Table.from_pylist([EVENTS.to_pylist()[1] | change], EVENTS.schema)
        with workspace() as space:
            source = open_source(space, path, plans)

            class Changing:
                def __getattr__(self, name: str, space: Any = space, rows: Any = rows) -> Any:
                    def execute(query: str) -> Any:
                        if query.startswith("CREATE TEMP TABLE _gsh_base"):
                            pq.write_table(pa.concat_tables([EVENTS, rows]), path)
                        return space.connection.execute(query)

                    return execute if name == "execute" else getattr(space.connection, name)

            watched = type(space)(Changing(), space.folder)  # type: ignore[arg-type]
            with pytest.raises(gsh.EventsError, match=r"^events: must not change while they are read$"):
                aggregated_tables(watched, source, plans.tables, lambda _progress: None)


@pytest.mark.parametrize("column", ["day", "url", "e"])
def test_equal_lots_are_decided_by_the_key(column: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """People can make texts with the same MD5. What such a user keeps must not depend on other users."""
    monkeypatch.setattr(coded, "lot_of_sql", lambda *_: "'0'")
    enumeration = EVENTS["url"].dictionary_encode().combine_chunks()
    events = EVENTS.append_column("e", enumeration)
    plans, _ = planned({"t": gsh.Table(by=column, c_u=3)}, user="user_id", salt=SALT)
    kept = []
    for rows in (events, events.take(list(range(len(events)))[::-1]), events.filter(pc.equal(events["user_id"], "u1"))):
        with workspace() as space:
            table = aggregated_tables(space, open_source(space, rows, plans), plans.tables, lambda _progress: None)["t"]
        kept.append(table[column].to_pylist())

    smallest = sorted({row[column] for row in events.to_pylist() if row["user_id"] == "u1"})[:3]
    assert sorted(kept[2]) == smallest
    assert set(kept[0]) == set(kept[1]) >= set(smallest)


KEYED = pa.table(
    {
        "user_id": ["u"] * 6 + ["v"],
        "k": ["a", "b", "c", None, "é", "x", "a"],
        "n": pa.array([1, 2, 3, None, 5, 6, 1], pa.int32()),
        "e": pa.array(["p", "q", "p", None, "p", "q", "p"]).dictionary_encode(),
    }
)


@pytest.mark.parametrize("buckets", [None, 2])
@pytest.mark.parametrize(
    ("by", "keys", "expected"),
    [
        ("k", ["x", "none"], {"x": 1, "none": 0}),
        ("k", ["a", None, "é", "x"], {"a": 1, None: 1, "é": 1, "x": 1}),
        ("n", ["1", "7"], {1: 2, 7: 0}),
        ("n", [1, None], {1: 2, None: 1}),
        ("e", ["p", "z"], {"p": 2, "z": 0}),
    ],
)
def test_records_of_other_groups_use_nobodys_bound_up(
    by: str, keys: list[Any], expected: dict[Any, int], buckets: int | None
) -> None:
    """C_u is 4 in the second case: with all six groups of the user, some of the listed ones would be lost."""
    listed = public_keys_of(keys, [by])
    plan = make_plan(user="user_id", by=by, c_u=4, salt=SALT, public_keys=listed.digest)
    with workspace() as space:
        source = open_source(space, KEYED, plan)
        made = keys_table(space, source, plan, listed)
        table = aggregated(space, source, plan, lambda _progress: None, buckets, made)
    found = {row[by]: row["count"] for row in table.to_pylist()}

    cast = [(int(key) if by == "n" and key is not None else key,) for key in keys]
    assert {(key,): (count,) for key, count in found.items()} == bounded(as_events(KEYED), plan.to_json(), cast)
    if by != "k" or len(keys) == 2:
        assert found == expected
    else:
        assert sum(found.values()) == 5


def test_keys_that_are_filtered_after_bounding_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug keeps the bounds, so no audit sees it. The reference does: users lose listed groups."""
    monkeypatch.setattr(KeysTable, "coded", lambda _self, codes: f"SELECT code AS c0 FROM {codes[0]}")
    tables = {"t": gsh.Table(by="k", public_keys=["a", "x", None], c_u=2)}

    assert counted(KEYED, tables) != judged(KEYED, tables)


@pytest.mark.parametrize(
    ("keys", "pointer"), [(["x"], "public_keys"), (["1.5"], "public_keys"), ([True], "public_keys/0")]
)
def test_keys_that_are_no_values_of_the_column_are_refused(keys: list[Any], pointer: str) -> None:
    with pytest.raises(gsh.InvalidParameter) as error:
        gsh.publish(KEYED, user="user_id", by="n", public_keys=keys, c_u=1, epsilon=1, delta=1e-6)
    assert error.value.pointer == pointer
    tables = {"t": gsh.Table(by="n", public_keys=keys, c_u=1)}
    with pytest.raises(gsh.InvalidParameter) as error:
        gsh.publish(KEYED, user="user_id", tables=tables, epsilon=1, delta=1e-6)
    assert error.value.pointer == f"tables/t/{pointer}"


# So little noise that every published number shows the true one.
CLEAR = {
    "by_day": gsh.PlainGaussian(
        c_u=2,
        sigma=0.01,
        aggregates=gsh.Aggregates(names=["likes"], covariance=[[1e-6]], sensitivity=gsh.box(lower=[0], upper=[3])),
    ),
    "by_url": gsh.Mechanism(
        c_u=3,
        tau_star=1.5,
        sigma=0.01,
        aggregates=gsh.Aggregates(names=["seconds"], covariance=[[1e-6]], sensitivity=gsh.box(lower=[0], upper=[64])),
    ),
    "detail": gsh.Mechanism(
        c_u=6,
        tau_star=1.5,
        sigma=0.01,
        aggregates=gsh.Aggregates(
            names=["likes", "seconds"],
            covariance=[[1e-6, 0], [0, 1e-12]],
            sensitivity=gsh.box(lower=[0, 0], upper=[2, 64], groups=[3, None]),
        ),
    ),
}
ASKED: dict[str, Any] = {"user": "user_id", "tables": TABLES, "mechanism": CLEAR}


def test_published_numbers_are_the_bounded_ones_zeros_included() -> None:
    private = gsh.publish(EVENTS, **ASKED, _salt=SALT)
    expected = judged(EVENTS, TABLES)
    for name in ("by_url", "detail"):
        expected[name] = {key: row for key, row in expected[name].items() if row[0] > 1}

    assert list(private.tables) == list(TABLES)
    for name, table in private.tables.items():
        plan = private.plan.tables[name]  # type: ignore[union-attr]
        scales = [1, *(column.scale for column in plan.measures)]
        rows = [tuple(row.values()) for row in table.to_pylist()]
        split = len(plan.by)
        found = {
            row[:split]: tuple(round(value / scale) for value, scale in zip(row[split:], scales, strict=True))
            for row in rows
        }
        assert found == expected[name]
    assert private.groups == len(private) == sum(map(len, expected.values()))
    assert f"{private.groups} groups of 3 tables published" in private.summary()
    assert private.mechanisms == CLEAR


def test_one_table_with_public_keys_publishes_every_listed_group(tmp_path: Path) -> None:
    private = gsh.publish(
        EVENTS,
        user="user_id",
        by="day",
        public_keys=DAYS,
        c_u=2,
        epsilon=1,
        delta=1e-6,
        to=tmp_path / "private.parquet",
    )

    assert set(private.table["day"].to_pylist()) == set(DAYS)
    assert "tau_star" not in private.certificate["mechanism"]
    assert private.certificate["delta"] <= 1e-6
    assert private.plan.public_keys == public_keys_of(DAYS, ["day"]).digest
    assert plan_from_json(json.loads((tmp_path / "private.parquet.plan.json").read_bytes())) == private.plan


def test_the_target_is_met_by_shares_and_the_certificate_says_all_of_it() -> None:
    tables = TABLES | {"by_url": gsh.Table(by="url", c_u=3, share=4)}
    private = gsh.publish(EVENTS, **{**TARGET, "tables": tables}, unprotected=["c_u by a preview"])
    said = private.certificate
    drafts = {
        "by_day": gsh.Table(c_u=2, tau=None, sums={"likes": (0, 3)}),
        "by_url": gsh.Table(c_u=3, share=4),
        "detail": gsh.Table(c_u=6, sums={"likes": (0, 2), "seconds": (0, 64)}, caps={"likes": 3}),
    }

    assert private.mechanisms == gsh.calibrate_tables(drafts, epsilon=1, delta=1e-6).tables
    assert (said.epsilon, said.budget, said.unprotected) == (1, None, ("c_u by a preview",))
    assert said["delta"] <= 1e-6
    assert [each["name"] for each in said["tables"]] == list(tables)
    for each in said["tables"]:
        assert each["bounds"]["enforced_by"] == "gsh.duckdb"
        assert each["bounds"]["plan_digest"] == private.plan.digest
    balanced = gsh.publish(EVENTS, **TARGET, shares="balanced").mechanisms
    assert balanced["detail"].sigma < private.mechanisms["detail"].sigma


READERS: dict[str, Callable[[Path], pa.Table]] = {
    "parquet": pq.read_table,
    "arrow": pyarrow.feather.read_table,
    "csv": pyarrow.csv.read_csv,
}


@pytest.mark.parametrize("format", READERS)
def test_the_folder_has_every_table_the_certificate_and_the_plan(format: str, tmp_path: Path) -> None:  # noqa: A002
    place = tmp_path / "private"
    private = gsh.publish(EVENTS, **ASKED, to=f"{place}/", format=format, rest={"by_url": "detail"})
    files = {f"{name}.{format}" for name in (*TABLES, "by_url_rest")} | {"certificate.json", "plan.json"}

    assert {path.name for path in place.iterdir()} == files
    assert [path.name for path in tmp_path.iterdir()] == ["private"]
    for name in TABLES:
        found = READERS[format](place / f"{name}.{format}")
        assert found["count"].to_pylist() == private.tables[name]["count"].to_pylist()
        if format != "csv":
            assert found == private.tables[name]
            assert json.loads(found.schema.metadata[b"certificate"]) == private.certificate
    assert json.loads((place / "certificate.json").read_bytes()) == private.certificate
    assert Plans.from_json(json.loads((place / "plan.json").read_bytes())) == private.plan
    assert str(place / "certificate.json") in private.summary()
    rest = READERS[format](place / f"by_url_rest.{format}")
    assert rest.column_names == [
        "url",
        *(f"{name}_{end}" for name in ("count", "seconds") for end in ("low", "estimate", "high")),
    ]
    assert len(rest) == len(private.tables["by_url"])


def test_the_rest_of_a_parent_is_what_its_published_children_lack() -> None:
    private = gsh.publish(EVENTS, **ASKED, _salt=SALT)
    children = private.tables["detail"].to_pylist()
    for parent, name in (("by_url", "url"), ("by_day", "day")):
        rows = zip(private.rest(parent).to_pylist(), private.tables[parent].to_pylist(), strict=True)
        for found, own in rows:
            below = [each["count"] for each in children if each[name] == own[name]]
            assert found[name] == own[name]
            assert found["count_low"] <= found["count_estimate"] <= found["count_high"]
            assert found["count_estimate"] == pytest.approx(own["count"] - sum(below), abs=0.1)


@pytest.mark.parametrize(
    ("arguments", "pointer"),
    [(("other",), "parent"), (("detail",), "parent"), (("by_url", "by_day"), "child"), (("by_url", "x"), "child")],
)
def test_a_child_has_the_key_columns_of_its_parent(arguments: tuple[str, ...], pointer: str) -> None:
    private = gsh.publish(EVENTS, **ASKED)
    with pytest.raises(gsh.InvalidParameter) as error:
        private.rest(*arguments)

    assert error.value.pointer == pointer


def levels(**by: list[str]) -> Plans:
    tables = {name: gsh.Table(by=keys, c_u=2) for name, keys in by.items()}
    return planned(tables, user="user_id", salt=SALT)[0]


def test_the_child_of_a_nested_level_is_the_next_one() -> None:
    plans = levels(all=["url", "country", "day"], url=["url"], pair=["country", "url"], day=["day"])

    assert rests_asked(plans.roles, True) == {"url": "pair", "pair": "all", "day": "all"}
    assert rests_asked(plans.roles, {"url": "all"}) == {"url": "all"}
    assert rests_asked(plans.roles, False) == {}
    with pytest.raises(gsh.InvalidParameter, match=r"^parent: must have a finer table: no table has the key columns"):
        child_of(plans.roles, "all")
    with pytest.raises(gsh.InvalidParameter, match=r"^rest: must be omitted: no table has"):
        rests_asked(levels(url=["url"], day=["day"]).roles, True)


@pytest.mark.parametrize(
    "finer",
    [
        {"pair": ["url", "country"], "daily": ["url", "day"]},
        {"pair": ["url", "country"], "daily": ["url", "day"], "all": ["url", "country", "day"]},
        {"pair": ["url", "country"], "daily": ["country", "url"]},
    ],
)
def test_a_child_that_is_not_unique_must_be_named(finer: dict[str, list[str]]) -> None:
    plans = levels(url=["url"], **finer)
    said = "must name the child of url: none of pair, daily.* is the coarsest"

    with pytest.raises(gsh.InvalidParameter, match=f"^child: {said}"):
        child_of(plans.roles, "url")
    with pytest.raises(gsh.InvalidParameter, match=f"^rest: {said}"):
        rests_asked(plans.roles, True)
    assert rests_asked(plans.roles, {"url": "daily"}) == {"url": "daily"}


MECHANISM = {"epsilon": None, "delta": None, "mechanism": CLEAR}


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"by": ["url"]}, "by"),
        ({"c_u": 3}, "c_u"),
        ({"tau": 2}, "tau"),
        ({"public_keys": ["x"]}, "public_keys"),
        ({"sums": {"likes": (0, 1)}}, "sums"),
        ({"shares": "even"}, "shares"),
        ({"tables": {}}, "tables"),
        ({"tables": {"t": gsh.Table(by="url", c_u=1, share=0)}}, "tables/t/share"),
        ({"tables": {"t": gsh.Table(by="url", c_u=1, sums={"likes": (0, 1)}, weights={"x": 1})}}, "tables/t/weights"),
        ({"tables": {"t": gsh.Table(by="url", c_u=1, aggregates=CLEAR["detail"].aggregates)}}, "tables/t/aggregates"),
        ({"epsilon": None}, "epsilon"),
        ({"mechanism": CLEAR}, "epsilon"),
        (MECHANISM | {"mechanism": CLEAR["detail"]}, "mechanism"),
        (MECHANISM | {"mechanism": {"by_url": CLEAR["by_url"]}}, "mechanism"),
        (MECHANISM | {"shares": "balanced"}, "shares"),
        (MECHANISM | {"mechanism": {**CLEAR, "by_day": CLEAR["by_url"]}}, "mechanism/by_day"),
        (MECHANISM | {"mechanism": {**CLEAR, "by_url": CLEAR["by_day"]}}, "mechanism/by_url"),
        (MECHANISM | {"mechanism": {**CLEAR, "by_url": CLEAR["detail"]}}, "mechanism/by_url/c_u"),
        ({"releases": 2}, "epsilon"),
        ({"releases": 2, "epsilon": None, "delta": None}, "releases"),
        ({"to": "private.parquet"}, "to"),
        ({"to": "missing/private"}, "to"),
        ({"to": "x", "format": "xlsx"}, "format"),
        ({"rest": {"by_url": "by_day"}}, "rest"),
        ({"rest": 3}, "rest"),
        ({"tables": {"a": gsh.Table(by="url", c_u=1), "b": gsh.Table(by="day", c_u=1)}, "rest": True}, "rest"),
        (
            {
                "tables": {"a": gsh.Table(by="url", c_u=1), "a_rest": gsh.Table(by=["url", "day"], c_u=1)},
                "rest": True,
            },
            "rest",
        ),
    ],
)
def test_mistakes_name_their_place_before_anything_is_read(
    change: dict[str, Any], pointer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(gsh.InvalidParameter) as error:
        gsh.publish("missing.parquet", **TARGET | change)

    assert error.value.pointer == pointer
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("change", [{"shares": "balanced"}, {"rest": True}, {"format": "csv"}])
def test_arguments_for_tables_are_refused_without_tables(change: dict[str, Any]) -> None:
    with pytest.raises(gsh.InvalidParameter, match="without tables"):
        gsh.publish("missing.parquet", user="u", by="k", c_u=1, epsilon=1, delta=1e-6, **change)


def test_columns_that_are_missing_or_too_large_are_named_with_their_table() -> None:
    with pytest.raises(gsh.InvalidParameter) as error:
        gsh.publish(EVENTS.drop_columns(["url"]), **TARGET)
    assert error.value.pointer == "tables/by_url/by/0"
    large = pa.table({"user_id": ["a", "b", "c"], "k": ["x"] * 3, "n": [2**62] * 3})
    tables = {"t": gsh.Table(by="k", c_u=1, sums={"n": (0, 2**52)})}
    with pytest.raises(gsh.EventsError) as too_large:
        gsh.publish(large, user="user_id", tables=tables, epsilon=1, delta=1e-6)
    assert too_large.value.pointer == "tables/t/sums/n"


def test_a_folder_that_exists_is_replaced_only_if_asked_and_only_if_publish_wrote_it(tmp_path: Path) -> None:
    place = tmp_path / "private"
    place.mkdir()
    gsh.publish(EVENTS, **TARGET, to=place)  # empty
    first = (place / "certificate.json").read_bytes()
    with pytest.raises(gsh.InvalidParameter, match=r"^to: "):
        gsh.publish("missing.parquet", **TARGET, to=place)
    assert (place / "certificate.json").read_bytes() == first
    gsh.publish(EVENTS, **TARGET, to=place, overwrite=True)
    assert (place / "certificate.json").read_bytes() != first
    assert [path.name for path in tmp_path.iterdir()] == ["private"]

    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(gsh.InvalidParameter, match=r"^to: must be a folder that publish has written"):
        gsh.publish("missing.parquet", **TARGET, to=tmp_path / "mine", overwrite=True)
    assert (tmp_path / "mine" / "notes.txt").read_text() == "mine"


SMALL: dict[str, Any] = {
    "user": "user_id",
    "tables": {"a": gsh.Table(by="url", c_u=1), "b": gsh.Table(by=["url", "day"], c_u=1)},
    "epsilon": 1,
    "delta": 1e-6,
}


@pytest.mark.parametrize("name", ["notes.txt", "b.csv", "c.parquet", ".hidden", "folder/file", "a_rest.parquet.bak"])
def test_a_folder_with_a_foreign_file_is_not_replaced(name: str, tmp_path: Path) -> None:
    place = tmp_path / "private"
    gsh.publish(EVENTS, **SMALL, to=place, rest=True)
    before = {path: path.read_bytes() for path in place.iterdir()}
    (place / name).parent.mkdir(exist_ok=True)
    (place / name).write_text("mine")

    with pytest.raises(gsh.InvalidParameter, match=r"^to: .*publish did not write") as error:
        gsh.publish("missing.parquet", **SMALL, to=place, overwrite=True)

    assert f"private has {name.partition('/')[0]}," in str(error.value)
    assert (place / name).read_text() == "mine"
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("there", ["nothing", "empty", "published"])
def test_a_symbolic_link_is_no_folder_to_write(there: str, overwrite: bool, tmp_path: Path) -> None:
    if there == "empty":
        (tmp_path / "real").mkdir()
    elif there == "published":
        gsh.publish(EVENTS, **SMALL, to=tmp_path / "real")
    (tmp_path / "link").symlink_to("real")
    before = sorted(tmp_path.rglob("*"))

    with pytest.raises(gsh.InvalidParameter, match=r"^to: must not be a symbolic link: link is one"):
        gsh.publish("missing.parquet", **SMALL, to=tmp_path / "link", overwrite=overwrite)

    assert sorted(tmp_path.rglob("*")) == before
    assert (tmp_path / "link").is_symlink()


def test_a_folder_of_another_plan_and_format_is_replaced(tmp_path: Path) -> None:
    place = tmp_path / "private"
    gsh.publish(EVENTS, **SMALL, to=place, rest=True, format="csv")
    gsh.publish(EVENTS, **{**SMALL, "tables": {"c": gsh.Table(by="url", c_u=1)}}, to=place, overwrite=True)

    assert {path.name for path in place.iterdir()} == {"c.parquet", "certificate.json", "plan.json"}
    assert [path.name for path in tmp_path.iterdir()] == ["private"]


def test_a_file_that_appears_while_a_folder_is_replaced_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, rename = tmp_path / "private", Path.rename
    gsh.publish(EVENTS, **SMALL, to=place)

    def late(self: Path, target: Path) -> Path:
        if self == place:
            (place / "notes.txt").write_text("mine")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", late)
    gsh.publish(EVENTS, **SMALL, to=place, overwrite=True)

    (kept,) = tmp_path.glob(".private.*.replaced")
    assert [(path.name, path.read_text()) for path in kept.iterdir()] == [("notes.txt", "mine")]


def test_of_two_runs_with_one_folder_one_is_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    place, rename, first = tmp_path / "private", Path.rename, []

    def late(self: Path, target: Path) -> Path:
        if not first:
            first.append(None)
            first[0] = gsh.publish(EVENTS, **TARGET, to=place)
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", late)
    with pytest.raises(gsh.InvalidParameter, match=r"^to: "):
        gsh.publish(EVENTS, **TARGET, to=place)

    assert json.loads((place / "certificate.json").read_bytes()) == first[0].certificate
    assert [path.name for path in tmp_path.iterdir()] == ["private"]


KILLED = """
import json, os, shutil, sys
from pathlib import Path
import pyarrow as pa
import gsh
from gsh.certificate import certificate
from gsh.events.folder_output import FolderOutput
from gsh.events.tables import planned

folder = Path(sys.argv[1])
said = certificate({"a": gsh.PlainGaussian(c_u=1, sigma=5), "b": gsh.PlainGaussian(c_u=1, sigma=5)})
tables = {"a": gsh.Table(by="k", c_u=1), "b": gsh.Table(by=["k", "l"], c_u=1)}
plans, _ = planned(tables, user="u", salt="0" * 32)
rows = {name: pa.table({key: ["x"] for key in table.by} | {"count": [5.0]}) for name, table in plans.tables.items()}
whole = {"a.parquet", "b.parquet", "plan.json", "certificate.json"}
output = FolderOutput(folder / "private", plans, {})
seen, step = set(), 0
while True:
    step += 1
    child = os.fork()
    if child == 0:
        left = [step]
        def kill(event, _arguments):
            if event in ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "shutil.rmtree"):
                left[0] -= 1
                if left[0] == 0:
                    os._exit(9)  # as SIGKILL: nothing is tidied up
        sys.addaudithook(kill)
        output.write(rows, {}, said)
        os._exit(0)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    found = {path.name for path in output.path.iterdir()} if output.path.exists() else set()
    seen.add((ended, len(found)))
    assert found in (set(), whole), found
    shutil.rmtree(output.path, ignore_errors=True)
    if ended == 0:
        break
print(json.dumps([step, sorted(seen)]))
"""


def test_a_run_that_is_killed_at_any_step_leaves_all_tables_or_none(tmp_path: Path) -> None:
    made = subprocess.run(
        [sys.executable, "-c", KILLED, tmp_path], env=environment(), check=True, capture_output=True, text=True
    )
    steps, seen = json.loads(made.stdout)

    assert steps > 8
    assert sorted(map(tuple, seen)) == [(0, 4), (9, 0), (9, 4)]


INTERRUPTED = """
import sys, gsh, pyarrow as pa
folder, stage = sys.argv[1:]
events = pa.table({"u": [str(n % 50) for n in range(1000)], "k": [str(n % 7) for n in range(1000)], "l": ["x"] * 1000})
def tell(progress):
    if progress.stage == stage:
        print(stage, flush=True)
        sys.stdin.read()
tables = {"a": gsh.Table(by="k", c_u=2), "b": gsh.Table(by=["k", "l"], c_u=2)}
gsh.publish(events, user="u", tables=tables, epsilon=1, delta=1e-6, to=folder + "/private", temporary=folder,
            progress=tell, _buckets=2)
"""


@pytest.mark.parametrize("stage", ["bounding", "writing"])
def test_a_signal_leaves_nothing(stage: str, tmp_path: Path) -> None:
    """The spool has events of all tables until the last one is answered; then it is removed, also after a signal."""
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, tmp_path, stage],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(),
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().decode() == f"{stage}\n"
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)

    assert process.returncode != 0
    assert list(tmp_path.iterdir()) == []


def test_progress_has_the_stages_of_one_table() -> None:
    seen: list[Progress] = []
    gsh.publish(EVENTS, **TARGET, progress=seen.append, _buckets=2)

    assert list(dict.fromkeys(each.stage for each in seen)) == ["opening", "spooling", "bounding", "adding up", "noise"]
