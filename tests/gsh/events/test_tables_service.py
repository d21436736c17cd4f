"""Several tables, and public keys, with a service: one release under one name, charged once, also after a restart."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import gsh
from gsh.events import folder_output
from gsh.events.terms import Payer
from tests.app.process import Service
from tests.gsh.cli.running import environment
from tests.gsh.events.test_duckdb import EVENTS
from tests.gsh.events.test_several_tables import DAYS, TABLES, TARGET

pytestmark = pytest.mark.slow

SHARED = {name: value for name, value in TARGET.items() if name not in ("epsilon", "delta")}


def test_tables_are_charged_once_and_come_back_before_an_event_is_read(
    service: gsh.Client, budget: str, tmp_path: Path
) -> None:
    paid = {"service": service, "budget": budget, "once": f"{budget}-1", "unprotected": ["c_u by a preview"]}
    paid["names"] = {"count": "people"}
    first = gsh.publish(EVENTS, **TARGET, **paid, to=tmp_path / "private", rest={"by_url": "detail"})
    places: list[dict[str, Any]] = [{}, {"to": tmp_path / "private"}, {"to": tmp_path / "csv", "format": "csv"}]
    replayed = [gsh.publish("missing.parquet", **TARGET, **paid, **place) for place in places]

    assert service.budgets[budget].spent.releases == 1
    assert (first.is_replayed, first.released_at) == (False, None)
    for each in replayed:
        assert (each.is_replayed, each.released_at) == (True, service.releases[f"{budget}-1"].at)
        assert each.plan == first.plan
        for name, table in first.tables.items():
            assert each.tables[name].to_pylist() == table.to_pylist()
    assert set(first.tables["by_day"]["day"].to_pylist()) == set(DAYS)
    assert {"people_estimate", "people_low"} <= set(
        pq.read_table(tmp_path / "private/by_url_rest.parquet").column_names
    )
    assert all("people" in table.column_names and "count" not in table.column_names for table in first.tables.values())
    said = first.certificate
    assert (said.budget.id, said.unprotected) == (budget, ("c_u by a preview",))
    assert {each["bounds"]["plan_digest"] for each in said["tables"]} == {first.plan.digest}
    assert {each["bounds"]["enforced_by"] for each in said["tables"]} == {"gsh.duckdb"}
    assert f"paid by the budget {budget}" in first.summary()
    assert {path.suffix for path in (tmp_path / "csv").iterdir()} == {".csv", ".json"}


def _emptied(path: Path) -> None:
    path.write_bytes(b"")


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-2])


def _other_rows(path: Path) -> None:
    if path.suffix == ".parquet":
        table = pq.read_table(path)
        pq.write_table(table.slice(1), path)
    else:
        path.write_text("{}")


def test_a_replay_refuses_damaged_files_and_overwrite_mends_them_without_a_charge(
    service: gsh.Client, budget: str, tmp_path: Path
) -> None:
    place = tmp_path / "private"
    paid = {"service": service, "budget": budget, "once": f"{budget}-1", "to": place, "rest": {"by_url": "detail"}}
    gsh.publish(EVENTS, **TARGET, **paid)
    whole = {path.name: path.read_bytes() for path in place.iterdir()}
    damages = [*((_cut, name) for name in whole), (_emptied, "detail.parquet"), (Path.unlink, "by_day.parquet")]
    damages += [(Path.unlink, "certificate.json"), (Path.unlink, "plan.json")]
    damages += [(_other_rows, "by_day.parquet"), (_other_rows, "certificate.json"), (_other_rows, "plan.json")]
    for damage, name in damages:
        damage(place / name)
        with pytest.raises(gsh.InvalidParameter, match=rf"^to: .*{name} in private .* nothing is charged"):
            gsh.publish("missing.parquet", **TARGET, **paid)
        again = gsh.publish("missing.parquet", **TARGET, **paid, overwrite=True)
        assert again.is_replayed
        assert {path.name: path.read_bytes() for path in place.iterdir()} == whole
    assert service.budgets[budget].spent.releases == 1


def test_a_replay_takes_the_same_rows_in_another_writing_for_its_own(
    service: gsh.Client, budget: str, tmp_path: Path
) -> None:
    """Another version of pyarrow writes other bytes."""
    paid = {"service": service, "budget": budget, "once": f"{budget}-1", "to": tmp_path / "private"}
    gsh.publish(EVENTS, **TARGET, **paid)
    path = tmp_path / "private" / "detail.parquet"
    before = path.read_bytes()
    pq.write_table(pq.read_table(path), path, compression="gzip")
    assert path.read_bytes() != before

    assert gsh.publish("missing.parquet", **TARGET, **paid).is_replayed


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": 2},
        {"unprotected": ["c_u"]},
        {"tables": {"detail": TABLES["detail"]}},
        {"tables": {**TABLES, "by_day": gsh.Table(by="day", public_keys=DAYS[:2], c_u=2, sums={"likes": (0, 3)})}},
        {"tables": None, "by": ["url"], "c_u": 3},
    ],
)
def test_another_plan_or_target_under_the_same_name_stops_before_it_reads(
    change: dict[str, Any], service: gsh.Client, budget: str
) -> None:
    paid = {"service": service, "budget": budget, "once": f"{budget}-1"}
    gsh.publish(EVENTS, **TARGET, **paid)

    with pytest.raises(gsh.InvalidParameter, match=r"^once: "):
        gsh.publish("missing.parquet", **{**TARGET, **change}, **paid)
    assert service.budgets[budget].spent.releases == 1


@pytest.mark.parametrize("change", [{}, {"tables": None, "by": ["url"], "c_u": 3}])
def test_another_budget_under_the_same_name_is_named(change: dict[str, Any], service: gsh.Client, budget: str) -> None:
    gsh.publish(EVENTS, **TARGET, service=service, budget=budget, once=f"{budget}-1")
    service.budgets.put(f"{budget}-2", epsilon=1, delta=1e-6, reason="test")

    with pytest.raises(gsh.InvalidParameter, match=f"^once: .*budget {budget} has it already, not of {budget}-2"):
        gsh.publish(
            "missing.parquet", **{**TARGET, **change}, service=service, budget=f"{budget}-2", once=f"{budget}-1"
        )


def test_the_privacy_unit_must_be_that_of_the_budget(service: gsh.Client, budget: str) -> None:
    unit = service.budgets[budget].privacy_unit
    paid = {"service": service, "budget": budget, "once": f"{budget}-1"}
    with pytest.raises(gsh.InvalidParameter, match=f"^privacy_unit: .* budget {budget}, {unit}, .*not household"):
        gsh.publish("missing.parquet", **TARGET, **paid, privacy_unit="household")

    assert gsh.publish(EVENTS, **TARGET, **paid, privacy_unit=unit).certificate["privacy_unit"] == unit


def test_a_name_of_one_table_is_not_taken_for_several(service: gsh.Client, budget: str) -> None:
    paid = {"service": service, "budget": budget, "once": f"{budget}-1"}
    gsh.publish(EVENTS, user="user_id", by="url", c_u=3, epsilon=1, delta=1e-6, **paid)

    with pytest.raises(gsh.InvalidParameter, match=r"^once: "):
        gsh.publish("missing.parquet", **TARGET, **paid)


def test_a_run_that_fails_while_it_writes_is_repeated_without_a_charge(
    service: gsh.Client, budget: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paid = {"service": service, "budget": budget, "once": f"{budget}-1", "to": tmp_path / "private"}
    with monkeypatch.context() as patch:
        patch.setattr(folder_output, "write_rows", lambda *_: (_ for _ in ()).throw(OSError(28, "no space")))
        with pytest.raises(OSError, match="no space"):
            gsh.publish(EVENTS, **TARGET, **paid)
    assert list(tmp_path.iterdir()) == []

    again = gsh.publish("missing.parquet", **TARGET, **paid)

    assert again.is_replayed
    assert service.budgets[budget].spent.releases == 1
    assert (tmp_path / "private" / "detail.parquet").is_file()


def test_an_unread_answer_of_several_tables_is_asked_for_again(
    service: gsh.Client, budget: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    paid = {"service": service, "budget": budget, "once": f"{budget}-1"}
    first = gsh.publish(EVENTS, **TARGET, **paid)
    unread = replace(service.releases[f"{budget}-1"], stored=None)
    monkeypatch.setattr(Payer, "earlier", lambda _self: unread)

    again = gsh.publish(EVENTS, **TARGET, **paid)

    assert again.is_replayed
    assert again.tables["detail"].to_pylist() == first.tables["detail"].to_pylist()
    assert service.budgets[budget].spent.releases == 1


def test_a_share_of_a_budget_is_the_target_also_for_a_restarted_job(service: gsh.Client, budget: str) -> None:
    sigmas = []
    for week in (2, 1):
        paid = {"service": service, "budget": budget, "once": f"{budget}-{week}", "releases": week}
        made = gsh.publish(EVENTS, **SHARED, **paid)
        again = gsh.publish("missing.parquet", **SHARED, **paid)
        assert again.is_replayed
        assert again.mechanisms == made.mechanisms
        sigmas.append(made.mechanisms["detail"].sigma)
    paying = service.budgets[budget]

    assert paying.spent.releases == 2
    assert paying.used > 0.99
    assert sigmas == pytest.approx([sigmas[0]] * 2, rel=1e-2)


@pytest.mark.parametrize("target", [{"epsilon": 1, "delta": 1e-6}, {"releases": 3}])
def test_one_table_with_public_keys_is_charged_once(
    target: dict[str, Any], service: gsh.Client, budget: str, tmp_path: Path
) -> None:
    asked = {"user": "user_id", "by": "day", "public_keys": DAYS, "c_u": 2, **target}
    paid = {"service": service, "budget": budget, "once": f"{budget}-1", "to": tmp_path / "private.parquet"}
    first = gsh.publish(EVENTS, **asked, **paid)
    again = gsh.publish("missing.parquet", **asked, **paid)

    assert again.is_replayed
    assert service.budgets[budget].spent.releases == 1
    assert set(first.table["day"].to_pylist()) == set(DAYS)
    assert again.table.to_pylist() == first.table.to_pylist()
    with pytest.raises(gsh.InvalidParameter, match=r"^once: "):
        gsh.publish("missing.parquet", **{**asked, "public_keys": DAYS[:2]}, **paid)


def test_a_budget_that_cannot_pay_writes_nothing(service: gsh.Client, budget: str, tmp_path: Path) -> None:
    service.budgets.put(budget, epsilon=0.01, delta=1e-9, reason="test")

    with pytest.raises(gsh.client.errors.BudgetExceeded):
        gsh.publish(EVENTS, **TARGET, service=service, budget=budget, once=f"{budget}-1", to=tmp_path / "private")
    assert list(tmp_path.iterdir()) == []


KILLED = """
import json, os, socket, sys
from pathlib import Path
import pyarrow as pa
import pyarrow.parquet as pq
import pandas, gsh, gsh.duckdb.publishing  # once, and not in every child

