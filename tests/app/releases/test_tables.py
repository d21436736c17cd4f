"""Several tables in one release: all or none, one charge, one certificate, and no trace of dropped groups."""

import io
import json
import random
import zipfile
from typing import Any

import httpx
import pyarrow as pa
import pytest

from app.releases.schemas.release import TableAnswer
from gsh.accounting.accountings import EXACT, at_epsilon
from gsh.accounting.composition import NOTHING, cost_of, delta_at
from gsh.accounting.mechanism import Joint, Mechanism, PlainGaussian
from tests.app.budgets.test_budgets import LIMIT, Bank
from tests.app.client import Client, Json, problem_errors
from tests.app.releases.test_release_leaks import DROPPED, KEPT, exposition, without_chance
from tests.gsh.histogram.uploads import as_bytes, as_file, as_parquet, as_stream, from_bytes

pytestmark = pytest.mark.slow

URLS: Json = {"c_u": 3, "tau": 2, "tau_star": 1200, "sigma": 200}
COUNTRIES: Json = {"c_u": 1, "sigma": 150}
JOINT = Joint([Mechanism(**URLS), PlainGaussian(**COUNTRIES)])
LISTED = ["DE", "FR", "US"]
BY_URL = pa.table({"url": ["b", "a", "c"], "users": [10**6, 2 * 10**6, 3]})
BY_COUNTRY = pa.table({"country": ["US", "FR"], "n": [3 * 10**6, 3]})
ZIP = "application/zip"


def groups(table: pa.Table) -> Json:
    keys, counts = (column.to_pylist() for column in table.columns)
    return {"keys": keys, "counts": counts}


def json_body(**changes: Any) -> Json:
    tables = [
        {"name": "by_url", "mechanism": URLS, "groups": groups(BY_URL)},
        {"name": "by_country", "mechanism": COUNTRIES, "groups": groups(BY_COUNTRY), "public_keys": LISTED},
    ]
    return {"tables": tables, "epsilon": 1} | changes


REQUEST: Json = {
    "epsilon": 1,
    "tables": [
        {"name": "by_url", "mechanism": URLS, "count_column": "users", "key_columns": ["url"]},
        {
            "name": "by_country",
            "mechanism": COUNTRIES,
            "count_column": "n",
            "key_columns": ["country"],
            "public_keys": LISTED,
        },
    ],
}
PARTS = (("by_country.parquet", as_parquet(BY_COUNTRY)), ("by_url", as_stream(BY_URL)))


def form(request: Json = REQUEST, parts: Any = PARTS) -> list[Any]:
    return [("request", (None, json.dumps(request))), *(("table", part) for part in parts)]


def post_json(bank: Client, key: str | None = None, body: Json | None = None, **changes: Any) -> httpx.Response:
    headers = {} if key is None else {"idempotency-key": key}
    return bank.request("POST", "/release", json=(json_body() if body is None else body) | changes, headers=headers)


def post_form(bank: Client, key: str | None = None, parts: Any = PARTS, **changes: Any) -> httpx.Response:
    headers = {} if key is None else {"idempotency-key": key}
    return bank.request("POST", "/release/table", files=form(REQUEST | changes, parts), headers=headers)


def unzipped(content: bytes) -> tuple[dict[str, pa.Table], Json]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        files = {name: archive.read(name) for name in archive.namelist()}
    certificate = json.loads(files.pop("certificate.json"))
    return {name: from_bytes(file) for name, file in files.items()}, certificate


def test_tables_come_back_in_order_with_one_certificate(client: Client) -> None:
    answer = client.answer("/release", json_body())

    first, second = answer["tables"]
    assert (first["name"], first["groups"]["keys"]) == ("by_url", ["a", "b"])
    assert (second["name"], second["groups"]["keys"]) == ("by_country", LISTED)
    assert second["groups"]["counts"] == pytest.approx([0, 3, 3 * 10**6], abs=1500)
    certificate = answer["certificate"]
    assert certificate["schema"] == "urn:gsh:certificate:3"
    assert [table["name"] for table in certificate["tables"]] == ["by_url", "by_country"]
    assert certificate["delta"] == at_epsilon(EXACT, JOINT, 1.0).delta
    assert (certificate["mu_squared"], certificate["hazard"]) == (cost_of(JOINT).mu_squared, cost_of(JOINT).hazard)


