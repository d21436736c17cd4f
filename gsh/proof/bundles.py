"""The entry of a budget that paid for a release, in an audit bundle (GET /budgets/{id}/bundle)."""

import json
import os
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any

from gsh.certificate import Certificate
from gsh.errors import FileError

__all__ = ["wrong_entry"]

_MOST_BYTES = 1 << 28
"""Of a history, unpacked."""


def wrong_entry(stated: Certificate, path: str | os.PathLike[str]) -> Iterator[tuple[str, str]]:
    """What the history of the budget in a bundle says otherwise than the certificate."""
    if stated.budget is None:
        yield "budget", "has not paid: no entry of a bundle is about this release"
        return
    name = str(stated.budget.id)
    entries = _history(os.fspath(path), name)
    paid = [each for each in entries if _details(each).get("release_id") == stated.release_id]
    if len(paid) != 1:
        yield "entry", f"must be once in the history of the budget {name}, and it is there {len(paid)} times"
        return
    (entry,) = paid
    details, record = _details(entry), stated.get("record")
    for member in ("idempotency_key", "mu_squared", "hazard"):
        if details.get(member) != stated.get(member):
            yield f"entry/{member}", f"must be {stated.get(member)!r}, as the certificate says"
    if record is not None and (entry.get("number"), entry.get("hash")) != (record.entry, record.head):
        yield "entry", f"must be number {record.entry} with the hash {record.head}, as the certificate says"


def _history(path: str, budget: str) -> list[Mapping[str, Any]]:
    try:
        with zipfile.ZipFile(path) as bundle, bundle.open(f"histories/{budget}.json") as file:
            content = file.read(_MOST_BYTES + 1)
        entries = json.loads(content)["entries"] if len(content) <= _MOST_BYTES else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError, NotImplementedError, zipfile.BadZipFile):
        entries = None
    if not isinstance(entries, list) or not all(isinstance(each, Mapping) for each in entries):
        raise FileError(path, f"must be an audit bundle with the history of the budget {budget}")
    return entries


def _details(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    details = entry.get("details")
    return details if isinstance(details, Mapping) else {}
