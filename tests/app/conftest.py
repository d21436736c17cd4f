"""One service for all tests that do not change it. Tests that count or configure make their own."""

import pytest

from tests.app.client import Client


@pytest.fixture(scope="session")
def client() -> Client:
    return Client()
