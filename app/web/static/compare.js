// What each way of accounting asks, as numbers and as how much more than exact.

import { byId, element } from "./elements.js";
import { excess, shown } from "./numbers.js";

export const ROUTES = {
  exact: "Exact",
  "add-deltas": "Add the deltas",
  "half-split": "Half and half",
  zcdp: "By way of zCDP",
  given: "As given",
};

/** Fill in the table from the answer of /compare. */
export function showComparison({ routes }) {
  const most = Math.max(...routes.map(({ ask }) => (ask ? Math.max(ask.sigma_ratio, ask.tau_star_ratio) - 1 : 0)), 0.01);
  for (const { route, sentence, ask } of routes) {
    const row = byId("compare").querySelector(`[data-route="${route}"]`);
    const name = row.cells[0];
    name.title = sentence;
    const cells = ask
      ? [number(ask.mechanism.sigma), number(ask.mechanism.tau_star), more(ask.sigma_ratio, most), more(ask.tau_star_ratio, most)]
      : [element("td", { colspan: 4, class: "dropped" }, "Cannot meet this target")];
    row.replaceChildren(name, ...cells);
  }
}

function number(value) {
  return element("td", { title: String(value) }, shown(value));
}

function more(ratio, most) {
  const filled = element("span");
  filled.style.width = `${Math.min(100, (100 * (ratio - 1)) / most)}%`;
  return element("td", {}, excess(ratio), element("span", { class: "meter", "aria-hidden": "true" }, filled));
}
