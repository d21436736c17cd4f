"""Figure 1 of the paper, redrawn. The files are the same bytes at every run."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from benchmarks.markdown import short
from benchmarks.prices import Price
from benchmarks.setting import C_U, DELTA, EPSILON, TAU, smallest_tau_star
from gsh.accounting.accountings import ADD_DELTAS, EXACT, at_delta, at_epsilon
from gsh.accounting.mechanism import Mechanism

__all__ = ["draw_gaps", "draw_ratios"]

# From Okabe and Ito's palette, which the common kinds of colour blindness tell apart.
BLUE, VERMILLION = "#0072B2", "#D55E00"
INK, GREY, PALE = "#1F2933", "#7B828C", "#E3E6EA"

STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 10.5,
    "mathtext.fontset": "dejavusans",
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.labelsize": 11.5,
    "axes.labelpad": 8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "grid.color": PALE,
    "grid.linewidth": 0.8,
    "text.color": INK,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
}


def draw_gaps(path: Path, best: Mechanism, add_best: Price, marked: Mapping[int, Sequence[int]]) -> None:
    """Figure 1(a): the smallest gap τ* − τ against σ, exact and add-the-deltas; the paper's points marked."""
    # Close together at first: there the threshold of adding the deltas rises steeply.
    sigmas = [float(best.sigma + 7e-3 + 490 * t**3) for t in np.linspace(0, 1, 300)]
    exact = [smallest_tau_star(EXACT, sigma) - TAU for sigma in sigmas]
    added = [smallest_tau_star(ADD_DELTAS, sigma) - TAU for sigma in sigmas]
    add_gap, exact_gap = add_best.tau_star - TAU, best.tau_gap
    with mpl.rc_context(STYLE):
        figure, axes = _figure(
            "The smallest gap between the thresholds, against the noise",
            f"$C_u$ = {C_U}, counts only, (ε, δ) = ({EPSILON}, {short(DELTA)}). "
            "Markers: the numbers printed in the paper.\n"
            "Shaded: private, but adding the deltas cannot show it.",
        )
        axes.set(xlabel="standard deviation of the noise on counts,  σ", ylabel="smallest gap,  τ* − τ")
        axes.set(xlim=(2190, 2750), ylim=(13650, 17200))
        axes.grid(axis="y")
        axes.fill_between(sigmas, exact, added, color=VERMILLION, alpha=0.10, linewidth=0)
        axes.plot(sigmas, added, color=VERMILLION, linewidth=2.2)
        axes.plot(sigmas, exact, color=BLUE, linewidth=2.2)
        axes.vlines(best.sigma, 13650, 17100, color=GREY, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
        for sigma, gaps in marked.items():
            _mark(axes, (sigma, gaps[0]), BLUE, "o", f"{gaps[0]}", (9, -12))
            for gap in gaps[1:]:
                _mark(axes, (sigma, gap), VERMILLION, "s", f"{gap}", (-9, 9))
        _note(axes, f"below σ = {best.sigma:.4f}…\nno threshold is enough", (best.sigma, 16750), (11, 0), INK)
        _note(axes, "exact", (2555, 15994), (10, -14), BLUE, bold=True)
        _note(axes, f"a straight line: {exact_gap / best.sigma:.3f} σ", (2555, 15994), (10, -29), BLUE)
        _note(axes, "adding the deltas", (add_best.sigma, 15830), (0, 19), VERMILLION, bold=True)
        above = f"{add_gap / exact_gap - 1:.1%} above the exact {exact_gap:.0f}"
        _note(
            axes,
            f"lowest at σ = {add_best.sigma:.0f}: {add_gap:.0f},\n{above}",
            (add_best.sigma, 15830),
            (0, -7),
            VERMILLION,
        )
        axes.vlines(add_best.sigma, add_gap + 50, 15600, color=VERMILLION, linewidth=0.9)
        _save(figure, path)


def draw_ratios(path: Path, mechanism: Mechanism, marked: Sequence[float]) -> None:
    """Figure 1(b): δ_add/δ_exact against δ_exact, from ε = 0.1 to where δ_exact comes down to δ_infinite."""
    deltas = [float(delta) for delta in np.geomspace(marked[0], at_epsilon(EXACT, mechanism, 0.1).delta, 300)]
    with mpl.rc_context(STYLE):
        figure, axes = _figure(
            "By how much adding the deltas over-states δ",
            f"$C_u$ = {C_U}, σ = {mechanism.sigma:.4f}, τ* − τ = {mechanism.tau_gap:.2f}: "
            f"$δ_{{infinite}}$ = {short(marked[0])}",
            pad=44,
        )
        axes.set(xlabel="exact δ at that ε,  $δ_{exact}$", ylabel="$δ_{add}\\,/\\,δ_{exact}$")
        axes.set(xscale="log", xlim=(6e-9, 1.5e-2), ylim=(0.95, 2.08))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.grid(axis="y")
        axes.plot(deltas, [_ratio(mechanism, delta) for delta in deltas], color=BLUE, linewidth=2.2)
        for delta, offset in zip(marked, ((13, -9), (6, 22), (0, 24), (0, 24)), strict=True):
            epsilon, ratio = _epsilon(mechanism, delta), _ratio(mechanism, delta)
            _mark(axes, (delta, ratio), BLUE, "o", f"{ratio:.4g}\nat ε = {epsilon:.3f}", offset)
        _note(axes, "$δ_{add}\\,/\\,δ_{exact} = 1 + δ_{infinite}\\,/\\,δ_{exact}$", (2e-8, 1.5), (16, 0), BLUE)
        above = axes.secondary_xaxis("top")
        epsilons = (0.5, 0.45, 0.4, 0.35, 0.3, 0.2, 0.1)
        above.xaxis.set_major_locator(
            FixedLocator([at_epsilon(EXACT, mechanism, epsilon).delta for epsilon in epsilons])
        )
        above.xaxis.set_major_formatter(FixedFormatter([f"{epsilon:g}" for epsilon in epsilons]))
        above.xaxis.set_minor_locator(NullLocator())
        above.set_xlabel("privacy loss,  ε", labelpad=6)
        _save(figure, path)


def _epsilon(mechanism: Mechanism, delta: float) -> float:
    epsilon = at_delta(EXACT, mechanism, delta).epsilon
    assert epsilon is not None
    return epsilon


def _ratio(mechanism: Mechanism, delta: float) -> float:
    epsilon = _epsilon(mechanism, delta)
    return at_epsilon(ADD_DELTAS, mechanism, epsilon).delta / at_epsilon(EXACT, mechanism, epsilon).delta


def _figure(title: str, subtitle: str, pad: float = 0) -> tuple[Figure, Axes]:
    """A title and lines of context above the axes; ``pad`` printer's points are left free under them."""
    figure = Figure(figsize=(8, 5.4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    lines = subtitle.count("\n") + 1
    axes.set_title(title, loc="left", fontsize=13, weight="bold", pad=pad + 12 + 15 * lines)
    axes.annotate(
        subtitle,
        (0, 1),
        (0, pad + 9),
        xycoords="axes fraction",
        textcoords="offset points",
        color=GREY,
        linespacing=1.35,
    )
    return figure, axes


def _mark(
    axes: Axes, at: tuple[float, float], colour: str, marker: str, text: str, offset: tuple[float, float]
) -> None:
    axes.plot(*at, marker, ms=6.5, mfc="white", mec=colour, mew=1.8, zorder=3)
    _note(axes, text, at, offset, colour)


def _note(
    axes: Axes, text: str, at: tuple[float, float], offset: tuple[float, float], colour: str, bold: bool = False
) -> None:
    """Text next to a point, at ``offset`` in printer's points. A negative one puts it to the left."""
    side, weight = "right" if offset[0] < 0 else "left", "bold" if bold else "normal"
    axes.annotate(
        text,
        at,
        offset,
        textcoords="offset points",
        ha=side,
        va="center",
        color=colour,
        weight=weight,
        linespacing=1.35,
    )


def _save(figure: Figure, path: Path) -> None:
    """Without the version of the library, which would change the bytes."""
    figure.savefig(path, dpi=150, metadata={"Software": None})
