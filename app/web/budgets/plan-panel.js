// The plan: how many releases like the planned one fit, and the smallest noise for the remaining budget.

import { OUTLINE, WHOLE } from "../shared/case-study.js";
import { offerCopy } from "../shared/copy-button.js";
import { curlCommand } from "../shared/curl-command.js";
import { byId, element } from "../shared/dom.js";
import { errorsOf, makeFields, showErrors } from "../shared/forms.js";
import { digits, shownUp } from "../shared/number-format.js";
import { get, hasAccessKey, post, problemWith, typed } from "../shared/service.js";
import { usedPercent } from "./gauge.js";

const FIELDS = {
  c_u: { symbol: "Cᵤ", label: "Groups per user" },
  sigma: { symbol: "σ", label: "Noise, in users" },
  tau: { symbol: "τ", label: "Minimum group size" },
  tau_star: { symbol: "τ*", label: "Threshold, in users" },
  mu_0: { symbol: "μ₀", label: "Additional columns" },
  times: { symbol: "k", label: "Times" },
};
const MOST_TIMES = 1000; // the service's limit for a batch; one more, and the service says so
const ENDLESS = 1e18;
const NO_TIMES = problemWith("times", "must be an integer, at least 1");
const PAUSE_MS = 200;

/** The plan in a link, or the paper's case study once. */
export function planOf(query) {
  const defaults = ["c_u", "sigma"].some((name) => query.has(name)) ? {} : { ...OUTLINE, ...WHOLE };
  const texts = Object.keys(FIELDS).map((name) => [name, query.get(name) ?? defaults[name] ?? ""]);
  const plan = Object.fromEntries(texts);
  return { ...plan, times: plan.times || "1" };
}

/** Connect the form. `changed()` is called on changes, `planned(preview)` with the service's preview, or null without one. */
export function wirePlan(plan, changed, planned) {
  const form = byId("plan");
  let budget = null;
  let asking = new AbortController();
  let pause = 0;
  makeFields(form, FIELDS);
  fill();
  offerCopy(byId("copy"), byId("code"));
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", ({ target }) => {
    plan[target.name] = target.value;
    asking.abort();
    clearTimeout(pause);
    pause = setTimeout(() => {
      changed();
      void ask();
    }, PAUSE_MS);
  });

  function fill() {
    for (const name of Object.keys(FIELDS)) form.elements[name].value = plan[name];
  }

  async function ask() {
    if (budget === null) return;
    asking.abort();
    asking = new AbortController();
    const { signal } = asking;
    const path = `budgets/${encodeURIComponent(budget)}`;
    const mechanism = mechanismOf(plan);
    const times = typed(plan.times);
    const batch = Array(Math.min(Math.max(Math.floor(Number(times)) || 1, 1), MOST_TIMES + 1)).fill(mechanism);
    const draft = { c_u: mechanism.c_u, tau: mechanism.tau, aggregates: mechanism.aggregates };
    byId("code").textContent = chargeCommand(path, mechanism);
    byId("verdict").setAttribute("aria-busy", "true");
    const [like, preview, least] = await Promise.allSettled([
      get(`${path}?${queryOf(plan)}`, signal),
      post(`${path}/preview`, { mechanism: batch }, signal),
      hasThreshold(plan) ? post("calibrate", { mechanism: draft, budget, releases: times }, signal) : null,
    ]);
    if (signal.aborted) return;
    // The smallest noise is extra information. If only it fails, the rest is still shown.
    const failures = [preview, like]
      .filter(({ status }) => status === "rejected")
      .map(({ reason }) => aboutTimes(reason));
    if (!isWholeNumber(plan.times)) failures.push(NO_TIMES);
    showErrors(form, failures);
    byId("verdict").replaceChildren(...(failures.length > 0 ? [] : verdict(like.value.more, preview.value, least)));
    byId("verdict").setAttribute("aria-busy", "false");
    planned(failures.length > 0 ? null : preview.value);
  }

  function verdict(more, preview, least) {
    const lead = element("p", { class: more > 0 ? "lead" : "lead missed" }, fitting(more));
    const smallest = hasThreshold(plan) ? [smallestNoise(least, preview.asked.releases)] : [];
    return [lead, ...consequence(more, preview), ...smallest];
  }

  /** The smallest noise that fits, with a button that puts it into the plan. */
  function smallestNoise(least, releases) {
    const each = releases === 1 ? "One release" : `${releases} equal releases`;
    if (least.status === "rejected") {
      const isImpossible = least.reason.type === "infeasible-target";
      const impossible = `${each} cannot fit the remaining budget with any noise.`;
      const unknown = `The smallest noise is not known: ${errorsOf(least.reason)[0].detail}`;
      return element("p", { class: "help" }, isImpossible ? impossible : unknown);
    }
    const { sigma, tau_star } = least.value.mechanism;
    const take = () => {
      Object.assign(plan, { sigma: String(sigma), tau_star: String(tau_star) });
      fill();
      changed();
      void ask();
      form.elements.sigma.focus();
    };
    const button = element("button", { class: "quiet", type: "button", id: "take", onclick: take }, "Plan with these");
    const numbers = `σ = ${shownUp(sigma)} and τ* = ${shownUp(tau_star)}`;
    return element("p", {}, `${each} would fit with as little as ${numbers}. `, button);
  }

  return (next) => {
    budget = next;
    clearTimeout(pause);
    void ask();
  };
}

/** The budget after the plan; how many of the planned releases fit, if not all do. */
function consequence(more, { fits, fitting: some, used, asked: { releases }, after: { epsilon, delta } }) {
  if (fits) {
    const these = releases === 1 ? "this release" : `these ${releases}`;
    const bounds = `ε = ${epsilon === null ? "∞" : shownUp(epsilon)} and δ = ${digits(delta)}`;
    return [element("p", {}, `After ${these} the budget would be at ${bounds}, ${usedPercent(used)} used.`)];
  }
  return more > 0 ? [element("p", { class: "missed" }, `Of these ${releases}, ${some} would fit.`)] : [];
}

/** If the batch is too long, the error concerns the number of times. */
function aboutTimes(failure) {
  return failure.type === "limit-exceeded" ? problemWith("times", failure.errors[0].detail) : failure;
}

function hasThreshold({ tau, tau_star }) {
  return tau.trim() !== "" || tau_star.trim() !== "";
}

function isWholeNumber(text) {
  return Number(text) >= 1 && Number.isInteger(Number(text));
}

function mechanismOf({ c_u, tau, tau_star, sigma, mu_0 }) {
  const aggregates = mu_0.trim() === "" ? undefined : { mu_0: typed(mu_0) };
  return { c_u: typed(c_u), tau: typed(tau), tau_star: typed(tau_star), sigma: typed(sigma), aggregates };
}

/** The mechanism as a query, without empty fields. */
function queryOf({ times: _, ...mechanism }) {
  const texts = Object.entries(mechanism).map(([name, text]) => [name, text.trim()]);
  return new URLSearchParams(texts.filter(([, text]) => text !== ""));
}

function fitting(more) {
  if (more === 0) return "No further release like this fits.";
  if (more === 1) return "One more release like this fits.";
  if (more >= ENDLESS) return "Any number of releases like this fits.";
  return `${more.toLocaleString("en-US")} more releases like this fit.`;
}

function chargeCommand(path, mechanism) {
  const authorization = hasAccessKey() ? ['"Authorization: Bearer $GSH_KEY"'] : [];
  return curlCommand(`${path}/charges`, { mechanism }, ["'Idempotency-Key: one-for-each-release'", ...authorization]);
}
