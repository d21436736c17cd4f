"""POST /intervals, and intervals in releases: the library's numbers, made from published numbers alone."""

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pytest

import gsh
from gsh.accounting.mechanism import Mechanism
from gsh.histogram.noise import Noise
from gsh.histogram.roles import Roles
from gsh.histogram.tables import check_table
from gsh.wire import mechanism_from_json
from tests.app.budgets.test_budgets import Bank
from tests.app.client import CASE_STUDY, Client, Json, problem_errors
from tests.gsh.histogram.recorded import Recorded
from tests.gsh.histogram.uploads import TYPED_FORMATS, as_bytes, as_stream, from_bytes

COLUMNS: Json = {
    "names": ["likes", "shares"],
    "covariance": [[400, 5], [5, 100]],
    "sensitivity": {"kind": "box", "lower": [0, 0], "upper": [1, 1]},
}
MECHANISM: Json = {"c_u": 3, "tau": 2, "tau_star": 120, "sigma": 20}
WITH_COLUMNS: Json = MECHANISM | {"aggregates": COLUMNS}
OURS = gsh.Mechanism(
    c_u=3,
    tau=2,
    tau_star=120,
    sigma=20,
    aggregates=gsh.Aggregates(
        names=["likes", "shares"], covariance=[[400, 5], [5, 100]], sensitivity=gsh.box(lower=[0, 0], upper=[1, 1])
    ),
)
COUNTS = [120, 121.5, 150, 400.25, 1e6]
VALUES = {"likes": [1, -2.5, 0, 7, 1e9], "shares": [5, 6, 7, 8, 9]}
ENDS = ("low", "estimate", "high")


def shown(interval: gsh.Interval) -> Json:
    return {end: getattr(interval, end).tolist() for end in ENDS}


def test_public_groups_have_no_threshold(client: Client) -> None:
    """A noisy count below 0 is possible, and the true one is at least 0."""
    counts = [-3.5, 0, 12.25]

    answer = client.answer("/intervals", {"mechanism": {"c_u": 1, "sigma": 4}, "counts": counts, "total": True})

    ours = gsh.PlainGaussian(c_u=1, sigma=4)
    assert answer["counts"] == shown(gsh.intervals(ours, counts=counts).counts)
    assert answer["counts"]["low"][0] == 0
    assert answer["total"]["counts"]["estimate"] == gsh.total(ours, counts=counts).counts.estimate


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999999])
def test_the_answer_is_that_of_the_library(client: Client, level: float) -> None:
    body = {"mechanism": WITH_COLUMNS, "level": level, "counts": COUNTS, "values": VALUES, "total": True}

    answer = client.answer("/intervals", body)

    found = gsh.intervals(OURS, counts=COUNTS, values=VALUES, level=level)
    totals = gsh.total(OURS, counts=COUNTS, values=VALUES, level=level)
    assert answer["level"] == level
    assert answer["counts"] == shown(found.counts)
    assert answer["values"] == {name: shown(column) for name, column in found.values.items()}
    assert list(answer["total"]) == ["counts", "values"]
    fields = ("estimate", "standard_error", "low", "high", "method")
    assert answer["total"]["counts"] == {name: getattr(totals.counts, name) for name in fields}
    assert answer["total"]["values"]["shares"] == {name: getattr(totals.values["shares"], name) for name in fields}


def test_the_level_is_095_and_totals_are_absent_unless_asked_for(client: Client) -> None:
    answer = client.answer("/intervals", {"mechanism": MECHANISM, "counts": [200]})

    assert answer.keys() == {"level", "counts", "values", "intervals_cover"}
    assert (answer["level"], answer["values"]) == (0.95, {})


def test_no_counts_have_no_intervals(client: Client) -> None:
    answer = client.answer("/intervals", {"mechanism": MECHANISM, "counts": [], "total": True})

    assert answer["counts"] == {"low": [], "estimate": [], "high": []}
    assert answer["total"]["counts"]["estimate"] == 0


