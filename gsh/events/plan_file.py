"""The file of a publication of several tables: TOML or JSON, the arguments of ``gsh.publish``.  [docs/publish.md]

    user = "user_id"
    epsilon = 1
    delta = 1e-6

    [tables.by_country]
    by = ["country"]
    c_u = 1
    keys = "countries.csv"

    [tables.detail]
    by = ["url", "country"]
    c_u = 16
    sums = { likes = [0, 1], seconds = [0, 600] }
    units = { seconds = "2^-10" }

A file of keys is found from the folder of the plan. Unknown fields are refused, with their place.
"""

import json
import math
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from gsh.errors import InvalidParameter, pointer_part
from gsh.events.kinds import KEY_KINDS, SUM_KINDS, Kind, family
from gsh.library.tables import Table

__all__ = ["publication_in", "started_plan"]

_FIELDS = (
    "user",
    "epsilon",
    "delta",
    "shares",
    "budget",
    "once",
    "description",
    "privacy_unit",
    "unprotected",
    "types",
    "rest",
    "format",
    "tables",
)
_TABLE_FIELDS = tuple(field.name for field in fields(Table) if field.name != "aggregates")


def publication_in(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The arguments of ``gsh.publish`` that a file has. ``tables`` maps names to ``gsh.Table``."""
    place = Path(path)
    document = _checked("", _read(place), _FIELDS)
    if "tables" not in document:
        raise InvalidParameter("tables", "must be in the file: a table [tables.NAME] for each group-by")
    tables = document["tables"]
    if not isinstance(tables, Mapping) or not tables:
        raise InvalidParameter("tables", "must have a table [tables.NAME] for each group-by")
    return {**document, "tables": {name: _table(name, each, place.parent) for name, each in tables.items()}}


def _read(path: Path) -> Any:
    text = path.read_bytes()
    try:
        return tomllib.loads(text.decode()) if path.suffix.lower() == ".toml" else json.loads(text)
    except (ValueError, RecursionError) as error:  # TOML and JSON errors, and bytes that are no text
        kind = "TOML" if path.suffix.lower() == ".toml" else "JSON (TOML is in files that end with .toml)"
        where = re.search(r"line \d+", str(error))
        raise InvalidParameter("tables", f"must be {kind}{f': see {where[0]}' if where else ''}") from None


def _checked(place: str, given: object, allowed: Sequence[str]) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise InvalidParameter(place or "tables", f"must be a table with some of the fields {', '.join(allowed)}")
    for name in given:
        if name not in allowed:
            pointer = "/".join(filter(None, [place, pointer_part(str(name))]))
            raise InvalidParameter(pointer, f"is no field here; there are {', '.join(allowed)}")
    return given


def _table(name: str, given: object, folder: Path) -> Table:
    place = f"tables/{pointer_part(name)}"
    found = dict(_checked(place, given, _TABLE_FIELDS))
    for needed in ("by", "c_u"):
        if needed not in found:
            raise InvalidParameter(f"{place}/{needed}", "must be given")
    if isinstance(found.get("keys"), str):
        found["keys"] = folder / found["keys"]
    if isinstance(found.get("units"), Mapping):
        found["units"] = {column: _unit(unit) for column, unit in found["units"].items()}
    return Table(**found)


def _unit(unit: object) -> object:
    """A number, or a power of two as a text: 2^-10."""
    written = re.fullmatch(r"2\^(-?[0-9]{1,3})", unit) if isinstance(unit, str) else None
    return unit if written is None else math.ldexp(1.0, int(written[1]))


_USERS = ("user_id", "userid", "user", "uid", "person_id", "account_id", "customer_id", "device_id")
_START = """\
# A plan for `gsh publish {events} --tables THIS_FILE -o FOLDER`: several tables in one release.
# Choose the bounds from public knowledge, or say in `unprotected` that you looked at the data.

user = {user}              # the privacy unit: what one user adds to each table is bounded
epsilon = 1
delta = 1e-6
# shares = "balanced"         # shares of the tables in proportion to the square root of c_u
# budget = "web"              # a budget of the service; then also: gsh publish --service URL --once NAME
# unprotected = ["c_u chosen from a preview"]
# rest = true                 # also write <table>_rest: what groups have beyond their published children
{types}"""
_TYPES = '# types = { day = "date" }     # columns of texts (CSV, JSON) are texts, unless you say otherwise\n'
_ONE = """\
[tables.{name}]
by = {by}
c_u = {c_u:<23} # the most groups of one user
# keys = "keys.csv"           # public groups, a file or a list: all are published, zeros included
# tau = 1                     # groups with fewer users are dropped before the noise
# share = 1                   # relative to the other tables
{sums}"""


def started_plan(events: str, columns: Mapping[str, Kind | None]) -> str:
    """A plan in TOML to start from, for events with these columns; None is a column without a type, as in CSV."""
    families = {name: None if kind is None else family(kind) for name, kind in columns.items()}
    by_name = {name.lower(): name for name in reversed(list(columns))}
    keyed = [name for name, kind in families.items() if kind is None or kind in KEY_KINDS]
    user = next((by_name[name] for name in _USERS if name in by_name), (*keyed, "user_id")[0])
    keys = [name for name in keyed if name != user and families[name] != "integer"][:2] or ["key"]
    numbers = [name for name, kind in families.items() if kind in SUM_KINDS and name not in (user, *keys)]
    types = _TYPES if None in families.values() else ""
    written = [_START.format(events=events, user=_toml(user), types=types)]
    for by in [keys[:1], keys][: len(keys)]:
        is_finest = by == keys
        sums = [_sum_lines(name, families[name]) for name in numbers[:3]] if is_finest else []
        name = re.sub(r"[^A-Za-z0-9_.-]", "_", f"by_{'_'.join(by)}")[:60]
        listed = f"[{', '.join(map(_toml, by))}]"
        written.append(_ONE.format(name=name, by=listed, c_u=16 if is_finest else 4, sums="".join(sums)))
    return "\n".join(written)


def _sum_lines(name: str, kind: str | None) -> str:
    line = f"# sums.{_toml(name)} = [0, 1]       # the least and the most of one user in one group\n"
    if kind in ("integer", "boolean"):
        return line
    return f'{line}# units.{_toml(name)} = "2^-10"   # a column with fractions is rounded to it\n'


def _toml(text: str) -> str:
    return json.dumps(text).replace("\x7f", "\\u007f")
