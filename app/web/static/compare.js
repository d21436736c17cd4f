// What each way of accounting asks, as numbers and as how much more than exact.

import { byId, element } from "./elements.js";
import { excess, shown } from "./numbers.js";

export const ROUTES = {
  exact: "Exact",
  "add-deltas": "Add the deltas",
  "half-split": "Half and half",
  zcdp: "By way of zCDP",
};

const NOTES = {
  exact: "The smallest noise and threshold there are.",
  "add-deltas": "At the share of δ with the lowest threshold.",
  "half-split": "Half of δ for the noise, half for the threshold.",
  zcdp: "At the share of δ with the lowest threshold.",
};

/** Fill in the table from the answer of /compare. */
export function showComparison({ routes }) {
  const most = Math.max(...routes.map(({ ask }) => (ask ? Math.max(ask.sigma_ratio, ask.tau_star_ratio) - 1 : 0)), 0.01);
  const rows = routes.map(({ route, sentence, ask }) => {
    const name = element("th", { scope: "row", title: sentence }, element("span", { class: "route" }, ROUTES[route]));
    name.append(element("span", { class: "route-note" }, NOTES[route]));
    const cells = ask
      ? [number(ask.mechanism.sigma), number(ask.mechanism.tau_star), more(ask.sigma_ratio, most), more(ask.tau_star_ratio, most)]
      : [element("td", { colspan: 4, class: "dropped" }, "Cannot meet this target")];
    const row = element("tr", { "data-route": route }, name, ...cells);
    row.style.setProperty("--swatch", `var(--${route})`);
    return row;
  });
  byId("compare").tBodies[0].replaceChildren(...rows);
}

function number(value) {
  return element("td", { title: String(value) }, shown(value));
}

function more(ratio, most) {
  const filled = element("span");
  filled.style.width = `${Math.min(100, (100 * (ratio - 1)) / most)}%`;
  return element("td", {}, excess(ratio), element("span", { class: "meter", "aria-hidden": "true" }, filled));
}
