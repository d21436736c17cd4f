// The page of published numbers: the mechanism in the form, or in the link, and the panel with the intervals.

import { fieldAt, showColumns } from "../budgets/column-fields.js";
import { columnProblem, givenMechanism, linkOf, planOf } from "../budgets/planned-release.js";
import { withSymbols } from "../explorer/service-words.js";
import { byId, element } from "../shared/dom.js";
import { makeFields, showErrors } from "../shared/forms.js";
import { wirePublished } from "./published-panel.js";

const PAUSE_MS = 200; // after the last keystroke, before a request
const FIELDS = {
  c_u: { symbol: "Cᵤ", label: "Groups per user", inputmode: "numeric" },
  tau: { symbol: "τ", label: "Minimum size", inputmode: "numeric" },
  sigma: { symbol: "σ", label: "Noise, in users", inputmode: "decimal" },
  tau_star: { symbol: "τ*", label: "Threshold, in users", inputmode: "decimal" },
};
const WEEK = { c_u: "8", tau: "1", sigma: "11.95", tau_star: "62.64" }; // the table of /what-epsilon-means

const plan = { ...planOf(new URLSearchParams(location.search), WEEK), way: "given" };
const form = byId("mechanism");
const explain = wirePublished((failure) =>
  showErrors(form, failure ? [withSymbols(failure)] : [], (at) => fieldAt(form, at)),
);
let pause = 0;

makeFields(
  form,
  FIELDS,
  element(
    "fieldset",
    { class: "columns" },
    element("legend", {}, "Further columns"),
    element("div", { id: "columns" }),
    element(
      "div",
      { class: "row" },
      element("button", { class: "quiet", type: "button", onclick: add }, "Add a column"),
    ),
    element("p", { class: "error", "data-error-of": "columns" }),
  ),
);
for (const name of Object.keys(FIELDS)) form.elements[name].value = plan[name];
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("input", ({ target }) => {
  if (target.name in FIELDS) plan[target.name] = target.value;
  later();
});
fill();
changed();

function add() {
  plan.columns.push({ name: `column ${plan.columns.length + 1}`, lower: "0", upper: "1", groups: "", noise: "" });
  fill();
  changed();
  byId(`columns-${plan.columns.length - 1}-name`).focus();
}

function remove(index) {
  plan.columns.splice(index, 1);
  fill();
  changed();
}

function fill() {
  showColumns(byId("columns"), plan.columns, later, remove);
}

function later() {
  clearTimeout(pause);
  pause = setTimeout(changed, PAUSE_MS);
}

/** The link keeps the mechanism, and the panel asks again. */
function changed() {
  const query = linkOf("", plan);
  for (const name of ["budget", "times"]) query.delete(name);
  history.replaceState(null, "", `?${query}`);
  const problem = columnProblem(plan);
  if (problem === null) explain(givenMechanism(plan));
  else showErrors(form, [problem], (at) => fieldAt(form, at));
}
