"""POST /account/engine: the library's numbers, and errors that name the field."""

import pytest

import gsh
from tests.app.client import Client, Json, problem_errors

LAPLACE: Json = {"noise": {"kind": "laplace", "scale": 10}, "c_u": 5, "tau": 1, "threshold": 150, "keeps": ">="}


@pytest.mark.parametrize("at", [{"epsilon": 0.3}, {"delta": 1e-6}])
@pytest.mark.parametrize("kind", ["gaussian", "rounded-gaussian", "discrete-gaussian", "laplace", "geometric"])
def test_the_numbers_are_the_librarys(client: Client, kind: str, at: Json) -> None:
    answer = client.answer("/account/engine", LAPLACE | {"noise": {"kind": kind, "scale": 10}} | at)
    found = gsh.engine(noise=kind, scale=10, c_u=5, threshold=150, **at)  # type: ignore[call-overload]

    names = ("epsilon", "delta", "delta_infinite", "delta_noise", "groups_at_tau", "method")
    assert {name: answer[name] for name in names} == {name: getattr(found, name) for name in names}
    assert answer["exact"] == found.is_exact
    assert (answer["as_mechanism"] is None) == (found.mechanism is None)


def test_its_mechanism_goes_into_the_next_request(client: Client) -> None:
    """Presto's noisy_count_gaussian with HAVING … >= 120: rounding moves the threshold by a half."""
    body = LAPLACE | {"noise": {"kind": "rounded-gaussian", "scale": 20}, "c_u": 10, "threshold": 120, "epsilon": 1}
    answer = client.answer("/account/engine", body)
    mechanism = answer["as_mechanism"]

    assert mechanism == {"c_u": 10, "tau": 1, "tau_star": 119.5, "sigma": 20}
    point = client.answer("/account/exact", {"mechanism": mechanism, "epsilon": 1})["points"][0]
    assert point["delta"] == answer["delta"]


def test_no_finite_epsilon_is_null(client: Client) -> None:
    answer = client.answer("/account/engine", LAPLACE | {"delta": 1e-9})

    assert answer["epsilon"] is None
    assert answer["delta_infinite"] > 1e-9


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"noise": {"kind": "cauchy", "scale": 1}}, "/noise/kind"),
        ({"noise": {"kind": "laplace", "scale": 0}}, "/noise/scale"),
        ({"noise": {"kind": "laplace", "scale": 1e300}}, "/noise/scale"),
        ({"noise": {"kind": "discrete-gaussian", "scale": 0.5}, "c_u": 201}, "/c_u"),
        ({"c_u": 10**6 + 1}, "/c_u"),
        ({"tau": 2**60}, "/tau"),
        ({"threshold": 1e300}, "/threshold"),
        ({"keeps": "="}, "/keeps"),
        ({"epsilon": 701}, "/epsilon"),
        ({"delta": 1e-6}, ""),
    ],
)
def test_a_wrong_field_is_named(client: Client, changes: Json, pointer: str) -> None:
    response = client.post("/account/engine", LAPLACE | {"epsilon": 0.5} | changes)

    assert problem_errors(response, 422, "invalid-request").keys() == {pointer}


def test_a_search_that_takes_minutes_is_refused(client: Client) -> None:
    body = LAPLACE | {"noise": {"kind": "discrete-gaussian", "scale": 5000}, "c_u": 10**6, "threshold": 30000}
    errors = problem_errors(client.post("/account/engine", body | {"delta": 1e-6}), 422, "limit-exceeded")

    assert "ask for δ at an ε" in errors["/c_u"]


OPENDP: Json = {"preset": "opendp-laplace", "noise": {"scale": 10}, "c_u": 5, "threshold": 150, "epsilon": 0.5}


def test_a_preset_answers_with_its_claim(client: Client) -> None:
    answer = client.answer("/account/engine", OPENDP)
    found = gsh.engine(preset="opendp-laplace", scale=10, c_u=5, threshold=150, epsilon=0.5)

    assert (answer["noise"], answer["keeps"], answer["threshold"]) == ("geometric", ">=", 150)
    assert answer["delta"] == found.delta
    assert [each["delta"] for each in answer["claims"]] == [found.claims[0].delta]


def test_a_tool_that_is_given_epsilon_and_delta(client: Client) -> None:
    answer = client.answer(
        "/account/engine", {"preset": "python-dp-truncated-geometric", "c_u": 10, "epsilon": 1, "delta": 1e-6}
    )

    assert (answer["noise"], answer["threshold"]) == ("truncated-geometric", None)
    assert answer["delta"] == gsh.engine(preset="python-dp-truncated-geometric", c_u=10, epsilon=1, delta=1e-6).delta


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"preset": "spark"}, "/preset"),
        ({"seed": 7}, "/seed"),
        ({"noise": {"kind": "laplace", "scale": 10}}, "/noise/kind"),
        ({"noise": None}, "/noise/scale"),
        ({"threshold": None}, "/threshold"),
        ({"l2": 0.5}, "/l2"),
        ({"l_inf": 1001}, "/l_inf"),
        ({"preset": "python-dp-laplace"}, ""),
        ({"preset": "python-dp-laplace", "delta": 1e-6}, "/noise/scale"),
        ({"preset": "python-dp-laplace", "noise": None, "threshold": None, "delta": 1e-6, "epsilon": 0}, "/epsilon"),
    ],
)
def test_what_a_preset_does_not_take_is_named(client: Client, changes: Json, pointer: str) -> None:
    response = client.post("/account/engine", OPENDP | changes)

    assert problem_errors(response, 422, "invalid-request").keys() == {pointer}
