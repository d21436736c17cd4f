"""Invalid ledger paths, file permissions, and files that are not at their path any more.

An invalid path is one line at start and 503 at run time, never a 500. The paths below fail for root too.
"""

import os
import sqlite3
import stat
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest

from app.ledger.answers import Staged
from app.ledger.databases.sqlite import SqliteConnections, _address
from app.ledger.errors import LedgerUnavailable
from app.ledger.opening import open_existing, open_ledger
from gsh.accounting.budget_limits import Limit
from tests.app.client import CASE_STUDY, Client, problem_errors
from tests.app.ledger.examples import AT, charge, paid, store
from tests.app.process import Service, run_command

pytestmark = pytest.mark.slow

SECRET = "thirty-two characters at least, or more"
GROUPS = {"keys": ["a"], "counts": [70000]}


def _file_as_folder(folder: Path) -> str:
    (folder / "file").write_text("no folder")
    return str(folder / "file" / "ledger.sqlite3")


def _folder_as_file(folder: Path) -> str:
    (folder / "ledger.sqlite3").mkdir()
    return str(folder / "ledger.sqlite3")


def _folder_as_secret(folder: Path) -> str:
    (folder / "ledger.sqlite3.secret").mkdir()
    return str(folder / "ledger.sqlite3")


def _loop(folder: Path) -> str:
    (folder / "ledger.sqlite3").symlink_to(folder / "ledger.sqlite3")
    return str(folder / "ledger.sqlite3")


PLACES: dict[str, Callable[[Path], str]] = {
    "a file as its folder": _file_as_folder,
    "a folder in its place": _folder_as_file,
    "a folder in place of its secret": _folder_as_secret,
    "a link to itself": _loop,
    "a folder that is not there": lambda folder: str(folder / "missing" / "ledger.sqlite3"),
    "a name that is too long": lambda folder: str(folder / ("l" * 300)),
    "a name whose secret's is too long": lambda folder: str(folder / ("l" * 250)),
    "a file system that takes no files": lambda _folder: "/proc/ledger.sqlite3",
    "a device": lambda _folder: "/dev/full",
}
NUL = {"a name with a NUL": lambda folder: str(folder / "led\0ger")}  # the environment cannot carry it


@pytest.fixture(params=PLACES | NUL)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return (PLACES | NUL)[request.param](tmp_path)


@pytest.fixture(params=["a file as its folder", "a folder in its place", "a name that is too long"])
def some_place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """For tests that start a process each."""
    return PLACES[request.param](tmp_path)


def test_an_invalid_ledger_path_is_unavailable(place: str) -> None:
    for attempt in (open_ledger, open_existing):
        with pytest.raises(LedgerUnavailable) as refused:
            attempt(place, "")
        assert len(str(refused.value).splitlines()) == 1


def test_requests_are_answered_503_and_accounting_goes_on(place: str) -> None:
    client = Client(ledger=place)

    for _ in range(2):
        problem_errors(client.get("/budgets"), 503, "ledger-unavailable")
        problem_errors(client.get("/budgets/web"), 503, "ledger-unavailable")
        body = {"mechanism": CASE_STUDY, "groups": GROUPS, "budget": "web"}
        paid_release = client.request("POST", "/release", json=body, headers={"idempotency-key": "a"})
        problem_errors(paid_release, 503, "ledger-unavailable")
        calibrate = {"mechanism": {"c_u": 3, "tau": 1}, "budget": "web"}
        problem_errors(client.post("/calibrate", calibrate), 503, "ledger-unavailable")
    assert client.point(CASE_STUDY, 0.349)["delta"] == 1.003103848512688e-05
    client.app.state.services.ledger_pool.close()


@pytest.mark.parametrize(
    "program", [("app.keys", "list"), ("app.keys", "create", "--scope", "admin"), ("app.verify",), ("app",)], ids=str
)
def test_a_program_reports_an_invalid_ledger_path_in_one_line(some_place: str, program: tuple[str, ...]) -> None:
    finished = run_command(*program, ledger=some_place, host="0.0.0.0", port="0")

    assert (finished.returncode, finished.stdout) == (2, "")
    (line,) = finished.stderr.splitlines()
    assert "Traceback" not in line


def test_the_service_starts_and_logs_one_line_about_an_invalid_ledger_path(tmp_path: Path) -> None:
    with Service(temporary=tmp_path, ledger=_file_as_folder(tmp_path)) as service:
        service.wait_for_message("startup complete") if "startup complete" not in service.output else None
        lines = [line for line in service.log if line["level"] == "warning"]
        assert service.get("/budgets").status_code == 503
        assert service.get("/healthz").status_code == 200

    assert [line["message"] for line in lines] == [
        "the ledger is unavailable: its secret cannot be read or made: Not a directory"
    ]


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


