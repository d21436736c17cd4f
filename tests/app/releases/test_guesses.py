"""Guesses at a paid release, all at the same instant, against a live service with several workers.

While the service answers, one more attempt is allowed every six seconds. The tests allow for these, however slow the
machine is. tests/app/ledger/test_repeats.py tests the counts with a fixed clock.
"""

import asyncio
import math
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack, closing

import httpx
import pytest

from app.ledger.access.access_keys import new_key
from app.ledger.opening import connections_of, open_ledger
from app.ledger.repeats import SECONDS
from app.ledger.store import Ledger
from gsh.accounting.budget_limits import Limit
from tests.app.client import CASE_STUDY, Json
from tests.app.ledger.examples import AT
from tests.app.process import PATIENCE, Service
from tests.postgres import Postgres

pytestmark = pytest.mark.slow

SECRET = "thirty-two characters at least, or more"
WORKERS = 3
TRUE_COUNT = 61_150
LONGEST_WAIT = 60
"""Seconds, as the documentation says."""


def body(count: int) -> Json:
    return {"mechanism": CASE_STUDY, "budget": "web", "groups": {"keys": ["a"], "counts": [count]}}


class Guarded:
    """A service with access keys, and releases that one of them paid for."""

    def __init__(self, url: str, place: str) -> None:
        self.url, self._place = url, place
        with closing(open_ledger(place, SECRET)) as ledger:
            self.owner, self.stranger = (self._key(ledger) for _ in range(2))
            ledger.put_budget("web", Limit(1.0, 1e-4), "", AT)

    def _key(self, ledger: Ledger) -> dict[str, str]:
        key, kept = new_key(frozenset({"release"}), frozenset(), "", AT)
        ledger.keys.add(kept)
        return {"authorization": f"Bearer {key}"}

    def release(self, key: dict[str, str], name: str) -> bytes:
        headers = key | {"idempotency-key": name}
        answer = httpx.post(f"{self.url}/release", json=body(TRUE_COUNT), headers=headers, timeout=PATIENCE)
        assert answer.status_code == 200, answer.text
        return answer.content

    def at_once(
        self, path: str, name: str, guesses: list[tuple[dict[str, str], Json]]
    ) -> tuple[list[httpx.Response], int]:
        """All answers, and how many more attempts that time allowed. All connections open before the first guess."""

        async def scenario() -> tuple[list[httpx.Response], int]:
            async with AsyncExitStack() as stack:
                # A client each: one with hundreds of connections spends most of its time on looking for a free one.
                plain = {"base_url": self.url, "timeout": PATIENCE, "verify": False}
                clients = [await stack.enter_async_context(httpx.AsyncClient(**plain)) for _ in guesses]
                await asyncio.gather(*(http.get("/healthz") for http in clients))
                sent = [
                    http.post(path, json=guess, headers=key | {"idempotency-key": name})
                    for http, (key, guess) in zip(clients, guesses, strict=True)
                ]
                started = time.time()
                answers = await asyncio.gather(*sent)
                return answers, math.ceil((time.time() - started + 1) / SECONDS)

        return asyncio.run(scenario())

    def let_time_pass(self, seconds: float) -> None:
        """Set the recorded times back, which has the same effect as waiting."""
        with closing(connections_of(self._place)) as connections, connections.transaction() as execute:
            execute(f"UPDATE comparisons SET until = until - {seconds}")


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def guarded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """One service for each database, because starting its workers takes longer than all the guesses."""
    folder = tmp_path_factory.mktemp("guesses")
    place = str(folder / "ledger.sqlite3")
    if request.param == "postgres":
        server: Postgres = request.getfixturevalue("postgres")
        place = server.make_database()
    with Service(temporary=folder, ledger=place, ledger_secret=SECRET, workers=str(WORKERS)) as service:
        for _ in range(WORKERS):
            service.wait_for_message("Application startup complete")
        yield Guarded(service.url, place)


def told(answers: list[httpx.Response]) -> Counter[tuple[int, str]]:
    kinds = ("" if answer.is_success else answer.json()["type"].removeprefix("/problems/") for answer in answers)
    return Counter(zip((answer.status_code for answer in answers), kinds, strict=True))


def test_of_100_simultaneous_guesses_at_most_five_are_compared_and_the_owner_is_answered_soon(guarded: Guarded) -> None:
    """No guess has the true count."""
    first = guarded.release(guarded.owner, "altered")
    guesses = [(guarded.owner, body(TRUE_COUNT + 1 + number)) for number in range(100)]

    answers, again = guarded.at_once("/release", "altered", guesses)

    counts = told(answers)
    assert set(counts) == {(422, "key-reused"), (429, "too-many-attempts")}
    assert 1 <= counts[422, "key-reused"] <= 5 + again
    waits = [int(answer.headers["retry-after"]) for answer in answers if answer.status_code == 429]
    assert max(waits) <= LONGEST_WAIT
    guarded.let_time_pass(LONGEST_WAIT)
    assert guarded.release(guarded.owner, "altered") == first


def test_100_guesses_of_another_client_are_not_compared_and_do_not_block_the_owner(guarded: Guarded) -> None:
    """One of the guesses is right."""
    first = guarded.release(guarded.owner, "guessed")
    guesses = [(guarded.stranger, body(TRUE_COUNT - 50 + number)) for number in range(100)]

    answers, _ = guarded.at_once("/release", "guessed", guesses)

    assert set(told(answers)) == {(422, "key-reused")}
    assert len({answer.json()["detail"] for answer in answers}) == 1
    assert guarded.release(guarded.owner, "guessed") == first


def test_guesses_at_a_charge_are_counted_too(guarded: Guarded) -> None:
    guarded.release(guarded.owner, "charged")
    guesses = [(guarded.owner, {"mechanism": CASE_STUDY | {"sigma": 2000 + number}}) for number in range(60)]

    answers, again = guarded.at_once("/budgets/web/charges", "charged", guesses)

    counts = told(answers)
    assert set(counts) == {(422, "key-reused"), (429, "too-many-attempts")}
    assert 1 <= counts[422, "key-reused"] <= 5 + again
