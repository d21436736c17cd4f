"""DuckDB: every source, at once and in buckets, gives the aggregates of the reference."""

import json
import math
import stat
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist
from typing import Any

import duckdb
import polars
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

import gsh
from gsh.duckdb.aggregates import Query, aggregated, answered
from gsh.duckdb.previewing import preview
from gsh.duckdb.sources import open_source
from gsh.duckdb.workspace import workspace
from gsh.errors import EventsError
from gsh.events.plan import Plan, make_plan
from tests.gsh.events.tables import NASTY, NASTY_PLAN, as_events, draws
from tests.gsh.events.test_bounding import rows_of
from tests.reference.bounding import Aggregates, bounded

pytestmark = pytest.mark.slow

SALT = "0" * 32
EVENTS = pa.table(
    {
        "user_id": [None if n % 17 == 0 else f"u{n % 7}" for n in range(300)],
        "url": [f"p{n * n % 11}" for n in range(300)],
        "day": pa.array([n % 5 for n in range(300)], pa.int32()).cast(pa.date32()),
        "likes": [None if n % 13 == 0 else n % 3 for n in range(300)],
        "seconds": [n / 7 for n in range(300)],
    }
)
PLAN = make_plan(
    user="user_id",
    by=["url", "day"],
    sums={"likes": (0, 2), "seconds": (0, 64)},
    units={"seconds": 2**-10},
    c_u=6,
    caps={"likes": 3},
    salt=SALT,
    types={"day": "date"},
)


def on_duckdb(events: Any, plan: Plan, buckets: int | None = None, **options: Any) -> Aggregates:
    """The aggregates in units, as the reference has them."""
    with workspace() as space:
        source = open_source(space, events, plan, **options)
        table = aggregated(space, source, plan, lambda _progress: None, buckets)
    return in_units(table, plan)


def in_units(table: pa.Table, plan: Plan) -> Aggregates:
    """The aggregates of the engine in units, which are whole numbers."""
    for place, measure in enumerate(plan.measures, len(plan.by) + 1):
        unit = Fraction(measure.scale) if measure.digits is None else Fraction(1, 10**measure.digits)
        unit /= 2 if measure.kind == "mean" else 1
        units = [Fraction(value) / unit for value in table[measure.column].to_pylist()]
        assert all(each.denominator == 1 for each in units)
        table = table.set_column(place, measure.column, pa.array(list(map(int, units)), pa.int64()))
    return rows_of([tuple(row.values()) for row in table.to_pylist()], len(plan.by))


@pytest.mark.parametrize("buckets", [None, 1, 5])
def test_the_nasty_table_is_bounded_as_by_the_reference(buckets: int | None) -> None:
    assert on_duckdb(NASTY, NASTY_PLAN, buckets) == bounded(as_events(NASTY), NASTY_PLAN.to_json())


@settings(max_examples=15, deadline=None)
@given(draws())
def test_buckets_add_up_to_the_same(drawn: tuple[pa.Table, dict[str, str], Plan]) -> None:
    table, _, plan = drawn

    assert on_duckdb(table, plan, 3) == bounded(as_events(table), plan.to_json())


def parquet(folder: Path) -> Any:
    pq.write_table(EVENTS, folder / "events.parquet")
    return folder / "events.parquet"


def parts(folder: Path) -> Any:
    for part in range(3):
        pq.write_table(EVENTS.slice(100 * part, 100), folder / f"part-{part}.parquet")
    return f"{folder}/part-*.parquet"


def listed(folder: Path) -> Any:
    parts(folder)
    return [folder / "part-0.parquet", folder / "part-1.parquet", str(folder / "part-2.parquet")]


def whole_folder(folder: Path) -> Any:
    (folder / "week=46").mkdir()
    parts(folder / "week=46")
    return folder


def csv(folder: Path) -> Any:
    pyarrow.csv.write_csv(EVENTS, folder / "events.csv")
    return str(folder / "events.csv")


def json_lines(folder: Path) -> Any:
    polars.from_arrow(EVENTS).write_ndjson(folder / "events.jsonl")
    return str(folder / "events.jsonl")


@pytest.mark.parametrize("make", [parquet, parts, listed, whole_folder, csv, json_lines])
def test_files_of_every_format(make: Callable[[Path], Any], tmp_path: Path) -> None:
    assert on_duckdb(make(tmp_path), PLAN) == bounded(as_events(EVENTS), PLAN.to_json())


