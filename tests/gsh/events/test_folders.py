"""Folders such as day=2026-11-16 give a column only where nothing else could: they replace no column of a file."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import gsh
from gsh.events.plan import make_plan
from tests.gsh.events.test_duckdb import SALT, on_duckdb

FORMATS = ["parquet", "csv", "jsonl"]
PLAN = make_plan(user="user", by="url", c_u=3, salt=SALT)


def write(path: Path, **columns: list[Any]) -> None:
    """Events in the format that the name of the file says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table(columns)
    match path.suffix:
        case ".parquet":
            pq.write_table(table, path)
        case ".csv":
            pyarrow.csv.write_csv(table, path)
        case _:
            path.write_text("\n".join(map(json.dumps, table.to_pylist())))


def refused(path: Path) -> str:
    """The words of the refusal, which comes before anything is charged: from the opening of the source."""
    with pytest.raises(gsh.InvalidParameter) as error:
        on_duckdb(path, PLAN)
    return str(error.value)


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("folder", ["url=FORGED", "URL=FORGED", "u%72l=FORGED", "user=FORGED", "day=1/User=1/x=2"])
def test_a_folder_replaces_no_column_of_a_file(folder: str, ending: str, tmp_path: Path) -> None:
    write(tmp_path / "events" / folder / f"a.{ending}", user=["u", "v"], url=["a", "b"])
    path = tmp_path / "events" / "**" / f"*.{ending}"

    assert "either in the files or in the names of folders, not in both" in refused(path)


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("first", ["a", "z"])
def test_a_clash_in_one_file_of_many_is_found(first: str, ending: str, tmp_path: Path) -> None:
    """Also if the first file, whose columns are those of the table, has none."""
    write(tmp_path / "url=x" / f"{first}.{ending}", user=["u"])
    write(tmp_path / "url=y" / f"m.{ending}", user=["v"], url=["a"])

    assert "events: must" in refused(tmp_path / "*" / f"*.{ending}")


def test_a_table_in_a_service_is_not_charged_for_a_clash(service: gsh.Client, budget: str, tmp_path: Path) -> None:
    write(tmp_path / "user=FORGED" / "a.parquet", user=["u", "v"], url=["a", "b"])
    before = service.budgets.get(budget).spent

    with pytest.raises(gsh.InvalidParameter, match="not in both"):
        gsh.publish(
            tmp_path, user="user", by=["url"], c_u=3, epsilon=1, delta=1e-6, service=service, budget=budget, once="f"
        )
    assert service.budgets.get(budget).spent == before


@pytest.mark.parametrize("ending", FORMATS)
def test_users_are_not_taken_from_folders(ending: str, tmp_path: Path) -> None:
    write(tmp_path / "user=u" / f"a.{ending}", url=["a", "b"])

    assert "user: must be a column of the files" in refused(tmp_path / "*" / f"*.{ending}")


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("other", ["b.{}", "x/b.{}", "URL=y/b.{}", "url=y/url=z/b.{}", "url=y/Url=z/b.{}"])
def test_files_outside_of_the_folders_are_refused(other: str, ending: str, tmp_path: Path) -> None:
    """Mixed, nested twice, and in other letters."""
    write(tmp_path / "url=x" / f"a.{ending}", user=["u"])
    write(tmp_path / other.format(ending), user=["v"])

    assert "events: must all be in one folder url=…" in refused(tmp_path / "**" / f"*.{ending}")


@pytest.mark.parametrize("ending", FORMATS)
def test_a_column_that_only_folders_have_is_read_from_them(ending: str, tmp_path: Path) -> None:
    """Decoded, as text, with missing values; below other folders."""
    for number, folder in enumerate(["a%2Fb c", "2026-01-01", "07", "__HIVE_DEFAULT_PARTITION__"]):
        write(tmp_path / "day=1" / f"url={folder}" / f"a.{ending}", user=[f"u{number}"], day=["x"])

    found = on_duckdb(tmp_path / "**" / f"*.{ending}", PLAN)

    assert found == {(url,): (1,) for url in ("a/b c", "2026-01-01", "07", None)}


@pytest.mark.parametrize("ending", FORMATS)
def test_folders_of_columns_that_the_plan_does_not_name_are_not_read(ending: str, tmp_path: Path) -> None:
    write(tmp_path / "day=1" / f"a.{ending}", user=["u"], url=["a"], day=["x"])
    write(tmp_path / "week=1" / f"b.{ending}", user=["v"], url=["a"], day=["x"])

    assert on_duckdb(tmp_path / "**" / f"*.{ending}", PLAN) == {("a",): (2,)}


def test_the_private_folder_gives_no_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Streams go there first. Its path is whatever TMPDIR says."""
    folder = tmp_path / "user=FORGED" / "url=FORGED"
    folder.mkdir(parents=True)
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    table = pa.table({"user": ["u", "v"], "url": ["a", "b"]})

    assert on_duckdb(table.to_reader(), PLAN) == {("a",): (1,), ("b",): (1,)}
    assert on_duckdb(table, PLAN, 2) == {("a",): (1,), ("b",): (1,)}
