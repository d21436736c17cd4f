"""POST /utility: the library's numbers, for a mechanism or for a target, and errors that name the field."""

import json

import pytest

import gsh
from gsh.accuracy.bounds import LARGEST
from gsh.accuracy.utility import QUANTILES
from tests.app.client import CASE_STUDY, Client, Json, problem_errors

SIZES: Json = {"sizes": [10, 5000, 14000, 10000, 100000], "times": [1000000, 900, 90, 200, 8]}
BODY: Json = {"mechanism": CASE_STUDY} | SIZES
OUTLINE: Json = {"c_u": 51914, "tau": 1}
TARGET: Json = {"target": {"mechanism": OUTLINE, "epsilon": 0.349, "delta": 1e-05}} | SIZES
COLUMNS: Json = {
    "names": ["likes", "shares"],
    "covariance": [[400, 30], [30, 100]],
    "sensitivity": {"kind": "box", "lower": [0, 0], "upper": [1, 1]},
}
FIELDS = {"mechanism", "groups", "volume", "false_groups", "relative_errors", "columns", "sizes"}


@pytest.mark.parametrize("times", [None, [1000000, 900, 90, 200, 8]])
@pytest.mark.parametrize("below", [None, 10000])
def test_the_numbers_are_the_librarys(client: Client, times: list[int] | None, below: float | None) -> None:
    body = BODY | {"times": times, "below": below, "quantiles": [0.5, 0.99]}
    answer = client.answer("/utility", body)
    found = gsh.utility(
        gsh.Mechanism(**CASE_STUDY), sizes=SIZES["sizes"], times=times, below=below, quantiles=[0.5, 0.99]
    )

    assert answer.keys() == FIELDS
    assert answer["mechanism"] == CASE_STUDY
    assert answer["groups"] == {
        "total": found.all_groups,
        "expected": found.groups,
        "share": found.groups_share,
        "standard_deviation": found.groups_deviation,
    }
    assert answer["volume"] == {
        "total": found.all_volume,
        "expected": found.volume,
        "share": found.volume_share,
    }
    assert answer["false_groups"] == {
        "below": 13948 if below is None else below,
        "expected": found.false_groups,
        "share": found.false_share,
    }
    assert found.relative_errors is not None
    assert [(each["quantile"], each["error"]) for each in answer["relative_errors"]] == list(
        zip([0.5, 0.99], found.relative_errors, strict=True)
    )
    assert answer["columns"] == []
    assert [each["size"] for each in answer["sizes"]] == sorted(SIZES["sizes"])
    assert [each["times"] for each in answer["sizes"]] == found.times.tolist()
    assert [each["probability"] for each in answer["sizes"]] == found.probabilities.tolist()


@pytest.mark.parametrize("accounting", ["exact", "add-deltas"])
@pytest.mark.parametrize(
    "draft",
    [
        OUTLINE,
        OUTLINE | {"sigma": 2400},
        OUTLINE | {"tau_star": 40000},
        {"tau": 1, "tau_star": 30000, "sigma": 2300},
        OUTLINE
        | {
            "aggregates": {
                "names": ["likes"],
                "relative_covariance": [[0.25]],
                "sensitivity": {"kind": "box", "lower": [0], "upper": [1]},
            }
        },
        OUTLINE
        | {
            "aggregates": {
                "names": ["views", "likes"],
                "sensitivity": {"kind": "box", "lower": [0, 0], "upper": [20, 5], "groups": [None, 4]},
                "noise": "balanced",
            }
        },
    ],
    ids=["sigma and tau_star", "tau_star", "sigma", "c_u", "relative columns", "balanced columns with a cap"],
)
def test_a_target_is_calibrated_first(client: Client, draft: Json, accounting: str) -> None:
    """The answer is that for the mechanism of /calibrate."""
    target = {"mechanism": draft, "epsilon": 0.349, "delta": 1e-05, "accounting": accounting}
    answer = client.answer("/utility", {"target": target} | SIZES)

    assert answer["mechanism"] == client.answer("/calibrate", target)["mechanism"]
    assert answer == client.answer("/utility", {"mechanism": answer["mechanism"]} | SIZES)


def test_the_noise_of_columns_is_told(client: Client) -> None:
    answer = client.answer("/utility", {"mechanism": CASE_STUDY | {"aggregates": COLUMNS}, "sizes": [10**6] * 16})

    assert answer["columns"] == [
        {"name": "likes", "standard_deviation": 20, "total_standard_deviation": 80},
        {"name": "shares", "standard_deviation": 10, "total_standard_deviation": 40},
    ]
    assert answer["sizes"] == [{"size": 10**6, "times": 16, "probability": 1}]


def test_if_no_group_can_be_published_shares_and_errors_are_null(client: Client) -> None:
    answer = client.answer("/utility", {"mechanism": CASE_STUDY | {"tau": 500}, "sizes": [1, 499]})

    assert answer["groups"]["expected"] == answer["groups"]["share"] == answer["groups"]["standard_deviation"] == 0
    assert answer["false_groups"] == {"below": 13948, "expected": 0, "share": None}
    assert [each["error"] for each in answer["relative_errors"]] == [None] * 3


@pytest.mark.parametrize(("tau_star", "sigma"), [(1e308, 1e308), (2.0, 5e-324), (1e300, 1e-300)])
def test_extreme_mechanisms_are_answered(client: Client, tau_star: float, sigma: float) -> None:
    mechanism = {"c_u": 10**18, "tau": 0, "tau_star": tau_star, "sigma": sigma}

    assert client.answer("/utility", {"mechanism": mechanism, "sizes": [1, LARGEST], "times": [LARGEST - 1, 1]})


