// The four plots: their titles, axes and lines.

import { digits, percent, shown } from "../shared/number-format.js";
import { ACCOUNTINGS } from "./comparison-table.js";

const DASHES = { exact: "solid", "add-deltas": "dash", "half-split": "dot", zcdp: "dashdot", given: "longdash" };
const MARKERS = { exact: "circle", "add-deltas": "diamond", "half-split": "square", zcdp: "triangle-up", given: "x" };

/** A line. `said(y, x)` is what hovering says of a point. */
function line(name, x, y, color, said, more = {}) {
  return {
    name,
    x,
    y,
    mode: "lines",
    line: { color, width: 2.25, ...more.line },
    text: y.map((each, k) => (each === null ? "" : said(each, x[k]))),
    hovertemplate: `%{text}<extra>${more.trace?.meta ?? name}</extra>`,
    ...more.trace,
  };
}

const times = (ratio) => `${shown(ratio)} times as large`;
const delta = (y) => `δ = ${shown(y)}`;
const pair = (tau_star, sigma) => `σ = ${shown(sigma)}, τ* = ${shown(tau_star)} users`;
const threshold = ({ text, answer }) => [{ axis: "x", at: answer.tau_star, text: ` τ* = ${text}` }];

function marker(accounting, { sigma, tau_star }, color) {
  return {
    name: accounting === "given" ? ACCOUNTINGS.given : `${ACCOUNTINGS[accounting]}: its choice`,
    x: [sigma],
    y: [tau_star],
    mode: "markers",
    text: [pair(tau_star, sigma)],
    hovertemplate: "%{text}<extra>%{fullData.name}</extra>",
    showlegend: accounting !== "exact" && accounting !== "add-deltas",
    marker: {
      color: color(accounting),
      size: 10,
      symbol: MARKERS[accounting],
      line: { color: color("surface"), width: 1.5 },
    },
  };
}

/** The mechanisms on the frontier's axis. A given σ can be too large to fit. */
function onAxis({ frontier, mechanisms }) {
  const needed = Object.entries(mechanisms).filter(([accounting]) => accounting !== "given");
  const largest = Math.max(frontier.sigma.at(-1), ...needed.map(([, { sigma }]) => sigma));
  return Object.entries(mechanisms).filter(([, { sigma }]) => sigma <= largest);
}

const SIZE = { xaxis: { unifiedhovertitle: { text: "%{x:,.0f} users" } } };

export const FIGURES = {
  curve: {
    title: "δ at every ε",
    caption: "The privacy of the answer's mechanism. The ratio shows how much larger δ is if the deltas are added.",
    x: { title: "ε", name: "epsilon" },
    y: { title: "δ", name: "delta", log: true },
    marks: ({ target }) => [
      { axis: "x", at: target.epsilon, text: ` ε = ${digits(target.epsilon)}` },
      { axis: "y", at: target.delta, text: `target δ = ${digits(target.delta)}` },
    ],
    draw: ({ curve }, color) => [
      line("Exact", curve.epsilons, curve.exact, color("exact"), delta),
      line("Add the deltas", curve.epsilons, curve.added, color("add-deltas"), delta, { line: { dash: "dash" } }),
      line("Ratio", curve.epsilons, curve.ratio, color("muted"), times, {
        trace: { yaxis: "y2" },
        line: { width: 1.75 },
      }),
    ],
    layout: {
      xaxis: { anchor: "y2", unifiedhovertitle: { text: "ε = %{x:.4~g}" } },
      yaxis: { domain: [0.36, 1] },
      yaxis2: { title: { text: "ratio" }, domain: [0, 0.26], nticks: 4 },
    },
  },
  frontier: {
    title: "Smallest threshold at every noise",
    caption:
      "Exact accounting has the smallest σ and the smallest τ* at once. If δ is split, a lower threshold costs noise.",
    x: { title: "σ, in users", name: "sigma" },
    y: { title: "τ*, in users", name: "tau_star" },
    draw: ({ frontier, mechanisms }, color) => [
      line("Exact", frontier.sigma, frontier.exact, color("exact"), pair),
      line("Add the deltas", frontier.sigma, frontier.added, color("add-deltas"), pair, { line: { dash: "dash" } }),
      ...onAxis({ frontier, mechanisms }).map(([accounting, mechanism]) => marker(accounting, mechanism, color)),
    ],
    range: ({ frontier, mechanisms }) => {
      const chosen = onAxis({ frontier, mechanisms }).map(([, { tau_star }]) => tau_star);
      const low = Math.min(...chosen);
      const high = Math.max(...chosen, frontier.exact.at(-1) ?? 0);
      return [low - 0.06 * (high - low), high + 0.1 * (high - low)];
    },
    layout: { hovermode: "closest" },
  },
  keep: {
    title: "Will a group be published?",
    caption: "The probability that a group of n users passes both thresholds, for the σ and τ* of each accounting.",
    x: { title: "n, the true number of users", name: "n" },
    y: { title: "probability of publication", name: "probability", percent: true },
    marks: (data) => threshold(data).map((mark) => ({ ...mark, isLow: true })), // the curves are above it
    draw: ({ keep }, color) =>
      Object.entries(keep.kept).map(([accounting, kept]) =>
        line(ACCOUNTINGS[accounting], keep.n, kept, color(accounting), (y) => percent(y), {
          line: { dash: DASHES[accounting] },
        }),
      ),
    layout: SIZE,
  },
  error: {
    title: "How far off is a published count?",
    caption: "Relative error of published counts: median and 95 % band. Near τ*, only counts raised by noise appear.",
    x: { title: "n, the true number of users", name: "n" },
    y: { title: "relative error", name: "relative_error", percent: true },
    marks: threshold,
    draw: ({ error }, color) => [
      line("97.5 %", error.n, error.high, color("exact"), (y) => percent(y), {
        line: { width: 1 },
        trace: { showlegend: false, meta: "upper end of the 95 % band" },
      }),
      line("2.5 %", error.n, error.low, color("exact"), (y) => percent(y), {
        line: { width: 1 },
        trace: {
          name: "95 % band",
          meta: "lower end of the 95 % band",
          fill: "tonexty",
          fillcolor: color("accent-soft"),
        },
      }),
      line("Median", error.n, error.median, color("exact"), (y) => percent(y)),
    ],
    layout: SIZE,
  },
};

/** The points of a plot as CSV: line, x, y, and another column if there is a second axis. */
export function csvOf(figure, traces) {
  const second = figure.layout?.yaxis2?.title.text;
  const rows = traces.flatMap(({ name, meta, x, y, yaxis }) =>
    x.map((value, k) => {
      const cell = y[k] ?? "";
      const cells = second === undefined ? [cell] : yaxis === "y2" ? ["", cell] : [cell, ""];
      return [`"${meta ?? name}"`, value, ...cells].join(",");
    }),
  );
  const heads = ["series", figure.x.name, figure.y.name, ...(second === undefined ? [] : [second])];
  return [heads.join(","), ...rows, ""].join("\n");
}
