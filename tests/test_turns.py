"""A test marked alone runs with no other test."""

import fcntl
import threading
from pathlib import Path

import pytest

from tests.turns import turn

PATIENCE = 60


@pytest.fixture
def locks(tmp_path: Path) -> dict[str, Path]:
    paths = {"entry": tmp_path / "entry", "running": tmp_path / "running"}
    for path in paths.values():
        path.touch()
    return paths


class Test:
    """A thread that runs like a test until ``leave``. Threads can compete: a lock belongs to an open file."""

    __test__ = False

    def __init__(self, locks: dict[str, Path], alone: bool) -> None:
        self.entered, self._leave = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, args=(locks, alone), daemon=True)
        self._thread.start()

    def _run(self, locks: dict[str, Path], alone: bool) -> None:
        with turn(alone, **locks):
            self.entered.set()
            self._leave.wait(PATIENCE)

    def leave(self) -> None:
        self._leave.set()
        self._thread.join(PATIENCE)


def test_ordinary_tests_run_together(locks: dict[str, Path]) -> None:
    together = [Test(locks, alone=False) for _ in range(3)]

    assert all(each.entered.wait(PATIENCE) for each in together)
    for each in together:
        each.leave()


def test_no_test_runs_at_the_same_time_as_one_marked_alone(locks: dict[str, Path]) -> None:
    """Many tests of both kinds run repeatedly. Each records the tests that run at the same time."""
    inside: list[bool] = []
    met: list[tuple[bool, list[bool]]] = []
    writing = threading.Lock()

    def run(alone: bool) -> None:
        for _ in range(50):
            with turn(alone, **locks):
                with writing:
                    inside.append(alone)
                    met.append((alone, list(inside)))
                with writing:
                    inside.remove(alone)

    threads = [threading.Thread(target=run, args=(number % 3 == 0,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)

    assert len(met) == 300
    assert [others for alone, others in met if (alone or True in others) and len(others) > 1] == []


def test_a_waiting_alone_test_runs_before_later_tests(locks: dict[str, Path]) -> None:
    """Otherwise it would wait until all ordinary tests are done."""
    first = Test(locks, alone=False)
    assert first.entered.wait(PATIENCE)
    waiting = Test(locks, alone=True)
    while is_free(locks["entry"]):
        pass
    later = Test(locks, alone=False)

    assert not waiting.entered.is_set()
    first.leave()
    assert waiting.entered.wait(PATIENCE)
    assert not later.entered.is_set()
    waiting.leave()
    assert later.entered.wait(PATIENCE)
    later.leave()


def is_free(lock: Path) -> bool:
    with lock.open() as tried:
        try:
            fcntl.flock(tried, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True
