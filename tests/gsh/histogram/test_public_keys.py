"""Public groups: every listed one is published with noise, a missing one counts 0, and nothing else is let in."""

import datetime
import random
import uuid
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gsh
from gsh.histogram.entropy import operating_system
from gsh.histogram.groups import check_groups
from gsh.histogram.noise import Noise
from tests.gsh.histogram.key_columns import ENCODINGS, EXTENSIONS, SCALARS, encoded, value

PLAIN = gsh.PlainGaussian(c_u=1, sigma=2.0)
_PARTS = st.one_of(st.none(), st.text(max_size=3), st.integers(-3, 3))
_KEYS = st.one_of(_PARTS, st.lists(_PARTS, min_size=1, max_size=2))


def released(keys: Sequence[Any], counts: Sequence[int], public: Any) -> gsh.Groups:
    return gsh.release(PLAIN, keys=keys, counts=counts, public_keys=public)


def test_every_listed_group_is_published_also_without_users() -> None:
    groups = released(["US"], [10_000], ["FR", "US", "DE"])

    assert groups.keys == ("DE", "FR", "US")
    assert groups.counts[2] > 9_900
    assert np.abs(groups.counts[:2]).max() < 100


def test_a_list_is_published_if_no_group_is_posted() -> None:
    assert released([], [], ["b", "a"]).keys == ("a", "b")


def test_groups_without_users_have_noise_of_the_same_deviation() -> None:
    """A zero that is published as 0 would say that the group has no user."""
    zeros = np.asarray(released([], [], list(range(20_000))).counts, np.float64)

    assert np.count_nonzero(zeros) == len(zeros)
    assert abs(zeros.std() / 2.0 - 1) < 0.05
    assert abs(zeros.mean()) < 0.1


@given(st.lists(_KEYS, max_size=8, unique_by=repr), st.data())
def test_each_listed_group_has_the_number_of_the_posted_one(listed: list[Any], data: st.DataObject) -> None:
    places = data.draw(st.lists(st.sampled_from(range(len(listed))), unique=True) if listed else st.just([]))
    keys = [listed[place] for place in places]
    counts = pa.array([1000 + place for place in places], pa.int64())

    checked = check_groups(Noise(PLAIN), (), keys, counts, {}, public=listed)

    expected = [1000 + place if place in places else 0 for place in range(len(listed))]
    assert checked.counts.tolist() == expected
    assert sorted(checked.release(operating_system).rows.tolist()) == list(range(len(listed)))


@pytest.mark.parametrize(
    ("keys", "public", "pointer", "detail"),
    [
        (["secret"], ["US"], "keys", "must all be listed in public_keys"),
        (["US", "US"], ["US"], "keys", "must be unique"),
        (["US"], ["US", "FR", "US"], "public_keys", "no group key may be listed twice"),
        (["US"], None, "public_keys", "must list the groups to publish"),
        (["US"], "all", "public_keys", "or the word posted"),
    ],
)
def test_a_wrong_list_is_refused_and_no_group_is_named(keys: list[str], public: Any, pointer: str, detail: str) -> None:
    with pytest.raises(gsh.InvalidGroups) as refused:
        released(keys, [5] * len(keys), public)

    assert refused.value.pointer == pointer
    assert detail in refused.value.detail
    assert not any(key in refused.value.detail for key in ("secret", "US", "FR"))


def test_the_word_posted_says_that_the_posted_groups_are_the_list() -> None:
    assert released(["b", "a"], [0, 3], "posted").keys == ("a", "b")


def test_a_mechanism_with_thresholds_takes_no_list() -> None:
    mechanism = gsh.Mechanism(c_u=1, tau=1, tau_star=20, sigma=3)

    with pytest.raises(gsh.InvalidGroups, match="public_keys: must be omitted"):
        gsh.release(mechanism, keys=["a"], counts=[5], public_keys=["a"])


@pytest.mark.parametrize(
    ("column", "listed", "expected"),
    [
        (pa.array(["a", None]), ["b", "a", None], ["a", "b", None]),
        (pa.array(["a", "b"], pa.large_string()), ["c", "b", "a"], ["a", "b", "c"]),
        (pa.array(["a", "b"]).dictionary_encode(), ["c", "b", "a"], ["a", "b", "c"]),
        (pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), ["k0"]), [f"k{i}" for i in range(300)], None),
        (pa.array([1, 2], pa.int8()), [3, 2, 1], [1, 2, 3]),
        (pa.array([datetime.date(2026, 1, 1)]), ["2026-01-02", "2026-01-01"], None),
        (pa.array([1.5, None]), [None, 1.5, 2], [1.5, 2.0, None]),
    ],
    ids=str,
)
def test_a_table_is_completed_in_the_types_of_its_keys(column: pa.Array, listed: list[Any], expected: Any) -> None:
    """Listed as JSON values, and as a table, it is the same."""
    table = pa.table({"key": column, "users": pa.array([9000] * len(column))})
    for public in (listed, pa.table({"key": pa.array(listed)})):
        answer = gsh.release(PLAIN, table, key_columns=["key"], count_column="users", public_keys=public)

        assert len(answer) == len(listed)
        assert expected is None or answer["key"].to_pylist() == expected
        counts = dict(zip(answer["key"].to_pylist(), answer["users"].to_pylist(), strict=True))
        assert all((counts[key] > 8000) == (key in column.to_pylist()) for key in counts)


