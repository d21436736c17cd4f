"""Where a release goes: a folder that appears whole, from a staging folder next to it.

    private/part-00000-000.parquet …      the rows, sorted by group key inside each file
    private/_certificate.json, _plan.json
    private/by_url/part-00000-000.parquet …      the same of each table, if the release has several
    .private.staging/finished.json        which attempt is complete, with its digest
    .private.staging/<attempt>/           its files
    .private.staging/seed.json            without a service: the seed, for the owner's eyes only, until the commit

Spark and other readers of such folders skip names that begin with an underscore or a dot.
"""

import contextlib
import json
import os
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from gsh.certificate import Certificate
from gsh.errors import InvalidParameter
from gsh.events.own_files import check_own, write_own
from gsh.histogram.released_content import contents_of
from gsh.histogram.roles import Roles
from gsh.results.locations import located
from gsh.results.parts import PartsDigest, digest_of_tables, named_part, parts_in

__all__ = ["SEED_FILE", "Finished", "Place"]

SEED_FILE = "seed.json"
_CERTIFICATE_FILE, _PLAN_FILE, _FINISHED_FILE = "_certificate.json", "_plan.json", "finished.json"
_MOST_ROWS = 20_000_000
"""The driver sorts so many rows for the digest that is the same in every format."""
_WRITTEN = re.compile(r"part-(\d+)-.*?c(\d+)\.(?:.*\.)?parquet")


@dataclass(frozen=True, slots=True)
class Finished:
    """A complete attempt: its folder, the SHA-256 of its rows, and their number."""

    attempt: str
    digest: str
    rows: int
    contents: Mapping[str, Mapping[str, Any]] | None = None
    """The digest of the rows of each table that is the same in every format; None if the rows are too many."""


