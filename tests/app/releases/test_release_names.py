"""The name of a release, its idempotency key: a dry run checks it, and a replay says that it is one."""

import httpx
import pytest

from tests.app.client import problem_errors
from tests.app.releases.test_releases import BODY, GROUPS, MECHANISM, REQUEST, TABLE, Platform, permuted, platform
from tests.gsh.histogram.uploads import as_parquet, as_stream

__all__ = ["platform"]


def test_a_dry_run_says_what_the_name_would_do(platform: Platform) -> None:
    """A new name, a replay of the same content, or a name that is taken: for groups and for tables."""
    unused = platform.release("week-46", BODY | {"dry_run": True}).json()
    assert (unused["released_at"], unused["certificate"]["idempotency_key"]) == (None, "week-46")
    made = {"groups": platform.release("week-46"), "table": platform.table("week-47", as_stream(TABLE))}
    assert platform.charges() == 2
    at = {key: platform.get(f"/releases/{key}").json()["at"] for key in ("week-46", "week-47")}

    permutation = BODY | {"groups": permuted(GROUPS, [2, 0, 1])}
    again = platform.release("week-46", permutation | {"dry_run": True})
    assert again.status_code == 200, again.text
    assert again.json()["released_at"] == at["week-46"]
    assert again.json()["certificate"] == made["groups"].json()["certificate"]
    assert again.json()["budget"]["after"]["releases"] == 2  # nothing more would be spent
    table = platform.table("week-47", as_parquet(TABLE), REQUEST | {"dry_run": True})
    assert (table.status_code, table.json()["released_at"]) == (200, at["week-47"])

    other = BODY | {"epsilon": 0.5, "dry_run": True}
    problem_errors(platform.release("week-46", other), 422, "key-reused")
    taken = platform.table("week-47", as_stream(TABLE.slice(1)), REQUEST | {"dry_run": True})
    problem_errors(taken, 422, "key-reused")
    assert platform.charges() == 2


def test_a_dry_run_checks_the_form_of_the_name(platform: Platform) -> None:
    for name in ("two words", "..", "x" * 256):
        for refused in (
            platform.release(name, BODY | {"dry_run": True}),
            platform.table(name, as_stream(TABLE), REQUEST | {"dry_run": True}),
        ):
            assert list(problem_errors(refused, 422, "invalid-request")) == ["header Idempotency-Key"]
    free = {name: BODY[name] for name in ("mechanism", "groups")}
    assert list(problem_errors(platform.release("week-46", free | {"dry_run": True}), 422, "invalid-request")) == [
        "/budget"
    ]


@pytest.mark.parametrize("is_table", [False, True], ids=["groups", "table"])
def test_dry_runs_of_other_content_are_counted_as_guesses(platform: Platform, is_table: bool) -> None:
    """Otherwise a dry run would tell for free whether a guess at a posted table is right."""

    def guess(count: int) -> httpx.Response:
        if is_table:
            return platform.table("week-46", as_stream(TABLE.slice(0, count % 3)), REQUEST | {"dry_run": True})
        groups = GROUPS | {"counts": [5000, 4000, count]}
        return platform.release("week-46", BODY | {"groups": groups, "dry_run": True})

    made = platform.table("week-46", as_stream(TABLE)) if is_table else platform.release("week-46")
    assert made.status_code == 200
    statuses = [guess(3 + number).status_code for number in range(6)]

    assert statuses[:5] == [422] * 5
    assert statuses[5] == 429
    right = (
        platform.table("week-46", as_stream(TABLE), REQUEST | {"dry_run": True})
        if is_table
        else (platform.release("week-46", BODY | {"dry_run": True}))
    )
    assert right.status_code == 429  # whatever its content


def test_a_replay_says_when_the_release_was_made(platform: Platform) -> None:
    """Whatever the request: groups, a table, also in another format, a charge, or an open release."""
    charge = {"mechanism": MECHANISM, "epsilon": 1}

    def charged(key: str) -> httpx.Response:
        return platform.request("POST", "/budgets/web/charges", json=charge, headers={"idempotency-key": key})

    for key, sent in {
        "groups": [lambda: platform.release("groups")] * 2,
        "table": [
            lambda: platform.table("table", as_stream(TABLE)),
            lambda: platform.table("table", as_parquet(TABLE)),
        ],
        "charge": [lambda: charged("charge")] * 2,
        "open": [lambda: platform.open("open")] * 2,
    }.items():
        first, again = (send() for send in sent)
        assert first.is_success, first.text
        assert "idempotency-released-at" not in first.headers
        assert again.headers["idempotency-replayed"] == "true"
        assert again.headers["idempotency-released-at"] == platform.get(f"/releases/{key}").json()["at"]
