"""The noise of one partition of groups, as the function of ``mapInArrow``. It runs on the executors, without pyspark.

The function that goes there is a closure, and the seed is in it: a literal or a setting of Spark would be in plans,
event logs and pages.
"""

import functools
import json
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from gsh.accounting.mechanism import Mechanism
from gsh.errors import sum_too_large
from gsh.events.plan import COUNT, Plan
from gsh.events.streams import stream_of
from gsh.histogram.apply import MOST_COUNT
from gsh.histogram.keys.columns import plain
from gsh.histogram.noise import Noise
from gsh.histogram.numbers import checked_values
from gsh.histogram.tables import Roles, check_table
from gsh.wire import mechanism_from_json, mechanism_to_json

__all__ = ["add_noise", "noise_function", "noise_of"]

Batches = Iterator[pa.RecordBatch]


def noise_function(plan: Plan, mechanism: Mechanism, seed: bytes) -> Callable[[Batches], Batches]:
    """The function that turns the groups of a partition into published rows, sorted by key."""
    said, digest = json.dumps(mechanism_to_json(mechanism)), plan.digest
    roles = Roles(plan.by, COUNT, tuple(column.name for column in plan.sums))
    scales = tuple(column.scale for column in plan.sums)

    def with_noise(batches: Batches) -> Batches:
        return add_noise(batches, said, roles, scales, digest, seed)

    return with_noise


def add_noise(
    batches: Batches, mechanism: str, roles: Roles, scales: Sequence[float], plan_digest: str, seed: bytes
) -> Batches:
    """The kept groups of one partition, with noise from a stream of its own. ``mechanism`` is JSON."""
    filled = [batch for batch in batches if len(batch)]
    if not filled:
        return
    table = pa.Table.from_batches(filled)
    for name, scale in zip(roles.values, scales, strict=True):
        extremes = pc.min_max(table[name]).as_py()
        if max(-extremes["min"], extremes["max"]) > MOST_COUNT:
            raise sum_too_large(name)
        units = checked_values(plain(table[name]), 1.0, f"sums/{name}")
        table = table.set_column(table.column_names.index(name), name, pa.array(units * scale))
    checked = check_table(noise_of(mechanism), table, roles)
    yield from checked.release(stream_of(seed, plan_digest, checked.digest()))


@functools.lru_cache(maxsize=8)
def noise_of(mechanism: str) -> Noise:
    """The noise of a mechanism in JSON. A process of Spark serves many partitions."""
    return Noise(mechanism_from_json(json.loads(mechanism)))