@pytest.mark.parametrize("number", ["0.5", "-0.5", "1e0", "1,000", "x", "0x1", "9223372036854775808"])
@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_a_number_with_a_fraction_is_no_integer(number: str, ending: str, tmp_path: Path) -> None:
    """DuckDB would round it, and half away from zero. The error names the column and has no cell."""
    path = tmp_path / f"events.{ending}"
    if ending == "csv":
        path.write_text(f'user_id,url,likes\nu,a,1\nu,b,"{number}"\n')
    elif ending == "jsonl":
        path.write_text(
            f'{{"user_id": "u", "url": "a", "likes": 2}}\n{{"user_id": "u", "url": "b", "likes": "{number}"}}\n'
        )
    else:
        pq.write_table(pa.table({"user_id": ["u"] * 2, "url": ["a", "b"], "likes": ["1", number]}), path)
    types = {"types": {"likes": "integer"}} if ending == "parquet" else {}
    plan = make_plan(user="user_id", by="url", sums={"likes": (-9, 9)}, c_u=2, salt=SALT, **types)

    with pytest.raises(EventsError) as error:
        on_duckdb(path, plan)

    assert error.value.pointer == "events"
    assert number not in str(error.value)
    assert error.value.__context__ is None
    whole = make_plan(user="user_id", by="url", sums={"likes": (-9, 9)}, units={"likes": 1}, c_u=2, salt=SALT)
    if number in ("0.5", "-0.5") and ending != "parquet":  # with a unit it is a number, rounded as the plan says
        assert on_duckdb(path, whole)["b",] == (1, math.floor(float(number) + 0.5))


@pytest.mark.parametrize(("given", "missing"), [({}, "by"), ({"c_u": 1}, "by"), ({"by": "url"}, "c_u")])
def test_a_publication_of_one_table_needs_its_bounds(given: dict[str, Any], missing: str) -> None:
    with pytest.raises(gsh.InvalidParameter, match=f"^{missing}: must be given, or tables in place of it$"):
        gsh.publish("missing.parquet", user="user_id", epsilon=1, delta=1e-6, **given)


def test_a_column_that_begins_late_in_json_lines_is_found(tmp_path: Path) -> None:
    lines = ['{"user_id": "u", "url": "a"}'] * 30_000 + ['{"user_id": "v", "url": "a", "likes": 3}']
    (tmp_path / "events.jsonl").write_text("\n".join(lines))
    plan = make_plan(user="user_id", by="url", sums={"likes": (0, 9)}, c_u=1, salt=SALT)

    assert on_duckdb(tmp_path / "events.jsonl", plan) == {("a",): (2, 3)}
    misspelt = make_plan(user="user_id", by="url", sums={"like": (0, 9)}, c_u=1, salt=SALT)
    with pytest.raises(gsh.InvalidParameter, match=r"^sums/like: must name a column of the events: there is no like$"):
        on_duckdb(tmp_path / "events.jsonl", misspelt)


@pytest.mark.parametrize("mark", [";", "|", "\t"])
def test_another_separator_of_columns_is_named(tmp_path: Path, mark: str) -> None:
    """The header is not repeated: without a header line it would be a record."""
    (tmp_path / "events.csv").write_text(f"user_id{mark}url\nsecret{mark}a\n")
    plan = make_plan(user="user_id", by="url", c_u=1, salt=SALT)

    with pytest.raises(
        gsh.InvalidParameter, match=r"^user: .*there is no user_id: the header has one column; separate"
    ):
        on_duckdb(tmp_path / "events.csv", plan)


@pytest.mark.parametrize(
    ("change", "pointer"), [({"threads": 0}, "threads"), ({"temporary": "/missing"}, "temporary"), ({}, "events")]
)
def test_mistakes_about_the_workspace_and_files_are_named(change: dict[str, Any], pointer: str) -> None:
    with pytest.raises(gsh.InvalidParameter) as error:
        gsh.publish("missing.parquet", user="u", by="k", c_u=1, epsilon=1, delta=1e-6, **change)

    assert error.value.pointer == pointer


FRAMES: dict[str, Callable[[pa.Table], Any]] = {
    "arrow": lambda table: table,
    "stream": lambda table: table.to_reader(50),
    "pandas": lambda table: table.to_pandas(types_mapper=_nullable),
    "polars": polars.from_arrow,
}


