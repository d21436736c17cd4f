// The four figures: what is drawn from which points, on which axes.

import { ROUTES } from "./compare.js";

const line = (name, x, y, color, more = {}) => ({ name, x, y, mode: "lines", line: { color, width: 2.25, ...more.line }, ...more.trace });

/** The largest σ on the frontier's axis: a given one may be too far out to be seen with the others. */
const reach = (frontier, { given, ...routes }) => Math.max(frontier.sigma.at(-1), ...Object.values(routes).map(({ sigma }) => sigma));

export const FIGURES = {
  curve: {
    title: "δ at every ε",
    caption: "What the mechanism of the answer charges, and how many times as much adding the deltas claims.",
    x: { title: "ε", name: "epsilon" },
    y: { title: "δ", name: "delta", log: true, tickformat: ".0e" },
    draw: ({ curve }, color) => [
      line("Exact", curve.epsilons, curve.exact, color("exact")),
      line("Add the deltas", curve.epsilons, curve.added, color("add-deltas"), { line: { dash: "dash" } }),
      line("Ratio", curve.epsilons, curve.ratio, color("muted"), { trace: { yaxis: "y2", hovertemplate: "×%{y:.4f}" }, line: { width: 1.75 } }),
    ],
    layout: { xaxis: { anchor: "y2" }, yaxis: { domain: [0.36, 1] }, yaxis2: { title: { text: "ratio" }, domain: [0, 0.26], nticks: 4 } },
  },
  frontier: {
    title: "Smallest threshold at every noise",
    caption: "Exact accounting starts at the lowest point of both. Where δ is shared, a low threshold is bought with noise.",
    x: { title: "σ", name: "sigma", tickformat: ",~r" },
    y: { title: "τ*", name: "tau_star", tickformat: ",~r" },
    draw: ({ frontier, mechanisms }, color) => [
      line("Exact", frontier.sigma, frontier.exact, color("exact")),
      line("Add the deltas", frontier.sigma, frontier.added, color("add-deltas"), { line: { dash: "dash" } }),
      ...Object.entries(mechanisms).filter(([, { sigma }]) => sigma <= reach(frontier, mechanisms)).map(([route, { sigma, tau_star }]) => ({
        name: route === "given" ? ROUTES.given : `${ROUTES[route]}: its choice`,
        x: [sigma],
        y: [tau_star],
        mode: "markers",
        showlegend: route !== "exact" && route !== "add-deltas",
        marker: { color: color(route), size: 10, symbol: { exact: "circle", "add-deltas": "diamond", "half-split": "square", zcdp: "triangle-up", given: "x" }[route], line: { color: color("surface"), width: 1.5 } },
      })),
    ],
    range: ({ frontier, mechanisms }) => {
      const chosen = Object.values(mechanisms).filter(({ sigma }) => sigma <= reach(frontier, mechanisms)).map(({ tau_star }) => tau_star);
      const low = Math.min(...chosen);
      const high = Math.max(...chosen, frontier.exact.at(-1) ?? 0);
      return [low - 0.06 * (high - low), high + 0.1 * (high - low)];
    },
    layout: { hovermode: "closest" },
  },
  keep: {
    title: "Will a group be published?",
    caption: "The probability that a group of n users passes both thresholds, by what each accounting asks.",
    x: { title: "n, true size", name: "n", tickformat: ",~r" },
    y: { title: "probability kept", name: "probability", percent: true },
    draw: ({ keep }, color) =>
      Object.entries(keep.kept).map(([route, kept]) =>
        line(ROUTES[route], keep.n, kept, color(route), { line: { dash: { exact: "solid", "add-deltas": "dash", "half-split": "dot", zcdp: "dashdot", given: "longdash" }[route] } }),
      ),
  },
  error: {
    title: "How far off is a published count?",
    caption: "Relative error of counts that were published: median, and the band that holds 95 %. Near τ* only lifted ones pass.",
    x: { title: "n, true size", name: "n", tickformat: ",~r" },
    y: { title: "relative error", name: "relative_error", percent: true },
    draw: ({ error }, color) => [
      line("97.5 %", error.n, error.high, color("exact"), { line: { width: 1 }, trace: { showlegend: false, meta: "upper end of the 95 % band" } }),
      line("2.5 %", error.n, error.low, color("exact"), { line: { width: 1 }, trace: { name: "95 % band", meta: "lower end of the 95 % band", fill: "tonexty", fillcolor: color("accent-soft") } }),
      line("Median", error.n, error.median, color("exact")),
    ],
  },
};

/** A figure's points as rows: which line, x, y, and a column for the second axis where there is one. */
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
