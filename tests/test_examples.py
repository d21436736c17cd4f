"""The examples do what they say: a job that is killed anywhere and restarted publishes one table, charged once."""

import ast
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
import pytest

import gsh
from examples import weekly_job
from tests.app.process import PATIENCE, ROOT, Service
from tests.interrupted import PLACES, Place, Proxy

pytestmark = [pytest.mark.crash, pytest.mark.slow]

JOB = str(ROOT / "examples" / "weekly_job.py")
NAMINGS = [(1, "before"), (2, "before"), (2, "after")]
PROGRAMS = sorted([*(ROOT / "examples").glob("*.py"), *(ROOT / "examples" / "dbt" / "models").glob("*.py")])


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
    """The weekly job as a process. Each run reads the same events in another order."""

    def __init__(self, folder: Path, week: str) -> None:
        self.key = f"web-views-{week}"
        self._folder = folder
        self._runs = 0
        self._arguments = ["--week", week, "--budget", "web", "--to", str(folder / "published")]

    def start(self, url: str, naming: int = 0, when: str = "never") -> subprocess.Popen[str]:
        self._runs += 1
        events = self._folder / f"events-{self._runs}.parquet"
        write_events(events, self._runs)
        driver = ["-m", "tests.interrupted", str(naming), when]
        command = [sys.executable, *driver, JOB, *self._arguments, "--service", url, "--events", str(events)]
        return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def finish(self, url: str) -> None:
        process = self.start(url)
        said, errors = process.communicate(timeout=PATIENCE)
        assert (process.returncode, errors) == (0, "")
        assert f" published in {self._folder / 'published' / self.key}.parquet, (ε, δ) = (1, 1e-06)" in said

    def published(self) -> dict[str, bytes]:
        """The files that a reader of the folder sees; the others have names that begin with a dot."""
        folder = self._folder / "published"
        files = sorted(folder.iterdir()) if folder.exists() else []
        return {file.name: file.read_bytes() for file in files if not file.name.startswith(".")}

    def read(self) -> gsh.Published:
        return gsh.read(self._folder / "published" / f"{self.key}.parquet")


def write_events(path: Path, lot: int) -> None:
    order = f"hash(user_id, url, country, seconds, {lot})"
    duckdb.sql(f"COPY (FROM ({weekly_job.MADE_UP}) ORDER BY {order}) TO '{path}' (FORMAT parquet)")


def charges(service: Service, key: str) -> int:
    entries = service.get("/budgets/web/charges?limit=1000").json()["entries"]
    return Counter(entry["details"].get("idempotency_key") for entry in entries)[key]


def check_published(service: Service, job: Job) -> None:
    """One charge, and the table and the certificate that the service has for it."""
    assert charges(service, job.key) == 1
    assert set(job.published()) == {f"{job.key}.parquet", f"{job.key}.parquet.plan.json"}
    answer = pa.ipc.open_stream(service.get(f"/releases/{job.key}/answer").content).read_all()
    published = job.read()
    assert published.table.equals(answer)
    certificate = service.get(f"/releases/{job.key}/certificate").json()
    assert published.certificate.to_dict() == certificate | {"record": None}  # what the ledger adds after the release
    assert service.get("/budgets/web/verify").json()["intact"] is True


@pytest.mark.parametrize("place", PLACES)
def test_a_job_killed_while_it_asks_publishes_one_table(
    service: Service, tmp_path: Path, week: str, place: Place
) -> None:
    """Before it asks anything, while it uploads, and after the service has charged."""
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
    assert len(proxy.uploads) == 1  # after the charge, the restarted job asks for the answer alone


def test_a_job_that_runs_again_publishes_the_same_table(service: Service, tmp_path: Path, week: str) -> None:
    job = Job(tmp_path, week)
    job.finish(service.url)
    first = job.published()
    job.finish(service.url)

    assert job.published() == first
    check_published(service, job)


