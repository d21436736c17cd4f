"""The certificate of a server or a file that may be hostile, read so that nobody makes a reader work for long.

the names of its tables      must be unique, and at most 64
the JSON of each mechanism   must have at most 100 columns: its linear algebra takes the cube of their number
the mechanism                is made only now
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import pyarrow as pa

from gsh.accounting.mechanism import MOST_TABLES, AnyMechanism
from gsh.certificate import Certificate
from gsh.documents import object_in
from gsh.errors import Error, FileError, InvalidParameter
from gsh.histogram.formats import MOST_SCHEMA_BYTES
from gsh.histogram.meanings import Meaning
from gsh.results.locations import Location, TooLarge, located
from gsh.wire import Json, check_table_name

__all__ = [
    "FAULTS",
    "MOST_COLUMNS",
    "CertificateLike",
    "Known",
    "certified",
    "check_sizes",
    "described_in",
    "given_certificate",
    "known_at",
    "known_of",
    "read_certificate",
]

MOST_COLUMNS = 100
"""The most columns that the service takes."""

FAULTS = (
    ArithmeticError,
    AttributeError,
    LookupError,
    OSError,
    RecursionError,
    TypeError,
    ValueError,
    pa.ArrowException,
    Error,
)
"""What reading a damaged file can raise."""

CertificateLike: TypeAlias = Certificate | Mapping[str, Any] | str | os.PathLike[str]
"""A certificate, its JSON as a mapping, or the path of a file with its JSON."""


def read_certificate(path: str | os.PathLike[str]) -> Certificate:
    """The certificate in a JSON file, such as the one that publish writes next to CSV or into a folder.

    gsh.Mechanism.from_certificate(gsh.read_certificate("private.csv.certificate.json"))
    """
    return known_at(located("path", path), os.fspath(path)).certificate


@dataclass(frozen=True)
class Known:
    """A certificate that was checked, with its mechanisms."""

    certificate: Certificate
    mechanisms: Mapping[str, AnyMechanism]

    @cached_property
    def meanings(self) -> Mapping[str, Meaning]:
        """What the columns of each table mean."""
        return self.certificate.meanings

    def says(self, text: bytes) -> bool:
        """Whether a JSON text is this certificate. A record is outside of the rows only, and not compared.

        What Spark wrote into rows has no digest of all rows: they were not all there.
        """
        try:
            return object_in(text) | {"record": None} in (self._document, _without_contents(self._document))
        except FAULTS:
            return False

    @cached_property
    def _document(self) -> Json:
        return self.certificate.recorded(None).to_dict()


def _without_contents(document: Json) -> Json:
    """A certificate without the digests of its tables."""
    tables = {"tables": list(map(_without_contents, document["tables"]))} if "tables" in document else {}
    return {name: value for name, value in document.items() if name != "content"} | tables


def known_at(place: Location, name: str) -> Known:
    """The certificate in a JSON file."""
    if not place.is_file():
        raise FileError(name, "must exist")
    try:
        content = place.content(name, MOST_SCHEMA_BYTES).to_pybytes()
    except TooLarge:
        content = b""  # no certificate is so large
    return known_of(content, name)


def known_of(text: bytes, name: str) -> Known:
    """The certificate of a JSON text. ``name`` says where it is."""
    try:
        return Known(*certified(object_in(text)))
    except FAULTS:
        pass
    # Outside of the handler, whose exception quotes the text.
    raise FileError(name, "must have a certificate in JSON that can be read: it is damaged, or of another program")


def given_certificate(given: CertificateLike) -> Known:
    """That of an argument ``certificate``."""
    if isinstance(given, str | os.PathLike):
        return known_at(located("certificate", given), os.fspath(given))
    try:
        return Known(*certified(given.to_dict() if isinstance(given, Certificate) else dict(given)))
    except FAULTS:
        pass
    raise InvalidParameter("certificate", "must be a certificate, its JSON as a mapping, or the path of its JSON")


def certified(document: Json) -> tuple[Certificate, Mapping[str, AnyMechanism]]:
    """The certificate of a JSON object and its mechanisms; an error of Python or of the library if it is none."""
    check_sizes(document)
    certificate = Certificate.from_json(document)
    return certificate, certificate.mechanisms


def check_sizes(document: Json) -> None:
    """The mechanisms of a certificate are few, and small enough to be read later."""
    for each in described_in(document).values():
        _check_size(each)
    for table in document.get("tables", [document]):
        if len(table.get("ratios") or ()) > MOST_COLUMNS:
            raise ValueError


def described_in(document: Json) -> dict[str, Any]:
    """The JSON of each mechanism by the name of its table."""
    if "tables" not in document:
        return {"": document["mechanism"]}
    tables = document["tables"]
    if not isinstance(tables, list) or not 1 <= len(tables) <= MOST_TABLES:
        raise ValueError
    described = {}
    for table in tables:
        check_table_name("name", table["name"])
        described[table["name"]] = table["mechanism"]
    if len(described) != len(tables):
        raise ValueError
    return described


def _check_size(mechanism: Any) -> None:
    """A mechanism has no more columns than the service takes. Costs of columns are as many as the columns."""
    columns = mechanism.get("aggregates") or {}
    change = columns.get("sensitivity") or {}
    lists = [columns.get(name) or () for name in ("names", "covariance", "capped")]
    lists += [change.get(name) or () for name in ("lower", "upper", "groups")]
    lists += columns.get("covariance") or ()
    lists += change.get("vectors") or ()
    if any(len(each) > MOST_COLUMNS for each in lists):
        raise ValueError
