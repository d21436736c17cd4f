"""The private table that gsh intervals reads: of a certificate with ``gsh.read``, or with a mechanism from options."""

import dataclasses
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import gsh
from gsh.cli import options
from gsh.cli.errors import Code, Refusal
from gsh.cli.files import PIPE, FormatName, certificate_in, read_table_file, table_name_in
from gsh.errors import missing_column
from gsh.histogram.roles import Roles

if TYPE_CHECKING:
    import pyarrow as pa

    from gsh.accounting.mechanism import AnyMechanism
    from gsh.certificate import Certificate
    from gsh.histogram.meanings import Meaning
    from gsh.results.private_tables import PrivateTables

__all__ = ["Columns", "Rounding", "certified_table", "stated_table"]


class Columns(NamedTuple):
    """What options say about the columns of a table."""

    keys: tuple[str, ...] | None
    counted: str | None
    types: list[str] | None


class Rounding(NamedTuple):
    """What options say about the rounding of a table."""

    is_rounded: bool
    units: dict[str, float] | None


def certified_table(
    path: str, name: str | None, source: FormatName | None, columns: Columns, rounding: Rounding
) -> "PrivateTables":
    """A table that was published with its certificate: a file, or a folder or an archive and the name of a table."""
    if (path, source) == (PIPE, "csv"):
        raise Refusal(Code.INVALID, "CSV has no place for the certificate", "give --mechanism FILE, or a file of CSV")
    types: Any = options.listed("--type", columns.types, "COLUMN=TYPE")
    with _readable(path, source) as place:
        try:
            found = gsh.read(place, types=types)
        except gsh.FileError as error:
            message = str(error).replace(place, path, 1)
            detail = message.partition("; if it is elsewhere")[0]
            hint = "give --mechanism FILE, such as its certificate" if detail != message else "check the file"
            raise Refusal(Code.INVALID, detail, hint) from None
    own = list(found.tables)
    if own == [""] and name is not None:
        raise Refusal(Code.INVALID, "--table: is for several tables", "remove it")
    if len(own) == 1 and name not in (None, *own):
        raise Refusal(Code.INVALID, f"--table: the file says that it is the table {own[0]}", "omit --table")
    if name is None and len(own) > 1:
        raise Refusal(Code.INVALID, f"{path}: has the tables {', '.join(own)}", "add --table NAME for one of them")
    if name is not None and name not in own:
        raise Refusal(Code.INVALID, f"--table: must be one of the tables {', '.join(own)}", "check the name")
    found = found[own[0] if name is None else name]
    if columns.counted not in (None, found.count_column):
        what = f"--count: must name the column of the counts, {found.count_column}"
        raise Refusal(Code.INVALID, what, "omit it: the table says it")
    if columns.keys not in (None, found.key_columns):
        what = f"--keys: must be the columns of the group key, {','.join(found.key_columns)}"
        raise Refusal(Code.INVALID, what, "omit it: the table says it")
    if not rounding.is_rounded and not rounding.units:
        return found
    ((table, meaning),) = found.meanings.items()
    if meaning.rounded is not None:
        raise Refusal(Code.INVALID, "--round: must be omitted: the certificate says it", "remove it, and --sum-unit")
    unit = found.certificate.unit
    return _private(found.table, found.mechanism, found.roles[table], meaning, rounding, unit)


