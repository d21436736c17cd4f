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
    "δ is used up by the threshold; ε 1 of 2 remains; a limit of δ = 2.1e-6 would fit two": (
        weekly(1, 1e-6),
        Limit(2, 1e-6),
        1,
        1,
    ),
    "one more needs more ε and δ than remain; a limit of ε = 1.5 and δ = 2.6e-6 would fit it": (
        weekly(1, 1e-6),
        Limit(1, 1e-6),
        1,
        1,
    ),
    "52 more need more ε and δ than remain; a limit of ε = 7.7 and δ = 0.0001 would fit these 52": (
        weekly(1, 1e-6),
        Limit(2, 1e-6),
        1,
        52,
    ),
    "52 more need more δ than remains; ε 0.9 of 1 remains; a limit of δ = 5.4e-5 would fit these 52": (
        weekly(0.1, 1e-6),
        Limit(1, 1e-6),
        1,
        52,
    ),
    "ε is used up by the noise; δ 9.82e-7 of 1e-6 remains; a limit of ε = 1.3 would fit two": (
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
def test_a_sentence_says_what_is_used_up_and_what_would_fit(sentence: str) -> None:
    release, limit, spent, more = CASES[sentence]
    cost = cost_of(release)
    settled = limit.settled_by(cost)
    before = NOTHING.plus(release, cost, spent) if spent else NOTHING
    found = shortage_figures(Budget("web", settled, "", before), settled, before.plus(release, cost, more))

    assert ("" if found is None else found["detail"]) == sentence
