"""Races for one release made elsewhere, over HTTP: one charge, one seed, one digest, and no seed after the commit."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from time import perf_counter
from typing import NamedTuple

import httpx
import pytest

from tests.app.budgets.test_crashes import Rebooted, make_budget
from tests.app.crashes import Notebook, check_ledger, commit, open_release
from tests.app.process import PATIENCE

pytestmark = pytest.mark.crash

RACERS, ROUNDS = 8, 12


@pytest.fixture
def four_workers(ledger_url: str) -> Iterator[Rebooted]:
    make_budget(ledger_url)
    with closing(Rebooted(ledger_url, workers=4)) as service:
        yield service


class Told(NamedTuple):
    """An answer, and when it was asked for and complete."""

    response: httpx.Response
    asked: float
    answered: float

    @property
    def seed(self) -> str | None:
        seed: str | None = self.response.json().get("seed")
        return seed


class Race:
    """Clients that begin at the same instant, over connections that are open already."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._gate = threading.Barrier(RACERS, timeout=PATIENCE)
        self._lock = threading.Lock()
        self.opens: dict[str, list[Told]] = {}
        self.commits: dict[str, list[Told]] = {}
        threads = [threading.Thread(target=self._run, args=(number,)) for number in range(RACERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()

    def _run(self, number: int) -> None:
        with httpx.Client(verify=False, timeout=PATIENCE) as http:
            for turn in range(ROUNDS):
                key = f"race-{turn}"
                # In every second round the commits race with the first opens, and may come before them.
                together = turn % 2 == 1
                self._gate.wait()
                if not together or number % 2:
                    self._note(self.opens, key, lambda key=key: open_release(self._url, key, http))
                if not together:
                    self._gate.wait()
                for _ in range(3):
                    if number % 2:
                        self._note(self.opens, key, lambda key=key: open_release(self._url, key, http))
                    else:
                        self._note(self.commits, key, lambda key=key: commit(self._url, key, number % 4, http))

    def _note(self, notes: dict[str, list[Told]], key: str, ask: Callable[[], httpx.Response]) -> None:
        asked = perf_counter()
        response = ask()
        with self._lock:
            notes.setdefault(key, []).append(Told(response, asked, perf_counter()))


def test_racing_requests_have_one_charge_one_seed_and_one_winner(four_workers: Rebooted, ledger_url: str) -> None:
    race, notebook = Race(four_workers.url), Notebook()

    late = 0
    for turn in range(ROUNDS):
        key = f"race-{turn}"
        opens = race.opens[key]
        statuses = sorted(told.response.status_code for told in opens)
        assert statuses == [200] * (len(opens) - 1) + [201]
        replays = [told for told in opens if told.response.headers.get("idempotency-replayed") == "true"]
        assert len(replays) == len(opens) - 1
        commits = race.commits[key]
        won = [told for told in commits if told.response.status_code == 200]
        # A commit may come between the charge of the first open and its answer: then nobody gets the seed.
        fewest = 0 if turn % 2 and won else 1
        assert fewest <= len({told.seed for told in opens} - {None}) <= 1
        early = [told for told in commits if told.response.status_code == 404]
        lost = [told for told in commits if told not in won and told not in early]
        assert len({told.response.text for told in won}) <= 1
        for told in won:
            assert told.response.json()["committed"]["digest"] == json.loads(told.response.request.content)["digest"]
        assert {told.response.json()["type"] for told in lost} <= {"/problems/already-committed"}
        first = min((told.answered for told in won), default=float("inf"))
        after = [told for told in opens if told.asked > first]
        assert not any(told.seed for told in after)
        late += len(after)
        for told in opens:
            shown = told.response.json()
            assert (shown["state"], "seed" in shown) in {("open", True), ("committed", False)}
            notebook.note(key, told.response, "open")
        for told in won:
            notebook.note(key, told.response, "commit")
    assert late > 0
    assert check_ledger(ledger_url, notebook) == ROUNDS
    assert len(notebook.commits) >= ROUNDS / 2
