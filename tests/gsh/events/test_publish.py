"""gsh.publish: what it writes, what the certificate says, and what it refuses."""

import json
import math
import os
import signal
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import gsh
from gsh.events.plan import Plan
from gsh.events.published import Progress
from tests.app.process import PATIENCE
from tests.gsh.cli.running import environment
from tests.gsh.events.tables import as_events
from tests.gsh.events.test_duckdb import EVENTS, PLAN
from tests.reference.bounding import bounded

pytestmark = pytest.mark.slow

# So little noise that every published number shows the true one.
CLEAR = gsh.Mechanism(
    c_u=6,
    tau=1,
    tau_star=1.5,
    sigma=0.01,
    aggregates=gsh.Aggregates(
        names=["likes", "seconds"],
        covariance=[[1e-4, 0], [0, 1e-12]],
        sensitivity=gsh.box(lower=[0, 0], upper=[2, 64], groups=[3, None]),
    ),
)
ASKED: dict[str, Any] = {
    "user": "user_id",
    "by": ["url", "day"],
    "sums": {"likes": (0, 2), "seconds": (0, 64)},
    "units": {"seconds": 2**-10},
    "c_u": 6,
    "caps": {"likes": 3},
}
TARGET: dict[str, Any] = ASKED | {"epsilon": 1, "delta": 1e-6}


def test_the_published_numbers_are_the_bounded_ones() -> None:
    """Groups of one user are dropped by τ*, and all others are there, sorted by key."""
    private = gsh.publish(EVENTS, **ASKED, mechanism=CLEAR, _salt=PLAN.salt)
    expected = {key: row for key, row in bounded(as_events(EVENTS), PLAN.to_json()).items() if row[0] > 1}

    assert private.table is not None
    rows = [tuple(row.values()) for row in private.table.to_pylist()]
    found = {row[:2]: (round(row[2]), round(row[3]), round(row[4] * 1024)) for row in rows}
    assert found == expected
    assert [row[:2] for row in rows] == sorted(expected)
    assert len(private) == len(rows) == private.groups


def test_the_number_of_events_needs_no_column_in_the_data() -> None:
    """At most three events of one user in one group count, and with a cap in so many groups."""
    records = gsh.Aggregates(
        names=["views"], covariance=[[1e-4]], sensitivity=gsh.box(lower=[0], upper=[3], groups=[2])
    )
    mechanism = gsh.Mechanism(c_u=6, tau=1, tau_star=1.5, sigma=0.01, aggregates=records)
    asked = {"user": "user_id", "by": "url", "events": {"views": 3}, "caps": {"views": 2}, "c_u": 6}
    private = gsh.publish(EVENTS, **asked, mechanism=mechanism, _salt=PLAN.salt)

    expected = {key: row for key, row in bounded(as_events(EVENTS), private.plan.to_json()).items() if row[0] > 1}
    assert private.table is not None
    rows = private.table.to_pylist()
    assert {(row["url"],): (round(row["count"]), round(row["views"])) for row in rows} == expected
    assert 0 < sum(views for _, views in expected.values()) < len(EVENTS)


def test_the_number_of_events_takes_its_share_of_the_noise() -> None:
    """The box of the mechanism is from 0 to the bound; a weight moves noise between it and the count."""
    asked: dict[str, Any] = {"user": "user_id", "by": "url", "c_u": 6, "epsilon": 1, "delta": 1e-6}
    plain, heavy = (gsh.publish(EVENTS, **asked, events={"views": 20}, weights=w) for w in (None, {"views": 4}))
    bounds = plain.certificate["bounds"]["columns"]

    assert [(each["name"], each["lower"], each["upper"]) for each in bounds] == [("views", 0, 20)]
    deviations = [
        (said["sigma"], said["aggregates"]["covariance"][0][0])
        for said in (plain.certificate["mechanism"], heavy.certificate["mechanism"])
    ]
    assert deviations[0][0] < deviations[1][0]
    assert deviations[0][1] > deviations[1][1]


