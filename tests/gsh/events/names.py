"""Hostile names of columns, and events with decoys: columns whose names are those names after some edit of the text."""

from typing import Any, NamedTuple

import pyarrow as pa
from hypothesis import assume
from hypothesis import strategies as st

from gsh.events.plan import Plan, make_plan

__all__ = ["CONTROLS", "LINE_ENDS", "WORDS", "Named", "drawn_events", "named_events"]

LINE_ENDS = ["\n", "\r", "\r\n", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]
CONTROLS = ["\x01", "\x08", "\t", "\x1a", "\x1b", "\x1f", "\x7f", "\x80", "\x9f", "\u200b", "\u202e", "\ufeff"]
SPACES = [" ", "    ", "\xa0", "\u3000"]
WORDS = ['"', "'", "`", "\\", "\\n", "--", "/*", "*/", ";", "$$", "}", "{0}", "%s", ":x", "?", ".", "*", "a", "B"]
PIECES = [*LINE_ENDS, *CONTROLS, *SPACES, *WORDS, "${", "é", "ſ", "🤦🏼‍♂️", "user", "select"]
DECOYS = 3


class Named(NamedTuple):
    """Events, and a plan whose names have hostile characters. A user has ten records in six groups."""

    table: pa.Table
    plan: Plan
    kinds: dict[str, str]


def names() -> st.SearchStrategy[str]:
    """Short names: their decoys must be ones that PostgreSQL does not cut either."""
    pieces = st.lists(st.sampled_from(PIECES), min_size=1, max_size=4).map("".join)
    return pieces.filter(lambda name: len(name.encode()) <= 40 and name.strip())


def edited(name: str) -> list[str]:
    """What the name would be after the usual edits of a text."""
    lines = name.splitlines() or [""]
    joined = [ending.join(lines) for ending in ("\n    ", "\n", " ", "")]
    return [*joined, f"    {name}", name.strip(), lines[0], name.replace("\\n", "\n"), name.replace("${", "")]


def named_events(user: str, key: str, number: str) -> Named:
    """A decoy of a user is another user in each record, one of a key another group, one of a number is large."""
    rows = range(60)
    columns: dict[str, Any] = {
        user: pa.array([f"u{row % 6}" for row in rows]),
        key: pa.array([f"k{row % 7}" for row in rows]),
        number: pa.array([row % 3 for row in rows], pa.int64()),
    }
    taken = {name.lower() for name in columns} | {"count"}
    kinds = {user: "string", key: "string", number: "integer"}
    for name in list(columns):
        for decoy in list(filter(None, edited(name)))[:DECOYS]:
            if decoy.lower() not in taken:
                taken.add(decoy.lower())
                kinds[decoy] = kinds[name]
                values = pa.array(rows, pa.int64()) if name == number else pa.array([f"{row}" for row in rows])
                columns[decoy] = values
    made: dict[str, Any] = {"events": {f"{user}e": 2}, "names": {"count": f"{user}c"}}  # names of no column of theirs
    plan = make_plan(user=user, by=key, sums={number: (0, 5)}, **made, c_u=2, caps={number: 1}, salt="0" * 32)
    return Named(pa.table(columns), plan, kinds)


@st.composite
def drawn_events(draw: st.DrawFn) -> Named:
    user, key, number = draw(st.lists(names(), min_size=3, max_size=3, unique_by=str.lower))
    assume(not {f"{user}e".lower(), f"{user}c".lower()} & {key.lower(), number.lower()})
    assume(number not in ("key", "count"))
    return named_events(user, key, number)
