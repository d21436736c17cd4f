"""POST /release: the answer is private, sorted, certified, and new each time."""

import json
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.http.json_route import SHORT_BYTES, parsed
from app.http.problems.errors import InvalidBody
from app.main import create_app
from app.releases.schemas.release import ReleaseRequest
from app.settings import Settings
from tests.app.client import CASE_STUDY, Client, Json, problem_errors

COLUMNS = {
    "names": ["likes", "shares"],
    "covariance": [[400, 0], [0, 100]],
    "sensitivity": {"kind": "box", "lower": [0, 0], "upper": [1, 1]},
}
SMALL: Json = {"c_u": 3, "tau": 2, "tau_star": 120, "sigma": 20, "aggregates": COLUMNS}
COUNTS_ONLY: Json = {"c_u": 3, "tau": 2, "tau_star": 120, "sigma": 20}
GROUPS: Json = {
    "keys": [["b.org", "FR"], ["a.org", "US"], ["a.org", "FR"], ["c.org", "US"]],
    "counts": [2000, 1000, 3, 1],
    "values": {"likes": [70, 30, 1, 0], "shares": [0.5, -3, 2, 9]},
}


def grouped(counts: dict[Any, int]) -> Json:
    return {"keys": list(counts), "counts": list(counts.values())}


def test_kept_groups_have_the_shape_of_the_posted_groups(client: Client) -> None:
    """Sorted by key; dropped ones leave no trace."""
    answer = client.answer("/release", {"mechanism": SMALL, "epsilon": 1, "groups": GROUPS})

    assert set(answer) == {"groups", "certificate"}
    groups = answer["groups"]
    assert groups["keys"] == [["a.org", "US"], ["b.org", "FR"]]
    assert [abs(noisy - true) < 200 for noisy, true in zip(groups["counts"], [1000, 2000], strict=True)] == [True] * 2
    assert set(groups["values"]) == {"likes", "shares"}
    assert all(abs(noisy - true) < 200 for noisy, true in zip(groups["values"]["likes"], [30, 70], strict=True))
    assert all(abs(noisy - true) < 100 for noisy, true in zip(groups["values"]["shares"], [-3, 0.5], strict=True))


def test_counts_alone_have_no_values(client: Client) -> None:
    answer = client.answer("/release", {"mechanism": COUNTS_ONLY, "groups": grouped({"a": 1000})})

    assert answer["groups"]["values"] == {}


def test_every_number_is_on_the_grid_of_the_certificate(client: Client) -> None:
    answer = client.answer("/release", {"mechanism": SMALL, "groups": GROUPS})
    grid = answer["certificate"]["grid"]

    assert grid == {"count": 2.0**-16, "values": {"likes": 2.0**-16, "shares": 2.0**-17}}
    assert all((count / grid["count"]).is_integer() for count in answer["groups"]["counts"])
    for name, column in answer["groups"]["values"].items():
        assert all((value / grid["values"][name]).is_integer() for value in column)


def test_numbers_are_integers_if_the_grid_is_one(client: Client) -> None:
    mechanism = COUNTS_ONLY | {"sigma": 2**20, "tau_star": 10**7}
    answer = client.answer("/release", {"mechanism": mechanism, "groups": grouped({"a": 2**40})})

    assert answer["certificate"]["grid"]["count"] == 1
    assert isinstance(answer["groups"]["counts"][0], int)