def test_an_answer_of_release_pastes_into_it(client: Client) -> None:
    """Also the counts that rounding put below τ*, and integers."""
    groups = {"keys": list(range(2000)), "counts": [120] * 2000}
    for sigma in (20, 2.0**20):
        mechanism = MECHANISM | {"sigma": sigma}
        published = client.answer("/release", {"mechanism": mechanism, "groups": groups})["groups"]
        answer = client.answer("/intervals", {"mechanism": mechanism, "counts": published["counts"], "total": True})
        assert len(answer["counts"]["low"]) == len(published["counts"]) > 800


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"level": 0.4999}, "/level"),
        ({"level": 0.9999999}, "/level"),
        ({"level": "0.95"}, "/level"),
        ({"level": None}, "/level"),
        ({"counts": [200, 119]}, "/counts"),
        ({"counts": [-918273645]}, "/counts"),
        ({"counts": ["200"]}, "/counts/0"),
        ({"counts": [True]}, "/counts/0"),
        ({"counts": {}}, "/counts"),
        ({"values": {"likes": [1]}}, "/values/likes"),
        ({"values": {"918273645": [1, 2]}}, "/values"),
        ({"values": {"likes": [1, "918273645"]}}, "/values/likes/1"),
        ({"counts": [1e308, 1e308], "total": True}, "/counts"),
        ({"values": {"shares": [-1e308, -1e308]}, "total": True}, "/values/shares"),
        ({"mechanism": MECHANISM | {"tau_star": 1}}, "/mechanism/tau_star"),
        ({"mechanism": MECHANISM | {"sigma": 1e-200}}, "/mechanism/sigma"),
        ({"mechanism": MECHANISM | {"aggregates": {"mu_0": 1}}, "values": {"likes": [1, 2]}}, "/values"),
        ({"total": 1}, "/total"),
        ({"seed": 7}, "/seed"),
    ],
    ids=str,
)
def test_what_cannot_have_been_published_is_refused(client: Client, change: Json, pointer: str) -> None:
    body = {"mechanism": WITH_COLUMNS, "counts": [200, 300], "total": False} | change

    response = client.post("/intervals", body)

    assert set(problem_errors(response, 422, "invalid-request")) == {pointer}
    assert "918273645" not in response.text


def test_numbers_that_are_not_finite_are_refused(client: Client) -> None:
    for number in (b"NaN", b"Infinity", b"1e400"):
        body = json.dumps({"mechanism": MECHANISM, "counts": ["#"]}).encode().replace(b'"#"', number)
        assert client.post("/intervals", body).status_code in {400, 422}


AVERAGED: Json = {
    "names": ["seconds_centred", "likes", "views"],
    "covariance": [[36000000, 0, 0], [0, 400, 0], [0, 0, 900]],
    "sensitivity": {"kind": "box", "lower": [-300, 0, 0], "upper": [300, 5, 20]},
}
AVERAGES: Json = {
    "mechanism": MECHANISM | {"aggregates": AVERAGED},
    "counts": [150, 400],
    "values": {"seconds_centred": [-9000, -60000], "likes": [310, 95], "views": [1240, 50]},
    "means": {"seconds": [0, 600]},
    "ratios": {"per_view": ["likes", "views"], "per_user": ["likes", "count"]},
}


