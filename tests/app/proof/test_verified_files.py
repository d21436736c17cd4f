"""Files that the service released are verified in every format: without it, and by it for everybody."""

import json
import zipfile
from collections.abc import Callable
from contextlib import ExitStack, suppress
from io import BytesIO
from pathlib import Path

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gsh
from app.errors import Busy
from gsh.cli import main
from gsh.histogram.file_formats import MEDIA_TYPES
from tests.app.budgets.test_budgets import Bank
from tests.app.client import Json, problem_errors
from tests.app.releases.test_tables import post_json
from tests.gsh.histogram.uploads import as_bytes

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


def posted(bank: Bank, files: list[Path], accept: str = "*/*", part: str = "file") -> httpx.Response:
    """The answer of POST /verify to these files."""
    parts = [(part, (path.name, path.read_bytes())) for path in files]
    return bank.request("POST", "/verify", files=parts, headers={"accept": accept})


@pytest.mark.parametrize("further", [{}, {"intervals": 0.9}], ids=str)
def test_every_format_of_an_answer_is_verified(bank: Bank, tmp_path: Path, further: dict[str, float]) -> None:
    assert (
        bank.request("POST", "/release", json=BODY | further, headers={"idempotency-key": "first"}).status_code == 200
    )
    keys = bank.get("/.well-known/gsh-keys.json").json()

    for kind, ending in ENDINGS.items():
        path = tmp_path / f"private.{ending}"
        path.write_bytes(bank.get("/releases/first/answer", headers={"accept": MEDIA_TYPES[kind]}).content)  # type: ignore[index]
        beside = [path]
        if kind == "csv":  # all others have both inside
            beside += [path.with_name(f"{path.name}.sig.json"), path.with_name(f"{path.name}.certificate.json")]
            beside[1].write_text(bank.get("/releases/first/certificate?signed=true").text)
            beside[2].write_text(bank.get("/releases/first/certificate").text)
        found = gsh.verify(path, keys=keys)
        assert (found.state, found.faults) == ("verified", ()), kind
        assert json.loads(posted(bank, beside).content) == found.to_dict() | {"file": path.name}

    changed = json.loads((tmp_path / "private.json").read_text())
    changed["groups"]["counts"] = [each * 10 for each in changed["groups"]["counts"]]
    (tmp_path / "private.json").write_text(json.dumps(changed))
    assert {each.where for each in gsh.verify(tmp_path / "private.json", keys=keys).faults} >= {"rows"}
    bank.app.state.services.close_pools()


def test_an_archive_of_tables_is_verified(bank: Bank, tmp_path: Path) -> None:
    assert post_json(bank, "first", budget="web").status_code == 200
    path = tmp_path / "private.zip"
    path.write_bytes(bank.get("/releases/first/answer", headers={"accept": "application/zip"}).content)

    assert gsh.verify(path, keys=bank.get("/.well-known/gsh-keys.json").json()).state == "verified"
    assert posted(bank, [path]).json()["state"] == "verified"
    one = tmp_path / "by_url.arrow"
    name = bank.get("/releases/first/certificate").json()["tables"][0]["name"]
    one.write_bytes(
        bank.get(f"/releases/first/answer?table={name}", headers={"accept": MEDIA_TYPES["arrow_file"]}).content
    )
    assert posted(bank, [one]).json()["state"] == "verified"
    bank.app.state.services.close_pools()


@pytest.fixture
def folder(bank: Bank, tmp_path: Path) -> Path:
    """A released Parquet file with its signature next to it."""
    assert bank.request("POST", "/release", json=BODY, headers={"idempotency-key": "first"}).status_code == 200
    content = bank.get("/releases/first/answer", headers={"accept": MEDIA_TYPES["parquet"]}).content
    table = pq.read_table(BytesIO(content))
    metadata = {name: text for name, text in table.schema.metadata.items() if name != b"gsh.signature"}
    pq.write_table(table.replace_schema_metadata(metadata), tmp_path / "private.parquet")
    signature = bank.get("/releases/first/certificate?signed=true").text  # with the record of the ledger
    (tmp_path / "private.parquet.sig.json").write_text(signature)
    return tmp_path


def test_the_page_says_who_signed_what_or_what_differs(bank: Bank, folder: Path) -> None:
    files = [folder / "private.parquet", folder / "private.parquet.sig.json"]
    page = posted(bank, files, "text/html")

    assert page.headers["cache-control"] == "no-store"
    assert "<b>private.parquet</b> is as it was released." in page.text
    assert "It was charged to the budget <b>web</b>" in page.text
    assert "For any one user" in page.text
    assert 'href="what-epsilon-means"' in page.text

    signature = json.loads(files[1].read_text())
    signature["signatures"][0]["sig"] = "A" * 86 + "=="
    files[1].write_text(json.dumps(signature))
    page = posted(bank, files, "text/html")
    assert "Do not rely on <b>private.parquet</b>" in page.text
    assert "<b>signature</b>" in page.text
    assert "For any one user" not in page.text  # no promise of a file that was changed

    assert (
        "Nobody has signed <b>&lt;i&gt;.parquet</b>"
        in posted(bank, [files[0].rename(folder / "<i>.parquet")], "text/html").text
    )
    bank.app.state.services.close_pools()


def test_a_form_without_one_released_file_is_refused(bank: Bank, folder: Path) -> None:
    file, signature = folder / "private.parquet", folder / "private.parquet.sig.json"
    other = folder / "other.parquet"
    other.write_bytes(file.read_bytes())

    def fault(files: list[Path], **further: str) -> dict[str, str]:
        return problem_errors(posted(bank, files, **further), 422, "invalid-request")

    assert "must be one release" in fault([signature, file, other])["/file"]
    assert "must be one release" in fault([file, other])["/file"]
    assert "another file name" in fault([file, file])["/file"]
    assert fault([file], part="table") == {"": "must be a form of parts called file only"}
    assert problem_errors(bank.post("/verify", {}), 415, "unsupported-media-type") is not None
    bank.app.state.services.close_pools()