def test_numbers_are_rounded_as_asked_and_the_certificate_says_it(client: Client) -> None:
    """Counts to integers, other columns to integers or their units. The intervals are wider by half of a unit."""
    body = {"mechanism": SMALL, "groups": GROUPS, "intervals": 0.95, "round": True, "units": {"shares": 0.5}}
    answer = client.answer("/release", body)
    groups, said = answer["groups"], answer["certificate"]

    assert said["rounded"] == {"count": 1, "values": {"likes": 1, "shares": 0.5}}
    assert said["grid"]["count"] == 2.0**-16
    assert all(isinstance(number, int) for number in (*groups["counts"], *groups["values"]["likes"]))
    assert all((2 * share).is_integer() for share in groups["values"]["shares"])
    asked = {"mechanism": SMALL, "counts": groups["counts"], "values": groups["values"]}
    alike = client.answer("/intervals", asked | {"is_rounded": True, "units": {"shares": 0.5}})
    assert answer["intervals"]["counts"] == alike["counts"]
    assert answer["intervals"]["values"] == alike["values"]
    assert answer["intervals"]["values"]["shares"] != client.answer("/intervals", asked)["values"]["shares"]


def test_rounding_is_part_of_what_a_request_means(client: Client) -> None:
    """Without it the digest of a request is as before."""
    plain = client.answer("/release", {"mechanism": COUNTS_ONLY, "groups": grouped({"a": 1000}), "round": False})

    assert "rounded" not in plain["certificate"]
    assert not isinstance(plain["groups"]["counts"][0], int)


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"units": {"likes": 2}}, "/units"),
        ({"round": True, "units": {"clicks": 2}}, "/units/clicks"),
        ({"round": True, "units": {"likes": 0}}, "/units/likes"),
        ({"round": "yes"}, "/round"),
    ],
)
def test_a_rounding_that_cannot_be_is_refused(change: Json, pointer: str, client: Client) -> None:
    answer = client.post("/release", {"mechanism": SMALL, "groups": GROUPS} | change)

    kind = "invalid-mechanism" if answer.json()["type"].endswith("mechanism") else "invalid-request"
    assert [*problem_errors(answer, 422, kind)] == [pointer]


def test_each_release_draws_new_noise(client: Client) -> None:
    body = {"mechanism": COUNTS_ONLY, "groups": grouped({"a": 1000, "b": 1000, "c": 1000})}
    answers = [client.answer("/release", body) for _ in range(20)]

    assert len({str(answer["groups"]["counts"]) for answer in answers}) == 20
    assert len({answer["certificate"]["release_id"] for answer in answers}) == 20
    assert all(len(set(answer["groups"]["counts"])) == 3 for answer in answers)


def test_an_empty_table_is_a_valid_release_of_nothing(client: Client) -> None:
    empty = {"keys": [], "counts": [], "values": {"likes": [], "shares": []}}
    answer = client.answer("/release", {"mechanism": SMALL, "epsilon": 1, "groups": empty})

    assert answer["groups"] == empty
    assert answer["certificate"]["delta"] > 0


def test_zero_users_are_never_released(client: Client) -> None:
    """Even if τ is 0, which acts as 1, and the noise alone would often lift a group above τ*."""
    mechanism = {"c_u": 1, "tau": 0, "tau_star": 1.5, "sigma": 1000}
    zeros = {f"k{number}": 0 for number in range(1000)}
    answer = client.answer("/release", {"mechanism": mechanism, "groups": grouped(zeros | {"one": 10**6})})

    assert answer["groups"]["keys"] == ["one"]


def test_keys_keep_their_types(client: Client) -> None:
    keys = [7, "7", ["7", 7], 7.5, 9007199254740993]
    answer = client.answer("/release", {"mechanism": COUNTS_ONLY, "groups": {"keys": keys, "counts": [10**6] * 5}})

    assert json.dumps(answer["groups"]["keys"]) == '[7, 7.5, 9007199254740993, "7", ["7", 7]]'


def test_counts_can_be_released_with_mu_0_alone(client: Client) -> None:
    """Its columns are released elsewhere; their share of μ is in the certificate."""
    mechanism = COUNTS_ONLY | {"aggregates": {"mu_0": 0.5}}
    certificate = client.answer("/release", {"mechanism": mechanism, "groups": grouped({"a": 9})})["certificate"]

    assert certificate["mu_0"] == 0.5
    assert certificate["mu"] > 0.86


