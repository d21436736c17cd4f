"""gsh release in this process: the library's release, in every format, with its certificate, whole or not at all."""

import json
import os
import re
import stat
from pathlib import Path
from typing import Any

import jsonschema_rs
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import gsh
from tests.gsh.cli.running import GROUPS, ROOT, groups_file, run
from tests.gsh.histogram.uploads import as_parquet, as_stream, from_bytes

MECHANISM = "--c-u 3 --tau-star 120 --sigma 20"
ROLES = "--users users --keys url,country"
KEPT = [("a.org", "US"), ("b.org", "FR")]
SCHEMA = json.loads((ROOT / "openapi" / "certificate.schema.json").read_text())


def rows(table: pa.Table) -> list[tuple[str, str]]:
    return list(zip(table["url"].to_pylist(), table["country"].to_pylist(), strict=True))


def read(path: Path) -> pa.Table:
    if path.suffix == ".csv":
        return pa.csv.read_csv(path)
    if path.suffix == ".arrows":
        return pa.ipc.open_stream(path.read_bytes()).read_all()
    return pq.read_table(path) if path.suffix == ".parquet" else pa.ipc.open_file(path.read_bytes()).read_all()


def certificate_in(table: pa.Table) -> Any:
    return json.loads(table.schema.metadata[b"certificate"])


@pytest.mark.parametrize("into", ["parquet", "arrow", "arrows", "csv"])
@pytest.mark.parametrize("source", ["parquet", "arrow", "arrows", "csv"])
def test_every_format_becomes_every_other(source: str, into: str, tmp_path: Path) -> None:
    given, private, aside = tmp_path / f"in.{source}", tmp_path / f"out.{into}", tmp_path / "certificate.json"
    if source == "csv":
        pa.csv.write_csv(GROUPS, given)
    elif source == "parquet":
        pq.write_table(GROUPS, given)
    else:
        new = pa.ipc.new_file if source == "arrow" else pa.ipc.new_stream
        with new(given, GROUPS.schema) as writer:
            writer.write_table(GROUPS)

    answer = run(f"release {given} {ROLES} {MECHANISM} --epsilon 1 -o {private} --certificate {aside} --json")

    assert (answer.code, answer.errors) == (0, "")
    released = read(private)
    assert rows(released) == KEPT
    for noisy, true in zip(released["users"].to_pylist(), (2 * 10**7, 10**7), strict=True):
        assert abs(noisy - true) < 1000
    promise = json.loads(aside.read_text())
    said = {"output": str(private), "groups": 2, "is_replayed": False, "released_at": None, "certificate": promise}
    said["budget_use"] = None
    assert answer.document == said
    if into != "csv":
        assert certificate_in(released) == promise


def test_the_certificate_is_a_certificate_of_the_mechanism(tmp_path: Path) -> None:
    private = tmp_path / "private.parquet"
    assert (
        run(f"release {groups_file(tmp_path)} {ROLES} {MECHANISM} --epsilon 1 --unprotected c_u -o {private}").code == 0
    )
    promise = certificate_in(read(private))

    jsonschema_rs.validate(SCHEMA, promise)
    mechanism = gsh.Mechanism(c_u=3, tau=1, tau_star=120, sigma=20)
    assert (promise["epsilon"], promise["delta"]) == (1.0, gsh.exact(mechanism, epsilon=1).delta)
    assert promise["unprotected"] == ["c_u"]
    assert promise["budget"] is None
    again_there = f"release {groups_file(tmp_path)} {ROLES} {MECHANISM} -o {private} --force"
    assert run(f"{again_there} --unprotected nothing").code == 0
    assert certificate_in(read(private))["unprotected"] == []
    refused = run(f"{again_there} --about source=views")  # without a service nobody keeps it
    assert (refused.code, "--about" in refused.errors) == (2, True)
    # It can be used as a mechanism again.
    again = run("account", "--mechanism", "-", "--epsilon", 1, "--json", stdin=json.dumps(promise).encode())
    assert again.document["points"][0]["delta"] == promise["delta"]


def test_tables_go_through_pipes(tmp_path: Path) -> None:
    """From standard input, whose format its first bytes show, to standard output in the same format."""
    for posted in (as_parquet(GROUPS), as_stream(GROUPS)):
        answer = run(f"release - {ROLES} {MECHANISM} -o -", stdin=posted)
        assert answer.code == 0
        assert rows(from_bytes(answer.output)) == KEPT
        assert "certificate" in {name.decode() for name in from_bytes(answer.output).schema.metadata}

    aside = tmp_path / "certificate.json"
    piped = b"url,country,users\na.org,US,20000000\n"
    answer = run(f"release - --from csv {ROLES} {MECHANISM} -o - --certificate {aside}", stdin=piped)
    assert answer.text.splitlines()[0] == "url,country,users"
    assert answer.text.splitlines()[1].startswith("a.org,US,")


def test_further_columns_come_from_the_mechanism(tmp_path: Path) -> None:
    columns = gsh.Aggregates(names=["likes"], covariance=[[4.0]], sensitivity=gsh.box(lower=[0], upper=[1]))
    mechanism = {
        "c_u": 3,
        "tau": 1,
        "tau_star": 120,
        "sigma": 20,
        "aggregates": {"names": ["likes"], "covariance": [[4.0]]}
        | {"sensitivity": {"kind": "box", "lower": [0.0], "upper": [1.0]}},
    }
    table = tmp_path / "in.csv"
    table.write_text("day,users,likes\n2026-11-16,1000000,500000\n")
    (tmp_path / "mechanism.json").write_text(json.dumps(mechanism))
    private = tmp_path / "private.parquet"

    roles = "--users users --keys day --type day=date"
    answer = run(f"release {table} {roles} --mechanism {tmp_path / 'mechanism.json'} -o {private}")

    assert answer.code == 0, answer.errors
    released = read(private)
    assert released.schema.types == [pa.date32(), pa.float64(), pa.float64()]
    assert abs(released["likes"][0].as_py() - 500000) < 1000
    assert certificate_in(released)["mu_0"] == columns.mu_0


