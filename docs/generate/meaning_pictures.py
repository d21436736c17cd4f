"""The two pictures of the page «What ε means», as SVG inside its HTML, in the colours of the page's theme.

Both show bets that a stranger wins, of 1000. A coin wins 500, so the scale starts there.
"""

from collections.abc import Sequence

__all__ = ["bets_picture", "year_picture"]

_WIDTH = 360
_COIN, _ALL = 500.0, 1000.0


def bets_picture(bets: Sequence[tuple[float, float, float]]) -> str:
    """Two bars for each ε: what the promise allows, and what the noise gives that keeps it."""
    left, right, top, step, bar = 58.0, 318.0, 26.0, 36.0, 11.0
    bottom = top + step * len(bets)
    lines = [*_scale(left, right, top - 6, bottom)]
    for place, (epsilon, most, own) in enumerate(bets):
        y = top + step * place
        lines.append(_text(left - 8, y + bar + 5, f"ε = {epsilon:g}", "end"))
        for name, wins, at in (("allowed", most, y), ("given", own, y + bar + 2)):
            width = (wins - _COIN) / (_ALL - _COIN) * (right - left)
            lines.append(f'<rect class="{name}" x="{left:g}" y="{at:g}" width="{width:.1f}" height="{bar:g}"/>')
            lines.append(_text(left + width + 4, at + bar - 1.5, _up(wins), "start"))
    return _svg(bottom + 4, lines, "bets")


def year_picture(years: Sequence[tuple[int, float, float]], most: float) -> str:
    """Wins after each week: with noise for one week, and with noise for the year."""
    left, right, top, bottom = 34.0, 322.0, 12.0, 208.0
    last = years[-1][0]

    def x(week: float) -> float:
        return left + (week - 1) / (last - 1) * (right - left)

    def y(wins: float) -> float:
        return bottom - (wins - _COIN) / (_ALL - _COIN) * (bottom - top)

    lines = []
    for wins in range(500, 1001, 100):
        lines.append(f'<path class="grid" d="M{left:g} {y(wins):g}H{right:g}"/>')
        lines.append(_text(left - 6, y(wins) + 4, str(wins), "end"))
    lines.extend(_text(x(week), bottom + 17, str(week), "middle") for week in (1, 13, 26, 39, last))
    lines.append(f'<path class="ceiling" d="M{left:g} {y(most):.1f}H{right:g}"/>')
    for name, column in (("weekly", 1), ("yearly", 2)):
        points = " ".join(f"{x(row[0]):.1f},{y(row[column]):.1f}" for row in years)
        lines.append(f'<polyline class="{name}" points="{points}"/>')
        lines.append(_text(right + 5, y(years[-1][column]) + 4, _up(years[-1][column]), "start"))
    return _svg(bottom + 24, lines, "year")


def _scale(left: float, right: float, top: float, bottom: float) -> list[str]:
    lines = []
    for wins in (500, 750, 1000):
        x = left + (wins - _COIN) / (_ALL - _COIN) * (right - left)
        lines.append(f'<path class="grid" d="M{x:g} {top:g}V{bottom:g}"/>')
        lines.append(_text(x, top - 6, str(wins), "middle"))
    return lines


def _up(wins: float) -> str:
    return str(-int(-wins // 1))


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>'


def _svg(height: float, lines: Sequence[str], name: str) -> str:
    drawn = "\n".join(f"            {line}" for line in lines)
    head = f'<svg class="picture" viewBox="0 0 {_WIDTH} {height:g}" role="img" aria-labelledby="{name}-caption">'
    return f"          {head}\n{drawn}\n          </svg>\n"