def test_a_mean_is_a_sum_around_the_middle_of_its_range() -> None:
    """What each user has, less the middle: one user changes it by half of the range. Missing values are 0."""
    seconds = gsh.Aggregates(
        names=["likes_centred"], covariance=[[1e-4]], sensitivity=gsh.box(lower=[-1.5], upper=[1.5])
    )
    mechanism = gsh.Mechanism(c_u=6, tau=1, tau_star=1.5, sigma=0.01, aggregates=seconds)
    asked: dict[str, Any] = {"user": "user_id", "by": "url", "means": {"likes": (0, 3)}, "c_u": 6}
    private = gsh.publish(EVENTS, **asked, mechanism=mechanism, _salt=PLAN.salt)

    plan = private.plan.to_json()
    expected = {key: row for key, row in bounded(as_events(EVENTS), plan).items() if row[0] > 1}
    rows = private.table.to_pylist()
    assert {(row["url"],): (round(row["count"]), round(2 * row["likes_centred"])) for row in rows} == expected
    as_sum = plan | {"measures": [{**plan["measures"][0], "kind": "sum"}]}
    totals = {key: row for key, row in bounded(as_events(EVENTS), as_sum).items() if row[0] > 1}
    assert {key: (users, 2 * total - 3 * users) for key, (users, total) in totals.items()} == expected


def test_a_mean_needs_half_of_the_noise_of_a_sum() -> None:
    asked: dict[str, Any] = {"user": "user_id", "by": "url", "c_u": 6, "epsilon": 1, "delta": 1e-6}
    columns: tuple[dict[str, Any], ...] = ({"sums": {"likes": (0, 5)}}, {"means": {"likes": (0, 5)}})
    total, mean = (gsh.publish(EVENTS, **asked, **each, weights={"likes": 2}).mechanism for each in columns)

    assert total.sigma == mean.sigma
    deviations = [each.aggregates.covariance[0][0] ** 0.5 for each in (total, mean) if each.aggregates is not None]
    assert deviations[1] == pytest.approx(deviations[0] / 2)


CENTS = EVENTS.append_column("paid", pa.array([Decimal(n).scaleb(-2) for n in range(300)], pa.decimal128(9, 2)))


def test_cents_are_published_exactly() -> None:
    """The noise is far below a cent, and so far above what doubles would lose that nothing of them can show."""
    paid = gsh.Aggregates(names=["paid"], covariance=[[1e-16]], sensitivity=gsh.box(lower=[0], upper=[2.5]))
    mechanism = gsh.Mechanism(c_u=6, tau=1, tau_star=1.5, sigma=0.01, aggregates=paid)
    asked: dict[str, Any] = {"user": "user_id", "by": "url", "c_u": 6, "units": {"paid": 0.01}}
    private = gsh.publish(CENTS, **asked, sums={"paid": (0, 2.5)}, mechanism=mechanism, _salt=PLAN.salt)

    expected = {key: row for key, row in bounded(as_events(CENTS), private.plan.to_json()).items() if row[0] > 1}
    assert private.table is not None
    assert {(row["url"],): round(row["paid"] * 100) for row in private.table.to_pylist()} == {
        key: cents for key, (_, cents) in expected.items()
    }
    assert all(abs(row["paid"] - round(row["paid"], 2)) < 1e-7 for row in private.table.to_pylist())


def test_the_range_of_cents_is_never_understated() -> None:
    """Three tenths are a little more than the double 0.3: a mechanism for 0.3 is not enough, and the error says so."""
    asked: dict[str, Any] = {"user": "user_id", "by": "url", "c_u": 6, "units": {"paid": 0.01}}
    private = gsh.publish(CENTS, **asked, sums={"paid": (0, 0.3)}, epsilon=1, delta=1e-6)
    assert private.certificate.to_dict()["bounds"]["columns"] == [
        {"name": "paid", "lower": 0, "upper": 0.30000000000000004, "kind": "sum", "unit": 0.01}
    ]

    small = gsh.calibrate(c_u=6, sums={"paid": (0, 0.3)}, epsilon=1, delta=1e-6).mechanism
    with pytest.raises(gsh.InvalidParameter, match=r"sums/paid: .* must have 0\.0 to 0\.30000000000000004"):
        gsh.publish(CENTS, **asked, sums={"paid": (0, 0.3)}, mechanism=small)


