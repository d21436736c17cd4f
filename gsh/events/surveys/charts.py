"""A survey as a chart: text for the terminal, and a page with a picture that loads nothing."""

import html
from collections.abc import Sequence

from gsh.events.surveys.choices import DrawnHistogram

__all__ = ["chart", "page"]

Intervals = Sequence[Sequence[tuple[float, float]]]

_WIDTH = 40
_ROW, _LEFT, _RIGHT, _END = 20, 128, 360, 430
_LONG, _TOO_LONG = 10**3, 10**9
"""Ends of bins between them are written with all digits."""
_NOTE = "Bars are noisy numbers of users; intervals cover the true ones with 95 %. Empty bins have noise too."


def chart(histograms: Sequence[DrawnHistogram], intervals: Intervals, chosen: Sequence[str]) -> str:
    """Each histogram as rows of bars, and then the choices."""
    lines: list[str] = []
    for each, listed in zip(histograms, intervals, strict=True):
        lines += [f"{each.wanted.of}, noise {each.sigma:.4g}", *_rows(each, listed), ""]
    return "\n".join([*lines, *chosen])


def _rows(histogram: DrawnHistogram, intervals: Sequence[tuple[float, float]]) -> list[str]:
    largest = max(*histogram.users, 1.0)
    scale = _WIDTH / largest
    return [
        f"{label:>17} {users + 0.0:>12,.0f}  {f'{low:,.0f} to {high:,.0f}':<24} {'█' * round(scale * max(users, 0))}"
        for label, users, (low, high) in zip(labels(histogram), histogram.users, intervals, strict=True)
    ]


def labels(histogram: DrawnHistogram) -> list[str]:
    """What is in each bin."""
    ends = [f"{end:,.0f}" if _LONG <= end < _TOO_LONG else f"{end:g}" for end in histogram.wanted.bins]
    first = ends[0] if histogram.wanted.column is None else f"to {ends[0]}"
    return [first, *(f"to {end}" for end in ends[1:-1]), f"above {ends[-2]}"]


def page(histograms: Sequence[DrawnHistogram], intervals: Intervals, chosen: Sequence[str]) -> str:
    """An HTML page with a picture of each histogram, and the choices."""
    pictures = "\n".join(
        f"<h2>{html.escape(each.wanted.of)}</h2>\n{picture(each, listed)}"
        for each, listed in zip(histograms, intervals, strict=True)
    )
    items = "\n".join(f"<li>{html.escape(text)}</li>" for text in chosen)
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Survey of the users</title>
<style>
  :root {{ color-scheme: light dark }}
  body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 48rem; margin: 2rem auto; padding: 0 1rem }}
  svg {{ display: block; width: 100%; max-width: 36rem; height: auto }}
</style>
<h1>Survey of the users</h1>
<ul>
{items}
</ul>
{pictures}
<p>{_NOTE}</p>
</html>
"""


def picture(histogram: DrawnHistogram, intervals: Sequence[tuple[float, float]]) -> str:
    """The bars of a histogram with their intervals, as SVG."""
    largest = max(*histogram.users, *(high for _, high in intervals), 1.0)
    scale = (_RIGHT - _LEFT) / largest
    rows = []
    for place, (label, users, (low, high)) in enumerate(
        zip(labels(histogram), histogram.users, intervals, strict=True)
    ):
        middle = _ROW * place + _ROW / 2
        rows.append(
            f'<text x="{_LEFT - 8}" y="{middle + 4:g}" text-anchor="end">{html.escape(label)}</text>'
            f'<rect x="{_LEFT}" y="{middle - 7:g}" width="{max(users, 0) * scale:.1f}" height="14" fill="#36c"/>'
            f'<path d="M{_LEFT + low * scale:.1f} {middle:g}H{_LEFT + high * scale:.1f}" stroke="currentColor"/>'
            f'<text x="{_END}" y="{middle + 4:g}" text-anchor="end">{users + 0.0:,.0f}</text>'
        )
    height = _ROW * len(rows)
    described = html.escape(f"{histogram.wanted.of}: noisy numbers of users in {len(rows)} bins")
    start = f'<svg viewBox="0 0 {_END} {height}" role="img" aria-label="{described}" font-size="12"'
    return f'{start} fill="currentColor">{"".join(rows)}</svg>'
