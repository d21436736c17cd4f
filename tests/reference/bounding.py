"""What a plan means, record by record: steps 1 to 4 of publishing, in plain Python. It shares no code with the library.

Events are dictionaries, values are Python's own: str, int, bool, float, Decimal, date, datetime, UUID, None.
"""

import datetime
import decimal
import hashlib
import json
import math
import uuid
from collections import defaultdict
from fractions import Fraction
from typing import Any

Aggregates = dict[tuple[Any, ...], tuple[int, ...]]

_LIMIT = 2**52


def bounded_tables(
    events: list[dict[str, Any]], plan: dict[str, Any], keys: dict[str, list[tuple[Any, ...]]]
) -> dict[str, Aggregates]:
    """Each table by itself, with a salt of its own. ``plan`` is a plan of several tables as JSON."""
    found = {}
    for table in plan["tables"]:
        salt = json.dumps(["gsh salt of a table", plan["salt"], table["name"]])
        own = table | {"user": plan["user"], "salt": hashlib.sha256(salt.encode()).hexdigest()[:32]}
        found[table["name"]] = bounded(events, own, keys.get(table["name"]))
    return found


def bounded(
    events: list[dict[str, Any]], plan: dict[str, Any], keys: list[tuple[Any, ...]] | None = None
) -> Aggregates:
    """The number of users and the measures of each group with at least τ users. ``plan`` is a plan as JSON.

    Measures are in units, and those of means in halves of them. ``keys`` lists public groups: records of other groups
    do not exist, and every listed group is in the result.
    """
    measures = plan["measures"] if "measures" in plan else [{"kind": "sum", **each} for each in plan["sums"]]
    if keys is not None:
        events = [event for event in events if tuple(event[name] for name in plan["by"]) in set(keys)]
    added: dict[Any, dict[tuple[Any, ...], list[int]]] = defaultdict(dict)
    for event in events:
        user = event[plan["user"]]
        if user is None:
            continue
        key = tuple(event[name] for name in plan["by"])
        totals = added[user].setdefault(key, [0] * len(measures))
        for j, measure in enumerate(measures):
            totals[j] += _record(event, measure)

    groups = {key: [0] * (1 + len(measures)) for key in keys or ()}
    for user, totals_of in added.items():
        kept = sorted(totals_of, key=lambda key: _lot(plan["salt"], user, key, ""))[: plan["c_u"]]
        values = {key: [_added(total, measure) for total, measure in zip(totals_of[key], measures, strict=True)]
                  for key in kept}  # fmt: skip
        for j, column in enumerate(measures):
            if column["groups"] is not None:
                changed = sorted(
                    (key for key in kept if values[key][j] != 0),
                    key=lambda key: _lot(plan["salt"], user, key, column["name"]),
                )
                for key in changed[column["groups"] :]:
                    values[key][j] = 0
        for key in kept:
            row = groups.setdefault(key, [0] * (1 + len(measures)))
            for place, number in enumerate([1, *values[key]]):
                row[place] += number
    return {key: tuple(row) for key, row in groups.items() if row[0] >= plan["tau"] or keys is not None}


def surveyed(
    events: list[dict[str, Any]],
    plan: dict[str, Any],
    columns: list[str],
    keys: list[tuple[Any, ...]] | None = None,
) -> list[list[int]]:
    """The true histograms of a survey: the groups of a user, and each column in the user's group with the smallest lot.

    Bins end at 1, 2, 4 …: 21 of them for groups and numbers of events, 41 for sums in units.
    """
    measures = plan["measures"] if "measures" in plan else [{"kind": "sum", **each} for each in plan["sums"]]
    chosen = [measure for measure in measures if measure["name"] in columns]
    added: dict[Any, dict[tuple[Any, ...], list[int]]] = defaultdict(dict)
    for event in events:
        key = tuple(event[name] for name in plan["by"])
        if event[plan["user"]] is not None and (keys is None or key in set(keys)):
            totals = added[event[plan["user"]]].setdefault(key, [0] * len(chosen))
            for j, measure in enumerate(chosen):
                totals[j] += _record(event, measure)
    found = [[0] * 21, *([0] * (21 if measure["kind"] == "events" else 41) for measure in chosen)]
    for user, totals_of in added.items():
        first = min(totals_of, key=lambda key: _lot(plan["salt"], user, key, ""))
        for histogram, number in zip(found, [len(totals_of), *totals_of[first]], strict=True):
            histogram[min(max(number - 1, 0).bit_length(), len(histogram) - 1)] += 1
    return found


def _record(event: dict[str, Any], measure: dict[str, Any]) -> int:
    return 1 if measure["kind"] == "events" else _units(event[measure["name"]], measure["unit"] or 1.0)


def _is_decimal(unit: float) -> bool:
    """A power of two has a mantissa of one half. All other units are powers of ten, such as 0.01."""
    return math.frexp(unit)[0] != 0.5


def _units(value: Any, unit: float) -> int:
    if value is None or math.isnan(value):
        return 0
    if _is_decimal(unit):
        exact = Fraction(value) / Fraction(repr(unit))
        return math.floor(max(Fraction(-_LIMIT), min(Fraction(_LIMIT), exact)) + Fraction(1, 2))
    if isinstance(value, int):
        value = max(-_LIMIT, min(_LIMIT, int(value)))
    scaled = max(-float(_LIMIT), min(float(_LIMIT), float(value) / unit))
    return math.floor(scaled + 0.5)


def _added(total: int, measure: dict[str, Any]) -> int:
    """In a mean, twice the distance of the total from the middle of its range: the middle may be half of a unit."""
    least, most = _range(measure)
    clipped = max(least, min(most, total))
    return 2 * clipped - least - most if measure["kind"] == "mean" else clipped


def _range(column: dict[str, Any]) -> tuple[int, int]:
    unit, lower, upper = (column["unit"] or 1.0), column["lower"], column["upper"]
    if _is_decimal(unit):  # then 0.3 is three tenths in the bounds too
        unit, lower, upper = map(repr, (unit, lower, upper))
    return math.ceil(Fraction(lower) / Fraction(unit)), math.floor(Fraction(upper) / Fraction(unit))


def _lot(salt: str, user: Any, key: tuple[Any, ...], column: str) -> str:
    text = f"{salt};{_part(user)}{''.join(map(_part, key))}{len(column)}:{column}"
    return hashlib.md5(text.encode()).hexdigest()


def _part(value: Any) -> str:
    if value is None:
        return "-"
    text = _text(value)
    return f"{len(text)}:{text}"


def _text(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str() | int() | uuid.UUID():
            return str(value)
        case decimal.Decimal():
            text = format(value, "f")
            return text.rstrip("0").rstrip(".") if "." in text else text
        case datetime.datetime():
            start = datetime.datetime(1970, 1, 1, tzinfo=None if value.tzinfo is None else datetime.UTC)
            return str((value - start) // datetime.timedelta(microseconds=1))
        case datetime.date():
            return str((value - datetime.date(1970, 1, 1)).days)
    raise TypeError(type(value))
