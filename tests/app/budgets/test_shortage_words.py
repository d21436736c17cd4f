"""Why releases do not fit a budget, in one sentence."""

import pytest

from app.ledger.figures import shortage_figures
from app.ledger.state import Budget
from gsh.accounting.accountings import EXACT
from gsh.accounting.budget_limits import Limit
from gsh.accounting.calibration.draft import Draft, Target
from gsh.accounting.calibration.target import calibrate
from gsh.accounting.composition import NOTHING, cost_of
from gsh.accounting.mechanism import Mechanism, PlainGaussian


def weekly(epsilon: float, delta: float) -> Mechanism:
    return calibrate(EXACT, Draft(c_u=8, tau=1, tau_star=None, sigma=None), Target(epsilon, delta)).mechanism


CASES: dict[str, tuple[Mechanism | PlainGaussian, Limit, int, int]] = {
    "the threshold needs 100 % of its cap (1e-6 of δ), and nothing remains; the noise needs 100 % of its cap, and "
    "nothing remains; a limit of δ = 2.1e-6 would fit two": (weekly(1, 1e-6), Limit(2, 1e-6), 1, 1),
    "the threshold needs 118 % of its cap (8.45e-7 of δ), and nothing remains; the noise needs 118 % of its cap, and "
    "nothing remains; a limit of ε = 1.5 and δ = 2.6e-6 would fit two": (weekly(1, 1e-6), Limit(1, 1e-6), 1, 1),
    "the threshold of 52 needs 52 times its cap (1e-6 of δ), and less than 0.001 % remain; the noise of 52 needs 52 "
    "times its cap, and less than 0.001 % remain; a limit of δ = 5.4e-5 would fit all 53": (
        weekly(0.1, 1e-6),
        Limit(1, 1e-6),
        1,
        52,
    ),
    "the noise needs 72.3 % of its cap, and 27.6 % remain; a limit of ε = 1.3 would fit two": (
        PlainGaussian(c_u=1, sigma=5.0),
        Limit(1, 1e-6),
        1,
        1,
    ),
    "noise and threshold need more than the budget has; a limit of ε = 7.6 and δ = 0.0001 would fit all 52": (
        weekly(1, 1e-6),
        Limit(1, 1e-6),
        0,
        52,
    ),
    "the threshold needs more δ than the budget has; a limit of δ = 5.3e-5 would fit all 52": (
        weekly(0.1, 1e-6),
        Limit(1, 1e-6),
        0,
        52,
    ),
    "the noise needs more ε than the budget has; a limit of ε = 1.5 would fit it": (
        PlainGaussian(c_u=1, sigma=3.0),
        Limit(1, 1e-6),
        0,
        1,
    ),
    "": (weekly(1, 1e-6), Limit(1, 1e-6), 0, 1),
}


@pytest.mark.parametrize("sentence", CASES)
def test_a_sentence_says_what_is_short_and_what_would_fit(sentence: str) -> None:
    release, limit, spent, more = CASES[sentence]
    cost = cost_of(release)
    settled = limit.settled_by(cost)
    before = NOTHING.plus(release, cost, spent) if spent else NOTHING
    budget = Budget("web", settled if spent else limit, "", before)

    found = shortage_figures(budget, settled, before.plus(release, cost, more))

    assert ("" if found is None else found["detail"]) == sentence


def sentence(first: Mechanism | PlainGaussian, second: Mechanism | PlainGaussian, limit: Limit) -> str:
    """Of a budget that the first release has divided."""
    settled = limit.settled_by(cost_of(first))
    settled = settled.with_ray_through(settled.caps)
    before = NOTHING.plus(first, cost_of(first))
    found = shortage_figures(Budget("web", settled, "", before), settled, before.plus(second, cost_of(second)))
    assert found is not None
    return str(found["detail"])


def test_a_refusal_states_the_cap_of_the_threshold_and_no_far_larger_limit() -> None:
    """Of δ = 1e-5 the first release left an eighth to thresholds. δ = 0.0012 would do, and nobody should take it."""
    said = sentence(weekly(1, 1e-6), weekly(0.05, 9e-6), Limit(1, 1e-5))

    assert said == (
        "the threshold needs 713 % of its cap (1.26e-6 of δ), and 20.7 % remain; the noise needs 0.416 % of its cap, "
        "and 20.7 % remain; no limit near this one would do, because its two caps keep their proportion"
    )


def test_one_refusal_after_the_other_says_the_same_of_what_remains() -> None:
    """Whichever side is short, each sentence has the remaining share of both."""
    limit, first = Limit(1, 1e-5), weekly(1, 1e-6)

    for second in (weekly(1, 1e-6), weekly(0.5, 5e-6), weekly(0.1, 1e-5)):
        assert sentence(first, second, limit).count("and 20.7 % remain") == 2


def test_a_side_without_a_cost_is_named_if_it_exceeds_its_cap() -> None:
    said = sentence(weekly(1, 1e-5), PlainGaussian(c_u=1, sigma=5.0), Limit(1, 1e-5))

    assert "the noise needs 67.5 % of its cap, and nothing remains; the threshold exceeds its cap (8.24e-6" in said
