"""Group keys in JSON: sorted as documented, null last, equal numbers are the same group key, and others refused."""

import itertools
import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gsh.errors import InvalidGroups
from gsh.histogram.keys.json_keys import columns_of, normalised
from gsh.histogram.keys.order import unique_order

ASCENDING: list[Any] = [
    *(
        -(10**400),
        -1e300,
        -(2**63),
        -(2**53) - 1,
        -(2**53),
        -1.5,
        -1,
        -0.5,
        -1e-300,
        0,
        1e-300,
        0.5,
        1,
        1.5,
        2**53,
        2**53 + 1,
        2**63,
        1e300,
    ),
    *("", "0", "A", "a", "a\x00", "aa", "é", "\U0001f600"),
    *([0], [0, 0], [0, "a"], [0, None], [0.5], [1, 2, 3], [1, "a"], [""], ["", 0], ["a"], ["a", "FR"], ["a", "US"]),
    *(["a", None], ["b", 1], [None], [None, 0], [None, None], None),
]


def order_of(keys: list[Any]) -> list[int]:
    return unique_order(columns_of(keys, "/keys").columns, len(keys), "/keys").tolist()


def test_numbers_then_strings_then_lists() -> None:
    shuffled = random.Random(1).sample(ASCENDING, len(ASCENDING))

    assert [shuffled[place] for place in order_of(shuffled)] == ASCENDING


@pytest.mark.parametrize(("first", "second"), list(itertools.combinations(range(0, len(ASCENDING), 3), 2)))
def test_any_two_keys_are_in_that_order(first: int, second: int) -> None:
    assert order_of([ASCENDING[second], ASCENDING[first]]) == [1, 0]


@pytest.mark.parametrize(
    "keys",
    [
        *(["a", "a"], [1, 1], [1, 1.0], [0.0, -0.0], [["a", 1], ["a", 1.0]], [["a"], ["b"], ["a"]]),
        *([2**53, 2.0**53, "x"], [None, None], ["a", None, None], [None, 1, None], [["a", None], ["a", None]]),
        [None, "a", 1, None],
    ],
    ids=str,
)
def test_the_same_key_twice_is_refused(keys: list[Any]) -> None:
    with pytest.raises(InvalidGroups, match="unique"):
        order_of(keys)


@pytest.mark.parametrize("keys", [["1", 1], ["a", ["a"]], [["a"], ["a", "a"]], [2**53, 2**53 + 1, 0.5]], ids=str)
def test_similar_group_keys_are_different(keys: list[Any]) -> None:
    assert sorted(order_of(keys)) == list(range(len(keys)))


@pytest.mark.parametrize(
    "key",
    [
        *(True, {}, [], [True], [["a"]], [[None]], [None] * 101, ["a"] * 101),
        *(float("nan"), float("inf"), [1.0, float("nan")]),
    ],
    ids=lambda key: str(key)[:20],
)
@pytest.mark.parametrize("others", [[], ["b"], [["b", 1]], [7]], ids=str)
def test_an_invalid_group_key_is_refused_among_valid_ones(key: Any, others: list[Any]) -> None:
    with pytest.raises(InvalidGroups):
        order_of([key, *others])


SCALARS = (
    st.none()
    | st.text(st.sampled_from("ab"), max_size=2)
    | st.integers(-2, 2)
    | st.sampled_from([0.5, -0.5, 1.0, 2.0**60])
)


def python_key(key: Any) -> tuple[Any, ...]:
    if isinstance(key, list):
        return (1, [python_key(part) for part in key])
    if key is None:
        return (2,)
    return (0, (1, 0, key) if isinstance(key, str) else (0, key, ""))


@given(st.lists(SCALARS | st.lists(SCALARS, min_size=1, max_size=3), min_size=1, max_size=30))
@settings(max_examples=300, deadline=None, derandomize=True)
def test_the_order_is_that_of_a_plain_sort(keys: list[Any]) -> None:
    expected = sorted(range(len(keys)), key=lambda place: python_key(keys[place]))
    if any(python_key(keys[a]) == python_key(keys[b]) for a, b in itertools.pairwise(expected)):
        with pytest.raises(InvalidGroups, match="unique"):
            order_of(keys)
    else:
        assert order_of(keys) == expected


@pytest.mark.parametrize(
    ("posted", "shown"),
    [
        *((1.0, "1"), (-0.0, "0"), (0.5, "0.5"), (1e16, "10000000000000000"), (1e-5, "1e-05")),
        *(("1.0", '"1.0"'), ([1.0, "a", -0.0], '[1, "a", 0]')),
    ],
)
def test_equal_group_keys_are_written_identically(posted: object, shown: str) -> None:
    """The sign of a zero, or a decimal point, may come from a single record."""
    assert json.dumps(normalised(posted)) == shown
    with pytest.raises(InvalidGroups, match="unique"):
        unique_order(columns_of([posted, normalised(posted)], "/keys").columns, 2, "/keys")
