// The plan: how many releases like the planned one fit, what each of them needs, and what is short.

import { offerCopy } from "../shared/copy-button.js";
import { curlCommand } from "../shared/curl-command.js";
import { byId, element } from "../shared/dom.js";
import { makeFields, showErrors } from "../shared/forms.js";
import { MEANING } from "../shared/meaning-link.js";
import { numberText } from "../shared/number-text.js";
import { deviation } from "../shared/plan-link.js";
import { Digits, hasAccessKey, post, problemWith, typed, typedNumber } from "../shared/service.js";
import { fieldAt, showColumns } from "./column-fields.js";
import { balanced, columnProblem, draftOf, hasThreshold, planOf, solved, WAYS } from "./planned-release.js";
import { verdict } from "./verdict.js";

const FIELDS = {
  way: { label: "Plan by", options: WAYS },
  c_u: { symbol: "Cᵤ", label: "Groups per user" },
  tau: { symbol: "τ", label: "Minimum group size" },
  sigma: { symbol: "σ", label: "Noise, in users" },
  tau_star: { symbol: "τ*", label: "Threshold, in users" },
  epsilon: { symbol: "ε", label: "Of each release", help: "Smaller is more private.", link: MEANING },
  delta: { symbol: "δ", label: "Of each release", help: "Far below 1 / number of users." },
  mu_0: { symbol: "μ₀", label: "Further columns", help: "Their noise cost, if you know it instead of their ranges." },
  times: { symbol: "k", label: "Releases" },
};
const OF_WAY = { sigma: "given", tau_star: "given", epsilon: "each", delta: "each" };
const NEW_COLUMN = { name: "", lower: "0", upper: "1", groups: "", noise: "" };
const MOST_TIMES = 1000; // the service's limit for a batch; one more, and the service says so
const NO_TIMES = problemWith("times", "must be an integer, at least 1");
const PAUSE_MS = 200;

const NO_PLAN = "Enter a release, to see how many like it fit.";

/** The plan in a link. Without one it is empty. */
export const linkedPlan = (query) => planOf(query, {});

/**
 * Connect the form. `changed()` is called on changes, `planned(preview)` with the service's preview, or null without one.
 * Returns `show(budget, proposal)`: a plan that the user has not made himself follows the proposals.
 */
