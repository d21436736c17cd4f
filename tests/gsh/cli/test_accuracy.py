"""gsh intervals and gsh utility print what the library says; intervals take the mechanism of the certificate."""

import functools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gsh
from gsh.certificate import certificate
from gsh.cli.errors import Code
from gsh.histogram.conversion import write_rows
from gsh.histogram.roles import Roles
from tests.gsh.cli.running import run

MECHANISM = gsh.Mechanism(c_u=3, tau=1, tau_star=120, sigma=20)
NUMBERS = "--c-u 3 --tau-star 120 --sigma 20"
COUNTS = [121.5, 150.0, 400.25]
ENDS = ("low", "estimate", "high")


def private(folder: Path, with_certificate: bool = True) -> Path:
    """A private table. The published counts are chosen, so that they can be compared."""
    metadata = {"certificate": certificate(MECHANISM).to_json()} if with_certificate else None
    table = pa.table({"url": ["a", "b", "c"], "users": COUNTS}).replace_schema_metadata(metadata)
    pq.write_table(table, folder / "private.parquet")
    return folder / "private.parquet"


def test_the_mechanism_is_the_one_of_the_certificate(tmp_path: Path) -> None:
    expected = gsh.intervals(MECHANISM, counts=COUNTS, level=0.9).counts

    answer = run(f"intervals {private(tmp_path)} --users users --level 0.9 --json").document

    assert answer["level"] == 0.9
    for end in ENDS:
        assert answer["intervals"]["users"][end] == getattr(expected, end).tolist()


def test_people_read_what_the_intervals_cover(tmp_path: Path) -> None:
    """On standard error, next to every form of the result; in JSON it is a member."""
    path = private(tmp_path)
    said = "Intervals cover the bounded numbers: each user in at most 3 groups. What bounding removed is not in them."

    assert run(f"intervals {path} --users users").errors == f"gsh: {said}\n"
    assert run(f"intervals {path} --users users -o {tmp_path / 'wide.csv'}").errors == f"gsh: {said}\n"
    as_json = run(f"intervals {path} --users users --json")
    assert (as_json.document["intervals_cover"], as_json.errors) == (said, "")
    other = run(f"intervals {path} --users users {NUMBERS} --json").document
    assert other["intervals_cover"] == said


def test_a_table_gets_three_columns_more_in_every_format(tmp_path: Path) -> None:
    given = private(tmp_path)
    expected = gsh.intervals(MECHANISM, counts=COUNTS).counts
    wide = ["url", "users", "users_low", "users_estimate", "users_high"]

    for name in ("parquet", "arrow", "csv"):
        assert run(f"intervals {given} --users users -o {tmp_path / f'wide.{name}'}").code == 0
    piped = run(f"intervals {given} --users users -o - --format csv")

    table = pq.read_table(tmp_path / "wide.parquet")
    assert table.column_names == wide
    assert np.array_equal(table["users_high"].to_numpy(), expected.high)
    assert table["users"].to_pylist() == COUNTS
    assert json.loads(table.schema.metadata[b"certificate"])["mechanism"]["sigma"] == 20
    assert piped.text == (tmp_path / "wide.csv").read_text()
    assert piped.text.splitlines()[0] == ",".join(wide)


def test_csv_and_a_table_without_a_certificate_take_the_mechanism_from_options(tmp_path: Path) -> None:
    bare = private(tmp_path, with_certificate=False)
    rows = "\n".join(f"{url},{count}" for url, count in zip("abc", COUNTS, strict=True))
    csv = f"url,users\n{rows}\n".encode()

    missing = run(f"intervals {bare} --users users")
    by_options = run(f"intervals {bare} --users users {NUMBERS} --json").document
    from_csv = run(f"intervals - --from csv --users users --keys url {NUMBERS} --json", stdin=csv).document

    assert (missing.code, "--mechanism" in missing.errors) == (Code.INVALID, True)
    assert by_options == from_csv


