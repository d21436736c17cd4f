"""gsh.verify: what is as it was signed is verified in every form, and every single change is refused and named."""

import json
import os
import random
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import gsh
from gsh.certificate import certificate
from gsh.cli import main
from gsh.histogram.archives import write_archive
from gsh.histogram.conversion import write_rows
from gsh.histogram.released_content import contents_of
from gsh.histogram.roles import Roles
from gsh.proof.keys import KeySet
from tests.gsh.proof.released import (
    CERTIFICATE,
    CHANGES,
    GAUSSIAN,
    KEYS,
    MECHANISM,
    OTHER,
    ROLES,
    TABLE,
    envelope_of,
    leaves,
    written,
)

TIMES = 1_700 if "THOROUGH" in os.environ else 12
KINDS = ("parquet", "arrow", "arrows", "csv")
NAMED = {
    "cell": ("rows", "columns"),
    "rows": ("rows",),
    "name": ("file", "columns", "rows"),
    "field": ("certificate/", "file", "rows", "columns"),
    "signature": ("signature", "envelope"),
    "signer": ("signature",),
}
"""How a fault begins that names each change."""


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_signed_is_verified_in_every_format(tmp_path: Path, kind: str) -> None:
    found = gsh.verify(written(tmp_path, kind), keys=KEYS)

    assert (found.state, found.faults) == ("verified", ())
    assert (found.issuer, found.key_id) == ("Example Org", next(iter(KEYS.keys)))
    assert found.certificate == CERTIFICATE


def test_the_order_of_rows_and_the_compression_do_not_matter(tmp_path: Path) -> None:
    path = written(tmp_path, "parquet", TABLE.take([2, 0, 3, 1]))

    assert gsh.verify(path, keys=KEYS).is_verified


def mutated(change: str, times: int, seed: int, folder: Path) -> int:
    """How many changes were accepted; each must be named."""
    draw, accepted = random.Random(seed), 0
    for _ in range(times):
        kind = draw.choice(("parquet", "csv")) if change != "name" else draw.choice(("parquet", "arrow", "csv"))
        found = gsh.verify(CHANGES[change](folder, kind, draw), keys=KEYS)
        accepted += found.is_verified
        assert found.faults
        assert any(fault.where.startswith(NAMED[change]) for fault in found.faults), (change, found.faults)
    return accepted


@pytest.mark.parametrize("change", CHANGES)
def test_every_single_change_is_refused_and_named(tmp_path: Path, change: str) -> None:
    """With THOROUGH, 10⁴ of them."""
    assert mutated(change, TIMES, 7, tmp_path) == 0


def test_a_changed_field_is_named_by_its_place(tmp_path: Path) -> None:
    changed = CERTIFICATE.to_dict()
    changed["delta"] /= 10
    changed["mechanism"]["sigma"] = 200.0
    found = gsh.verify(written(tmp_path, "parquet", said=json.dumps(changed)), keys=KEYS)

    assert {"certificate/delta", "certificate/mechanism/sigma"} <= {each.where for each in found.faults}


@pytest.mark.parametrize("field", ["delta", "mu", "mu_squared", "hazard", "delta_infinite", "epsilon"])
def test_a_signed_certificate_with_a_wrong_number_is_refused(tmp_path: Path, field: str) -> None:
    """An issuer may be mistaken, or lie: the numbers follow from the mechanism."""
    wrong = type(CERTIFICATE)({**CERTIFICATE, field: CERTIFICATE[field] / 2})
    found = gsh.verify(written(tmp_path, "parquet", said=wrong.to_json(), envelope=envelope_of(wrong)), keys=KEYS)

    assert found.key_id is not None
    named = {each.where for each in found.faults}
    assert named == {"certificate/delta"} if field == "epsilon" else f"certificate/{field}" in named


