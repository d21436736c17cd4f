"""gsh.read: every form that is written comes back whole, and what is missing or contradicts is named."""

import io
import json
import re
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import gsh
from gsh.certificate import Certificate
from gsh.histogram.conversion import write_rows
from gsh.histogram.roles import Roles
from tests.gsh.results.files import (
    COUNTRIES,
    MECHANISM,
    ROLES,
    TABLES,
    released,
    together,
    write_all,
    write_one,
    write_part,
    write_spark,
)

FILES = ("private.parquet", "private.arrow", "private.arrows", "private.csv")
FOLDERS = ("folder-parquet", "folder-arrow", "folder-arrows", "folder-csv", "all.zip")


def refused(path: Path | str, **options: Any) -> str:
    with pytest.raises(gsh.FileError) as error:
        gsh.read(path, **options)
    assert error.value.__cause__ is None
    assert error.value.__context__ is None
    return str(error.value)


@pytest.mark.parametrize("name", FILES)
def test_a_table_comes_back_from_every_format(tmp_path: Path, name: str) -> None:
    said = write_one(tmp_path)

    found = gsh.read(tmp_path / name)

    assert found.table.equals(TABLES["detail"])
    assert (found.certificate, found.mechanism) == (said, MECHANISM)
    assert (found.key_columns, found.count_column, found.value_columns) == (("url", "country"), "count", ("likes",))
    assert Certificate.from_json(json.loads(found.table.schema.metadata[b"certificate"])) == said


@pytest.mark.parametrize("name", FOLDERS)
def test_tables_come_back_from_every_form(tmp_path: Path, name: str) -> None:
    said = write_all(tmp_path)

    found = gsh.read(str(tmp_path / name))

    assert {each: table.equals(TABLES[each]) for each, table in found.tables.items()} == dict.fromkeys(TABLES, True)
    assert found.certificate == said
    assert found.mechanisms == {"by_country": COUNTRIES, "detail": MECHANISM}
    assert found.roles == ROLES
    assert len(found) == 7
    for each, table in found.tables.items():
        assert table.schema.metadata[b"table"] == each.encode()


@pytest.mark.parametrize("kind", ["parquet", "arrow", "arrows", "csv"])
def test_one_file_of_several_tables_is_one_table(tmp_path: Path, kind: str) -> None:
    said = write_all(tmp_path)

    found = gsh.read(tmp_path / f"folder-{kind}" / f"detail.{kind}")

    assert list(found.tables) == ["detail"]
    assert (found.certificate, found.mechanism) == (said, MECHANISM)
    assert found.table.equals(TABLES["detail"])


@pytest.mark.parametrize("is_committed", [False, True])
@pytest.mark.parametrize("names", [(), ("by_country", "detail")], ids=["one", "several"])
def test_parts_of_spark_are_joined_in_their_order(tmp_path: Path, names: tuple[str, ...], is_committed: bool) -> None:
    said = write_spark(tmp_path / "private", *names, is_committed=is_committed)
    (tmp_path / "private" / "_SUCCESS").touch()

    found = gsh.read(tmp_path / "private")

    assert found.certificate == said
    assert found.tables.keys() == set(names or [""])
    for name, table in found.tables.items():
        rows = TABLES[name or "detail"]
        assert table.equals(pa.concat_tables([rows.slice(2), rows.slice(0, 2)]))
        assert table.schema.metadata[b"certificate"] == said.recorded(None).to_json().encode()


@pytest.mark.parametrize("names", [(), ("by_country", "detail")], ids=["one", "several"])
def test_parts_have_the_certificate_themselves(tmp_path: Path, names: tuple[str, ...]) -> None:
    """A copy of the visible files has no certificate file, and the parts still have it."""
    said = write_spark(tmp_path / "private", *names, outside=False)

    assert gsh.read(tmp_path / "private").certificate == said


def test_a_folder_of_an_earlier_version_has_the_certificate_outside_alone(tmp_path: Path) -> None:
    said = write_spark(tmp_path / "private")
    for place, rows in enumerate((TABLES["detail"].slice(2), TABLES["detail"].slice(0, 2))):
        write_part(tmp_path / "private" / f"part-0000{place}-000.parquet", rows, {})

    assert gsh.read(tmp_path / "private").certificate == said
    (tmp_path / "private" / "_certificate.json").unlink()
    assert "must have a certificate" in refused(tmp_path / "private")