@pytest.mark.parametrize("rounded", [{}, {"is_rounded": True, "units": {"likes": 0.5}}])
def test_means_and_ratios_are_those_of_the_library(client: Client, rounded: Json) -> None:
    """What the numbers do not say is null: JSON has neither ∞ nor NaN."""
    answer = client.answer("/intervals", AVERAGES | rounded | {"total": True})

    ours = mechanism_from_json(AVERAGES["mechanism"])
    given = {"counts": AVERAGES["counts"], "values": AVERAGES["values"], **rounded}
    means = gsh.means(ours, means={"seconds": (0, 600)}, **given)
    ratios = gsh.ratios(ours, ratios={"per_view": ("likes", "views"), "per_user": ("likes", "count")}, **given)
    for field, found in (("means", means), ("ratios", ratios)):
        expected = json.dumps({name: shown(column) for name, column in found.items()})
        assert answer[field] == json.loads(expected.replace("NaN", "null").replace("Infinity", "null"))
    assert answer["ratios"]["per_view"]["estimate"][1] is None
    assert answer["ratios"]["per_view"]["high"][1] is None
    assert answer["counts"] == shown(gsh.intervals(ours, **given).counts)
    assert answer["total"]["values"]["likes"]["high"] == gsh.total(ours, **given).values["likes"].high


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"means": {"918273645": [0, 1]}}, "/means"),
        ({"means": {"seconds": [0]}}, "/means/seconds"),
        ({"means": {"seconds": [0, 500]}}, "/means/seconds"),
        ({"means": {"seconds": [600, 0]}}, "/means/seconds"),
        ({"ratios": {"x": ["likes", "918273645"]}}, "/ratios"),
        ({"ratios": {"x": ["count", "likes"]}}, "/ratios/x/0"),
        ({"ratios": {"x": ["likes"]}}, "/ratios/x"),
        ({"units": {"likes": 0.5}}, "/units"),
        ({"units": {"918273645": 0.5}, "is_rounded": True}, "/units"),
        ({"units": {"likes": 0}, "is_rounded": True}, "/units/likes"),
        ({"is_rounded": 1}, "/is_rounded"),
    ],
    ids=str,
)
def test_what_has_no_mean_or_ratio_is_refused(client: Client, change: Json, pointer: str) -> None:
    response = client.post("/intervals", AVERAGES | change)

    assert set(problem_errors(response, 422, "invalid-request")) == {pointer}
    assert "918273645" not in response.text


def test_the_number_of_items_is_bounded() -> None:
    client = Client(max_release_groups=10)

    assert client.post("/intervals", {"mechanism": MECHANISM, "counts": [200] * 10}).status_code == 200
    errors = problem_errors(
        client.post("/intervals", {"mechanism": MECHANISM, "counts": [200] * 11}), 413, "content-too-large"
    )
    assert errors == {"/counts": "must have at most 10 items"}


@pytest.mark.slow
def test_the_service_itself_does_not_load_scipy() -> None:
    """Workers have it. The service starts faster without."""
    program = "import app.main, sys; app.main.create_app(); print('scipy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "False"


GROUPS: Json = {
    "keys": ["b", "a", "c", "d"],
    "counts": [400, 70000, 1, 180],
    "values": {"likes": [5, 6, 7, 8], "shares": [1, 2, 3, 4]},
}


def test_a_release_has_the_intervals_of_its_groups(client: Client) -> None:
    answer = client.answer("/release", {"mechanism": WITH_COLUMNS, "intervals": 0.9, "groups": GROUPS})

    groups = answer["groups"]
    asked = {"mechanism": WITH_COLUMNS, "level": 0.9, "counts": groups["counts"], "values": groups["values"]}
    assert list(answer) == ["groups", "intervals", "certificate"]
    said = client.answer("/intervals", asked)
    assert said.pop("intervals_cover") == answer["certificate"]["bounds"]["intervals_cover"]
    assert answer["intervals"] == said


def test_a_release_without_intervals_is_as_before(client: Client) -> None:
    assert list(client.answer("/release", {"mechanism": WITH_COLUMNS, "groups": GROUPS})) == ["groups", "certificate"]


TABLE = pa.table(
    {"url": ["b", "a", "c"], "users": [400, 70000, 1], "likes": [5.0, 6.0, 7.0], "shares": [1.0, 2.0, 3.0]}
)
REQUEST: Json = {
    "mechanism": WITH_COLUMNS,
    "intervals": 0.95,
    "count_column": "users",
    "key_columns": ["url"],
}


