"""Guesses at a paid release, all at the same instant, against a live service with several workers."""

import asyncio
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from app.ledger.opening import connections_of
from tests.api.client import CASE_STUDY, Json
from tests.api.process import PATIENCE, ROOT, Service, environment

SECRET = "thirty-two characters at least, or more"
WORKERS = 3
TRUE_COUNT = 61_150
IDEMPOTENCY = {"idempotency-key": "weekly-46"}
LONGEST_WAIT = 60
"""Seconds, as the documentation says."""


def body(count: int) -> Json:
    return {"mechanism": CASE_STUDY, "budget": "web", "groups": {"keys": ["a"], "counts": [count]}}


class Guarded:
    """A service with access keys, and a release that one of them paid for."""

    def __init__(self, service: Service, place: str) -> None:
        self.url, self._place = service.url, place
        self.admin, self.owner, self.stranger = (self._key(scope) for scope in ("admin", "release", "release"))
        limit = {"epsilon": 1.0, "delta": 1e-4}
        assert httpx.put(f"{self.url}/budgets/web", json=limit, headers=self.admin, timeout=PATIENCE).is_success
        self.first = self.release(self.owner, TRUE_COUNT)
        assert self.first.status_code == 200, self.first.text

    def _key(self, scope: str) -> dict[str, str]:
        settings = environment(ledger=self._place, ledger_secret=SECRET)
        command = [sys.executable, "-m", "app.keys", "create", "--scope", scope]
        made = subprocess.run(
            command, cwd=ROOT, env=settings, timeout=PATIENCE, capture_output=True, text=True, check=True
        )
        return {"authorization": f"Bearer {made.stdout.strip()}"}

    def release(self, key: dict[str, str], count: int) -> httpx.Response:
        return httpx.post(f"{self.url}/release", json=body(count), headers=key | IDEMPOTENCY, timeout=PATIENCE)

    def at_once(self, path: str, guesses: list[tuple[dict[str, str], Json]]) -> list[httpx.Response]:
        """All connections are open before the first guess is sent."""

        async def scenario() -> list[httpx.Response]:
            limits = httpx.Limits(max_connections=len(guesses), max_keepalive_connections=len(guesses))
            async with httpx.AsyncClient(base_url=self.url, limits=limits, timeout=PATIENCE) as http:
                await asyncio.gather(*(http.get("/healthz") for _ in guesses))
                return await asyncio.gather(
                    *(http.post(path, json=guess, headers=key | IDEMPOTENCY) for key, guess in guesses)
                )

        return asyncio.run(scenario())

    def let_time_pass(self, seconds: float) -> None:
        """Set back what the ledger remembers, which is the same as to wait."""
        with closing(connections_of(self._place)) as connections, connections.transaction() as execute:
            execute(f"UPDATE comparisons SET by_owner = by_owner - {seconds}, by_others = by_others - {seconds}")


@pytest.fixture
def guarded(ledger_url: str, tmp_path: Path) -> Iterator[Guarded]:
    settings = {"ledger": ledger_url, "ledger_secret": SECRET, "workers": str(WORKERS)}
    with Service(temporary=tmp_path, **settings) as service:
        for _ in range(WORKERS):
            service.wait_for_message("Application startup complete")
        yield Guarded(service, ledger_url)


def told(answers: list[httpx.Response]) -> Counter[tuple[int, str]]:
    return Counter((answer.status_code, "" if answer.is_success else answer.json()["type"]) for answer in answers)


def test_of_300_altered_replays_at_once_at_most_ten_are_compared_and_the_owner_is_let_in_soon(guarded: Guarded) -> None:
    """By the client that paid and by another, half each; none of them hits the true count."""
    keys = (guarded.owner, guarded.stranger)
    guesses = [(keys[number % 2], body(TRUE_COUNT + 1 + number)) for number in range(300)]

    answers = guarded.at_once("/release", guesses)

    counts = told(answers)
    assert set(counts) == {(409, "key-reused"), (429, "too-many-attempts")}
    assert 1 <= counts[409, "key-reused"] <= 10
    waits = [int(answer.headers["retry-after"]) for answer in answers if answer.status_code == 429]
    assert max(waits) <= LONGEST_WAIT
    guarded.let_time_pass(LONGEST_WAIT)
    assert guarded.release(guarded.owner, TRUE_COUNT).content == guarded.first.content


def test_300_guesses_of_another_client_do_not_keep_the_owner_out(guarded: Guarded) -> None:
    """One of the guesses is right, and is told only if it is among the first few."""
    guesses = [(guarded.stranger, body(TRUE_COUNT - 150 + number)) for number in range(300)]

    counts = told(guarded.at_once("/release", guesses))

    assert set(counts) <= {(200, ""), (409, "key-reused"), (429, "too-many-attempts")}
    assert counts[409, "key-reused"] <= 5
    assert guarded.release(guarded.owner, TRUE_COUNT).content == guarded.first.content


def test_guesses_at_a_charge_are_counted_alike(guarded: Guarded) -> None:
    guesses = [(guarded.stranger, {"mechanism": CASE_STUDY | {"sigma": 2000 + number}}) for number in range(60)]

    counts = told(guarded.at_once("/budgets/web/charges", guesses))

    assert set(counts) == {(409, "key-reused"), (429, "too-many-attempts")}
    assert 1 <= counts[409, "key-reused"] <= 5
