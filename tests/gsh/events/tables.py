"""Events for tests: drawn ones, and a fixed table of nasty ones. Tables of Arrow, and the same as Python values."""

import datetime
import decimal
import math
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from gsh.events.plan import Plan, make_plan

__all__ = ["KEYS", "NASTY", "NASTY_PLAN", "NASTY_SUMS", "NUMBERS", "as_events", "draws", "made_up"]

D = decimal.Decimal
ZONED = datetime.datetime(2026, 3, 29, 0, 30, 0, 123456, datetime.UTC)

KEYS: dict[str, tuple[pa.DataType, str, st.SearchStrategy[Any]]] = {
    "text": (
        pa.string(),
        "string",
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=3)
        | st.sampled_from(["", "-", "1:a", "a1:b", "é", "é", "🤦🏼‍♂️", "'", '"', "\\", "%s"]),
    ),
    "whole": (pa.int64(), "integer", st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 2)),
    "flag": (pa.bool_(), "boolean", st.booleans()),
    "day": (pa.date32(), "date", st.dates()),
    "price": (
        pa.decimal128(20, 7),
        "decimal(20,7)",
        st.decimals(D(-(10**12)), D(10**12), places=7) | st.sampled_from([D("0"), D("1.5"), D("100"), D("0.0000001")]),
    ),
    "local": (pa.timestamp("us"), "timestamp", st.datetimes(datetime.datetime(1900, 1, 1))),
    "instant": (
        pa.timestamp("us", "UTC"),
        "timestamptz",
        st.datetimes(datetime.datetime(1900, 1, 1), timezones=st.just(datetime.UTC)),
    ),
}
"""Types of users and group keys: of Arrow, their kind, and values. PostgreSQL has no text with a zero."""

NUMBERS: dict[str, tuple[pa.DataType, str, float | None, st.SearchStrategy[Any]]] = {
    "likes": (pa.int64(), "integer", None, st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3)),
    "bytes": (pa.int64(), "integer", 1024.0, st.integers(-(2**63), 2**63 - 1) | st.integers(-5000, 5000)),
    "seconds": (
        pa.float64(),
        "double",
        2.0**-10,
        st.floats() | st.floats(-3, 3) | st.sampled_from([-0.0, math.nan, math.inf, -math.inf, 0.00048828125]),
    ),
    "paid": (
        pa.decimal128(24, 6),
        "decimal(24,6)",
        0.5,
        st.decimals(D(-(10**15)), D(10**15), places=6) | st.sampled_from([D("0.25"), D("-0.25"), D("0.75")]),
    ),
    "fee": (
        pa.decimal128(24, 6),
        "decimal(24,6)",
        0.01,
        st.decimals(D(-(10**17)), D(10**17), places=6)
        | st.sampled_from([D("0.005"), D("-0.005"), D("0.004999"), D("45035996273704.96"), D("-45035996273704.965")]),
    ),
    "cents": (
        pa.decimal128(38, 1),
        "decimal(38,1)",
        0.001,
        st.decimals(D(-(10**36)), D(10**36), places=1) | st.sampled_from([D("0.1"), D("-0.3"), D("4503599627370.5")]),
    ),
    "small": (
        pa.decimal128(18, 18),
        "decimal(18,18)",
        1e-12,
        st.decimals(D("-0.000000000009"), D("0.000000000009"), places=18) | st.just(D("0.0000000000005")),
    ),
    "dimes": (pa.int64(), "integer", 0.1, st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3)),
    "heat": (pa.float64(), "double", 4.0, st.floats() | st.sampled_from([5e-324, -2.0, 2.0, 1.9999999999999998])),
    "seen": (pa.bool_(), "boolean", None, st.booleans()),
}


@st.composite
def draws(draw: st.DrawFn) -> tuple[pa.Table, dict[str, str], Plan]:
    """Events of few users and few groups, their kinds, and a plan that bounds them."""
    user = draw(st.sampled_from(sorted(KEYS)))
    keys = draw(st.lists(st.sampled_from(sorted(KEYS)), min_size=1, max_size=3, unique=True))
    sums = draw(st.lists(st.sampled_from(sorted(NUMBERS)), max_size=2, unique=True))
    means = [name for name in sums if draw(st.booleans())]
    columns: dict[str, tuple[pa.DataType, list[Any]]] = {}
    rows = draw(st.integers(0, 25))
    for name, kind in (("user_id", user), *((f"k {key}", key) for key in keys)):
        few = draw(st.lists(KEYS[kind][2] | st.none(), min_size=1, max_size=4))
        columns[name] = KEYS[kind][0], draw(st.lists(st.sampled_from(few), min_size=rows, max_size=rows))
    for name in sums:
        values = st.lists(NUMBERS[name][3] | st.none(), min_size=rows, max_size=rows)
        columns[name] = NUMBERS[name][0], draw(values)
    kinds = {"user_id": KEYS[user][1]} | {f"k {key}": KEYS[key][1] for key in keys}
    kinds |= {name: NUMBERS[name][1] for name in sums}
    c_u = draw(st.integers(1, 6))
    bounds = st.tuples(st.integers(-9, 9), st.integers(-9, 9)).map(sorted).filter(any)
    apart = bounds.filter(lambda bound: bound[0] < bound[1])
    unit = {name: NUMBERS[name][2] for name in sums}
    events = {name: draw(st.integers(1, 5)) for name in draw(st.sampled_from([[], ["records"]]))}
    plan = make_plan(
        user="user_id",
        by=[f"k {key}" for key in keys],
        sums={name: _in_units(draw(bounds), unit[name]) for name in sums if name not in means},
        means={name: _in_units(draw(apart), unit[name]) for name in means},
        units={name: each for name, each in unit.items() if each is not None},
        c_u=c_u,
        caps={name: draw(st.integers(1, c_u)) for name in [*sums, *events] if draw(st.booleans())},
        tau=draw(st.integers(0, 2)),
        salt=f"{draw(st.integers(0, 2**128 - 1)):032x}",
        events=events,
        names={"count": draw(st.sampled_from(["count", "people"]))},
    )
    table = pa.table({name: pa.array(values, kind) for name, (kind, values) in columns.items()})
    return table, kinds, plan