url, folder, budget = sys.argv[1], Path(sys.argv[2]) / "private", sys.argv[3]
folder.mkdir()
events = pa.table({"u": [str(n % 50) for n in range(400)], "k": [str(n % 3) for n in range(400)], "l": ["x"] * 400})
tables = {"a": gsh.Table(by="k", c_u=2), "b": gsh.Table(by=["k", "l"], c_u=2)}
asked = {"user": "u", "tables": tables, "epsilon": 8, "delta": 1e-3, "budget": budget, "temporary": folder.parent}
FILES = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "shutil.rmtree")

def publish(once):
    with gsh.Client(url) as service:
        return gsh.publish(events, **asked, service=service, once=once, to=folder / once)

def killed(once, step):
    left = [step]
    def count():
        left[0] -= 1
        if left[0] == 0:
            os._exit(9)  # as SIGKILL: nothing is tidied up
    def hook(event, arguments):
        if event == "socket.connect" or event in FILES and str(folder) in str(arguments[0]):
            count()
    def counted(method):
        def call(*arguments):
            count()
            return method(*arguments)
        return call
    sys.addaudithook(hook)
    for name in ("sendall", "send", "recv", "recv_into"):
        setattr(socket.socket, name, counted(getattr(socket.socket, name)))
    publish(once)