def _nullable(kind: pa.DataType) -> Any:
    """Pandas would make doubles of integers with missing values."""
    import pandas  # noqa: PLC0415

    return pandas.ArrowDtype(kind)


@pytest.mark.parametrize("frame", FRAMES)
def test_frames_with_the_arrow_interface(frame: str) -> None:
    assert on_duckdb(FRAMES[frame](EVENTS), PLAN) == bounded(as_events(EVENTS), PLAN.to_json())


def test_relations_and_tables_of_a_connection() -> None:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'Asia/Kathmandu'")
        connection.register("arrow", EVENTS)
        connection.execute('CREATE TABLE "my events" AS SELECT * FROM arrow')
        expected = bounded(as_events(EVENTS), PLAN.to_json())

        assert on_duckdb(connection.sql('SELECT * FROM "my events"'), PLAN) == expected
        assert on_duckdb("my events", PLAN, connection=connection) == expected
        with pytest.raises(gsh.InvalidParameter, match="events"):
            on_duckdb("other", PLAN, connection=connection)


@pytest.mark.parametrize("kind", ["HUGEINT", "UBIGINT", "TIMESTAMP_S", "TIMESTAMP_NS", "UUID", "ENUM('a', 'b', 'c')"])
def test_types_do_not_depend_on_the_way(kind: str) -> None:
    """A relation, a table of Arrow, and buckets on the disk: the same rows of the same types."""
    values = {
        "HUGEINT": "170141183460469231731687303715884105727 - (n % 5)",
        "UBIGINT": "18446744073709551615 - (n % 5)",
        "UUID": "md5((n % 5)::VARCHAR)",
        "ENUM('a', 'b', 'c')": "chr((97 + n % 3)::INTEGER)",
    }.get(kind, "TIMESTAMP '2026-11-16 00:00:00' + INTERVAL (n % 5) SECOND")
    plan = make_plan(user="u", by=["k"], c_u=2, salt=SALT)
    query = f"SELECT CAST({values} AS {kind}) AS k, CAST('{2**90}' || n % 7 AS HUGEINT) AS u FROM range(99) AS t(n)"
    found = []
    with duckdb.connect() as connection:
        for buckets in (None, 3):
            with workspace() as space:
                source = open_source(space, connection.sql(query), plan)
                table = aggregated(space, source, plan, lambda _progress: None, buckets)
                found.append((table.schema, sorted(table.to_pylist(), key=str)))

    assert found[0] == found[1]
    assert len(found[0][1]) == (3 if kind.startswith("ENUM") else 5)


def test_types_of_files_do_not_depend_on_the_data(tmp_path: Path) -> None:
    """A column of digits is text in CSV, and stays it: 007 and 7 are two groups."""
    (tmp_path / "events.csv").write_text("user_id,url\n1,007\n1,7\n")
    plan = make_plan(user="user_id", by=["url"], c_u=5, salt=SALT)

    assert on_duckdb(tmp_path / "events.csv", plan) == {("007",): (1,), ("7",): (1,)}


@pytest.mark.parametrize(
    ("events", "pointer"),
    [
        ("missing.parquet", "events"),
        ("events.xlsx", "events"),
        (3, "events"),
        (EVENTS.drop_columns(["url"]), "by/0"),
        (EVENTS.set_column(1, "url", EVENTS["seconds"]), "by/0"),
        (EVENTS.set_column(0, "user_id", pa.array([[1]] * 300)), "user"),
    ],
)
def test_events_that_cannot_be_read_are_refused(events: Any, pointer: str) -> None:
    with pytest.raises(gsh.Error) as error:
        on_duckdb(events, PLAN)

    assert error.value.pointer == pointer


PAID = ["0.10", "1", "-0.005", ".25", "10.990000", "", "+3.5"]