export function wirePlan(plan, changed, planned) {
  const form = byId("plan");
  const emptied = { ...plan, ...planOf(new URLSearchParams(), {}), times: plan.times, columns: [] };
  let budget = null;
  let isOwn = !isBlank(plan);
  let asking = new AbortController();
  let pause = 0;
  makeFields(form, FIELDS, columnsOf(addColumn));
  form.elements.way.closest(".field").classList.add("wide");
  fill();
  offerCopy(byId("copy"), byId("code"));
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", ({ target }) => {
    isOwn = true;
    if (target.name in plan) plan[target.name] = target.value;
    if (target.name === "way") {
      if (plan.way !== "given") plan.columns = balanced(plan).columns;
      fill();
    }
    askLater();
  });

  function askLater() {
    asking.abort();
    clearTimeout(pause);
    pause = setTimeout(askNow, PAUSE_MS);
  }

  function askNow() {
    changed();
    void ask();
  }

  function fill() {
    for (const name of Object.keys(FIELDS)) form.elements[name].value = plan[name];
    showWay();
    showColumns(byId("plan-columns"), plan.columns, askLater, removeColumn);
  }

  /** Only the fields that this way of planning needs. The cost μ₀ stands in for columns whose ranges are not known. */
  function showWay() {
    for (const name of Object.keys(FIELDS)) {
      const isElsewhere = OF_WAY[name] !== undefined && OF_WAY[name] !== plan.way;
      form.elements[name].closest(".field").hidden = isElsewhere || (name === "mu_0" && plan.columns.length > 0);
    }
  }

  function addColumn() {
    isOwn = true;
    plan.columns.push({ ...NEW_COLUMN, name: `column ${plan.columns.length + 1}` });
    fill();
    byId(`plan-columns-${plan.columns.length - 1}-name`).focus();
    askNow();
  }

  function removeColumn(index) {
    plan.columns.splice(index, 1);
    fill();
    byId("plan-add").focus();
    askNow();
  }

  async function ask() {
    if (budget === null) return;
    asking.abort();
    asking = new AbortController();
    const { signal } = asking;
    if (isBlank(plan)) return showNoPlan();
    byId("verdict").setAttribute("aria-busy", "true");
    const times = Math.min(Math.max(Math.floor(typedNumber(plan.times)) || 1, 1), MOST_TIMES + 1);
    const wantsLeast = plan.way !== "all" && hasThreshold(plan) && columnProblem(plan) === null;
    const [found, least] = await Promise.allSettled([
      previews(times, signal),
      wantsLeast ? post("calibrate", { mechanism: draftOf(balanced(plan)), ...share(times) }, signal) : null,
    ]);
    if (signal.aborted) return;
    // The smallest noise is extra information. If only it fails, the rest is still shown.
    const failures = found.status === "rejected" ? [aboutTimes(found.reason)] : [];
    if (!isWholeNumber(plan.times)) failures.push(NO_TIMES);
    const names = showErrors(form, failures, (pointer) => fieldAt(form, pointer));
    const isShown = failures.length === 0;
    if (isShown) byId("code").textContent = chargeCommand(budget.id, found.value.mechanism);
    const place = { budget, plan, take, raise };
    byId("verdict").replaceChildren(...(isShown ? verdict({ ...found.value, least, wantsLeast }, place) : []));
    if (names.includes("form")) byId("verdict").scrollIntoView({ block: "nearest" });
    byId("verdict").setAttribute("aria-busy", "false");
    planned(isShown ? found.value.together : null);
  }

  function showNoPlan() {
    showErrors(form, []);
    byId("code").textContent = "";
    byId("verdict").replaceChildren(element("p", { class: "help" }, NO_PLAN));
    byId("verdict").setAttribute("aria-busy", "false");
    planned(null);
  }

  const share = (times) => ({ budget: budget.id, releases: isWholeNumber(plan.times) ? typed(plan.times) : times });

  /** The mechanism, and the previews of one release and of all of them. */
  async function previews(times, signal) {
    const path = `budgets/${encodeURIComponent(budget.id)}/preview`;
    const mechanism = await solved(plan, budget.id, signal);
    const [one, together] = await Promise.all([
      post(path, { mechanism }, signal),
      times > 1 ? post(path, { mechanism: Array(times).fill(mechanism) }, signal) : null,
    ]);
    return { mechanism, one, together: together ?? one };
  }

  /** Plan with numbers that the service has found. */
  function take({ sigma, tau_star, aggregates }) {
    isOwn = true;
    Object.assign(plan, { way: "given", sigma: numberText(sigma), tau_star: numberText(tau_star) });
    for (const [j, column] of plan.columns.entries()) column.noise = numberText(deviation(aggregates.covariance[j][j]));
    fill();
    askNow();
    form.elements.sigma.focus();
  }

  /** Fill in the form that changes the limit. */
  function raise({ epsilon, delta }) {
    byId("change").open = true;
    const { elements } = byId("change-form");
    elements.epsilon.value = numberText(epsilon);
    elements.delta.value = numberText(delta);
    elements.reason.focus();
  }

  return {
    show(next, proposal) {
      budget = next;
      clearTimeout(pause);
      if (!isOwn) {
        Object.assign(plan, emptied, proposal, { columns: [] });
        fill();
      }
      void ask();
    },
    isOwn: () => isOwn,
    /** Take a plan that the user has made in another form. */
    start(texts) {
      isOwn = true;
      Object.assign(plan, emptied, texts, { columns: plan.columns });
      fill();
    },
  };
}

function columnsOf(add) {
  const help = "Sums in addition to the count. A range is what one user adds to a group. Empty noise is balanced.";
  return element(
    "fieldset",
    { class: "columns wide" },
    element("legend", {}, "Further columns"),
    element("p", { class: "help" }, help),
    element("div", { id: "plan-columns" }),
    element("p", { class: "error", id: "plan-columns-error", "data-error-of": "columns" }),
    element("button", { class: "quiet", id: "plan-add", type: "button", onclick: add }, "Add a column"),
  );
}

/** If the batch is too long, the error concerns the number of times. */
function aboutTimes(failure) {
  return failure.type === "limit-exceeded" ? problemWith("times", failure.errors[0].detail) : failure;
}

function isBlank({ way, times, tau, columns, ...numbers }) {
  return columns.length === 0 && Object.values(numbers).every((text) => text.trim() === "");
}

function isWholeNumber(text) {
  const number = typed(text);
  return number instanceof Digits && Number(number) >= 1 && Number.isInteger(Number(number));
}

function chargeCommand(id, mechanism) {
  const path = `budgets/${encodeURIComponent(id)}/charges`;
  const authorization = hasAccessKey() ? ['"Authorization: Bearer $GSH_KEY"'] : [];
  return curlCommand(path, { mechanism }, ["'Idempotency-Key: one-for-each-release'", ...authorization]);
}
