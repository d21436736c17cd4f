"""Tests that are alone are so: nobody is in the room with them, and nobody passes them at the gate."""

import fcntl
import threading
from pathlib import Path

import pytest

from tests.turns import turn

PATIENCE = 60


@pytest.fixture
def door(tmp_path: Path) -> dict[str, Path]:
    paths = {"gate": tmp_path / "gate", "room": tmp_path / "room"}
    for path in paths.values():
        path.touch()
    return paths


class Test:
    """A thread that takes its turn, and stays until it is told to leave. A lock belongs to an open file."""

    __test__ = False

    def __init__(self, door: dict[str, Path], alone: bool) -> None:
        self.entered, self._leave = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, args=(door, alone), daemon=True)
        self._thread.start()

    def _run(self, door: dict[str, Path], alone: bool) -> None:
        with turn(alone, **door):
            self.entered.set()
            self._leave.wait(PATIENCE)

    def leave(self) -> None:
        self._leave.set()
        self._thread.join(PATIENCE)


def test_ordinary_tests_run_together(door: dict[str, Path]) -> None:
    together = [Test(door, alone=False) for _ in range(3)]

    assert all(each.entered.wait(PATIENCE) for each in together)
    for each in together:
        each.leave()


def test_no_test_runs_at_the_same_time_as_one_marked_alone(door: dict[str, Path]) -> None:
    """Many of both kinds, over and over; whoever is inside writes down whom it met."""
    inside: list[bool] = []
    met: list[tuple[bool, list[bool]]] = []
    writing = threading.Lock()

    def run(alone: bool) -> None:
        for _ in range(50):
            with turn(alone, **door):
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


def test_a_waiting_alone_test_runs_before_later_tests(door: dict[str, Path]) -> None:
    """Else a stream of ordinary tests would keep it waiting to the end."""
    first = Test(door, alone=False)
    assert first.entered.wait(PATIENCE)
    waiting = Test(door, alone=True)
    while is_open(door["gate"]):
        pass
    later = Test(door, alone=False)

    assert not waiting.entered.is_set()
    first.leave()
    assert waiting.entered.wait(PATIENCE)
    assert not later.entered.is_set()
    waiting.leave()
    assert later.entered.wait(PATIENCE)
    later.leave()


def is_open(gate: Path) -> bool:
    with gate.open() as tried:
        try:
            fcntl.flock(tried, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True
