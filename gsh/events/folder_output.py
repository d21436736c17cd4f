"""Where several private tables go: a folder that appears whole or not at all.

private/by_url.parquet              the rows of a table; Parquet and Arrow have the certificate in their metadata
private/by_country_rest.parquet     the rests of a table, if they were asked for
private/certificate.json            the certificate of the release
private/certificate.json.sig.json   its signature, if a service released the tables
private/plan.json                   the plan of all tables, whose digest is in the certificate

The files are written to a hidden folder next to it, which then gets its name: one rename. A process that is killed
leaves the hidden folder, and never some of the tables in their place. Nobody removes it later: it may be that of
another run that is not finished, or the only copy of what was to be replaced.
"""

import errno
import io
import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from gsh.certificate import Certificate
from gsh.errors import Error, InvalidParameter
from gsh.events.tables import Plans
from gsh.histogram.conversion import write_rows
from gsh.histogram.file_formats import EXTENSIONS, Format
from gsh.histogram.formats import ANY_SIZE, read_table, signature_in
from gsh.histogram.roles import Roles, interval_columns
from gsh.library.whole_files import sync
from gsh.results.reading import SIGNATURE_ENDING
from gsh.results.rest import numbers_of

__all__ = ["FolderOutput"]

_CERTIFICATE_FILE = "certificate.json"
_SIGNATURE_FILE = f"{_CERTIFICATE_FILE}{SIGNATURE_ENDING}"
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
        self._refuse_link()
        if not self.path.absolute().parent.is_dir():
            raise InvalidParameter("to", "must be in a folder that exists")
        self.certificate_path = self.path / _CERTIFICATE_FILE
        self._plans, self._rests, self._format, self._overwrite = plans, rests, format, overwrite

    def check(self) -> None:
        """Refuse to replace what exists: only an empty folder, or with ``overwrite`` one that publish has written.

        It must have no other file: the whole folder is replaced.
        """
        self._refuse_link()
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
        plans = _plans_in(folder) or (self._plans if self._is_certified(folder) else None)
        if plans is None:
            return None
        stems = [stem for name in plans.tables for stem in (name, f"{name}_rest")]
        for ending in (self._format, *_FORMATS):
            names = {f"{stem}.{ending}" for stem in stems}
            if any((folder / name).is_file() for name in names):
                break
        return names | {_CERTIFICATE_FILE, _SIGNATURE_FILE, _PLAN_FILE}

    def _refuse_link(self) -> None:
        if self.path.is_symlink():
            detail = f"must not be a symbolic link: {self.path.name} is one; give the folder itself"
            raise InvalidParameter("to", detail)

    def _is_empty(self) -> bool:
        return self.path.is_dir() and not self.path.is_symlink() and not any(self.path.iterdir())

    def written_before(self) -> bool:
        """Whether this release is here already: the plan or the certificate says so. Other files may be damaged.

        The salt of the plan comes from the budget and the name of the release, so its digest stands for them too.
        """
        plans = _plans_in(self.path)
        return (plans is not None and plans.digest == self._plans.digest) or self._is_certified(self.path)

    def _is_certified(self, folder: Path) -> bool:
        """Whether the certificate in a folder is of this plan."""
        try:
            certificate = json.loads((folder / _CERTIFICATE_FILE).read_bytes())
            return {table["bounds"]["plan_digest"] for table in certificate["tables"]} == {self._plans.digest}
        except (OSError, ValueError, KeyError, TypeError):
            return False

    def is_whole(self, tables: Mapping[str, pa.Table], rests: Mapping[str, pa.Table], certificate: Certificate) -> bool:
        """Whether the folder has these files. If not, it is refused, or to be written again with ``overwrite``."""
        for name, write in self._contents(tables, rests, certificate):
            expected = io.BytesIO()
            write(expected)
            if not _is_same(self.path / name, expected.getvalue()):
                break
        else:
            return True
        if not self._overwrite:
            detail = f"{name} in {self.path.name} is missing, damaged or changed"
            again = "overwrite (--force) writes this release again, and nothing is charged"
            raise InvalidParameter("to", f"must be as it was published: {detail}; {again}")
        return False

    def _file(self, name: str) -> str:
        return f"{name}.{self._format}"

    def _contents(
        self, tables: Mapping[str, pa.Table], rests: Mapping[str, pa.Table], certificate: Certificate
    ) -> Iterator[tuple[str, Callable[[IO[bytes]], object]]]:
        """The name of each file, and what writes it."""
        text, into = certificate.to_json(), EXTENSIONS[f".{self._format}"]
        roles = self._plans.roles
        finer = {name: interval_columns(numbers_of(roles[name], roles[self._rests[name]])) for name in rests}
        for name, table, (first, *others), file in (
            *((name, table, self._plans.tables[name].written.numbers, name) for name, table in tables.items()),
            *((name, table, finer[name], f"{name}_rest") for name, table in rests.items()),
        ):
            columns = Roles(roles[name].keys, first, tuple(others))
            yield self._file(file), partial(_write_rows, table, columns, into, text, file)
        signature = next(filter(None, map(signature_in, tables.values())), None)
        documents = {_PLAN_FILE: self._plans.to_json(), _CERTIFICATE_FILE: certificate.to_dict()}
        documents |= {} if signature is None else {_SIGNATURE_FILE: json.loads(signature)}
        for name, document in documents.items():
            yield name, partial(_write_json, document)

    def write(self, tables: Mapping[str, pa.Table], rests: Mapping[str, pa.Table], certificate: Certificate) -> None:
        """All files, or none of them."""
        self.check()
        with self._staged() as folder:
            for name, write in self._contents(tables, rests, certificate):
                with _synced(folder / name) as sink:
                    write(sink)

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
            sync(staging)
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
            sync(target.parent)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
            _remove(replaced, known)


def _write_rows(table: pa.Table, roles: Roles, into: Format, certificate: str, name: str, sink: IO[bytes]) -> None:
    write_rows(table, roles, into, certificate, sink, name)


def _write_json(document: Mapping[str, Any], sink: IO[bytes]) -> None:
    sink.write(json.dumps(document, indent=2, ensure_ascii=False).encode() + b"\n")


def _is_same(path: Path, expected: bytes) -> bool:
    """Whether a file has these bytes; or, as another version of pyarrow writes them, the same rows and certificate."""
    try:
        found = path.read_bytes()
        if found == expected:
            return True
        if path.suffix == ".json":
            return bool(json.loads(found) == json.loads(expected))
        if path.suffix == ".csv":
            return False
        theirs, ours = (read_table(pa.py_buffer(each), ANY_SIZE)[1] for each in (found, expected))
        return bool(theirs.equals(ours) and theirs.schema.metadata == ours.schema.metadata)
    except (OSError, ValueError, Error):
        return False


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
