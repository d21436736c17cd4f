"""One private table in every form, and two tables together in every form, with the same certificate in each."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

import gsh
from gsh.certificate import Certificate, certificate
from gsh.events.folder_output import FolderOutput
from gsh.events.tables import planned
from gsh.histogram.archives import write_archive
from gsh.histogram.conversion import write_rows
from gsh.histogram.file_formats import EXTENSIONS, Format
from gsh.histogram.roles import Roles
from gsh.results.parts import PartsDigest, digest_of_tables, named_part

__all__ = [
    "COUNTRIES",
    "MECHANISM",
    "ROLES",
    "TABLES",
    "released",
    "together",
    "write_all",
    "write_one",
    "write_part",
    "write_spark",
]


def released(**columns: Any) -> pa.Table:
    """A table as it is released: its numbers are never null."""
    table = pa.table(columns)
    numbers = (pa.float64(), pa.int64())
    return table.cast(pa.schema([field.with_nullable(field.type not in numbers) for field in table.schema]))


LIKES = gsh.Aggregates(names=["likes"], covariance=[[16.0]], sensitivity=gsh.box(lower=[0], upper=[1]))
MECHANISM = gsh.Mechanism(c_u=3, tau=1, tau_star=120, sigma=20, aggregates=LIKES)
COUNTRIES = gsh.PlainGaussian(c_u=1, sigma=5)
URLS = {
    "url": ["a.org", "b.org", "b.org", None],
    "country": ["US", "DE", "US", ""],
    "count": [121.5, 150.0, 400.25, 7000.0],
    "likes": [3.5, -1.25, 300.0, 0.0],
}
TABLES: Mapping[str, pa.Table] = {
    "by_country": released(country=["DE", "FR", "US"], count=[160.5, -2.25, 530.0]),
    "detail": released(**URLS),
}
ROLES = {"by_country": Roles(("country",), "count", ()), "detail": Roles(("url", "country"), "count", ("likes",))}


def write_one(folder: Path) -> Certificate:
    """private.parquet, private.arrow, private.arrows, and private.csv with its certificate next to it."""
    said = certificate(MECHANISM, epsilon=1, roles=ROLES["detail"])
    for ending in ("parquet", "arrow", "arrows", "csv"):
        with (folder / f"private.{ending}").open("wb") as file:
            write_rows(TABLES["detail"], ROLES["detail"], EXTENSIONS[f".{ending}"], said.to_json(), file)
    (folder / "private.csv.certificate.json").write_text(said.to_json())
    return said


def together() -> Certificate:
    """The certificate of both tables."""
    return certificate({"by_country": COUNTRIES, "detail": MECHANISM}, epsilon=1, roles=ROLES)


def write_all(folder: Path) -> Certificate:
    """folder-parquet, folder-csv and others as publish writes them, and all.zip as the service answers it."""
    by_country = gsh.Table(by=["country"], c_u=1)
    detail = gsh.Table(by=["url", "country"], c_u=3, sums={"likes": (0, 1)})
    plans, _ = planned({"by_country": by_country, "detail": detail}, user="user_id", salt="0" * 32)
    said = together()
    for kind in ("parquet", "arrow", "arrows", "csv"):
        FolderOutput(folder / f"folder-{kind}", plans, {}, format=kind).write(TABLES, {}, said)
    with (folder / "all.zip").open("wb") as file:
        kinds: dict[str, Format] = {"by_country": "csv", "detail": "parquet"}
        write_archive(file, {name: (kind, _written(name, kind, said)) for name, kind in kinds.items()}, said.to_json())
    return said


def _written(name: str, kind: Format, said: Certificate) -> Callable[[IO[bytes]], None]:
    return lambda file: write_rows(TABLES[name], ROLES[name], kind, said.to_json(), file, name)


def write_spark(folder: Path, *names: str, is_committed: bool = False, outside: bool = True) -> Certificate:
    """A folder with the parts that Spark would write: of the table ``detail`` alone, or of both."""
    said = together() if names else certificate(MECHANISM, epsilon=1, roles=ROLES["detail"])
    digests = {}
    for name in names or ("",):
        digests[name] = PartsDigest()
        (folder / name).mkdir(parents=True)
        rows, metadata = TABLES[name or "detail"], {"certificate": said.to_json()} | ({"table": name} if name else {})
        for partition, part in enumerate((rows.slice(2), rows.slice(0, 2))):
            write_part(folder / name / named_part(partition, 0), part, metadata)
            digests[name].add(partition, part)
    record = {"committed_digest": digest_of_tables({name: each.hexdigest() for name, each in digests.items()})}
    whole = said.recorded(record) if is_committed else said
    if outside:
        (folder / "_certificate.json").write_text(whole.to_json())
    return whole


def write_part(path: Path, rows: pa.Table, metadata: Mapping[str, str]) -> None:
    """A Parquet file with metadata of columns as Spark has them: in the schema that it keeps in the footer."""
    fields = [{"name": name, "metadata": metadata if name == "count" else {}} for name in rows.column_names]
    spark = {"org.apache.spark.sql.parquet.row.metadata": json.dumps({"type": "struct", "fields": fields})}
    with pq.ParquetWriter(path, rows.schema, store_schema=False) as writer:
        writer.write_table(rows)
        writer.add_key_value_metadata(spark)