@pytest.mark.parametrize("name", ["private.parquet", "private.arrow", "private.arrows", "private.csv"])
def test_the_file_has_the_rows_the_certificate_and_the_plan(name: str, tmp_path: Path) -> None:
    private = gsh.publish(EVENTS, **ASKED, mechanism=CLEAR, to=tmp_path / name)

    if name.endswith("csv"):
        assert (tmp_path / name).read_bytes().startswith(b"url,day,count,likes,seconds")
        said = json.loads((tmp_path / f"{name}.certificate.json").read_bytes())
        assert private.certificate_at == f"in {tmp_path / name}.certificate.json"
    else:
        readers = {
            ".parquet": pq.read_table,
            ".arrow": pyarrow.feather.read_table,
            ".arrows": lambda path: pa.ipc.open_stream(path.read_bytes()).read_all(),
        }
        table = readers[Path(name).suffix](tmp_path / name)
        assert table.to_pylist() == private.table.to_pylist()
        said = json.loads(table.schema.metadata[b"certificate"])
    plan = Plan.from_json(json.loads((tmp_path / f"{name}.plan.json").read_bytes()))
    assert said == private.certificate
    assert said["bounds"]["enforced_by"] == "gsh.duckdb"
    assert said["bounds"]["plan_digest"] == plan.digest == private.plan.digest
    assert str(tmp_path / name) in private.summary()


def test_the_certificate_says_what_was_asked_and_that_nothing_keeps_count() -> None:
    private = gsh.publish(EVENTS, **TARGET, privacy_unit="device", unprotected=["c_u by a preview"])
    said = private.certificate

    assert said["budget"] is None
    assert said["privacy_unit"] == "device"
    assert said.unprotected == ("c_u by a preview",)
    assert (said["epsilon"], said["bounds"]["c_u"]) == (1, 6)
    assert 0.99e-6 < said["delta"] <= 1e-6
    assert [column["name"] for column in said["bounds"]["columns"]] == ["likes", "seconds"]
    assert "nothing keeps count" in private.summary()


def test_every_column_has_the_same_share_unless_weights_say_otherwise() -> None:
    def noise(**more: Any) -> list[float]:
        columns = gsh.publish(EVENTS, **TARGET, **more).certificate["mechanism"]["aggregates"]
        return [math.sqrt(row[j]) for j, row in enumerate(columns["covariance"])]

    even, weighted = noise(), noise(weights={"likes": 4})

    assert weighted[0] < even[0]
    assert weighted[1] > even[1]


def test_each_release_has_a_salt_of_its_own() -> None:
    salts = {gsh.publish(EVENTS, **TARGET).plan.salt for _ in range(2)}

    assert len(salts) == 2