def stated_table(
    path: str,
    name: str | None,
    source: FormatName | None,
    given: "Mapping[str, AnyMechanism]",
    columns: Columns,
    rounding: Rounding,
) -> "PrivateTables":
    """A table whose mechanism is given. What its certificate says of the columns counts if it has this mechanism."""
    from gsh.histogram.meanings import Meaning  # noqa: PLC0415 - loads numpy
    from gsh.library.measures import COUNT  # noqa: PLC0415

    is_clear = name is not None or len(given) == 1
    values = options.one_of(given, name).column_names if is_clear else ()
    count, keys = columns.counted or COUNT, columns.keys or ()
    declared = options.csv_types(columns.types, list(keys), count, values) | {count: "float64"}
    places = Roles(keys, count, values).places(options.listed("--type", columns.types, "COLUMN=TYPE"))
    _, published = read_table_file(path, source, declared, places)
    own = table_name_in(published)
    mechanism = _mechanism_of(given, name, own)
    certificate, meaning = _certificate_in(published), Meaning()
    if certificate is not None and certificate.mechanisms.get(own or name or "") == mechanism:
        meaning, stated = certificate.meanings[own or name or ""], certificate.columns.get(own or name or "")
        count = columns.counted or (COUNT if stated is None else stated.count)
    published = published.select(meaning.without_averages(published.column_names))
    numbers = (count, *mechanism.column_names)
    _check(published, numbers)
    left = tuple(each for each in published.column_names if each not in numbers)
    unit = "unit" if certificate is None else certificate.unit
    roles = Roles(left, count, mechanism.column_names)
    return _private(published.select([*left, *numbers]), mechanism, roles, meaning, rounding, unit)


def _private(
    table: "pa.Table",
    mechanism: "AnyMechanism",
    roles: Roles,
    meaning: "Meaning",
    rounding: Rounding,
    unit: str,
) -> "PrivateTables":
    """A table with a certificate of this mechanism. Its rounding is what the meaning says, or else the options."""
    from gsh.certificate import certificate  # noqa: PLC0415 - loads numpy
    from gsh.library.rounding import rounded_to  # noqa: PLC0415
    from gsh.results.private_tables import PrivateTables  # noqa: PLC0415

    if meaning.rounded is None:
        meaning = dataclasses.replace(meaning, rounded=rounded_to(mechanism, *rounding, "is_rounded"))
    return PrivateTables({"": table}, certificate(mechanism, privacy_unit=unit, roles=roles, meanings=meaning))


def _certificate_in(table: "pa.Table") -> "Certificate | None":
    from gsh.certificate import Certificate  # noqa: PLC0415 - loads numpy

    with suppress(ValueError, TypeError, LookupError, AttributeError):
        return Certificate.from_json(certificate_in(table))
    return None


def _mechanism_of(tables: "Mapping[str, AnyMechanism]", name: str | None, own_name: str | None) -> "AnyMechanism":
    """The mechanism of a file: of the table that it says it is, or else of the one that is asked for."""
    if "" in tables or own_name is None:
        return options.one_of(tables, name)
    if name not in (None, own_name):
        raise Refusal(Code.INVALID, f"--table: the file says that it is the table {own_name}", "omit --table")
    if own_name not in tables:
        what = f"the file says that it is the table {own_name}, which the certificate does not have"
        raise Refusal(Code.INVALID, what, f"give one of its tables: {', '.join(tables)}")
    return tables[own_name]


def _check(published: "pa.Table", columns: tuple[str, ...]) -> None:
    for place, name in enumerate(columns):
        if published.column_names.count(name) != 1:
            option = "--mechanism" if place else "--count"
            what = f"{option}: must name columns that the table has once"
            raise Refusal(Code.INVALID, what, missing_column(name, published.column_names))
        if published[name].null_count or not _is_number(published[name].type):
            raise Refusal(Code.INVALID, "the counts and sums must be numbers, without nulls", "give a private table")


def _is_number(kind: "pa.DataType") -> bool:
    import pyarrow as pa  # noqa: PLC0415

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


@contextmanager
def _readable(path: str, source: FormatName | None) -> Iterator[str]:
    """A path whose ending says the format; standard input becomes a file."""
    if path != PIPE and source is None:
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="gsh-") as folder:
        place = Path(folder) / f"table{'' if source is None else f'.{source}'}"
        if path == PIPE:
            place.write_bytes(sys.stdin.buffer.read())
        else:
            place.symlink_to(os.path.abspath(path))
        yield str(place)
