"""A client of httpx: its settings, its access key, threads, budgets and releases made elsewhere."""

import asyncio
import hashlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pytest

import gsh
from gsh.client import (
    AccessKeyRequired,
    AlreadyCommitted,
    Certificate,
    IdempotencyKeyMissing,
    IdempotencyKeyReused,
    LimitExceeded,
    NotAllowed,
    NotFound,
    Provenance,
    UnexpectedAnswer,
    UnknownRelease,
    Unreachable,
)
from tests.app.process import ROOT, Service, environment

pytestmark = pytest.mark.slow

MECHANISM = gsh.Mechanism(c_u=2, tau=1, tau_star=30, sigma=4)
TABLE = pa.table({"url": ["b.org", "a.org"], "users": [812, 440]})


def test_url_and_key_come_from_the_environment(running: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GSH_URL", running.url)
    monkeypatch.setenv("GSH_KEY", "of-the-environment")
    sent: list[httpx.Request] = []
    with gsh.Client(event_hooks={"request": [sent.append]}) as client:
        assert client.version().service == gsh.__version__
    with gsh.Client(key="given", event_hooks={"request": [sent.append]}) as client:
        client.check()

    assert [each.headers["authorization"] for each in sent] == ["Bearer of-the-environment", "Bearer given"]


@pytest.mark.parametrize("url", ["", "127.0.0.1:8000", "ftp://a.org", "http://", "https://a.org:port"])
def test_a_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(gsh.InvalidParameter, match=r"^url: must be"):
        gsh.Client(url)


def test_its_repr_shows_the_url_and_no_secret() -> None:
    with gsh.Client("https://me:word@a.org/private") as client:
        assert repr(client) == "gsh.Client('https://a.org/private/')"
    assert repr(gsh.AsyncClient("http://a.org", key="secret")) == "gsh.AsyncClient('http://a.org')"


def test_a_path_prefix_is_kept(running: Service) -> None:
    sent: list[httpx.Request] = []
    with gsh.Client(f"{running.url}/prefix", event_hooks={"request": [sent.append]}) as client:
        with pytest.raises(NotFound):
            client.budgets["a/b?c"]
        assert sent[-1].url.raw_path == b"/prefix/budgets/a%2Fb%3Fc"


def test_settings_of_httpx_are_passed_on(running: Service) -> None:
    """A proxy that is not there, a transport of one's own, and a redirect that is not followed."""
    with gsh.Client("http://a.org", retries=0, proxy="http://127.0.0.1:9") as client, pytest.raises(Unreachable):
        client.version()
    moved = httpx.MockTransport(lambda _: httpx.Response(302, headers={"Location": running.url}))
    with gsh.Client("http://a.org", transport=moved, timeout=5) as client:
        with pytest.raises(UnexpectedAnswer, match="status 302"):
            client.version()
        assert client._http.timeout == httpx.Timeout(5)


def test_a_page_in_place_of_json_is_an_unexpected_answer() -> None:
    page = httpx.MockTransport(lambda _: httpx.Response(200, html="<p>Log in</p>"))
    with gsh.Client("http://a.org", transport=page) as client:
        for call in (client.version, lambda: client.release(TABLE, MECHANISM, users="users", keys=["url"])):
            with pytest.raises(UnexpectedAnswer, match="status 200"):
                call()


def test_a_closed_client_is_closed(running: Service) -> None:
    with gsh.Client(running.url) as client:
        client.check()
    with pytest.raises(RuntimeError, match="closed"):
        client.check()


def test_threads_share_a_client(service: gsh.Client, budget: str) -> None:
    """Twelve threads make the same release at once. It is one release."""
    begin = threading.Barrier(12)

    def make(_number: int) -> pa.Table:
        begin.wait()
        return service.release(TABLE, MECHANISM, users="users", keys=["url"], budget=budget, once=budget).table

    with ThreadPoolExecutor(12) as pool:
        first, *others = pool.map(make, range(12))

    assert all(other.equals(first, check_metadata=True) for other in others)
    assert service.budgets[budget].spent.releases == 1


def test_budgets(service: gsh.Client) -> None:
    made = service.budgets.put(
        "a-budget", epsilon=1, delta=1e-4, description="page views", period="week", mechanism=MECHANISM
    )
    assert (made.limit.epsilon, made.period, made.privacy_unit, made.entries) == (1, "week", "user", 1)
    assert service.budgets["a-budget"] == made
    raised = service.budgets.put("a-budget", epsilon=8, delta=1e-4, reason="the yearly review")
    assert (raised.limit.epsilon, raised.entries) == (8, 2)

    found = service.budgets.calibrate("a-budget", c_u=2, releases=4)
    assert (found.releases, found.solved) == (4, ("sigma", "tau_star"))
    assert service.budgets.get("a-budget", found.mechanism).more == 4
    assert service.budgets.preview("a-budget", [found.mechanism] * 5).fitting == 4
    assert service.budgets.preview("a-budget", found.mechanism).fits

    charge = service.budgets.charge("a-budget", found.mechanism, once="a-charge", labels=["weekly"])
    again = service.budgets.charge("a-budget", found.mechanism, once="a-charge")
    assert (charge.is_replayed, again.is_replayed, charge.number) == (False, True, again.number)
    assert service.budgets.charge("a-budget", {"c_u": 1, "sigma": 500}, once="plain").hazard == 0
    assert [each.kind for each in service.budgets.history("a-budget")] == ["charge", "charge", "changed", "created"]
    assert next(service.budgets.history("a-budget")).details.release.sigma == 500
    assert service.budgets.verify("a-budget").intact
    assert "a-budget" in [each.id for each in service.budgets]


def test_another_engine_is_charged_for_the_mechanism_that_costs_as_much(service: gsh.Client, budget: str) -> None:
    presto = gsh.engine(preset="presto", scale=200, c_u=10, threshold=1200, epsilon=1)
    laplace = gsh.engine(noise="laplace", scale=20, c_u=10, threshold=1200, epsilon=1)

    assert service.budgets.preview(budget, presto) == service.budgets.preview(budget, presto.mechanism)
    charge = service.budgets.charge(budget, presto, once=f"{budget}-presto")
    assert (charge.mu_squared, charge.hazard) == (presto.mechanism.mu_squared, presto.mechanism.hazard)
    with pytest.raises(gsh.InvalidParameter, match=r"^mechanism: must be of Gaussian .* laplace noise does not"):
        service.budgets.charge(budget, laplace, once=f"{budget}-laplace")
    assert service.budgets[budget].spent.releases == 1


def test_releases_made_elsewhere(service: gsh.Client, budget: str) -> None:
    provenance = Provenance(enforced_by="gsh.spark", plan_digest="ab" * 32)
    opened = service.releases.open(MECHANISM, budget=budget, once=budget, epsilon=1, provenance=provenance)
    again = service.releases.open(MECHANISM, budget=budget, once=budget, epsilon=1)
    assert opened.seed is not None
    assert len(opened.seed) == 32
    assert (again.seed, again.is_replayed) == (opened.seed, True)
    assert opened.certificate.bounds.enforced_by == "gsh.spark"
    assert opened.seed.hex() not in repr(opened)
    assert repr(opened.seed) not in repr(opened)

    digest = hashlib.sha256(b"what was published").hexdigest()
    committed = service.releases.commit(budget, digest, rows=12)
    assert (committed.state, committed.committed.rows) == ("committed", 12)  # type: ignore[union-attr]
    assert service.releases.commit(budget, digest).state == "committed"
    with pytest.raises(AlreadyCommitted):
        service.releases.commit(budget, "0" * 64)
    with pytest.raises(UnknownRelease):
        service.releases[budget].table  # noqa: B018
    assert service.releases.open(MECHANISM, budget=budget, once=budget, epsilon=1).seed is None


def test_a_release_says_what_its_options_say(service: gsh.Client, budget: str) -> None:
    found = service.calibrate(c_u=2, epsilon=1, delta=1e-6)
    options: dict[str, Any] = {"description": "views", "labels": ("weekly",), "unprotected": ["c_u"]}
    released = service.release(TABLE, found, users="users", keys="url", budget=budget, once=budget, **options)

    assert (released.certificate.epsilon, released.certificate.delta) == (1, found.privacy.delta)
    assert released.certificate.unprotected == ("c_u",)
    recorded = service.releases[budget]
    assert (recorded.description, recorded.labels, recorded.state) == ("views", ("weekly",), "made")
    at_delta = service.release(TABLE, found, users="users", keys="url", delta=1e-5)
    assert at_delta.certificate.delta == 1e-5
    bare = service.release(TABLE, found.mechanism, users="users", keys="url")
    assert bare.certificate.epsilon is None


def test_once_needs_a_budget_and_a_budget_needs_once(service: gsh.Client, budget: str) -> None:
    with pytest.raises(gsh.InvalidParameter, match=r"^budget: is required with an Idempotency-Key"):
        service.release(TABLE, MECHANISM, users="users", keys=["url"], once=budget)
    with pytest.raises(IdempotencyKeyMissing):
        service.release(TABLE, MECHANISM, users="users", keys=["url"], budget=budget)


def test_a_cancelled_call_leaves_the_client_usable(running: Service) -> None:
    """While a table is read in a thread."""
    reading, go_on = threading.Event(), threading.Event()

    def batches() -> Iterator[pa.RecordBatch]:
        for place in range(40):
            if place == 20:
                reading.set()
                go_on.wait()
            yield pa.record_batch({"url": np.arange(20_000) + 20_000 * place, "users": np.full(20_000, 50)})

    schema = pa.schema({"url": pa.int64(), "users": pa.int64()})

    async def run() -> None:
        async with gsh.AsyncClient(running.url) as client:
            stream = pa.RecordBatchReader.from_batches(schema, batches())
            call = asyncio.create_task(client.release(stream, MECHANISM, users="users", keys=["url"]))
            await asyncio.to_thread(reading.wait)
            call.cancel()
            try:
                with pytest.raises(asyncio.CancelledError):
                    await call
            finally:
                go_on.set()
            await client.check()

    asyncio.run(run())


def test_a_dry_run_charges_nothing(service: gsh.Client, budget: str) -> None:
    dry = service.dry_run(TABLE, MECHANISM, users="users", keys=["url"], budget=budget, once=f"{budget}-dry")

    assert dry.budget is not None
    assert (dry.budget.id, dry.budget.after.releases) == (budget, 1)
    assert (dry.certificate.mu, dry.released_at) == (MECHANISM.mu, None)
    assert service.budgets[budget].spent.releases == 0


def test_a_dry_run_says_what_the_name_would_do(service: gsh.Client, budget: str) -> None:
    """The same content would be replayed. Other content is refused, and so is what is not a name."""
    options = {"users": "users", "keys": ["url"], "budget": budget, "once": f"{budget}-name"}
    first = service.release(TABLE, MECHANISM, **options)
    again = service.release(TABLE, MECHANISM, **options)
    dry = service.dry_run(TABLE, MECHANISM, **options)

    assert (first.is_replayed, first.released_at) == (False, None)
    assert (again.is_replayed, again.released_at) == (True, service.releases[f"{budget}-name"].at)
    assert f"replayed: released on {again.released_at}" in repr(again)
    assert (dry.released_at, dry.certificate) == (again.released_at, again.certificate)
    with pytest.raises(IdempotencyKeyReused):
        service.dry_run(TABLE.slice(1), MECHANISM, **options)
    with pytest.raises(gsh.InvalidParameter, match="once"):
        service.dry_run(TABLE, MECHANISM, **options | {"once": "two words"})


def test_a_certificate_is_frozen_and_has_members_as_attributes() -> None:
    certificate = Certificate({"mu": 0.5, "bounds": {"c_u": 2, "columns": [{"name": "likes"}]}, "new": None})

    assert certificate.bounds.columns[0].name == "likes"
    assert certificate["bounds"]["c_u"] == 2
    assert (certificate.new, list(certificate), len(certificate)) == (None, ["mu", "bounds", "new"], 3)
    assert certificate == Certificate(certificate.to_dict())
    assert hash(certificate) == hash(Certificate(certificate.to_dict()))
    assert eval(repr(certificate)) == certificate
    assert "mu" in dir(certificate)
    with pytest.raises(AttributeError, match="has no member 'mus'"):
        certificate.mus  # noqa: B018
    with pytest.raises(AttributeError, match="cannot be changed"):
        certificate.mu = 1.0


def test_a_limit_of_the_service_is_named(service: gsh.Client) -> None:
    with pytest.raises(LimitExceeded, match=r"10000|10 000"):
        service.exact(MECHANISM, epsilon=[1.0] * 10_001)


@pytest.mark.slow
def test_access_keys(tmp_path: Path) -> None:
    """Without one, with the wrong one, and with one for another budget."""
    ledger = str(tmp_path / "ledger.sqlite3")
    create = [sys.executable, "-m", "app.keys", "create", "--scope", "release", "--budget", "mine"]
    done = subprocess.run(create, cwd=ROOT, env=environment(ledger=ledger), capture_output=True, text=True, check=True)
    key = done.stdout.strip()
    (tmp_path / "temporary").mkdir()
    with Service(temporary=tmp_path / "temporary", ledger=ledger) as guarded:
        for wrong in (None, "gsh_0"):
            with gsh.Client(guarded.url, key=wrong) as client, pytest.raises(AccessKeyRequired):
                list(client.budgets)
        with gsh.Client(guarded.url, key=key) as client:
            assert list(client.budgets) == []
            with pytest.raises(NotAllowed) as caught:
                client.budgets["yours"]

    assert key not in f"{caught.value}{caught.value.problem}"
    assert os.path.exists(ledger)


def test_the_short_names_of_readme_and_issue_work(service: gsh.Client, budget: str) -> None:
    m = service.calibrate(c_u=16, epsilon=1, delta=1e-6)
    r = service.release(TABLE.to_pandas(), m, users="users", keys=["url"], budget=budget, once=f"{budget}-W46")

    assert r.table["url"].to_pylist() == ["a.org", "b.org"]
    assert service.releases[f"{budget}-W46"].table.equals(r.table)
