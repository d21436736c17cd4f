"""The noise of one partition of groups, as the function of ``mapInArrow``. It runs on the executors, without pyspark.

The function that goes there is a closure, and the seed is in it: a literal or a setting of Spark would be in plans,
event logs and pages.
"""

import functools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from gsh.accounting.mechanism import AnyMechanism
from gsh.errors import sum_too_large
from gsh.events.plan import Plan
from gsh.events.tables import in_table
from gsh.histogram.apply import MOST_COUNT
from gsh.histogram.entropy import Entropy, stream
from gsh.histogram.keys.columns import plain
from gsh.histogram.noise import Noise
from gsh.histogram.public_keys import POSTED
from gsh.histogram.tables import check_table
from gsh.wire import mechanism_to_json, release_from_json

__all__ = [
    "SEED_BYTES",
    "TABLE",
    "SharedRows",
    "add_noise",
    "noise_function",
    "noise_of",
    "noise_of_tables",
    "stream_of",
]

SEED_BYTES = 32
_LABEL = b"gsh partition stream 1"
_LABEL_OF_TABLES = b"gsh table partition stream 1"


def stream_of(seed: bytes, plan_digest: str, content: bytes, table: str = "") -> Entropy:
    """The random bits of one partition: the same for the same groups, unrelated for others.

    They are the stream of the seed for a label, the digest of the plan, the name of the table, if it has one, and the
    ``content``: the digest of the partition's groups.

    Spark may compute a partition many times: a task is tried again, or runs twice. On the same groups it draws the same
    noise again. On other groups it draws noise that shares nothing with the first, so that the difference of two
    outputs is never exact. To a reader who does not have the seed the bits look uniform, as those of the operating
    system do: the guarantee rests on the hash functions, as there it rests on the kernel's generator.
    """
    if len(seed) != SEED_BYTES:
        raise ValueError(f"a seed has {SEED_BYTES} bytes")
    named = (_LABEL_OF_TABLES, plan_digest.encode(), table.encode()) if table else (_LABEL, plan_digest.encode())
    return stream(seed, *named, content)


Batches = Iterator[pa.RecordBatch]


TABLE = "_table"
"""The number of the table that a row belongs to."""


@dataclass(frozen=True, slots=True)
class SharedRows:
    """One of several tables whose rows have the same columns: which of them are its own."""

    name: str
    plan: Plan
    mechanism: AnyMechanism
    inputs: Sequence[str]
    """The columns of the group keys, of the count, and of the sums."""
    outputs: Sequence[str]
    """Where its published columns go."""


def noise_function(plan: Plan, mechanism: AnyMechanism, seed: bytes) -> Callable[[Batches], Batches]:
    """The function that turns the groups of a partition into published rows, sorted by key."""
    written, digest = json.dumps(mechanism_to_json(mechanism)), plan.digest

    def with_noise(batches: Batches) -> Batches:
        return add_noise(batches, written, plan, digest, seed)

    return with_noise


def noise_of_tables(
    tables: Sequence[SharedRows], keys: Sequence[str], numbers: Mapping[str, pa.DataType], seed: bytes, digest: str
) -> Callable[[Batches], Batches]:
    """The same for the groups of several tables: the published rows of the first one, then of the second one, ….

    The result has a column for the table, those of the ``keys``, and the ``numbers`` with their types. ``digest`` is
    that of the plan of all tables. Each table has a stream of its own.
    """
    written = [json.dumps(mechanism_to_json(each.mechanism)) for each in tables]

    def with_noise(batches: Batches) -> Batches:
        filled = [batch for batch in batches if len(batch)]
        if not filled:
            return
        groups = pa.Table.from_batches(filled)
        fields = [(TABLE, pa.int32()), *((key, groups.schema.field(key).type) for key in keys), *numbers.items()]
        for place, each in enumerate(tables):
            own = groups.filter(pc.equal(groups[TABLE], place)).select(each.inputs)
            own = own.rename_columns([*each.plan.by, *each.plan.roles.numbers])
            with in_table(each.name):
                for batch in add_noise(iter(own.to_batches()), written[place], each.plan, digest, seed, each.name):
                    yield _shared(batch, place, each.outputs, pa.schema(fields))

    return with_noise


def _shared(batch: pa.RecordBatch, place: int, names: Sequence[str], schema: pa.Schema) -> pa.RecordBatch:
    """Published rows of a table in the columns of all tables: null where this one has none."""
    found = dict(zip(names, batch.columns, strict=True)) | {TABLE: pa.repeat(place, len(batch))}
    columns = [
        found[field.name].cast(field.type) if field.name in found else pa.nulls(len(batch), field.type)
        for field in schema
    ]
    return pa.record_batch(columns, schema)


def add_noise(
    batches: Batches,
    mechanism: str,
    plan: Plan,
    plan_digest: str,
    seed: bytes,
    named: str = "",
) -> Batches:
    """The kept groups of one partition, with noise from a stream of its own. ``mechanism`` is JSON."""
    filled = [batch for batch in batches if len(batch)]
    if not filled:
        return
    table = pa.Table.from_batches(filled)
    for each in plan.measures:
        extremes = pc.min_max(table[each.column]).as_py()
        if max(-extremes["min"], extremes["max"]) > MOST_COUNT:
            raise sum_too_large(each.pointer)
        numbers = each.numbers(plain(table[each.column]))
        table = table.set_column(table.column_names.index(each.column), each.column, numbers)
    noise, roles = noise_of(mechanism, plan.meaning.rounded), plan.roles
    checked = check_table(noise, table, roles, POSTED if noise.is_public else None)
    yield from checked.release(stream_of(seed, plan_digest, checked.digest(), named))


@functools.lru_cache(maxsize=8)
def noise_of(mechanism: str, rounded: tuple[float, ...] | None = None) -> Noise:
    """The noise of a mechanism in JSON. A process of Spark serves many partitions."""
    return Noise(release_from_json(json.loads(mechanism)), rounded)
