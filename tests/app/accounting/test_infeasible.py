"""An impossible target is 422 of type infeasible-target, and its advice makes it possible."""

import re

import httpx
import pytest

from tests.app.client import Client, Json, problem_errors

TARGET = {"epsilon": 1, "delta": 1e-05}
ADVICE = re.compile(r"^must be at least (\S+?),? |^must have mu_0 below (\S+?):")
MOST_STEPS = 4

IMPOSSIBLE = {
    "tau_star: sigma too small": {"c_u": 51914, "tau": 1, "sigma": 100},
    "sigma: tau_star too low": {"c_u": 51914, "tau": 1, "tau_star": 1000},
    "c_u: sigma too small": {"tau": 1, "tau_star": 10, "sigma": 3},
    "c_u: tau_star too low": {"tau": 1, "tau_star": 10, "sigma": 30},
    "both: mu_0 too large": {"c_u": 100, "tau": 1, "aggregates": {"mu_0": 3}},
    "tau_star: mu_0 too large": {"c_u": 100, "tau": 1, "sigma": 100, "aggregates": {"mu_0": 3}},
    "sigma: mu_0 too large": {"c_u": 100, "tau": 1, "tau_star": 100, "aggregates": {"mu_0": 3}},
    "c_u: mu_0 too large": {"tau": 1, "tau_star": 100, "sigma": 10, "aggregates": {"mu_0": 3}},
}


def followed(draft: Json, pointer: str, detail: str) -> Json:
    """The draft with the value the advice names."""
    advice = ADVICE.match(detail)
    assert advice, f"says no value to follow: {detail}"
    at_least, below = advice.groups()
    name = pointer.removeprefix("/mechanism/")
    return draft | ({name: float(at_least)} if at_least else {name: {"mu_0": float(below) * 0.99}})


@pytest.mark.parametrize("accounting", ["exact", "add-deltas"])
@pytest.mark.parametrize("draft", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_the_advice_of_an_impossible_target_makes_it_possible(client: Client, draft: Json, accounting: str) -> None:
    """A mechanism with several faults may get them one after the other, but never in circles."""
    for _ in range(MOST_STEPS):
        response = client.post("/calibrate", {"mechanism": draft, **TARGET, "accounting": accounting})
        if response.status_code == 200:
            break
        ((pointer, detail),) = problem_errors(response, 422, "infeasible-target").items()
        assert pointer.removeprefix("/mechanism/") in {"sigma", "tau_star", "aggregates"}
        assert response.json()["detail"] == f"{pointer} {detail}"
        better = followed(draft, pointer, detail)
        assert better != draft
        draft = better

    assert response.status_code == 200, response.text


def test_advice_without_columns_never_mentions_columns(client: Client) -> None:
    """At ε = 0 and the smallest δ, σ would have to exceed the largest double; no μ₀ can be made smaller."""
    response = client.post("/calibrate", {"mechanism": {"c_u": 10**18, "tau": 1}, "epsilon": 0, "delta": 5e-324})

    ((pointer, detail),) = problem_errors(response, 422, "infeasible-target").items()
    assert "aggregates" not in pointer
    assert "mu_0" not in detail


def test_an_infeasible_sigma_of_a_frontier_is_null_and_not_an_error(client: Client) -> None:
    body = {"mechanism": {"c_u": 51914, "tau": 1, "sigma": [100, 200]}, **TARGET}

    assert [entry["solution"] for entry in client.answer("/calibrate", body)["frontier"]] == [None, None]


@pytest.mark.parametrize("groups", [None, [3, 2]], ids=["all groups", "caps"])
def test_the_noise_that_columns_need_is_a_factor_to_follow(client: Client, groups: list[int] | None) -> None:
    """With so many times the noise some σ meets the target; with a hundredth less of it none does."""

    def asked(factor: float) -> httpx.Response:
        columns = {
            "names": ["likes", "seconds"],
            "covariance": [[0.25 * factor**2, 0], [0, 100 * factor**2]],
            "sensitivity": {"kind": "box", "lower": [0, 0], "upper": [1, 600], "groups": groups},
        }
        return client.post("/calibrate", {"mechanism": {"c_u": 40, "tau": 1, "aggregates": columns}, **TARGET})

    ((pointer, detail),) = problem_errors(asked(1), 422, "infeasible-target").items()
    assert pointer == "/mechanism/aggregates"
    times = re.search(r"need more than (\S+) times their noise$", detail)
    assert times is not None
    assert len(times[1]) <= 4
    assert asked(float(times[1])).status_code == 200
    assert asked(0.985 * float(times[1])).status_code == 422
