"""The noise of a partition: a function of the seed, the plan and the groups, and of nothing else. It needs no Spark."""

import dataclasses
import itertools
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gsh
from gsh.events.plan import Plan, make_plan
from gsh.histogram.noise import Noise
from gsh.spark import noise as partition
from gsh.spark.noise import SharedRows, add_noise, noise_function, noise_of_tables, stream_of
from gsh.wire import mechanism_to_json
from tests.gsh.histogram.ideal import Judge
from tests.normality import UNLIKELY, kolmogorov_smirnov

SEED = bytes(range(32))
PLAN = make_plan(
    user="u",
    by=["url", "n"],
    sums={"likes": (0, 4), "seconds": (0, 600)},
    units={"seconds": 0.25},
    c_u=3,
    salt="0" * 32,
)
MECHANISM = gsh.calibrate(c_u=3, epsilon=2, delta=1e-3, sums={"likes": (0, 4), "seconds": (0, 600)}).mechanism


def groups(rows: int, first: int = 0) -> pa.Table:
    places = np.arange(first, first + rows)
    return pa.table(
        {
            "url": pa.array([None if place % 17 == 3 else f"u{place % 50}" for place in places], pa.string()),
            "n": places,
            "count": 1 + places % 90,
            "likes": 3 * (places % 90),
            "seconds": 7 * (places % 90),
        }
    )


def noised(table: pa.Table, seed: bytes = SEED, plan: Plan = PLAN, most: int | None = None) -> pa.Table:
    return pa.Table.from_batches(noise_function(plan, MECHANISM, seed)(iter(table.to_batches(max_chunksize=most))))


@settings(max_examples=25, deadline=None)
@given(st.permutations(range(60)), st.integers(1, 60))
def test_the_order_and_the_batches_of_the_rows_do_not_matter(order: list[int], most: int) -> None:
    assert noised(groups(60).take(order), most=most).equals(noised(groups(60)))


def test_other_groups_another_plan_and_another_seed_share_no_noise() -> None:
    """Not even where most groups are the same: the difference of two outputs is never exact."""
    first = {(row["url"], row["n"]): row for row in noised(groups(400)).to_pylist()}
    others = [
        noised(groups(401)),
        noised(groups(399)),
        noised(groups(400).set_column(2, "count", pa.array([2, *groups(400)["count"].to_pylist()[1:]]))),
        noised(groups(400), plan=dataclasses.replace(PLAN, salt="1" * 32)),
        noised(groups(400), seed=bytes(32)),
    ]
    for other in others:
        both = [(row, first[row["url"], row["n"]]) for row in other.to_pylist() if (row["url"], row["n"]) in first]
        assert len(both) > 50
        for name in ("count", "likes", "seconds"):
            assert sum(one[name] == two[name] for one, two in both) <= 1


def test_units_become_numbers_and_keys_are_sorted_with_exact_types() -> None:
    table = noised(groups(2000))
    large = [row for row in table.to_pylist() if row["n"] % 90 > 80]

    assert table.schema.types == [pa.string(), pa.int64(), pa.float64(), pa.float64(), pa.float64()]
    keys = [(row["url"] is None, row["url"] or "", row["n"]) for row in table.to_pylist()]
    assert keys == sorted(keys)
    spread = math.sqrt(MECHANISM.aggregates.covariance[1][1])
    assert abs(np.mean([row["seconds"] - 7 * (row["n"] % 90) * 0.25 for row in large])) < spread


def test_an_empty_partition_gives_no_rows_and_sums_beyond_doubles_are_refused() -> None:
    assert list(noise_function(PLAN, MECHANISM, SEED)(iter([]))) == []
    assert list(noise_function(PLAN, MECHANISM, SEED)(iter(groups(0).to_batches()))) == []
    for most, sign in itertools.product((2**53, 2**53 + 1), (1, -1)):
        table = groups(3).set_column(3, "likes", pa.array([1, sign * most, 3]))
        made = noise_function(PLAN, MECHANISM, SEED)(iter(table.to_batches()))
        if most == 2**53:
            assert len(list(made)) <= 1
        else:
            with pytest.raises(gsh.EventsError, match=r"sums/likes: must stay within 2\^53 units"):
                list(made)


