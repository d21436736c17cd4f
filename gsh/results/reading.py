"""gsh.read: what publish, release and the service wrote, with its certificate.  [docs/library.md]

A file may be damaged, or made to harm its reader. So:

    every file        must take at most ``most_bytes``, and so must all rows in memory
    Arrow             must not be compressed, and every offset and index must be inside of its buffer (arrow_streams.py)
    Parquet           must not become larger than its pages say (parquet_files.py)
    an archive        must be, byte for byte, one that the service writes (gsh/histogram/archives.py)
    the certificate   must be there, be small (certificates.py) and be about these tables. In a folder or an archive it
                      is in every file that has a place for it, and must be the same in all of them

This does not check that the rows are those which were released, nor that the certificate is true: the service that made
it can (docs/certificate.md). Only rows that Spark wrote are compared with a digest, if the certificate has one.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from gsh.accounting.grid import count_grid, value_grids
from gsh.accounting.mechanism import AnyMechanism
from gsh.arguments import integer
from gsh.errors import FileError, InvalidGroups, InvalidParameter
from gsh.histogram.archives import CERTIFICATE_FILE, read_archive
from gsh.histogram.csv_format import CsvType, csv_batches, header_of
from gsh.histogram.file_formats import EXTENSIONS
from gsh.histogram.formats import (
    CERTIFICATE,
    MOST_SCHEMA_BYTES,
    TABLE,
    format_of,
    metadata_of,
    signature_in,
    stream_in,
)
from gsh.histogram.roles import Roles, roles_in
from gsh.results.arrow_streams import checked_rows, read_stream
from gsh.results.averages import with_averages
from gsh.results.certificates import FAULTS, CertificateLike, Known, given_certificate, known_at, known_of
from gsh.results.locations import Location, TooLarge, located
from gsh.results.parquet_files import read_parquet
from gsh.results.parts import SPARK_CERTIFICATE, PartsDigest, digest_of_tables, parts_in, spark_metadata
from gsh.results.private_tables import PrivateTables

__all__ = ["SIGNATURE_ENDING", "read", "read_files"]

SIGNATURE_ENDING = ".sig.json"
"""Of the file with the signature of the file, or of the certificate, next to it."""
_ZIP = b"PK\x03\x04"
_MUST_BE = "must be a whole Parquet file or Arrow IPC stream or file, not compressed, of a private table"


def read(
    path: str | os.PathLike[str],
    *,
    certificate: CertificateLike | None = None,
    types: Mapping[str, CsvType] | None = None,
    most_bytes: int = 2**33,
) -> PrivateTables:
    """The private tables that were published or released to a place, with their certificate.  [docs/library.md]

    ``path`` is a file (Parquet, Arrow, CSV with its certificate next to it, a zip archive of tables) or a folder, as
    ``gsh.publish`` writes it for several tables and ``gsh.spark.publish`` for one or several; or a URI of them, such
    as s3://bucket/private. It needs no service.

        private = gsh.read("private.parquet")
        private.table, private.certificate.epsilon, private.intervals(0.95).counts

    ``certificate``, or the path of its JSON, is for a file that has none in it and none next to it. ``types`` are those
    of the key columns of CSV: texts unless given. Files, and all rows together, may take ``most_bytes``.
    """
    reader = _Reader(integer("most_bytes", most_bytes), dict(types or {}))
    given = None if certificate is None else given_certificate(certificate)
    found = reader.read(located("path", path), os.fspath(path), given)
    keys = dict.fromkeys(key for roles in found.roles.values() for key in roles.keys)
    if not reader.types.keys() <= keys.keys():
        raise InvalidParameter("types", f"must be those of key columns: {', '.join(keys)}")
    return found


def read_files(
    place: Location, name: str, *, certificate: CertificateLike | None, most_bytes: int
) -> tuple[PrivateTables, Mapping[str, pa.Table]]:
    """The same as ``read``, and the tables with all columns as they are in the files. ``name`` is for errors."""
    reader = _Reader(most_bytes, {})
    given = None if certificate is None else given_certificate(certificate)
    return reader.read(place, name, given), reader.found


@dataclass(slots=True)
class _Expected:
    """What a table of a file must be: ``known`` is the certificate that is not inside of it."""

    name: str
    """Of the file, for errors."""
    known: Known | None
    table: str | None = None
    """Its name in the certificate; None if only the file says it."""

    def roles(self, schema: pa.Schema, metadata: Mapping[bytes, bytes] | None = None) -> Roles:
        """The roles of its columns, by the certificate that it has inside, which must be the known one."""
        metadata = (schema.metadata or {}) if metadata is None else metadata
        text = metadata.get(CERTIFICATE.encode())
        if text is not None and self.known is None:
            self.known = known_of(text, self.name)
        elif text is not None and self.known is not None and not self.known.says(text):
            raise FileError(self.name, "must have the same certificate inside as outside: they differ")
        own = metadata.get(TABLE.encode())
        return self.named(schema, None if own is None else own.decode())

    def named(self, schema: pa.Schema, own: str | None) -> Roles:
        """The roles of its columns, if this is its name."""
        if self.known is None:
            raise self._uncertified(schema)
        if None not in (self.table, own) and self.table != own:
            raise FileError(self.name, "must be the table that its name says: its metadata name another one")
        self.table = own or self.table or ""
        if self.table not in self.known.mechanisms:
            raise self._unnamed()
        values = self.known.mechanisms[self.table].column_names
        names = self.known.meanings[self.table].without_averages(schema.names)
        try:
            return roles_in(names, values, self.known.certificate.columns.get(self.table))
        except ValueError as error:
            detail = str(error)
        raise FileError(self.name, f"must have the columns of its certificate: {detail}")

    def _uncertified(self, schema: pa.Schema) -> FileError:
        if _spark_metadata(schema, self.name):
            return FileError(self.name, "is one part of a folder that Spark wrote: read the folder")
        detail = "must have a certificate in its metadata, as a file that publish or the service wrote"
        return FileError(self.name, f"{detail}; if it is elsewhere, give certificate=")

    def _unnamed(self) -> FileError:
        assert self.known is not None
        names = [name for name in self.known.mechanisms if name]
        if not names:
            return FileError(self.name, "must be a table without a name: its certificate is about one table")
        detail = f"must be one of the tables of its certificate: {', '.join(names)}"
        if self.table and self.table.removesuffix("_rest") in names:
            return FileError(self.name, f"{detail}; it has the rests of one, for result.rest")
        return FileError(self.name, detail)


@dataclass(slots=True)
class _Reader:
    """What is read of all files together."""

    most_bytes: int
    types: Mapping[str, CsvType]
    taken: int = field(default=0, init=False)
    signature: str | None = field(default=None, init=False)
    """The signed envelope of the certificate, in a file or next to it."""
    found: dict[str, pa.Table] = field(default_factory=dict, init=False)
    """The tables as they are in the files."""

    @property
    def left(self) -> int:
        return self.most_bytes - self.taken

    def content(self, place: Location, name: str) -> pa.Buffer:
        try:
            return place.content(name, self.left)
        except TooLarge:
            pass
        raise self.too_large(name)

    def too_large(self, name: str) -> FileError:
        detail = f"must take at most {self.most_bytes} bytes with all other tables, as a file and in memory"
        return FileError(name, f"{detail}; most_bytes= gives another limit")

    def read(self, place: Location, name: str, given: Known | None) -> PrivateTables:
        """The tables of a file or of a folder."""
        if place.is_file():
            self._take_signature(replace(place, path=f"{place.path}{SIGNATURE_ENDING}"))
            return self.file(place, name, given)
        if not place.is_folder():
            raise FileError(name, "must exist")
        if given is not None:
            raise InvalidParameter("certificate", "must be omitted for a folder: it has its own")
        if (place / CERTIFICATE_FILE).is_file():
            return self.folder(place, name)
        folders = [place, *(place / each for each in place.folders())]
        if (place / SPARK_CERTIFICATE).is_file() or any(map(_parts, folders)):
            return self.parts(place, name)
        detail = f"must have {CERTIFICATE_FILE}, as publish writes it for several tables, or parts that Spark wrote"
        raise FileError(name, f"{detail}, such as part-00000-000.parquet")

    def file(self, place: Location, name: str, given: Known | None) -> PrivateTables:
        """The table of a file, or those of an archive."""
        content = self.content(place, name)
        if content.slice(0, min(4, content.size)).to_pybytes() == _ZIP:
            return self.archive(content, name, given)
        stem, ending = os.path.splitext(os.path.basename(place.path))
        expected = _Expected(name, given)
        if EXTENSIONS.get(ending.lower()) == "csv":
            known = _beside(place, name) if given is None else given
            expected = _Expected(name, known, None if "" in known.mechanisms else stem)
            table = self.csv(content, expected)
        else:
            table = self.table(content, expected)
        assert expected.known is not None
        assert expected.table is not None
        return self._result({expected.table: table}, expected.known)

    def archive(self, content: pa.Buffer, name: str, given: Known | None) -> PrivateTables:
        """The tables of a zip archive. They stay where they are in its memory."""
        try:
            members, text = read_archive(content)
        except FAULTS:
            members, text = {}, ""
        if not members:
            raise FileError(name, "must be a zip archive of tables as the service writes it, without a change")
        known = known_of(text.encode(), f"{name}: {CERTIFICATE_FILE}")
        if given is not None and not given.says(text.encode()):
            raise FileError(name, "must have the same certificate inside as outside: they differ")
        if members.keys() != known.mechanisms.keys():
            raise FileError(name, f"must have the tables of its certificate: {', '.join(known.mechanisms)}")
        tables = {}
        for table, (kind, part) in members.items():
            expected = _Expected(f"{name}: {table}", known, table)
            tables[table] = (self.csv if kind == "csv" else self.table)(part, expected)
        return self._result(tables, known)

    def folder(self, place: Location, name: str) -> PrivateTables:
        """The tables of a folder that publish wrote."""
        known = known_at(place / CERTIFICATE_FILE, f"{name}/{CERTIFICATE_FILE}")
        self._take_signature(place / f"{CERTIFICATE_FILE}{SIGNATURE_ENDING}")
        if "" in known.mechanisms:
            raise FileError(name, "must have a certificate of several tables: read the file of the only table")
        tables = {}
        for table in known.mechanisms:
            files = [f"{table}{ending}" for ending in EXTENSIONS if (place / f"{table}{ending}").is_file()]
            if len(files) != 1:
                detail = f"must have one file of the table {table}, which its certificate names: it has {len(files)}"
                raise FileError(name, detail)
            expected = _Expected(f"{name}/{files[0]}", known, table)
            content = self.content(place / files[0], expected.name)
            is_csv = EXTENSIONS[os.path.splitext(files[0])[1]] == "csv"
            tables[table] = (self.csv if is_csv else self.table)(content, expected)
        return self._result(tables, known)

    def parts(self, place: Location, name: str) -> PrivateTables:
        """The tables of a folder that Spark wrote. Each part of a table has the certificate inside."""
        file = place / SPARK_CERTIFICATE
        self._take_signature(place / f"{SPARK_CERTIFICATE}{SIGNATURE_ENDING}")
        known = known_at(file, f"{name}/{SPARK_CERTIFICATE}") if file.is_file() else None
        names = [""] if _parts(place) else place.folders() if known is None else [*known.mechanisms]
        tables, digests = {}, {}
        for table in names:
            digests[table] = PartsDigest()
            folder, shown = (place / table, f"{name}/{table}") if table else (place, name)
            tables[table], known = self._joined(folder, shown, known, table, digests[table])
        assert known is not None
        if tables.keys() != known.mechanisms.keys():
            raise FileError(name, f"must have the tables of its certificate: {', '.join(known.mechanisms)}")
        record = known.certificate.get("record")
        committed = None if record is None else record.get("committed_digest")
        found = digest_of_tables({table: digest.hexdigest() for table, digest in digests.items()})
        if committed not in (None, found):
            raise FileError(name, "must have the rows that were committed: a part is missing, damaged or changed")
        return self._result({table: tables[table] for table in known.mechanisms}, known)

    def _joined(
        self, folder: Location, name: str, known: Known | None, table: str, digest: PartsDigest
    ) -> tuple[pa.Table, Known]:
        """The table of all parts, whose rows are added to the digest, and their certificate."""
        rows: list[pa.Table] = []
        are_certified = set()
        for path, partition in _parts(folder):
            shown = f"{name}/{os.path.basename(path)}"
            part = self._parquet(self.content(replace(folder, path=path), shown), shown)
            metadata = _spark_metadata(part.schema, shown)
            are_certified.add(bool(metadata))
            expected = _Expected(shown, known, table)
            roles = expected.roles(part.schema, metadata)
            known = expected.known
            rows.append(self._checked(part, roles, shown))
            digest.add(partition, part)
            if rows[0].schema != rows[-1].schema:
                raise FileError(shown, "must have the columns of the other parts")
        if known is None or not rows:
            raise FileError(name, "must have the parts of a table, such as part-00000-000.parquet")
        if len(are_certified) > 1:
            raise FileError(name, "must have a certificate in each part, and some have none")
        return pa.concat_tables(rows), known

    def table(self, content: pa.Buffer, expected: _Expected) -> pa.Table:
        """The table of a file that says its format itself."""
        kind = format_of(content)
        if kind == "parquet":
            table = self._parquet(content, expected.name)
            return self._checked(table, expected.roles(table.schema), expected.name)
        try:
            table = read_stream(stream_in(content) if kind == "arrow_file" else content, expected.roles)
        except FileError:
            raise
        except FAULTS:
            table = None
        return self._taken(table, expected.name)

    def _take_signature(self, file: Location) -> None:
        """The signature of a file of its own, which has the whole certificate."""
        if file.is_file():
            try:
                self.signature = file.content(file.path, MOST_SCHEMA_BYTES).to_pybytes().decode()
            except (TooLarge, UnicodeDecodeError):
                raise FileError(file.path, "must be a signature in JSON") from None

    def _parquet(self, content: pa.Buffer, name: str) -> pa.Table:
        try:
            return read_parquet(content, self.left)
        except (TooLarge, MemoryError):
            error = self.too_large(name)
        except FAULTS:
            error = FileError(name, _MUST_BE)
        raise error  # outside of the handlers, whose exceptions quote the file

    def _checked(self, table: pa.Table, roles: Roles, name: str) -> pa.Table:
        try:
            table = checked_rows(table.schema, table.to_batches(), roles)
        except FAULTS:
            table = None
        return self._taken(table, name)

    def _taken(self, table: pa.Table | None, name: str) -> pa.Table:
        if table is None:
            raise FileError(name, _MUST_BE)
        self.signature = self.signature or signature_in(table)
        self.taken += table.nbytes
        if self.left < 0:
            raise self.too_large(name)
        return table

    def csv(self, content: pa.Buffer, expected: _Expected) -> pa.Table:
        """The table of CSV. Counts and values are integers if their grid says so."""
        assert expected.known is not None
        detail = "must be CSV in UTF-8, with a header line"
        try:
            names = header_of(content)
            roles = expected.named(pa.schema([pa.field(name, pa.string()) for name in names]), None)
            own = expected.table or ""
            rounded = expected.known.meanings[own].rounded
            types = self._csv_types(names, roles, expected.known.mechanisms[own], rounded)
            schema, batches = csv_batches(content, types, is_written_here=True)
            table = checked_rows(schema, batches, roles)
        except FileError:
            raise
        except InvalidGroups as error:
            detail, table = _in_csv(error), None
        except FAULTS:
            table = None
        if table is None:
            raise FileError(expected.name, detail)
        return self._taken(table.select(names), expected.name)

    def _csv_types(
        self, names: Sequence[str], roles: Roles, mechanism: AnyMechanism, rounded: tuple[float, ...] | None
    ) -> dict[str, CsvType]:
        grids = zip(roles.numbers, rounded or (count_grid(mechanism), *value_grids(mechanism)), strict=True)
        types: dict[str, CsvType] = dict.fromkeys(names, "float64")  # of the intervals
        types |= {name: self.types.get(name, "string") for name in roles.keys}
        types |= {name: "int64" if grid == 1 else "float64" for name, grid in grids}
        return types

    def _result(self, tables: Mapping[str, pa.Table], known: Known) -> PrivateTables:
        """The tables, each with the certificate and with its name in the metadata, as when it was released."""
        text = known.certificate.recorded(None).to_json()
        self.found, named = dict(tables), {}
        for name, table in tables.items():
            mechanism, meaning = known.mechanisms[name], known.meanings[name]
            released = table.select(meaning.without_averages(table.column_names))
            roles = roles_in(released.column_names, mechanism.column_names)
            wide = with_averages(released, mechanism, roles, meaning)
            named[name] = wide.replace_schema_metadata(metadata_of(text, name, self.signature))
        return PrivateTables(named, known.certificate, self.signature)


def _beside(place: Location, name: str) -> Known:
    """The certificate next to CSV: of this file, or of a folder of tables."""
    folder, _, file = place.path.rpartition("/")
    near = replace(place, path=folder)
    for beside in (f"{file}.certificate.json", CERTIFICATE_FILE):
        if (near / beside).is_file():
            return known_at(near / beside, beside)
    detail = f"must have its certificate next to it, as {file}.certificate.json; if it is elsewhere, give certificate="
    raise FileError(name, detail)


def _parts(folder: Location) -> list[tuple[str, int]]:
    return parts_in(folder.files, folder.path)


def _spark_metadata(schema: pa.Schema, name: str) -> dict[bytes, bytes]:
    try:
        return spark_metadata(schema)
    except FAULTS:
        pass
    raise FileError(name, "must have metadata that can be read: they are damaged")


def _in_csv(error: InvalidGroups) -> str:
    """What is wrong with a file, from an error about its columns."""
    column = error.pointer.removeprefix("/csv_types/")
    return error.detail if column == error.pointer else f"column {column}: {error.detail}"
