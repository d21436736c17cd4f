"""JSON before it is parsed: repeated members are found, and the memory of what is parsed is bounded."""

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.http import json_text
from app.http.json_text import decoded_size, repeated_member
from app.releases.schemas.release import ReleaseRequest
from tests.app.client import CASE_STUDY, Client, problem_errors

NAMES = st.text(alphabet='ab"\\\\:{}[], \n\u00e9', max_size=3)
ITEMS: Any = st.recursive(
    st.none() | st.integers() | NAMES,
    lambda items: st.lists(items, max_size=3) | st.lists(st.tuples(NAMES, items), max_size=4).map(tuple),
    max_leaves=15,
)


def written(item: Any, space: str) -> str:
    """JSON. A tuple is an object by its members, which may repeat."""
    if isinstance(item, tuple):
        names = (json.dumps(name, ensure_ascii=len(name) % 2 == 0) for name, _ in item)
        members = (
            f"{name}{space}:{space}{written(value, space)}" for name, (_, value) in zip(names, item, strict=True)
        )
        return f"{{{f',{space}'.join(members)}}}"
    if isinstance(item, list):
        return f"[{f',{space}'.join(written(each, space) for each in item)}]"
    return json.dumps(item)


def repeats(item: Any) -> bool:
    if isinstance(item, tuple):
        return len(dict(item)) < len(item) or any(repeats(value) for _, value in item)
    return isinstance(item, list) and any(map(repeats, item))


@given(ITEMS, st.sampled_from(["", " ", "\n\t"]), st.booleans())
def test_a_repeated_member_is_found_wherever_it_is(item: Any, space: str, is_long: bool) -> None:
    content = written(item, space).encode()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(json_text, "_SHORT", 0 if is_long else 10**9)
        patched.setattr(json_text, "_BLOCK", 7)

        assert (repeated_member(content) is not None) == repeats(item)


def test_the_first_of_many_members_that_is_repeated_is_found() -> None:
    """In one pass: a list of the earlier names, searched for each, took a minute for a million names."""
    names = [f"n{number}" for number in range(200_000)]
    text = "{" + ",".join(f'"{name}":0' for name in [*names, "n199999", "n0"]) + "}"

    assert repeated_member(text.encode()) == ("n199999",)


def test_the_path_of_a_repeated_member_goes_through_lists() -> None:
    assert repeated_member(b'{"a": [1, {"b": {"c": 1, "c": 2}}]}') == ("a", 1, "b", "c")
    assert repeated_member(b'{"a": 1, "\\u0061": 2}') == ("a",)


MECHANISM = json.dumps(CASE_STUDY)
PADDING = " " * 20_000


@pytest.mark.parametrize(
    ("path", "body", "pointer"),
    [
        ("/account/exact", f'{{"mechanism": {MECHANISM}, "epsilon": 1, "epsilon": 2}}', "/epsilon"),
        ("/account/exact", f'{{"mechanism": {MECHANISM[:-1]}, "sigma": 9}}, "epsilon": 1}}', "/mechanism/sigma"),
        ("/account/exact", f'{{"mechanism": {MECHANISM}, "epsilon": 1, {PADDING} "epsilon": 2}}', "/epsilon"),
        ("/intervals", f'{{"mechanism": {MECHANISM}, "counts": [20000], "counts": [20001]}}', "/counts"),
        ("/release", f'{{"mechanism": {MECHANISM}, "groups": {{"keys": [], "counts": [], "keys": []}}}}', "/groups"),
        ("/budgets/web/preview", f'{{"mechanism": {MECHANISM}, "mechanism": {MECHANISM}}}', "/mechanism"),
    ],
    ids=["top", "nested", "long", "intervals", "groups", "budget"],
)
def test_a_member_that_is_there_twice_is_refused_with_its_pointer(path: str, body: str, pointer: str) -> None:
    """A parser keeps the last one; a reader may see the first. A name in the groups is not told: it may be a key."""
    refused = Client().post(path, body.encode())

    assert set(problem_errors(refused, 422, "invalid-request")) == {pointer}


def test_a_certificate_with_a_member_twice_is_refused() -> None:
    client = Client()
    certificate = client.answer("/release", {"mechanism": CASE_STUDY, "groups": {"keys": [], "counts": []}})[
        "certificate"
    ]
    text = json.dumps(certificate)
    assert client.post("/releases/verify", text.encode()).status_code == 200

    refused = client.post("/releases/verify", f'{{"release_id": "other", {text[1:]}'.encode())

    assert set(problem_errors(refused, 422, "invalid-request")) == {"/release_id"}


@pytest.mark.parametrize("unit", ["[]", "[[]]", "{}", '{"a":0}', "0", "123456", "1.5", '""', "null", "[1,2]"])
def test_the_memory_of_parsed_groups_is_at_most_what_is_estimated(unit: str) -> None:
    """Python's part of it: pydantic's own part is measured by benchmarks.bombs."""
    keys = ",".join([unit] * 20_000)
    content = f'{{"mechanism": {MECHANISM}, "groups": {{"counts": [], "keys": [{keys}]}}}}'.encode()
    tracemalloc.start()
    try:
        parsed = ReleaseRequest.model_validate_json(content)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert len(parsed.groups.keys) == 20_000
    assert taken < decoded_size(content)