def _in_units(bounds: list[int], unit: float | None) -> tuple[float, ...]:
    return tuple(bound * _step(unit) for bound in bounds)


def _step(unit: float | None) -> float:
    """A bound of few units, or of ones if units are small powers of two."""
    return unit if unit in (0.01, 0.001, 1e-12, 0.1) else max(unit or 1, 1)


def as_events(table: pa.Table) -> list[dict[str, Any]]:
    """The events as Python values."""
    return table.to_pylist()  # type: ignore[no-any-return]


def _nasty() -> pa.Table:
    """Every column that a plan can have; ambiguous strings, missing values, extremes, duplicates, null users."""
    texts = ["ab", "a", "", None, "-", "1:a", "é", "é", "🤦🏼‍♂️", "a'b", 'a"b', "a\\b", "a`b", "a\nb", " a", "A"]
    days = [datetime.date(1, 1, 1), datetime.date(1969, 12, 31), None, datetime.date(9999, 12, 31)]
    prices = [D("0.0000001"), D("-0.5"), D("100"), D("1.10"), D("12345678901.2345678"), None]
    times = [
        datetime.datetime(1, 1, 1),
        datetime.datetime(1969, 12, 31, 23, 59, 59, 999999),
        ZONED.replace(tzinfo=None),
    ]
    numbers = [0.1, math.nan, -0.0, math.inf, -math.inf, None, 1e308, -1e308, 5e-324, 0.5, -0.5, 2.0**53, 600.0]
    wholes = [0, 1, -1, 2**63 - 1, -(2**63), None, 2**53 + 1, 7]
    rows = []
    for place in range(600):
        user = (place * 7) % 13
        rows.append(
            {
                "user_id": None if user == 3 else ["u", "ü", "", "1:u", "u1"][user % 5] + "x" * (user // 5),
                "text": texts[(place * place) % len(texts)],
                "more": texts[(place * 5 + 1) % len(texts)],
                "whole": wholes[(place // 3) % len(wholes)],
                "flag": [True, False, None][place % 3],
                "day": days[place % len(days)],
                "price": prices[(place // 2) % len(prices)],
                "local": times[place % len(times)],
                "instant": times[(place // 5) % len(times)].replace(tzinfo=datetime.UTC),
                "likes": wholes[(place * 3) % len(wholes)],
                "seconds": numbers[place % len(numbers)],
                "paid": prices[place % len(prices)],
                "seen": [True, None, False][place % 3],
            }
        )
    types = {name: KEYS[name][0] for name in KEYS} | {
        name: NUMBERS[name][0] for name in NUMBERS if name in ("likes", "seconds", "paid", "seen")
    }
    types |= {"user_id": pa.string(), "more": pa.string(), "paid": pa.decimal128(20, 7)}
    return pa.table({name: pa.array([row[name] for row in rows], types[name]) for name in rows[0]})


NASTY = _nasty()
_SUMS: dict[str, Any] = {
    "user": "user_id",
    "by": ["text", "more", "whole", "flag", "day", "price", "local", "instant"],
    "sums": {"likes": (-5, 5), "seconds": (-1.5, 600), "paid": (0, 2**30), "seen": (0, 1)},
    "units": {"seconds": 2.0**-10, "paid": 0.25},
    "c_u": 17,
    "caps": {"likes": 3, "seconds": 5},
    "salt": "00112233445566778899aabbccddeeff",
}
NASTY_SUMS = make_plan(**_SUMS)
"""Sums alone: a plan of the first version."""
_FURTHER: dict[str, Any] = {
    "sums": {"likes": (-5, 5), "seconds": (-1.5, 600)},
    "means": {"paid": (0, 2**30 - 0.25), "seen": (0, 1)},
    "ratios": {"likes_per_record": ("likes", "records"), "per_person": ("seconds", "people")},
    "round": True,
    "units": {"seconds": 2.0**-10, "paid": 0.01},
    "events": {"records": 2},
    "caps": _SUMS["caps"] | {"records": 9, "seen": 12},
    "names": {"count": "people"},
}
NASTY_PLAN = make_plan(**_SUMS | _FURTHER)
"""Measures of every kind."""


def made_up(users: int = 10_000, seed: int = 0) -> pa.Table:
    """Users with 1 to 40 groups; a value of about 20 in each."""
    random = np.random.default_rng(seed)
    groups = np.minimum(random.geometric(0.2, users), 40)
    user = np.repeat(np.arange(users), groups)
    place = np.arange(len(user)) - np.repeat(np.cumsum(groups) - groups, groups)
    seconds = random.lognormal(3, 0.5, len(user)).astype(np.int64)
    return pa.table({"user_id": user, "url": (place * 7 + user) % 50, "seconds": seconds})
