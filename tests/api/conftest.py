"""One service for all tests that leave nothing behind; those that count or configure make their own."""

import pytest

from tests.api.client import Client


@pytest.fixture(scope="session")
def client() -> Client:
    return Client()
