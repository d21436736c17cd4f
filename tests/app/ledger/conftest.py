"""A ledger on each database, new for every test."""

from collections.abc import Iterator

import pytest

from app.ledger.opening import open_ledger
from app.ledger.store import Ledger


@pytest.fixture
def ledger(ledger_url: str) -> Iterator[Ledger]:
    opened = open_ledger(ledger_url, "a secret for tests")
    yield opened
    opened.close()
