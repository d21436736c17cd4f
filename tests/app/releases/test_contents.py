"""The content digest of a release: the same in every format, and hidden until its answer can be read."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from app.releases import payments
from gsh.histogram.conversion import convert
from gsh.histogram.csv_format import header_of
from gsh.histogram.file_formats import MEDIA_TYPES
from gsh.histogram.formats import ANY_SIZE, read_table
from gsh.histogram.released_content import ReleasedContent, content_of
from gsh.histogram.roles import Roles
from tests.app.budgets.test_budgets import LIMIT, Bank
from tests.app.client import Json, problem_errors
from tests.app.ledger.cuts import BEFORE_KEY
from tests.app.releases.test_release_table import form
from tests.app.releases.test_tables import post_json
from tests.app.releases.test_unread_answers import Cut
from tests.gsh.histogram.uploads import as_stream

MECHANISM: Json = {"c_u": 1, "tau": 1, "tau_star": 500, "sigma": 20}
CSV = MEDIA_TYPES["csv"]


def digest(content: bytes, media_type: str, stated: Json) -> str:
    """That of the rows of a file, by the kinds that a certificate states."""
    given, source = ReleasedContent.from_json(stated), pa.py_buffer(content)
    if media_type == MEDIA_TYPES["json"]:
        sink = io.BytesIO()
        convert(source, "json", "arrow", sink)
        source, media_type = pa.py_buffer(sink.getvalue()), MEDIA_TYPES["arrow"]
    types: Any = dict.fromkeys(header_of(source), "string") if media_type == CSV else None
    _, table = read_table(source, ANY_SIZE, types, is_written_here=True)
    return content_of(table, given.roles, [each.kind for each in given.columns]).sha256


@pytest.mark.parametrize(
    "keys", [["a", None, "c"], [["a", 1], ["b", None], ["c", 3]], [1, 2.5, "c"], [["a"], ["b", 2], 3]], ids=str
)
@pytest.mark.parametrize("further", [{}, {"intervals": 0.9}], ids=str)
def test_groups_have_one_content_in_every_format(bank: Bank, keys: list[Any], further: Json) -> None:
    bank.put("web", LIMIT)
    dropped = "dropped" if isinstance(keys[0], str | int) else ["dropped", 9]
    groups = {"keys": [*keys, dropped], "counts": [900_000, 800_000, 700_000, 3]}
    body = {"mechanism": MECHANISM, "budget": "web", "groups": groups} | further
    answer = bank.request("POST", "/release", json=body, headers={"idempotency-key": "first"})
    assert answer.status_code == 200, answer.text
    stated = answer.json()["certificate"]["content"]

    assert stated["rows"] == 3
    for media_type in MEDIA_TYPES.values():
        stored = bank.get("/releases/first/answer", headers={"accept": media_type})
        assert digest(stored.content, media_type, stated) == stated["sha256"], media_type
    assert bank.get("/releases/first/certificate").json()["content"] == stated


@pytest.mark.parametrize("kind", ["arrow", "csv"])
def test_a_table_has_one_content_in_every_format(bank: Bank, kind: str) -> None:
    bank.put("web", LIMIT)
    days = pa.array([1, 2, None, 3], pa.date32())
    table = pa.table({"url": ["b", "", None, "d"], "day": days, "n": [10**6] * 3 + [2]})
    request: Json = {"mechanism": MECHANISM, "budget": "web", "key_columns": ["url", "day"], "count_column": "n"}
    content = as_stream(table)
    if kind == "csv":
        request["csv_types"] = {"url": "string", "day": "date", "n": "int64"}
        content = b'url,day,n\nb,1970-01-02,1000000\n"",1970-01-03,1000000\n,,1000000\nd,1970-01-04,2\n'
    answer = bank.request("POST", "/release/table", files=form(content, request), headers={"idempotency-key": "first"})
    assert answer.status_code == 200, answer.text
    stated = bank.get("/releases/first/certificate").json()["content"]

    assert [each["kind"] for each in stated["columns"]] == ["text", "date", "float"]
    for media_type in MEDIA_TYPES.values():
        stored = bank.get("/releases/first/answer", headers={"accept": media_type})
        rows = stored.content
        if media_type == MEDIA_TYPES["json"]:
            assert stored.json()["certificate"]["content"] == stated
            continue  # its columns have other names
        assert digest(rows, media_type, stated) == stated["sha256"], media_type


def test_each_table_has_its_content(bank: Bank) -> None:
    answer = post_json(bank, "first", budget="web").json()
    stated = {each["name"]: each["content"] for each in answer["certificate"]["tables"]}
    archive = zipfile.ZipFile(
        io.BytesIO(bank.get("/releases/first/answer", headers={"accept": "application/zip"}).content)
    )

    assert stated.keys() == {"by_url", "by_country"}
    for name, content in stated.items():
        assert digest(archive.read(f"{name}.parquet"), MEDIA_TYPES["parquet"], content) == content["sha256"]
    assert json.loads(archive.read("certificate.json"))["tables"] == answer["certificate"]["tables"]


def test_nobody_can_read_the_content_of_an_unread_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With it a guess of the first draw could be checked, and the second draw would cost nothing."""
    monkeypatch.setattr(payments, "_KEY_SECONDS", 0.0)
    service = Cut(str(tmp_path / "ledger.sqlite3"))
    try:
        assert service.request("PUT", "/budgets/web", json=LIMIT).status_code == 200
        service.connections.at = BEFORE_KEY
        problem_errors(service.release(), 503, "ledger-unavailable")
        assert "content" not in service.get("/releases/first/certificate").json()
        files = b"".join(path.read_bytes() for path in tmp_path.iterdir())
        assert b"gsh table 1" not in files

        drawn = service.release().json()["certificate"]["content"]
        assert service.get("/releases/first/certificate").json()["content"] == drawn
        assert service.get("/budgets/web/verify").json()["intact"] is True
    finally:
        service.close()


def test_a_commit_may_give_the_contents(bank: Bank) -> None:
    bank.put("web", LIMIT)
    opening = {"mechanism": MECHANISM, "budget": "web"}
    opened = bank.request("POST", "/releases", json=opening, headers={"idempotency-key": "spark"}).json()
    assert "content" not in opened["certificate"]
    content = content_of(pa.table({"url": ["a"], "n": [1.5]}), Roles(("url",), "n", ()))
    body = {"digest": "ab" * 32, "rows": 1, "contents": {"": content.to_json()}}

    wrong = bank.post("/releases/spark/commit", body | {"contents": {"by_url": content.to_json()}})
    assert "/contents" in {each["pointer"] for each in wrong.json()["errors"]}
    assert bank.post("/releases/spark/commit", body).status_code == 200

    assert bank.get("/releases/spark/certificate").json()["content"] == content.to_json()
    (entry, *_) = bank.get("/budgets/web/charges").json()["entries"]
    assert entry["details"]["contents_sha256"]
    assert bank.get("/budgets/web/verify").json()["intact"] is True
