"""The bounds that an operator sets on single releases."""

from contextlib import nullcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import InvalidRequest, LimitExceeded
from app.ledger.releases import Notes
from app.releases.asked import Asked, judged
from app.releases.making import ReleaseRules
from gsh.accounting.accountings import EXACT, at_epsilon
from gsh.accounting.case_study import PRINTED
from gsh.accounting.composition import NOTHING, cost_of, delta_at
from gsh.accounting.mechanism import AnyMechanism, Mechanism, PlainGaussian


def check(rules: ReleaseRules, release: AnyMechanism, budget: str | None = None, *, is_exempt: bool = False) -> None:
    rules.check(judged(Asked(budget, (release,), Notes()), rules.most), is_exempt=is_exempt)


LOUD = Mechanism(c_u=1, tau=1, tau_star=1.5, sigma=0.001)
"""It publishes a count of 2 as it is."""


def test_without_rules_everything_is_allowed() -> None:
    for release in (LOUD, PRINTED, PlainGaussian(c_u=1, sigma=1e-9)):
        check(ReleaseRules(), release)


def test_a_budget_may_be_required() -> None:
    rules = ReleaseRules(require_budget=True)
    with pytest.raises(InvalidRequest, match=r"is required: .* \(GSH_REQUIRE_BUDGET\)") as refused:
        check(rules, PRINTED)

    assert refused.value.pointer == "/budget"
    check(rules, PRINTED, "web")


def test_the_least_sigma_itself_is_allowed() -> None:
    rules = ReleaseRules(least_sigma=PRINTED.sigma)
    check(rules, PRINTED)

    with pytest.raises(LimitExceeded, match=r"must be at least 2228 \(GSH_LEAST_SIGMA\)") as refused:
        check(rules, LOUD)
    assert refused.value.pointer == "/mechanism/sigma"


@given(st.floats(0.5, 50), st.floats(0, 4), st.floats(1e-9, 0.5), st.booleans())
def test_a_release_is_allowed_exactly_if_its_certified_delta_is(
    sigma: float, epsilon: float, delta: float, has_threshold: bool
) -> None:
    release = (
        Mechanism(c_u=3, tau=1, tau_star=1 + 5 * sigma, sigma=sigma)
        if has_threshold
        else PlainGaussian(c_u=3, sigma=sigma)
    )
    certified = delta_at(NOTHING.plus(release, cost_of(release)), epsilon)
    if isinstance(release, Mechanism):
        assert certified == at_epsilon(EXACT, release, epsilon).delta

    allowance = nullcontext() if certified <= delta else pytest.raises(LimitExceeded, match="/mechanism")
    with allowance:
        check(ReleaseRules(most=(epsilon, delta)), release)


def test_other_columns_count_too() -> None:
    """Little noise on a column shows as much as little noise on a count."""
    rules = ReleaseRules(least_sigma=20.0, most=(1.0, 1e-5))
    check(rules, Mechanism(c_u=1, tau=1, tau_star=200.0, sigma=20.0))

    with pytest.raises(LimitExceeded, match="GSH_MOST_EPSILON, GSH_MOST_DELTA"):
        check(rules, Mechanism(c_u=1, tau=1, tau_star=200.0, sigma=20.0, mu_0=10.0))


def test_an_exempt_client_is_not_bounded() -> None:
    check(ReleaseRules(True, 10.0, (1.0, 1e-5)), LOUD, is_exempt=True)