def post_table(client: Client, content: bytes, request: Json, **headers: str) -> httpx.Response:
    files: Any = {"request": (None, json.dumps(request)), "table": ("t", content)}
    return client.request("POST", "/release/table", files=files, headers=headers)


def check_table_answer(table: pa.Table) -> None:
    numbers = ["users", "likes", "shares"]
    assert table.schema.names == ["url", *numbers, *(f"{name}_{end}" for name in numbers for end in ENDS)]
    found = gsh.intervals(
        OURS,
        counts=table["users"].to_numpy(),
        values={name: table[name].to_numpy() for name in ("likes", "shares")},
    )
    for name, interval in {"users": found.counts, **found.values}.items():
        for end in ENDS:
            assert table[f"{name}_{end}"].to_pylist() == getattr(interval, end).tolist()


@pytest.mark.parametrize("kind", TYPED_FORMATS)
def test_a_table_has_three_columns_for_each_column_of_numbers(client: Client, kind: str) -> None:
    response = post_table(client, as_bytes(kind, TABLE), REQUEST)

    assert response.status_code == 200, response.text
    check_table_answer(from_bytes(response.content))


def test_so_does_a_table_in_csv(client: Client) -> None:
    types = {"url": "string", "users": "int64", "likes": "float64", "shares": "float64"}
    lines = "url,users,likes,shares\nb,400,5,1\na,70000,6,2\nc,1,7,3\n"

    response = post_table(client, lines.encode(), REQUEST | {"csv_types": types})

    header, *rows = response.text.splitlines()
    cells = [row.split(",") for row in rows]
    names = [name.strip('"') for name in header.split(",")]
    columns = {name: [float(row[place]) for row in cells] for place, name in enumerate(names) if name != "url"}
    check_table_answer(pa.table({"url": [row[0] for row in cells], **columns}))


@pytest.mark.parametrize("name", ["users_low", "users_estimate", "users_high", "likes_low"])
def test_a_clash_of_names_is_refused(client: Client, name: str) -> None:
    table = TABLE.rename_columns([name, "users", "likes", "shares"])
    request = REQUEST | {"key_columns": [name]}

    errors = problem_errors(post_table(client, as_stream(table), request), 422, "invalid-request")

    assert set(errors) == {"/intervals"}
    assert post_table(client, as_stream(table), {**request, "intervals": 0.4}).status_code == 422
    del request["intervals"]
    assert post_table(client, as_stream(table), request).status_code == 200


def test_a_clash_of_values_is_refused_in_json_too(client: Client) -> None:
    """The answer can be fetched as a table."""
    columns = COLUMNS | {"names": ["likes", "count_low"]}
    groups = {"keys": [], "counts": [], "values": {"likes": [], "count_low": []}}
    body = {"mechanism": MECHANISM | {"aggregates": columns}, "intervals": 0.95, "groups": groups}

    assert set(problem_errors(client.post("/release", body), 422, "invalid-request")) == {"/intervals"}


def test_intervals_do_not_change_the_noise() -> None:
    """The same random bits give the same numbers, with intervals and without."""
    mechanism = Mechanism(c_u=3, tau=2, tau_star=120.0, sigma=20.0)
    table = pa.table({"url": ["b", "a", "c"], "users": [400, 70000, 1]})
    checked = check_table(Noise(mechanism), table, Roles(("url",), "users", ()))
    first, second = Recorded("same"), Recorded("same")

    plain = checked.release(first).read_all()
    further = checked.release(second, lambda kept: {"users_low": kept.counts - 1}).read_all()

    assert further.select(["url", "users"]).equals(plain)
    assert further["users_low"].to_numpy().tolist() == (plain["users"].to_numpy() - 1).tolist()
    assert first.given == second.given


