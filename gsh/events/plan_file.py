"""The file of a publication of several tables: TOML or JSON, the arguments of ``gsh.publish``.  [docs/publish.md]

    user = "user_id"
    epsilon = 1
    delta = 1e-6

    [tables.by_country]
    by = ["country"]
    c_u = 1
    public_keys = "countries.csv"

    [tables.detail]
    by = ["url", "country"]
    c_u = 16
    sums = { likes = [0, 1], seconds = [0, 600] }
    units = { seconds = "2^-10" }

A file of public keys is found from the folder of the plan. Unknown fields are refused, with their place.
"""

import itertools
import json
import math
import os
import re
import shlex
import stat
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from gsh.accounting.calibration.after_survey import SurveyShare
from gsh.errors import InvalidParameter, pointer_part, renamed, visible
from gsh.events.kinds import KEY_KINDS, SUM_KINDS, Kind, family
from gsh.events.plan import make_plan
from gsh.library.tables import Table

__all__ = ["plan_text", "publication_in", "started_plan"]

_FIELDS = (
    "user",
    "epsilon",
    "delta",
    "releases",
    "mechanism_of",
    "most_sigma",
    "shares",
    "survey",
    "expected_users",
    "budget",
    "period",
    "once",
    "description",
    "labels",
    "about",
    "privacy_unit",
    "unprotected",
    "types",
    "names",
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
    if "survey" in document:
        with renamed(("share", "survey")):
            document = {**document, "survey": SurveyShare(document["survey"])}
    return {**document, "tables": {name: _table(name, each, place.parent) for name, each in tables.items()}}


def _read(path: Path) -> Any:
    with path.open("rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise InvalidParameter("tables", "must be a plain file")
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise InvalidParameter("tables", f"must be a file of at most {_MOST_BYTES} bytes")
    try:
        text = content.decode("utf-8-sig")  # some editors begin a file with a mark
        return tomllib.loads(text) if path.suffix.lower() == ".toml" else json.loads(text, object_pairs_hook=_members)
    except (ValueError, RecursionError) as error:  # TOML and JSON errors, and bytes that are no text
        kind = "TOML" if path.suffix.lower() == ".toml" else "JSON (TOML is in files that end with .toml)"
        where = re.search(r"line \d+", str(error))
        raise InvalidParameter("tables", f"must be {kind}{f': see {where[0]}' if where else ''}") from None


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The members of a JSON object. Two of one name are an error, as in TOML: one of them would be lost."""
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in members if names.count(name) > 1)
        raise InvalidParameter("tables", f"must have each name once in an object: {visible(twice)} is there twice")
    return members


def _checked(place: str, given: object, allowed: Sequence[str]) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise InvalidParameter(place or "tables", f"must be a table with some of the fields {', '.join(allowed)}")
    for name in given:
        if name not in allowed:
            pointer = "/".join(filter(None, [place, pointer_part(str(name))]))
            raise InvalidParameter(pointer, f"is not a field; the fields are {', '.join(allowed)}")
    return given


def _table(name: str, given: object, folder: Path) -> Table:
    place = f"tables/{pointer_part(name)}"
    found = dict(_checked(place, given, _TABLE_FIELDS))
    for needed in ("by", "c_u"):
        if needed not in found:
            raise InvalidParameter(f"{place}/{needed}", "must be given")
    if isinstance(found.get("public_keys"), str):
        found["public_keys"] = folder / found["public_keys"]
    if isinstance(found.get("units"), Mapping):
        found["units"] = {column: _unit(unit) for column, unit in found["units"].items()}
    return Table(**found)


def _unit(unit: object) -> object:
    """A number, or a power of two as a text: 2^-10."""
    written = re.fullmatch(r"2\^(-?[0-9]{1,3})", unit) if isinstance(unit, str) else None
    return unit if written is None else math.ldexp(1.0, int(written[1]))


_USERS = ("user_id", "userid", "user", "uid", "person_id", "account_id", "customer_id", "device_id")
_MOST_BYTES = 1 << 20
_MOST_KEYS, _MOST_SUMS = 2, 3
_LONGEST_NAME = 60
_SOMEBODY = "_the user column_"
_UNIT = "the privacy unit: what one user adds to each table is bounded"
_FILL_IN = "FILL IN the column with the users: what one of them adds to each table is bounded"
_START = """\
# A plan for `gsh publish {events} --tables THIS_FILE -o FOLDER`: several tables in one release.
# Choose the bounds from public knowledge, or say in `unprotected` that you looked at the data.

user = {user:<22} # {unit}
epsilon = {epsilon}
delta = {delta}
# shares = "balanced"         # in proportion to the square root of c_u, more for tables with further columns
# budget = "web"              # a budget of the service; then also: gsh publish --service URL --once NAME
# survey = 0.01               # its part of the noise, for c_u = "survey" and sums.x = "survey"
# releases = 52               # in place of epsilon and delta: so many equal releases fit the rest of the budget
# unprotected = ["c_u chosen from a preview"]   # [] says that nothing was chosen by looking at the data
# rest = true                 # also write <table>_rest: what groups have beyond their published children
{types}"""
_TYPES = '# types = { day = "date" }     # columns of texts (CSV, JSON) are texts, unless you say otherwise\n'
_ONE = """\
[tables.{name}]
by = {by}
c_u = {c_u:<23} # the most groups of one user
# public_keys = "keys.csv"    # public groups, a file or a list: all are published, zeros included
# tau = 1                     # groups with fewer users are dropped before the noise
# share = 1                   # relative to the other tables
{further}"""
_EVENTS = "# events.{name} = 20           # the number of events: the most of one user in one group\n"


def started_plan(columns: Mapping[str, Kind | None]) -> dict[str, Any]:
    """A plan to start from, for events with these columns; None is a column without a type, as in CSV."""
    keyed = [name for name, kind in columns.items() if kind is None or family(kind) in KEY_KINDS]
    by_name = {name.lower(): name for name in reversed(keyed)}
    likely = [by_name[name] for name in _USERS if name in by_name]
    # Whose privacy is protected is never guessed from other names: the certificate would promise it to nobody.
    user = next((name for name in likely if _fits(name, ["page"])), "")
    keys: list[str] = []
    for name in keyed:
        is_integer = columns[name] is not None and family(columns[name] or "") == "integer"
        if len(keys) < _MOST_KEYS and not is_integer and _fits(user or _SOMEBODY, [*keys, name]):
            keys.append(name)
    tables: dict[str, Any] = {}
    for by in [keys[:place] for place in range(1, len(keys) + 1)] or [["key"]]:
        tables[_table_name(by, tables)] = {"by": by, "c_u": 16 if len(by) == max(len(keys), 1) else 4}
    return {"user": user, "epsilon": 1, "delta": 1e-6, "tables": tables}


def plan_text(events: str, columns: Mapping[str, Kind | None]) -> str:
    """The same plan in TOML, with comments: what else it may have, and which sums the columns offer."""
    plan = started_plan(columns)
    unit = _UNIT if plan["user"] else _FILL_IN
    start = {"user": _toml(plan["user"]), "unit": unit, "epsilon": plan["epsilon"], "delta": plan["delta"]}
    types = _TYPES if None in columns.values() else ""
    written = [_START.format(events=visible(shlex.quote(events)), **start, types=types)]
    *_, finest = plan["tables"]
    for name, table in plan["tables"].items():
        lines = _offered(plan["user"] or _SOMEBODY, table["by"], columns) if name == finest else ""
        by = f"[{', '.join(map(_toml, table['by']))}]"
        written.append(_ONE.format(name=_toml_key(name), by=by, c_u=table["c_u"], further=lines))
    return "\n".join(written)


def _fits(user: str, by: Sequence[str], sums: Sequence[str] = (), events: Sequence[str] = ()) -> bool:
    """Whether columns of these names go together in a table."""
    numbers: dict[str, Any] = {"sums": dict.fromkeys(sums, (0, 1)), "events": dict.fromkeys(events, 1)}
    try:
        make_plan(user=user, by=by, **numbers, c_u=1, salt="0" * 32)
    except InvalidParameter:
        return False
    return True


def _offered(user: str, by: Sequence[str], columns: Mapping[str, Kind | None]) -> str:
    """The further columns that a table may have, as comments."""
    sums = _offered_sums(user, by, columns)
    lines = [_sum_lines(each, family(columns[each] or "")) for each in sums]
    lines += [_EVENTS.format(name=name) for name in ("events", "records") if _fits(user, by, sums, [name])][:1]
    return "".join(lines)


def _offered_sums(user: str, by: Sequence[str], columns: Mapping[str, Kind | None]) -> list[str]:
    found: list[str] = []
    for name, kind in columns.items():
        is_number = kind is not None and family(kind) in SUM_KINDS
        if len(found) < _MOST_SUMS and is_number and _fits(user, by, [*found, name]):
            found.append(name)
    return found


def _table_name(by: Sequence[str], others: Iterable[str]) -> str:
    """A name that is free: no other table or rest has it, whatever the case of its letters."""
    wanted = re.sub(r"[^A-Za-z0-9_-]", "_", f"by_{'_'.join(by)}")[:_LONGEST_NAME]
    taken = {ending for other in others for ending in (other.lower(), f"{other.lower()}_rest")}
    names = (wanted if not k else f"{wanted[: _LONGEST_NAME - 3]}_{k}" for k in itertools.count())
    return next(name for name in names if name.lower() not in taken and f"{name.lower()}_rest" not in taken)


def _sum_lines(name: str, kind: str) -> str:
    line = f"# sums.{_toml_key(name)} = [0, 1]       # the least and the most of one user in one group\n"
    line += f"# means.{_toml_key(name)} = [0, 1]      # in place of the sum: the mean per user\n"
    if kind in ("integer", "boolean"):
        return line
    unit = "0.01   " if kind == "decimal" else '"2^-10"'
    return f"{line}# units.{_toml_key(name)} = {unit}   # a column with fractions is rounded to it\n"


def _toml_key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _toml(name)


def _toml(text: str) -> str:
    """A string of TOML, with control characters as escapes."""
    return f'"{"".join(map(_toml_character, text))}"'


def _toml_character(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    return character if character.isprintable() else f"\\U{ord(character):08X}"
