"""What a hostile record, file name, column name or frame can do: nothing to others, and no cell is quoted."""

import re
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import gsh
from gsh.duckdb.aggregates import aggregated
from gsh.duckdb.sources import open_source
from gsh.duckdb.workspace import workspace
from gsh.errors import EventsError
from gsh.events.bounding import bounding_query
from gsh.events.plan import make_plan
from tests.gsh.events.tables import as_events
from tests.gsh.events.test_duckdb import SALT, on_duckdb
from tests.reference.bounding import bounded

pytestmark = pytest.mark.slow

PLAN = make_plan(user="u", by="k", c_u=2, salt=SALT)
HOSTILE = {
    "csv": ['v,"a\\""b"', "v,'x'", 'v,"a,b"', "v;a|b\tc,x", "#v,a"],
    "jsonl": ['{"u": "v", "k": "z", "other": [1, {"x": 2}]}', '{"u": "v", "k": "2026-01-01"}', '{"u": 7, "k": 1.5}'],
}


@pytest.mark.parametrize(("ending", "record"), [(ending, record) for ending in HOSTILE for record in HOSTILE[ending]])
def test_a_record_does_not_change_how_others_are_read(ending: str, record: str, tmp_path: Path) -> None:
    """Nothing is guessed from the records: quotes, delimiters, comments, types."""
    if ending == "csv":
        texts = ('u{0},"say ""hi {0}"""', '"u{0}",q', "u{0},'k'")
        lines = ["u,k", *(text.format(n) for n in range(50) for text in texts)]
    else:
        lines = [f'{{"u": "u{n}", "k": "{key}"}}' for n in range(50) for key in "abc"]
    found = []
    for number, more in enumerate(([], [record])):
        path = tmp_path / f"events{number}.{ending}"
        path.write_text("\n".join([*lines, *more, ""]))
        found.append(on_duckdb(path, PLAN))
    without, with_it = found

    assert sum(row[0] for row in without.values()) == 100
    assert len({key for key in {*without, *with_it} if without.get(key) != with_it.get(key)}) == 1


def test_errors_list_no_header_and_no_cell(tmp_path: Path) -> None:
    (tmp_path / "headless.csv").write_text("alice@secret.org,https://clinic.example\nbob,b\n")
    (tmp_path / "days.csv").write_text('u,k\n1,"gsh: a fraction in 5365637265"\n')
    dates = make_plan(user="u", by="k", c_u=2, salt=SALT, types={"k": "date"})
    for name, asked in (("headless.csv", PLAN), ("days.csv", dates)):
        with pytest.raises(gsh.Error) as error:
            on_duckdb(tmp_path / name, asked)
        assert not re.search("alice|clinic|Secre|fraction", str(error.value))
        assert error.value.__context__ is None


def test_files_with_other_headers_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("u,k\n1,a\n")
    (tmp_path / "b.csv").write_text("k,u\n1,a\n")

    with pytest.raises(gsh.InvalidParameter, match="same header"):
        on_duckdb(tmp_path / "*.csv", PLAN)


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_a_path_that_exists_is_no_pattern(ending: str, tmp_path: Path) -> None:
    for name, user in (("day1", "u"), ("day[1]", "v")):
        table = pa.table({"u": [user], "k": [user]})
        if ending == "parquet":
            pq.write_table(table, tmp_path / f"{name}.parquet")
        elif ending == "csv":
            pyarrow.csv.write_csv(table, tmp_path / f"{name}.csv")
        else:
            (tmp_path / f"{name}.jsonl").write_text(f'{{"u": "{user}", "k": "{user}"}}')
    folder = tmp_path / "t[1]"
    folder.mkdir()

    assert on_duckdb(tmp_path / f"day[1].{ending}", PLAN) == {("v",): (1,)}
    with workspace(folder=folder) as space:
        source = open_source(space, tmp_path / f"day[1].{ending}", PLAN)
        assert len(aggregated(space, source, PLAN, lambda _progress: None, 2)) == 1


def test_folders_of_a_week_are_columns_of_text(tmp_path: Path) -> None:
    for day in ("2026-1-1", "2026-01-01"):
        (tmp_path / f"k={day}").mkdir()
        (tmp_path / f"k={day}" / "part.csv").write_text("u\na\n")

    assert set(on_duckdb(tmp_path / "*" / "*.csv", PLAN)) == {("2026-1-1",), ("2026-01-01",)}


@pytest.mark.parametrize("name", ["_bucket", "_BUCKET", "c0", "_gsh_partial"])
def test_columns_may_have_the_names_that_buckets_use(name: str) -> None:
    events = pa.table({"u": [f"u{n % 30}" for n in range(300)], name: [f"k{n % 7}" for n in range(300)]})
    plan = make_plan(user="u", by=name, c_u=2, salt=SALT)

    assert on_duckdb(events, plan, 5) == on_duckdb(events, plan) == bounded(as_events(events), plan.to_json())


@pytest.mark.parametrize("kind", ["DATE", "TIMESTAMP", "TIMESTAMPTZ"])
def test_infinite_times_have_lots_of_their_own(kind: str) -> None:
    """One user has three keys and keeps one: always the same, with any other users and any order of rows."""
    plan = make_plan(user="u", by="k", c_u=1, salt=SALT)
    kept = set()
    with duckdb.connect() as connection:
        for others, order in [(others, order) for others in range(0, 40, 8) for order in ("", "DESC")]:
            mine = f"SELECT 'a' AS u, unnest(['infinity', '-infinity', NULL])::{kind} AS k"
            rest = f"SELECT 'o' || range, '2026-01-01'::{kind} FROM range({others})"
            rows = connection.sql(f"SELECT * FROM ({mine} UNION ALL {rest}) ORDER BY k {order}").to_arrow_table()
            connection.register("shuffled", rows)
            query = bounding_query(plan, {"u": "string", "k": kind.lower()}, "duckdb", "shuffled")
            found = connection.execute(f"SELECT k::VARCHAR FROM ({query})").fetchall()
            kept |= {key for (key,) in found if key is None or "infinity" in key}

    assert len(kept) == 1


class Leaking:
    """A frame whose conversion quotes a cell."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        raise ValueError("Could not convert 'SECRET'")


class LeakingTable(Leaking):
    def __len__(self) -> int:
        return 1


@pytest.mark.parametrize("frame", [Leaking(), LeakingTable()])
def test_errors_of_frames_do_not_quote_cells(frame: Leaking) -> None:
    with pytest.raises(EventsError) as error:
        on_duckdb(frame, PLAN)

    assert "SECRET" not in str(error.value)
    assert error.value.__context__ is None


def test_a_relation_that_fails_does_not_lock_its_connection() -> None:
    with duckdb.connect() as connection:
        rows = connection.sql("SELECT 'a' AS u, CAST('x' || range AS INTEGER) AS k FROM range(3)")
        with pytest.raises(EventsError):
            on_duckdb(rows, PLAN)
        assert connection.sql("SELECT 42").fetchall() == [(42,)]
