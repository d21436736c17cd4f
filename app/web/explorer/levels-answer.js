// What several tables need in one release: noise, threshold and share of each, and what other accountings need for them.

import { byId, element } from "../shared/dom.js";
import { bound, digits, excess, percent, shownUp } from "../shared/number-format.js";
import { usable } from "../shared/usable-numbers.js";

const WAYS = {
  composition: ["Composition", "Each table as a release of its own, with the costs added up."],
  zcdp: ["zCDP", "The same with zCDP for the noise."],
  separate: ["Separate certificates", "Each table with its own share of ε and of δ."],
};

/** Show the answers of /calibrate and /compare for the same tables. `target` is δ as it was typed. */
export function showLevels({ tables, shares, epsilon, delta }, { ways }, target) {
  byId("levels-result").classList.remove("stale");
  byId("levels-lead").textContent =
    `${together(tables.length)} ε = ${digits(epsilon)}, δ ≤ ${bound(delta, target)}. ` +
    "This holds if you fix all tables before you publish any.";
  byId("levels-answer").replaceChildren(...tables.map((table, k) => tableRow(table, shares[k])));
  showWays(ways.filter(({ way }) => way in WAYS));
  byId("levels-result").hidden = false;
}

function together(number) {
  return number === 1 ? "This table has the privacy" : "All tables together have the privacy of one:";
}

function tableRow(table, share) {
  const { sigma, tau_star } = table.tau_star === undefined ? { sigma: shownUp(table.sigma) } : usable(table);
  return element(
    "tr",
    {},
    element("th", { scope: "row" }, table.name),
    element("td", {}, percent(share)),
    element("td", { title: String(table.sigma) }, sigma),
    tau_star === undefined
      ? element("td", { class: "dropped" }, "none")
      : element("td", { title: String(table.tau_star) }, tau_star),
  );
}

function showWays(ways) {
  const ratios = ways.flatMap(({ price }) => (price ? [...price.sigma_ratios, ...thresholds(price)] : []));
  const most = Math.max(0.01, ...ratios.map((ratio) => ratio - 1));
  byId("levels-ways").replaceChildren(
    ...ways.map(({ way, explanation, price }) => {
      const [name, note] = WAYS[way];
      const head = element(
        "th",
        { scope: "row", title: explanation },
        name,
        element("span", { class: "accounting-note" }, note),
      );
      const cells = price
        ? [rangeCell(price.sigma_ratios, most), rangeCell(thresholds(price), most)]
        : [element("td", { colspan: 2, class: "dropped" }, "Cannot meet this target")];
      return element("tr", {}, head, ...cells);
    }),
  );
}

const thresholds = ({ tau_star_ratios }) => tau_star_ratios.filter((ratio) => ratio !== null);

/** The least and the largest excess of all tables, and a meter for the largest. */
function rangeCell(ratios, most) {
  if (ratios.length === 0) return element("td", { class: "dropped" }, "no threshold");
  const [least, largest] = [Math.min(...ratios), Math.max(...ratios)];
  const [low, high] = [excess(least), excess(largest)];
  const bar = element("span");
  bar.style.width = `${Math.min(100, (100 * (largest - 1)) / most)}%`;
  const text = low === high ? high : `${low.replace(/ %$/, high.endsWith("%") ? "" : " %")} to ${high}`;
  return element("td", {}, text, element("span", { class: "meter", "aria-hidden": "true" }, bar));
}

/** Strike the last answer out: it does not belong to the current form. */
export function showNoLevels(names) {
  byId("levels-result").classList.add("stale");
  const isElsewhere = names.every((name) => ["form", "tables", "target"].includes(name));
  byId("levels-lead").textContent = `No answer yet: see the ${isElsewhere ? "error" : "marked field"} above.`;
}