def test_without_keys_or_signature_nobody_vouches(tmp_path: Path) -> None:
    path = written(tmp_path, "parquet")
    (tmp_path / "private.parquet.sig.json").rename(tmp_path / "elsewhere.json")

    assert gsh.verify(path).state == "unsigned"
    assert [each.where for each in gsh.verify(path, keys=KEYS).faults] == ["signature"]
    assert gsh.verify(path, keys=KEYS, signature=tmp_path / "elsewhere.json").is_verified
    assert not gsh.verify(path, keys=KeySet.of([OTHER.public]), signature=tmp_path / "elsewhere.json").is_verified


def test_a_further_column_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, "parquet", TABLE)
    import pyarrow.parquet as pq  # noqa: PLC0415

    table = pq.read_table(path)
    pq.write_table(table.append_column("note", [["x"] * 4]), path)

    assert any("columns" in each.detail or each.where == "columns" for each in gsh.verify(path, keys=KEYS).faults)


def tables(folder: Path, kind: str = "parquet") -> Any:
    """A folder and an archive of two tables with one certificate."""
    by_url = TABLE
    by_day = pa.table({"day": pa.array([1, 2], pa.date32()), "n": [70.5, 80.25]})
    roles = {"by_url": ROLES, "by_day": Roles(("day",), "n", ())}
    drawn = {"by_url": by_url, "by_day": by_day}
    said = certificate({"by_url": MECHANISM, "by_day": GAUSSIAN}, epsilon=1, roles=roles)
    said = said.with_contents(contents_of(drawn, roles))
    made = folder / "private"
    made.mkdir()
    (made / "certificate.json").write_text(said.to_json())
    (made / "certificate.json.sig.json").write_text(envelope_of(said))
    for name, table in drawn.items():
        with (made / f"{name}.{kind}").open("wb") as sink:
            write_rows(table, roles[name], "csv" if kind == "csv" else "parquet", said.to_json(), sink, name)

    def write(name: str, sink: Any) -> None:
        write_rows(drawn[name], roles[name], "parquet", said.to_json(), sink, name)

    files: Any = {name: ("parquet", partial(write, name)) for name in drawn}
    with (folder / "private.zip").open("wb") as sink:
        write_archive(sink, files, said.to_json())
    (folder / "private.zip.sig.json").write_text(envelope_of(said))
    return made, folder / "private.zip"


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_several_tables_are_verified_together(tmp_path: Path, kind: str) -> None:
    folder, archive = tables(tmp_path, kind)

    assert gsh.verify(folder, keys=KEYS).faults == ()
    assert gsh.verify(archive, keys=KEYS).faults == ()
    (folder / f"by_day.{kind}").write_bytes((folder / f"by_url.{kind}").read_bytes())
    assert not gsh.verify(folder, keys=KEYS).is_verified


def test_a_lost_table_is_named(tmp_path: Path) -> None:
    folder, _ = tables(tmp_path)
    (folder / "by_day.parquet").unlink()

    (fault,) = gsh.verify(folder, keys=KEYS).faults
    assert "by_day" in fault.detail


def test_the_command_says_what_a_person_needs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, keys = written(tmp_path, "parquet"), tmp_path / "keys.json"
    keys.write_text(json.dumps(KEYS.to_json()))

    assert main(["verify", str(path), "--keys", str(keys)]) == 0
    said = capsys.readouterr().out
    assert "verified" in said
    assert "Example Org (https://gsh.example.org)" in said
    assert "no budget paid" in said
    assert main(["verify", str(path)]) == 1
    assert "cannot be checked without the public keys" in capsys.readouterr().out
    assert main(["verify", str(path), "--keys", str(keys), "--json"]) == 0
    (document,) = json.loads(capsys.readouterr().out)
    assert (document["verified"], document["differences"]) == (True, [])
    assert main(["verify"]) == 2
    assert "gsh ledger verify" in capsys.readouterr().err


def test_every_place_of_the_certificate_can_be_changed() -> None:
    assert len([*leaves(CERTIFICATE.to_dict())]) > 50
