"""Where a private table goes: a file that appears whole or not at all, with the certificate inside or next to it.

private.parquet                     the rows; Parquet and Arrow have the certificate in their metadata
private.parquet.plan.json           the plan, whose digest is in the certificate
private.csv.certificate.json        the certificate, for CSV only
private.csv.sig.json                its signature by the service that released it, for CSV only
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from gsh.certificate import Certificate
from gsh.errors import Error, InvalidParameter
from gsh.events.plan import Plan
from gsh.events.tables import AnyPlan
from gsh.histogram.conversion import write_rows
from gsh.histogram.file_formats import EXTENSIONS, Format
from gsh.histogram.formats import ANY_SIZE as _ANY_SIZE
from gsh.histogram.formats import CERTIFICATE, metadata_of, read_table, signature_in
from gsh.histogram.released_content import contents_of
from gsh.library.whole_files import whole_files
from gsh.results.reading import SIGNATURE_ENDING

__all__ = ["Output", "certified_rows"]


class Output:
    """A file to write, checked before anything is read."""

    def __init__(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        self.path = Path(path)
        found = EXTENSIONS.get(self.path.suffix.lower())
        if found is None:
            raise InvalidParameter("to", f"must be a name that ends with one of {', '.join(EXTENSIONS)}")
        self.format: Format = found
        self.plan_path = self.path.with_name(f"{self.path.name}.plan.json")
        self.certificate_path = self.path.with_name(f"{self.path.name}.certificate.json") if found == "csv" else None
        self.signature_path = self.path.with_name(f"{self.path.name}{SIGNATURE_ENDING}") if found == "csv" else None
        self._overwrite = overwrite
        if not self.path.parent.is_dir():
            raise InvalidParameter("to", "must be in a folder that exists")

    def check(self, plan: Plan) -> list[Path]:
        """Refuse to replace what exists, and return what may be replaced.

        Without ``overwrite`` that is what a killed run of this plan has left, which is never the table.
        """
        paths = [self.path, self.plan_path, *filter(None, [self.certificate_path, self.signature_path])]
        there = [path for path in paths if os.path.lexists(path)]
        is_rest = self.path not in there and _plan_digest(self.plan_path) == plan.digest
        if there and not (self._overwrite or is_rest):
            raise self._exists(there[-1])
        return there

    def _exists(self, path: Path) -> InvalidParameter:
        detail = f"must be a new place: {path.name} exists already; choose another name, or overwrite (--force)"
        return InvalidParameter("to", detail)

    def written_before(self, once: str, plan: Plan) -> tuple[bool, pa.Table | None]:
        """Whether this release was written here before, by the same plan; and its rows, if the format has types."""
        try:
            table = None if self.certificate_path is not None else self._read()
            certificate = self._certificate(table)
            is_it = certificate["idempotency_key"] == once and certificate["bounds"]["plan_digest"] == plan.digest
        except (OSError, ValueError, KeyError, TypeError, Error):
            return False, None
        return is_it, table

    def write(self, table: pa.Table, plan: Plan, certificate: Certificate) -> None:
        """All files, or none of them: the table gets its name last."""
        replaced = self.check(plan)
        documents = {self.plan_path: plan.to_json()}
        if self.certificate_path is not None:
            documents[self.certificate_path] = certificate.to_dict()
        signature = signature_in(table)
        if self.signature_path is not None and signature is not None:
            documents[self.signature_path] = json.loads(signature)
        try:
            with whole_files([*documents, self.path], replaced) as (*files, sink):
                for file, document in zip(files, documents.values(), strict=True):
                    file.write(_json(document))
                write_rows(table, plan.written, self.format, certificate.to_json(), sink)
        except FileExistsError:
            taken = self.path  # by another program, in the meantime
        else:
            return
        raise self._exists(taken)

    def _certificate(self, table: pa.Table | None) -> Any:
        """The certificate: in the metadata of the table, or in a file next to CSV."""
        if table is not None:
            return json.loads((table.schema.metadata or {}).get(CERTIFICATE.encode(), b"{}"))
        assert self.certificate_path is not None
        return json.loads(self.certificate_path.read_bytes()) if self.path.is_file() else None

    def _read(self) -> pa.Table:
        with self.path.open("rb") as file:
            return read_table(pa.py_buffer(file.read()), _ANY_SIZE)[1]


def _plan_digest(path: Path) -> str | None:
    """The digest of the plan in a file, if there is one."""
    try:
        return Plan.from_json(json.loads(path.read_bytes())).digest
    except (OSError, ValueError, Error):
        return None


def certified_rows(
    certificate: Certificate, plan: AnyPlan, tables: Mapping[str, pa.Table]
) -> tuple[Certificate, dict[str, pa.Table]]:
    """The certificate with the digests of drawn tables, and the tables with it. The only table has the empty name."""
    roles = {"": plan.roles} if isinstance(plan, Plan) else plan.roles
    certified = certificate.with_contents(contents_of(tables, roles))
    return certified, {name: _rows_with(table, certified, name) for name, table in tables.items()}


def _rows_with(table: pa.Table, certificate: Certificate, name: str) -> pa.Table:
    """The table with the certificate in its metadata, and with its name if it is one of several."""
    return table.replace_schema_metadata(metadata_of(certificate.to_json(), name))


def _json(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, indent=2, ensure_ascii=False).encode() + b"\n"