def test_further_columns_and_totals(tmp_path: Path) -> None:
    columns = gsh.Aggregates(names=["likes"], covariance=[[16.0]], sensitivity=gsh.box(lower=[0], upper=[1]))
    mechanism = gsh.Mechanism(c_u=3, tau=1, tau_star=120, sigma=20, aggregates=columns)
    metadata = {"certificate": certificate(mechanism).to_json()}
    likes = [10.0, 20.0, 30.0]
    table = pa.table({"url": ["a", "b", "c"], "users": COUNTS, "likes": likes}).replace_schema_metadata(metadata)
    pq.write_table(table, tmp_path / "private.parquet")
    found = gsh.total(mechanism, counts=COUNTS, values={"likes": likes})

    answer = run(f"intervals {tmp_path / 'private.parquet'} --users users --total --json").document
    text = run(f"intervals {tmp_path / 'private.parquet'} --users users --total").text

    assert answer["total"]["users"]["estimate"] == found.counts.estimate
    assert answer["total"]["likes"]["high"] == found.values["likes"].high
    assert (
        answer["intervals"]["likes"]["low"]
        == gsh.intervals(mechanism, counts=COUNTS, values={"likes": likes}).values["likes"].low.tolist()
    )
    assert [line.split()[0] for line in text.splitlines() if line][-2:] == ["users", "likes"]


def averaged(folder: Path) -> Path:
    columns = gsh.Aggregates(
        names=["seconds_centred", "likes", "views"],
        covariance=[[36e6, 0, 0], [0, 400, 0], [0, 0, 900]],
        sensitivity=gsh.box(lower=[-300, 0, 0], upper=[300, 5, 20]),
    )
    mechanism = gsh.Mechanism(c_u=3, tau=1, tau_star=120, sigma=20, aggregates=columns)
    metadata = {"certificate": certificate(mechanism).to_json()}
    table = pa.table({"url": ["a", "b"], "users": [150, 400], **AVERAGED}).replace_schema_metadata(metadata)
    pq.write_table(table, folder / "private.parquet")
    return folder / "private.parquet"


AVERAGED = {"seconds_centred": [-9000, -60000], "likes": [310, 95], "views": [1240, 50]}


def test_means_and_ratios_of_rounded_numbers(tmp_path: Path) -> None:
    """What the numbers do not say is null in JSON, NaN or ∞ in a table, and a word in text."""
    given = averaged(tmp_path)
    asked = f"intervals {given} --users users --mean seconds=0:600 --ratio per_view=likes/views --rounded"
    document = run(f"{asked} --json").document
    run(f"{asked} -o {tmp_path / 'wide.parquet'}")
    csv = run(f"{asked} -o - --format csv").text
    text = run(asked).text
    wide = pq.read_table(tmp_path / "wide.parquet")

    assert document["means"]["seconds"]["estimate"] == pytest.approx([239.175, 150.0], rel=1e-5)
    assert document["ratios"]["per_view"]["estimate"] == [0.25, None]
    assert np.array_equal(wide["per_view_estimate"], [0.25, math.nan], equal_nan=True)
    assert wide["per_view_high"].to_pylist()[1] == math.inf
    assert csv.splitlines()[2].split(",")[-2:] == ["nan", "inf"]
    assert wide["seconds_mean_low"].to_pylist() == document["means"]["seconds"]["low"]
    assert next(line for line in text.splitlines() if "none" in line).split()[0] == "b"
    assert (
        document["intervals"]["users"]["high"]
        > run(f"{asked.removesuffix(' --rounded')} --json").document["intervals"]["users"]["high"]
    )


def test_a_published_table_says_itself_what_it_has(tmp_path: Path) -> None:
    """Which column is the count, that it was rounded, its means and its ratios: without an option."""
    columns = {"user": [f"u{k}" for k in range(3000)], "url": ["a", "b", "c"] * 1000, "likes": [1, 2, 3] * 1000}
    events = pa.table(columns)
    asked: dict[str, Any] = {"user": "user", "by": "url", "c_u": 1, "epsilon": 1, "delta": 1e-6}
    asked |= {"means": {"likes": (0, 3)}, "events": {"views": 2}, "ratios": {"each": ("views", "count")}}
    found = gsh.publish(events, **asked, round=True, names={"count": "people"}, to=tmp_path / "private.parquet")

    document = run(f"intervals {tmp_path / 'private.parquet'} --json").document
    run(f"intervals {tmp_path / 'private.parquet'} -o {tmp_path / 'wide.parquet'}")

    assert document["intervals"]["people"]["low"] == found.intervals().counts.low.tolist()
    assert document["means"]["likes"]["high"] == found.means()["likes"].high.tolist()
    assert document["ratios"]["each"]["low"] == found.ratios()["each"].low.tolist()
    assert "likes clipped to 0 … 3" in document["intervals_cover"]
    assert pq.read_table(tmp_path / "wide.parquet")["likes_mean_low"].to_pylist() == document["means"]["likes"]["low"]
    gsh.publish(events, **asked, names={"count": "people"}, to=tmp_path / "private.csv")
    from_csv = run(f"intervals {tmp_path / 'private.csv'} --round --json").document
    assert from_csv["means"].keys() == {"likes"}
    assert "--round: must be omitted" in run(f"intervals {tmp_path / 'private.parquet'} --round").errors
    for option in ("--count people", "--users people"):
        assert run(f"intervals {tmp_path / 'private.parquet'} {option} --json").document == document


