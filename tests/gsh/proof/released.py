"""Signed releases in every form, and single changes of them."""

import copy
import datetime
import io
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gsh.accounting.mechanism import Aggregates, Mechanism, PlainGaussian
from gsh.accounting.sensitivity import Box
from gsh.certificate import Certificate, certificate
from gsh.histogram.conversion import write_rows
from gsh.histogram.released_content import contents_of
from gsh.histogram.roles import Roles
from gsh.proof.envelopes import sealed, statement_of
from gsh.proof.keys import KeySet, SigningKey

KEY, OTHER = SigningKey.made(), SigningKey.made()
KEYS = KeySet.of([KEY.public], "Example Org", "https://gsh.example.org")
ROLES = Roles(("url", "day"), "count", ("likes",))
LIKES = Aggregates(names=["likes"], covariance=[[400.0]], sensitivity=Box((0.0,), (1.0,)))
MECHANISM = Mechanism(c_u=3, tau=1, tau_star=120, sigma=20, aggregates=LIKES)
TABLE = pa.table(
    {
        "url": ["a.org", "b.org", None, ""],
        "day": pa.array([1, 2, 3, None], pa.date32()),
        "count": [130.5, 200.25, 1e6, 121.0],
        "likes": [3.5, -1.25, 700.0, 0.0],
    }
)
CERTIFICATE = certificate(MECHANISM, epsilon=1, unprotected=["c_u"], roles=ROLES).with_contents(
    contents_of({"": TABLE}, {"": ROLES})
)


def envelope_of(said: Certificate, key: SigningKey = KEY) -> str:
    return json.dumps(sealed(statement_of(said), key))


def written(
    folder: Path, kind: str, table: pa.Table = TABLE, said: str | None = None, envelope: str | None = None
) -> Path:
    """The table in a file, with its certificate inside or next to it, and the signature next to it."""
    path = folder / f"private.{kind}"
    text = CERTIFICATE.to_json() if said is None else said
    sink = io.BytesIO()
    formats: Any = {"parquet": "parquet", "arrow": "arrow_file", "arrows": "arrow", "csv": "csv"}
    write_rows(table, ROLES, formats[kind], text, sink)
    path.write_bytes(sink.getvalue())
    if kind == "csv":
        (folder / "private.csv.certificate.json").write_text(text)
    (folder / f"private.{kind}.sig.json").write_text(envelope_of(CERTIFICATE) if envelope is None else envelope)
    return path


def changed_cell(table: pa.Table, draw: random.Random) -> pa.Table:
    """The table with another value in one cell."""
    name, row = draw.choice(table.column_names), draw.randrange(len(table))
    values = table[name].to_pylist()
    kind = table.schema.field(name).type
    if pa.types.is_floating(kind):
        values[row] = draw.choice([np.nextafter(values[row], np.inf), -values[row] or 1.0, values[row] * 10 + 1])
    elif pa.types.is_date(kind):
        values[row] = None if values[row] is not None and draw.random() < 0.5 else 4711
        values = [each if each != 4711 else datetime.date(1999, 1, 1) for each in values]
    else:
        values[row] = draw.choice([f"{values[row]}x", "" if values[row] else "new", "σ"])
    return table.set_column(table.column_names.index(name), table.schema.field(name), [pa.array(values, kind)])


def changed_rows(table: pa.Table, draw: random.Random) -> pa.Table:
    """The table with a row less, or a row twice."""
    rows = list(range(len(table)))
    if draw.random() < 0.5:
        rows.pop(draw.randrange(len(rows)))
    else:
        rows.append(draw.choice(rows))
    return table.take(rows)


