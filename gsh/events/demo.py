"""Made-up events with the skew of real ones, for a first publication without data of one's own.

    user_id      a text; missing in 1 % of the events
    url          pages by Zipf's law: few are read by many, and most by nearly nobody
    country      each user has one; missing in 2 % of the events
    day          one of a week
    likes        0 or 1
    seconds      a double, log-normal; missing in 3 % of the events

Activity of users is log-normal: half of them have at most 8 events. One in 5000 has a thousand times as many.
The same seed gives the same events.
"""

import datetime
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from gsh.arguments import Integer, integer
from gsh.errors import InvalidParameter
from gsh.library.whole_files import whole_file

__all__ = ["SCHEMA", "demo_events", "write_demo"]

SCHEMA = pa.schema(
    {
        "user_id": pa.string(),
        "url": pa.string(),
        "country": pa.string(),
        "day": pa.date32(),
        "likes": pa.int32(),
        "seconds": pa.float64(),
    }
)
_COUNTRIES = tuple("US IN BR DE JP NG MX FR ID GB EG PH KE PL PE NL CL NP IS TV".split())  # noqa: SIM905
_MONDAY = (datetime.date(2026, 11, 9) - datetime.date(1970, 1, 1)).days
_AT_ONCE = 20_000
_HEAVY = 5_000


def write_demo(path: Path, users: Integer = 200_000, seed: Integer = 0) -> int:
    """Write the events to a Parquet file, and return their number."""
    with whole_file(path) as file, pq.ParquetWriter(file, SCHEMA, compression="zstd") as writer:
        total = 0
        for batch in demo_events(users, seed):
            writer.write_batch(batch)
            total += len(batch)
    return total


def demo_events(users: Integer = 200_000, seed: Integer = 0) -> Iterator[pa.RecordBatch]:
    """The events, in batches of some users."""
    many = integer("users", users)
    if not 1 <= many <= 10**9:
        raise InvalidParameter("users", "must be from 1 to 10^9")
    if integer("seed", seed) < 0:
        raise InvalidParameter("seed", "must be at least 0")
    # Popularity does not depend on the number of users, so more users show more of the same.
    for start in range(0, many, _AT_ONCE):
        draw = np.random.default_rng([integer("seed", seed), start])
        yield _of_users(draw, np.arange(start, min(start + _AT_ONCE, many)))


def _of_users(draw: np.random.Generator, users: NDArray[np.int64]) -> pa.RecordBatch:
    activity = np.ceil(8 * draw.lognormal(0, 1, len(users)))
    heavy = draw.random(len(users)) < 1 / _HEAVY
    events = np.minimum(np.where(heavy, activity * 1000, activity), 1_000_000).astype(np.int64)
    home = draw.choice(len(_COUNTRIES), len(users), p=_weights(len(_COUNTRIES)))
    who = np.repeat(np.arange(len(users)), events)
    size = len(who)
    pages = np.minimum(draw.zipf(1.25, size), 10_000_000)
    names = pa.array([f"u{user:09d}" for user in users.tolist()])
    columns = [
        names.take(pa.array(who, mask=draw.random(size) < 0.01)),
        _urls(pages),
        pa.array(_COUNTRIES).take(pa.array(home[who], mask=draw.random(size) < 0.02)),
        pa.array((_MONDAY + draw.integers(0, 7, size)).astype(np.int32)).cast(pa.date32()),
        pa.array((draw.random(size) < 0.06).astype(np.int32)),
        pa.array(draw.lognormal(3, 1.2, size), mask=draw.random(size) < 0.03),
    ]
    mixed = pa.array(draw.permutation(size))
    return pa.record_batch([column.take(mixed) for column in columns], SCHEMA)


def _urls(pages: NDArray[np.int64]) -> pa.Array:
    distinct, places = np.unique(pages, return_inverse=True)
    return pa.array([f"https://example.org/wiki/{page}" for page in distinct.tolist()]).take(pa.array(places))


def _weights(size: int) -> NDArray[np.float64]:
    shares = 1 / np.arange(1, size + 1)
    return shares / shares.sum()  # type: ignore[no-any-return]