def test_a_uri_is_a_place_too(tmp_path: Path) -> None:
    said = write_one(tmp_path)

    assert gsh.read(f"file://{tmp_path}/private.parquet").certificate == said
    with pytest.raises(gsh.InvalidParameter, match="path: must be a path, or a URI with two slashes"):
        gsh.read("s3:bucket/private.parquet")


def test_a_certificate_elsewhere_may_be_given(tmp_path: Path) -> None:
    """As a path, as a value and as JSON. It must be the one that the file has inside."""
    said = write_one(tmp_path)
    (tmp_path / "private.csv.certificate.json").rename(tmp_path / "elsewhere.json")

    for given in (tmp_path / "elsewhere.json", str(tmp_path / "elsewhere.json"), said, said.to_dict()):
        assert gsh.read(tmp_path / "private.csv", certificate=given).certificate == said
        assert gsh.read(tmp_path / "private.parquet", certificate=given).certificate == said
    other = said.to_dict() | {"release_id": "another"}
    for name in ("private.parquet", "private.arrow", "private.arrows"):
        assert "they differ" in refused(tmp_path / name, certificate=other)
    for wrong in (3, {}, {"mechanism": 3}, {"schema": "x"} | {"tables": []}):
        with pytest.raises(gsh.InvalidParameter, match="certificate: must be a certificate"):
            gsh.read(tmp_path / "private.csv", certificate=wrong)
    write_all(tmp_path)
    with pytest.raises(gsh.InvalidParameter, match="certificate: must be omitted for a folder"):
        gsh.read(tmp_path / "folder-csv", certificate=said)
    assert "they differ" in refused(tmp_path / "all.zip", certificate=said)


def test_keys_of_csv_are_texts_unless_their_types_are_given(tmp_path: Path) -> None:
    roles = Roles(("day",), "count", ("likes",))
    rows = released(day=pa.array([1, 2], pa.date32()), count=[130.5, 140.0], likes=[1.0, 2.0])
    said = gsh.certificate.certificate(MECHANISM, roles=roles)
    with (tmp_path / "days.csv").open("wb") as file:
        write_rows(rows, roles, "csv", None, file)

    texts = gsh.read(tmp_path / "days.csv", certificate=said)
    dates = gsh.read(tmp_path / "days.csv", certificate=said, types={"day": "date"})

    assert texts.table["day"].to_pylist() == ["1970-01-02", "1970-01-03"]
    assert dates.table.equals(rows)
    assert "column day: must be the type of all cells" in refused(
        tmp_path / "days.csv", certificate=said, types={"day": "int64"}
    )
    with pytest.raises(gsh.InvalidParameter, match="types: must be those of key columns: day"):
        gsh.read(tmp_path / "days.csv", certificate=said, types={"count": "string"})


@pytest.mark.parametrize("kind", ["parquet", "csv", "arrows"])
def test_columns_of_intervals_stay(tmp_path: Path, kind: str) -> None:
    write_one(tmp_path)
    table, found = TABLES["detail"], gsh.read(tmp_path / "private.parquet").intervals()
    for name, each in (("count", found.counts), ("likes", found.values["likes"])):
        for end in ("low", "estimate", "high"):
            table = table.append_column(f"{name}_{end}", pa.array(getattr(each, end)))
    wide = Roles(ROLES["detail"].keys, "count", tuple(table.column_names[3:]))
    said = (tmp_path / "private.csv.certificate.json").read_text()
    with (tmp_path / f"wide.{kind}").open("wb") as file:
        write_rows(table, wide, {"arrows": "arrow"}.get(kind, kind), said, file)  # type: ignore[arg-type]
    (tmp_path / "wide.csv.certificate.json").write_text(said)

    read = gsh.read(tmp_path / f"wide.{kind}")

    assert read.table.equals(released(**dict(zip(table.column_names, table.columns, strict=True))))
    assert read.roles == {"": ROLES["detail"]}


