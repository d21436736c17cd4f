"""Releases of public groups over HTTP: every listed group is published, with noise, also those without users."""

import json
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pytest

from app.releases import groups
from tests.app.budgets.test_budgets import Bank
from tests.app.client import Client, Json, problem_errors
from tests.gsh.histogram.uploads import FORMATS, as_bytes, from_bytes

pytestmark = pytest.mark.slow

PUBLIC: Json = {"c_u": 1, "sigma": 5}
SECRET: Json = {"c_u": 1, "tau": 1, "tau_star": 40, "sigma": 5}
POSTED: Json = {"keys": ["US", "FR"], "counts": [1000, 3]}
LISTED = ["DE", "FR", "US"]
COLUMNS: Json = {"count_column": "users", "key_columns": ["country"], "mechanism": PUBLIC}


def table(histogram: Json) -> pa.Table:
    return pa.table({"country": histogram["keys"], "users": pa.array(histogram["counts"], pa.int64())})


def post_table(client: Client, histogram: Json, request: Json, kind: str = "arrow", **options: Any) -> httpx.Response:
    content = as_bytes(kind, table(histogram).cast(pa.schema({"country": pa.string(), "users": pa.int64()})))
    files = {"request": (None, json.dumps(COLUMNS | request)), "table": ("t", content)}
    return client.request("POST", "/release/table", files=files, **options)


@pytest.mark.parametrize("intervals", [{}, {"intervals": 0.95}], ids=str)
def test_every_listed_group_is_published_zeros_included(client: Client, intervals: Json) -> None:
    body = {"mechanism": PUBLIC, "groups": POSTED, "public_keys": LISTED} | intervals
    answer = client.answer("/release", body)

    assert answer["groups"]["keys"] == LISTED
    assert answer["groups"]["counts"] == pytest.approx([0, 3, 1000], abs=50)
    assert all(count != round(count) for count in answer["groups"]["counts"])
    assert answer["certificate"]["tie_rule"].startswith("There is no threshold")
    if intervals:
        found = answer["intervals"]["counts"]
        for low, count, high in zip(found["low"], answer["groups"]["counts"], found["high"], strict=True):
            assert 0 <= low <= max(count, 0) <= high


@pytest.mark.parametrize("kind", FORMATS)
def test_a_table_of_public_groups_is_completed(client: Client, kind: str) -> None:
    response = post_table(client, POSTED, {"public_keys": LISTED, "intervals": 0.9}, kind)

    kept = from_bytes(response.content)
    assert kept["country"].to_pylist() == LISTED
    assert kept["users"].to_pylist() == pytest.approx([0, 3, 1000], abs=50)
    assert kept.schema.names == ["country", "users", "users_low", "users_estimate", "users_high"]


def test_keys_of_a_table_are_cast_to_the_type_of_its_column(client: Client) -> None:
    posted = pa.table({"country": pa.array([7], pa.uint8()), "users": [5]})
    request = json.dumps(COLUMNS | {"public_keys": [7, 255]})
    files = {"request": (None, request), "table": ("t", as_bytes("arrow", posted))}
    kept = from_bytes(client.request("POST", "/release/table", files=files).content)
    assert (kept["country"].type, kept["country"].to_pylist()) == (pa.uint8(), [7, 255])

    files["request"] = (None, request.replace("255", "256"))
    refused = client.request("POST", "/release/table", files=files)
    assert set(problem_errors(refused, 422, "invalid-request")) == {"/public_keys"}