def test_a_file_that_is_too_large_is_refused_before_it_is_read(tmp_path: Path) -> None:
    bank = Bank(str(tmp_path / "ledger.sqlite3"), max_verify_bytes=1024)
    (tmp_path / "private.parquet").write_bytes(bytes(2000))

    (fault,) = problem_errors(posted(bank, [tmp_path / "private.parquet"]), 413, "content-too-large").values()
    assert fault == "must have at most 1024 bytes; gsh verify has no such limit"


def test_releases_do_not_wait_for_files(bank: Bank, folder: Path) -> None:
    """All places of the pool that verifies are taken."""
    with ExitStack() as taken:
        with suppress(Busy):
            while True:
                taken.enter_context(bank.app.state.services.verifications._places.taken())
        problem_errors(posted(bank, [folder / "private.parquet"]), 503, "busy")
        again = BODY | {"groups": {"keys": ["k" * 20_000], "counts": [90_000]}}  # in a worker
        answer = bank.request("POST", "/release", json=again, headers={"idempotency-key": "second"})
        assert answer.status_code == 200
    bank.app.state.services.close_pools()


def test_an_uploaded_table_comes_back_signed_if_a_budget_paid(bank: Bank, tmp_path: Path) -> None:
    request = {"mechanism": BODY["mechanism"], "count_column": "count", "key_columns": ["url"]}
    table = as_bytes("parquet", pa.table({"url": ["a", "b"], "count": [90_000, 3]}))

    def state(paid: dict[str, str], key: dict[str, str]) -> str:
        files = {"request": (None, json.dumps(request | paid), "application/json"), "table": ("t.parquet", table)}
        answer = bank.request("POST", "/release/table", files=files, headers=key)
        assert answer.status_code == 200, answer.text
        (tmp_path / "private.parquet").write_bytes(answer.content)
        found: str = posted(bank, [tmp_path / "private.parquet"]).json()["state"]
        return found

    assert state({"budget": "web"}, {"idempotency-key": "first"}) == "verified"
    assert state({"budget": "web"}, {"idempotency-key": "first"}) == "verified"  # a replay
    assert state({}, {}) == "unsigned"
    bank.app.state.services.close_pools()


def test_the_entry_that_paid_is_found_in_a_bundle(bank: Bank, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle, keys = folder / "web.zip", folder / "keys.json"
    bundle.write_bytes(bank.get("/budgets/web/bundle").content)
    keys.write_text(bank.get("/.well-known/gsh-keys.json").text)
    file = folder / "private.parquet"
    assert main(["verify", str(file), "--keys", str(keys), "--bundle", str(bundle)]) == 0

    def changed(change: Callable[[Json], object]) -> list[str]:
        with zipfile.ZipFile(bundle) as archive:
            history = json.loads(archive.read("histories/web.json"))
        change(history["entries"][-1])
        with zipfile.ZipFile(folder / "other.zip", "w") as archive:
            archive.writestr("histories/web.json", json.dumps(history))
        return [each.where for each in gsh.verify(file, keys=keys, bundle=folder / "other.zip").faults]

    assert changed(dict.copy) == []
    assert changed(lambda entry: entry["details"].update(mu_squared=1e-9)) == ["entry/mu_squared"]
    assert changed(lambda entry: entry["details"].update(release_id="other")) == ["entry"]
    assert changed(lambda entry: entry.update(hash="0" * 64)) == ["entry"]  # its signature has the record
    with pytest.raises(gsh.FileError, match="must be an audit bundle"):
        gsh.verify(file, keys=keys, bundle=keys)
    bank.app.state.services.close_pools()


def test_a_signed_certificate_alone_is_verified_without_rows(bank: Bank, folder: Path) -> None:
    signature = folder / "private.parquet.sig.json"
    found = posted(bank, [signature]).json()
    assert (found["state"], found["has_rows"], found["differences"]) == ("verified", False, [])
    assert "without its table" in posted(bank, [signature], "text/html").text

    envelope = json.loads(signature.read_text())
    envelope["signatures"][0]["sig"] = "A" * 86 + "=="
    signature.write_text(json.dumps(envelope))
    assert [each["where"] for each in posted(bank, [signature]).json()["differences"]] == ["signature"]
    signature.write_text(json.dumps(envelope | {"payload": "e30="}))
    assert posted(bank, [signature]).json()["state"] == "refused"
    bank.app.state.services.close_pools()


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "<b>"},
        {"accounting": "<b>"},
        {"record": {"state": "<b>"}},
        {"bounds": {"enforced_by": "x"}},
        {"budget": {"promise": {"delta": "<b>"}}},
    ],
    ids=str,
)
def test_a_certificate_that_nobody_signed_is_shown_only_if_it_is_one(bank: Bank, tmp_path: Path, change: Json) -> None:
    answer = bank.request("POST", "/release", json=BODY, headers={"idempotency-key": "first"}).json()
    path = tmp_path / "private.json"
    del answer["signature"]
    path.write_text(json.dumps(answer))
    assert posted(bank, [path]).json()["state"] == "unsigned"
    for name, value in change.items():
        kept = answer["certificate"][name]
        answer["certificate"][name] = (kept or {}) | value if isinstance(value, dict) else value
    path.write_text(json.dumps(answer))

    page = posted(bank, [path], "text/html")

    assert page.status_code == 200
    assert "Do not rely on" in page.text
    assert posted(bank, [path]).json()["state"] == "refused"
    bank.app.state.services.close_pools()
