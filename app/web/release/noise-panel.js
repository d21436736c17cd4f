// Noise and threshold: from ε and δ of this release, from a share of the budget, or as given.

import { fieldAt, showColumns } from "../budgets/column-fields.js";
import { balanced, WAYS } from "../budgets/planned-release.js";
import { byId, element } from "../shared/dom.js";
import { makeFields, showErrors } from "../shared/forms.js";
import { MEANING } from "../shared/meaning-link.js";
import { shownUp } from "../shared/number-format.js";
import { usable } from "../shared/usable-numbers.js";

const FIELDS = {
  way: { label: "From", options: { ...WAYS, each: "ε and δ of this release" } },
  c_u: { symbol: "Cᵤ", label: "Groups per user", help: "The most groups that one user is in. Your query enforces it." },
  tau: { symbol: "τ", label: "Minimum group size", help: "Groups with fewer users are dropped before noise is added." },
  epsilon: { symbol: "ε", label: "Privacy loss", help: "Smaller is more private.", link: MEANING },
  delta: {
    symbol: "δ",
    label: "Allowance",
    help: "A small probability on top of ε. Keep it far below 1 / number of users.",
  },
  times: { symbol: "k", label: "Releases", help: "This release gets one of so many equal shares." },
  sigma: { symbol: "σ", label: "Noise, in users" },
  tau_star: { symbol: "τ*", label: "Threshold, in users" },
};
// ε of given noise is the one that the certificate states.
const OF_WAY = { epsilon: ["each", "given"], delta: ["each"], times: ["all"], sigma: ["given"], tau_star: ["given"] };
export const NEW_COLUMN = { lower: "0", upper: "", groups: "", noise: "" };

/**
 * Connect the form. `changed()` is called on input. Returns a function that takes the names of the further columns, and
 * whether there are several tables: then each has its own bounds, and all of them share one target.
 */
export function wireNoise(plan, changed) {
  const form = byId("noise");
  const known = new Map(plan.columns.map((column) => [column.name, column])); // of the link, and typed before
  let isJoint = false;
  plan.columns = [];
  makeFields(form, FIELDS, columnFields("noise"));
  form.elements.way.closest(".field").classList.add("wide");
  for (const name of Object.keys(FIELDS)) form.elements[name].value = plan[name];
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", ({ target }) => {
    if (target.name in plan) plan[target.name] = target.value;
    if (target.name === "way" && plan.way !== "given") {
      for (const [j, { noise }] of balanced(plan).columns.entries()) plan.columns[j].noise = noise;
      showNoiseColumns();
    }
    showWay();
    changed();
  });

  function showWay() {
    for (const [name, way] of Object.entries(OF_WAY))
      form.elements[name].closest(".field").hidden = !way.includes(plan.way);
    for (const name of ["c_u", "tau"]) form.elements[name].closest(".field").hidden = isJoint;
    form.querySelector("option[value=given]").hidden = isJoint;
  }

  function showNoiseColumns() {
    showColumns(byId("noise-columns"), plan.columns, changed);
  }

  showWay();
  return (names, isSeveral) => {
    isJoint = isSeveral;
    if (isJoint && plan.way === "given") {
      plan.way = "each"; // given noise has no shares
      form.elements.way.value = plan.way;
    }
    showWay();
    plan.columns = names.map((name) => {
      if (!known.has(name)) known.set(name, { ...NEW_COLUMN, name });
      return known.get(name);
    });
    byId("noise-fieldset").hidden = names.length === 0;
    showNoiseColumns();
  };
}

/** The place for the fields of further columns. Its ids begin with a prefix. */
export function columnFields(prefix) {
  const help =
    "The smallest and the largest value that one user adds to a group. Your query clips it. If one user changes a column " +
    "in fewer than Cᵤ groups, say so. Empty noise is balanced.";
  return element(
    "fieldset",
    { class: "columns wide", id: `${prefix}-fieldset`, hidden: true },
    element("legend", {}, "Further columns"),
    element("p", { class: "help" }, help),
    element("div", { id: `${prefix}-columns` }),
    element("p", { class: "error", id: `${prefix}-columns-error`, "data-error-of": "columns" }),
  );
}

/** Show what the noise does, or the errors of the request that should find it. */
export function showNoise(mechanism, failures) {
  const form = byId("noise");
  showErrors(form, failures, (pointer) => fieldAt(form, pointer));
  const none = failures.length === 0 ? "Enter the most groups that one user is in." : "";
  byId("noise-answer").textContent = mechanism === null ? none : noiseSentence(mechanism);
}

/** What the noise does, in words. Without a threshold all groups are shown. */
export function noiseSentence({ sigma, tau, tau_star, aggregates }) {
  const isPublic = tau_star === undefined;
  const few = usable({ sigma: Number(sigma), tau: Number(tau), tau_star: Number(tau_star) });
  const columns = (aggregates?.names ?? []).map(
    (name, j) => `, ${name} ± ${shownUp(1.96 * Math.sqrt(Number(aggregates.covariance[j][j])))}`,
  );
  const counts = `Counts ± ${shownUp(1.96 * few.noise)}${columns.join("")}, in 19 of 20 cases`;
  if (isPublic) return `σ = ${few.sigma}, no threshold. ${counts}. All groups are shown.`;
  return `σ = ${few.sigma}, τ* = ${few.tau_star}. ${counts}. Groups with a noisy count below τ* are not shown.`;
}