REFUSED: dict[str, tuple[Json, str]] = {
    "a group that is not listed": ({"public_keys": ["US", "DE"]}, "/groups/keys"),
    "a key that is listed twice": ({"public_keys": ["US", "FR", "US"]}, "/public_keys"),
    "no list": ({}, "/public_keys"),
    "a list and thresholds": ({"mechanism": SECRET, "public_keys": LISTED}, "/public_keys"),
    "the word and thresholds": ({"mechanism": SECRET, "public_keys": "posted"}, "/public_keys"),
    "another word": ({"public_keys": "listed"}, "/public_keys"),
    "an object": ({"public_keys": {"US": 1}}, "/public_keys"),
    "a key of another kind": ({"public_keys": [*LISTED, True]}, "/public_keys"),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("is_table", [False, True])
def test_what_does_not_fit_is_refused_and_no_group_is_named(client: Client, name: str, is_table: bool) -> None:
    request, pointer = REFUSED[name]
    if is_table:
        refused = post_table(client, POSTED, request)
        pointer = pointer.replace("/groups/keys", "/key_columns")
    else:
        refused = client.post("/release", {"mechanism": PUBLIC, "groups": POSTED} | request)

    assert set(problem_errors(refused, 422, "invalid-request")) == {pointer}
    assert not any(f'"{key}"' in refused.text for key in LISTED)


def test_listed_groups_count_against_the_limit() -> None:
    client = Client(max_release_groups=3, max_table_groups=3)
    more = {"public_keys": [*LISTED, "IT"]}

    assert client.post("/release", {"mechanism": PUBLIC, "groups": POSTED, "public_keys": LISTED}).status_code == 200
    errors = problem_errors(
        client.post("/release", {"mechanism": PUBLIC, "groups": POSTED} | more), 413, "content-too-large"
    )
    assert set(errors) == {"/groups"}
    assert post_table(client, POSTED, {"public_keys": LISTED}).status_code == 200
    assert set(problem_errors(post_table(client, POSTED, more), 413, "content-too-large")) == {"/public_keys"}


@pytest.mark.parametrize("is_table", [False, True])
def test_the_same_completed_groups_are_the_same_request(tmp_path: Any, is_table: bool) -> None:
    """Whether zeros are posted or listed only. Another list is another request."""
    bank = Bank(str(tmp_path / "ledger.sqlite3"))
    mechanism = PUBLIC | {"sigma": 500}
    completed = {"keys": ["DE", "FR", "US"], "counts": [0, 3, 1000]}

    def post(histogram: Json, public: Any) -> httpx.Response:
        request = {"mechanism": mechanism, "budget": "web", "public_keys": public}
        headers = {"idempotency-key": "week-1"}
        if is_table:
            return post_table(bank, histogram, request, headers=headers)
        return bank.request("POST", "/release", json=request | {"groups": histogram}, headers=headers)

    first = post(POSTED, LISTED)
    assert first.status_code == 200, first.text
    for again in (post(completed, "posted"), post(completed, LISTED[::-1]), post(POSTED, ["US", "DE", "FR"])):
        assert (again.headers.get("idempotency-replayed"), again.content) == ("true", first.content)
    problem_errors(post(POSTED, [*LISTED, "IT"]), 422, "key-reused")
    assert bank.budget()["spent"]["releases"] == 1
    assert bank.budget()["spent"]["hazard"] == 0
    bank.app.state.services.ledger_pool.close()


def unposted(client: Client, is_table: bool) -> list[float]:
    """The published numbers of a hundred groups that were listed and not posted."""
    keys = [f"{number:03}" for number in range(100)]
    nothing = {"keys": [], "counts": []}
    if is_table:
        counts = from_bytes(post_table(client, nothing, {"public_keys": keys}).content)["users"].to_pylist()
    else:
        body = {"mechanism": PUBLIC, "groups": nothing, "public_keys": keys}
        counts = client.answer("/release", body)["groups"]["counts"]
    assert len(counts) == 100
    return list(map(float, counts))


@pytest.mark.parametrize("is_table", [False, True])
def test_groups_without_users_get_the_noise_of_all_groups(client: Client, is_table: bool) -> None:
    """The planted bug leaves zeros as they are: then a published number says that a group has no user."""
    noisy = np.array(unposted(client, is_table))

    assert len(set(noisy)) == 100
    assert 3 < noisy.std() < 8
    assert abs(noisy.mean()) < 3


def test_the_test_of_noise_on_zeros_finds_zeros_without_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups.CheckedGroups, "release", _without_noise_on_zeros(groups.CheckedGroups.release))

    with pytest.raises(AssertionError):
        test_groups_without_users_get_the_noise_of_all_groups(Client(), is_table=False)


def _without_noise_on_zeros(release: Any) -> Any:
    def planted(checked: Any, *args: Any) -> Any:
        add = checked.noise.add

        def bug(counts: Any, values: Any, entropy: Any) -> Any:
            noisy = add(counts, values, entropy)
            noisy.counts[counts == 0] = 0
            return noisy

        checked.noise.add = bug
        return release(checked, *args)

    return planted
