"""The examples do what they say: a job that is killed anywhere and restarted publishes one table, charged once."""

import queue
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import duckdb
import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from examples import weekly_job
from tests.app.process import PATIENCE, ROOT, Service
from tests.interrupted import PLACES, Place, Proxy

pytestmark = [pytest.mark.crash, pytest.mark.slow]

JOB = str(ROOT / "examples" / "weekly_job.py")
RENAMES = [(1, "before"), (2, "before"), (2, "after")]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with Service(temporary=tmp_path_factory.mktemp("examples")) as running:
        limit = {"epsilon": 1000, "delta": 0.5}
        assert httpx.put(f"{running.url}/budgets/web", json=limit, timeout=PATIENCE).status_code == 200
        yield running


@pytest.fixture
def week(request: pytest.FixtureRequest) -> str:
    """A name for each test: all share a budget."""
    return "".join(each if each.isalnum() else "-" for each in request.node.name)


class Job:
    """The weekly job as a process. Each run reads the same events in another order, and sends other bytes."""

    def __init__(self, folder: Path, week: str) -> None:
        self.key = f"web-views-{week}"
        self._folder = folder
        self._runs = 0
        self._arguments = ["--week", week, "--budget", "web", "--to", str(folder / "published")]

    def start(self, url: str, rename: int = 0, when: str = "never") -> subprocess.Popen[str]:
        self._runs += 1
        events = self._folder / f"events-{self._runs}.parquet"
        write_events(events, self._runs)
        driver = ["-m", "tests.interrupted", str(self._runs), str(rename), when]
        command = [sys.executable, *driver, JOB, *self._arguments, "--service", url, "--events", str(events)]
        return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def finish(self, url: str) -> None:
        process = self.start(url)
        said, errors = process.communicate(timeout=PATIENCE)
        assert (process.returncode, errors) == (0, "")
        assert said == f"published {self._folder / 'published' / self.key}.parquet\n"

    def published(self) -> dict[str, bytes]:
        """The files that a reader of the folder sees; the others have names that begin with a dot."""
        folder = self._folder / "published"
        files = sorted(folder.iterdir()) if folder.exists() else []
        return {file.name: file.read_bytes() for file in files if not file.name.startswith(".")}


def write_events(path: Path, lot: int) -> None:
    order = f"hash(user_id, url, country, seconds, {lot})"
    duckdb.sql(f"COPY (FROM ({weekly_job.MADE_UP}) ORDER BY {order}) TO '{path}' (FORMAT parquet)")


def charges(service: Service, key: str) -> int:
    entries = service.get("/budgets/web/charges?limit=1000").json()["entries"]
    return Counter(entry["details"].get("idempotency_key") for entry in entries)[key]


def check_published(service: Service, job: Job) -> None:
    """One charge, and the table and the certificate that the service has for it."""
    assert charges(service, job.key) == 1
    published = job.published()
    assert set(published) == {f"{job.key}.certificate.json", f"{job.key}.parquet"}
    answer = service.get(f"/releases/{job.key}/answer").content
    table = pq.read_table(pa.BufferReader(published[f"{job.key}.parquet"]))
    assert table.equals(pa.ipc.open_stream(answer).read_all(), check_metadata=True)
    assert published[f"{job.key}.certificate.json"] == service.get(f"/releases/{job.key}/certificate").content
    assert service.get("/budgets/web/verify").json()["intact"] is True


@pytest.mark.parametrize("place", PLACES)
def test_a_job_killed_while_it_asks_publishes_one_table(
    service: Service, tmp_path: Path, week: str, place: Place
) -> None:
    """Before the POST, while it uploads, and after the service has charged."""
    job = Job(tmp_path, week)
    started: queue.Queue[subprocess.Popen[str]] = queue.Queue()
    with Proxy(service.url, [place], lambda: started.get(timeout=PATIENCE).kill()) as proxy:
        process = job.start(proxy.url)
        started.put(process)
        process.communicate(timeout=PATIENCE)
        assert (process.returncode, proxy.reached) == (-signal.SIGKILL, [place])
        assert charges(service, job.key) == (place == "answered")
        assert job.published() == {}

        job.finish(proxy.url)

        check_published(service, job)
    assert len(set(proxy.uploads)) == len(proxy.uploads) == 1 + (place == "answered")


def test_a_job_that_runs_again_sends_other_bytes_and_publishes_the_same_table(
    service: Service, tmp_path: Path, week: str
) -> None:
    job = Job(tmp_path, week)
    with Proxy(service.url, []) as proxy:
        job.finish(proxy.url)
        first = job.published()
        job.finish(proxy.url)

    assert len(set(proxy.uploads)) == 2
    assert job.published() == first
    check_published(service, job)


