"""Releases as resources: a restarted job gets its answer, in any format, with a certificate that stands alone."""

import asyncio
import base64
import gzip
import hashlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import jsonschema_rs
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import yaml

from app.ledger.upkeep import Tidying
from tests.app.budgets.test_budgets import LIMIT, SECRET
from tests.app.client import CASE_STUDY, Client, Json, problem_errors
from tests.gsh.histogram.uploads import as_parquet, as_stream, from_bytes

MECHANISM = {"c_u": 3, "tau": 1, "tau_star": 120, "sigma": 20}
COLUMNS = MECHANISM | {
    "aggregates": {
        "names": ["likes"],
        "covariance": [[400]],
        "sensitivity": {"kind": "box", "lower": [0], "upper": [1]},
    }
}
GROUPS = {"keys": ["b", "a", "c"], "counts": [5000, 4000, 2], "values": {"likes": [300, 200, 1]}}
BODY: Json = {"mechanism": COLUMNS, "epsilon": 1, "budget": "web", "groups": GROUPS}
TABLE = pa.table({"url": ["b", "a", "c"], "users": [5000, 4000, 2], "likes": [300.0, 200.0, 1.0]})
REQUEST: Json = {
    "mechanism": COLUMNS,
    "epsilon": 1,
    "budget": "web",
    "key_columns": ["url"],
    "count_column": "users",
}
CERTIFICATE_SCHEMA = json.loads((Path(__file__).parents[3] / "openapi" / "certificate.schema.json").read_text())


class Platform(Client):
    """A data platform with a budget."""

    def release(self, key: str | None, body: Json = BODY, **headers: str) -> httpx.Response:
        named = {} if key is None else {"idempotency-key": key}
        return self.request("POST", "/release", json=body, headers=named | headers)

    def table(self, key: str | None, content: bytes, request: Json = REQUEST) -> httpx.Response:
        files = {"request": (None, json.dumps(request)), "table": ("table", content)}
        return self.request(
            "POST", "/release/table", files=files, headers={} if key is None else {"idempotency-key": key}
        )

    def open(self, key: str, **changes: Any) -> httpx.Response:
        body = {"mechanism": MECHANISM, "budget": "web", "epsilon": 1} | changes
        return self.request("POST", "/releases", json=body, headers={"idempotency-key": key})

    def commit(self, key: str, digest: str, rows: int | None = None) -> httpx.Response:
        return self.request("POST", f"/releases/{key}/commit", json={"digest": digest, "rows": rows})

    def charges(self) -> int:
        spent: int = self.get("/budgets/web").json()["spent"]["releases"]
        return spent


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Platform]:
    made = Platform(ledger=str(tmp_path / "ledger.sqlite3"), ledger_secret=SECRET)
    made.request("PUT", "/budgets/web", json=LIMIT | {"epsilon": 20})
    yield made
    made.app.state.services.ledger_pool.close()
    made.app.state.services.close_pools()


def permuted(groups: Json, order: list[int]) -> Json:
    return {
        "keys": [groups["keys"][row] for row in order],
        "counts": [groups["counts"][row] for row in order],
        "values": {name: [column[row] for row in order] for name, column in groups["values"].items()},
    }


def test_a_restarted_job_gets_its_answer_whatever_the_order_of_its_groups(platform: Platform) -> None:
    first = platform.release("week-46")
    assert "idempotency-replayed" not in first.headers
    bodies = (
        BODY,
        BODY | {"groups": permuted(GROUPS, [2, 0, 1])},
        BODY | {"description": "again", "labels": ["retry"], "provenance": {"enforced_by": "caller"}},
        {"groups": GROUPS, "budget": "web", "epsilon": 1.0, "mechanism": COLUMNS | {"sigma": 20.0, "tau_star": 120.0}},
    )
    for body in bodies:
        again = platform.release("week-46", body)
        assert again.content == first.content
        assert again.headers["idempotency-replayed"] == "true"
    spaced = platform.request(
        "POST",
        "/release",
        content=json.dumps(BODY, indent=3).encode(),
        headers={"idempotency-key": '"week-46"', "content-type": "application/json"},
    )
    assert spaced.content == first.content
    assert platform.charges() == 1


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": 0.5},
        {"mechanism": COLUMNS | {"sigma": 21}},
        {"groups": permuted(GROUPS, [0, 1])},
        {"groups": GROUPS | {"counts": [5000, 4000, 3]}},
        {"groups": GROUPS | {"keys": ["b", "a", "d"]}},
        {"groups": GROUPS | {"values": {"likes": [300, 200, 2]}}},
    ],
)
def test_other_content_under_a_used_key_is_refused_and_the_release_is_named(platform: Platform, change: Json) -> None:
    first = platform.release("week-46")

    refused = platform.release("week-46", BODY | change)

    assert set(problem_errors(refused, 422, "key-reused")) == {"header Idempotency-Key"}
    assert refused.json()["release"] == "/releases/week-46"
    assert "/releases/week-46/answer" in refused.json()["detail"]
    assert platform.get(refused.json()["release"] + "/answer").content == first.content
    assert platform.charges() == 1


