// The answer: the noise, the threshold, and the certified privacy.

import { byId, element } from "../shared/dom.js";
import { digits, fewTimes, shown, shownDown, shownUp } from "../shared/number-format.js";
import { planQuery } from "../shared/plan-link.js";

const FEW = 1.05; // less is not worth a sentence

/** Show the mechanism from /calibrate or /account/exact, whether it meets the typed δ, and what caps of columns save. */
export function showAnswer({ mechanism, epsilon, delta, solved, largest_sigma }, typedDelta, withoutCaps) {
  const { sigma, tau_star } = mechanism;
  const origin = (name) => (solved.includes(name) ? "computed" : "as given");
  byId("answer").classList.remove("stale");
  byId("sigma-answer").textContent = shown(sigma);
  byId("tau_star-answer").textContent = shown(tau_star);
  byId("sigma-exactly").textContent = `${sigma} ${origin("sigma")}`;
  byId("tau_star-exactly").textContent = `${tau_star} ${origin("tau_star")}`;
  byId("lead").textContent =
    `Add Gaussian noise with σ = ${shownUp(sigma)} to every count. Then publish only the groups whose noisy count ` +
    `reaches ${shownUp(tau_star)}. In 19 of 20 cases, noise changes a count by less than ${shownUp(1.96 * sigma)}.`;
  byId("column-noise").replaceChildren(...columnLines(mechanism, solved.includes("sigma") ? withoutCaps : undefined));
  byId("plan").href = `ledger?${planQuery(mechanism)}`;
  const meets = delta <= Number(typedDelta);
  byId("certificate").replaceChildren(
    "Certified: ",
    element("strong", {}, `(ε, δ) = (${epsilon}, ${digits(delta)})`),
    ", rounded up to a double. It ",
    element("span", { class: meets ? "met" : "missed" }, meets ? "meets" : "misses"),
    ` the target δ = ${typedDelta}.`,
    largest_sigma ? ` At this threshold, σ can be at most ${shownDown(largest_sigma)}.` : "",
  );
}

/** The noise on each further column, in its own unit. If σ is computed, also what the caps save. */
function columnLines({ aggregates }, withoutCaps) {
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

/** Cross out the last answer and say where the error is: at a field, at the columns, or below the form. */
export function showNoAnswer(names) {
  byId("answer").classList.add("stale");
  byId("lead").textContent = `No answer yet: ${errorPlace(names)}.`;
}

function errorPlace(names) {
  if (names.some((name) => name !== "columns" && name !== "form")) return "see the marked field";
  if (names.includes("columns")) return "see the error below the columns";
  return byId("form-error").textContent.replace(/\.$/, "");
}
