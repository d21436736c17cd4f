"""An independent check of single draws: the published cell of the grid must contain the ideal number.

The library goes from bits to a quantile by polynomials. This module goes back: from the edges of the published cell to
tail probabilities, by erfc in 300-bit balls, and compares them with the bits.
"""

from fractions import Fraction

from flint import arb, ctx

__all__ = ["ideal_is_at_least", "ideal_is_within"]


def ideal_is_within(low: Fraction, high: Fraction, sigma: float, word: int, more: int = 0, more_bits: int = 0) -> bool:
    """Whether low ≤ σ z < high for every z that the bits begin: sign, 63 bits of q, and ``more``."""
    bits = (word, more, more_bits)
    return ideal_is_at_least(low, sigma, *bits) is True and ideal_is_at_least(high, sigma, *bits) is False


def ideal_is_at_least(bound: Fraction, sigma: float, word: int, more: int = 0, more_bits: int = 0) -> bool | None:
    """Whether σ z ≥ bound; None if the bits do not decide it."""
    before, ctx.prec = ctx.prec, 300
    try:
        negative = word < 0
        first = ((word & (2**63 - 1)) << more_bits) | more
        unit = arb(2) ** -(64 + more_bits)
        lowest, highest = first * unit, (first + 1) * unit  # q is between these
        edge = arb(bound.numerator) / bound.denominator / sigma
        # z = Q(q) falls with q: z ≥ e is q ≤ Φ(−e). z = −Q(q): z ≥ e is q ≥ Φ(e).
        tail = ((-edge if negative else edge) / arb(2).sqrt()).erfc() / 2
        if negative:
            return True if lowest >= tail else False if highest < tail else None
        return True if highest <= tail else False if lowest > tail else None
    finally:
        ctx.prec = before