@pytest.mark.parametrize(("number", "when"), NAMINGS)
def test_a_job_killed_while_it_writes_publishes_one_table(
    service: Service, tmp_path: Path, week: str, number: int, when: str
) -> None:
    """Before the plan gets its name, before the table does, and after that."""
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


def publish(url: str, week: str, folder: Path, events: str = weekly_job.MADE_UP) -> gsh.Published:
    with gsh.Client(url, retries=replace(weekly_job.RETRIES, first=0.001)) as client, duckdb.connect() as database:
        return weekly_job.publish_week(database.sql(events), week, "web", client, folder)


def test_a_connection_that_breaks_anywhere_is_tried_again(service: Service, week: str, tmp_path: Path) -> None:
    with Proxy(service.url, list(PLACES)) as proxy:
        published = publish(proxy.url, week, tmp_path)

    once = f"web-views-{week}"
    assert proxy.reached == list(PLACES)
    assert charges(service, once) == 1
    assert published.table.equals(pa.ipc.open_stream(service.get(f"/releases/{once}/answer").content).read_all())


def test_late_events_do_not_change_what_is_published(service: Service, week: str, tmp_path: Path) -> None:
    """The job takes the table of the first release, and says so. A correction is another release."""
    late = f"{weekly_job.MADE_UP} UNION ALL SELECT 7000, 'https://example.org/1', 'FR', 5"
    first = publish(service.url, week, tmp_path)
    second = publish(service.url, week, tmp_path / "elsewhere", late)

    assert first.table.equals(second.table)
    assert first.certificate == second.certificate
    assert charges(service, f"web-views-{week}") == 1
    assert (first.is_replayed, second.is_replayed) == (False, True)
    assert second.summary().startswith("replayed: released on ")


def test_a_refusal_ends_the_job_with_its_reason(service: Service, tmp_path: Path) -> None:
    arguments = ["--week", "W1", "--budget", "none", "--to", str(tmp_path), "--service", service.url]
    done = subprocess.run([sys.executable, JOB, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("W1: There is no such budget.")


@pytest.mark.parametrize(
    ("name", "engine", "needs"), [("weekly_job", "duckdb", "DuckDB"), ("spark_job", "pyspark", "PySpark")]
)
def test_a_job_without_its_engine_says_what_to_install(name: str, engine: str, needs: str) -> None:
    path = ROOT / "examples" / f"{name}.py"
    program = f"import sys, runpy; sys.modules['{engine}'] = None; runpy.run_path({str(path)!r})"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)

    extra = engine.removeprefix("py")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"{name}.py needs {needs}: pip install '.[{extra}]' from the checkout\n"


def published_by(program: Path) -> list[ast.Call]:
    calls = [node for node in ast.walk(ast.parse(program.read_text())) if isinstance(node, ast.Call)]
    return [call for call in calls if ast.unparse(call.func) in {"gsh.publish", "gsh.spark.publish"}]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_an_example_gives_publish_arguments_that_it_has(program: Path) -> None:
    """Also where the tool that runs it, such as Airflow, is not installed: `make orchestration-test` runs them."""
    (call,) = published_by(program)
    compile(program.read_text(), program, "exec")
    names = {keyword.arg for keyword in call.keywords if keyword.arg}
    function = ast.unparse(call.func).replace("gsh.spark.publish", "gsh/spark").replace("gsh.publish", "gsh/duckdb")
    tree = ast.parse((ROOT / function / "publishing.py").read_text())
    (definition,) = (each for each in tree.body if isinstance(each, ast.FunctionDef) and each.name == "publish")

    assert names <= {argument.arg for argument in definition.args.kwonlyargs}


def test_no_two_examples_give_a_release_the_same_name() -> None:
    """All of them can be tried with one budget."""
    names = [re.findall(r"f\"(?:web|\{budget\})-([a-z-]*)\{", program.read_text()) for program in PROGRAMS]

    assert [len(found) for found in names] == [1] * len(PROGRAMS)
    assert len({name for (name,) in names}) == len(PROGRAMS)


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
