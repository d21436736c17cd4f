"""A service with a SQLite ledger of its own, for tests that do not compare databases."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.app.budgets.test_budgets import Bank


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[Bank]:
    made = Bank(str(tmp_path / "ledger.sqlite3"))
    yield made
    made.app.state.services.ledger_pool.close()
    made.app.state.services.close_pools()
