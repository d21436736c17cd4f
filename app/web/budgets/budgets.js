// The budgets page: the list, the shown budget, a plan for it, and the access key.

import { showEntered, showLocked, wireAccess } from "../shared/access-form.js";
import { byId, element } from "../shared/dom.js";
import { errorsOf } from "../shared/forms.js";
import { bound, digits, plain, shownUp } from "../shared/number-format.js";
import { get } from "../shared/service.js";
import { showBudgets } from "./budget-list.js";
import { gauge, usedPercent } from "./gauge.js";
import { wireHistory } from "./history-panel.js";
import { showLimit, wireLimit, wireNewBudget } from "./limit-form.js";
import { linkedPlan, wirePlan } from "./plan-panel.js";
import { linkOf } from "./planned-release.js";
import { wireReleases } from "./releases-panel.js";

const query = new URLSearchParams(location.search);
const plan = linkedPlan(query);
let chosen = query.get("budget") ?? "";
let shownBudget = null;
let loading = new AbortController();

const showHistory = wireHistory();
const showReleases = wireReleases();
const showPlan = wirePlan(plan, remember, showGauge);
wireNewBudget(byId("create-form"), plan, (id) => {
  byId("create").open = false;
  byId("create-form").reset();
  void load(id);
});
wireLimit(
  byId("change-form"),
  () => shownBudget.id,
  (id) => {
    byId("change").open = false;
    delete byId("change-form").dataset.of; // the typed text is saved, so the next budget may replace it
    void load(id);
  },
);
byId("refresh").addEventListener("click", () => load());
wireAccess(byId("access"), () => load());
void load();

/** Load the list and one budget. A newer call cancels the older one. */
async function load(id = chosen) {
  loading.abort();
  loading = new AbortController();
  const { signal } = loading;
  byId("budget").setAttribute("aria-busy", "true");
  try {
    const { budgets } = await get("budgets", signal);
    const wanted = budgets.find((budget) => budget.id === id);
    const summary = wanted ?? budgets[0];
    chosen = summary?.id ?? "";
    showBudgets(budgets, chosen, load);
    if (summary === undefined) showNone();
    else
      await Promise.all([
        get(`budgets/${encodeURIComponent(chosen)}`, signal).then(show),
        showReleases(summary, signal),
        showHistory(chosen, signal),
      ]);
    showEntered(byId("access"));
    byId("budgets-error").textContent = id && !wanted ? `There is no budget called ${id}.` : "";
  } catch (failure) {
    if (!signal.aborted) showFailure(failure);
  }
}

function show(budget) {
  shownBudget = budget;
  byId("budget").hidden = false;
  document.body.classList.remove("no-budget");
  byId("budget-title").textContent = budget.id;
  byId("budget-description").textContent = budget.description;
  byId("budget-unit").textContent = `Privacy unit: ${unitOf(budget)}.`;
  showSpent(budget);
  byId("ancestors").replaceChildren(...budget.ancestors.map((each) => element("li", {}, ancestorText(each))));
  byId("longer").textContent = longerText(budget);
  showGauge(null);
  showLimit(byId("change-form"), budget);
  showPlan(budget);
  remember();
  byId("budget").setAttribute("aria-busy", "false");
}

/** Whose records the budget protects together. */
function unitOf({ privacy_unit, period }) {
  return period === null ? `all records of one ${privacy_unit}` : `the records of one ${privacy_unit} in one ${period}`;
}

/** What an ancestor promises: a release must fit it too, and its promise is for its own unit. */
function ancestorText(ancestor) {
  const { id, used, promise } = ancestor;
  const promised = promise === null ? "nothing yet" : `δ = ${roundedUp(promise.delta)} at ε = ${promise.epsilon}`;
  return `Also charged: ${id}, ${usedPercent(used)} used. It promises ${promised} for ${unitOf(ancestor)}.`;
}

/** What limits several periods together: a budget above without a period, or nothing. */
function longerText({ period, renews, periods, ancestors }) {
  if (period === null) return "";
  const made = renews === null ? "" : `It renews each ${renews}; ${periods.length} so far. `;
  const longer = ancestors.find((each) => each.period === null);
  if (longer === undefined) return `${made}No budget limits what several ${period}s together reveal of a user.`;
  return `${made}${longer.id} limits all ${period}s together.`;
}

function showSpent({ limit, spent, promise }) {
  const hasEpsilon = spent.epsilon !== null;
  const between = (low, high) => `between ${plain(low)} and ${plain(high)}`;
  const delta = spent.delta === 0 ? "0" : bound(spent.delta, limit.delta);
  byId("epsilon-spent").textContent = `${hasEpsilon ? roundedUp(spent.epsilon) : "∞"} of ${digits(limit.epsilon)}`;
  byId("epsilon-bounds").textContent = hasEpsilon ? between(spent.epsilon_lower, spent.epsilon) : "no finite ε";
  byId("delta-spent").textContent = `${delta} of ${digits(limit.delta)}`;
  byId("delta-bounds").textContent = between(spent.delta_lower, spent.delta);
  byId("sums").textContent = sums(limit, spent);
  // The promise is above the limit's δ only after somebody lowered the limit.
  byId("promise").textContent =
    promise !== null && promise.delta > limit.delta
      ? `The promise is δ = ${roundedUp(promise.delta)} at ε = ${promise.epsilon}, because releases were made under a larger limit.`
      : "";
}

function sums(limit, spent) {
  if (limit.mu_squared === null) {
    return "Nothing is spent yet. The first release sets the split between noise cost and threshold cost.";
  }
  const times = spent.releases === 1 ? "One release" : `${spent.releases} releases`;
  // A single release has exact accounting, and may cost more than several together may. A lowered limit is exceeded, too.
  if (spent.mu_squared > limit.mu_squared || spent.hazard > limit.hazard) {
    const costs = `noise cost ${roundedUp(spent.mu_squared)}, threshold cost ${roundedUp(spent.hazard)}`;
    return `${times} ${spent.releases === 1 ? "fills" : "fill"} the budget: ${costs}.`;
  }
  // Both are rounded up: rounded to different sides, a full budget would look overspent.
  const noise = `noise cost ${roundedUp(spent.mu_squared)} of ${roundedUp(limit.mu_squared)}`;
  const threshold = `threshold cost ${roundedUp(spent.hazard)} of ${roundedUp(limit.hazard)}`;
  return `${times}: ${noise}, ${threshold}.`;
}

/** The gauge, with a plan in addition to the used share if there is one. */
function showGauge(preview) {
  const { id, used } = shownBudget;
  const words = [element("span", { class: "used" }, `${usedPercent(used)} used`)];
  if (preview) {
    const text = preview.fits ? `${usedPercent(preview.used)} with the plan` : "the plan does not fit";
    words.push(element("span", { class: "planned" }, text));
  }
  const legend = element("p", { class: "gauge-words", "aria-hidden": "true" }, ...words);
  byId("gauge-place").replaceChildren(gauge(id, used, preview?.used), legend);
}

function showNone() {
  byId("budget").hidden = true;
  byId("create").open = true;
  document.body.classList.add("no-budget"); // the form that creates the first one uses the width
}

/** Hide all budgets, so that nobody takes old numbers for current ones. */
function showFailure(failure) {
  byId("budget").hidden = true;
  byId("budgets").replaceChildren();
  byId("budgets-error").textContent = showLocked(byId("access"), failure) ? "" : errorsOf(failure)[0].detail;
}

function remember() {
  history.replaceState(null, "", `?${linkOf(chosen, plan)}`);
}

function roundedUp(value) {
  return value === 0 ? "0" : shownUp(value);
}
