"""Releases as events of dp-accounting: with δ_infinite, its accountant never finds less than what is certified."""

from fractions import Fraction

import pytest
from dp_accounting import ComposedDpEvent
from dp_accounting.pld import PLDAccountant

import gsh
from gsh.accounting.composition import NOTHING, cost_of, delta_at

MECHANISM = gsh.Mechanism(c_u=4, tau=2, tau_star=40.0, sigma=8.0)
OTHER = gsh.Mechanism(c_u=2, tau_star=30.0, sigma=9.0)


def delta_of(*events: object, epsilon: float) -> float:
    return float(PLDAccountant().compose(ComposedDpEvent(list(events))).get_delta(epsilon))


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_one_release_has_both_parts_of_its_delta(epsilon: float) -> None:
    event, delta = gsh.dp_event(MECHANISM)
    parts = gsh.add_deltas(MECHANISM, epsilon=epsilon)

    assert delta == parts.delta_infinite
    assert delta_of(event, epsilon=epsilon) == pytest.approx(parts.delta_gaussian, rel=1e-3)


def test_two_releases_cost_at_least_what_our_composition_says() -> None:
    both = [gsh.dp_event(each) for each in (MECHANISM, OTHER)]
    ours = NOTHING.plus(MECHANISM, cost_of(MECHANISM)).plus(OTHER, cost_of(OTHER))

    theirs = delta_of(*(each.event for each in both), epsilon=1.0) + sum(each.delta_infinite for each in both)

    assert delta_at(ours, 1.0) <= theirs <= 2 * delta_at(ours, 1.0)


def test_several_tables_are_one_event_and_public_groups_have_no_accident() -> None:
    joint = gsh.dp_event({"a": MECHANISM, "b": gsh.PlainGaussian(c_u=1, sigma=2.0)})

    assert Fraction(joint.event.noise_multiplier) ** 2 * Fraction(5, 16) <= 1  # 1/μ² is 16/5
    assert joint.event.noise_multiplier == pytest.approx(3.2**0.5, rel=1e-15)
    assert joint.delta_infinite == gsh.dp_event(MECHANISM).delta_infinite
    assert gsh.dp_event(gsh.PlainGaussian(c_u=1, sigma=2.0)) == (joint.event.__class__(2.0), 0.0)


def test_an_engine_is_the_event_of_its_mechanism_and_laplace_noise_has_none() -> None:
    presto = gsh.engine(preset="presto", scale=20, c_u=10, threshold=120, epsilon=1)
    laplace = gsh.engine(noise="laplace", scale=10, c_u=5, threshold=150, epsilon=0.5)

    assert presto.charge_refusal is None
    assert presto.mechanism is not None
    assert gsh.dp_event(presto) == gsh.dp_event(presto.mechanism)
    with pytest.raises(gsh.InvalidParameter, match="which laplace noise does not have"):
        gsh.dp_event(laplace)


@pytest.mark.parametrize(
    ("engine", "said"),
    [
        ({"noise": "laplace", "scale": 10, "c_u": 5, "threshold": 150}, "laplace noise does not have"),
        ({"noise": "gaussian", "scale": 10, "c_u": 5, "threshold": 1}, "the threshold is not above tau"),
        ({"noise": "gaussian", "scale": 10, "c_u": 5, "threshold": 99, "l_inf": 2}, "this engine counts rows"),
    ],
)
def test_what_no_budget_can_be_charged_for_says_why(engine: dict[str, object], said: str) -> None:
    assert said in str(gsh.engine(**engine, epsilon=1.0).charge_refusal)  # type: ignore[arg-type]
