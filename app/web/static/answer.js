// The answer, first: the noise, the threshold, and what is certified of them.

import { byId, element } from "./elements.js";
import { digits, shown, shownDown, shownUp } from "./numbers.js";

/** Show what /calibrate or /account/exact said of the mechanism. */
export function showAnswer({ mechanism, epsilon, delta, solved, largest_sigma }, asked) {
  const { sigma, tau_star } = mechanism;
  byId("answer").classList.remove("stale");
  byId("sigma-answer").textContent = shown(sigma);
  byId("tau_star-answer").textContent = shown(tau_star);
  byId("sigma-exactly").textContent = `${sigma} ${solved.includes("sigma") ? "solved" : "as given"}`;
  byId("tau_star-exactly").textContent = `${tau_star} ${solved.includes("tau_star") ? "solved" : "as given"}`;
  byId("lead").textContent =
    `Add Gaussian noise with σ = ${shownUp(sigma)} to every count, then publish only the groups whose noisy count reaches ` +
    `${shownUp(tau_star)}. Noise moves a count by less than ${shownUp(1.96 * sigma)} users, 19 times out of 20.`;
  byId("plan").href = planOf(mechanism);
  const meets = delta <= Number(asked);
  const verdict = meets ? "meets" : "misses";
  byId("certificate").replaceChildren(
    "Certified: ",
    element("strong", {}, `(ε, δ) = (${epsilon}, ${digits(delta)})`),
    ", rounded up to a double. It ",
    element("span", { class: meets ? "met" : "missed" }, verdict),
    ` the target δ = ${asked}.`,
    largest_sigma ? ` At this threshold σ may be as large as ${shownDown(largest_sigma)}.` : "",
  );
}

/** The page of the budgets, with this mechanism as the plan; a link has no room for further columns. */
function planOf({ c_u, tau, tau_star, sigma, aggregates }) {
  return aggregates ? "ledger" : `ledger?${new URLSearchParams({ c_u, tau, tau_star, sigma })}`;
}

/** Strike the last answer out, and say where to look: at a field, at the columns, or below the form. */
export function showNoAnswer(fields) {
  byId("answer").classList.add("stale");
  const isMarked = fields.some((field) => field !== "columns" && field !== "form");
  const place = isMarked ? "see the marked field" : fields.includes("columns") ? "see the further columns" : byId("form-error").textContent.replace(/\.$/, "");
  byId("lead").textContent = `No answer yet: ${place}.`;
}
