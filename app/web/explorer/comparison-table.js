// What each accounting needs: σ and τ*, and how much more than exact accounting.

import { byId, element } from "../shared/dom.js";
import { excess } from "../shared/number-format.js";
import { usable } from "../shared/usable-numbers.js";

/** The names of the accountings, and of a mechanism that the user has given. */
export const ACCOUNTINGS = {
  exact: "Exact",
  "add-deltas": "Add the deltas",
  "half-split": "Half split",
  zcdp: "zCDP",
  given: "As given",
};

/** Fill in the table with the accountings of /compare. `price` is null if an accounting cannot meet the target. */
export function showComparison(compared) {
  const most = Math.max(
    0.01,
    ...compared.flatMap(({ price }) => (price ? [price.sigma_ratio - 1, price.tau_star_ratio - 1] : [])),
  );
  for (const { accounting, explanation, price } of compared) {
    const row = byId("compare").querySelector(`[data-accounting="${accounting}"]`);
    const name = row.cells[0];
    name.title = explanation;
    row.replaceChildren(name, ...(price ? numbers(price, most) : [impossible()]));
  }
}

function numbers({ mechanism, sigma_ratio, tau_star_ratio }, most) {
  const few = usable(mechanism);
  const number = (name) => element("td", { title: String(mechanism[name]) }, few[name]);
  return [number("sigma"), number("tau_star"), excessCell(sigma_ratio, most), excessCell(tau_star_ratio, most)];
}

function excessCell(ratio, most) {
  const bar = element("span");
  bar.style.width = `${Math.min(100, (100 * (ratio - 1)) / most)}%`;
  return element("td", {}, excess(ratio), element("span", { class: "meter", "aria-hidden": "true" }, bar));
}

function impossible() {
  return element("td", { colspan: 4, class: "dropped" }, "Cannot meet this target");
}
