"""Events that are not there, cannot be reached, or are nested: each error says what to do, before anything is read."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import gsh
from gsh.duckdb.workspace import reading

ASKED: dict[str, Any] = {"user": "user_id", "by": "url", "c_u": 2, "epsilon": 1, "delta": 1e-6}
NESTED = pa.table(
    {
        "user_id": ["a", "b"],
        "day": [1, 2],
        "page": [{"url": "x"}, {"url": "y"}],
        "tags": [["x"], ["y"]],
        "sizes": pa.array([[("x", 1)], []], pa.map_(pa.string(), pa.int64())),
    }
)


def refused(events: Any, **change: Any) -> str:
    with pytest.raises((gsh.InvalidParameter, gsh.EventsError)) as error:
        gsh.publish(events, **ASKED | change)
    return str(error.value)


@pytest.mark.parametrize("pattern", ["day-*.parquet", "day-*.csv", "day-?.jsonl", "nowhere/*.parquet"])
def test_a_pattern_without_a_match_is_named(pattern: str, tmp_path: Path) -> None:
    assert refused(f"{tmp_path}/{pattern}") == f"events: must be files that exist: nothing matches {tmp_path}/{pattern}"


def test_a_folder_without_parquet_files_says_which_files_it_stands_for(tmp_path: Path) -> None:
    (tmp_path / "day.csv").write_text("user_id,url\n1,a\n")

    said = refused(tmp_path)

    assert f"there is no Parquet file in {tmp_path}; for others give a pattern, such as {tmp_path}/*.csv" in said
    assert len(gsh.publish(f"{tmp_path}/*.csv", **ASKED)) == 0


@pytest.mark.parametrize("place", ["foo://bucket/day.parquet", "hdfs://host/day.parquet"])
def test_a_scheme_that_duckdb_does_not_have_is_named_with_those_that_it_has(place: str) -> None:
    said = refused(place)

    assert f"{place.partition('/')[0]}// is not among file, s3" in said
    assert "pyarrow.dataset, or use Spark" in said


def test_the_folder_of_a_store_needs_a_pattern() -> None:
    assert "such as s3://bucket/day/**/*.parquet" in refused("s3://bucket/day/")


def _raising(error: duckdb.Error) -> Callable[[], None]:
    @reading
    def read() -> None:
        raise error

    return read


def test_a_missing_extension_is_named() -> None:
    """DuckDB downloads it when it is first needed. A test must not, so that the error is made here."""
    missing = "An error occurred while trying to automatically install the required extension 'httpfs:\nFailed to …"

    with pytest.raises(gsh.EventsError, match="need DuckDB's extension httpfs; INSTALL it once") as error:
        _raising(duckdb.Error(missing))()

    assert "Failed" not in str(error.value)


def test_a_store_that_refuses_leads_to_credentials() -> None:
    with pytest.raises(gsh.EventsError, match=r"the store answered .*; make a persistent secret"):
        _raising(duckdb.HTTPException("HTTP Error: 403 for s3://bucket/secret"))()


def as_file(folder: Path) -> str:
    pq.write_table(NESTED, folder / "nested.parquet")
    return str(folder / "nested.parquet")


SHAPES: dict[str, Callable[[Path], Any]] = {
    "a file": as_file,
    "a frame": lambda _folder: NESTED,
    "a relation": lambda folder: duckdb.read_parquet(as_file(folder)),
    "a dataset": lambda folder: pyarrow.dataset.dataset(as_file(folder)),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("change", "pointer", "advice"),
    [
        ({"by": "page"}, "by/0", "such as page.field AS field"),
        ({"by": "tags"}, "by/0", "tags is a struct, a list or a map"),
        ({"by": "page.url"}, "by/0", "there is no page.url; select what is inside as plain columns first"),
        ({"user": "sizes", "by": "day"}, "user", "sizes is a struct, a list or a map"),
        ({"by": "day", "sums": {"sizes": (0, 1)}}, "sums/sizes", "such as sizes.field AS field"),
        ({"by": "urll"}, "by/0", "there is no urll; there are user_id, day, page, tags, sizes"),
    ],
)
def test_a_nested_column_is_refused_with_what_to_select(
    shape: str, change: dict[str, Any], pointer: str, advice: str, tmp_path: Path
) -> None:
    said = refused(SHAPES[shape](tmp_path), **change)

    assert said.startswith(f"{pointer}: ")
    assert advice in said


def test_what_the_advice_selects_can_be_published(tmp_path: Path) -> None:
    plain = duckdb.sql(f"SELECT user_id, page.url AS url FROM '{as_file(tmp_path)}'")

    assert len(gsh.publish(plain, **ASKED)) == 0


def test_a_dataset_is_published_as_its_files_are(tmp_path: Path) -> None:
    """Of the columns, those of the plan alone are read."""
    for day in (1, 2):
        events = pa.table({"user_id": [f"{day}-{i}" for i in range(300)], "url": ["a", "b", "c"] * 100})
        pq.write_table(events.append_column("seconds", pa.nulls(300, pa.int64())), tmp_path / f"day-{day}.parquet")
    clear = gsh.Mechanism(c_u=2, tau_star=1.5, sigma=0.01)
    mechanism = {"epsilon": None, "delta": None, "mechanism": clear, "_salt": "0" * 32}

    files = gsh.publish(tmp_path, **ASKED | mechanism).table
    dataset = gsh.publish(pyarrow.dataset.dataset(tmp_path), **ASKED | mechanism).table

    assert files is not None
    assert dataset is not None
    assert files["url"].to_pylist() == dataset["url"].to_pylist() == ["a", "b", "c"]
    assert [round(each) for each in dataset["count"].to_pylist()] == [200, 200, 200]
