"""The price of each accounting for the case study's target: noise, threshold, and δ charged."""

from dataclasses import dataclass

from benchmarks.setting import EPSILON, TARGET
from gsh.accounting.accountings import ADD_DELTAS, EXACT, ZCDP, Accounting, at_epsilon
from gsh.accounting.calibration.comparison import ComparedName, compare
from gsh.accounting.case_study import OUTLINE

__all__ = ["Price", "prices"]

_ACCOUNTINGS: dict[ComparedName, tuple[str, Accounting]] = {
    "exact": ("exact", EXACT),
    "add-deltas": ("add the deltas, best share", ADD_DELTAS),
    "half-split": ("add the deltas, half and half", ADD_DELTAS),
    "zcdp": ("zCDP, best share", ZCDP),
}


@dataclass(frozen=True, slots=True)
class Price:
    """What one accounting needs for the target, and what it charges for the mechanism that exact accounting finds.

    ``least_sigma`` is enough for the noise alone; if the two parts share δ, it would need an infinite threshold.
    ``tau_star`` is the smallest at any σ, reached at ``sigma``.
    """

    name: str
    least_sigma: float
    sigma: float
    tau_star: float
    delta_charged: float


def prices() -> list[Price]:
    """Exact accounting, then the others in order of cost."""
    asked = compare(OUTLINE, TARGET)
    exact = asked["exact"]
    assert exact is not None
    rows = []
    for compared, (name, accounting) in _ACCOUNTINGS.items():
        price = asked[compared]
        assert price is not None
        charged = at_epsilon(accounting, exact.mechanism, EPSILON).delta
        rows.append(Price(name, price.least_sigma, price.mechanism.sigma, price.mechanism.tau_star, charged))
    return rows
