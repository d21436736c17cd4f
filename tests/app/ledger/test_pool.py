"""Readers do not wait for writers, and the ledger is opened once."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.ledger import pool as module
from app.ledger.opening import connections_of, open_ledger
from app.ledger.pool import LedgerPool
from app.ledger.state import Budget, HistoryFault
from app.ledger.store import Ledger
from app.places import Places
from tests.app.budgets.test_budgets import LIMIT, SECRET, Bank
from tests.app.client import CASE_STUDY, Json
from tests.app.process import PATIENCE

RELEASE: Json = {"mechanism": CASE_STUDY, "groups": {"keys": ["a"], "counts": [70000]}, "budget": "web"}
READINGS = [
    ("GET", "/budgets", None),
    ("GET", "/budgets/web", None),
    ("GET", "/budgets/web/charges", None),
    ("GET", "/budgets/web/verify", None),
    ("POST", "/budgets/web/preview", {"mechanism": CASE_STUDY}),
    ("POST", "/calibrate", {"mechanism": {"c_u": 3, "tau": 1}, "budget": "web"}),
]


class Announced:
    """A method of the ledger that reports its call, and then runs as usual."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        self._called = asyncio.Event()
        loop, original = asyncio.get_running_loop(), getattr(Ledger, name)

        def announce(ledger: Ledger, *arguments: Any) -> Any:
            loop.call_soon_threadsafe(self._called.set)
            return original(ledger, *arguments)

        monkeypatch.setattr(Ledger, name, announce)

    async def wait(self) -> None:
        await asyncio.wait_for(self._called.wait(), PATIENCE)


@pytest.fixture
def bank(ledger_url: str) -> Iterator[Bank]:
    made = Bank(ledger_url)
    paid = made.request("POST", "/release", json=RELEASE, headers={"idempotency-key": "before"})
    assert paid.status_code == 200
    yield made
    made.app.state.services.ledger_pool.close()
    made.app.state.services.close_pools()


def test_readers_are_answered_while_a_charge_waits_for_a_lock(
    bank: Bank, ledger_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another connection holds the lock, and every thread for charges waits for it."""
    threads = bank.app.state.services.ledger_pool._connections.threads

    async def scenario(http: httpx.AsyncClient) -> tuple[list[int], bool, list[int]]:
        announced = Announced(monkeypatch, "charge")
        stranger = connections_of(ledger_url)
        with stranger.transaction() as execute:
            execute(stranger.statements.locked_budget, ("web",))
            body = {"mechanism": {"c_u": 1, "sigma": 50}}
            charges = [
                asyncio.create_task(
                    http.post("/budgets/web/charges", json=body, headers={"idempotency-key": str(number)})
                )
                for number in range(threads)
            ]
            await announced.wait()
            statuses = [
                (await http.request(method, path, json=body, headers={"idempotency-key": "before"})).status_code
                for method, path, body in READINGS
            ]
            waited = not any(charge.done() for charge in charges)
        stranger.close()
        return statuses, waited, [(await charge).status_code for charge in charges]

    statuses, waited, charged = bank.together(scenario)

    assert statuses == [200] * len(READINGS)
    assert waited
    assert charged == [200] * threads


def test_a_charge_and_a_reader_do_not_wait_for_verifications(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    """The verifications run until the test ends them."""
    go_on = threading.Event()

    def slow(_ledger: Ledger, name: str) -> tuple[Budget, HistoryFault | None]:
        assert go_on.wait(PATIENCE)
        return Budget(name, 1.0, 1e-4, ""), None

    async def scenario(http: httpx.AsyncClient) -> list[int]:
        monkeypatch.setattr(Ledger, "verify", slow)
        audits = [asyncio.create_task(http.get("/budgets/web/verify")) for _ in range(5)]
        audit_threads = bank.app.state.services.ledger_pool._auditing
        async with asyncio.timeout(PATIENCE):
            while audit_threads._places._free > module._MOST_WAITING - len(audits):
                await asyncio.sleep(0)  # until all of them run or wait
        try:
            charged = await http.post(
                "/budgets/web/charges", json={"mechanism": CASE_STUDY}, headers={"idempotency-key": "1"}
            )
            read = await http.get("/budgets/web")
            assert not any(audit.done() for audit in audits)
        finally:
            go_on.set()
        return [charged.status_code, read.status_code, *[(await audit).status_code for audit in audits]]

    assert bank.together(scenario) == [200] * 7


def test_simultaneous_calls_open_the_ledger_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def counting(place: str, *arguments: Any) -> Ledger:
        opened.append(place)
        return open_ledger(place, *arguments)

    monkeypatch.setattr(module, "open_ledger", counting)
    ledger_pool = LedgerPool(str(tmp_path / "ledger.sqlite3"), SECRET)

    async def ask_all() -> list[list[Budget]]:
        ways = (ledger_pool.ask, ledger_pool.read, ledger_pool.audit) * 5
        return await asyncio.gather(*(way(lambda ledger: ledger.budgets()) for way in ways))

    assert asyncio.run(ask_all()) == [[]] * 15
    assert len(opened) == 1
    ledger_pool.close()


def test_readers_are_served_while_the_queue_of_writers_is_full(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bank.app.state.services.ledger_pool._writing, "_places", Places(0))

    assert bank.put("web", LIMIT).status_code == 503
    assert bank.get("/budgets/web").status_code == 200