@pytest.mark.parametrize(
    ("public", "detail"),
    [
        ([["a", "b"]], "must have a value for each key column: 1"),
        (["x"], "must have values of the types of the key columns"),
        ([1, "x"], "must have values of one type in each part"),
        (pa.table({"other": ["a"]}), "must have the columns key"),
    ],
)
def test_a_list_that_does_not_fit_a_table_is_refused(public: Any, detail: str) -> None:
    table = pa.table({"key": pa.array([1], pa.int64()), "users": pa.array([1])})

    with pytest.raises(gsh.InvalidGroups) as refused:
        gsh.release(PLAIN, table, key_columns=["key"], count_column="users", public_keys=public)

    assert refused.value.detail.startswith(detail)


def own_keys(kind: pa.DataType) -> list[Any]:
    """A few values of a type, without repeats, and null."""
    return [*dict.fromkeys(value(kind, number) for number in (0, 1, 2, 3)), None]


def completed(column: pa.Array, public: Any) -> pa.Table:
    table = pa.table({"key": column, "users": pa.array([9000] * len(column))})
    return gsh.release(PLAIN, table, key_columns=["key"], count_column="users", public_keys=public)


@pytest.mark.parametrize("is_odd", [False, True], ids=["plain", "odd"])
@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("kind", [*SCALARS, *EXTENSIONS], ids=str)
def test_keys_of_any_type_can_be_listed(kind: pa.DataType, encoding: str, is_odd: bool) -> None:
    """As a table of the same type. As values of Python, as far as Python has them; else they are refused."""
    column = encoded(kind, encoding, own_keys(kind), random.Random(1) if is_odd else None)

    answer = completed(column.slice(1), pa.table({"key": column}))
    assert answer.schema.field("key").type == completed(column, "posted").schema.field("key").type
    assert sorted(map(repr, answer["key"].to_pylist())) == sorted(map(repr, column.to_pylist()))
    assert sum(count > 8000 for count in answer["users"].to_pylist()) == len(column) - 1
    listed = column.to_pylist()
    for public in (listed, [str(key) for key in listed], [1.5, 2.5], ["x"], [b"x" * 16], [[]], [None], []):
        try:
            assert len(completed(column, public)) == len(column)
        except gsh.InvalidGroups as error:
            assert error.pointer in {"/public_keys", "/key_columns"}  # noqa: PT017
            assert "ns" in str(kind) or public is not listed


@pytest.mark.parametrize(
    "public",
    [
        ["12345678-1234-5678-1234-567812345678", None, "00000000-0000-0000-0000-00000000000a"],
        [uuid.UUID(int=10), uuid.UUID("12345678-1234-5678-1234-567812345678"), None],
        pa.table({"key": ["12345678-1234-5678-1234-567812345678", None, "00000000-0000-0000-0000-00000000000A"]}),
        pa.table({"key": pa.array([uuid.UUID(int=10).bytes, None, b"\x124Vx" * 2 + b"\x124Vx" * 2], pa.binary())}),
    ],
    ids=["texts", "values", "a table of texts", "a table of bytes"],
)
def test_a_uuid_is_listed_in_its_usual_text(public: Any) -> None:
    column = pa.array([uuid.UUID(int=10).bytes], pa.uuid())

    answer = completed(column, public)

    assert answer["key"].type == pa.uuid()
    assert answer["key"].to_pylist()[0] == uuid.UUID(int=10)
    assert [count > 8000 for count in answer["users"].to_pylist()] == [True, False, False]
    for wrong in (["00000000"], ["x" * 36], [5], [b"x"]):
        with pytest.raises(gsh.InvalidGroups, match="must have values of the types of the key columns"):
            completed(column, wrong)


def test_json_is_listed_as_its_text() -> None:
    column = pa.array(['{"a": 1}', "[]"], pa.json_())

    answer = completed(column, ["[]", "null", '{"a": 1}'])

    assert answer["key"].type == pa.json_()
    assert answer["key"].to_pylist() == ["[]", "null", '{"a": 1}']
