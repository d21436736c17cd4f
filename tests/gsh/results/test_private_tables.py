"""One interface: what publish gives, what a client gets and what is read have the same members with the same values."""

import json
import pickle
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import gsh
from gsh.certificate import Certificate
from gsh.client import Release
from gsh.results.private_tables import LazyTables
from tests.gsh.results.files import COUNTRIES, MECHANISM, TABLES, together, write_all

EVENTS = pa.table(
    {
        "user_id": [f"u{user}" for user in range(600) for _ in range(2)],
        "url": [f"u{(user + k) % 3}" for user in range(600) for k in range(2)],
        "country": [("DE", "FR")[user % 2] for user in range(600) for _ in range(2)],
        "likes": [1] * 1200,
    }
)
SEVERAL = {
    "by_country": gsh.Table(by=["country"], public_keys=["DE", "FR"], c_u=1),
    "detail": gsh.Table(by=["url", "country"], c_u=4, sums={"likes": (0, 1)}),
}
TARGET: dict[str, Any] = {"user": "user_id", "epsilon": 4, "delta": 1e-4}


def one(folder: Path) -> list[gsh.PrivateTables]:
    """The same table as it was published, as a client gets it, and as it is read."""
    path = folder / "private.parquet"
    published = gsh.publish(EVENTS, by=["url", "country"], sums={"likes": (0, 1)}, c_u=4, to=path, **TARGET)
    released = Release({"": published.table}, published.certificate, is_replayed=False)
    return [published, released, gsh.read(path)]


def several(folder: Path) -> list[gsh.PrivateTables]:
    published = gsh.publish(EVENTS, tables=SEVERAL, to=folder / "private", **TARGET)
    released = Release(published.tables, published.certificate, is_replayed=False)
    return [published, released, gsh.read(folder / "private")]


@pytest.fixture(scope="module", params=["one", "several"])
def results(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[gsh.PrivateTables]:
    """Results of one table: the only one, or one of several."""
    folder = tmp_path_factory.mktemp(request.param)
    return one(folder) if request.param == "one" else [result["detail"] for result in several(folder)]


def test_every_member_is_the_same(results: list[gsh.PrivateTables]) -> None:
    published = results[0]
    expected = gsh.intervals(
        published.mechanism,
        counts=published.table["count"].to_numpy(),
        values={"likes": published.table["likes"].to_numpy()},
        level=0.9,
    )
    total = gsh.total(published.mechanism, counts=published.table["count"].to_numpy())
    for result in results:
        assert isinstance(result, gsh.PrivateTables)
        assert isinstance(result.certificate, Certificate)
        assert result.table.equals(published.table)
        assert result.certificate == published.certificate
        assert result.mechanism == published.mechanism
        assert (result.key_columns, result.count_column, result.value_columns) == (
            ("url", "country"),
            "count",
            ("likes",),
        )
        assert len(result) == 6
        assert np.array_equal(result.intervals(0.9).counts.low, expected.counts.low)
        assert np.array_equal(result.intervals(0.9).values["likes"].high, expected.values["likes"].high)
        assert result.total().counts == total.counts
        assert result.intervals_cover == (
            "Intervals cover the bounded numbers: each user in at most 4 groups, likes clipped to 0 … 1. What bounding "
            "removed is not in them."
        )


def test_every_result_is_a_table_for_other_programs(results: list[gsh.PrivateTables]) -> None:
    for result in results:
        rows = result.table.to_pylist()
        assert pa.table(result).to_pylist() == rows
        assert result.to_pandas().to_dict("records") == rows
        assert result.to_polars().to_dicts() == rows
        assert pd.DataFrame.from_arrow(result).to_dict("records") == rows
        assert pl.DataFrame(result).to_dicts() == rows
        assert duckdb.sql("SELECT count(*) FROM result").fetchall() == [(6,)]


def test_a_copy_is_the_same(results: list[gsh.PrivateTables]) -> None:
    for result in results:
        copy = pickle.loads(pickle.dumps(result))
        assert type(copy) is type(result)
        assert copy.table.equals(result.table)
        assert copy.certificate == result.certificate
        assert repr(copy) == repr(result)
        with pytest.raises(TypeError):
            copy.tables["x"] = pa.table({})  # type: ignore[index]


def test_of_several_tables_each_has_the_interface_by_its_name(tmp_path: Path) -> None:
    results = several(tmp_path)
    rest = results[0].rest("by_country")
    for result in results:
        assert list(result.tables) == ["by_country", "detail"]
        assert result.mechanisms.keys() == result.roles.keys() == result.tables.keys()
        assert result.rest("by_country").equals(rest)
        assert result.rest("by_country", "detail", level=0.5).column_names == rest.column_names
        assert len(result) == 8
        for name in result.tables:
            assert result[name].table.equals(result.tables[name])
            assert result[name].mechanism == result.mechanisms[name]
        for member in ("table", "mechanism", "key_columns", "count_column", "value_columns", "intervals_cover"):
            with pytest.raises(gsh.InvalidParameter, match=r"^table: .* by_country, detail"):
                getattr(result, member)
        for ask in (result.intervals, result.total, result.to_pandas, result.to_polars, result.__arrow_c_stream__):
            with pytest.raises(gsh.InvalidParameter, match=r"^table: .* by_country, detail"):
                ask()
        with pytest.raises(gsh.InvalidParameter, match=r"^table: must be one of by_country, detail"):
            _ = result["url"]
    with pytest.raises(gsh.InvalidParameter, match=r"^parent: must be one of several tables"):
        one(tmp_path)[1].rest("by_country")


def test_a_certificate_can_be_written_and_read(results: list[gsh.PrivateTables], tmp_path: Path) -> None:
    """It is a mapping, and its JSON is that of a file."""
    for result in results:
        said = result.certificate
        assert said["epsilon"] == said.epsilon == 4
        (tmp_path / "certificate.json").write_text(said.to_json())
        assert gsh.read_certificate(tmp_path / "certificate.json") == said
        assert json.loads(said.to_json()) == said.to_dict()


def test_tables_are_read_when_they_are_first_used(tmp_path: Path) -> None:
    write_all(tmp_path)
    reads = []

    def read() -> Any:
        reads.append(1)
        return gsh.read(tmp_path / "folder-csv").tables

    result = gsh.PrivateTables(LazyTables(["by_country", "detail"], read), together())

    assert list(result.tables) == ["by_country", "detail"]
    assert result.mechanisms == {"by_country": COUNTRIES, "detail": MECHANISM}
    assert (len(result.tables), reads) == (2, [])
    assert result["detail"].table.equals(TABLES["detail"])
    assert result.tables["by_country"].equals(TABLES["by_country"])
    assert reads == [1]
    with pytest.raises(KeyError):
        _ = result.tables["url"]
    assert reads == [1]
