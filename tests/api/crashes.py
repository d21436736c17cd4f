"""Clients that record their answers, and the check of the ledger afterwards."""

import json
import random
import threading
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field

import httpx

from app.ledger.opening import open_ledger

__all__ = ["Notebook", "Swarm", "check_ledger"]

SECRET = "thirty-two characters at least, or more"
MECHANISM = {"c_u": 1, "tau": 1, "tau_star": 2000.0, "sigma": 200.0}
BODY = {"mechanism": MECHANISM, "budget": "web", "groups": {"keys": ["a", "b"], "counts": [100000, 200000]}}


@dataclass
class Notebook:
    """Every answer that any client saw, by key, and the other statuses."""

    answers: dict[str, set[bytes]] = field(default_factory=lambda: defaultdict(set))
    statuses: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    problems: set[str] = field(default_factory=set)
    noted: threading.Condition = field(default_factory=threading.Condition)

    def wait_for(self, more: int) -> None:
        """Until so many more answers are noted, of any status."""
        with self.noted:
            goal = sum(self.statuses.values()) + more
            assert self.noted.wait_for(lambda: sum(self.statuses.values()) >= goal, timeout=60)

    def wait_for_status(self, status: int) -> None:
        """Until another answer of this status is noted."""
        with self.noted:
            goal = self.statuses[status] + 1
            assert self.noted.wait_for(lambda: self.statuses[status] >= goal, timeout=60)

    def note(self, key: str, response: httpx.Response) -> None:
        with self.noted:
            self.noted.notify_all()
            self.statuses[response.status_code] += 1
            if response.status_code == 200:
                self.answers[key].add(response.content)
            else:
                self.problems.add(response.json()["type"])


class Swarm:
    """Threads that each release with keys of their own, and retry the same request until it is answered."""

    def __init__(self, url: str, clients: int, notebook: Notebook) -> None:
        self._url = url
        self._notebook = notebook
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(number,), daemon=True) for number in range(clients)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Each client ends with the request that it is trying, answered."""
        self._stop.set()
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive()

    def _run(self, number: int) -> None:
        lots = random.Random(number)
        turn = 0
        with httpx.Client(verify=False) as http:
            while not self._stop.is_set():
                key = f"{number}-{turn}"
                turn += 1
                self._released(key, http)
                if lots.random() < 0.3:  # and again, though it was answered
                    self._released(key, http)

    def _released(self, key: str, http: httpx.Client) -> None:
        """Until there is an answer: a connection may be refused, or break at any byte."""
        while True:
            with suppress(httpx.HTTPError):
                response = release(self._url, key, http)
                self._notebook.note(key, response)
                if response.status_code in {200, 409}:
                    return


def release(url: str, key: str, http: httpx.Client | None = None) -> httpx.Response:
    headers = {"idempotency-key": key, "content-type": "application/json"}
    content = json.dumps(BODY)
    if http is None:
        return httpx.post(f"{url}/release", content=content, headers=headers, timeout=30, verify=False)
    return http.post(f"{url}/release", content=content, headers=headers, timeout=30)


def check_ledger(place: str, notebook: Notebook) -> int:
    """No answer was seen without its charge, none was charged twice, each is the stored one; the number of charges."""
    ledger = open_ledger(place, SECRET)
    try:
        budget, fault = ledger.verify("web")
        assert fault is None
        charges = {
            entry.details["key"]: entry.details
            for entry in ledger.history("web", None, 10**6)
            if entry.kind == "charge"
        }
        assert len(charges) == budget.spent.releases
        with ledger._connections.reading() as execute:
            stored = {
                key: bytes(content)
                for key, content in execute("SELECT key, content FROM entries WHERE kind = 'charge'")
            }
        assert stored.keys() == charges.keys()
        for key, seen in notebook.answers.items():
            assert seen == {stored[key]}, key
        return len(charges)
    finally:
        ledger.close()
