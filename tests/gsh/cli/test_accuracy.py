"""gsh intervals and gsh utility print what the library says; intervals take the mechanism of the certificate."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gsh
from gsh.certificate import certificate
from gsh.cli.errors import Code
from tests.gsh.cli.running import run

MECHANISM = gsh.Mechanism(c_u=3, tau=1, tau_star=120, sigma=20)
NUMBERS = "--c-u 3 --tau-star 120 --sigma 20"
COUNTS = [121.5, 150.0, 400.25]
ENDS = ("low", "estimate", "high")


def private(folder: Path, with_certificate: bool = True) -> Path:
    """A private table. The published counts are chosen, so that they can be compared."""
    metadata = {"certificate": json.dumps(certificate(MECHANISM))} if with_certificate else None
    table = pa.table({"url": ["a", "b", "c"], "users": COUNTS}).replace_schema_metadata(metadata)
    pq.write_table(table, folder / "private.parquet")
    return folder / "private.parquet"


def test_the_mechanism_is_the_one_of_the_certificate(tmp_path: Path) -> None:
    expected = gsh.intervals(MECHANISM, counts=COUNTS, level=0.9).counts

    answer = run(f"intervals {private(tmp_path)} --users users --level 0.9 --json").document

    assert answer["level"] == 0.9
    for end in ENDS:
        assert answer["intervals"]["users"][end] == getattr(expected, end).tolist()


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
    metadata = {"certificate": json.dumps(certificate(mechanism))}
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


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--users clicks", "--users: must name"),
        ("--users url", "must be numbers"),
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
        assert answer.errors.startswith("gsh: --users: must")
