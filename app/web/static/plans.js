// What fits: a release that is planned so many times, and the smallest noise for what is left.

import { offerCopy } from "./copying.js";
import { byId, element } from "./elements.js";
import { errorsOf, makeFields, showFailures } from "./fields.js";
import { filled } from "./gauge.js";
import { digits, shownUp } from "./numbers.js";
import { address, encode, get, hasKey, post, Problem, typed } from "./service.js";
import { quoted } from "./snippets.js";

const FIELDS = {
  c_u: { symbol: "Cᵤ", label: "Groups per user" },
  sigma: { symbol: "σ", label: "Noise, in users" },
  tau: { symbol: "τ", label: "Fewest true users" },
  tau_star: { symbol: "τ*", label: "Threshold, in users" },
  mu_0: { symbol: "μ₀", label: "Further columns" },
  times: { symbol: "k", label: "Times" },
};
const CASE_STUDY = { c_u: "51914", tau: "1", tau_star: "13952", sigma: "2229" };
const MOST_TIMES = 1000; // the service's own bound on a batch, which it tells of if there is one more
const ENDLESS = 1e18;
const NO_TIMES = new Problem({ errors: [{ pointer: "/times", detail: "must be an integer, at least 1" }] });
const PAUSE = 200;

/** The plan of a link, or the paper's case study once. */
export function planOf(query) {
  const first = ["c_u", "sigma"].some((name) => query.has(name)) ? {} : CASE_STUDY;
  const plan = Object.fromEntries(Object.keys(FIELDS).map((name) => [name, query.get(name) ?? first[name] ?? ""]));
  return { ...plan, times: plan.times || "1" };
}

/** Wire up the form; `changed()` is told of changes, `planned(preview)` of what it would leave, null if nothing. */
export function wirePlans(plan, changed, planned) {
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
      ask();
    }, PAUSE);
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
    byId("code").textContent = command(path, mechanism);
    byId("verdict").setAttribute("aria-busy", "true");
    const [like, preview, least] = await Promise.allSettled([
      get(`${path}?${queryOf(plan)}`, signal),
      post(`${path}/preview`, { mechanism: batch }, signal),
      isPlain(plan) ? null : post("calibrate", { mechanism: draft, budget, releases: times }, signal),
    ]);
    if (signal.aborted) return;
    // The smallest noise stands beside the rest, so it may fail alone.
    const failures = [preview, like].filter(({ status }) => status === "rejected").map(({ reason }) => aboutTimes(reason));
    if (!(Number(plan.times) >= 1 && Number.isInteger(Number(plan.times)))) failures.push(NO_TIMES);
    showFailures(form, failures);
    byId("verdict").replaceChildren(...(failures.length > 0 ? [] : verdict(like.value.more, preview.value, least)));
    byId("verdict").setAttribute("aria-busy", "false");
    planned(failures.length > 0 ? null : preview.value);
  }

  function verdict(more, preview, least) {
    const { releases } = preview.asked;
    const these = releases === 1 ? "this one" : `these ${releases}`;
    const { epsilon, delta } = preview.after;
    return [
      element("p", { class: more > 0 ? "lead" : "lead missed" }, fitting(more)),
      ...(preview.fits
        ? [element("p", {}, `After ${these} the budget would be at ε = ${bound(epsilon)} and δ = ${digits(delta)}, ${filled(preview.used)} used.`)]
        : more > 0
          ? [element("p", { class: "missed" }, `Of these ${releases}, ${preview.fitting} would fit.`)]
          : []),
      ...smallest(least, releases),
    ];
  }

  /** The noise to take instead, with a button that takes it. */
  function smallest(least, releases) {
    if (isPlain(plan)) return [];
    const each = releases === 1 ? "One release" : `${releases} equal releases`;
    if (least.status === "rejected") {
      const cannot = least.reason.type === "infeasible-target";
      return [element("p", { class: "help" }, cannot ? `${each} cannot fit what is left, whatever the noise.` : `The smallest noise is not known: ${errorsOf(least.reason)[0].detail}`)];
    }
    const { sigma, tau_star } = least.value.mechanism;
    const take = () => {
      Object.assign(plan, { sigma: String(sigma), tau_star: String(tau_star) });
      fill();
      changed();
      ask();
      form.elements.sigma.focus();
    };
    const button = element("button", { class: "quiet", type: "button", id: "take", onclick: take }, "Plan with these");
    return [element("p", {}, `${each} would fit with as little as σ = ${shownUp(sigma)} and τ* = ${shownUp(tau_star)}. `, button)];
  }

  return (next) => {
    budget = next;
    clearTimeout(pause);
    ask();
  };
}

/** A batch that is too long has been made of a number of times. */
function aboutTimes(failure) {
  if (failure.type !== "limit-exceeded") return failure;
  return new Problem({ errors: failure.errors.map(({ detail }) => ({ pointer: "/times", detail })) });
}

function isPlain({ tau, tau_star }) {
  return tau.trim() === "" && tau_star.trim() === "";
}

function mechanismOf({ c_u, tau, tau_star, sigma, mu_0 }) {
  const aggregates = mu_0.trim() === "" ? undefined : { mu_0: typed(mu_0) };
  return { c_u: typed(c_u), tau: typed(tau), tau_star: typed(tau_star), sigma: typed(sigma), aggregates };
}

/** The mechanism as a query, without what is left empty. */
function queryOf({ times: _, ...mechanism }) {
  const given = Object.entries(mechanism).map(([name, text]) => [name, text.trim()]);
  return new URLSearchParams(given.filter(([, text]) => text !== ""));
}

function fitting(more) {
  if (more === 0) return "No release like this fits any more.";
  if (more === 1) return "One more release like this fits.";
  return more < ENDLESS ? `${more.toLocaleString("en-US")} more releases like this fit.` : "Any number of releases like this fits.";
}

function command(path, mechanism) {
  const words = [
    `curl -s ${quoted(address(`${path}/charges`))}`,
    ...(hasKey() ? ['-H "Authorization: Bearer $GSH_KEY"'] : []),
    "-H 'Content-Type: application/json'",
    "-H 'Idempotency-Key: one-for-each-release'",
    `-d ${quoted(encode({ mechanism }))}`,
  ];
  return `${words.join(" \\\n  ")}\n`;
}

function bound(epsilon) {
  return epsilon === null ? "∞" : shownUp(epsilon);
}