class Place:
    """The folder of a release. A name without a scheme is on the local, or a mounted, file system.

    ``tables`` are the names of several tables, each with a folder inside; the only table has the empty name.
    """

    def __init__(self, to: str | os.PathLike[str], staging: str = "", tables: Sequence[str] = ("",)) -> None:
        found = located("to", to)
        self._files, self._prefix, self.is_local = found.files, found.prefix, found.is_local
        self.folder = found.path
        parent, _, name = self.folder.rpartition("/")
        if not name:
            raise InvalidParameter("to", "must be the path of a folder that publish makes")
        self.staging = f"{parent}/.{name}{staging}.staging"
        self._tables = tuple(tables)
        for table in self._tables:
            if table.startswith((".", "_")):
                raise InvalidParameter(
                    "tables", "must have names that begin with a letter or a digit: they are folders"
                )

    def __str__(self) -> str:
        return self.folder if self.is_local else self.uri(self.folder)

    def uri(self, path: str) -> str:
        """The path for Spark, whatever its default file system is."""
        return self._prefix + path

    def make_parent(self) -> None:
        """The folder that the release will be in. It is made before anything is charged."""
        parent = self.folder.rpartition("/")[0]
        try:
            self._files.create_dir(parent or "/", recursive=True)
        except OSError as error:
            raise InvalidParameter("to", f"must be in a folder that can be made: {error}") from None

    def exists(self, path: str) -> bool:
        return bool(self._files.get_file_info(path).type != fs.FileType.NotFound)

    def certificate(self, folder: str) -> Certificate | None:
        """The certificate in a folder, if it has one: then the release is committed."""
        path = f"{folder}/{_CERTIFICATE_FILE}"
        document = self.read(path)
        try:
            return None if document is None else Certificate.from_json(document)
        except (ValueError, TypeError, LookupError, AttributeError):
            raise self._damaged(path) from None

    def plan(self, folder: str) -> dict[str, Any] | None:
        return self.read(f"{folder}/{_PLAN_FILE}")

    def read(self, path: str) -> dict[str, Any] | None:
        """A JSON document, if it is there."""
        if not self.exists(path):
            return None
        try:
            with self._files.open_input_stream(path) as file:
                content = file.readall()
        except FileNotFoundError:
            return None  # another driver was faster
        try:
            document = json.loads(content)
        except ValueError:
            document = None
        if not isinstance(document, dict):
            raise self._damaged(path)
        return document

    @staticmethod
    def _damaged(path: str) -> InvalidParameter:
        return InvalidParameter("to", f"must not be changed during a run: {path} is damaged")

    def write(self, path: str, document: Mapping[str, Any]) -> None:
        """A JSON document that appears whole."""
        partial = f"{path}.{secrets.token_hex(4)}.partial"
        with self._files.open_output_stream(partial) as file:
            file.write(json.dumps(document, indent=2, ensure_ascii=False).encode() + b"\n")
        self._files.move(partial, path)

    def write_secret(self, path: str, document: Mapping[str, Any]) -> None:
        """A JSON document that only its owner can read, on a local file system. Of two drivers, one is first."""
        write_own(self.staging, path, document)

    def check_secrets(self) -> None:
        """On a local file system: nobody else can write to the staging folder, or has put files into it.

        Who can plant a seed can remove the noise that is made of it.
        """
        check_own(self.staging, f"{self.staging}/{SEED_FILE}")

    def remove(self, path: str) -> None:
        if self.exists(path):
            is_folder = self._files.get_file_info(path).type == fs.FileType.Directory
            with contextlib.suppress(FileNotFoundError):  # another driver was faster
                (self._files.delete_dir if is_folder else self._files.delete_file)(path)

    def new_attempt(self) -> str:
        """The folder of a new attempt. Others stay until the release is complete: their drivers may be alive."""
        self._files.create_dir(self.staging)
        return f"{self.staging}/{secrets.token_hex(8)}"

    def finished(self) -> Finished | None:
        """The complete attempt, if there is one."""
        document = self.read(f"{self.staging}/{_FINISHED_FILE}")
        if document is None:
            return None
        attempt = f"{self.staging}/{document['attempt']}"
        made = Finished(attempt, document["digest"], document["rows"], document.get("contents"))
        return made if self.exists(made.attempt) else None

    @staticmethod
    def of_table(folder: str, table: str) -> str:
        """The folder of a table inside the folder of a release."""
        return f"{folder}/{table}" if table else folder

    def finish(self, attempt: str, roles: Mapping[str, Roles]) -> Finished:
        """Give the files of an attempt their names, and compute the digests of their rows."""
        for table in self._tables:
            folder = self.of_table(attempt, table)
            for found in self._files.get_file_info(fs.FileSelector(folder, allow_not_found=True)):
                name = _WRITTEN.fullmatch(found.base_name)
                if name is None:
                    self.remove(found.path)
                else:
                    self._files.move(found.path, f"{folder}/{named_part(int(name[1]), int(name[2]))}")
        digest, rows = self.digest(attempt)
        contents = None
        if rows <= _MOST_ROWS and self.is_written(attempt):
            contents = contents_of({name: self._table(attempt, name) for name in self._tables}, roles)
        return Finished(attempt, digest, rows, contents)

    def _table(self, folder: str, name: str) -> pa.Table:
        parts = []
        for path, _ in parts_in(self._files, self.of_table(folder, name)):
            with self._files.open_input_file(path) as file:
                parts.append(pq.read_table(file, coerce_int96_timestamp_unit="us"))
        return pa.concat_tables(parts)

    def record(self, made: Finished) -> None:
        document = {"attempt": made.attempt.rpartition("/")[2], "digest": made.digest, "rows": made.rows}
        document |= {} if made.contents is None else {"contents": made.contents}
        self.write(f"{self.staging}/{_FINISHED_FILE}", document)

    def digest(self, folder: str) -> tuple[str, int]:
        """The SHA-256 of the rows of a release, and their number. That of several tables is computed from theirs."""
        digests = {table: PartsDigest() for table in self._tables}
        for name, digest in digests.items():
            for path, partition in parts_in(self._files, self.of_table(folder, name)):
                with self._files.open_input_file(path) as file:
                    digest.add(partition, pq.read_table(file, coerce_int96_timestamp_unit="us"))
        found = digest_of_tables({name: digest.hexdigest() for name, digest in digests.items()})
        return found, sum(digest.rows for digest in digests.values())

    def rows(self, folder: str) -> int:
        """The number of rows of a release."""
        rows = 0
        for table in self._tables:
            for path, _ in parts_in(self._files, self.of_table(folder, table)):
                with self._files.open_input_file(path) as file:
                    rows += pq.read_metadata(file).num_rows
        return rows

    def is_written(self, folder: str) -> bool:
        """Whether each table has a file."""
        return all(parts_in(self._files, self.of_table(folder, table)) for table in self._tables)

    def write_plan(self, made: Finished, plan: Mapping[str, Any]) -> None:
        """Write the plan next to the rows of an attempt, before the certificate."""
        self.write(f"{made.attempt}/{_PLAN_FILE}", plan)

    def certify(self, made: Finished, plan: Mapping[str, Any], certificate: Certificate) -> None:
        """Write the plan and the certificate next to the rows of an attempt, the certificate last."""
        self.write(f"{made.attempt}/{_PLAN_FILE}", plan)
        self.write(f"{made.attempt}/{_CERTIFICATE_FILE}", certificate.to_dict())

    def move(self, made: Finished) -> bool:
        """Move an attempt into its place, and remove the other attempts. False: another driver was faster."""
        is_first = self._move(made)
        with contextlib.suppress(OSError):  # another driver may be writing there: it removes the folder when it ends
            self.remove(self.staging)
        return is_first

    def _move(self, made: Finished) -> bool:
        if self.is_local:
            try:
                os.rename(made.attempt, self.folder)
            except OSError:
                if not self.exists(self.folder):
                    raise
                return False
            return True
        # An object store moves file by file. The certificate comes last: with it the release is whole.
        selected = self._files.get_file_info(fs.FileSelector(made.attempt, recursive=True))
        found = [each.path for each in selected if each.type == fs.FileType.File]
        for table in self._tables:
            self._files.create_dir(self.of_table(self.folder, table))
        for path in sorted(found, key=lambda path: (path.endswith(_CERTIFICATE_FILE), path)):
            self._files.move(path, f"{self.folder}/{path.removeprefix(made.attempt).lstrip('/')}")
        return True
