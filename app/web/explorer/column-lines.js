// The lines of the answer about further columns: the noise in their own unit, what caps save, and what takes too much.

import { element } from "../shared/dom.js";
import { fewTimes, percent, shownUp } from "../shared/number-format.js";

const FEW = 1.05; // less is not worth a sentence
const MOST = 0.8; // of the privacy loss, for one column

/** A line for each column, and one for what the caps save elsewhere. `withoutCaps` is undefined if σ is given. */
export function columnLines({ aggregates }, withoutCaps) {
  const names = aggregates?.names ?? [];
  const caps = aggregates?.sensitivity.groups?.filter((cap) => cap !== null).length === 1 ? "the cap" : "the caps";
  const saved = names.map((_, j) => {
    const ratio = withoutCaps?.columns[j].ratio ?? 1;
    return ratio >= FEW ? `, ${fewTimes(ratio)} times less noise than without ${caps}` : "";
  });
  const lines = names.map((name, j) => {
    const most = shownUp(1.96 * Math.sqrt(aggregates.covariance[j][j]));
    return element("li", {}, element("strong", {}, `${name} ± ${most}`), ` in 19 of 20 cases${saved[j]}`);
  });
  const rest = saved.every((text) => text === "") ? savedElsewhere(withoutCaps, caps) : "";
  return rest === "" ? lines : [...lines, element("li", {}, rest)];
}

/** What caps save if the noise of the columns is given: a smaller σ, or that there is a σ at all. */
function savedElsewhere(withoutCaps, caps) {
  if (withoutCaps === undefined) return "";
  const { price } = withoutCaps;
  if (price === null) return `Without ${caps}, no σ would meet the target.`;
  return price.sigma_ratio >= FEW ? `Without ${caps}, σ would be ${fewTimes(price.sigma_ratio)} times as large.` : "";
}

/** A line about a column whose given noise is so small that it makes σ large, with a button that balances the noise. */
export function greedyColumn(mechanism, balance) {
  const shares = sharesOf(mechanism);
  const most = Math.max(...shares);
  if (!(most >= MOST)) return [];
  const name = mechanism.aggregates.names[shares.indexOf(most)];
  const text =
    `${name} takes ${most > 0.99 ? "over 99 %" : percent(most, 0)} of the privacy loss, because its noise is small ` +
    "for its range. That makes σ and τ* large.";
  return [element("li", { class: "greedy" }, element("span", {}, text), balanceButton(balance))];
}

/** The button that balances the noise of the columns. */
export function balanceButton(balance) {
  return element("button", { class: "quiet", type: "button", onclick: balance }, "Balance the noise");
}

/** The share of μ² of each column: n Δ²/s² for independent noise, and C_u/σ² for the count. */
function sharesOf({ c_u, sigma, aggregates }) {
  const { lower, upper, groups } = aggregates.sensitivity;
  const costs = aggregates.covariance.map((row, j) => {
    const reach = Math.max(Math.abs(Number(lower[j])), Math.abs(Number(upper[j])));
    return (Number(groups?.[j] ?? c_u) * reach ** 2) / row[j];
  });
  const all = costs.reduce((sum, cost) => sum + cost, Number(c_u) / sigma ** 2);
  return costs.map((cost) => cost / all);
}
