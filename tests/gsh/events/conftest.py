"""One service for all tests of publishing. Each test has a budget of its own."""

from tests.gsh.client.conftest import budget, running, service

__all__ = ["budget", "running", "service"]