def test_the_certificate_states_the_point_asked_for(client: Client) -> None:
    by_epsilon = client.answer("/release", {"mechanism": CASE_STUDY, "epsilon": 0.349, "groups": grouped({})})
    by_delta = client.answer("/release", {"mechanism": CASE_STUDY, "delta": 1.1e-05, "groups": grouped({})})

    point = client.point(CASE_STUDY, 0.349)
    certificate = by_epsilon["certificate"]
    assert {name: certificate[name] for name in ("epsilon", "delta", "delta_infinite")} == {
        name: point[name] for name in ("epsilon", "delta", "delta_infinite")
    }
    (inverse,) = client.answer("/account/exact", {"mechanism": CASE_STUDY, "delta": 1.1e-05})["points"]
    assert by_delta["certificate"]["epsilon"] == inverse["epsilon"]
    assert by_delta["certificate"]["delta"] == 1.1e-05


def test_without_a_point_the_certificate_has_mu_and_delta_infinite(client: Client) -> None:
    certificate = client.answer("/release", {"mechanism": CASE_STUDY, "groups": grouped({})})["certificate"]
    account = client.answer("/account/exact", {"mechanism": CASE_STUDY, "epsilon": 0.349})

    assert (certificate["epsilon"], certificate["delta"]) == (None, None)
    assert certificate["mu"] == account["mechanism"]["mu"]
    assert certificate["delta_infinite"] == account["points"][0]["delta_infinite"]


def test_the_certificate_has_the_mechanism_the_version_and_the_time(client: Client) -> None:
    before = datetime.now(UTC)
    certificate = client.answer("/release", {"mechanism": SMALL, "epsilon": 1, "groups": GROUPS})["certificate"]

    assert certificate["accounting"] == "exact"
    assert certificate["service_version"] == create_app(Settings()).version
    assert uuid.UUID(certificate["release_id"]).version == 4
    assert abs(datetime.fromisoformat(certificate["released_at"]) - before) < timedelta(minutes=5)
    assert client.point(certificate["mechanism"], 1)["delta"] == certificate["delta"]


def test_a_calibrated_mechanism_can_be_released(client: Client) -> None:
    columns = COLUMNS | {"relative_covariance": [[1, 0], [0, 0.25]]}
    del columns["covariance"]
    draft = {"c_u": 10, "tau": 1, "aggregates": columns}
    solved = client.answer("/calibrate", {"mechanism": draft, "epsilon": 1, "delta": 1e-06})

    answer = client.answer("/release", {"mechanism": solved["mechanism"], "epsilon": 1, "groups": GROUPS})

    assert answer["certificate"]["delta"] == solved["delta"]


def test_a_delta_that_no_epsilon_reaches_is_refused(client: Client) -> None:
    body = {"mechanism": CASE_STUDY, "delta": 1e-06, "groups": grouped({"a": 10**6})}
    errors = problem_errors(client.post("/release", body), 422, "infeasible-target")

    assert set(errors) == {"/delta"}
    assert "1.0000866420901491e-05" in errors["/delta"]


def test_too_many_groups_are_413_with_the_endpoint_for_large_tables() -> None:
    client = Client(max_release_groups=3)
    three = grouped({"a": 1, "b": 2, "c": 3})

    assert client.post("/release", {"mechanism": COUNTS_ONLY, "groups": three}).status_code == 200
    four = {"mechanism": COUNTS_ONLY, "groups": grouped({"a": 1, "b": 2, "c": 3, "d": 4})}
    errors = problem_errors(client.post("/release", four), 413, "content-too-large")
    assert "3" in errors["/groups"]
    assert "/release/table" in errors["/groups"]


def test_too_many_bytes_are_413_with_the_endpoint_for_large_tables() -> None:
    body = {"mechanism": COUNTS_ONLY, "groups": grouped({f"{'k' * 50}{number}": 1 for number in range(100)})}
    errors = problem_errors(Client(max_release_bytes=2048).post("/release", body), 413, "content-too-large")

    assert "2048" in errors[""]
    assert "/release/table" in errors[""]


