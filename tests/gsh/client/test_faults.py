"""Whatever breaks on the way to the service: a release with ``once=`` is charged once, any other is sent once."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gsh
from gsh.client import Busy, Release, Retries, Unreachable
from tests.app.process import Service
from tests.gsh.client.conftest import AT_ONCE
from tests.gsh.client.flaky import FAULTS, Fault, Flaky
from tests.gsh.client.modes import MODES, Mode, outcome

MECHANISM = gsh.Mechanism(c_u=2, tau=1, tau_star=30, sigma=4)
TABLE = pa.table({"url": ["b.org", "a.org", "c.org"], "users": [812, 440, 3]})
LONG = pa.table({"url": np.arange(200_000), "users": np.full(200_000, 100)})
"""More than is sent as a whole: 3.2 MB, in chunks."""

Charged = Callable[[Any, str], Any]
CHARGED: dict[str, Charged] = {
    "table": lambda service, name: service.release(TABLE, MECHANISM, users="users", keys="url", budget=name, once=name),
    "groups": lambda service, name: service.release(
        MECHANISM, keys=["a", "b"], counts=[500, 600], budget=name, once=name
    ),
    "charge": lambda service, name: service.budgets.charge(name, MECHANISM, once=name),
    "open": lambda service, name: service.releases.open(MECHANISM, budget=name, once=name),
}


def charges(service: gsh.Client, budget: str) -> list[str]:
    return [each.details.idempotency_key for each in service.budgets.history(budget) if each.kind == "charge"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("kind", CHARGED)
def test_a_call_with_once_is_charged_once(
    running: Service, service: gsh.Client, budget: str, kind: str, fault: Fault, mode: Mode
) -> None:
    with Flaky(running.url, [fault]) as proxy:
        found = outcome(mode, proxy.url, lambda client: CHARGED[kind](client, budget), AT_ONCE)

    assert proxy.faults == [fault]
    assert len(proxy.requests) == 2
    assert charges(service, budget) == [budget]
    # The first request was charged if the service has seen all of it.
    assert found.is_replayed == (fault in {"unread", "half", "busy late"})


def test_all_faults_in_a_row_make_one_release(running: Service, service: gsh.Client, budget: str) -> None:
    with Flaky(running.url, FAULTS) as proxy, gsh.Client(proxy.url, retries=AT_ONCE) as client:
        found = CHARGED["table"](client, budget)

    assert proxy.faults == list(FAULTS)
    assert charges(service, budget) == [budget]
    assert found.table.equals(service.releases[budget].table, check_metadata=True)


def sources(folder: Path) -> dict[str, Any]:
    """Tables that can be read again, and streams that cannot."""
    pq.write_table(LONG, folder / "table.parquet")
    return {
        "table": LONG,
        "path": folder / "table.parquet",
        "stream": LONG.to_reader(max_chunksize=10_000),
        "polars": pytest.importorskip("polars").from_arrow(LONG),
    }


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("source", ["table", "path", "stream", "polars"])
def test_a_long_table_is_sent_again_from_its_beginning(
    running: Service, service: gsh.Client, budget: str, tmp_path: Path, source: str, mode: Mode
) -> None:
    """A stream too: with ``once=`` it is kept in memory. The last request has the content of all rows."""
    table = sources(tmp_path)[source]
    with Flaky(running.url, ["uploading", "refused"]) as proxy:
        found: Release = outcome(
            mode,
            proxy.url,
            lambda client: client.release(table, MECHANISM, users="users", keys=["url"], budget=budget, once=budget),
            AT_ONCE,
        )

    assert proxy.faults == ["uploading", "refused"]
    assert charges(service, budget) == [budget]
    again = service.release(LONG, MECHANISM, users="users", keys=["url"], budget=budget, once=budget)
    assert again.is_replayed
    assert found.table.equals(again.table, check_metadata=True)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("kind", ["table", "groups"])
def test_a_release_without_once_is_never_sent_twice(running: Service, kind: str, fault: Fault, mode: Mode) -> None:
    calls: dict[str, Callable[[Any], Any]] = {
        "table": lambda client: client.release(TABLE, MECHANISM, users="users", keys=["url"]),
        "groups": lambda client: client.release(MECHANISM, keys=["a"], counts=[500]),
    }
    with Flaky(running.url, [fault]) as proxy, pytest.raises((Unreachable, Busy)):
        outcome(mode, proxy.url, calls[kind], AT_ONCE)

    assert len(proxy.requests) == 1


@pytest.mark.parametrize("mode", MODES)
def test_a_calibration_is_one_request(running: Service, mode: Mode) -> None:
    """Its answer has the parts of δ too."""
    with Flaky(running.url, []) as proxy:
        found = outcome(mode, proxy.url, PURE["calibrate"], AT_ONCE)

    assert len(proxy.requests) == 1
    assert found == gsh.calibrate(c_u=2, epsilon=1, delta=1e-6)


PURE: dict[str, Callable[[Any], Any]] = {
    "exact": lambda client: client.exact(MECHANISM, epsilon=1.0),
    "compare": lambda client: client.compare(c_u=2, epsilon=1, delta=1e-6),
    "calibrate": lambda client: client.calibrate(c_u=2, epsilon=1, delta=1e-6),
    "version": lambda client: client.version(),
    "put": lambda client: client.budgets.put("again", epsilon=1, delta=1e-6),
    "list": lambda client: client.budgets.list(),
    "dry run": lambda client: client.dry_run(TABLE, MECHANISM, users="users", keys=["url"]),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("kind", "fault"), list(zip(PURE, itertools.cycle(FAULTS))))
def test_a_call_that_changes_nothing_is_sent_again(running: Service, kind: str, fault: Fault, mode: Mode) -> None:
    with Flaky(running.url, [fault]) as proxy:
        found = outcome(mode, proxy.url, PURE[kind], AT_ONCE)

    assert proxy.faults == [fault]
    assert found or kind == "list"


@pytest.mark.parametrize("mode", MODES)
def test_a_service_that_never_answers_is_given_up(running: Service, mode: Mode) -> None:
    """After as many attempts as allowed, each as long as the timeout allows."""
    timeout = httpx.Timeout(60, read=0.02)
    with Flaky(running.url, ["silent"] * 9) as proxy:
        with pytest.raises(Unreachable, match="longer than the timeout"):
            outcome(mode, proxy.url, lambda client: client.version(), Retries(most=2, first=0.0), timeout=timeout)
        proxy.wait_for(3)

    assert len(proxy.requests) == 3


@pytest.mark.parametrize("mode", MODES)
def test_a_service_that_is_not_there_is_named_by_its_reason(mode: Mode) -> None:
    with Flaky("http://127.0.0.1:9") as proxy:
        closed = proxy.url
    with pytest.raises(Unreachable, match=r"the connection could not be made: .*(refused|failed)"):
        outcome(mode, closed, lambda client: client.version(), Retries(most=1, first=0.0))


def test_a_list_is_read_page_by_page(running: Service, service: gsh.Client, budget: str) -> None:
    """And only as far as it is read."""
    for number in range(103):
        service.budgets.charge(budget, MECHANISM, once=f"{budget}-{number}")
    with Flaky(running.url) as proxy, gsh.Client(proxy.url, retries=AT_ONCE) as client:
        listed = client.releases.list(budget=budget)
        assert proxy.requests == []
        first = [next(listed).key for _ in range(100)]
        assert len(proxy.requests) == 1
        rest = [each.key for each in listed]
        assert len(proxy.requests) == 2

    assert sorted(first + rest) == sorted(f"{budget}-{number}" for number in range(103))
    listed_async = outcome("async", running.url, lambda client: client.releases.list(budget=budget), AT_ONCE)
    assert [each.key for each in listed_async] == first + rest
    assert len(list(service.budgets.history(budget))) == 104