def paid_in(path: Path, cells: list[str]) -> Path:
    """A file of a user with a record for each cell."""
    if path.suffix == ".csv":
        path.write_text("".join(f"{row}\n" for row in ["user_id,url,paid", *(f"u,a,{cell}" for cell in cells)]))
    elif path.suffix == ".jsonl":
        rows = ({"user_id": "u", "url": "a", "paid": cell or None} for cell in cells)
        path.write_text("\n".join(json.dumps(row) for row in rows))
    else:
        column = pa.array([cell or None for cell in cells])
        pq.write_table(pa.table({"user_id": ["u"] * len(cells), "url": ["a"] * len(cells), "paid": column}), path)
    return path


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_decimals_in_texts_are_read_exactly(ending: str, tmp_path: Path) -> None:
    """A third digit needs a type of its own; it is rounded as a plan says, and not as DuckDB would."""
    cells = [cell for cell in PAID if cell != "-0.005"]
    types: dict[str, Any] = {"types": {"paid": "decimal(18,2)"}} if ending == "parquet" else {}
    common: dict[str, Any] = {"user": "user_id", "by": "url", "sums": {"paid": (-90, 90)}, "c_u": 1, "salt": SALT}
    plan = make_plan(**common, units={"paid": 0.01}, **types)
    finer = make_plan(**common, units={"paid": 0.01}, types={"paid": "decimal(18,3)"})

    assert on_duckdb(paid_in(tmp_path / f"a.{ending}", cells), plan) == {("a",): (1, 10 + 100 + 25 + 1099 + 350)}
    assert on_duckdb(paid_in(tmp_path / f"b.{ending}", PAID), finer) == {("a",): (1, 10 + 100 + 25 + 1099 + 350)}
    assert on_duckdb(paid_in(tmp_path / f"c.{ending}", ["-0.0051", *PAID][1:]), finer)["a",] == (1, 1584)


@pytest.mark.parametrize("cell", ["0.001", "-0.005", "1e-2", "1,5", "x", "0x1", "1.2.3"])
@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_number_with_more_digits_than_its_type_is_an_error(cell: str, ending: str, tmp_path: Path) -> None:
    """DuckDB would round it, half away from zero. The error names the column and has no cell."""
    plan = make_plan(user="user_id", by="url", sums={"paid": (-9, 9)}, units={"paid": 0.01}, c_u=1, salt=SALT)
    path = paid_in(tmp_path / f"events.{ending}", ["0.10", f'"{cell}"' if ending == "csv" else cell])

    with pytest.raises(EventsError, match="at most 2 digits after the point in paid") as error:
        on_duckdb(path, plan)
    assert cell not in str(error.value)


