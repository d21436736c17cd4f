"""The folder of a release: it appears whole, and the digest of its rows does not depend on how they are written."""

import json
import stat
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gsh
from gsh.certificate import certificate
from gsh.errors import InvalidParameter
from gsh.histogram.roles import Roles
from gsh.spark.places import Place

SAID = certificate(gsh.PlainGaussian(c_u=1, sigma=5))
ROLES = {"": Roles(("url",), "count", ())}
ROWS = pa.table({"url": ["a", None, "b"], "count": [3.0, 4.5, 0.25]})


def staged(place: Place, *tables: pa.Table, compression: str = "snappy") -> str:
    """The files of an attempt, as Spark names them."""
    attempt = Path(place.new_attempt())
    attempt.mkdir()
    for number, table in enumerate(tables):
        name = f"part-{number:05d}-5d1c0d6e-54ea-4c4e-bb3e-3a7e7a1c2b1f-c000.{compression}.parquet"
        pq.write_table(table, attempt / name, compression=compression)
    (attempt / "_SUCCESS").touch()
    (attempt / ".part-00000.crc").touch()
    return str(attempt)


def test_a_release_moves_from_staging_into_its_place(tmp_path: Path) -> None:
    place = Place(tmp_path / "private")
    made = place.finish(staged(place, ROWS, ROWS.slice(1)), ROLES)
    place.record(made)
    assert place.finished() == made
    place.certify(made, {"salt": "0"}, SAID)
    place.move(made)

    names = ["_certificate.json", "_plan.json", "part-00000-000.parquet", "part-00001-000.parquet"]
    assert sorted(path.name for path in (tmp_path / "private").iterdir()) == names
    assert [path.name for path in tmp_path.iterdir()] == ["private"]
    assert place.digest(place.folder) == (made.digest, made.rows) == (made.digest, 5)
    assert place.rows(place.folder) == 5
    assert place.certificate(place.folder) == SAID


def test_the_digest_covers_rows_and_their_order_and_not_how_they_are_written(tmp_path: Path) -> None:
    def digest(*tables: pa.Table, compression: str = "snappy") -> str:
        place = Place(tmp_path / "private")
        roles = {"": Roles(("url",), tables[0].column_names[1], ())}
        return place.finish(staged(place, *tables, compression=compression), roles).digest

    first = digest(ROWS)
    assert digest(ROWS, compression="zstd") == first
    assert digest(ROWS.replace_schema_metadata({"a": "b"})) == first
    assert digest(ROWS, ROWS.slice(3)) == first  # an empty file
    others = [
        digest(ROWS.take([1, 0, 2])),
        digest(ROWS.slice(0, 2)),
        digest(ROWS.slice(0, 2), ROWS.slice(2)),
        digest(ROWS.slice(3), ROWS),
        digest(ROWS.rename_columns(["url", "users"])),
        digest(ROWS.set_column(1, "count", pa.array([3.0, 4.5, 0.5]))),
    ]
    assert len({first, *others}) == 1 + len(others)


def test_a_secret_is_for_its_owner_and_the_first_one_stays(tmp_path: Path) -> None:
    place = Place(tmp_path / "private")
    path = Path(place.staging) / "seed.json"
    place.write_secret(str(path), {"seed": "1"})
    place.write_secret(str(path), {"seed": "2"})

    assert json.loads(path.read_text()) == {"seed": "1"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [each.name for each in path.parent.iterdir()] == ["seed.json"]


@pytest.mark.parametrize(
    ("to", "folder", "uri"),
    [
        ("/mnt/private/", "/mnt/private", "file:///mnt/private"),
        ("file:///mnt/private", "/mnt/private", "file:///mnt/private"),
        ("mock:///bucket/private", "bucket/private", "mock:///bucket/private"),
    ],
)
def test_paths_are_local_unless_they_have_a_scheme(to: str, folder: str, uri: str) -> None:
    place = Place(to)

    assert place.folder == folder
    assert place.uri(place.folder) == uri
    assert place.is_local == (not to.startswith("mock"))


def test_of_two_drivers_one_places_its_rows(tmp_path: Path) -> None:
    place = Place(tmp_path / "private")
    first, second = (place.finish(staged(place, table), ROLES) for table in (ROWS, ROWS.slice(1)))
    for made in (first, second):
        place.certify(made, {}, SAID)

    assert place.move(second)
    assert not Path(place.staging).exists()
    assert not place.move(first)
    assert place.digest(place.folder)[0] == second.digest


def test_the_root_is_no_place() -> None:
    with pytest.raises(InvalidParameter, match="to: must be the path of a folder"):
        Place("/")


def test_an_object_store_gets_the_certificate_last_and_goes_on_after_a_stop() -> None:
    """It moves file by file. Without the certificate the release is not whole, and the next run moves the rest."""
    place = Place("mock:///bucket/private")
    attempt = place.new_attempt()
    place._files.create_dir(attempt)
    with place._files.open_output_stream(f"{attempt}/part-00000-x-c000.parquet") as file:
        pq.write_table(ROWS, file)
    made = place.finish(attempt, ROLES)
    place.record(made)
    place.certify(made, {}, SAID)
    place._files.create_dir(place.folder)
    place._files.move(f"{attempt}/part-00000-000.parquet", f"{place.folder}/part-00000-000.parquet")
    assert place.certificate(place.folder) is None

    place.move(made)

    assert place.certificate(place.folder) == SAID
    assert place.digest(place.folder) == (made.digest, 3)
    assert not place.exists(place.staging)


@pytest.mark.parametrize("to", ["dbfs:/x", "hdfs:/x", "file:/tmp/y", 5, None, b"x"])
def test_a_target_that_is_neither_a_path_nor_a_uri_is_refused(to: object) -> None:
    with pytest.raises(InvalidParameter, match=r"^to: "):
        Place(to)  # type: ignore[arg-type]


def test_a_seed_that_somebody_else_can_write_is_refused(tmp_path: Path) -> None:
    """Its author could remove the noise that is made of it."""
    place = Place(tmp_path / "private")
    place.write_secret(f"{place.staging}/seed.json", {"seed": "x"})
    place.check_secrets()
    staging = Path(place.staging)

    for path, mode in ((staging, 0o777), (staging / "seed.json", 0o620)):
        before = stat.S_IMODE(path.stat().st_mode)
        path.chmod(mode)
        with pytest.raises(InvalidParameter, match="staging folder of your own"):
            place.check_secrets()
        path.chmod(before)
    (staging / "seed.json").rename(tmp_path / "elsewhere")
    (staging / "seed.json").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InvalidParameter, match="staging folder of your own"):
        place.check_secrets()


def test_a_damaged_document_is_named(tmp_path: Path) -> None:
    place = Place(tmp_path / "private")
    Path(place.staging).mkdir()
    Path(place.staging, "finished.json").write_text("")

    with pytest.raises(InvalidParameter, match=r"finished\.json is damaged"):
        place.finished()
