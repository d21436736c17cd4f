"""Files that the service released are verified without it, in every format."""

import json
from pathlib import Path

import pytest

import gsh
from gsh.histogram.file_formats import MEDIA_TYPES
from tests.app.budgets.test_budgets import Bank
from tests.app.releases.test_tables import post_json

ENDINGS = {"parquet": "parquet", "arrow": "arrows", "arrow_file": "arrow", "csv": "csv", "json": "json"}
BODY = {
    "mechanism": {"c_u": 1, "tau": 1, "tau_star": 500, "sigma": 20},
    "budget": "web",
    "epsilon": 1,
    "groups": {"keys": [["a", 1], ["b", None], ["c", 3]], "counts": [90_000, 80_000, 3]},
}


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    return Bank(str(tmp_path / "ledger.sqlite3"))


@pytest.mark.parametrize("further", [{}, {"intervals": 0.9}], ids=str)
def test_every_format_of_an_answer_is_verified(bank: Bank, tmp_path: Path, further: dict[str, float]) -> None:
    assert (
        bank.request("POST", "/release", json=BODY | further, headers={"idempotency-key": "first"}).status_code == 200
    )
    keys = bank.get("/.well-known/gsh-keys.json").json()
    envelope = bank.get("/releases/first/certificate?signed=true").text
    certificate = bank.get("/releases/first/certificate").text

    for kind, ending in ENDINGS.items():
        path = tmp_path / f"private.{ending}"
        path.write_bytes(bank.get("/releases/first/answer", headers={"accept": MEDIA_TYPES[kind]}).content)  # type: ignore[index]
        path.with_name(f"{path.name}.sig.json").write_text(envelope)
        path.with_name(f"{path.name}.certificate.json").write_text(certificate)
        found = gsh.verify(path, keys=keys)
        assert (found.state, found.faults) == ("verified", ()), kind

    changed = json.loads((tmp_path / "private.json").read_text())
    changed["groups"]["counts"] = [each * 10 for each in changed["groups"]["counts"]]
    (tmp_path / "private.json").write_text(json.dumps(changed))
    assert {each.where for each in gsh.verify(tmp_path / "private.json", keys=keys).faults} >= {"rows"}
    bank.app.state.services.close_pools()


def test_an_archive_of_tables_is_verified(bank: Bank, tmp_path: Path) -> None:
    assert post_json(bank, "first", budget="web").status_code == 200
    path = tmp_path / "private.zip"
    path.write_bytes(bank.get("/releases/first/answer", headers={"accept": "application/zip"}).content)
    path.with_name("private.zip.sig.json").write_text(bank.get("/releases/first/certificate?signed=true").text)

    assert gsh.verify(path, keys=bank.get("/.well-known/gsh-keys.json").json()).faults == ()
    bank.app.state.services.close_pools()