def test_the_count_has_the_name_of_its_column_too(tmp_path: Path) -> None:
    asked = f"intervals {averaged(tmp_path)} --users users --json"

    by_name, by_column = (run(f"{asked} --ratio x=likes/{name}").document["ratios"] for name in ("count", "users"))

    assert by_name == by_column


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--mean seconds=0", "--mean: must be NAME=LOW:HIGH"),
        ("--mean seconds=0:500", "--mean seconds: must be as wide"),
        ("--mean clicks=0:500", "--mean clicks: must be of a column"),
        ("--ratio x=likes", "--ratio: must be NAME=A/B"),
        ("--ratio x=likes/clicks", "--ratio x/1: must be of a column"),
        ("--sum-unit likes=0.5", "--sum-unit: must be omitted unless"),
        ("--rounded --sum-unit clicks=0.5", "--sum-unit clicks: must be"),
    ],
)
def test_wrong_means_ratios_and_units_are_refused(options: str, said: str, tmp_path: Path) -> None:
    answer = run(f"intervals {averaged(tmp_path)} --users users {options}")

    assert answer.code == Code.INVALID
    assert said in answer.errors


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--users clicks", "--count: must name"),
        ("--users url", "--count: must name the column of the counts, users"),
        ("--keys link", "--keys: must be the columns of the group key, url"),
        (f"--users url {NUMBERS}", "must be numbers"),
        ("--users users --level 1.5", "--level"),
        ("--users users --c-u 3 --tau-star 200 --sigma 20", "--counts"),
    ],
)
def test_what_no_mechanism_publishes_is_refused(options: str, said: str, tmp_path: Path) -> None:
    given = private(tmp_path)

    answer = run(f"intervals {given} {options} -o {tmp_path / 'wide.parquet'}")

    assert (answer.code, answer.output) == (Code.INVALID, b"")
    assert said in answer.errors
    assert not (tmp_path / "wide.parquet").exists()


def test_intervals_are_not_added_twice(tmp_path: Path) -> None:
    given = private(tmp_path)
    run(f"intervals {given} --users users -o {tmp_path / 'wide.parquet'}")

    answer = run(f"intervals {tmp_path / 'wide.parquet'} --users users -o {tmp_path / 'wider.parquet'}")

    assert answer.code == Code.INVALID
    assert "users_low already" in answer.errors


SIZES = [0, 20, 80, 110, 125, 300]


def test_the_numbers_are_those_of_the_library(tmp_path: Path) -> None:
    table = tmp_path / "groups.parquet"
    pq.write_table(pa.table({"url": list("abcdef"), "users": SIZES}), table)
    mechanism = gsh.Mechanism(c_u=3, tau=1, tau_star=120, sigma=20)
    expected = gsh.utility(mechanism, sizes=SIZES[1:])
    csv = b"url,users\n" + b"".join(b"%c,%d\n" % (97 + place, size) for place, size in enumerate(SIZES))

    answer = run(f"utility {table} --users users {NUMBERS} --json")
    piped = run(f"utility - --from csv --users users --keys url {NUMBERS} --json", stdin=csv)
    text = run(f"utility {table} --users users {NUMBERS}").text

    for name in ("groups", "volume", "false_share", "all_groups", "groups_deviation"):
        assert answer.document[name] == getattr(expected, name)
    assert answer.document["relative_errors"] == list(expected.relative_errors or ())
    assert piped.document == answer.document
    assert "not private" in answer.errors
    assert text.splitlines()[1].split()[:2] == ["groups", f"{expected.groups:.6g}"]


def test_a_wrong_column_is_refused(tmp_path: Path) -> None:
    table = tmp_path / "groups.parquet"
    pq.write_table(pa.table({"url": ["a"], "users": [1.5]}), table)

    for column in ("users", "url", "clicks"):
        answer = run(f"utility {table} --users {column} {NUMBERS}")
        assert (answer.code, answer.output) == (Code.INVALID, b"")
        assert answer.errors.startswith("gsh: --count: must")


TABLES = {"by_url": MECHANISM, "by_country": gsh.PlainGaussian(c_u=1, sigma=7.5)}
COUNTRIES = [-3.5, 12.0, 4000.25]


