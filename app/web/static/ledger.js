// The budgets wired together: which one is looked at, what is planned for it, and with which key one asks.

import { showBudgets, showLimit, wireLimit } from "./budgets.js";
import { byId, element } from "./elements.js";
import { errorsOf } from "./fields.js";
import { filled, gauge } from "./gauge.js";
import { wireHistory } from "./history.js";
import { digits, shown, shownDown, shownUp } from "./numbers.js";
import { planOf, wirePlans } from "./plans.js";
import { get, useKey } from "./service.js";
import { offerThemes } from "./theme.js";

const NEEDS_KEY = 401;

const query = new URLSearchParams(location.search);
const plan = planOf(query);
let chosen = query.get("budget") ?? "";
let shownBudget = null;
let looking = new AbortController();

const showHistory = wireHistory();
const showPlan = wirePlans(plan, remember, showGauge);
wireLimit(byId("make-form"), "Make it", null, (id) => {
  byId("make").open = false;
  byId("make-form").reset();
  look(id);
});
wireLimit(byId("change-form"), "Record the change", () => shownBudget.id, (id) => {
  byId("change").open = false;
  delete byId("change-form").dataset.of; // what was typed is recorded
  look(id);
});
byId("refresh").addEventListener("click", () => look());
byId("access").addEventListener("submit", (event) => {
  event.preventDefault();
  useKey(encodeURIComponent(byId("key").value.trim())); // keys have nothing to encode; a header takes nothing else
  look();
});
offerThemes(byId("theme"));
look();

/** Ask for all budgets, and for the one that is looked at; only the last question asked is answered. */
async function look(id = chosen) {
  looking.abort();
  looking = new AbortController();
  const { signal } = looking;
  byId("budget").setAttribute("aria-busy", "true");
  try {
    const { budgets } = await get("budgets", signal);
    const exists = budgets.some((budget) => budget.id === id);
    chosen = exists ? id : budgets[0]?.id ?? "";
    showBudgets(budgets, chosen, look);
    if (chosen === "") showNone();
    else await Promise.all([get(`budgets/${encodeURIComponent(chosen)}`, signal).then(show), showHistory(chosen, signal)]);
    byId("access").hidden = true;
    byId("key-error").textContent = "";
    byId("budgets-error").textContent = id && !exists ? `There is no budget called ${id}.` : "";
  } catch (failure) {
    if (!signal.aborted) refuse(failure);
  }
}

function show(budget) {
  const { id, description, limit, spent } = budget;
  shownBudget = budget;
  byId("budget").hidden = false;
  byId("budget-title").textContent = id;
  byId("budget-description").textContent = description;
  byId("epsilon-spent").textContent = `${spent.epsilon === null ? "∞" : digitsUp(spent.epsilon)} of ${limit.epsilon}`;
  byId("delta-spent").textContent = `${digitsUp(spent.delta)} of ${shown(limit.delta)}`;
  byId("epsilon-bounds").textContent = spent.epsilon === null ? "no finite ε" : `between ${digits(spent.epsilon_lower)} and ${digits(spent.epsilon)}`;
  byId("delta-bounds").textContent = `between ${digits(spent.delta_lower)} and ${digits(spent.delta)}`;
  const times = spent.releases === 1 ? "One release" : `${spent.releases} releases`;
  byId("sums").textContent =
    limit.mu_squared === null
      ? "Nothing is spent. The first release settles how the budget is divided between noise and thresholds."
      : `${times}: S = ${digitsUp(spent.mu_squared)} of ${digitsDown(limit.mu_squared)} for noise, D = ${digitsUp(spent.hazard)} of ${digitsDown(limit.hazard)} for thresholds.`;
  // Above the limit's δ only where a larger limit was lowered; then the difference matters.
  const { promise } = budget;
  byId("promise").textContent =
    promise !== null && promise.delta > limit.delta
      ? `The promise is δ = ${digitsUp(promise.delta)} at ε = ${promise.epsilon}, as releases were made under a larger limit.`
      : "";
  showGauge(null);
  showLimit(byId("change-form"), budget);
  showPlan(id);
  remember();
  byId("budget").setAttribute("aria-busy", "false");
}

/** The gauge, with a plan on top of what is used if there is one. */
function showGauge(preview) {
  const { id, used } = shownBudget;
  const words = [element("span", { class: "used" }, `${filled(used)} used`)];
  if (preview) words.push(element("span", { class: "planned" }, preview.fits ? `${filled(preview.used)} with the plan` : "the plan does not fit"));
  const legend = element("p", { class: "gauge-words", "aria-hidden": "true" }, ...words);
  byId("gauge-place").replaceChildren(gauge(id, used, preview?.used), legend);
}

function showNone() {
  byId("budget").hidden = true;
  byId("make").open = true;
}

/** Without a budget in sight, so that nothing old is taken for what is. */
function refuse(failure) {
  const isLocked = failure.status === NEEDS_KEY;
  byId("budget").hidden = true;
  byId("budgets").replaceChildren();
  byId("access").hidden = !isLocked && byId("access").hidden;
  const detail = errorsOf(failure)[0].detail;
  byId("key-error").textContent = isLocked && byId("key").value !== "" ? detail : "";
  byId("budgets-error").textContent = isLocked ? "" : detail;
  if (isLocked) byId("key").focus();
}

function remember() {
  const parts = Object.entries({ budget: chosen, ...plan }).filter(([, text]) => text.trim() !== "");
  history.replaceState(null, "", `?${new URLSearchParams(parts)}`);
}

const digitsUp = (value) => (value === 0 ? "0" : shownUp(value));
const digitsDown = (value) => (value === 0 ? "0" : shownDown(value));
