// The budgets page: the list, the shown budget, a plan for it, and the access key.

import { showEntered, showLocked, wireAccess } from "../shared/access-form.js";
import { byId, element } from "../shared/dom.js";
import { errorsOf } from "../shared/forms.js";
import { bound, digits, exactly, shownUp } from "../shared/number-format.js";
import { get } from "../shared/service.js";
import { showBudgets } from "./budget-list.js";
import { longerText, outlookText, paceText, promiseText, releasesText, shortageText, unitOf } from "./budget-words.js";
import { gauge, usedPercent } from "./gauge.js";
import { wireHistory } from "./history-panel.js";
import { showLimit, wireLimit, wireNewBudget } from "./limit-form.js";
import { showOverview } from "./overview.js";
import { linkedPlan, wirePlan } from "./plan-panel.js";
import { linkOf, planOfCharged } from "./planned-release.js";
import { wireReleases } from "./releases-panel.js";

const RECENT = 20;
const WAITING = "The change waits for the approval of another access key.";

const query = new URLSearchParams(location.search);
const plan = linkedPlan(query);
let chosen = query.get("budget") ?? "";
let isOverview = query.has("overview");
let shownBudget = null;
let loading = new AbortController();

const showHistory = wireHistory();
const showReleases = wireReleases(load);
const planning = wirePlan(plan, remember, showGauge);
wireNewBudget(byId("create-form"), plan, (id) => {
  const { c_u, tau, times } = byId("create-form").elements;
  // A new budget is first planned with its typical release.
  if (c_u.value.trim() !== "")
    planning.start({ way: "all", c_u: c_u.value, tau: tau.value || "1", times: times.value || "1" });
  byId("create").open = false;
  byId("create-form").reset();
  void load(id);
});
wireLimit(
  byId("change-form"),
  () => shownBudget.id,
  async (id, answer) => {
    byId("change").open = false;
    delete byId("change-form").dataset.of; // the typed text is saved, so the next budget may replace it
    await load(id);
    if (answer.state === "waiting") byId("waiting").textContent = WAITING;
  },
);
byId("overview-print").addEventListener("click", () => print());
byId("to-overview").addEventListener("click", (event) => {
  event.preventDefault();
  isOverview = true;
  void load();
});
byId("refresh").addEventListener("click", () => load());
wireAccess(byId("access"), () => load());
void load();

/** Load the list and one budget. A newer call cancels the older one. */
async function load(id) {
  if (id !== undefined) isOverview = false;
  await loadBudget(id ?? chosen);
}

async function loadBudget(id) {
  loading.abort();
  loading = new AbortController();
  const { signal } = loading;
  byId("budget").setAttribute("aria-busy", "true");
  try {
    const { budgets } = await get("budgets", signal);
    const wanted = budgets.find((budget) => budget.id === id);
    const summary = wanted ?? budgets[0];
    chosen = summary?.id ?? "";
    const hasOverview = isOverview && summary !== undefined;
    showBudgets(budgets, hasOverview ? null : chosen, load);
    byId("overview").hidden = !hasOverview;
    byId("budget").hidden = hasOverview || summary === undefined;
    byId("to-overview").hidden = hasOverview || budgets.length === 0;
    if (summary === undefined) showNone();
    else if (hasOverview) showAll(budgets);
    else await showOne(summary, signal);
    showEntered(byId("access"));
    byId("budgets-error").textContent = id && !wanted ? `There is no budget called ${id}.` : "";
  } catch (failure) {
    if (!signal.aborted) showFailure(failure);
  }
}

function showAll(budgets) {
  document.body.classList.remove("no-budget");
  showOverview(budgets, load);
  history.replaceState(null, "", "?overview");
  byId("budget").setAttribute("aria-busy", "false");
}

async function showOne(summary, signal) {
  const [budget, entries] = await Promise.all([
    get(`budgets/${encodeURIComponent(summary.id)}`, signal),
    showHistory(summary.id, signal),
    showReleases(summary, signal),
  ]);
  show(budget, await proposalFor(budget, entries, signal));
}

/** A plan like the last release, or null. The releases of a renewed budget are those of its periods. */
async function proposalFor({ periods }, entries, signal) {
  const latest = periods.at(-1);
  const charged =
    latest === undefined
      ? entries
      : (await get(`budgets/${encodeURIComponent(latest.id)}/charges?limit=${RECENT}`, signal)).entries;
  const last = charged.find(({ kind }) => kind === "charge");
  return last === undefined ? null : planOfCharged(last.details.release);
}

function show(budget, proposal) {
  shownBudget = budget;
  document.body.classList.remove("no-budget");
  byId("budget-title").textContent = budget.id;
  byId("budget-description").textContent = budget.description;
  byId("budget-unit").textContent = `Privacy unit: ${unitOf(budget)}.`;
  showSpent(budget);
  byId("ancestors").replaceChildren(...budget.ancestors.map((each) => element("li", {}, ancestorText(each))));
  byId("longer").textContent = longerText(budget, budget.ancestors);
  byId("periods").replaceChildren(...budget.periods.toReversed().map(periodItem));
  byId("outlook").textContent = outlookText(budget);
  byId("outlook").classList.toggle("missed", budget.more === 0);
  byId("short").textContent = shortageText(budget);
  byId("pace").textContent = paceText(budget);
  byId("waiting").textContent = "";
  for (const id of ["gauge-place", "figures", "digits", "sums"]) byId(id).hidden = budget.renews !== null; // its periods are charged
  showGauge(null);
  showLimit(byId("change-form"), budget);
  planning.show(budget, proposal);
  remember();
  byId("budget").setAttribute("aria-busy", "false");
}

/** What an ancestor promises: a release must fit it too, and its promise is for its own unit. */
function ancestorText(ancestor) {
  return `Also charged: ${ancestor.id}, ${usedPercent(ancestor.used)} used. It promises ${promiseText(ancestor)} for ${unitOf(ancestor)}.`;
}

/** One period of the renewed budget. */
function periodItem(period) {
  const name = element("button", { class: "name", type: "button", onclick: () => load(period.id) }, period.id);
  const text = ` ${usedPercent(period.used)} used · ${releasesText(period.spent)} · promises ${promiseText(period)}`;
  return element("li", {}, name, text);
}

function showSpent({ limit, spent, promise }) {
  const hasEpsilon = spent.epsilon !== null;
  const between = (low, high) => `between ${exactly(low)} and ${exactly(high)}`;
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
  byId("overview").hidden = true;
  byId("budgets").replaceChildren();
  byId("budgets-error").textContent = showLocked(byId("access"), failure) ? "" : errorsOf(failure)[0].detail;
}

function remember() {
  const proposed = { ...linkedPlan(new URLSearchParams()), times: plan.times }; // a proposal is not part of the link
  history.replaceState(null, "", `?${linkOf(chosen, planning.isOwn() ? plan : proposed)}`);
}

function roundedUp(value) {
  return value === 0 ? "0" : shownUp(value);
}
