"""Tables as they are printed and pasted: Markdown, with certified figures rounded up in the last place shown."""

from collections.abc import Sequence
from decimal import ROUND_CEILING, Decimal

__all__ = ["places_up", "short", "significant_up", "table"]


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def places_up(value: float, places: int) -> str:
    """``value`` with that many decimals, rounded up: a σ or τ* read from a table is still large enough."""
    return str(Decimal(value).quantize(Decimal(1).scaleb(-places), rounding=ROUND_CEILING))


def significant_up(value: float, digits: int) -> str:
    """``value`` in scientific notation with that many significant digits, rounded up."""
    exact = Decimal(value)
    return f"{exact.quantize(Decimal(1).scaleb(exact.adjusted() - digits + 1), rounding=ROUND_CEILING):.{digits - 1}e}"


def short(value: float) -> str:
    """1e-5 rather than 1e-05."""
    return f"{value:g}".replace("e-0", "e-")
