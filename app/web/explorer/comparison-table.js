// What each accounting needs: σ and τ*, and how much more than exact accounting.

import { byId, element } from "../shared/dom.js";
import { excess, shown } from "../shared/number-format.js";
import { post } from "../shared/service.js";

/** The names of the accountings, and of a mechanism that the user has given. */
export const ACCOUNTINGS = {
  exact: "Exact",
  "add-deltas": "Add the deltas",
  "half-split": "Half split",
  zcdp: "zCDP",
  given: "As given",
};

/** Ask /compare: each accounting with the mechanism that it needs, exact first. `ask` is null if none meets the target. */
export async function compare(body, signal) {
  const { routes } = await post("compare", body, signal);
  return routes.map(({ route, sentence, ask }) => ({ accounting: route, sentence, ask }));
}

/** Fill in the table. */
export function showComparison(compared) {
  const most = Math.max(
    0.01,
    ...compared.flatMap(({ ask }) => (ask ? [ask.sigma_ratio - 1, ask.tau_star_ratio - 1] : [])),
  );
  for (const { accounting, sentence, ask } of compared) {
    const row = byId("compare").querySelector(`[data-accounting="${accounting}"]`);
    const name = row.cells[0];
    name.title = sentence;
    row.replaceChildren(name, ...(ask ? numbers(ask, most) : [impossible()]));
  }
}

function numbers({ mechanism: { sigma, tau_star }, sigma_ratio, tau_star_ratio }, most) {
  const number = (value) => element("td", { title: String(value) }, shown(value));
  return [number(sigma), number(tau_star), excessCell(sigma_ratio, most), excessCell(tau_star_ratio, most)];
}

function excessCell(ratio, most) {
  const bar = element("span");
  bar.style.width = `${Math.min(100, (100 * (ratio - 1)) / most)}%`;
  return element("td", {}, excess(ratio), element("span", { class: "meter", "aria-hidden": "true" }, bar));
}

function impossible() {
  return element("td", { colspan: 4, class: "dropped" }, "Cannot meet this target");
}