def test_whole_numbers_of_a_grid_of_one_are_integers(tmp_path: Path) -> None:
    roles = Roles(("url",), "count", ())
    mechanism = gsh.Mechanism(c_u=1, tau_star=2**22, sigma=2.0**20)
    said = gsh.certificate.certificate(mechanism, roles=roles)
    rows = released(url=["a"], count=[2**22 + 1])
    with (tmp_path / "a.csv").open("wb") as file:
        write_rows(rows, roles, "csv", None, file)

    assert said.grid.count == 1
    assert gsh.read(tmp_path / "a.csv", certificate=said).table.equals(rows)


def without_metadata(folder: Path) -> Path:
    table = pq.read_table(folder / "private.parquet").replace_schema_metadata(None)
    pq.write_table(table, folder / "bare.parquet")
    return folder / "bare.parquet"


def rewritten(folder: Path, change: Callable[[pa.Table], pa.Table]) -> Path:
    """The Parquet file with other rows and the same certificate."""
    table = pq.read_table(folder / "private.parquet")
    pq.write_table(change(table).replace_schema_metadata(table.schema.metadata), folder / "other.parquet")
    return folder / "other.parquet"


def compressed(folder: Path) -> Path:
    pa.feather.write_feather(pq.read_table(folder / "private.parquet"), folder / "small.arrow", compression="zstd")
    return folder / "small.arrow"