def test_an_archive_has_each_table_in_its_format_and_the_certificate(client: Client) -> None:
    response = post_form(client)

    assert response.headers["content-type"] == ZIP
    tables, certificate = unzipped(response.content)
    assert list(tables) == ["by_url.arrows", "by_country.parquet"]
    assert tables["by_url.arrows"]["url"].to_pylist() == ["a", "b"]
    assert tables["by_country.parquet"]["country"].to_pylist() == LISTED
    for file, table in tables.items():
        assert json.loads(table.schema.metadata[b"certificate"]) == certificate
        assert table.schema.metadata[b"table"].decode() == file.partition(".")[0]


def test_the_certificate_of_an_archive_is_that_of_json(client: Client) -> None:
    _, certificate = unzipped(post_form(client).content)
    expected = client.answer("/release", json_body())["certificate"]

    roles = [table.pop("roles") for table in certificate["tables"]]
    contents = [[table.pop("content")["rows"] for table in each["tables"]] for each in (certificate, expected)]
    assert contents[0] == contents[1]
    assert [(each["keys"], each["count"]) for each in roles] == [(["url"], "users"), (["country"], "n")]
    assert {name for name in expected if certificate[name] != expected[name]} <= {"release_id", "released_at"}


def test_an_archive_has_no_time_and_no_system_of_its_own(client: Client) -> None:
    """Given the tables, its bytes are fixed."""
    with zipfile.ZipFile(io.BytesIO(post_form(client).content)) as archive:
        for file in archive.infolist():
            assert file.date_time == (1980, 1, 1, 0, 0, 0)
            assert (file.compress_type, file.create_system, file.external_attr) == (0, 3, 0o600 << 16)


