"""An answer of the service in JSON, as a file: its tables, its certificate, and its signature."""

import json
from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from gsh.certificate import Certificate
from gsh.documents import object_in
from gsh.errors import FileError
from gsh.histogram.formats import MOST_SCHEMA_BYTES
from gsh.histogram.json_answers import Answer, read_json, read_json_tables
from gsh.histogram.roles import interval_columns
from gsh.results.certificates import FAULTS, certified
from gsh.results.locations import Location, TooLarge
from gsh.results.reading import SIGNATURE_ENDING

__all__ = ["envelope_alone", "json_answer"]

_Found = tuple[Certificate, Mapping[str, pa.Table], Mapping[str, pa.Table], str | None]
_SIZE = 16
"""JSON takes about so many times its size when it is read."""


def json_answer(place: Location, name: str, most_bytes: int) -> _Found:
    """The certificate, the tables (twice: nothing follows from them) and the signature of an answer in JSON."""
    if not place.is_file():
        raise FileError(name, "must exist")
    beside = replace(place, path=f"{place.path}{SIGNATURE_ENDING}")
    try:
        content = place.content(name, most_bytes // _SIZE)
        document = object_in(content.to_pybytes())
        certificate, _ = certified(document["certificate"])
        tables = {"": read_json(content)} if "tables" not in document else read_json_tables(content)
        signature = None if document.get("signature") is None else json.dumps(document["signature"])
        if beside.is_file():
            signature = beside.content(beside.path, MOST_SCHEMA_BYTES).to_pybytes().decode()
        for table, answer in tables.items():
            content = certificate.contents.get(table)
            if answer.level != (None if content is None else content.get("intervals")):
                raise ValueError
        found = {table: _table(answer) for table, answer in tables.items()}
    except TooLarge:
        raise FileError(name, f"must have at most {most_bytes // _SIZE} bytes") from None
    except FAULTS:
        raise FileError(name, "must be an answer of the service in JSON: groups, and their certificate") from None
    return certificate, found, found, signature


def envelope_alone(place: Location, name: str) -> str | None:
    """The text of a file that is a signed certificate, and no answer; None if it is something else."""
    try:
        text = place.content(name, MOST_SCHEMA_BYTES).to_pybytes().decode()
        return text if "payload" in object_in(text) else None
    except FAULTS:
        return None


def _table(answer: Answer) -> pa.Table:
    numbers = zip(answer.roles.numbers, map(pa.array, answer.numbers), strict=True)
    ends = zip(interval_columns(answer.roles.numbers), map(pa.array, answer.intervals), strict=answer.level is not None)
    return pa.table(dict(zip(answer.roles.keys, answer.keys, strict=True)) | dict(numbers) | dict(ends))
