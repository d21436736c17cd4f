"""A worked example with caps per column: likes and shares of the case study. ``make case-study`` prints it.

A user views up to C_u URLs, likes at most 1 000 and shares at most 100 of them. Noise on the columns is balanced.
"""

import math

from benchmarks.markdown import places_up, significant_up, table
from benchmarks.setting import C_U, DELTA, EPSILON, TARGET, TAU
from gsh.accounting.accountings import EXACT, at_epsilon
from gsh.accounting.calibration.balanced import balanced
from gsh.accounting.calibration.draft import Draft
from gsh.accounting.calibration.target import calibrate
from gsh.accounting.column_costs import Capped
from gsh.accounting.frontier import Worst, frontier_of
from gsh.accounting.mechanism import Mechanism
from gsh.accounting.numerics.balls import at_precision
from gsh.accounting.sensitivity import Box

__all__ = ["report"]

CAPS = {"likes": 1000, "shares": 100}
# A worst case inside a piece, as tests/gsh/accounting/test_column_caps.py has more of them.
INSIDE = Mechanism(
    c_u=20, tau=1, tau_star=277.10489228119553, sigma=85.76151641060768, capped=(Capped(4, 0.03456433506718147),)
)
INSIDE_EPSILON = 0.004063146725708982


def report() -> str:
    """The noise with and without caps, at the same privacy, and an example of a worst case inside a piece."""
    with_caps, without = _mechanism(tuple(CAPS.values())), _mechanism(None)
    rows = [("count", "", *_noise(with_caps.sigma, without.sigma))]
    for j, (name, cap) in enumerate(CAPS.items()):
        rows.append((name, str(cap), *_noise(_column(with_caps, j), _column(without, j))))
    rows.append(("τ*", "", *_noise(with_caps.tau_star, without.tau_star)))
    columns = ("standard deviation, or threshold", "groups per user, at most", "with caps", "without caps", "ratio")
    delta = significant_up(at_epsilon(EXACT, with_caps, EPSILON).delta, 9)
    return "\n\n".join(
        [table(columns, rows), f"With caps, δ at ε = {EPSILON} is {delta} (target {DELTA}).", _inside_sentence()]
    )


def _mechanism(groups: tuple[int, ...] | None) -> Mechanism:
    names = tuple(CAPS)
    columns = balanced(names, Box((0.0,) * len(names), (1.0,) * len(names), groups), C_U)
    return calibrate(EXACT, Draft(C_U, TAU, None, None, columns), TARGET).mechanism


def _column(mechanism: Mechanism, j: int) -> float:
    assert mechanism.aggregates is not None
    return math.sqrt(mechanism.aggregates.covariance[j][j])


def _noise(capped: float, uniform: float) -> tuple[str, str, str]:
    return places_up(capped, 2), places_up(uniform, 2), f"{uniform / capped:.2f}"


def _inside_sentence() -> str:
    """The ends and the caps are not enough if ε is near 0."""
    exact = at_epsilon(EXACT, INSIDE, INSIDE_EPSILON).delta
    (cap,) = INSIDE.caps
    corners = Worst(frontier_of(INSIDE), (0, INSIDE.c_u - cap, INSIDE.c_u))
    at_corners = float(at_precision(128, lambda: corners.largest(INSIDE_EPSILON)))
    column = f"n = {cap}, μ₀ = {INSIDE.capped[0].mu_0:.5f}"
    setting = f"C_u = {INSIDE.c_u}, σ = {INSIDE.sigma:.2f}, τ* − τ = {INSIDE.tau_gap:.1f}"
    shown = f"the exact δ is {exact:.6g}; the ends and the cap alone would say {at_corners:.6g}"
    return (
        f"At ε = {INSIDE_EPSILON:.5f}, {setting} and one column with {column}, {shown}, "
        f"too small by a share of {exact / at_corners - 1:.2e}."
    )