def test_progress_has_stages() -> None:
    seen: list[Progress] = []
    gsh.publish(EVENTS, **TARGET, progress=seen.append, _buckets=2)

    stages = list(dict.fromkeys(each.stage for each in seen))
    assert stages == ["opening", "spooling", "bounding", "adding up", "noise"]
    assert [(each.done, each.total) for each in seen if each.stage == "bounding"] == [(0, 2), (1, 2)]


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"epsilon": 1, "mechanism": CLEAR, "delta": 1e-6}, "epsilon"),
        ({"mechanism": CLEAR, "weights": {"likes": 2}}, "weights"),
        ({"epsilon": 1}, "delta"),
        ({"delta": 1e-6}, "epsilon"),
        ({}, "epsilon"),
        ({"mechanism": CLEAR, "c_u": 5}, "mechanism/c_u"),
        ({"mechanism": CLEAR, "tau": 2}, "mechanism/tau"),
        ({"mechanism": CLEAR, "sums": {"likes": (0, 2)}, "units": None}, "mechanism/aggregates/names"),
        ({"mechanism": CLEAR, "sums": {"likes": (0, 3), "seconds": (0, 64)}}, "sums/likes"),
        ({"mechanism": CLEAR, "caps": {"likes": 4}}, "caps/likes"),
        ({"mechanism": CLEAR, "caps": None}, "caps/likes"),
        ({"mechanism": gsh.Mechanism(c_u=6, tau_star=9, sigma=1)}, "mechanism/aggregates"),
        ({"epsilon": 0, "delta": 1e-6}, "epsilon"),
        ({"mechanism": CLEAR, "most_sigma": 5}, "most_sigma"),
        ({"epsilon": 1, "delta": 1e-6, "budget": "web"}, "budget"),
        ({"epsilon": 1, "delta": 1e-6, "once": "week"}, "once"),
        ({"epsilon": 1, "delta": 1e-6, "service": 1, "budget": "web"}, "service"),
        ({"epsilon": 1, "delta": 1e-6, "to": "private.txt"}, "to"),
        ({"epsilon": 1, "delta": 1e-6, "to": "missing/private.csv"}, "to"),
        ({"epsilon": 1, "delta": 1e-6, "unprotected": ["x" * 201]}, "unprotected"),
        ({"epsilon": 1, "delta": 1e-6, "units": None}, "units/seconds"),
    ],
)
def test_mistakes_name_the_argument_before_anything_is_read(change: dict[str, Any], pointer: str) -> None:
    events = EVENTS if pointer.startswith("units") else "missing.parquet"
    with pytest.raises(gsh.InvalidParameter) as error:
        gsh.publish(events, **ASKED | change)

    assert error.value.pointer == pointer


@pytest.mark.parametrize("there", ["private.csv", "private.csv.certificate.json", "private.csv.plan.json"])
def test_nothing_that_exists_is_replaced(there: str, tmp_path: Path) -> None:
    (tmp_path / there).write_text("mine")

    with pytest.raises(gsh.InvalidParameter, match=r"^to: "):
        gsh.publish("missing.parquet", **TARGET, to=tmp_path / "private.csv")

    assert [path.name for path in tmp_path.iterdir()] == [there]
    gsh.publish(EVENTS, **TARGET, to=tmp_path / "private.csv", overwrite=True)
    assert (tmp_path / there).read_text() != "mine"


@pytest.mark.parametrize("name", ["private.parquet", "private.arrow", "private.csv"])
def test_a_target_that_is_damaged_is_refused_or_replaced(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"PAR1 and then nothing")

    with pytest.raises(gsh.InvalidParameter, match=r"^to: "):
        gsh.publish("missing.parquet", **TARGET, to=tmp_path / name)
    assert len(gsh.publish(EVENTS, **TARGET, to=tmp_path / name, overwrite=True).table.schema) == 5