def as_file(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def as_csv(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pa.csv.write_csv(table, sink)
    return sink.getvalue()


TYPES = {"csv_types": {"url": "string", "users": "int64", "likes": "float64"}}
FORMS: dict[str, tuple[bytes, Json, str]] = {
    "stream": (as_stream(TABLE), {}, "application/vnd.apache.arrow.stream"),
    "other order and chunks": (
        as_stream(pa.concat_tables([TABLE.slice(2), TABLE.slice(0, 2)])),
        {},
        "application/vnd.apache.arrow.stream",
    ),
    "file": (as_file(TABLE), {}, "application/vnd.apache.arrow.file"),
    "Parquet": (as_parquet(TABLE), {}, "application/vnd.apache.parquet"),
    "CSV": (as_csv(TABLE), TYPES, "text/csv"),
    "dictionary and int16": (
        as_parquet(
            TABLE.set_column(0, "url", TABLE["url"].dictionary_encode()).set_column(
                1, "users", TABLE["users"].cast(pa.int16())
            )
        ),
        {},
        "application/vnd.apache.parquet",
    ),
    "decimals": (
        as_stream(TABLE.set_column(1, "users", TABLE["users"].cast(pa.decimal128(38, 0)))),
        {},
        "application/vnd.apache.arrow.stream",
    ),
}


def rows_in(content: bytes, media_type: str) -> list[Json]:
    if media_type == "text/csv":
        read = pa.csv.read_csv(io.BytesIO(content))
    elif media_type.endswith("file"):
        read = pa.ipc.open_file(content).read_all()
    elif media_type == "application/json":
        groups = json.loads(content)["groups"]
        numbers = zip(groups["keys"], groups["counts"], groups["values"]["likes"], strict=True)
        return [{"url": url, "users": users, "likes": likes} for url, users, likes in numbers]
    else:
        read = from_bytes(content)
    return [{"url": str(row["url"]), "users": row["users"], "likes": row["likes"]} for row in read.to_pylist()]


@pytest.mark.parametrize("first_form", ["stream", "Parquet", "CSV"])
def test_a_table_that_comes_again_in_any_form_gets_the_same_rows_in_its_own_format(
    platform: Platform, first_form: str
) -> None:
    content, types, media_type = FORMS[first_form]
    first = platform.table("week-46", content, REQUEST | types)
    assert first.status_code == 200, first.text
    rows = rows_in(first.content, media_type)
    assert {row["url"] for row in rows} == {"a", "b"}

    for content, types, media_type in FORMS.values():
        again = platform.table("week-46", content, REQUEST | types)
        assert again.status_code == 200, again.text
        assert (again.headers["content-type"].partition(";")[0], again.headers["idempotency-replayed"]) == (
            media_type,
            "true",
        )
        assert rows_in(again.content, media_type) == rows
    assert platform.charges() == 1
    changed = TABLE.set_column(1, "users", pa.array([5000, 4000, 3]))
    problem_errors(platform.table("week-46", as_stream(changed)), 422, "key-reused")
    renamed = REQUEST | {"key_columns": ["page"]}
    problem_errors(
        platform.table("week-46", as_stream(TABLE.rename_columns(["page", "users", "likes"])), renamed),
        422,
        "key-reused",
    )


MEDIA_TYPES = [
    "application/json",
    "application/vnd.apache.arrow.stream",
    "application/vnd.apache.arrow.file",
    "application/vnd.apache.parquet",
    "text/csv",
]


def test_an_answer_can_be_fetched_in_every_format(platform: Platform) -> None:
    made = platform.table("week-46", as_parquet(TABLE))
    rows = rows_in(made.content, "application/vnd.apache.parquet")

    stored = platform.get("/releases/week-46/answer")
    assert stored.content == made.content
    assert stored.headers["content-type"] == "application/vnd.apache.parquet"
    assert stored.headers["content-disposition"] == 'attachment; filename="week-46.parquet"'
    for media_type in MEDIA_TYPES:
        answer = platform.get("/releases/week-46/answer", headers={"accept": media_type})
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"].partition(";")[0] == media_type
        assert rows_in(answer.content, media_type) == rows
    problem_errors(platform.get("/releases/week-46/answer", headers={"accept": "image/png"}), 406, "not-acceptable")


def test_downloads_have_the_name_of_their_release(platform: Platform) -> None:
    """And the ending of their format. A name with other characters, or a long one, becomes one for a file system."""
    key = "week:46~" + "k" * 240
    made = platform.table(key, as_parquet(TABLE))
    again = platform.table(key, as_stream(TABLE))
    plain = "week_46_" + "k" * 192

    assert made.headers["content-disposition"] == f'attachment; filename="{plain}.parquet"'
    assert again.headers["content-disposition"] == f'attachment; filename="{plain}.arrow"'
    for media_type, ending in (
        ("application/json", "certificate.json"),
        ("application/yaml", "registry.yaml"),
        ("text/html", "certificate.html"),
    ):
        certificate = platform.get(f"/releases/{key}/certificate", headers={"accept": media_type})
        assert certificate.headers["content-disposition"] == f'inline; filename="{plain}.{ending}"'


def test_an_answer_of_json_can_be_fetched_as_a_table(platform: Platform) -> None:
    made = platform.release("week-46").json()

    answer = platform.get("/releases/week-46/answer", headers={"accept": "application/vnd.apache.parquet"})

    table = pq.read_table(io.BytesIO(answer.content))
    assert table["key"].to_pylist() == made["groups"]["keys"]
    assert table["likes"].to_pylist() == made["groups"]["values"]["likes"]
    assert json.loads(table.schema.metadata[b"certificate"]) == made["certificate"]


def test_a_release_tells_what_the_ledger_knows(platform: Platform) -> None:
    said = {"description": "views, week 46", "labels": ["weekly", "views"]}
    answer = platform.release("week-46", BODY | said)

    release = platform.get("/releases/week-46").json()

    entry = platform.get("/budgets/web/charges").json()["entries"][0]
    assert release == {
        "key": "week-46",
        "state": "made",
        "budget": "web",
        "entry": 2,
        "ancestors": [],
        "head": entry["hash"],
        "at": entry["at"],
        "release_id": answer.json()["certificate"]["release_id"],
        **said,
        "by": None,
        "mu_squared": entry["details"]["mu_squared"],
        "hazard": entry["details"]["hazard"],
        "answer": {
            "media_type": "application/json",
            "size": len(answer.content),
            "sha256": hashlib.sha256(answer.content).hexdigest(),
            "erased_at": None,
        },
        "committed": None,
    }
    assert (entry["details"]["idempotency_key"], entry["details"]["labels"]) == ("week-46", ["weekly", "views"])
    for path in ("/releases/none", "/releases/none/answer", "/releases/none/certificate"):
        problem_errors(platform.get(path), 404, "unknown-release")


def test_releases_are_listed_in_pages(platform: Platform) -> None:
    platform.request("PUT", "/budgets/ads", json=LIMIT)
    for number in range(3):
        platform.release(f"week-{number}")
    charge = {"mechanism": CASE_STUDY}
    platform.request("POST", "/budgets/ads/charges", json=charge, headers={"idempotency-key": "elsewhere"})

    found, before = [], ""
    while True:
        page = platform.get(f"/releases?limit=3{before and '&before=' + before}").json()
        found += [release["key"] for release in page["releases"]]
        before = page["before"]
        if before is None:
            break

    assert sorted(found) == ["elsewhere", "week-0", "week-1", "week-2"]
    (only,) = platform.get("/releases?budget=ads").json()["releases"]
    assert (only["key"], only["state"], only["answer"]) == ("elsewhere", "charged", None)
    problem_errors(platform.get("/releases/elsewhere/answer"), 404, "unknown-release")
    problem_errors(platform.get("/releases?limit=0"), 422, "invalid-request")
    problem_errors(platform.get("/releases?budget=a%20b"), 422, "invalid-request")
    problem_errors(platform.get("/releases?page=2"), 422, "invalid-request")
    assert set(problem_errors(platform.get("/releases?before=none"), 422, "invalid-request")) == {"parameter before"}
    problem_errors(platform.get("/releases?budget=none"), 404, "unknown-budget")


def test_a_certificate_is_complete_and_verifies(platform: Platform) -> None:
    platform.request("PUT", "/budgets/week", json=LIMIT | {"epsilon": 20, "privacy_unit": "device", "period": "week"})
    answer = platform.release("week-46", BODY | {"budget": "week", "unprotected": ["c_u"]})
    embedded = answer.json()["certificate"]

    certificate = platform.get("/releases/week-46/certificate").json()

    jsonschema_rs.validate(CERTIFICATE_SCHEMA, embedded)
    jsonschema_rs.validate(CERTIFICATE_SCHEMA, certificate)
    release = platform.get("/releases/week-46").json()
    assert certificate == embedded | {
        "record": {
            "state": "made",
            "entry": 2,
            "head": release["head"],
            "at": release["at"],
            "answer_sha256": hashlib.sha256(answer.content).hexdigest(),
            "media_type": "application/json",
            "size": len(answer.content),
            "committed_digest": None,
        }
    }
    assert (embedded["privacy_unit"], embedded["period"], embedded["unprotected"]) == ("device", "week", ["c_u"])
    assert (embedded["idempotency_key"], embedded["budget"]["id"]) == ("week-46", "week")
    for genuine in (certificate, embedded):
        assert platform.post("/releases/verify", genuine).json() == {
            "made_here": True,
            "key": "week-46",
            "budget": "week",
            "entry": 2,
            "answer_sha256": hashlib.sha256(answer.content).hexdigest(),
            "differences": [],
        }
    forged = platform.post("/releases/verify", certificate | {"delta": 1e-9, "period": None}).json()
    assert (forged["made_here"], set(forged["differences"])) == (False, {"delta", "period"})
    added = platform.post("/releases/verify", certificate | {"capped": [{"groups": 1, "mu_0": 99.0}]}).json()
    assert (added["made_here"], added["differences"]) == (False, ["capped"])
    unknown = platform.post("/releases/verify", embedded | {"release_id": "another"}).json()
    assert unknown == {"made_here": False, "differences": []}
    problem_errors(platform.post("/releases/verify", {"schema": "another"}), 422, "invalid-request")


def test_a_certificate_comes_as_registry_yaml_and_as_a_page(platform: Platform) -> None:
    platform.release("week-46")

    written = platform.get("/releases/week-46/certificate", headers={"accept": "application/yaml"})
    page = platform.get("/releases/week-46/certificate", headers={"accept": "text/html,*/*;q=0.8"})

    assert written.headers["content-type"].startswith("application/yaml")
    assert yaml.safe_load(written.text)["status"] == "Draft"
    assert page.headers["content-type"].startswith("text/html")
    assert "week-46" in page.text
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert (written.headers["vary"], page.headers["vary"]) == ("Accept", "Accept")
    refused = platform.get("/releases/week-46/certificate", headers={"accept": "image/png"})
    problem_errors(refused, 406, "not-acceptable")


def test_a_dry_run_checks_everything_and_changes_nothing(platform: Platform) -> None:
    dry = platform.release(None, BODY | {"dry_run": True})

    assert dry.status_code == 200, dry.text
    jsonschema_rs.validate(CERTIFICATE_SCHEMA, dry.json()["certificate"])
    assert dry.json()["dry_run"] is True
    assert dry.json()["budget"]["id"] == "web"
    assert 0 < dry.json()["budget"]["used"] < 1
    assert dry.json()["budget"]["after"]["releases"] == 1
    table = platform.table(None, as_parquet(TABLE), REQUEST | {"dry_run": True})
    assert table.json()["budget"] == dry.json()["budget"]
    assert table.json()["certificate"]["mu"] == dry.json()["certificate"]["mu"]
    free = platform.release(None, {name: BODY[name] for name in ("mechanism", "groups")} | {"dry_run": True})
    assert free.json()["budget"] is None
    assert platform.charges() == 0
    assert platform.get("/releases").json()["releases"] == []


def test_a_dry_run_refuses_what_the_release_would(platform: Platform) -> None:
    platform.request("PUT", "/budgets/small", json={"epsilon": 0.01, "delta": 1e-9})
    for change, status, kind in (
        ({"groups": GROUPS | {"keys": ["a", "a", "b"]}}, 422, "invalid-request"),
        ({"budget": "none"}, 404, "unknown-budget"),
        ({"delta": 1e-9, "epsilon": None}, 422, "infeasible-target"),
    ):
        problem_errors(platform.release(None, BODY | {"dry_run": True} | change), status, kind)
    exceeded = platform.release(None, BODY | {"dry_run": True, "budget": "small"})
    assert (exceeded.status_code, exceeded.json()["type"]) == (409, "/problems/budget-exceeded")
    doubled = pa.concat_tables([TABLE, TABLE])
    problem_errors(platform.table(None, as_stream(doubled), REQUEST | {"dry_run": True}), 422, "invalid-request")


def test_a_refusal_says_which_cap_is_short_and_by_how_much(platform: Platform) -> None:
    platform.request("PUT", "/budgets/small", json={"epsilon": 0.1, "delta": 1e-6, "mechanism": CASE_STUDY})

    refused = platform.release("too-much", BODY | {"budget": "small"})

    assert refused.status_code == 409
    problem = refused.json()
    assert {error["pointer"] for error in problem["errors"]} <= {"/mechanism/sigma", "/mechanism/tau_star"}
    (noise,) = [error for error in problem["errors"] if error["pointer"] == "/mechanism/sigma"]
    asked, cap = problem["asked"]["mu_squared"], problem["limit"]["mu_squared"]
    assert f"costs {asked:.6g} of mu_squared, and {cap:.6g} remain" in noise["detail"]
    assert f"{asked - cap:.3g} too much" in noise["detail"]


def test_a_release_made_elsewhere_is_opened_once_and_committed_once(platform: Platform) -> None:
    provenance = {"enforced_by": "gsh.spark", "plan_digest": "c" * 64, "plan": {"salt": "s", "partitions": 16}}
    opened = platform.open("spark-46", provenance=provenance, description="by Spark")
    assert opened.status_code == 201, opened.text
    assert len(base64.b64decode(opened.json()["seed"])) == 32

    again = platform.open("spark-46", provenance={"enforced_by": "gsh.spark", "plan": {"salt": "another"}})
    assert (again.status_code, again.headers["idempotency-replayed"]) == (200, "true")
    assert again.json() == opened.json()
    assert again.json()["provenance"] == provenance
    assert again.json()["certificate"]["bounds"]["enforced_by"] == "gsh.spark"
    assert again.json()["certificate"]["grid"] is None
    reused = platform.open("spark-46", epsilon=2)
    problem_errors(reused, 422, "key-reused")
    assert "GET /releases/spark-46 says" in reused.json()["detail"]
    assert platform.charges() == 1
    listed = platform.get("/releases").text + platform.get("/releases/spark-46").text
    assert opened.json()["seed"] not in listed + platform.get("/budgets/web/charges").text

    digest = "a" * 64
    committed = platform.commit("spark-46", digest, 12)
    assert committed.status_code == 200, committed.text
    assert (committed.json()["state"], committed.json()["committed"]["digest"]) == ("committed", digest)
    assert platform.commit("spark-46", digest, 12).json() == committed.json()
    problem_errors(platform.commit("spark-46", "b" * 64), 409, "already-committed")
    after = platform.open("spark-46")
    assert (after.status_code, "seed" in after.json(), after.json()["state"]) == (200, False, "committed")
    certificate = platform.get("/releases/spark-46/certificate").json()
    assert certificate["record"]["committed_digest"] == digest
    assert platform.post("/releases/verify", certificate).json()["committed_digest"] == digest
    jsonschema_rs.validate(CERTIFICATE_SCHEMA, certificate)
    kinds = [entry["kind"] for entry in platform.get("/budgets/web/charges").json()["entries"]]
    assert kinds == ["committed", "charge", "created"]
    assert platform.get("/budgets/web/verify").json()["intact"] is True


def test_only_open_releases_are_committed(platform: Platform) -> None:
    platform.release("made")

    problem_errors(platform.commit("made", "a" * 64), 409, "not-open")
    problem_errors(platform.commit("none", "a" * 64), 404, "unknown-release")
    problem_errors(platform.commit("made", "A" * 64), 422, "invalid-request")
    problem_errors(platform.commit("made", "a" * 64, -1), 422, "invalid-request")
    problem_errors(platform.request("POST", "/releases", json={"mechanism": MECHANISM, "budget": "web"}), 400, _MISSING)
    problem_errors(platform.open("spark", budget="none"), 404, "unknown-budget")


_MISSING = "idempotency-key-missing"


def test_an_erased_answer_is_gone_and_its_certificate_stays(platform: Platform) -> None:
    platform.release("week-46")
    services = platform.app.state.services
    late = Tidying(services.ledger_pool, 7, clock=lambda: "2099-01-01T00:00:00Z")
    asyncio.run(late.once())

    problem_errors(platform.get("/releases/week-46/answer"), 410, "answer-erased")
    problem_errors(platform.release("week-46"), 410, "answer-erased")
    assert platform.get("/releases/week-46").json()["answer"]["erased_at"] == "2099-01-01T00:00:00Z"
    assert platform.get("/releases/week-46/certificate").json()["record"]["entry"] == 2
    assert platform.get("/budgets/web/verify").json()["intact"] is True
    assert platform.charges() == 1


def test_a_change_of_a_budget_needs_a_reason(platform: Platform) -> None:
    changed = LIMIT | {"epsilon": 21}

    assert set(problem_errors(platform.request("PUT", "/budgets/web", json=changed), 422, "invalid-request")) == {
        "/reason"
    }
    platform.release("week-46")
    unit = changed | {"privacy_unit": "household", "reason": "a mistake"}
    problem_errors(platform.request("PUT", "/budgets/web", json=unit), 409, "unit-settled")
    accepted = platform.request("PUT", "/budgets/web", json=changed | {"reason": "more users"})
    assert accepted.status_code == 200
    assert (accepted.json()["privacy_unit"], accepted.json()["period"]) == ("user", None)
    assert platform.get("/budgets/web/charges").json()["entries"][0]["details"]["reason"] == "more users"


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"labels": ["a", "a"]}, "/labels"),
        ({"labels": ["x"] * 17}, "/labels"),
        ({"labels": [""]}, "/labels/0"),
        ({"labels": ["x" * 65]}, "/labels/0"),
        ({"description": "x" * 1001}, "/description"),
        ({"provenance": {"enforced_by": "me"}}, "/provenance/enforced_by"),
        ({"provenance": {"plan": {"x": "y" * 17_000}}}, "/provenance/plan"),
        ({"unprotected": ["x" * 201]}, "/unprotected/0"),
        ({"dry_run": 1}, "/dry_run"),
    ],
)
def test_what_is_said_about_a_release_is_bounded(platform: Platform, change: Json, pointer: str) -> None:
    assert pointer in problem_errors(platform.release("week-46", BODY | change), 422, "invalid-request")
    assert platform.charges() == 0