def test_an_output_that_exists_is_kept_unless_forced(tmp_path: Path) -> None:
    private = tmp_path / "private.parquet"
    private.write_text("kept")
    command = f"release {groups_file(tmp_path)} {ROLES} {MECHANISM} -o {private}"

    refused = run(command)
    assert (refused.code, private.read_text()) == (2, "kept")
    assert "--force" in refused.errors

    assert run(f"{command} --force").code == 0
    assert rows(read(private)) == KEPT


def test_a_link_stays_and_what_it_leads_to_is_replaced(tmp_path: Path) -> None:
    target, link = tmp_path / "target.parquet", tmp_path / "private.parquet"
    target.write_text("")
    link.symlink_to(target)

    assert run(f"release {groups_file(tmp_path)} {ROLES} {MECHANISM} -o {link} --force").code == 0

    assert link.is_symlink()
    assert rows(read(target)) == KEPT


def test_a_named_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    """So are terminals and /dev/null, also with --force."""
    pipe = tmp_path / "certificate.json"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        outputs = f"-o {tmp_path / 'private.parquet'} --certificate {pipe} --force"
        answer = run(f"release {groups_file(tmp_path)} {ROLES} {MECHANISM} {outputs}")
        content = os.read(reader, 1 << 16)
    finally:
        os.close(reader)

    assert answer.code == 0
    jsonschema_rs.validate(SCHEMA, json.loads(content))
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("--keys url", "no columns other than"),
        ("--users clicks", "--count: must name exactly one column"),
        ("--keys url,url", "--keys: must be unique"),
        ("--users url --keys users,country", "--count: must"),
        ("--type users=words", "--type: must be"),
        ("--epsilon 1 --delta 1e-6", "at most one of epsilon and delta"),
    ],
)
def test_a_refused_table_leaves_no_file(change: str, said: str, tmp_path: Path) -> None:
    given = groups_file(tmp_path)

    answer = run(f"release {given} {ROLES} {MECHANISM} -o {tmp_path / 'private.parquet'} {change}")

    assert answer.code == 2
    assert said in answer.errors
    assert answer.errors.count("\n") == 1
    assert not any(key in answer.errors for key in ("a.org", "b.org", "c.org", str(10**7)))
    assert os.listdir(tmp_path) == [given.name]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (
            f"release {{}} {MECHANISM} --keys urll,country --users users -o {{}}.parquet",
            "--keys: must name exactly one",
        ),
        (f"release {{}} {MECHANISM} --keys url,country --users user -o {{}}.parquet", "--count: must name exactly one"),
        (f"release {{}} {MECHANISM} --keys url --users users -o {{}}.parquet", "--keys: must name all columns"),
        (f"intervals {{}} {MECHANISM} --keys url,country --users user", "--count: must name exactly one column"),
        (f"intervals {{}} {MECHANISM} --keys urll --users users", "--keys: must name exactly one column"),
        (f"utility {{}} {MECHANISM} --keys url,country --users user", "--count: must name exactly one column"),
    ],
)
def test_a_wrong_column_of_csv_is_named_by_its_option_with_the_columns_that_there_are(
    command: str, said: str, tmp_path: Path
) -> None:
    """Types that nobody declared are no fault of --type."""
    given = tmp_path / "groups.csv"
    given.write_text("url,country,users\na.org,US,100\n")

    answer = run(command.replace("{}", str(given)))

    assert (answer.code, answer.output) == (2, b"")
    assert answer.errors.startswith(f"gsh: {said}")
    names = re.search(r"\(hint: (.*)\)", answer.errors)
    assert names is not None
    assert "country" in names[1]
    assert "a.org" not in answer.errors
    assert os.listdir(tmp_path) == [given.name]


@pytest.mark.parametrize(("declared", "option"), [("", "--count"), ("--type users=int64", "--type users")])
def test_a_wrong_cell_is_named_by_the_option_that_says_its_type(declared: str, option: str, tmp_path: Path) -> None:
    given = tmp_path / "groups.csv"
    given.write_text("url,country,users\na.org,US,many\n")

    answer = run(f"release {given} {ROLES} {MECHANISM} -o {tmp_path / 'o.parquet'} {declared}")

    assert answer.code == 2
    assert answer.errors.startswith(f"gsh: {option}: must be the type of all cells")


def test_nothing_is_released_without_a_certificate(tmp_path: Path) -> None:
    given = groups_file(tmp_path)
    for output in (f"-o {tmp_path / 'private.csv'}", "-o - --format csv"):
        answer = run(f"release {given} {ROLES} {MECHANISM} {output}")
        assert (answer.code, answer.output) == (2, b"")
        assert "add --certificate FILE" in answer.errors
    assert os.listdir(tmp_path) == [given.name]


def test_one_pipe_has_one_content(tmp_path: Path) -> None:
    given = groups_file(tmp_path)
    for command, said in (
        (f"release - {ROLES} --mechanism - -o {tmp_path / 'x.parquet'}", "only one of TABLE and --mechanism can be -"),
        (
            f"release {given} {ROLES} {MECHANISM} -o - --certificate -",
            "only one of --output and --certificate can be -",
        ),
        (f"release {given} {ROLES} {MECHANISM} -o - --json", "--json: must be omitted with --output -"),
    ):
        answer = run(command)
        assert (answer.code, answer.output) == (2, b"")
        assert answer.errors.startswith(f"gsh: {said}")