def test_the_judge_of_recorded_bits_agrees_on_the_stream_of_a_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes of the stream are recorded, and an independent implementation computes the rows from them."""
    given_bytes: list[bytes] = []

    def recording(*arguments: Any) -> Callable[[int], bytes]:
        stream = stream_of(*arguments)

        def recorded(size: int) -> bytes:
            given_bytes.append(stream(size))
            return given_bytes[-1]

        return recorded

    monkeypatch.setattr(partition, "stream_of", recording)
    found = noised(groups(300))
    ordered = sorted(groups(300).to_pylist(), key=lambda row: (row["url"] is None, row["url"] or "", row["n"]))
    counts = np.array([row["count"] for row in ordered])
    values = np.array([[row["likes"], row["seconds"] * 0.25] for row in ordered])
    ideal = Judge(MECHANISM).release(counts, values, given_bytes)

    assert 10 < ideal.kept.sum() < 300
    expected = [row["n"] for row, kept in zip(ordered, ideal.kept, strict=True) if kept]
    assert found["n"].to_pylist() == expected
    assert found["count"].to_pylist() == ideal.counts[ideal.kept].tolist()
    assert found["seconds"].to_pylist() == ideal.values[ideal.kept, 1].tolist()


def test_streams_of_many_partitions_have_the_distribution_of_the_noise() -> None:
    """Each draw from a stream of its own: then a fault in the keys would show as well."""
    noise = Noise(gsh.Mechanism(c_u=1, tau=1, tau_star=1e9, sigma=1.0))
    draws = [
        noise.add(np.full(50, 10), np.empty((50, 0)), stream_of(SEED, PLAN.digest, number.to_bytes(4, "big"))).counts
        for number in range(4000)
    ]

    assert kolmogorov_smirnov(np.concatenate(draws) - 10) > UNLIKELY


def test_a_stream_never_repeats_itself_and_depends_on_every_part_of_its_name() -> None:
    one = stream_of(SEED, "plan", b"content")
    blocks = [one(64) for _ in range(1000)]
    assert len(set(blocks)) == 1000
    assert stream_of(SEED, "plan", b"content")(64) == blocks[0]
    names = [("plan", b"content"), ("pla", b"ncontent"), ("plancontent", b""), ("plan", b"content\0")]
    firsts = [stream_of(seed, *name)(64) for seed, name in itertools.product((SEED, bytes(32)), names)]
    assert len(set(firsts)) == len(firsts)
    with pytest.raises(ValueError, match="32 bytes"):
        stream_of(b"short", "plan", b"")


def test_the_function_says_nothing_about_its_seed() -> None:
    function = noise_function(PLAN, MECHANISM, SEED)

    for secret in (SEED.hex(), str(list(SEED)), repr(SEED)):
        assert secret not in repr(function) + json.dumps(PLAN.to_json())


def test_tables_in_one_partition_have_the_rows_of_each_alone() -> None:
    """The rows of both come in any order, and the columns that a table does not have are null."""
    other = make_plan(user="u", by="n", c_u=2, salt="1" * 32, partitions=1)
    mechanisms = {"a": MECHANISM, "b": gsh.Mechanism(c_u=2, tau=1, tau_star=2, sigma=1)}
    tables, digest = {"a": PLAN, "b": other}, "d"
    totals = [f"_total{j}" for j in range(len(PLAN.measures))]
    inputs = {"a": ("_key0_0", "_key1_0", "_users", *totals), "b": ("_key1_0", "_users")}
    numbers = {f"_number{j}": pa.float64() for j in range(1 + len(totals))}
    outputs = {"a": (*inputs["a"][:2], *numbers), "b": ("_key1_0", "_number0")}
    shared = [SharedRows(name, tables[name], mechanisms[name], inputs[name], outputs[name]) for name in tables]
    alone = {"a": groups(50), "b": pa.table({"n": pa.array(range(40), groups(1)["n"].type), "count": [9] * 40})}
    wide = [
        alone[name].rename_columns(inputs[name]).append_column("_table", pa.array([place] * len(alone[name]), "int32"))
        for place, name in enumerate(tables)
    ]
    together = pa.concat_tables(wide, promote_options="default")
    together = together.take(np.random.default_rng(3).permutation(len(together)))

    function = noise_of_tables(shared, ["_key0_0", "_key1_0"], numbers, SEED, digest)
    found = pa.Table.from_batches(function(iter(together.to_batches(max_chunksize=7))))

    assert found.column_names == ["_table", "_key0_0", "_key1_0", *numbers]
    for place, name in enumerate(tables):
        written = json.dumps(mechanism_to_json(mechanisms[name]))
        batches = add_noise(iter(alone[name].to_batches()), written, tables[name], digest, SEED, name)
        own = found.filter(pc.equal(found["_table"], place))
        assert own.select(outputs[name]).to_pylist() == [
            dict(zip(outputs[name], row.values(), strict=True)) for row in pa.Table.from_batches(batches).to_pylist()
        ]
        rest = [column for column in found.column_names if column not in ("_table", *outputs[name])]
        assert all(own[column].null_count == len(own) for column in rest)
    assert set(found["_table"].to_pylist()) == {0, 1}