def test_a_compressed_request_is_the_same_request(platform: Platform) -> None:
    first = platform.release("week-46")

    again = platform.request(
        "POST",
        "/release",
        content=gzip.compress(json.dumps(BODY).encode()),
        headers={"idempotency-key": "week-46", "content-type": "application/json", "content-encoding": "gzip"},
    )

    assert again.content == first.content


def test_a_large_answer_is_stored_in_parts_and_comes_back_byte_for_byte(platform: Platform) -> None:
    numbers = range(120_000)
    table = pa.table({"url": [f"page {number}" for number in numbers], "users": [5000 + number for number in numbers]})
    request = REQUEST | {"mechanism": MECHANISM}

    made = platform.table("large", as_stream(table), request)

    assert len(made.content) > 2 * 1024**2
    assert platform.get("/releases/large/answer").content == made.content
    assert platform.table("large", as_stream(table), request).content == made.content
    shuffled = table.take(pa.array(range(len(table) - 1, -1, -1)))
    assert platform.table("large", as_stream(shuffled), request).content == made.content
    assert platform.get("/budgets/web/verify").json()["intact"] is True


def test_so_many_answers_are_sent_at_once_and_no_more(platform: Platform) -> None:
    """Each is a file until its client has read it. A place is free again when the answer is sent."""
    platform.release("week-46")
    services = platform.app.state.services
    for _ in range(3):
        assert platform.get("/releases/week-46/answer").status_code == 200
        assert services.downloads._free == 64
    problem_errors(platform.get("/releases/week-46/answer", headers={"accept": "image/png"}), 406, "not-acceptable")
    services.downloads._free = 0
    problem_errors(platform.get("/releases/week-46/answer"), 503, "busy")


def test_times_that_parquet_cannot_hold_become_text(platform: Platform) -> None:
    times = pa.table({"at": pa.array([2**60, 5], pa.timestamp("s")), "users": [5000, 6000]})
    request = REQUEST | {"mechanism": MECHANISM, "key_columns": ["at"]}
    assert platform.table("week-46", as_stream(times), request).status_code == 200

    answer = platform.get("/releases/week-46/answer", headers={"accept": "application/vnd.apache.parquet"})

    assert answer.status_code == 200, answer.text
    assert "1970-01-01T00:00:05" in pq.read_table(io.BytesIO(answer.content))["at"].to_pylist()
