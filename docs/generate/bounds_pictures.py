"""The pictures of docs/choosing-bounds.md, one for each way: ``python -m docs.generate`` draws them from demo events.

Lots and noise come from a fixed salt and a fixed seed, so that every run draws the same.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from docs.generate import ROOT
from gsh.duckdb.previewing import Kept, preview
from gsh.events.choosing import BINS, edges
from gsh.events.demo import write_demo
from gsh.events.plan import make_plan
from gsh.events.surveys.asked import Asks
from gsh.events.surveys.charts import picture
from gsh.events.surveys.surveying import surveying_of
from gsh.histogram.entropy import stream

__all__ = ["FIGURES", "drawn"]

FIGURES = {name: ROOT / "docs" / "figures" / f"bounds-{name}.svg" for name in ("public", "survey", "preview")}
USERS, C_US, CLIP = 50_000, tuple(1 << j for j in range(11)), 600
TARGET = {"epsilon": 1.0, "delta": 1e-6}
SALT, SEED = "0" * 32, bytes(32)
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _BOTTOM = 720, 300, 60.0, 690.0, 240.0
_BLUE, _ORANGE = "#36c", "#d97706"


def drawn() -> dict[str, str]:
    """All of them by name, as SVG text."""
    with tempfile.TemporaryDirectory() as folder:
        events = Path(folder) / "events.parquet"
        write_demo(events, USERS)
        asked: dict[str, Any] = {"user": "user_id", "by": ["url"], "sums": {"seconds": (0, CLIP)}}
        asked |= {"units": {"seconds": 2**-10}, **TARGET}
        kept = preview(events, **asked, c_u=C_US, _salt=SALT)
        return {"public": _volumes(kept), "survey": _survey(events), "preview": _clips(kept)}


def _volumes(kept: Sequence[Kept]) -> str:
    """A curve: what each C_u publishes, relative to the best one."""
    best = max(each.published for each in kept)
    step = (_RIGHT - _LEFT) / (len(kept) - 1)
    points = [(_LEFT + step * j, _BOTTOM - 190 * each.published / best) for j, each in enumerate(kept)]
    parts = [_text(_LEFT - 40, 24, "what each C_u publishes, in percent of what the best one publishes", "start")]
    for percent in (0, 50, 100):
        y = _BOTTOM - 1.9 * percent
        parts.append(f'<path d="M{_LEFT} {y}H{_RIGHT}" stroke="#ccc"/>{_text(_LEFT - 8, y + 4, str(percent), "end")}')
    parts.append(f'<polyline points="{" ".join(f"{x:g},{y:.1f}" for x, y in points)}" fill="none" stroke="{_BLUE}"/>')
    for (x, y), each in zip(points, kept, strict=True):
        shown = f"{100 * each.published / best:.0f}"
        parts.append(f'<circle cx="{x:g}" cy="{y:.1f}" r="4" fill="{_BLUE}"/>{_text(x, y - 10, shown)}')
        parts.append(_text(x, _BOTTOM + 20, str(each.c_u)))
    parts.append(_text((_LEFT + _RIGHT) / 2, _BOTTOM + 46, "C_u"))
    return _svg(_HEIGHT, parts)


def _survey(events: Path) -> str:
    """The noisy histogram of the numbers of groups, as `gsh survey --html` draws it, and the choice."""
    surveying = surveying_of(make_plan(user="user_id", by="url", c_u=32, salt=SALT), {"": Asks(True, ())}, TARGET)
    assert surveying is not None
    pairs = pq.read_table(events, columns=["user_id", "url"]).filter(pc.field("user_id").is_valid())
    degrees = pairs.group_by(["user_id", "url"]).aggregate([]).group_by("user_id").aggregate([("url", "count")])
    users = np.bincount(np.searchsorted(edges(), degrees["url_count"].to_numpy()), minlength=BINS)
    (histogram,) = found = surveying.drawn({"": [users]}, stream(SEED))
    ((*_, choice),) = surveying.choices(found)
    chart = picture(histogram, histogram.intervals(0.95))
    height = 30 * BINS
    inner = (
        f'<g transform="translate(20 44) scale(1.5)" font-size="10">{chart[chart.index(">") + 1 : -len("</svg>")]}</g>'
    )
    parts = [_text(20, 24, "users by the number of their groups, with noise", "start"), inner]
    return _svg(height + 90, [*parts, _text(20, height + 72, choice.reason, "start")])


def _clips(kept: Sequence[Kept]) -> str:
    """Bars for each clip: what clipping removes at the best C_u, and the noise that it needs."""
    best = max(kept, key=lambda each: each.published)
    least = max(each.bias for each in best.clips)
    title = f"C_u = {best.c_u}: what each clip of seconds removes from the total, and the noise of a sum"
    parts, largest = [_text(20, 24, title, "start")], max(each.noise for each in best.clips)
    for row, each in enumerate(best.clips):
        y, removed = 44 + 46 * row, least - each.bias
        parts.append(_text(150, y + 22, f"0 to {each.upper:g}", "end"))
        bars = (removed / 0.5, _ORANGE, f"{removed:.1%}"), (each.noise / largest, _BLUE, f"noise {each.noise:,.0f}")
        for place, (share, colour, label) in enumerate(bars):
            width, top = 420 * share, y + 18 * place
            parts.append(f'<rect x="160" y="{top}" width="{width:.1f}" height="16" fill="{colour}"/>')
            parts.append(_text(166 + width, top + 13, label, "start"))
    return _svg(60 + 46 * len(best.clips), parts)


def _text(x: float, y: float, text: str, anchor: str = "middle") -> str:
    return f'<text x="{x:g}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>'


def _svg(height: float, parts: Sequence[str]) -> str:
    start = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height:g}" width="{_WIDTH}" '
    font = 'font-family="system-ui, sans-serif" font-size="14" color="#111" fill="#111"'
    back = f'<rect width="{_WIDTH}" height="{height:g}" fill="#fff"/>'
    return f'{start}height="{height:g}" {font}>{back}\n' + "\n".join(parts) + "\n</svg>\n"
