"""Where several private tables go: a folder that appears whole or not at all.

private/by_url.parquet              the rows of a table; Parquet and Arrow have the certificate in their metadata
private/by_country_rest.parquet     the rests of a table, if they were asked for
private/certificate.json            the certificate of the release
private/plan.json                   the plan of all tables, whose digest is in the certificate

The files are written to a hidden folder next to it, which then gets its name: one rename. A process that is killed
leaves the hidden folder, and never some of the tables in their place.
"""

import errno
import json
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from gsh.errors import Error, InvalidParameter
from gsh.events.plan import COUNT
from gsh.events.rest import numbers_of
from gsh.events.tables import Plans
from gsh.histogram.conversion import write_rows
from gsh.histogram.file_formats import EXTENSIONS
from gsh.histogram.tables import Roles, interval_columns

__all__ = ["FolderOutput"]

_CERTIFICATE_FILE = "certificate.json"
_PLAN_FILE = "plan.json"
_FORMATS = ("parquet", "arrow", "arrows", "csv")


class FolderOutput:
    """A folder to write, checked before anything is read."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        plans: Plans,
        rests: Mapping[str, str],
        *,
        format: str = "parquet",  # noqa: A002 - the argument of publish
        overwrite: bool = False,
    ) -> None:
        self.path = Path(path)
        if format not in _FORMATS:
            raise InvalidParameter("format", f"must be one of {', '.join(_FORMATS)}")
        if self.path.suffix.lower() in EXTENSIONS:
            raise InvalidParameter("to", "must be a folder: several tables are several files")
        if not self.path.absolute().parent.is_dir():
            raise InvalidParameter("to", "must be in a folder that exists")
        self.certificate_path = self.path / _CERTIFICATE_FILE
        self._plans, self._rests, self._format, self._overwrite = plans, rests, format, overwrite

    def check(self) -> None:
        """Refuse to replace what exists: only an empty folder, or with ``overwrite`` one that publish has written.

        It must have no other file: the whole folder is replaced.
        """
        if not os.path.lexists(self.path) or self._is_empty():
            return
        if not self._overwrite:
            detail = (
                f"must be a new place: {self.path.name} exists already; choose another name, or overwrite (--force)"
            )
            raise InvalidParameter("to", detail)
        known = self._known(self.path)
        if known is None:
            raise InvalidParameter("to", f"must be a folder that publish has written, to be replaced: {self.path.name}")
        for path in sorted(self.path.iterdir()):
            if path.name not in known or path.is_symlink() or not path.is_file():
                detail = f"{self.path.name} has {path.name}, which publish did not write; move it away"
                raise InvalidParameter("to", f"must be a folder that publish has written, to be replaced: {detail}")

    def _known(self, folder: Path) -> set[str] | None:
        """The names of the files that publish writes by the plan in a folder, in one format; None without a plan."""
        plans = _plans_in(folder)
        if plans is None or not (folder / _CERTIFICATE_FILE).is_file():
            return None
        stems = [stem for name in plans.tables for stem in (name, f"{name}_rest")]
        for ending in (self._format, *_FORMATS):
            names = {f"{stem}.{ending}" for stem in stems}
            if any((folder / name).is_file() for name in names):
                break
        return names | {_CERTIFICATE_FILE, _PLAN_FILE}

    def _is_empty(self) -> bool:
        return self.path.is_dir() and not self.path.is_symlink() and not any(self.path.iterdir())

    def written_before(self, once: str) -> bool:
        """Whether this release is here already, by the same plan and with the same files."""
        try:
            said = json.loads((self.path / _CERTIFICATE_FILE).read_bytes())
            digests = {table["bounds"]["plan_digest"] for table in said["tables"]}
            is_it = said["idempotency_key"] == once and digests == {self._plans.digest}
        except (OSError, ValueError, KeyError, TypeError, Error):
            return False
        return is_it and all((self.path / name).is_file() for name in self._files())

    def _file(self, name: str) -> str:
        return f"{name}.{self._format}"

    def _files(self) -> list[str]:
        return [*map(self._file, (*self._plans.tables, *(f"{name}_rest" for name in self._rests))), _PLAN_FILE]

    def write(
        self, tables: Mapping[str, pa.Table], rests: Mapping[str, pa.Table], certificate: Mapping[str, Any]
    ) -> None:
        """All files, or none of them."""
        self.check()
        text, into = json.dumps(certificate, ensure_ascii=False), EXTENSIONS[f".{self._format}"]
        plans = self._plans.tables
        with self._staged() as folder:
            for name, table in tables.items():
                plan = plans[name]
                roles = Roles(plan.by, COUNT, tuple(column.name for column in plan.sums))
                with _synced(folder / self._file(name)) as sink:
                    write_rows(table, roles, into, text, sink, name)
            for name, table in rests.items():
                first, *others = interval_columns(numbers_of(plans[name], plans[self._rests[name]]))
                with _synced(folder / self._file(f"{name}_rest")) as sink:
                    write_rows(table, Roles(plans[name].by, first, tuple(others)), into, text, sink, f"{name}_rest")
            for name, document in ((_PLAN_FILE, self._plans.to_json()), (_CERTIFICATE_FILE, certificate)):
                with _synced(folder / name) as sink:
                    sink.write(json.dumps(document, indent=2, ensure_ascii=False).encode() + b"\n")

    @contextmanager
    def _staged(self) -> Iterator[Path]:
        """A new folder. When the block ends without an error it gets its name; otherwise nothing is left."""
        target = self.path.absolute()
        hidden = f".{target.name[:200]}.{secrets.token_hex(4)}"
        staging, replaced = target.with_name(f"{hidden}.partial"), target.with_name(f"{hidden}.replaced")
        known: set[str] = set()
        staging.mkdir()
        try:
            yield staging
            _sync_folder(staging)
            if os.path.lexists(target) and not self._is_empty():
                self.check()
                known = self._known(target) or set()
                target.rename(replaced)
            try:
                staging.rename(target)
            except BaseException as error:
                if replaced.exists() and not os.path.lexists(target):
                    replaced.rename(target)
                if isinstance(error, OSError) and error.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
                    self.check()  # another run was first
                raise
            _sync_folder(target.parent)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
            _remove(replaced, known)


def _plans_in(folder: Path) -> Plans | None:
    """The plan of the tables in a folder, if it has one."""
    try:
        return Plans.from_json(json.loads((folder / _PLAN_FILE).read_bytes()))
    except (OSError, ValueError, Error):
        return None


def _remove(folder: Path, known: Iterable[str]) -> None:
    """Remove a folder with these files. If another program has put a file there in the meantime, both stay."""
    with suppress(OSError):
        for name in known:
            (folder / name).unlink(missing_ok=True)
        folder.rmdir()


@contextmanager
def _synced(path: Path) -> Iterator[Any]:
    with path.open("xb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