@pytest.mark.parametrize("mask", [0, 0o022, 0o077])
def test_every_file_of_a_ledger_has_mode_0600_with_any_umask(tmp_path: Path, mask: int) -> None:
    with umask(mask), closing(open_ledger(str(tmp_path / "ledger.sqlite3"), "")) as ledger:
        ledger.put_budget("web", Limit(1.0, 1e-4), "", AT)
        charge(ledger, paid())
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}

    assert modes == {f"ledger.sqlite3{end}": 0o600 for end in ("", "-wal", "-shm", ".secret")}


def test_an_existing_file_keeps_its_mode_and_a_line_warns_about_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = tmp_path / "ledger.sqlite3"
    open_ledger(str(place), "").close()
    assert caplog.messages == []
    place.chmod(0o640)
    open_ledger(str(place), "").close()

    assert stat.S_IMODE(place.stat().st_mode) == 0o640
    (message,) = caplog.messages
    assert "ledger.sqlite3 has mode 0640" in message


def locks_on(path: Path) -> int:
    """How many locks processes hold on a file, as the kernel says."""
    inode = path.stat().st_ino
    return sum(line.split()[5].endswith(f":{inode}") for line in Path("/proc/locks").read_text().splitlines())


def test_another_thread_that_opens_the_ledger_takes_no_lock_from_the_first(tmp_path: Path) -> None:
    """A process that closes any descriptor of a file loses all its locks on it. Another process could then write."""
    path = tmp_path / "ledger.sqlite3"
    connections = SqliteConnections(path)
    with connections.transaction() as execute:
        execute("CREATE TABLE t (n BIGINT)")
    held = locks_on(path)
    assert held > 0

    _address(path, make=True)

    assert locks_on(path) == held
    connections.close()


def test_a_ledger_that_is_not_at_its_path_any_more_is_not_charged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """SQLite goes on with a file that was deleted or replaced, and nobody would find its charges again."""
    place, aside = tmp_path / "ledger.sqlite3", tmp_path / "aside.sqlite3"
    copy = tmp_path / "copy.sqlite3"
    client = Client(ledger=str(place))
    assert client.request("PUT", "/budgets/web", json={"epsilon": 10, "delta": 1e-3}).status_code == 200
    bodies = iter(range(100))

    def release() -> httpx.Response:
        body = {"mechanism": CASE_STUDY, "groups": GROUPS, "budget": "web"}
        return client.request("POST", "/release", json=body, headers={"idempotency-key": f"r{next(bodies)}"})

    assert release().status_code == 200
    with closing(sqlite3.connect(place)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)

    def delete() -> None:
        place.rename(aside)

    def replace_it() -> None:
        place.rename(aside)
        copy.replace(place)

    for change, words in ((delete, "there is no file"), (replace_it, "there is another file")):
        change()
        caplog.clear()
        problem_errors(release(), 503, "ledger-unavailable")
        (line,) = [line for line in caplog.messages if "unavailable" in line]
        assert f"{words} at {place}" in line
        problem_errors(client.get("/budgets"), 503, "ledger-unavailable")
        assert (probe(client), place.exists()) == (503, change is replace_it)

        aside.replace(place)

        assert (release().status_code, probe(client)) == (200, 200)
    assert client.get("/budgets/web").json()["spent"]["releases"] == 3
    assert client.get("/budgets/web/verify").json()["intact"] is True
    client.app.state.services.ledger_pool.close()


def probe(client: Client) -> int:
    """The status of /readyz, without the answer that is remembered for a second."""
    client.app.state.services.ledger_probe._asked_at = float("-inf")
    return client.get("/readyz").status_code


@pytest.mark.parametrize("change", ["deleted", "replaced"])
def test_a_file_that_is_replaced_during_a_charge_is_found_before_the_answer(tmp_path: Path, change: str) -> None:
    place = tmp_path / "ledger.sqlite3"
    with closing(open_ledger(str(place), SECRET)) as ledger:
        ledger.put_budget("web", Limit(1.0, 1e-4), "", AT)
        staged = store(ledger, b"42")

        def answer(_budget: object, _number: int) -> Staged:
            place.unlink()
            if change == "replaced":
                place.touch()
            return staged

        with pytest.raises(LedgerUnavailable, match="in place of the ledger"):
            ledger.charge(paid(), AT, answer)


def test_another_thread_does_not_make_a_file_in_place_of_a_deleted_ledger(tmp_path: Path) -> None:
    place = tmp_path / "ledger.sqlite3"
    with closing(open_ledger(str(place), SECRET)) as ledger, ThreadPoolExecutor(1) as thread:
        place.unlink()

        with pytest.raises(LedgerUnavailable, match="there is no file"):
            thread.submit(ledger.budgets).result()

        assert not place.exists()
