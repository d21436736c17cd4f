"""gsh utility prints what the library expects, and says that it is not private."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import gsh
from gsh.cli.errors import Code
from tests.gsh.cli.running import run

NUMBERS = "--c-u 3 --tau-star 120 --sigma 20"
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
