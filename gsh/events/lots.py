"""Lots: the order in which a user's groups are kept. One definition for every engine.

    lot = MD5(salt ; user ; each part of the group key ; column)      in lower-case hexadecimal digits

Each part is written as its length in characters, a colon and its canonical text (dialects.py); a missing part as a
hyphen. So no two keys have the same text: ("ab", "c") is 2:ab1:c, ("a", "bc") is 1:a2:bc. The column is that of a cap,
or empty for the lot of the group itself. The smallest lots win, compared as texts.

A lot must be a fixed function of the salt and of one user's records: then what a user keeps does not depend on other
users, and a query that runs again keeps the same. It need not be secret, and the guarantee holds for every salt. MD5 is
only mixing here; every engine has it. A new salt for each release keeps other groups each time.

People can make texts with the same MD5. So the parts of the key decide between equal lots (``order_sql``): otherwise
the order of the rows would decide, which depends on other users.
"""

import hashlib
import json
import secrets
from collections.abc import Sequence

from gsh.events.dialects import Dialect
from gsh.events.kinds import Kind

__all__ = [
    "lot_of_sql",
    "lot_sql",
    "new_salt",
    "order_sql",
    "part_sql",
    "salt_of_release",
    "salt_of_table",
    "start_sql",
]

_BYTES = 16


def new_salt() -> str:
    """A salt for a release that has no name."""
    return secrets.token_hex(_BYTES)


def salt_of_release(budget: str | None, once: str) -> str:
    """The salt of a release that has a name: the same if the job is run again, and another one for each release.

    The name is public and chosen before anyone looks at the data, so the salt is as good as a random one.
    """
    named = json.dumps(["gsh salt", budget, once], ensure_ascii=True).encode("ascii")
    return hashlib.sha256(named).hexdigest()[: 2 * _BYTES]


def salt_of_table(salt: str, name: str) -> str:
    """The salt of one of several tables: it depends on no other table."""
    named = json.dumps(["gsh salt of a table", salt, name], ensure_ascii=True).encode("ascii")
    return hashlib.sha256(named).hexdigest()[: 2 * _BYTES]


def order_sql(dialect: Dialect, salt: str, parts: Sequence[tuple[str, Kind]], column: str = "") -> str:
    """The order of a user's groups in SQL: by lot, and then by the parts of the group key."""
    return ", ".join([lot_sql(dialect, salt, parts, column), *(value for value, _ in parts[1:])])


def lot_sql(dialect: Dialect, salt: str, parts: Sequence[tuple[str, Kind]], column: str = "") -> str:
    """The lot in SQL. ``parts`` are the user and the parts of the group key: expressions with their kinds."""
    written = [start_sql(dialect, salt), *(part_sql(dialect, value, kind) for value, kind in parts)]
    return lot_of_sql(dialect, written, column)


def start_sql(dialect: Dialect, salt: str) -> str:
    """What the text of a lot begins with."""
    return dialect.literal(f"{salt};")


def part_sql(dialect: Dialect, value: str, kind: Kind) -> str:
    """The user, or a part of the key, in the text of a lot."""
    text = dialect.text(kind, value)
    length = f"CAST(length({text}) AS {dialect.string})"
    return f"COALESCE({length} || ':' || {text}, '-')"


def lot_of_sql(dialect: Dialect, written: Sequence[str], column: str) -> str:
    """The lot of its start and its parts."""
    return dialect.md5.format(" || ".join([*written, dialect.literal(f"{len(column)}:{column}")]))
