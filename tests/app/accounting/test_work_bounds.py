"""The work of a request is bounded by its public parameters, before it starts."""

import json
from typing import Any

import pytest

from app.workers.work_bounds import columns_work, theorem_work
from tests.app.client import CASE_STUDY, Client, Json, problem_errors

TARGET = {"epsilon": 0.349, "delta": 1e-05}


def columns(count: int, kind: str = "box", name: str = "covariance", vectors: int = 1) -> Json:
    sensitivity: dict[str, Json] = {
        "box": {"kind": "box", "lower": [0] * count, "upper": [0.00001] * count},
        "l1": {"kind": "l1", "bound": 0.001},
        "l2": {"kind": "l2", "bound": 0.001},
        "vectors": {"kind": "vectors", "vectors": [[0.001] * count] * vectors},
    }
    return {
        "names": [f"c{k}" for k in range(count)],
        name: [[1.0 + (i == j) for j in range(count)] for i in range(count)],
        "sensitivity": sensitivity[kind],
    }


def relative(count: int, kind: str = "box") -> Json:
    return columns(count, kind, "relative_covariance")


def draft(**parameters: Any) -> Json:
    return TARGET | {"mechanism": {"c_u": 51914, "tau": 1} | parameters}


SIGMAS = [2300 + k / 100 for k in range(10_000)]
REFUSED: dict[str, tuple[str, Json, str]] = {
    "a frontier of 10 000 with 20 relative columns": (
        "/calibrate",
        draft(sigma=SIGMAS, aggregates=relative(20)),
        "/mechanism/sigma",
    ),
    "a frontier of 10 000 with 4 relative columns": (
        "/calibrate",
        draft(sigma=SIGMAS, aggregates=relative(4)),
        "/mechanism/sigma",
    ),
    "σ for 20 relative columns": (
        "/calibrate",
        draft(tau_star=10**6, aggregates=relative(20)),
        "/mechanism/aggregates",
    ),
    "σ for 100 relative columns with a Euclidean bound": (
        "/calibrate",
        draft(tau_star=10**6, aggregates=relative(100, "l2")),
        "/mechanism/aggregates",
    ),
    "a comparison of 20 relative columns": ("/compare", draft(aggregates=relative(20)), "/mechanism/aggregates"),
    "the theorem at ten thousand points": (
        "/account/exact",
        {"mechanism": CASE_STUDY | {"c_u": 1000}, "epsilon": [k / 10_000 for k in range(10_000)], "theorem": True},
        "/theorem",
    ),
    "the theorem for 20 tables": (
        "/account/exact",
        {
            "tables": [{"name": f"t{k}"} | CASE_STUDY | {"c_u": 1} for k in range(20)],
            "epsilon": [k / 10 for k in range(1, 10)],
            "theorem": True,
        },
        "/theorem",
    ),
}


@pytest.mark.parametrize(("path", "body", "pointer"), REFUSED.values(), ids=REFUSED)
def test_too_much_work_is_refused_before_it_is_begun(path: str, body: Json, pointer: str) -> None:
    """The error names a bound that would fit. The deadline is short: had the work begun, the answer would be 503."""
    errors = problem_errors(Client(heavy_seconds=20).post(path, body), 422, "limit-exceeded")

    assert set(errors) == {pointer}
    assert "at most 20000" in errors[pointer]
    assert "fewer" in errors[pointer]


def test_the_bound_is_as_set() -> None:
    body = draft(sigma=[2300, 2400], aggregates=relative(4))

    assert Client(max_work=100).post("/calibrate", body).status_code == 200
    assert problem_errors(Client(max_work=1).post("/calibrate", body), 422, "limit-exceeded")


def test_one_calibration_of_a_million_corners_is_allowed() -> None:
    body = draft(sigma=2600.5, aggregates=columns(20))

    assert Client().post("/calibrate", body).status_code == 200


def test_work_grows_with_columns_and_with_extreme_points() -> None:
    for points in (1, 100, 10_000, None):
        assert columns_work(4, points) < columns_work(8, points) < columns_work(100, points)
    assert columns_work(4, 1) < columns_work(4, 1000) < columns_work(4, 100_000)


def test_a_split_of_more_tables_takes_longer() -> None:
    """Measured: 2.3 ms for 10 000 splits of one table, 14 ms for those of 20."""
    works = [theorem_work(10**6, 1, [0] * tables) for tables in (1, 2, 5, 20)]

    assert works == sorted(works)
    assert works[-1] > 6 * works[0]


def test_a_long_body_is_answered_as_a_short_one_is() -> None:
    """A worker reads a long body. Here only spaces make it long."""
    client = Client()
    bodies = [
        ("/account/exact", {"mechanism": CASE_STUDY | {"aggregates": columns(4, "l2")}, "epsilon": [0.1, 0.349]}),
        ("/account/exact", {"mechanism": CASE_STUDY | {"aggregates": columns(4, "l2") | {"names": []}}, "epsilon": 1}),
        ("/account/add-deltas", {"mechanism": CASE_STUDY | {"sigma": -1, "x": 2}, "delta": 1e-5}),
        ("/calibrate", draft(aggregates=relative(3))),
        ("/compare", draft(aggregates=columns(3))),
    ]
    for path, body in bodies:
        short = json.dumps(body).encode()
        answers = [client.post(path, content) for content in (short, short + b" " * 20_000)]
        assert answers[0].status_code == answers[1].status_code
        told, again = (answer.json() | {"request_id": ""} for answer in answers)
        assert told == again


def test_a_hundred_thousand_errors_are_found_by_a_worker() -> None:
    """Not on the event loop: while no worker may be waited for, the request is refused unread."""
    body = {"mechanism": CASE_STUDY, "epsilon": 1} | {f"x{k}": 0 for k in range(100_000)}

    response = Client().post("/account/exact", body)
    errors = problem_errors(response, 422, "invalid-request")
    assert errors == {f"/x{k}": "is not a field of this object" for k in range(50)}
    assert response.json()["detail"].startswith("100000 errors; the first: /x0 ")
    problem_errors(Client(heavy_seconds=0.001).post("/account/exact", body), 503, "deadline-passed")