@pytest.mark.parametrize(("number", "when"), RENAMES)
def test_a_job_killed_while_it_writes_publishes_one_table(
    service: Service, tmp_path: Path, week: str, number: int, when: str
) -> None:
    """Before the certificate gets its name, before the table does, and after that."""
    job = Job(tmp_path, week)
    process = job.start(service.url, number, when)
    said, _ = process.communicate(timeout=PATIENCE)
    assert (process.returncode, said) == (-signal.SIGKILL, "")
    assert charges(service, job.key) == 1
    seen = job.published()
    assert len(seen) == number - (when == "before")

    job.finish(service.url)

    check_published(service, job)
    assert {name: content for name, content in job.published().items() if name in seen} == seen


def groups_of(events: str, week: str) -> pa.Table:
    with duckdb.connect() as database:
        database.sql(events).create_view("events")
        return weekly_job.bounded(database, week)


def test_a_connection_that_breaks_anywhere_is_tried_again(
    service: Service, week: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weekly_job, "RETRIES", replace(weekly_job.RETRIES, first=0.0))
    groups = groups_of(weekly_job.MADE_UP, week)
    with Proxy(service.url, list(PLACES)) as proxy, weekly_job.client(proxy.url) as client:
        table, _ = weekly_job.released(client, week, "web", groups)

    assert proxy.reached == list(PLACES)
    assert charges(service, week) == 1
    assert table.equals(pa.ipc.open_stream(service.get(f"/releases/{week}/answer").content).read_all())


def test_late_events_do_not_change_what_is_published(
    service: Service, week: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The idempotency key has other content: the job takes the table of the first release, and says so."""
    late = f"{weekly_job.MADE_UP} UNION ALL SELECT 7000, 'https://example.org/1', 'FR', 5"
    with weekly_job.client(service.url) as client:
        first = weekly_job.released(client, week, "web", groups_of(weekly_job.MADE_UP, week))
        second = weekly_job.released(client, week, "web", groups_of(late, week))

    assert first[0].equals(second[0])
    assert first[1] == second[1]
    assert charges(service, week) == 1
    assert "was released from other data" in capsys.readouterr().err


def test_a_refusal_ends_the_job_with_its_reason(service: Service, tmp_path: Path) -> None:
    arguments = ["--week", "W1", "--budget", "none", "--to", str(tmp_path), "--service", service.url]
    done = subprocess.run([sys.executable, JOB, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("W1: There is no such budget.")


@pytest.mark.parametrize("user", [3, 4, 5])
def test_one_user_changes_the_table_by_no_more_than_the_mechanism_says(user: int) -> None:
    """All records of a user are removed: at most C_u groups change, each by 1 and by 0 to 600 seconds."""
    many = f"SELECT * REPLACE (user_id % 40 AS user_id) FROM ({weekly_job.MADE_UP})"
    with_user, without = (
        {(row["url"], row["country"]): (row["users"], row["seconds"]) for row in groups_of(events, "W1").to_pylist()}
        for events in (many, f"FROM ({many}) WHERE user_id <> {user}")
    )
    changes = [
        (users - without.get(key, (0, 0))[0], seconds - without.get(key, (0, 0))[1])
        for key, (users, seconds) in with_user.items()
        if (users, seconds) != without.get(key)
    ]

    assert without.keys() <= with_user.keys()
    assert len(changes) == weekly_job.MECHANISM.c_u
    assert {users for users, _ in changes} == {1}
    assert all(0 <= seconds <= 600 for _, seconds in changes)


def test_the_query_of_the_threat_model_bounds_what_a_user_adds() -> None:
    page = (ROOT / "docs" / "threat-model.md").read_text()
    (query,) = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    with duckdb.connect() as database:
        database.sql(f"SELECT *, seconds > 300 AS shared FROM ({weekly_job.MADE_UP})").create_view("views")
        per_user = "SELECT COUNT(DISTINCT (url, country)) AS groups FROM views GROUP BY user_id"

        for c_u in (51914, 2):
            released = database.sql(query.replace("51914", str(c_u)))
            assert released.columns == ["url", "country", "count", "shared", "seconds"]
            allowed = database.sql(f"SELECT SUM(LEAST(groups, {c_u})) FROM ({per_user})")
            assert released.sum("count").fetchall() == allowed.fetchall()


def test_a_file_that_cannot_be_written_leaves_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "table"
    path.write_text("before")

    def fails(unfinished: Path) -> None:
        unfinished.write_text("half")
        raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        weekly_job.publish(path, fails)
    assert path.read_text() == "before"
    weekly_job.publish(path, lambda unfinished: unfinished.write_text("after"))
    assert path.read_text() == "after"
