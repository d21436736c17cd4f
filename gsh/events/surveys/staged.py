"""Rows between their draw and their place: in a hidden folder, so that a commit comes before anybody sees them.

rows/0.arrow …       the tables, in the order of the plan
rows/plan.json       the plan with the chosen bounds
rows/certificate.json
"""

import json
import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from gsh.certificate import Certificate
from gsh.errors import Error, InvalidParameter
from gsh.events.surveys.surveying import Surveying
from gsh.events.tables import AnyPlan, plan_from_json
from gsh.library.whole_files import sync
from gsh.results.parts import digest_of_tables

__all__ = ["StagedRows"]

_PLAN, _CERTIFICATE = "plan.json", "certificate.json"


class StagedRows:
    """The rows of a publication, in a folder of their owner alone."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._rows = folder, folder / "rows"

    def keep(
        self, plan: AnyPlan, said: Certificate, tables: Mapping[str, pa.Table]
    ) -> tuple[str, int, Mapping[str, Mapping[str, Any]]]:
        """Write the rows, all or none. What their commit says: their digest, their number, and that of each table."""
        document = said.to_dict()
        contents = {table.get("name", ""): table["content"] for table in document.get("tables", [document])}
        partial = self._folder / f"rows.{secrets.token_hex(4)}"
        partial.mkdir(mode=0o700, parents=True)
        for place, table in enumerate(tables.values()):
            with pa.OSFile(str(partial / f"{place}.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as file:
                file.write_table(table)
        for name, each in ((_PLAN, plan.to_json()), (_CERTIFICATE, document)):
            (partial / name).write_text(json.dumps(each))
        for path in partial.iterdir():
            sync(path)
        shutil.rmtree(self._rows, ignore_errors=True)  # of an earlier run: it was not committed
        os.rename(partial, self._rows)
        sync(self._folder)
        return _digest(said), sum(map(len, tables.values())), contents

    def committed(self, surveying: Surveying, digest: str | None) -> tuple[AnyPlan, Certificate, dict[str, pa.Table]]:
        """The rows with the committed digest. An error if they are not here, or of another plan."""
        detail = "must be a new name: this one is committed, and its rows are neither at `to` nor next to it"
        missing = InvalidParameter("once", detail)
        try:
            plan = plan_from_json(json.loads((self._rows / _PLAN).read_text()))
            said = Certificate.from_json(json.loads((self._rows / _CERTIFICATE).read_text()))
            tables = {}
            for place, name in enumerate(said.described):
                with pa.OSFile(str(self._rows / f"{place}.arrow")) as source:
                    tables[name] = pa.ipc.open_file(source).read_all()
        except (OSError, ValueError, LookupError, Error):
            raise missing from None
        if _digest(said) != digest:
            raise missing
        if not surveying.asks_for(plan):
            raise InvalidParameter("once", "must be a new name: a release by another plan has it already")
        return plan, said, tables


def _digest(said: Certificate) -> str:
    return digest_of_tables({name: str(table.content.sha256) for name, table in said.described.items()})
