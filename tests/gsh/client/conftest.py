"""One service for all tests of the client. Each test has a budget of its own."""

import re
from collections.abc import Iterator

import pytest

import gsh
from gsh.client import Retries
from tests.app.process import Service

AT_ONCE = Retries(most=6, first=0.0)
"""Retries without waiting."""


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with Service(temporary=tmp_path_factory.mktemp("client")) as service:
        yield service


@pytest.fixture(scope="session")
def service(running: Service) -> Iterator[gsh.Client]:
    with gsh.Client(running.url, retries=AT_ONCE) as client:
        yield client


@pytest.fixture
def budget(service: gsh.Client, request: pytest.FixtureRequest) -> str:
    """The name of a budget that is large enough. It also names releases."""
    module = request.node.nodeid.partition("::")[0].rpartition("/")[2].removeprefix("test_").removesuffix(".py")
    name = re.sub(r"\W+", "-", f"{module}-{request.node.name}").strip("-")
    name = f"{name[:30]}{name[30:][-30:]}".strip("-_").lower()  # two modules may have a test of one name
    service.budgets.put(name, epsilon=1000, delta=0.5)
    return name