FAULTS: dict[str, tuple[Any, str]] = {
    "a count": (lambda tables: tables[1]["groups"].update(counts=[-1, 1]), "/tables/1/groups/counts"),
    "a length": (lambda tables: tables[1]["groups"].update(counts=[1]), "/tables/1/groups/counts"),
    "a duplicate": (lambda tables: tables[0]["groups"].update(keys=["a", "a", "b"]), "/tables/0/groups/keys"),
    "an unlisted group": (lambda tables: tables[1].update(public_keys=["US"]), "/tables/1/groups/keys"),
    "no list": (lambda tables: tables[1].pop("public_keys"), "/tables/1/public_keys"),
    "values": (lambda tables: tables[0]["groups"].update(values={"x": [1, 2, 3]}), "/tables/0/groups/values"),
    "a mechanism": (lambda tables: tables[1].update(mechanism=COUNTRIES | {"sigma": 0}), "/tables/1/mechanism/sigma"),
    "thresholds": (
        lambda tables: tables[0].update(mechanism=URLS | {"tau": 1300}),
        "/tables/0/mechanism/tau_star",
    ),
    "a name twice": (lambda tables: tables[1].update(name="by_url"), "/tables/1/name"),
    "a name in capitals": (lambda tables: tables[1].update(name="BY_URL"), "/tables/1/name"),
    "a name": (lambda tables: tables[1].update(name="by/url"), "/tables/1/name"),
    "a name of a hidden file": (lambda tables: tables[1].update(name=".by_url"), "/tables/1/name"),
    "a field": (lambda tables: tables[1].update(s3ntinel=1), "/tables/1"),
    "no tables": (lambda tables: tables.clear(), "/tables"),
    "65 tables": (lambda tables: tables.extend(tables[:1] * 63), "/tables"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_one_table_refuses_all_before_any_noise(
    bank: Bank, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    change, pointer = FAULTS[name]
    body = json.loads(json.dumps(json_body(budget="web")))
    change(body["tables"])
    drawn: list[int] = []
    monkeypatch.setattr("app.releases.groups.operating_system", drawn.append)

    refused = post_json(bank, "first", body)

    assert set(problem_errors(refused, 422, "invalid-request")) == {pointer}
    assert (drawn, bank.budget()["spent"]["releases"]) == ([], 0)
    assert "s3ntinel" not in refused.text


def test_tables_and_one_mechanism_exclude_each_other(client: Client) -> None:
    both = json_body(mechanism=URLS, groups=groups(BY_URL))
    assert set(problem_errors(client.post("/release", both), 422, "invalid-request")) == {"/mechanism", "/groups"}
    assert set(problem_errors(client.post("/release", {}), 422, "invalid-request")) == {"/mechanism", "/groups"}
    mixed = post_form(client, mechanism=URLS, count_column="users")
    assert set(problem_errors(mixed, 422, "invalid-request")) == {"/mechanism", "/count_column"}


def test_names_that_would_be_one_file_on_some_disks_are_refused(client: Client) -> None:
    tables = [REQUEST["tables"][0] | {"name": name} for name in ("A", "a")]
    refused = post_form(client, parts=[(name, PARTS[1][1]) for name in ("A", "a")], tables=tables)

    errors = problem_errors(refused, 422, "invalid-request")
    assert errors == {"/tables/1/name": "must differ from the other names in more than upper and lower case"}


PART_FAULTS: dict[str, tuple[Any, str, str]] = {
    "missing": (PARTS[:1], "/tables/0", "is required, as a part"),
    "repeated": ((PARTS[0], PARTS[0]), "/tables/1", "must come once"),
    "repeated with another ending": (
        (*PARTS, ("by_country.arrow", PARTS[0][1])),
        "/tables/1",
        "must come once",
    ),
    "unknown": ((*PARTS, ("by_s3ntinel.csv", b"")), "/table", "is not the name of one of the tables"),
    "without a name": (((None, PARTS[0][1]), PARTS[1]), "/table", "is not the name of one of the tables"),
    "of unknown columns": (
        (PARTS[0], ("by_url", as_stream(BY_URL.append_column("more", pa.array([1, 2, 3]))))),
        "/tables/0",
        "no columns other",
    ),
    "cut off": ((("by_country", as_parquet(BY_COUNTRY)[:-9]), PARTS[1]), "/tables/1", "must be a complete"),
    "not a table": ((("by_country", b"s3ntinel"), PARTS[1]), "/tables/1", "must be a complete"),
    "CSV without types": (
        (("by_country.csv", b"country,n\ns3ntinel,3000\n"), PARTS[1]),
        "/tables/1",
        "CSV needs the types of its columns (csv_types)",
    ),
    "with an unlisted group": (
        (PARTS[1], ("by_country", as_stream(pa.table({"country": ["s3ntinel"], "n": [1]})))),
        "/tables/1/key_columns",
        "must all be listed",
    ),
}


@pytest.mark.parametrize("name", PART_FAULTS)
def test_each_table_has_one_part(bank: Bank, name: str) -> None:
    parts, pointer, words = PART_FAULTS[name]
    refused = post_form(bank, "first", parts, budget="web")
    errors = problem_errors(refused, 422, "invalid-request")

    assert set(errors) == {pointer}
    assert words in errors[pointer]
    assert not any(posted in refused.text for posted in ("s3ntinel", "by_url", "by_country"))
    assert bank.budget()["spent"]["releases"] == 0


def test_limits_are_for_all_tables_together() -> None:
    """Each of the two tables would fit alone. What is said about the limit does not depend on the other table."""
    client = Client(max_release_groups=5, max_table_groups=5)

    errors = problem_errors(client.post("/release", json_body()), 413, "content-too-large")
    assert set(errors) == {"/tables"}
    errors = problem_errors(post_form(client), 413, "content-too-large")
    assert list(errors) == ["/tables/1/public_keys"]
    posted = [REQUEST["tables"][0], REQUEST["tables"][1] | {"public_keys": "posted"}]
    longer = pa.concat_tables([BY_COUNTRY, pa.table({"country": ["DE"], "n": [1]})])
    parts = (PARTS[1], ("by_country", as_stream(longer)))
    errors = problem_errors(post_form(client, parts=parts, tables=posted), 413, "content-too-large")
    assert list(errors) == ["/tables/1"]
    assert "at most 5 groups" in errors["/tables/1"]
    assert post_form(client, tables=posted).status_code == 200


def test_bytes_in_memory_are_bounded_for_all_tables_together() -> None:
    """Compressed, they fit the body. A table of each size fits alone, two of them do not."""
    rows = 40_000
    large = pa.table({"url": pa.array([f"{number:06}" * 8 for number in range(rows)]), "users": [10**6] * rows})
    content = as_parquet(large)
    client = Client(max_table_bytes=3 * 10**6)
    tables = [REQUEST["tables"][0] | {"name": name} for name in ("one", "two")]

    assert post_form(client, parts=[("one", content)], tables=tables[:1]).status_code == 200
    refused = post_form(client, parts=[("one", content), ("two", as_parquet(large.slice(1)))], tables=tables)
    assert refused.status_code == 413


def test_all_tables_are_charged_once_and_the_first_release_by_its_exact_delta(bank: Bank) -> None:
    """A budget of the exact δ pays for the release. The sums of the tables' costs would need more."""
    exact, cost = at_epsilon(EXACT, JOINT, 1.0).delta, cost_of(JOINT)
    composed = delta_at(NOTHING.plus(JOINT, cost).plus(JOINT, cost), 1.0)
    assert exact < composed
    assert bank.put("web", LIMIT | {"delta": exact}).status_code == 200

    made = post_json(bank, "first", budget="web")

    assert made.status_code == 200, made.text
    spent = bank.budget()["spent"]
    assert (spent["releases"], spent["delta"]) == (1, exact)
    assert (spent["mu_squared"], spent["hazard"]) == (cost.mu_squared, cost.hazard)
    refused = post_json(bank, "second", budget="web")
    assert (refused.status_code, refused.json()["type"]) == (409, "/problems/budget-exceeded")
    assert {error["pointer"] for error in refused.json()["errors"]} == {"/tables"}
    assert bank.get("/budgets/web/verify").json()["intact"] is True


def test_a_budget_below_the_exact_delta_refuses_and_draws_nothing(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []
    monkeypatch.setattr("app.releases.groups.operating_system", drawn.append)
    bank.put("web", LIMIT | {"delta": at_epsilon(EXACT, JOINT, 1.0).delta * 0.999})

    assert post_json(bank, "first", budget="web").status_code == 409
    assert drawn == []


def turned(table: pa.Table) -> pa.Table:
    return table.take(list(reversed(range(len(table)))))


def test_json_in_any_order_is_the_same_request(bank: Bank) -> None:
    first = post_json(bank, "first", budget="web")
    tables = [
        table | {"groups": groups(turned(each))}
        for table, each in zip(json_body()["tables"], (BY_URL, BY_COUNTRY), strict=True)
    ]

    again = post_json(bank, "first", budget="web", tables=tables[::-1])

    assert (again.headers["idempotency-replayed"], again.content) == ("true", first.content)
    for changed in (
        {"tables": tables[:1]},
        {"tables": [tables[0] | {"name": "by_page"}, tables[1]]},
        {"epsilon": 2},
        {"tables": [tables[0], tables[1] | {"public_keys": [*LISTED, "IT"]}]},
    ):
        problem_errors(post_json(bank, "first", **{"budget": "web", "tables": tables} | changed), 422, "key-reused")
    assert bank.budget()["spent"]["releases"] == 1


def test_parts_in_any_order_and_format_are_the_same_request(bank: Bank) -> None:
    first = post_form(bank, "first", budget="web")
    assert post_form(bank, "first", PARTS[::-1], budget="web").content == first.content
    others = (("by_url.feather", as_file(turned(BY_URL))), ("by_country", as_stream(turned(BY_COUNTRY))))

    again = post_form(bank, "first", others, budget="web", tables=REQUEST["tables"][::-1])

    assert again.headers["idempotency-replayed"] == "true"
    (made, certificate), (replayed, same) = unzipped(first.content), unzipped(again.content)
    assert certificate == same
    assert list(replayed) == ["by_url.arrow", "by_country.arrows"]
    for one, other in zip(made.values(), replayed.values(), strict=True):
        assert one.equals(other)
        assert one.schema.metadata == other.schema.metadata
    more = (PARTS[0], ("by_url", as_stream(pa.table({"url": ["b", "a", "c"], "users": [10**6, 2 * 10**6, 4]}))))
    problem_errors(post_form(bank, "first", more, budget="web"), 422, "key-reused")
    assert bank.budget()["spent"]["releases"] == 1


def answer(bank: Bank, query: str = "", accept: str = "*/*") -> httpx.Response:
    return bank.get(f"/releases/first/answer{query}", headers={"accept": accept})


def test_a_stored_archive_is_given_as_it_is_as_json_or_table_by_table(bank: Bank) -> None:
    made = post_form(bank, "first", budget="web", intervals=0.9)
    tables, certificate = unzipped(made.content)

    assert answer(bank).content == answer(bank, accept=ZIP).content == made.content
    as_json = answer(bank, accept="application/json").json()
    assert as_json["certificate"] == certificate
    assert [table["name"] for table in as_json["tables"]] == ["by_url", "by_country"]
    assert as_json["tables"][1]["groups"]["keys"] == LISTED
    assert as_json["tables"][1]["intervals"]["level"] == 0.9
    errors = problem_errors(answer(bank, accept="text/csv"), 406, "not-acceptable")
    assert errors == {
        "header Accept": "must allow application/zip or application/json for several tables; table= gives one of them "
        "in any format"
    }
    stored = answer(bank, "?table=by_country")
    assert stored.headers["content-type"] == "application/vnd.apache.parquet"
    assert from_bytes(stored.content).equals(tables["by_country.parquet"])
    other = answer(bank, "?table=by_country", "application/vnd.apache.arrow.stream")
    assert from_bytes(other.content).equals(tables["by_country.parquet"])
    assert from_bytes(other.content).schema.metadata[b"table"] == b"by_country"
    csv = answer(bank, "?table=by_url", "text/csv").text.splitlines()
    assert (csv[0], len(csv)) == ("url,users,users_low,users_estimate,users_high", 3)
    named = answer(bank, "?table=by_url", "application/json").json()
    both = {"certificate": certificate, "signature": as_json["signature"]}
    assert named == as_json["tables"][0] | {"name": "by_url"} | both
    assert named["groups"]["keys"] == ["a", "b"]
    for unknown in ("by_city", "", "by_url.arrows"):
        errors = problem_errors(answer(bank, f"?table={unknown}"), 422, "invalid-request")
        assert set(errors) == {"parameter table"}


def test_a_stored_json_release_is_given_as_an_archive_or_table_by_table(bank: Bank) -> None:
    made = post_json(bank, "first", budget="web")

    assert answer(bank).content == made.content
    tables, certificate = unzipped(answer(bank, accept=ZIP).content)
    assert certificate == made.json()["certificate"]
    assert {name: len(table) for name, table in tables.items()} == {"by_url.parquet": 2, "by_country.parquet": 3}
    assert answer(bank, "?table=by_country", "text/csv").text.startswith("key,count\nDE,")
    expected = made.json()["tables"][1] | {"certificate": certificate, "signature": made.json()["signature"]}
    named = answer(bank, "?table=by_country")
    assert named.json() == expected
    assert TableAnswer.model_validate_json(named.content).name == "by_country"


def test_a_release_of_one_table_has_no_table_by_name(bank: Bank) -> None:
    body = {"mechanism": URLS, "budget": "web", "groups": groups(BY_URL)}
    assert post_json(bank, "first", body).status_code == 200

    assert set(problem_errors(answer(bank, "?table=by_url"), 422, "invalid-request")) == {"parameter table"}


@pytest.mark.parametrize("post", [post_json, post_form])
def test_a_dry_run_checks_all_tables_and_draws_nothing(bank: Bank, post: Any) -> None:
    shown = post(bank, None, budget="web", dry_run=True)

    assert shown.status_code == 200, shown.text
    assert shown.json()["certificate"]["delta"] == at_epsilon(EXACT, JOINT, 1.0).delta
    assert shown.json()["budget"]["after"]["mu_squared"] == cost_of(JOINT).mu_squared
    assert bank.budget()["spent"]["releases"] == 0


def test_a_certificate_of_tables_is_verified(bank: Bank) -> None:
    inside = post_json(bank, "first", budget="web").json()["certificate"]
    recorded = bank.get("/releases/first/certificate", headers={"accept": "application/json"}).json()

    assert recorded | {"record": None} == inside
    for certificate in (inside, recorded):
        assert bank.answer("/releases/verify", certificate)["made_here"] is True
    forged = json.loads(json.dumps(inside))
    forged["tables"][0]["mechanism"]["sigma"] = 100.0
    assert bank.answer("/releases/verify", forged)["differences"] == ["tables"]
    another = inside | {"schema": "urn:gsh:certificate:2"}
    assert bank.post("/releases/verify", another).status_code == 422


HISTOGRAMS = {"kept alone": KEPT, "with one dropped": KEPT | {"a": 1}, "with many dropped": KEPT | DROPPED}
SECOND: Json = {"c_u": 1, "tau": 2, "tau_star": 500, "sigma": 80}


def shuffled(histogram: dict[str, int], seed: int) -> pa.Table:
    keys = random.Random(seed).sample(list(histogram), len(histogram))
    return pa.table({"key": keys, "users": pa.array([histogram[key] for key in keys], pa.int64())})


def leaking(client: Client, is_form: bool, histograms: list[dict[str, int]], seed: int = 0) -> httpx.Response:
    tables = [shuffled(histogram, seed + k) for k, histogram in enumerate(histograms)]
    named = list(zip(("one", "two"), (URLS, SECOND), strict=True))
    if is_form:
        columns = {"count_column": "users", "key_columns": ["key"]}
        request = {"epsilon": 1, "tables": [{"name": name, "mechanism": each} | columns for name, each in named]}
        parts = [(name, as_bytes("arrow", table)) for (name, _), table in zip(named, tables, strict=True)]
        return client.request("POST", "/release/table", files=form(request, parts))
    body = [
        {"name": name, "mechanism": each, "groups": groups(table)}
        for (name, each), table in zip(named, tables, strict=True)
    ]
    return client.request("POST", "/release", json={"epsilon": 1, "tables": body})


def shape(response: httpx.Response) -> Any:
    """What does not depend on noise, time or the release's id. Archives of Arrow streams have a fixed length."""
    assert response.status_code == 200, response.text
    assert b"s3ntinel" not in response.content
    random_ones = {"x-request-id", "content-length", "repr-digest"}
    headers = {name: value for name, value in response.headers.items() if name not in random_ones}
    if response.headers["content-type"] == ZIP:
        tables, certificate = unzipped(response.content)
        length: int | None = len(response.content)
        keys = {name: table["key"].to_pylist() for name, table in tables.items()}
        schemas = [table.schema.remove_metadata() for table in tables.values()]
    else:
        document = response.json()
        certificate, length, schemas = document["certificate"], None, []
        keys = {table["name"]: table["groups"]["keys"] for table in document["tables"]}
    return headers, length, keys, schemas, without_chance(json.dumps(certificate))


@pytest.mark.parametrize("is_form", [False, True])
@pytest.mark.parametrize("place", [0, 1])
def test_dropped_groups_of_no_table_change_anything(is_form: bool, place: int) -> None:
    seen = []
    for histogram in HISTOGRAMS.values():
        client, histograms = Client(), [KEPT, KEPT]
        histograms[place] = histogram
        seen.append((shape(leaking(client, is_form, histograms)), exposition(client)))

    assert seen[0] == seen[1] == seen[2]


@pytest.mark.parametrize("is_form", [False, True])
def test_the_order_of_input_does_not_show_in_any_table(client: Client, is_form: bool) -> None:
    histograms = [KEPT | DROPPED, KEPT | DROPPED]
    shapes = [shape(leaking(client, is_form, histograms, seed)) for seed in range(4)]

    assert all(each == shapes[0] for each in shapes)


def test_64_tables_are_one_release(client: Client) -> None:
    tables = [
        {"name": f"t{k}", "mechanism": URLS | {"sigma": 2000, "tau_star": 12000}, "groups": groups(BY_URL)}
        for k in range(64)
    ]
    made = client.answer("/release", {"tables": tables, "epsilon": 1})

    assert len(made["tables"]) == len(made["certificate"]["tables"]) == 64
    assert len({json.dumps(table["groups"]["counts"]) for table in made["tables"]}) == 64