@pytest.fixture
def bank(tmp_path: Any) -> Iterator[Bank]:
    made = Bank(str(tmp_path / "ledger.sqlite3"))
    yield made
    made.app.state.services.ledger_pool.close()
    made.app.state.services.close_pools()


def paid(bank: Bank, key: str, **changes: Any) -> httpx.Response:
    body = {"mechanism": CASE_STUDY, "budget": "web", "groups": {"keys": ["a"], "counts": [61000]}} | changes
    return bank.request("POST", "/release", json=body, headers={"idempotency-key": key})


def paid_table(bank: Bank, key: str, **changes: Any) -> httpx.Response:
    request = {"mechanism": CASE_STUDY, "budget": "web", "count_column": "users", "key_columns": ["url"]} | changes
    table = pa.table({"url": ["b", "a"], "users": [61000, 70000]})
    return post_table(bank, as_stream(table), request, **{"idempotency-key": key})


@pytest.mark.parametrize("post", [paid, paid_table])
def test_intervals_are_part_of_the_content_of_a_release(bank: Bank, post: Any) -> None:
    """The stored answer has them or not. A retry that asks for others is another request."""
    first = post(bank, "first", intervals=0.95)
    assert first.status_code == 200, first.text

    again = post(bank, "first", intervals=0.95)
    assert again.content == first.content
    assert again.headers["idempotency-replayed"] == "true"
    problem_errors(post(bank, "first", intervals=0.9), 422, "key-reused")
    problem_errors(post(bank, "first"), 422, "key-reused")

    assert post(bank, "plain").status_code == 200
    problem_errors(post(bank, "plain", intervals=0.95), 422, "key-reused")
    assert bank.budget()["spent"]["releases"] == 2


def test_intervals_cost_nothing(bank: Bank) -> None:
    paid(bank, "plain")
    one = bank.budget()["spent"]["mu_squared"]
    paid(bank, "first", intervals=0.95)

    assert bank.budget()["spent"]["mu_squared"] == 2 * one


@pytest.mark.parametrize("post", [paid, paid_table])
def test_a_stored_answer_has_its_intervals_in_every_format(bank: Bank, post: Any) -> None:
    post(bank, "first", intervals=0.95)
    fetched = {
        kind: bank.get("/releases/first/answer", headers={"accept": media_type})
        for kind, media_type in {
            "json": "application/json",
            "arrow": "application/vnd.apache.arrow.stream",
            "parquet": "application/vnd.apache.parquet",
            "csv": "text/csv",
        }.items()
    }

    answer = fetched["json"].json()
    mechanism = gsh.Mechanism(**CASE_STUDY)
    found = gsh.intervals(mechanism, counts=answer["groups"]["counts"])
    assert answer["intervals"] == {"level": 0.95, "counts": shown(found.counts), "values": {}}
    count = "users" if post is paid_table else "count"
    for kind in ("arrow", "parquet"):
        table = from_bytes(fetched[kind].content)
        for end in ENDS:
            assert table[f"{count}_{end}"].to_pylist() == getattr(found.counts, end).tolist()
    header, *rows = fetched["csv"].text.splitlines()
    assert header.replace('"', "").split(",")[-3:] == [f"{count}_{end}" for end in ENDS]
    assert np.allclose([float(row.split(",")[-1]) for row in rows], found.counts.high, rtol=1e-15)
    assert len(rows) == len(found.counts)


def test_a_dry_run_checks_the_names_of_the_columns(client: Client) -> None:
    request = REQUEST | {"dry_run": True}
    clash = TABLE.rename_columns(["users_low", "users", "likes", "shares"])

    assert post_table(client, as_stream(TABLE), request).json()["dry_run"] is True
    refused = post_table(client, as_stream(clash), request | {"key_columns": ["users_low"]})
    assert set(problem_errors(refused, 422, "invalid-request")) == {"/intervals"}
