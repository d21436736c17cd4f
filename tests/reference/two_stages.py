"""A survey of the users and then tables, from the definition: for each output of the survey the worst tables follow it.

The survey's privacy loss is N(S_h/2, S_h) under the data with the user, S_h = Σ 1/σ_h², and N(−S_h/2, S_h) without.
After a loss l the tables have ε − l left. Their groups may be split between at τ and above τ in every way.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise, product

from mpmath import mpf

from .cases import Case
from .paper import gaussian, log_p, squared
from .precision import mp

__all__ = ["added", "removed"]

_DIGITS = 40
_CUTS = 2
_HALVINGS = 100


def added(survey: Sequence[float], tables: Sequence[Case], epsilon: float, digits: int = _DIGITS) -> mpf:
    """The smallest δ at ε if the user is added."""
    return _mean(survey, tables, epsilon, digits, _added)


def removed(survey: Sequence[float], tables: Sequence[Case], epsilon: float, digits: int = _DIGITS) -> mpf:
    """The smallest δ at ε if the user is removed."""
    return _mean(survey, tables, epsilon, digits, _removed)


def _added(square: mpf, hazard: mpf, t: mpf) -> mpf:
    """The hockey stick at e^t of a split that has D at τ and S above, if the user is added."""
    return -mp.expm1(-hazard) + mp.exp(-hazard) * gaussian(mp.sqrt(square), t + hazard)


def _removed(square: mpf, hazard: mpf, t: mpf) -> mpf:
    return gaussian(mp.sqrt(square), t - hazard)


def _mean(
    survey: Sequence[float],
    tables: Sequence[Case],
    epsilon: float,
    digits: int,
    stick: Callable[[mpf, mpf, mpf], mpf],
) -> mpf:
    with mp.workdps(digits):
        noise = mp.fsum(1 / mp.mpf(sigma) ** 2 for sigma in survey)
        splits = list(_splits(tables))

        def worst(t: mpf) -> tuple[mpf, int]:
            return max((stick(square, hazard, t), k) for k, (square, hazard) in enumerate(splits))

        scale = mp.sqrt(noise)
        reach = mp.sqrt(2 * (digits * mp.log(10) - mp.log(worst(mp.mpf(epsilon))[0])))
        grid = [noise / 2 + scale * reach * k / _CUTS for k in range(-_CUTS, _CUTS + 1)]
        places = sorted({*grid, *_kinks(grid, lambda loss: worst(epsilon - loss)[1])})

        def density(loss: mpf) -> mpf:
            return mp.exp(-((loss - noise / 2) ** 2) / (2 * noise)) / mp.sqrt(2 * mp.pi * noise)

        return mp.quad(lambda loss: density(loss) * worst(epsilon - loss)[0], places, method="gauss-legendre")


def _splits(tables: Sequence[Case]) -> list[tuple[mpf, mpf]]:
    rates = [-log_p(table) for table in tables]
    found = []
    for at_tau in product(*(range(table.c_u + 1) for table in tables)):
        square = mp.fsum(squared(table, table.c_u - x) for table, x in zip(tables, at_tau, strict=True))
        found.append((square, mp.fsum(rate * x for rate, x in zip(rates, at_tau, strict=True))))
    return found


def _kinks(grid: Sequence[mpf], which: Callable[[mpf], int]) -> list[mpf]:
    """Where the worst split changes: quadrature needs to stop there."""
    found = []
    for start, end in pairwise(grid):
        low, high = start, end
        if which(start) != which(end):
            for _ in range(_HALVINGS):
                middle = (low + high) / 2
                low, high = (middle, high) if which(middle) == which(start) else (low, middle)
            found.append(low)
    return found