def again(once):
    place = folder / once
    found = {path.name: path.read_bytes() for path in place.iterdir()} if place.exists() else {}
    made = publish(once)
    said = {"plan.json", "certificate.json", "certificate.json.sig.json"}
    assert not found or found.keys() == {"a.parquet", "b.parquet"} | said, found.keys()
    with gsh.Client(url) as service:
        stored = service.releases[once].load()
        is_charged = service.budgets[budget].spent.releases
    assert made.certificate == stored.certificate.to_dict()
    for name in tables:
        written = pq.read_table(place / f"{name}.parquet")
        assert written.to_pylist() == made.tables[name].to_pylist() == stored.tables[name].to_pylist()
        assert not found or found[f"{name}.parquet"] == (place / f"{name}.parquet").read_bytes()
    print(json.dumps([is_charged, made.is_replayed, bool(found)]), flush=True)

def forked(work, *arguments):
    child = os.fork()
    if child == 0:
        try:
            work(*arguments)
            os._exit(0)
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

step, ended = 0, 9
while ended == 9:
    step += 1
    ended = forked(killed, f"{budget}-{step}", step)
    assert forked(again, f"{budget}-{step}") == 0, step
assert ended == 0
"""


def test_a_run_that_is_killed_at_any_step_is_charged_once_and_completed(
    running: Service, budget: str, tmp_path: Path
) -> None:
    """Before every connection, every sending and receiving, and every change of a file."""
    made = subprocess.run(
        [sys.executable, "-c", KILLED, running.url, tmp_path, budget],
        env=environment(),
        check=False,
        capture_output=True,
        text=True,
    )
    runs = [json.loads(line) for line in made.stdout.splitlines()]

    assert made.returncode == 0, made.stderr
    assert [charged for charged, *_ in runs] == list(range(1, len(runs) + 1))
    kinds = {(is_replayed, is_written) for _, is_replayed, is_written in runs}
    assert kinds == {(False, False), (True, False), (True, True)}
