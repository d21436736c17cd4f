"""What weekly tables promise: ``python -m benchmarks.weekly`` prints the tables of docs/budgets.md.

One table has a count and a sum per group, with noise of the same cost, as in examples/weekly_job.py. Every number is
certified, and rounded up in the last place shown.
"""

from fractions import Fraction

from benchmarks.markdown import places_up, short, significant_up, table
from gsh.accounting.aggregates import RelativeAggregates
from gsh.accounting.budget_limits import Limit
from gsh.accounting.calibration.draft import Draft
from gsh.accounting.calibration.remaining import calibrate_remaining
from gsh.accounting.composition import NOTHING, Spent, cost_of, delta_at, epsilon_at
from gsh.accounting.mechanism import Mechanism
from gsh.accounting.sensitivity import Box

__all__ = ["report"]

C_U, MOST_SECONDS = 8, 600.0
EPSILON, DELTA, YEARLY_DELTA = 1.0, 1e-6, 1e-4
WEEKS = 52

SECONDS = RelativeAggregates(
    names=("seconds",), relative_covariance=((MOST_SECONDS**2,),), sensitivity=Box((0.0,), (MOST_SECONDS,))
)


def report() -> str:
    """All that the command prints."""
    weekly = smallest(1)
    return "\n\n".join(
        [
            table(("promise", "σ", "τ*"), [priced("one user in one week", 1), priced("one user in 52 weeks", WEEKS)]),
            table(
                (
                    "weeks with the first σ and τ*",
                    f"smallest ε at δ = {short(YEARLY_DELTA)}",
                    "sum of the certificates",
                ),
                [composed(weekly, weeks) for weeks in (1, 4, 13, WEEKS)],
            ),
            table(
                (
                    "parent for all weeks",
                    "weeks that fit",
                    "what all weeks together promise",
                    "σ and τ* of 52 that fit",
                ),
                [without_parent(weekly), *(with_parent(weekly, epsilon) for epsilon in (2.0, 4.0, 8.0))],
            ),
            table(("equal releases", "each", "δ together", "sum of δ"), [corner(releases) for releases in (2, 3)]),
            table(("`releases=` in each of so many runs", "last σ ÷ first σ", "never used"), [crept(WEEKS)]),
        ]
    )


def smallest(releases: int) -> Mechanism:
    """The smallest noise and threshold with which so many tables together are (1, 10⁻⁶)-private."""
    draft = Draft(C_U, 1, None, None, SECONDS)
    return calibrate_remaining(NOTHING, draft, releases, Limit(EPSILON, DELTA)).mechanism


def priced(promise: str, releases: int) -> tuple[str, str, str]:
    mechanism = smallest(releases)
    return promise, places_up(mechanism.sigma, 1), places_up(mechanism.tau_star, 1)


def composed(mechanism: Mechanism, weeks: int) -> tuple[str, str, str]:
    epsilon = epsilon_at(spent(mechanism, weeks), YEARLY_DELTA)
    assert epsilon is not None
    return str(weeks), places_up(epsilon, 2), f"({weeks * EPSILON:g}, {short(weeks * DELTA)})"


def without_parent(mechanism: Mechanism) -> tuple[str, str, str, str]:
    """A year in weeks, each with a budget of its own."""
    return (
        "none",
        f"all {WEEKS}",
        "nothing is limited",
        f"{places_up(mechanism.sigma, 1)}, {places_up(mechanism.tau_star, 1)}",
    )


def with_parent(mechanism: Mechanism, epsilon: float) -> tuple[str, str, str, str]:
    """The same below a parent whose unit is a user in all weeks."""
    limit = Limit(epsilon, YEARLY_DELTA)
    fit = limit.how_many_fit(NOTHING, mechanism, cost_of(mechanism))
    draft = Draft(C_U, 1, None, None, SECONDS)
    year = calibrate_remaining(NOTHING, draft, WEEKS, limit).mechanism
    # With less noise than the budget of a week asks for, the week is short.
    sigma, tau_star = (max(getattr(each, name) for each in (year, mechanism)) for name in ("sigma", "tau_star"))
    promise = f"({epsilon:g}, {short(YEARLY_DELTA)})"
    return promise, str(min(fit, WEEKS)), promise, f"{places_up(sigma, 1)}, {places_up(tau_star, 1)}"


def corner(releases: int) -> tuple[str, str, str, str]:
    """Two equal releases cost a little more than the sum of their certificates. Three do not."""
    delta = delta_at(spent(smallest(1), releases), releases * EPSILON)
    each = f"({EPSILON:g}, {short(DELTA)})"
    return str(releases), each, f"{significant_up(delta, 7)} at ε = {releases * EPSILON:g}", short(releases * DELTA)


def crept(releases: int) -> tuple[str, str, str]:
    """A job that asks each time for a share of 1/releases of what remains: a cost is in proportion to 1/σ²."""
    left = [Fraction(releases - 1, releases) ** runs for runs in (releases - 1, releases)]
    return str(releases), f"{float(left[0]) ** -0.5:.2f}", f"{float(left[1]):.1%}"


def spent(mechanism: Mechanism, releases: int) -> Spent:
    return NOTHING.plus(mechanism, cost_of(mechanism), releases)


if __name__ == "__main__":
    print(report())
