"""Three instances on one PostgreSQL: a budget is spent to the last release while all of them are restarted."""

import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import httpx
import pytest

from tests.app.budgets.test_crashes import make_budget
from tests.app.crashes import SECRET, Notebook, check_ledger, release
from tests.app.process import PATIENCE, Service
from tests.postgres import Postgres, postgres_server

pytestmark = pytest.mark.crash

RESTARTS, CLIENTS, EACH, FITTING = 3, 8, 4, 60
"""In each of three turns, each client asks for four releases: 96 together, of which 60 fit."""


@pytest.fixture
def own_postgres() -> Iterator[Postgres]:
    """A server that the test may restart."""
    with postgres_server() as server:
        yield server


class Instances:
    """Several services with one ledger. A client that cannot reach its own goes to the next."""

    def __init__(self, place: str, temporary: Path, count: int) -> None:
        self._place, self._temporary = place, temporary
        self._running = [self._made() for _ in range(count)]
        for service in self._running:  # they start at the same time
            service.__enter__()

    def restart(self, number: int) -> None:
        """Stop one by SIGTERM, and replace it by a new one on another port."""
        assert self._running[number].stop() == 0
        self._running[number].__exit__(None, None, None)
        service = self._made()
        self._running[number] = service.__enter__()

    def release(self, number: int, key: str) -> httpx.Response:
        """The first answer other than 503, of any instance."""
        while True:
            with suppress(httpx.HTTPError):
                response = release(self._running[number % len(self._running)].url, key)
                if response.status_code != 503:
                    return response
                assert response.json()["type"] in {"/problems/ledger-unavailable", "/problems/busy"}
            number += 1

    def close(self) -> None:
        for service in self._running:
            service.__exit__(None, None, None)

    def _made(self) -> Service:
        return Service(temporary=self._temporary, ledger=self._place, ledger_secret=SECRET)


def wait_for_total(notebook: Notebook, answers: int) -> None:
    with notebook.noted:
        assert notebook.noted.wait_for(lambda: sum(notebook.statuses.values()) >= answers, PATIENCE)


def test_a_budget_is_spent_to_the_last_release_while_every_instance_and_postgres_restart(
    own_postgres: Postgres, tmp_path: Path
) -> None:
    """Exactly the fitting number succeeds, at whatever instance a request is repeated; no 5xx other than 503."""
    place, notebook = own_postgres.make_database(), Notebook()
    make_budget(place, FITTING)
    instances = Instances(place, tmp_path, RESTARTS)
    refused: set[str] = set()
    restarted = [threading.Event() for _ in range(RESTARTS)]

    def run(client: int) -> None:
        for turn in range(RESTARTS):
            # New releases, and then the same again, each at another instance.
            for number in range(2 * EACH):
                key = f"{client}-{turn}-{number % EACH}"
                response = instances.release(client + number, key)
                if response.status_code == 409:
                    refused.add(key)
                notebook.note(key, response)
            assert restarted[turn].wait(PATIENCE)

    threads = [threading.Thread(target=run, args=(client,)) for client in range(CLIENTS)]
    with closing(instances):
        for thread in threads:
            thread.start()
        for number in range(RESTARTS):
            wait_for_total(notebook, number * CLIENTS * 2 * EACH + CLIENTS)  # some of this turn, all of those before
            if number == 1:
                own_postgres.stop("immediate")  # as in a crash
                own_postgres.start()
            instances.restart(number)
            restarted[number].set()
        for thread in threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()

    assert set(notebook.statuses) == {200, 409}
    assert notebook.problems == {"/problems/budget-exceeded"}
    assert check_ledger(place, notebook) == len(notebook.answers) == FITTING
    assert len(refused) == CLIENTS * RESTARTS * EACH - FITTING
    assert not refused & notebook.answers.keys()
