"""The digest of groups in JSON: the same for the same set of groups in any order and spelling, else another."""

import json
import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gsh.accounting.mechanism import Aggregates, Mechanism
from gsh.accounting.sensitivity import Box
from gsh.histogram.groups import check_groups
from gsh.histogram.keys.json_keys import normalised
from gsh.histogram.noise import Noise

NOISE = Noise(Mechanism(c_u=3, tau=1, tau_star=100.0, sigma=5.0))
TWO_COLUMNS = Noise(
    Mechanism(
        c_u=3,
        tau=1,
        tau_star=100.0,
        sigma=5.0,
        aggregates=Aggregates(
            names=("a", "b"), covariance=((4.0, 0.0), (0.0, 4.0)), sensitivity=Box((0.0,) * 2, (1.0,) * 2)
        ),
    )
)


def digest(text: str) -> bytes:
    """Of groups as they are posted."""
    groups = json.loads(text)
    values = {name: pa.array(column, pa.float64()) for name, column in groups.get("values", {}).items()}
    counts = pa.array(groups["counts"], pa.int64())
    noise = TWO_COLUMNS if values else NOISE
    return check_groups(noise, tuple(values), groups["keys"], counts, values).digest()


def digest_of_keys(keys: list[Any]) -> bytes:
    return digest(json.dumps({"keys": keys, "counts": [5] * len(keys)}))


def test_order_spacing_and_the_spelling_of_numbers_do_not_matter() -> None:
    expected = digest('{"keys": [["a", 1], ["b", 2]], "counts": [3, 4]}')

    assert digest('{"keys":[["b",2],\n["\\u0061",1]],"counts":[4,3]}') == expected
    assert digest('{"keys": [["a", 1.0], ["b", 2e0]], "counts": [3, 4]}') == expected
    assert digest('{"keys": [["a", 1.0], ["b", 2]], "counts": [3, 4], "values": {}}') == expected


@pytest.mark.parametrize("keys", [[0, 1, 2], [0, 0.5, 7], [0, "a"], [[0], ["a", 1]], [2**70, 0], [0, None]], ids=str)
def test_a_whole_number_has_one_spelling(keys: list[Any]) -> None:
    """Whether all keys are integers or not."""

    def with_points(key: Any) -> Any:
        return list(map(with_points, key)) if isinstance(key, list) else float(key) if isinstance(key, int) else key

    points = [with_points(key) for key in keys]
    assert digest_of_keys(points) == digest_of_keys(keys)
    assert digest_of_keys([-0.0 if key == 0.0 else key for key in points[::-1]]) == digest_of_keys(keys)


def test_keys_that_look_alike_are_different() -> None:
    several: list[list[Any]] = [
        *([], ["a"], [["a"]], [["a", "b"]], ["ab"], ["1"], [1], [[1]], [1.5], [["1", 1]], [[1, "1"]], ["a", "b"]),
        *(["a", 1], [["a"], 1], [["a"], "1"], ['["a"]'], [["a"], ["b"]], [["a"], ["b", "c"]], [["a", "b"], ["c"]]),
        *([None], [[None]], [["a", None]], [[None, "a"]], ["a", None], ["null"], [1, None], [["a"], None]),
        *([2**63], [2**63 - 1], [float(2**63 + 2**12)]),
    ]

    assert len(set(map(digest_of_keys, several))) == len(several)


def test_numbers_and_the_names_of_their_columns_are_part_of_the_content() -> None:
    def of(counts: str, first: str, second: str) -> bytes:
        return digest(f'{{"keys": ["x", "y"], "counts": {counts}, "values": {{"a": {first}, "b": {second}}}}}')

    expected = of("[1, 2]", "[3, 4]", "[-0.0, 6]")
    assert of("[1, 2]", "[3.0, 4.00]", "[0, 6e0]") == expected
    others = {of("[2, 1]", "[3, 4]", "[0, 6]"), of("[1, 2]", "[0, 6]", "[3, 4]"), of("[1, 2]", "[3, 4]", "[0, 7]")}
    assert len(others | {expected}) == 4


SCALARS = st.none() | st.text("ab", max_size=2) | st.integers(-2, 2) | st.sampled_from([0.5, 1.0, 2.0**60, 2.0**70])
KEYS = st.lists(SCALARS | st.lists(SCALARS, min_size=1, max_size=2), max_size=6)


def groups_of(keys: list[Any], draw: random.Random) -> dict[str, int]:
    """Distinct keys, as JSON in one spelling, and their counts."""
    return {json.dumps(normalised(key)): draw.randint(0, 1) for key in keys}


@given(KEYS, KEYS, st.randoms(use_true_random=False))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_the_same_digest_if_and_only_if_the_same_groups(first: list[Any], second: list[Any], draw: Any) -> None:
    groups = [groups_of(first, draw), groups_of(second, draw)]
    digests = []
    for posted in groups:
        keys = draw.sample(list(posted), len(posted))
        digests.append(digest(f'{{"keys": [{",".join(keys)}], "counts": {[posted[key] for key in keys]}}}'))

    assert (digests[0] == digests[1]) == (groups[0] == groups[1])


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (["a", None], "fa7a099d6a4a3f9ec23311d6d999dc66a9ee9a94234f60f24fca4f4333dd08bb"),
        (["a", 1], "d98e8420af2176e5312c086593cc464513a202e3958748744877567beb446e3a"),
    ],
    ids=str,
)
def test_the_digest_is_known(keys: list[Any], expected: str) -> None:
    """A service compares it with digests that an earlier version has stored."""
    assert digest_of_keys(keys).hex() == expected