def test_errors_do_not_quote_cells(tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_text("user_id,url,likes\nann,a.org,secret\n")
    plan = make_plan(user="user_id", by=["url"], sums={"likes": (0, 1)}, c_u=5, salt=SALT)

    with pytest.raises(gsh.EventsError) as error:
        on_duckdb(tmp_path / "events.csv", plan)

    assert "secret" not in str(error.value)
    assert error.value.__context__ is None


def test_sums_beyond_2_53_are_an_error_and_do_not_wrap() -> None:
    events = pa.table({"user_id": ["a", "b", "c"], "url": ["x"] * 3, "likes": [2**62] * 3})
    plan = make_plan(user="user_id", by=["url"], sums={"likes": (0, 2**52)}, c_u=1, salt=SALT)

    with pytest.raises(gsh.EventsError, match="2\\^53") as error:
        on_duckdb(events, plan)

    assert error.value.pointer == "sums/likes"


def test_the_private_folder_is_private_and_goes(tmp_path: Path) -> None:
    seen = []

    def look(_progress: object) -> None:
        (folder,) = tmp_path.iterdir()
        seen.append(stat.S_IMODE(folder.stat().st_mode))

    with workspace(folder=tmp_path) as space:
        aggregated(space, open_source(space, EVENTS, PLAN), PLAN, look, 2)
    with pytest.raises(ZeroDivisionError), workspace(folder=tmp_path):
        raise ZeroDivisionError

    assert set(seen) == {0o700}
    assert list(tmp_path.iterdir()) == []


def test_a_memory_limit_must_be_one() -> None:
    with pytest.raises(gsh.InvalidParameter, match="memory_limit"), workspace(memory_limit="much"):
        raise AssertionError


PAIRS = {"user": "user_id", "by": ["url", "day"], "salt": SALT}


def test_a_preview_agrees_with_the_reference_at_once_and_in_buckets() -> None:
    asked = {"user": "user_id", "by": ["url", "day"], "c_u": [1, 3, 9], "epsilon": 5, "delta": 0.1}
    at_once, in_buckets = (preview(EVENTS, **asked, _salt=SALT, _buckets=buckets) for buckets in (None, 4))

    assert in_buckets == at_once
    assert 0 < at_once[0].bounded < at_once[1].bounded < at_once[2].bounded
    pairs = sum(row[0] for row in bounded(as_events(EVENTS), make_plan(**PAIRS, c_u=10**6).to_json()).values())
    for kept in at_once:  # by the reference, and the chance of each group one by one
        counts = [row[0] for row in bounded(as_events(EVENTS), make_plan(**PAIRS, c_u=kept.c_u).to_json()).values()]
        chances = [NormalDist(count, kept.sigma).cdf(2 * count - kept.tau_star) for count in counts]
        assert kept.bounded == pytest.approx(sum(counts) / pairs)
        assert kept.groups == pytest.approx(sum(chances))
        assert kept.published == pytest.approx(sum(map(math.prod, zip(counts, chances, strict=True))) / pairs)


def test_a_preview_of_clips_agrees_with_the_reference_at_once_and_in_buckets() -> None:
    asked: dict[str, Any] = {"user": "user_id", "by": ["url", "day"], "sums": {"likes": (0, 2)}, "events": {"rows": 3}}
    asked |= {"means": {"seconds": (8, 16)}, "units": {"seconds": 0.5}, "epsilon": 5, "delta": 0.1}

    at_once, in_buckets = (preview(EVENTS, **asked, c_u=[2, 50], _salt=SALT, _buckets=n) for n in (None, 4))

    assert in_buckets == at_once
    everything = {"likes": (-(2**40), 2**40), "rows": (0, 2**40), "seconds": (0, 2**40)}
    true = {name: added(name, ends, 10**6) for name, ends in everything.items()}
    for kept in at_once:
        assert [each.column for each in kept.clips] == ["likes"] * 4 + ["rows"] * 4 + ["seconds"] * 5
        assert {each.upper for each in kept.clips if each.column == "rows"} == {1, 3, 6, 12}
        of_mean = [(each.lower, each.upper) for each in kept.clips if each.column == "seconds"]
        assert of_mean == [(8, 10), (8, 12), (8, 16), (8, 24), (8, 40)]
        for each in kept.clips:
            unit = 0.5 if each.column == "seconds" else 1
            total = added(each.column, (each.lower, each.upper), kept.c_u)
            assert each.bias == pytest.approx((total - true[each.column]) / true[each.column])
            # One unit more: so many units more, as many values are above.
            above = (added(each.column, (each.lower, each.upper + unit), kept.c_u) - total) / unit
            below = (total - added(each.column, (each.lower - unit, each.upper), kept.c_u)) / unit
            assert each.clipped == pytest.approx((above + below) / pairs(kept.c_u))
    for c_u, few in zip((2, 50), at_once, strict=True):
        (half,) = (each for each in few.clips if (each.column, each.upper) == ("likes", 1.0))
        only = preview(EVENTS, **asked | {"sums": {"likes": (0, 1)}}, c_u=[c_u])[0]
        assert half.noise == pytest.approx(next(each for each in only.clips if each.upper == 1.0).noise)


def added(column: str, ends: tuple[float, float], c_u: int) -> float:
    """The total of a column over all kept pairs, by the reference."""
    unit = 0.5 if column == "seconds" else 1
    arguments = {"events": {"rows": int(ends[1])}} if column == "rows" else {"sums": {column: ends}}
    units = {"units": {"seconds": unit}} if column == "seconds" else {}
    plan = make_plan(**PAIRS, **arguments, **units, c_u=c_u)
    return sum(row[1] for row in bounded(as_events(EVENTS), plan.to_json()).values()) * unit


def pairs(c_u: int) -> int:
    return sum(row[0] for row in bounded(as_events(EVENTS), make_plan(**PAIRS, c_u=c_u).to_json()).values())


def test_events_that_do_not_fit_the_memory_at_once_go_to_buckets() -> None:
    """The limit is so low that DuckDB stops the query over all events: a list cannot be spilled."""
    stages: list[str] = []
    query = Query(
        whole=lambda scan: (
            f"SELECT len(list(md5(range::VARCHAR))) FROM range(10000000), (SELECT 1 FROM {scan} LIMIT 1)"
        ),
        partial=lambda scan: f"SELECT COUNT(*) AS n FROM {scan}",
        total=lambda partial: f"SELECT SUM(n) AS n FROM {partial}",
    )
    with workspace("50MB", 1) as space:
        source = open_source(space, EVENTS, PLAN)
        (table,) = answered(space, source, PLAN.user, [query], lambda progress: stages.append(progress.stage))

    assert "spooling" in stages
    assert table["n"].to_pylist() == [len(EVENTS) - EVENTS["user_id"].null_count]
