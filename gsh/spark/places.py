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
import hashlib
import json
import os
import re
import secrets
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from gsh.arguments import path as path_of
from gsh.errors import InvalidParameter
from gsh.histogram.content import Column, digest_of
from gsh.histogram.keys.columns import key_of

__all__ = ["SEED_FILE", "Finished", "Place"]

SEED_FILE = "seed.json"
_CERTIFICATE_FILE, _PLAN_FILE, _FINISHED_FILE = "_certificate.json", "_plan.json", "finished.json"
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_HALF_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:(?!//)")
_WRITTEN = re.compile(r"part-(\d+)-.*?c(\d+)\.(?:.*\.)?parquet")
_PLACED = re.compile(r"part-(\d+)-(\d+)\.parquet")
_VERSION = b"gsh output 1"
_VERSION_OF_TABLES = b"gsh output of tables 1"


@dataclass(frozen=True, slots=True)
class Finished:
    """A complete attempt: its folder, the SHA-256 of its rows, and their number."""

    attempt: str
    digest: str
    rows: int


class Place:
    """The folder of a release. A name without a scheme is on the local, or a mounted, file system.

    ``tables`` are the names of several tables, each with a folder inside; the only table has the empty name.
    """

    def __init__(self, to: str | os.PathLike[str], staging: str = "", tables: Sequence[str] = ("",)) -> None:
        given = path_of("to", to)
        if _HALF_URI.match(given):
            raise InvalidParameter("to", "must be a path, or a URI with two slashes after its scheme, such as s3://")
        if _URI.match(given) and not given.startswith("file://"):
            try:
                self._files, path = fs.FileSystem.from_uri(given)
            except (pa.ArrowException, OSError) as error:
                detail = "must be a place that pyarrow can reach from the driver, with its credentials"
                raise InvalidParameter("to", f"{detail}: {error}") from None
            self._prefix, self.is_local = given.partition("?")[0].rstrip("/").removesuffix(path.rstrip("/")), False
        else:
            self._files, path = fs.LocalFileSystem(), os.path.abspath(given.removeprefix("file://"))
            self._prefix, self.is_local = "file://", True
        self.folder = path.rstrip("/")
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

    def certificate(self, folder: str) -> dict[str, Any] | None:
        """The certificate in a folder, if it has one: then the release is committed."""
        return self.read(f"{folder}/{_CERTIFICATE_FILE}")

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
            raise InvalidParameter("to", f"must not be changed during a run: {path} is damaged")
        return document

    def write(self, path: str, document: Mapping[str, Any]) -> None:
        """A JSON document that appears whole."""
        partial = f"{path}.{secrets.token_hex(4)}.partial"
        with self._files.open_output_stream(partial) as file:
            file.write(json.dumps(document, indent=2, ensure_ascii=False).encode() + b"\n")
        self._files.move(partial, path)

    def write_secret(self, path: str, document: Mapping[str, Any]) -> None:
        """A JSON document that only its owner can read, on a local file system. Of two drivers, one is first."""
        with contextlib.suppress(FileExistsError):
            os.mkdir(self.staging, 0o700)
        self.check_secrets()
        partial = f"{path}.{secrets.token_hex(4)}.partial"
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump(document, file)
        try:
            os.link(partial, path)
        except FileExistsError:
            pass  # that of the other driver stays
        finally:
            os.unlink(partial)

    def check_secrets(self) -> None:
        """On a local file system: nobody else can write to the staging folder, or has put files into it.

        Who can plant a seed can remove the noise that is made of it.
        """
        for path in (self.staging, f"{self.staging}/{SEED_FILE}"):
            try:
                found = os.lstat(path)
            except FileNotFoundError:
                continue
            is_expected = (stat.S_ISDIR if path == self.staging else stat.S_ISREG)(found.st_mode)
            if not is_expected or found.st_uid != os.geteuid() or found.st_mode & 0o022:
                raise InvalidParameter("to", f"must have a staging folder of your own: {path} belongs to others")

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
        made = Finished(f"{self.staging}/{document['attempt']}", document["digest"], document["rows"])
        return made if self.exists(made.attempt) else None

    @staticmethod
    def of_table(folder: str, table: str) -> str:
        """The folder of a table inside the folder of a release."""
        return f"{folder}/{table}" if table else folder

    def finish(self, attempt: str) -> Finished:
        """Give the files of an attempt their names, and compute the digest of their rows."""
        for table in self._tables:
            folder = self.of_table(attempt, table)
            for found in self._files.get_file_info(fs.FileSelector(folder, allow_not_found=True)):
                name = _WRITTEN.fullmatch(found.base_name)
                if name is None:
                    self.remove(found.path)
                else:
                    self._files.move(found.path, f"{folder}/part-{int(name[1]):05d}-{int(name[2]):03d}.parquet")
        return Finished(attempt, *self.digest(attempt))

    def record(self, made: Finished) -> None:
        document = {"attempt": made.attempt.rpartition("/")[2], "digest": made.digest, "rows": made.rows}
        self.write(f"{self.staging}/{_FINISHED_FILE}", document)

    def digest(self, folder: str) -> tuple[str, int]:
        """The SHA-256 of the rows of a release, and their number. That of several tables is computed from theirs."""
        if self._tables == ("",):
            return self._digest(folder)
        content, rows = hashlib.sha256(_VERSION_OF_TABLES), 0
        for table in self._tables:
            own, number = self._digest(self.of_table(folder, table))
            content.update(len(table).to_bytes(8, "little") + table.encode() + bytes.fromhex(own))
            rows += number
        return content.hexdigest(), rows

    def _digest(self, folder: str) -> tuple[str, int]:
        """The same of one table: of the rows in the order of its files."""
        content, rows = hashlib.sha256(_VERSION), 0
        for path, partition in self._parts(folder):
            with self._files.open_input_file(path) as file:
                table = pq.read_table(file, coerce_int96_timestamp_unit="us")
            if len(table):
                content.update(partition.to_bytes(8, "little") + len(table).to_bytes(8, "little"))
                content.update(_content(table))
                rows += len(table)
        return content.hexdigest(), rows

    def rows(self, folder: str) -> int:
        """The number of rows of a release."""
        rows = 0
        for table in self._tables:
            for path, _ in self._parts(self.of_table(folder, table)):
                with self._files.open_input_file(path) as file:
                    rows += pq.read_metadata(file).num_rows
        return rows

    def is_written(self, folder: str) -> bool:
        """Whether each table has a file."""
        return all(self._parts(self.of_table(folder, table)) for table in self._tables)

    def _parts(self, folder: str) -> list[tuple[str, int]]:
        """The files with rows of a table in their order, each with its partition."""
        selected = self._files.get_file_info(fs.FileSelector(folder, allow_not_found=True))
        found = sorted(selected, key=lambda each: each.base_name)
        named = ((each.path, _PLACED.fullmatch(each.base_name)) for each in found)
        return [(path, int(name[1])) for path, name in named if name is not None]

    def certify(self, made: Finished, plan: Mapping[str, Any], certificate: Mapping[str, Any]) -> None:
        """Write the plan and the certificate next to the rows of an attempt, the certificate last."""
        self.write(f"{made.attempt}/{_PLAN_FILE}", plan)
        self.write(f"{made.attempt}/{_CERTIFICATE_FILE}", certificate)

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


def _content(table: pa.Table) -> bytes:
    """The digest of the rows of a file in their order."""
    order = np.arange(len(table), dtype=np.int32)
    named = [(name, key_of(table[name], table.schema.field(name), name)) for name in table.column_names]
    return digest_of([Column("", name, *key.content(order)) for name, key in named])