@pytest.mark.parametrize(
    ("change", "pointer", "detail"),
    [
        ({"mechanism": None}, "", "must have exactly one of mechanism and target"),
        ({"target": TARGET["target"]}, "", "must have exactly one of mechanism and target"),
        ({"mechanism": CASE_STUDY | {"sigma": 0}}, "/mechanism/sigma", "must be greater than 0"),
        ({"mechanism": CASE_STUDY | {"tau_star": 1.5, "tau": 7}}, "/mechanism/tau_star", "must be greater than tau"),
        ({"sizes": []}, "/sizes", "must have at least 1 item"),
        ({"sizes": [5, 0]}, "/sizes/1", "must be at least 1"),
        ({"sizes": [5, 7.5]}, "/sizes/1", "must be an integer"),
        ({"sizes": [5, "7"]}, "/sizes/1", "must be an integer"),
        ({"sizes": [5, LARGEST + 1]}, "/sizes/1", "must be at most"),
        ({"sizes": 5}, "/sizes", "must be a list"),
        ({"times": [1, 2]}, "/times", "must have as many items as sizes"),
        ({"times": [0] * 5}, "/times/0", "must be at least 1"),
        ({"times": [LARGEST] * 5}, "/times", "must add up to at most 2^53"),
        ({"below": 0}, "/below", "must be greater than 0"),
        ({"quantiles": [0.5, 1]}, "/quantiles/1", "must be at most 0.999"),
        ({"quantiles": [0]}, "/quantiles/0", "must be at least 0.001"),
        ({"quantiles": [0.5] * 101}, "/quantiles", "must have at most 100 items"),
        ({"size": [5]}, "/size", "is not a field of this object"),
    ],
    ids=lambda case: case if isinstance(case, str) else "",
)
def test_an_invalid_field_is_named(client: Client, change: Json, pointer: str, detail: str) -> None:
    errors = problem_errors(client.post("/utility", BODY | change), 422, "invalid-request")

    assert set(errors) == {pointer}
    assert errors[pointer].startswith(detail)


@pytest.mark.parametrize(
    ("change", "pointer", "kind"),
    [
        ({"mechanism": OUTLINE | {"sigma": [2300, 2400]}}, "/target/mechanism/sigma", "invalid-request"),
        ({"mechanism": CASE_STUDY}, "/target/mechanism", "invalid-request"),
        ({"mechanism": {"tau": 1}}, "/target/mechanism", "invalid-request"),
        ({"mechanism": OUTLINE | {"c_u": 0}}, "/target/mechanism/c_u", "invalid-request"),
        (
            {"mechanism": OUTLINE | {"aggregates": COLUMNS | {"covariance": [[1, 2], [2, 1]]}}},
            "/target/mechanism/aggregates/covariance",
            "invalid-request",
        ),
        ({"delta": 1}, "/target/delta", "invalid-request"),
        ({"budget": "web"}, "/target/budget", "invalid-request"),
        ({"mechanism": OUTLINE | {"sigma": 2000}}, "/target/mechanism/sigma", "infeasible-target"),
        ({"mechanism": OUTLINE | {"tau_star": 2000}}, "/target/mechanism/tau_star", "infeasible-target"),
    ],
)
def test_a_fault_of_the_target_is_in_the_target(client: Client, change: Json, pointer: str, kind: str) -> None:
    body = TARGET | {"target": TARGET["target"] | change}

    assert set(problem_errors(client.post("/utility", body), 422, kind)) == {pointer}


def test_the_number_of_sizes_is_bounded() -> None:
    client = Client(max_sizes=10)

    assert client.post("/utility", BODY | {"sizes": [7] * 10, "times": None}).status_code == 200
    for change, pointer in (({"sizes": [7] * 11, "times": None}, "/sizes"), ({"times": [1] * 11}, "/times")):
        errors = problem_errors(client.post("/utility", BODY | change), 422, "limit-exceeded")
        assert errors == {pointer: "must have at most 10 items"}


def test_the_work_is_bounded_before_it_is_begun(client: Client) -> None:
    """The deadline is short: had the work begun, the answer would be 503."""
    many = {"mechanism": CASE_STUDY, "sizes": list(range(1, 100_001)), "quantiles": [0.5] * 100}
    errors = problem_errors(Client(heavy_seconds=20).post("/utility", many), 422, "limit-exceeded")
    assert set(errors) == {"/sizes"}
    assert "fewer sizes or quantiles" in errors["/sizes"]

    wide = {
        "names": [f"c{k}" for k in range(20)],
        "relative_covariance": [[1.0 + (i == j) for j in range(20)] for i in range(20)],
        "sensitivity": {"kind": "box", "lower": [0] * 20, "upper": [1] * 20},
    }
    target = TARGET["target"] | {"mechanism": OUTLINE | {"tau_star": 1e6, "aggregates": wide}}
    errors = problem_errors(client.post("/utility", TARGET | {"target": target}), 422, "limit-exceeded")
    assert set(errors) == {"/target/mechanism/aggregates"}


def test_a_long_body_is_answered_as_a_short_one_is(client: Client) -> None:
    """A worker reads a long body. Here only spaces make it long."""
    short = json.dumps(BODY).encode()

    assert client.post("/utility", short + b" " * 20_000).json() == client.post("/utility", short).json()


def test_ten_thousand_sizes_are_answered(client: Client) -> None:
    answer = client.answer("/utility", {"mechanism": CASE_STUDY, "sizes": list(range(10_001, 20_001))})

    assert len(answer["sizes"]) == answer["groups"]["total"] == 10_000
    assert 0 < answer["groups"]["share"] < 1


def test_the_bounds_of_quantiles_are_the_librarys(client: Client) -> None:
    answer = client.answer("/utility", BODY | {"quantiles": QUANTILES})

    assert [each["quantile"] for each in answer["relative_errors"]] == list(QUANTILES)