def cut(folder: Path, name: str) -> Path:
    content = (folder / name).read_bytes()
    (folder / f"cut-{name}").write_bytes(content[: len(content) * 2 // 3])
    if name.endswith("csv"):
        shutil.copy(folder / f"{name}.certificate.json", folder / f"cut-{name}.certificate.json")
    return folder / f"cut-{name}"


def csv_of(folder: Path, text: str) -> Path:
    (folder / "private.csv").write_text(text)
    return folder / "private.csv"


def written(folder: Path, name: str, content: bytes) -> Path:
    (folder / name).write_bytes(content)
    return folder / name


HEADER = "url,country,count,likes\n"
FAULTY: dict[str, tuple[Callable[[Path], Path], str]] = {
    "nothing": (lambda folder: folder / "nothing", "must exist"),
    "no certificate": (without_metadata, "must have a certificate in its metadata"),
    "no certificate next to CSV": (
        lambda folder: cut(folder, "private.csv").rename(folder / "alone.csv"),
        "must have its certificate next to it, as alone.csv.certificate.json",
    ),
    "cut Parquet": (lambda folder: cut(folder, "private.parquet"), "must be a whole Parquet file or Arrow IPC stream"),
    "a cut Arrow file": (lambda folder: cut(folder, "private.arrow"), "must be a whole Parquet file or Arrow IPC"),
    "a cut Arrow stream": (lambda folder: cut(folder, "private.arrows"), "must be a whole Parquet file or Arrow IPC"),
    "cut CSV": (lambda folder: cut(folder, "private.csv"), "must be CSV in UTF-8, with a header line"),
    "compressed Arrow": (compressed, "must be a whole Parquet file or Arrow IPC stream or file, not compressed"),
    "an empty file": (lambda folder: written(folder, "e.parquet", b""), "must be a whole Parquet file"),
    "text": (lambda folder: written(folder, "e.parquet", b"url,count\na,3\n" * 99), "must be a whole Parquet file"),
    "empty CSV": (lambda folder: csv_of(folder, ""), "must have the columns of its certificate"),
    "other columns": (
        lambda folder: rewritten(folder, lambda table: table.rename_columns(["url", "country", "count", "views"])),
        "must have the columns of its certificate: the columns are not those of a release",
    ),
    "another order": (
        lambda folder: rewritten(folder, lambda table: table.select(["country", "url", "count", "likes"])),
        "must have the columns of its certificate: the columns are not those that the certificate names",
    ),
    "a column more": (
        lambda folder: rewritten(folder, lambda table: table.append_column("x", [[1, 2, 3, 4]])),
        "must have the columns of its certificate",
    ),
    "nulls": (
        lambda folder: rewritten(folder, lambda table: table.set_column(2, "count", [[1.0, None, 2.0, 3.0]])),
        "must be a whole Parquet file",
    ),
    "nested keys": (
        lambda folder: rewritten(folder, lambda table: table.set_column(0, "url", [[["a"], [], [], []]])),
        "must be a whole Parquet file",
    ),
    "texts for counts": (
        lambda folder: rewritten(folder, lambda table: table.set_column(2, "count", [["1", "2", "3", "4"]])),
        "must be a whole Parquet file",
    ),
    "words in CSV": (
        lambda folder: csv_of(folder, f"{HEADER}a,US,many,1\n"),
        "column count: must be the type of all cells of this column: numbers in the range of doubles, such as -1.5 or "
        "2e3; line 2 has another",
    ),
    "an uneven line": (lambda folder: csv_of(folder, f"{HEADER}a,US,3\n"), "must be CSV in UTF-8"),
    "an empty count": (lambda folder: csv_of(folder, f"{HEADER}a,US,,1\n"), "must be CSV in UTF-8"),
    "another header": (lambda folder: csv_of(folder, "url,count,likes\na,3,1\n"), "names"),
    "a damaged certificate": (
        lambda folder: (folder / "private.csv.certificate.json").write_text("{") and folder / "private.csv",
        "private.csv.certificate.json: must have a certificate in JSON that can be read",
    ),
    "a folder": (lambda folder: folder, "must have certificate.json, as publish writes it for several tables"),
}


@pytest.mark.parametrize("fault", FAULTY)
def test_an_error_names_the_file_and_what_is_wrong(tmp_path: Path, fault: str) -> None:
    write_one(tmp_path)
    make, detail = FAULTY[fault]
    path = make(tmp_path)

    said = refused(path)

    assert detail in said
    assert said.startswith((str(path), "private.csv.certificate.json"))


def test_an_error_quotes_no_cell(tmp_path: Path) -> None:
    write_one(tmp_path)
    for text in (f"{HEADER}a,US,\x1b[2Jsecret,1\n", f'{HEADER}"secret,US,3,1\n'):
        assert "secret" not in refused(csv_of(tmp_path, text))


def test_a_file_with_a_name_that_no_terminal_shows(tmp_path: Path) -> None:
    (tmp_path / "a\x1b[2J.parquet").write_bytes(b"x")

    assert "\x1b" not in refused(tmp_path / "a\x1b[2J.parquet")


def test_no_file_takes_more_than_it_may(tmp_path: Path) -> None:
    write_one(tmp_path)
    write_all(tmp_path)
    write_spark(tmp_path / "spark")
    for name in (*FILES, *FOLDERS, "spark"):
        assert "must take at most 100 bytes with all other tables" in refused(tmp_path / name, most_bytes=100)
    both = sum(table.nbytes for table in TABLES.values())
    for name in FOLDERS[:4]:  # each table is small enough, and both are not
        largest = max(path.stat().st_size for path in (tmp_path / name).glob("[bd]*"))
        gsh.read(tmp_path / name, most_bytes=largest + both)
        assert "must take at most" in refused(tmp_path / name, most_bytes=largest)


CONTRADICTIONS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "a missing table": (lambda folder: (folder / "detail.parquet").unlink(), "must have one file of the table detail"),
    "two files of a table": (
        lambda folder: shutil.copy(folder / "detail.parquet", folder / "detail.arrow"),
        "must have one file of the table detail, which its certificate names: it has 2",
    ),
    "another certificate": (
        lambda folder: (folder / "certificate.json").write_text(together().to_json()),
        "by_country.parquet: must have the same certificate inside as outside: they differ",
    ),
    "changed places": (
        lambda folder: (
            (folder / "detail.parquet").rename(folder / "x"),
            (folder / "by_country.parquet").rename(folder / "detail.parquet"),
            (folder / "x").rename(folder / "by_country.parquet"),
        ),
        "by_country.parquet: must be the table that its name says: its metadata name another one",
    ),
    "a damaged certificate": (
        lambda folder: (folder / "certificate.json").write_text('{"tables": ' * 99),
        "certificate.json: must have a certificate in JSON that can be read",
    ),
    "the certificate of one table": (
        lambda folder: (folder / "certificate.json").write_text(write_one(folder).to_json()),
        "must have a certificate of several tables",
    ),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_a_folder_that_contradicts_itself_is_refused(tmp_path: Path, name: str) -> None:
    write_all(tmp_path)
    change, detail = CONTRADICTIONS[name]
    change(tmp_path / "folder-parquet")

    assert detail in refused(tmp_path / "folder-parquet")


def test_the_rests_of_a_table_are_no_table(tmp_path: Path) -> None:
    write_all(tmp_path)
    rest = gsh.read(tmp_path / "folder-parquet").rest("by_country")
    metadata = pq.read_schema(tmp_path / "folder-parquet" / "by_country.parquet").metadata | {b"table": b"detail_rest"}
    pq.write_table(rest.replace_schema_metadata(metadata), tmp_path / "rest.parquet")

    assert "it has the rests of one, for result.rest" in refused(tmp_path / "rest.parquet")


def repacked(folder: Path, change: Callable[[dict[str, bytes]], Any]) -> Path:
    """The archive, written by another program, with changed files."""
    with zipfile.ZipFile(folder / "all.zip") as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    change(files)
    with zipfile.ZipFile(folder / "again.zip", "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return folder / "again.zip"


def test_an_archive_of_another_program_is_refused(tmp_path: Path) -> None:
    """It could have two files of one name, or files that other programs do not see."""
    write_all(tmp_path)

    assert "must be a zip archive of tables as the service writes it" in refused(repacked(tmp_path, lambda _: None))
    whole = (tmp_path / "all.zip").read_bytes()
    for content in (whole[:-1], whole + b"x", whole[: len(whole) // 2], b"PK\x03\x04", b"PK\x03\x04" + bytes(999)):
        (tmp_path / "again.zip").write_bytes(content)
        assert "must be a zip archive of tables as the service writes it" in refused(tmp_path / "again.zip")


def test_every_part_of_spark_has_the_same_certificate(tmp_path: Path) -> None:
    said = write_spark(tmp_path / "private")
    part, rows = tmp_path / "private" / "part-00001-000.parquet", TABLES["detail"].slice(0, 2)
    other = said.to_dict() | {"epsilon": 0.1}

    for metadata, detail in (
        (
            {"certificate": json.dumps(other)},
            "part-00001-000.parquet: must have the same certificate inside as outside",
        ),
        ({"certificate": "{"}, "part-00001-000.parquet: must have"),
        ({}, "must have a certificate in each part, and some have none"),
        ({"certificate": said.to_json(), "table": "detail"}, "must be the table that its name says"),
    ):
        write_part(part, rows, metadata)
        assert detail in refused(tmp_path / "private"), metadata
    write_part(part, rows.rename_columns(["country", "url", "count", "likes"]), {"certificate": said.to_json()})
    assert "must have the columns of its certificate" in refused(tmp_path / "private")
    kept = rows.set_column(0, "url", rows["url"].cast(pa.large_string())).set_column(0, "url", [[b"a", b"b"]])
    write_part(part, kept, {"certificate": said.to_json()})
    assert "must have the columns of the other parts" in refused(tmp_path / "private")
    pq.write_table(rows, part)
    assert "must have a certificate in each part" in refused(tmp_path / "private")


def test_one_part_of_spark_is_not_taken_for_the_whole(tmp_path: Path) -> None:
    write_spark(tmp_path / "private")

    part = tmp_path / "private" / "part-00000-000.parquet"
    assert "is one part of a folder that Spark wrote: read the folder" in refused(part)


def test_committed_rows_are_compared_with_their_digest(tmp_path: Path) -> None:
    said = write_spark(tmp_path / "private", is_committed=True)
    part = tmp_path / "private" / "part-00001-000.parquet"
    kept = part.read_bytes()
    rows = TABLES["detail"].slice(0, 2)
    detail = "must have the rows that were committed: a part is missing, damaged or changed"

    write_part(part, rows.set_column(2, "count", [[121.5, 150.25]]), {"certificate": said.recorded(None).to_json()})
    assert detail in refused(tmp_path / "private")
    part.rename(tmp_path / "away")
    assert detail in refused(tmp_path / "private")
    (tmp_path / "private" / "part-00002-000.parquet").write_bytes(kept)
    assert detail in refused(tmp_path / "private")


def test_a_missing_table_of_spark_is_named(tmp_path: Path) -> None:
    write_spark(tmp_path / "private", "by_country", "detail")
    shutil.rmtree(tmp_path / "private" / "detail")

    assert "private/detail: must have the parts of a table" in refused(tmp_path / "private")
    (tmp_path / "private" / "_certificate.json").unlink()
    assert "must have the tables of its certificate: by_country, detail" in refused(tmp_path / "private")


def test_int96_timestamps_of_spark_are_read(tmp_path: Path) -> None:
    """In microseconds: nanoseconds do not reach the year 2500."""
    at = pa.array([16725225600000000], pa.timestamp("us"))
    roles = Roles(("at",), "count", ("likes",))
    table = pa.table({"at": at, "count": [130.5], "likes": [1.0]})
    metadata = {"certificate": gsh.certificate.certificate(MECHANISM, roles=roles).to_json()}
    pq.write_table(
        table.replace_schema_metadata(metadata), tmp_path / "a.parquet", use_deprecated_int96_timestamps=True
    )

    assert str(gsh.read(tmp_path / "a.parquet").table["at"][0].as_py()) == "2500-01-01 00:00:00"


def test_a_certificate_is_read_from_its_file(tmp_path: Path) -> None:
    write_all(tmp_path)

    found = gsh.read_certificate(tmp_path / "folder-csv" / "certificate.json")

    assert gsh.PlainGaussian.from_certificate(found, "by_country") == COUNTRIES
    assert gsh.Mechanism.from_certificate(found, table="detail") == MECHANISM
    assert gsh.Mechanism.from_certificate(gsh.read(tmp_path / "folder-csv")["detail"]) == MECHANISM
    assert gsh.exact(found.mechanisms, epsilon=1).delta == found.delta
    for path, detail in (("none.json", "must exist"), ("all.zip", "must have a certificate in JSON that can be read")):
        with pytest.raises(gsh.FileError, match=f"{re.escape(str(tmp_path / path))}: {detail}"):
            gsh.read_certificate(tmp_path / path)


def test_a_mechanism_of_another_table_is_not_guessed(tmp_path: Path) -> None:
    both, one = together(), gsh.certificate.certificate(MECHANISM)
    for make, pointer, detail in (
        (lambda: gsh.Mechanism.from_certificate(both), "table", "by_country, detail"),
        (lambda: gsh.Mechanism.from_certificate(both, "x"), "table", "by_country, detail"),
        (lambda: gsh.Mechanism.from_certificate(both, "by_country"), "table", "this one has a gsh.PlainGaussian"),
        (lambda: gsh.PlainGaussian.from_certificate(one), "certificate", "this one has a gsh.Mechanism"),
        (lambda: gsh.Mechanism.from_certificate(one.to_dict()), "certificate", "gsh.read_certificate"),
        (lambda: gsh.Mechanism.from_certificate(str(tmp_path)), "certificate", "gsh.read_certificate"),
    ):
        with pytest.raises(gsh.InvalidParameter, match=re.escape(detail)) as error:
            make()
        assert error.value.pointer == pointer


def test_reading_a_table_needs_no_memory_of_its_file(tmp_path: Path) -> None:
    """The file may change, or be removed, while the result is used."""
    write_one(tmp_path)
    for name in FILES:
        found = gsh.read(tmp_path / name)
        (tmp_path / name).write_bytes(b"")
        assert found.table.equals(TABLES["detail"])


def test_arrow_that_pyarrow_writes_again_is_read(tmp_path: Path) -> None:
    write_one(tmp_path)
    table = gsh.read(tmp_path / "private.arrow").table
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema) as writer:
        for batch in table.to_batches(max_chunksize=1):
            writer.write_batch(batch)
    pq.write_table(table, tmp_path / "again.parquet", compression="zstd", data_page_version="2.0", row_group_size=1)

    assert gsh.read(written(tmp_path, "again.arrow", sink.getvalue())).table.equals(table)
    assert gsh.read(tmp_path / "again.parquet").table.equals(table)
