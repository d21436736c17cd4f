"""gsh.verify: whether a file is as it was released, by whom, and whether its certificate is right.

[docs/certificate.md]

    signature     the envelope is signed by one of the keys, and the certificate is the one that was signed
    rows          their digest is the one of the certificate, in whatever format they are
    columns       further ones follow from the others: they are computed again
    numbers       μ, δ and all other numbers follow from the mechanisms: they are computed again in balls

No service is asked. What differs is named. Nothing of a file is believed before it is checked.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from gsh.certificate import Certificate
from gsh.documents import object_in
from gsh.errors import Error, FileError, InvalidParameter, ProofError
from gsh.histogram.archives import CERTIFICATE_FILE
from gsh.histogram.released_content import ReleasedContent, content_of
from gsh.histogram.roles import ENDS, interval_columns
from gsh.proof.answers import envelope_alone, json_answer
from gsh.proof.bundles import wrong_entry
from gsh.proof.envelopes import opened, stated_in, subjects_of
from gsh.proof.key_sources import KeysLike, keys_of
from gsh.proof.keys import KeySet
from gsh.proof.numbers import wrong_numbers
from gsh.results.averages import numbers_in
from gsh.results.certificates import FAULTS, CertificateLike, certified
from gsh.results.given_files import folder_of
from gsh.results.locations import Location, located
from gsh.results.parts import SPARK_CERTIFICATE, parts_in
from gsh.results.reading import SIGNATURE_ENDING, read_files

__all__ = ["Fault", "Verification", "verify", "verify_given"]

State = Literal["verified", "unsigned", "refused"]
_CLOSE = 1e-9


class Fault(NamedTuple):
    """What is not as it was released: where, and what is wrong."""

    where: str
    detail: str

    def __str__(self) -> str:
        return f"{self.where}: {self.detail}"


@dataclass(frozen=True, slots=True)
class Verification:
    """What a check of a file has found."""

    file: str
    faults: tuple[Fault, ...]
    certificate: Certificate | None
    """The certificate that was signed; or the one of the file, if there is no signature. None if there is none."""
    key_id: str | None = None
    """The key that signed; None if nothing was signed by a known key."""
    issuer: str | None = None
    address: str | None = None
    has_rows: bool = True
    """Whether rows were given. A signed certificate alone has none: then only its signature and numbers are checked."""

    @property
    def state(self) -> State:
        """``unsigned``: all that can be checked without a signature is right, and nobody vouches for it."""
        if self.faults:
            return "refused"
        return "unsigned" if self.key_id is None else "verified"

    @property
    def is_verified(self) -> bool:
        return self.state == "verified"

    def to_dict(self) -> dict[str, Any]:
        signed = {"key_id": self.key_id, "issuer": self.issuer, "address": self.address}
        return {
            "file": self.file,
            "state": self.state,
            "verified": self.is_verified,
            "has_rows": self.has_rows,
            "signed_by": None if self.key_id is None else signed,
            "differences": [each._asdict() for each in self.faults],
            "certificate": None if self.certificate is None else self.certificate.to_dict(),
        }


class _Read(NamedTuple):
    certificate: Certificate
    tables: Mapping[str, pa.Table] | None
    """None if there is a signed certificate alone."""
    expected: Mapping[str, pa.Table]
    """With the columns of means and ratios computed again."""
    signature: str | None


def verify(
    path: str | os.PathLike[str],
    *,
    keys: KeysLike | None = None,
    signature: str | os.PathLike[str] | None = None,
    certificate: CertificateLike | None = None,
    bundle: str | os.PathLike[str] | None = None,
    most_bytes: int = 2**33,
) -> Verification:
    """Whether a file is as it was released: its signature, its rows, and every number of its certificate.

    ``path`` is what ``gsh.read`` reads, or an answer in JSON. ``keys`` are the public keys of the issuer: a file, an
    address (https://gsh.example.org), or their JSON. Without them no signature can be checked. ``signature`` is a
    file with the signed envelope, if it is neither in the file nor next to it. ``bundle`` is an audit bundle of the
    budget: the entry that paid must be in its history, and cost as much.

        gsh.verify("private.parquet", keys="gsh-keys.json").state
    """
    name = os.fspath(path)
    known = None if keys is None else keys_of(keys)
    try:
        read = _read(located("path", path), name, certificate, most_bytes)
        envelope = read.signature if signature is None else _text_of(os.fspath(signature))
    except (FileError, InvalidParameter, ProofError) as error:
        return _unreadable(name, error)
    found = _verified(name, read, envelope, known)
    if bundle is None or found.certificate is None:
        return found
    entry = tuple(Fault(where, detail) for where, detail in wrong_entry(found.certificate, bundle))
    return replace(found, faults=(*found.faults, *entry))


def verify_given(files: Mapping[str, pa.Buffer], keys: KeySet, most_bytes: int) -> Verification:
    """The same for a released file in memory, with the files next to it: its certificate, its signature.

    Several tables, or the parts that Spark wrote, come with the certificate of their folder. An error if the files
    are not those of one release. What nobody has signed is unsigned, and not refused.
    """
    name = _main_of(files)
    place = folder_of(files) if name is None else folder_of(files) / name
    shown = "files" if name is None else name
    try:
        read = _read(place, shown, None, most_bytes)
    except (FileError, InvalidParameter, ProofError) as error:
        return _unreadable(shown, error)
    return _verified(shown, read, read.signature, None if read.signature is None else keys)


_BESIDE = (".certificate.json", SIGNATURE_ENDING, "plan.json")
"""How the names of files end that are next to a released file."""


def _main_of(files: Mapping[str, pa.Buffer]) -> str | None:
    """The name of the released file; None if the files are a folder of them."""
    if {CERTIFICATE_FILE, SPARK_CERTIFICATE} & files.keys() or parts_in(folder_of(files).files, ""):
        return None
    names = [name for name in files if not name.endswith(_BESIDE)] or [*files]
    if len(names) == 1:
        return names[0]
    raise InvalidParameter("file", f"must be one release: of several tables, give {CERTIFICATE_FILE} too")


def _unreadable(name: str, error: Error) -> Verification:
    return Verification(name, (Fault("file", f"{error.pointer} {error.detail}"),), None)


def _read(place: Location, name: str, certificate: CertificateLike | None, most_bytes: int) -> _Read:
    if name.lower().endswith(".json"):
        envelope = envelope_alone(place, name)
        if envelope is not None:
            return _Read(stated_in(object_in(envelope)), None, {}, envelope)
        return _Read(*json_answer(place, name, most_bytes))
    found, tables = read_files(place, name, certificate=certificate, most_bytes=most_bytes)
    return _Read(found.certificate, tables, found.tables, found.signature)


def _text_of(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read(1 << 23)
    except (OSError, ValueError):
        pass
    raise FileError(path, "must be a signature in JSON that can be read")


def _verified(name: str, read: _Read, envelope: str | None, keys: KeySet | None) -> Verification:
    stated, signer, faults = read.certificate, None, []
    if envelope is None:
        if keys is not None:
            faults.append(Fault("signature", "is missing: nobody vouches for this file"))
    elif keys is None:
        faults.append(Fault("signature", "cannot be checked without the public keys of its issuer: give keys"))
    else:
        try:
            signed = opened(_envelope(envelope), keys)
        except ProofError as error:
            faults.append(Fault(error.pointer, error.detail))
        else:
            signer, stated = signed.key_id, signed.certificate
            faults += _unlike(read.certificate, stated)
            if signed.subjects != subjects_of(stated):
                faults.append(Fault("envelope/payload", "must have the subjects that follow from its certificate"))
    faults += [] if read.tables is None else _wrong_rows(read.tables, read.expected, stated)
    faults += [Fault(f"certificate/{where}", detail) for where, detail in _wrong_numbers(stated)]
    who = (None, None) if keys is None or signer is None else (keys.issuer, keys.address)
    return Verification(name, tuple(faults), stated, signer, *who, has_rows=read.tables is not None)


def _envelope(text: str) -> Any:
    try:
        return object_in(text)
    except FAULTS:
        raise ProofError("envelope", "must be a JSON object: a DSSE envelope") from None


def _wrong_numbers(stated: Certificate) -> list[tuple[str, str]]:
    try:
        certified(stated.to_dict())
        return list(wrong_numbers(stated))
    except (*FAULTS, Error):
        return [("mechanism", "must be one that can be accounted for")]


def _unlike(found: Certificate, signed: Certificate) -> list[Fault]:
    """The members of a certificate that are not as signed. A record, or a content, may be in one of them only."""
    ours, theirs = found.to_dict(), signed.to_dict()
    if "record" in ours and None in (ours["record"], theirs.get("record")):
        ours["record"] = theirs["record"] = None
    differing = _differences(ours, theirs, "certificate")
    return [Fault(where, "is not as it was signed") for where in differing if not _is_content_of_parts(where, found)]


def _is_content_of_parts(where: str, found: Certificate) -> bool:
    """What Spark wrote into rows has no digest of all rows."""
    return where.rpartition("/")[2] == "content" and not found.contents


def _differences(one: Any, two: Any, where: str) -> Iterator[str]:
    """The places where two JSON values differ."""
    if isinstance(one, dict) and isinstance(two, dict):
        for name in one | two:
            if name not in one or name not in two:
                yield f"{where}/{name}"
            else:
                yield from _differences(one[name], two[name], f"{where}/{name}")
    elif isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
        for place, (first, second) in enumerate(zip_longest(one, two)):
            yield from _differences(first, second, f"{where}/{place}")
    elif type(one) is not type(two) or one != two:
        yield where


def _wrong_rows(
    tables: Mapping[str, pa.Table], expected: Mapping[str, pa.Table], stated: Certificate
) -> Iterator[Fault]:
    if tables.keys() != stated.described.keys() and (len(tables) != 1 or not stated.contents):
        yield Fault("tables", f"must be {', '.join(stated.described)}: they are those of the certificate")
    for name, table in tables.items():
        of = f" of {name}" if name else ""
        content = stated.contents.get(name)
        if content is None:
            yield Fault(f"rows{of}", "cannot be compared: the certificate has no digest of them")
            continue
        try:
            released = ReleasedContent.from_json(content.to_dict())
            released.roles  # noqa: B018 - raises an error if the columns are none
        except FAULTS:
            yield Fault(f"rows{of}", "cannot be compared: their digest is of a newer version")
            continue
        yield from _wrong_table(table, released, of)
        yield from _wrong_columns(table, _following(table, expected[name], stated, name, released), released, of)


def _wrong_table(table: pa.Table, released: ReleasedContent, of: str) -> Iterator[Fault]:
    names = [each.name for each in released.columns]
    if tuple(table.column_names[: len(names)]) != tuple(names):
        yield Fault(f"columns{of}", f"must be {', '.join(names)}, as they were released")
        return
    try:
        found = content_of(table, released.roles, [each.kind for each in released.columns])
    except (*FAULTS, Error) as error:
        detail = str(error) if isinstance(error, ValueError) else "they are damaged"
        yield Fault(f"rows{of}", f"must be those that were released: {detail}")
        return
    if found.rows != released.rows:
        yield Fault(f"rows{of}", f"must be {released.rows}, and there are {found.rows}")
    elif found.sha256 != released.sha256:
        yield Fault(f"rows{of}", "must be those that were released: a cell was changed")


def _following(
    table: pa.Table, expected: pa.Table, stated: Certificate, name: str, released: ReleasedContent
) -> dict[str, Any]:
    """The columns that follow from the released ones, computed again: means, ratios and intervals."""
    from gsh.library.accuracy import intervals  # noqa: PLC0415 - it loads SciPy, which a web worker does not need

    columns = [each.name for each in released.columns]
    try:
        roles, meaning = released.roles, stated.meanings[name]
        found = {each: expected[each].to_numpy() for each in meaning.averages if each in expected.column_names}
        if released.intervals is not None and set(columns) <= set(table.column_names):
            given = numbers_in(table, roles, meaning)
            given["values"] = dict(zip(stated.mechanisms[name].column_names, given["values"].values(), strict=True))
            made = intervals(stated.mechanisms[name], **given, level=released.intervals)
            ends = [getattr(each, end) for each in (made.counts, *made.values.values()) for end in ENDS]
            found |= dict(zip(interval_columns(roles.numbers), ends, strict=True))
    except (*FAULTS, Error):
        return {}
    return found


def _wrong_columns(
    table: pa.Table, following: Mapping[str, Any], released: ReleasedContent, of: str
) -> Iterator[Fault]:
    """Columns that follow from the released ones."""
    for name in table.column_names[len(released.columns) :]:
        if name not in following:
            yield Fault(f"columns{of}", f"must not have {name}: it does not follow from the released columns")
        elif not np.allclose(_doubles(table[name]), following[name], rtol=_CLOSE, atol=0, equal_nan=True):
            yield Fault(f"columns{of}", f"{name} must be what follows from the released columns")


def _doubles(column: pa.ChunkedArray) -> Any:
    try:
        return column.to_numpy().astype(np.float64)
    except (ValueError, TypeError):
        return np.full(len(column), np.nan)