def test_an_error_between_two_names_takes_the_first_one_back(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    link, calls = os.link, []

    def second_fails(partial: Path, target: Path) -> None:
        calls.append(target)
        if len(calls) == 2:
            raise KeyboardInterrupt
        link(partial, target)

    monkeypatch.setattr(os, "link", second_fails)
    with pytest.raises(KeyboardInterrupt):
        gsh.publish(EVENTS, **TARGET, to=tmp_path / "private.csv")

    assert len(calls) == 2
    assert list(tmp_path.iterdir()) == []


def test_events_without_users_publish_nothing_and_it_is_said() -> None:
    empty = EVENTS.set_column(0, "user_id", pa.nulls(300, pa.string()))

    for buckets in (None, 2):
        nothing = gsh.publish(empty, **TARGET, _buckets=buckets)
        assert len(nothing) == 0
        least = nothing.certificate["mechanism"]["tau_star"]
        assert nothing.summary().startswith(
            f"0 groups published (none reached the threshold of {least:.6g}: a larger ε or δ"
        )


@pytest.mark.parametrize("tables", [False, True], ids=["one table", "several"])
@pytest.mark.parametrize("target", [{"epsilon": 1e-9, "delta": 1e-9}, {"most_sigma": 3}], ids=str)
def test_a_target_that_hides_every_group_is_refused_before_anything_is_read(
    target: dict[str, Any], tables: bool
) -> None:
    asked = {"user": "user_id", "tables": {"days": gsh.Table(by=["day"], c_u=6)}} if tables else ASKED
    with pytest.raises(gsh.InfeasibleTarget, match=r"sigma would be .*, and most_sigma is") as error:
        gsh.publish("missing.parquet", **asked, **{"epsilon": 1, "delta": 1e-6} | target)

    assert error.value.pointer == "epsilon"


INTERRUPTED = """
import sys, duckdb, gsh
folder, stage, rows = sys.argv[1:]
connection = duckdb.connect()
connection.execute(f"CREATE VIEW events AS SELECT 'u' || range % 1000 AS user_id, 'p' || range % 100 AS url "
                   f"FROM range({rows})")
def tell(progress):
    if progress.stage == stage:
        print(stage, flush=True)
        if stage != "reading":
            sys.stdin.read()
try:
    gsh.publish("events", connection=connection, user="user_id", by=["url"], c_u=2, epsilon=1, delta=1e-6,
                to=folder + "/private.parquet", temporary=folder, progress=tell, _buckets=2)
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.parametrize(
    ("stage", "rows", "number"),
    [
        ("reading", 10**12, signal.SIGINT),
        ("bounding", 10**4, signal.SIGINT),
        ("bounding", 10**4, signal.SIGTERM),
        ("bounding", 10**4, signal.SIGHUP),
        ("writing", 10**4, signal.SIGINT),
    ],
)
def test_a_signal_leaves_nothing(stage: str, rows: int, number: signal.Signals, tmp_path: Path) -> None:
    """Neither half of an output nor raw data: while DuckDB reads events that never end, and with events on the disk."""
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, tmp_path, stage, str(rows)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(),
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().decode() == f"{stage}\n"
        spooled = list(tmp_path.rglob("_bucket=*"))
        process.send_signal(number)
        process.communicate(timeout=PATIENCE)

    assert bool(spooled) == (stage == "bounding")
    assert process.returncode == 128 + number
    assert list(tmp_path.iterdir()) == []


ODD: dict[str, list[Any]] = {
    "about": [{"source": "x"}],  # without a service nobody keeps it
    "unprotected": [5, "abc", [None], ["\ud800"]],
    "to": [5, b"x.csv", True],
    "overwrite": ["x", 1, None],
    "progress": [5, "tell"],
    "memory_limit": [5, "much", b"4GB"],
    "threads": [0, 2**70, True, "2"],
    "temporary": [1.5, 2**70, "missing"],
    "privacy_unit": [5, "\ud800"],
    "sums": [{"s": b"\x00\x01"}, {"s": None}, [("s", (0, 1))]],
    "by": [None, [], [5], "", ["k", "K"]],
    "user": [None, 5, ""],
    "c_u": [None, True, 1.0, "1", b"x", 10**19],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in ODD.items() for value in values])
def test_odd_arguments_are_named_before_anything_is_read(name: str, value: Any, tmp_path: Path) -> None:
    asked = {"user": "u", "by": "k", "c_u": 3, "epsilon": 1, "delta": 1e-6, "to": tmp_path / "private.csv"}
    with pytest.raises(gsh.InvalidParameter) as error:
        gsh.publish("missing.parquet", **{**asked, name: value})

    assert error.value.pointer.partition("/")[0] == name


def test_of_two_runs_with_one_target_one_is_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Both have checked that it does not exist. The second one changes nothing."""
    target = tmp_path / "private.parquet"
    asked = {**TARGET, "to": target}
    link, first = os.link, []

    def late(partial: Path, name: Path) -> None:
        if not first:
            first.append(None)
            first[0] = gsh.publish(EVENTS, **asked)
        link(partial, name)

    monkeypatch.setattr(os, "link", late)
    with pytest.raises(gsh.InvalidParameter, match=r"^to: "):
        gsh.publish(EVENTS, **asked)

    assert pq.read_table(target) == first[0].table
    assert sorted(path.name for path in tmp_path.iterdir()) == ["private.parquet", "private.parquet.plan.json"]
    assert Plan.from_json(json.loads((tmp_path / "private.parquet.plan.json").read_text())) == first[0].plan
