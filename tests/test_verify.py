"""`python -m app.verify`, as `make verify-ledger` runs it."""

import sqlite3
import subprocess
import sys
from pathlib import Path

from app.accounting.limits import Limit
from app.ledger.opening import open_ledger
from tests.api.process import PATIENCE, ROOT, environment
from tests.ledger.examples import AT, charge, paid


def verify(place: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "app.verify"]
    settings = environment(ledger=str(place))
    return subprocess.run(
        command, cwd=ROOT, env=settings, timeout=PATIENCE, capture_output=True, text=True, check=False
    )


def test_every_budget_is_checked_and_a_fault_is_an_exit_code(tmp_path: Path) -> None:
    place = tmp_path / "ledger.sqlite3"
    ledger = open_ledger(str(place), "")
    for name in ("ads", "web"):
        ledger.put_budget(name, Limit(1.0, 1e-4), "", AT)
    charge(ledger, paid("web"))
    heads = {budget.id: budget.head for budget in ledger.budgets()}
    ledger.close()

    clean = verify(place)
    with sqlite3.connect(place) as connection:
        connection.execute("UPDATE entries SET at = '2020-01-01T00:00:00Z' WHERE budget = 'web' AND number = 2")
    connection.close()
    damaged = verify(place)

    assert (clean.returncode, clean.stderr) == (0, "")
    assert clean.stdout.splitlines() == [
        f"ads: intact; 1 entries; head {heads['ads']}",
        f"web: intact; 2 entries; head {heads['web']}",
    ]
    assert damaged.returncode == 1
    assert damaged.stdout.splitlines()[1].startswith("web: FAULT: entry 2 does not have the hash")


def test_a_ledger_that_cannot_be_opened_is_another_exit_code(tmp_path: Path) -> None:
    finished = verify(tmp_path / "missing" / "ledger.sqlite3")

    assert (finished.returncode, finished.stdout) == (2, "")
    assert len(finished.stderr.splitlines()) == 1
