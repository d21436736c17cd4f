"""Means, ratios and rounded numbers from events to a reader who has only the file."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gsh
from benchmarks.published_means import LEVEL, flights, measured
from gsh.certificate import Certificate
from gsh.errors import FileError
from tests.gsh.events.tables import as_events
from tests.reference.bounding import bounded

pytestmark = pytest.mark.slow

RANDOM = np.random.default_rng(28)
ROWS = 20_000
EVENTS = pa.table(
    {
        "user_id": RANDOM.integers(0, 3000, ROWS).astype(str),
        "url": np.array([f"p{page}" for page in RANDOM.integers(0, 5, ROWS)]),
        "likes": RANDOM.integers(0, 3, ROWS),
        "seconds": np.where(RANDOM.random(ROWS) < 0.1, np.nan, RANDOM.exponential(50, ROWS)),
        "price": pa.array(RANDOM.integers(0, 900, ROWS)).cast(pa.decimal128(19, 0)),
    }
)
TABLE: dict[str, Any] = {
    "by": ["url"],
    "c_u": 5,
    "sums": {"likes": (0, 5), "price": (0, 900)},
    "events": {"views": 5},
    "means": {"seconds": (0, 300)},
    "units": {"seconds": 2**-4, "price": 0.1},
    "ratios": {"likes_per_view": ("likes", "views"), "likes_each": ("likes", "count")},
}
AIM: dict[str, Any] = {"user": "user_id", "epsilon": 1, "delta": 1e-6}
AVERAGES = [
    f"{name}{end}" for name in ("seconds_mean", "likes_per_view", "likes_each") for end in ("", "_low", "_high")
]


@pytest.mark.parametrize("is_rounded", [False, True])
@pytest.mark.parametrize("ending", ["parquet", "arrow", "arrows", "csv"])
def test_a_reader_of_the_file_gets_what_the_publisher_got(ending: str, is_rounded: bool, tmp_path: Path) -> None:
    """The columns of means and ratios, and all intervals, from the file and its certificate alone."""
    private = gsh.publish(EVENTS, **AIM, **TABLE, round=is_rounded, to=tmp_path / f"private.{ending}")
    found = gsh.read(tmp_path / f"private.{ending}")

    assert private.table.column_names[-9:] == AVERAGES
    assert found.table.equals(private.table)
    assert found.key_columns == ("url",)
    assert found.value_columns == ("likes", "price", "views", "seconds_centred")
    (mean,) = found.means().values()
    assert list(found.means()) == ["seconds"]
    assert list(found.ratios()) == ["likes_per_view", "likes_each"]
    for name, each in {"seconds_mean": mean, **found.ratios()}.items():
        assert found.table[name].to_pylist() == each.estimate.tolist()
        assert found.table[f"{name}_low"].to_pylist() == each.low.tolist()
        assert found.table[f"{name}_high"].to_pylist() == each.high.tolist()
        assert (found.means(level=0.5)["seconds"].low > mean.low).all()
    assert "seconds clipped to 0 … 300." in found.intervals_cover
    assert ("rounded" in found.certificate) is is_rounded


def test_rounded_numbers_are_multiples_of_their_units_and_intervals_are_wider() -> None:
    rounded = gsh.publish(EVENTS, **AIM, **TABLE, round=True)

    assert rounded.certificate["rounded"] == {
        "count": 1,
        "values": {"likes": 1, "price": 0.1, "views": 1, "seconds_centred": 2**-4},
    }
    for name in ("count", "likes", "views"):
        assert rounded.table.schema.field(name).type == pa.int64()
    assert all(repr(price).partition(".")[2] in "0123456789" for price in rounded.table["price"].to_pylist())
    assert all(float(16 * each).is_integer() for each in rounded.table["seconds_centred"].to_pylist())
    numbers = {name: rounded.table[name].to_numpy() for name in rounded.value_columns}
    plain = gsh.intervals(rounded.mechanism, counts=rounded.table["count"].to_numpy(), values=numbers)
    widened = rounded.intervals()
    assert (widened.counts.low < plain.counts.low).all()
    assert (widened.values["price"].high - plain.values["price"].high).tolist() == pytest.approx([0.05] * 5, abs=1e-6)
    assert (
        rounded.total().values["likes"].low
        < gsh.total(rounded.mechanism, counts=rounded.table["count"].to_numpy(), values=numbers).values["likes"].low
    )


def test_several_tables_have_their_own_means_and_rounding(tmp_path: Path) -> None:
    finer = gsh.Table(by=["url", "likes"], c_u=4, means={"seconds": (0, 100)}, units={"seconds": 1.0}, round=True)
    tables = {"by_url": gsh.Table(**TABLE | {"c_u": 4}), "finer": finer}
    private = gsh.publish(EVENTS, **AIM, tables=tables, rest=True, to=tmp_path / "private")
    found = gsh.read(tmp_path / "private")

    for name in tables:
        assert found[name].table.equals(private.tables[name])
        assert list(found[name].means()) == ["seconds"]
    assert private.tables["finer"].schema.field("count").type == pa.int64()
    assert private.tables["by_url"].schema.field("count").type == pa.float64()
    assert private.rest("by_url").column_names == ["url", "count_low", "count_estimate", "count_high"]
    assert "ratios" not in found.certificate.described["finer"]
    with pytest.raises(gsh.InvalidParameter, match=r"^tables/finer/means/seconds: "):
        gsh.publish(EVENTS, **AIM, tables=tables | {"finer": gsh.Table(by="url", c_u=1, means={"seconds": (1, 1)})})


def test_the_certificate_says_what_each_column_is() -> None:
    said = gsh.publish(EVENTS, **AIM, **TABLE).certificate

    kinds = {each["name"]: (each["kind"], each["unit"]) for each in said["bounds"]["columns"]}
    assert kinds == {
        "likes": ("sum", 1),
        "price": ("sum", 0.1),
        "views": ("events", 1),
        "seconds_centred": ("mean", 2**-4),
    }
    centred = said["bounds"]["columns"][-1]
    assert (centred["of"], centred["middle"], centred["lower"], centred["upper"]) == ("seconds", 150, -150, 150)
    assert said["ratios"] == {"likes_per_view": ["likes", "views"], "likes_each": ["likes", "count"]}
    assert Certificate.from_json(json.loads(said.to_json())) == said


@pytest.mark.parametrize(
    "change",
    [
        {"ratios": {"per": ["likes", "secrets"]}},
        {"ratios": {"per": ["likes"]}},
        {"ratios": {"per": ["likes", 3]}},
        {"rounded": {"count": 0, "values": {}}},
        {"rounded": {"count": 1, "values": {"likes": 1}}},
    ],
)
def test_a_certificate_about_other_columns_is_refused(change: dict[str, Any], tmp_path: Path) -> None:
    private = gsh.publish(EVENTS, **AIM, **TABLE, to=tmp_path / "private.csv")
    said = private.certificate.to_dict() | change
    (tmp_path / "private.csv.certificate.json").write_text(json.dumps(said))

    with pytest.raises(FileError, match="must have a certificate"):
        gsh.read(tmp_path / "private.csv")


def test_a_budget_pays_for_means_and_the_service_rounds(service: gsh.Client, budget: str, tmp_path: Path) -> None:
    """The certificate of the service says the same; a replay gives the same table, also where CSV was removed."""
    asked = AIM | TABLE | {"round": True, "service": service, "budget": budget, "once": f"{budget}-means"}
    private = gsh.publish(EVENTS, **asked, to=tmp_path / "private.csv")
    again = gsh.publish(EVENTS, **asked)

    assert again.is_replayed
    assert private.budget_use is not None
    assert private.budget_use == again.budget_use
    assert private.budget_use.budget == budget
    assert f"paid by the budget {budget}: 1/{private.budget_use.of} of it, " in private.summary()
    assert service.budgets.get(budget).more == private.budget_use.more
    assert again.table.equals(private.table)
    assert gsh.read(tmp_path / "private.csv").table.equals(private.table)
    here = gsh.publish(EVENTS, **AIM, **TABLE, round=True).certificate
    for name in ("rounded", "ratios"):
        assert private.certificate[name] == here[name]
    columns = ("columns", "intervals_cover")
    assert [private.certificate["bounds"][name] for name in columns] == [here["bounds"][name] for name in columns]
    kept = service.releases.get(asked["once"]).load()
    assert kept.table.column_names == private.table.column_names[:6]
    assert kept.means()["seconds"].low.tolist() == private.means()["seconds"].low.tolist()
    assert kept.intervals().counts.low.tolist() == private.intervals().counts.low.tolist()


def test_means_cover_the_bounded_ones_with_little_noise() -> None:
    """A user without a value counts as 0, and one above the range as its end. So the judge's sums say."""
    box = gsh.box(lower=[-150], upper=[150])
    columns = gsh.Aggregates(names=["seconds_centred"], covariance=[[1e-6]], sensitivity=box)
    clear = gsh.Mechanism(c_u=5, tau=1, tau_star=1.5, sigma=1e-3, aggregates=columns)
    asked: dict[str, Any] = {"user": "user_id", "by": "url", "c_u": 5, "means": {"seconds": (0, 300)}}
    private = gsh.publish(EVENTS, **asked, units={"seconds": 2**-4}, mechanism=clear)

    plan = private.plan.to_json()
    sums = bounded(as_events(EVENTS), plan | {"measures": [{**plan["measures"][0], "kind": "sum"}]})
    for row in private.table.to_pylist():
        users, units = sums[row["url"],]
        assert row["seconds_mean"] == pytest.approx(units / 16 / users, abs=1e-4)
        assert row["seconds_mean_low"] - 1e-4 <= units / 16 / users <= row["seconds_mean_high"] + 1e-4  # level 0.95


def test_intervals_cover_what_is_true_of_the_bounded_events() -> None:
    """From end to end, and rounded. The chance that a right program fails is below one in a million."""
    found = measured(flights(8_000), 4, is_rounded=True)

    least = LEVEL - 5 * (LEVEL * (1 - LEVEL) / found.groups) ** 0.5
    assert found.groups > 40
    assert min(found.bounded.values()) > least, found
