"""The bounding query as a text for people: with comments, for a table whose schema nobody has asked for."""

import json

from gsh.events.bounding import bounding_query, table_name
from gsh.events.dialects import DIALECTS
from gsh.events.kinds import Kind
from gsh.events.plan import Plan

__all__ = ["commented_query", "default_kinds"]


def default_kinds(plan: Plan) -> dict[str, Kind]:
    """The declared types; else users and keys are texts, and sums integers, or doubles if they have a unit."""
    kinds: dict[str, Kind] = dict.fromkeys((plan.user, *plan.by), "string")
    kinds |= {column.name: "integer" if column.unit is None else "double" for column in plan.sums}
    return kinds | dict(plan.types)


def commented_query(plan: Plan, dialect: str, source: str) -> str:
    """The query, what it enforces, and whether our tests run it on the engine."""
    kinds = plan.kinds_in(dict(default_kinds(plan)))
    checked = (
        "tested on this engine" if DIALECTS[dialect].is_executed else "not executed here: only its syntax is tested"
    )
    lines = [
        f"-- For {dialect}, {checked}.",
        f"-- Each user counts in at most {plan.c_u} groups, chosen by a hash of that user's own records.",
    ]
    lines += [
        f"-- {_on_one_line(column.name)}: from {column.least} to {column.most} per user and group, "
        f"in units of {column.scale:g}"
        + (f", in at most {column.groups} groups per user." if column.groups is not None else ".")
        for column in plan.sums
    ]
    return "\n".join([*lines, f"{bounding_query(plan, kinds, dialect, table_name(dialect, source))};", ""])


def _on_one_line(name: str) -> str:
    """The name in a comment. A line end in it would end the comment, so characters that are not shown are escaped."""
    return name if name.isprintable() else json.dumps(name)