def leaves(document: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all values of a JSON document."""
    if isinstance(document, dict):
        for name, value in document.items():
            yield from leaves(value, (*at, name))
    elif isinstance(document, list) and document:
        for place, value in enumerate(document):
            yield from leaves(value, (*at, place))
    else:
        yield at


def changed_value(document: Any, at: tuple[Any, ...], draw: random.Random) -> Any:
    """The document with another value at a place, or without it."""
    made = copy.deepcopy(document)
    *way, last = at
    inner = made
    for step in way:
        inner = inner[step]
    value = inner[last]
    if isinstance(inner, dict) and draw.random() < 0.2:
        del inner[last]
        return made
    if isinstance(value, bool):
        inner[last] = not value
    elif isinstance(value, int):
        inner[last] = value + draw.choice([1, -1, 1000])
    elif isinstance(value, float):
        inner[last] = draw.choice([float(np.nextafter(value, np.inf)), value * 10 + 1, -value or 1.0])
    elif isinstance(value, str):
        place = draw.randrange(len(value) + 1)
        inner[last] = f"{value[:place]}x{value[place:]}"
    elif value is None:
        inner[last] = "x"
    else:
        inner[last] = ["x"]
    return made


def changed_text(text: str, draw: random.Random) -> str:
    """The text with another letter at one place."""
    place = draw.randrange(len(text))
    other = draw.choice([each for each in "AaZz09+/=" if each != text[place]])
    return text[:place] + other + text[place + 1 :]


Change = Callable[[Path, str, random.Random], Path]


def with_cell(folder: Path, kind: str, draw: random.Random) -> Path:
    return written(folder, kind, changed_cell(TABLE, draw))


def with_rows(folder: Path, kind: str, draw: random.Random) -> Path:
    return written(folder, kind, changed_rows(TABLE, draw))


def with_name(folder: Path, kind: str, draw: random.Random) -> Path:
    """Another name of a column, in the file alone."""
    path = written(folder, kind)
    names = list(TABLE.column_names)
    names[draw.randrange(len(names))] = "other"
    if kind == "csv":
        header, _, rest = path.read_text().partition("\n")
        path.write_text(f"{','.join(names)}\n{rest}")
        assert header
        return path
    source = pq.read_table(path) if kind == "parquet" else pa.ipc.open_file(path).read_all()
    table = source.rename_columns(names).replace_schema_metadata(source.schema.metadata)
    if kind == "parquet":
        pq.write_table(table, path)
    else:
        with pa.ipc.new_file(path, table.schema) as file:
            file.write_table(table)
    return path


def with_field(folder: Path, kind: str, draw: random.Random) -> Path:
    """Another value of a field of the certificate, in the file alone."""
    document = CERTIFICATE.to_dict()
    at = draw.choice([*leaves(document)])
    return written(folder, kind, said=json.dumps(changed_value(document, at, draw)))


def with_signature(folder: Path, kind: str, draw: random.Random) -> Path:
    """Another letter of the signature, of the key's id or of the payload."""
    envelope = json.loads(envelope_of(CERTIFICATE))
    where = draw.choice(["payload", "sig", "keyid", "payloadType"])
    inner = envelope if where in envelope else envelope["signatures"][0]
    before = inner[where]
    while inner[where] == before or (where != "payloadType" and _same(inner[where], before)):
        inner[where] = changed_text(before, draw)
    return written(folder, kind, envelope=json.dumps(envelope))


def _same(one: str, two: str) -> bool:
    """Whether two texts are the same bytes in base64: its last letter has bits that nobody reads."""
    return one.rstrip("=").translate(_ALPHABET)[:-1] == two.rstrip("=").translate(_ALPHABET)[:-1]


_ALPHABET = str.maketrans("-_", "+/")


def with_other_signer(folder: Path, kind: str, draw: random.Random) -> Path:
    """The right statement, signed by somebody else, who may say to be the issuer."""
    envelope = json.loads(envelope_of(CERTIFICATE, OTHER))
    if draw.random() < 0.5:
        envelope["signatures"][0]["keyid"] = KEY.public.id
    return written(folder, kind, envelope=json.dumps(envelope))


CHANGES: dict[str, Change] = {
    "cell": with_cell,
    "rows": with_rows,
    "name": with_name,
    "field": with_field,
    "signature": with_signature,
    "signer": with_other_signer,
}
GAUSSIAN = PlainGaussian(c_u=1, sigma=50)