@pytest.fixture(scope="module")
def large() -> Json:
    """Too large for the event loop: a worker answers."""
    counts = {f"https://example.org/{number:06}": 10**6 if number % 2 else 1 for number in range(200_000)}
    body = {"mechanism": COUNTS_ONLY, "epsilon": 1, "groups": grouped(counts)}
    assert len(json.dumps(body)) > SHORT_BYTES
    return body


def test_a_worker_releases_two_hundred_thousand_groups(client: Client, large: Json) -> None:
    answer = client.answer("/release", large)

    assert answer["groups"]["keys"] == large["groups"]["keys"][1::2]
    assert len(set(answer["groups"]["counts"])) > 90_000


def test_errors_of_a_large_release_are_returned_by_the_worker(client: Client, large: Json) -> None:
    keys = large["groups"]["keys"]
    twice = large | {"groups": large["groups"] | {"keys": [*keys[:-1], keys[0]]}}
    fractional = large | {"groups": large["groups"] | {"counts": [0.5] * len(keys)}}
    more = large | {"groups": {"keys": [*keys, "one more"], "counts": [1] * (len(keys) + 1)}}

    assert set(problem_errors(client.post("/release", twice), 422, "invalid-request")) == {"/groups/keys"}
    assert set(problem_errors(client.post("/release", fractional), 422, "invalid-request")) == {"/groups/counts"}
    assert set(problem_errors(client.post("/release", more), 413, "content-too-large")) == {"/groups"}
    broken = json.dumps(large).encode()[:-1]
    assert problem_errors(client.post("/release", broken), 400, "invalid-json") == {}


def test_a_worker_releases_many_columns(client: Client) -> None:
    names = [f"c{number}" for number in range(9)]
    columns = {
        "names": names,
        "covariance": [[100.0 * (i == j) + 1 for j in range(9)] for i in range(9)],
        "sensitivity": {"kind": "l2", "bound": 1},
    }
    groups = {"keys": ["a"], "counts": [10**6], "values": {name: [0.0] for name in names}}
    answer = client.answer("/release", {"mechanism": COUNTS_ONLY | {"aggregates": columns}, "groups": groups})

    assert list(answer["groups"]["values"]) == names


@pytest.mark.parametrize(
    ("content", "query", "headers"),
    [
        ({"seed": 1}, "", {}),
        ({"noise": [0]}, "", {}),
        ({"random_state": 7}, "", {}),
        ({}, "?seed=1", {}),
        ({}, "", {"x-seed": "1"}),
    ],
    ids=str,
)
def test_a_client_cannot_choose_the_noise(client: Client, content: Json, query: str, headers: dict[str, str]) -> None:
    """A field or a parameter for it is refused; a header changes nothing."""
    body = {"mechanism": COUNTS_ONLY, "groups": grouped({"a": 1000})} | content
    responses = [
        client.request("POST", f"/release{query}", json=body, headers=headers | {"content-type": "application/json"})
        for _ in range(3)
    ]

    if content or query:
        assert {response.status_code for response in responses} == {422}
    else:
        assert len({str(response.json()["groups"]) for response in responses}) == 3


def test_a_thousand_faults_are_one_error() -> None:
    """Errors are not collected one by one, which took gigabytes. The answer does not show their places."""
    bodies = [
        {"groups": {"keys": [], "counts": [-1] * 1000}},
        {"groups": {"keys": [], "counts": [], "values": {"a": ["x"] * 1000}}},
        {"epsilon": ["x"] * 1000},
        {"mechanism": {"aggregates": {"sensitivity": {"kind": "vectors", "vectors": ["x"] * 1000}}}},
    ]
    for body in bodies:
        with pytest.raises(InvalidBody) as refused:
            parsed(ReleaseRequest, json.dumps(body).encode())
        assert refused.value.count < 20
