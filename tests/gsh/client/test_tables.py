"""Every kind of table arrives whole: all of them are the same request, by content, as the service sees it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import httpx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gsh
from gsh.client import Release
from gsh.client.connections import Spool
from gsh.client.operations import MOST_TABLE_BYTES
from gsh.client.uploads import SentTable, form
from gsh.histogram.roles import Roles
from tests.app.process import Service
from tests.gsh.client.conftest import AT_ONCE
from tests.gsh.client.modes import MODES, Mode, outcome

pytestmark = pytest.mark.slow

ROWS = 3000
COLUMNS = gsh.Aggregates(names=["likes"], covariance=[[4]], sensitivity=gsh.box(lower=[0], upper=[1]))
MECHANISM = gsh.Mechanism(c_u=2, tau=1, tau_star=30, sigma=4, aggregates=COLUMNS)
TABLE = pa.table(
    {
        "url": [f"https://example.org/{place % 1000}" for place in range(ROWS)],
        "country": [("FR", "US", None)[place // 1000] for place in range(ROWS)],
        "users": [40 + place % 70 for place in range(ROWS)],
        "likes": [place / 8 for place in range(ROWS)],
    }
)
ROLES = {"users": "users", "keys": ["url", "country"]}


def written(folder: Path, name: str, write: Callable[[pa.Table, Path], object]) -> Path:
    write(TABLE, folder / name)
    return folder / name


def write_stream(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=700)


def write_file(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=700)


KINDS: dict[str, Callable[[Path], Any]] = {
    "pyarrow": lambda _: TABLE,
    "pyarrow batch": lambda _: TABLE.combine_chunks().to_batches()[0],
    "pyarrow stream": lambda _: TABLE.to_reader(max_chunksize=1000),
    "pandas": lambda _: TABLE.to_pandas(),
    "pandas with an index": lambda _: TABLE.to_pandas().sample(frac=1, random_state=1),
    "pandas of Arrow": lambda _: TABLE.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda _: pl.from_arrow(TABLE),
    "polars categories": lambda _: pl.from_arrow(TABLE).with_columns(pl.col("country").cast(pl.Categorical)),
    "duckdb": lambda _: duckdb.from_arrow(TABLE),
    "duckdb query": lambda _: duckdb.sql("FROM moved ORDER BY likes DESC") if moved is not None else None,
    "a path of Parquet": lambda folder: written(folder, "table.parquet", pq.write_table),
    "the name of Parquet": lambda folder: str(written(folder, "table.PQ", pq.write_table)),
    "a path of CSV": lambda folder: written(folder, "table.csv", pa.csv.write_csv),
    "a path of Feather": lambda folder: written(folder, "table.feather", pa.feather.write_feather),
    "a path of an Arrow file": lambda folder: written(folder, "table.arrow", write_file),
    "a path of an Arrow stream": lambda folder: written(folder, "table.arrows", write_stream),
}
moved = TABLE
"""DuckDB finds it by its name."""


@pytest.fixture(scope="module")
def released(service: gsh.Client) -> Release:
    service.budgets.put("kinds", epsilon=1000, delta=0.5)
    return service.release(TABLE, MECHANISM, **ROLES, budget="kinds", once="kinds")  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_table_is_the_same_release(
    running: Service, released: Release, tmp_path: Path, kind: str, mode: Mode
) -> None:
    table = KINDS[kind](tmp_path)
    options = ROLES | {"budget": "kinds", "once": "kinds"}
    again = outcome(mode, running.url, lambda client: client.release(table, MECHANISM, **options), AT_ONCE)

    assert again.is_replayed
    assert again.table.schema.metadata == released.table.schema.metadata
    assert again.table.to_pylist() == released.table.to_pylist()


def test_a_release_has_its_certificate_and_goes_to_other_kinds(released: Release, service: gsh.Client) -> None:
    certificate = released.certificate

    assert 0 < len(released) <= ROWS
    assert (released.key_columns, released.count_column, released.value_columns) == (
        ("url", "country"),
        "users",
        ("likes",),
    )
    assert (released.once, released.mechanism) == ("kinds", MECHANISM)
    assert (certificate.budget.id, certificate["mu"], certificate.record) == ("kinds", MECHANISM.mu, None)
    assert pa.table(released.to_pandas()).to_pylist() == released.table.to_pylist()
    assert released.to_polars().to_arrow().to_pylist() == released.table.to_pylist()
    assert duckdb.sql("SELECT COUNT(*) FROM released").fetchall() == [(len(released),)]
    assert service.releases.verify(certificate).made_here
    shown = f"<Release 'kinds': {len(released)} groups of url, country, users, likes; "
    assert repr(released).startswith(shown + "1/")


def test_a_release_says_where_the_true_numbers_are(released: Release) -> None:
    found, true = released.intervals(0.999999), {(row["url"], row["country"]): row for row in TABLE.to_pylist()}
    rows = [true[row["url"], row["country"]] for row in released.table.to_pylist()]

    for interval, name in ((found.counts, "users"), (found.values["likes"], "likes")):
        numbers = np.array([row[name] for row in rows])
        covered = (interval.low <= numbers) & (numbers <= interval.high)
        # At most 6000 numbers, each missed with probability 10⁻⁶: more than 3 with one of 10⁻¹⁰.
        assert (~covered).sum() <= 3
    expected = gsh.intervals(MECHANISM, counts=released.table["users"].to_numpy(), level=0.5)
    assert np.array_equal(released.intervals(0.5).counts.low, expected.counts.low)
    assert released.total().values["likes"].low < released.total().values["likes"].high


def test_a_table_that_was_released_with_intervals_has_the_same_roles(running: Service, service: gsh.Client) -> None:
    """Another client may have asked for them."""
    service.budgets.put("with-intervals", epsilon=1000, delta=0.5)
    columns = {"names": ["likes"], "covariance": [[4]], "sensitivity": {"kind": "box", "lower": [0], "upper": [1]}}
    mechanism = {"c_u": 2, "tau": 1, "tau_star": 30, "sigma": 4, "aggregates": columns}
    groups = {"keys": ["a", "b"], "counts": [500, 600], "values": {"likes": [1, 2]}}
    answer = httpx.post(
        f"{running.url}/release",
        json={"mechanism": mechanism, "groups": groups, "budget": "with-intervals", "intervals": 0.9},
        headers={"Idempotency-Key": "with-intervals"},
    )
    assert answer.status_code == 200
    stored = service.releases.load("with-intervals")

    assert len(stored.table.column_names) == 3 + 6
    assert (stored.key_columns, stored.count_column, stored.value_columns) == (("key",), "count", ("likes",))
    assert stored.intervals(0.9).counts.low.tolist() == stored.table["count_low"].to_pylist()


def test_a_stored_release_comes_back_whole(released: Release, service: gsh.Client) -> None:
    recorded = service.releases["kinds"]

    assert recorded.table.equals(released.table, check_metadata=True)
    assert recorded.load().certificate == released.certificate
    assert recorded.certificate.to_dict() | {"record": None} == released.certificate.to_dict()
    assert recorded.certificate.record.answer_sha256 == recorded.stored.sha256
    parquet = pq.read_table(pa.BufferReader(pa.py_buffer(recorded.answer("parquet"))))
    assert parquet.to_pylist() == released.table.to_pylist()
    assert bytes(recorded.answer("csv")).startswith(b"url,country,users,likes\n")
    assert bytes(recorded.answer("json")).startswith(b'{"groups":')
    assert service.releases.certificate_text("kinds", "yaml").startswith("#")
    assert service.releases.certificate_text("kinds", "html").lstrip().lower().startswith("<!doctype html")


def test_without_once_a_stream_is_not_kept_in_memory(service: gsh.Client) -> None:
    """It is sent as it is read: the reader is never ahead by more than what begins a body."""
    read: list[int] = []

    def batches() -> Any:
        for place in range(50):
            read.append(place)
            yield pa.record_batch({"url": np.arange(20_000) + 20_000 * place, "users": np.full(20_000, 50)})

    schema = pa.schema({"url": pa.int64(), "users": pa.int64()})
    reader = pa.RecordBatchReader.from_batches(schema, batches())
    body = form({}, [SentTable(reader, Roles(("url",), "users", ()), None)], is_repeated=False)
    assert not body.is_repeatable
    content = body.content()
    assert not isinstance(content, bytes)
    assert 0 < len(read) < 10
    sizes = [len(chunk) for chunk in content]
    assert read == list(range(50))
    assert max(sizes) < 2 << 20
    assert sum(sizes) > 16_000_000


def test_a_long_answer_is_mapped_and_a_short_one_is_not() -> None:
    for size in (0, 1 << 20, (1 << 20) + 1, 5 << 20):
        spool = Spool(MOST_TABLE_BYTES)
        for start in range(0, size, 70_000):
            spool.write(bytes([start % 251]) * min(70_000, size - start))
        content = spool.answer(httpx.Response(200)).content
        spool.close()
        assert content.size == size
        if size:
            assert content.to_pybytes()[-1] == (size - 1) // 70_000 * 70_000 % 251


def test_a_long_frame_of_several_chunks_arrives_whole(service: gsh.Client, budget: str) -> None:
    """Polars: the categories of a slice are not those of the frame, and its views refer to all texts."""
    parts = [
        pl.DataFrame({"url": [f"{part}-{row} of a text that is not short" for row in range(70_000)]})
        for part in range(2)
    ]
    frame = pl.concat(parts, rechunk=False).with_columns(
        pl.col("url").str.slice(0, 3).cast(pl.Categorical).alias("country"), pl.lit(50).alias("users")
    )
    assert frame.n_chunks() == 2
    options: dict[str, Any] = {"users": "users", "keys": ["url", "country"], "budget": budget, "once": budget}
    mechanism = gsh.Mechanism(c_u=2, tau_star=30, sigma=4)
    first = service.release(frame, mechanism, **options)
    again = service.release(frame.cast({"country": pl.String}).rechunk().to_arrow(), mechanism, **options)

    assert again.is_replayed
    assert set(first.table["url"].to_pylist()) == set(again.table["url"].to_pylist())
    sizes = [
        len(chunk)
        for chunk in form(
            {}, [SentTable(frame, Roles(("url", "country"), "users", ()), None)], is_repeated=True
        ).content()
    ]
    assert max(sizes) < 4 << 20


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=8)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.one_of(st.none(), NAMES), max_size=20, unique=True), NAMES, st.integers(1, 30), st.sampled_from([0, 1])
)
def test_tables_of_any_names_and_sizes_arrive(
    service: gsh.Client, urls: list[str | None], name: str, rows: int, is_dictionary: int
) -> None:
    """A dry run reads the whole table, and refuses one that is damaged."""
    keys = pa.array(urls, pa.string())
    table = pa.table(
        {name: keys.dictionary_encode() if is_dictionary else keys, f"{name}+": pa.array(range(len(urls)), pa.int64())}
    )

    service.dry_run(
        table.to_reader(max_chunksize=rows), gsh.Mechanism(c_u=2, tau_star=30, sigma=4), users=f"{name}+", keys=[name]
    )


DAMAGED: dict[str, bytes] = {
    "table.parquet": b"PAR1",
    "table.arrow": b"ARROW1",
    "table.arrows": b"x",
    "table.csv": b'"',
}


@pytest.mark.parametrize("name", [*DAMAGED, "missing.parquet", "missing.csv"])
def test_a_file_that_cannot_be_read_is_refused_without_its_content(
    service: gsh.Client, tmp_path: Path, name: str
) -> None:
    if name in DAMAGED:
        (tmp_path / name).write_bytes(DAMAGED[name] + b"secret,users\nsecret,x\n")
    with pytest.raises(gsh.InvalidGroups) as caught:
        service.release(tmp_path / name, MECHANISM, **ROLES)  # type: ignore[arg-type]

    assert "secret" not in f"{caught.value} {caught.value.__cause__} {caught.value.__context__}"


def test_a_file_of_another_kind_is_refused(service: gsh.Client, tmp_path: Path) -> None:
    with pytest.raises(gsh.InvalidGroups, match=r"table: must be a file whose name ends with one of \.parquet, \.pq"):
        service.release(tmp_path / "table.xlsx", MECHANISM, **ROLES)  # type: ignore[arg-type]


def test_the_types_of_csv_can_be_said(service: gsh.Client, tmp_path: Path) -> None:
    (tmp_path / "days.csv").write_text("day,users\n2026-11-16,500\n2026-11-17,600\n")
    released = service.release(
        tmp_path / "days.csv",
        gsh.Mechanism(c_u=2, tau_star=30, sigma=4),
        users="users",
        keys=["day"],
        csv_types={"day": "date", "users": "int64"},
    )

    assert released.table.schema.field("day").type == pa.date32()


def test_a_stream_that_breaks_off_is_not_released(service: gsh.Client, budget: str) -> None:
    """Not the rows that came before either: neither at once, nor after a long beginning was sent."""
    for rows in (10, 200_000):

        def batches(rows: int = rows) -> Any:
            yield pa.record_batch({"url": np.arange(rows), "users": np.full(rows, 50)})
            raise ValueError("secret")

        schema = pa.schema({"url": pa.int64(), "users": pa.int64()})
        for once in ({}, {"budget": budget, "once": budget}):
            stream = pa.RecordBatchReader.from_batches(schema, batches())
            with pytest.raises(gsh.InvalidGroups, match="to its end: reading it raised ArrowInvalid") as caught:
                service.release(stream, gsh.Mechanism(c_u=2, tau_star=30, sigma=4), users="users", keys=["url"], **once)
            assert "secret" not in f"{caught.value} {caught.value.__cause__} {caught.value.__context__}"

    assert list(service.releases.list(budget=budget)) == []