@functools.cache
def promised() -> str:
    """The same certificate for all tables."""
    return certificate(TABLES).to_json()


def published(folder: Path, name: str, ending: str = "parquet") -> Path:
    """A table that is one of two, as gsh publish --tables writes it."""
    key, counts = ("url", COUNTS) if name == "by_url" else ("country", COUNTRIES)
    table = pa.table({key: ["a", "b", "c"], "count": counts})
    path = folder / f"{name}.{ending}"
    with path.open("wb") as sink:
        promise = promised()
        write_rows(table, Roles((key,), "count", ()), "csv" if ending == "csv" else "parquet", promise, sink, name)
    (folder / "certificate.json").write_text(promise)
    return path


@pytest.mark.parametrize("name", TABLES)
def test_one_of_several_tables_has_its_own_mechanism(name: str, tmp_path: Path) -> None:
    """The file says which table it is. Public groups have intervals without a threshold."""
    path, other = published(tmp_path, name), tmp_path / "wide.parquet"
    counts = COUNTS if name == "by_url" else COUNTRIES
    expected = gsh.intervals(TABLES[name], counts=counts).counts
    whole = gsh.total(TABLES[name], counts=counts).counts

    ran = run(f"intervals {path} --users count --keys {'url' if name == 'by_url' else 'country'} --total --json")
    assert ran.code == 0, ran.errors
    for end in ENDS:
        assert ran.document["intervals"]["count"][end] == getattr(expected, end).tolist()
    assert ran.document["total"]["count"]["estimate"] == whole.estimate
    promise = tmp_path / "certificate.json"
    for given in (f"--mechanism {promise}", f"--mechanism {promise} --table {name}", f"--table {name}"):
        assert run(f"intervals {path} --users count --total --json {given}").document == ran.document
    assert run(f"intervals {path} --users count -o {other}").code == 0
    for each in TABLES:
        published(tmp_path, each)
    assert run(f"intervals {tmp_path} --table {name} --total --json").document == ran.document
    metadata = pq.read_table(other).schema.metadata
    assert metadata[b"table"].decode() == name
    assert json.loads(metadata[b"certificate"])["tables"][1]["name"] == "by_country"


def test_csv_of_several_tables_needs_the_name_of_its_table(tmp_path: Path) -> None:
    path = published(tmp_path, "by_url", "csv")
    command = f"intervals {path} --users count --keys url --mechanism {tmp_path / 'certificate.json'} --json"

    missing = run(command)

    assert (missing.code, missing.output) == (Code.INVALID, b"")
    assert "has the tables by_url, by_country (hint: add --table NAME" in missing.errors
    found = run(f"{command} --table by_url").document
    assert found["intervals"]["count"]["high"] == gsh.intervals(MECHANISM, counts=COUNTS).counts.high.tolist()


@pytest.mark.parametrize(
    ("file", "arguments", "said"),
    [
        ("by_url", "--table by_country", "--table: the file says that it is the table by_url"),
        ("by_url", "--table nothing", "--table: the file says that it is the table by_url"),
        ("rest", "", "rest.parquet: must be one of the tables of its certificate: by_url, by_country"),
        ("", "", "has the tables by_url, by_country (hint: add --table NAME"),
        ("", "--table nothing", "--table: must be one of the tables by_url, by_country"),
        ("by_url", f"--table by_url {NUMBERS}", "--table: is for several tables"),
    ],
)
def test_a_table_that_is_not_the_file_s_is_refused(file: str, arguments: str, said: str, tmp_path: Path) -> None:
    for each in TABLES:
        published(tmp_path, each)
    path = published(tmp_path, file) if file else tmp_path

    answer = run(f"intervals {path} --users count {arguments}")

    assert (answer.code, answer.output) == (Code.INVALID, b"")
    assert said in answer.errors


def test_the_utility_is_that_of_one_table_with_thresholds(tmp_path: Path) -> None:
    published(tmp_path, "by_url")
    pq.write_table(pa.table({"url": ["a", "b"], "users": [80, 300]}), tmp_path / "groups.parquet")
    command = f"utility {tmp_path / 'groups.parquet'} --users users --mechanism {tmp_path / 'certificate.json'} --json"

    assert run(f"{command} --table by_url").document["groups"] == gsh.utility(MECHANISM, sizes=[80, 300]).groups
    assert "--table NAME" in run(command).errors
    assert "--mechanism: must have thresholds" in run(f"{command} --table by_country").errors
