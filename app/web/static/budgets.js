// The list of budgets, and the form that makes one or changes its limit.

import { byId, element } from "./elements.js";
import { makeFields, showFailures } from "./fields.js";
import { filled, gauge } from "./gauge.js";
import { Problem, put, typed } from "./service.js";

const LIMIT = {
  epsilon: { symbol: "ε", label: "Limit of ε", help: "What all releases together may reach." },
  delta: { symbol: "δ", label: "Limit of δ", help: "At that ε. Keep it far below 1 / number of users." },
  description: { label: "Description", help: "Which data, which users." },
};
const NAME = { budget: { label: "Name", help: "Letters, digits, dots, dashes and underscores." } };

const TAKEN = new Problem({ errors: [{ pointer: "/budget", detail: "is there already: choose it, and change its limit" }] });

/** Show all budgets, each with its gauge; `choose(id)` is told which one shall be looked at. The focus stays. */
export function showBudgets(budgets, chosen, choose) {
  const focused = byId("budgets").contains(document.activeElement) ? document.activeElement.dataset.id : null;
  const items = budgets.map(({ id, used, spent }) => {
    const times = spent.releases === 1 ? "1 release" : `${spent.releases} releases`;
    const name = element("span", { class: "name" }, id);
    const note = element("span", { class: "note" }, `${filled(used)} used · ${times}`);
    const button = element("button", { type: "button", "data-id": id, "aria-pressed": String(id === chosen), onclick: () => choose(id) }, name, note);
    return element("li", {}, button, gauge(id, used));
  });
  const nothing = element("li", { class: "empty" }, "No budget yet.");
  byId("budgets").replaceChildren(...(items.length > 0 ? items : [nothing]));
  const buttons = [...byId("budgets").querySelectorAll("button")];
  buttons.find(({ dataset }) => dataset.id === focused)?.focus({ preventScroll: true });
  const pressed = buttons.find(({ dataset }) => dataset.id === chosen);
  if (pressed) byId("budgets").scrollTop = Math.max(0, pressed.parentElement.offsetTop - byId("budgets").offsetTop - 80);
}

/** Let a form make a budget, or change the one that `named()` gives; `done(id)` is told when that is recorded. */
export function wireLimit(form, label, named, done) {
  makeFields(form, named ? LIMIT : { ...NAME, ...LIMIT }, element("button", { class: "primary", type: "submit" }, label));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const value = (name) => form.elements[name].value;
    const id = named?.() ?? value("budget").trim();
    const isTaken = !named && [...byId("budgets").querySelectorAll("button")].some(({ dataset }) => dataset.id === id);
    if (isTaken) return showFailures(form, [TAKEN]);
    try {
      const limit = { epsilon: typed(value("epsilon")), delta: typed(value("delta")), description: described(form) };
      await put(`budgets/${encodeURIComponent(id)}`, limit);
      showFailures(form, []);
    } catch (failure) {
      return showFailures(form, [failure], (part) => (part === "id" ? "budget" : part));
    }
    done(id);
  });
}

/** Fill a form in with the limit that a budget has, unless somebody is changing it. */
export function showLimit(form, { id, limit, description }) {
  const inputs = [...form.querySelectorAll("input")];
  if (form.dataset.of === id && inputs.some(({ value, defaultValue }) => value !== defaultValue)) return;
  const values = { epsilon: limit.epsilon, delta: limit.delta, description };
  for (const input of inputs) {
    input.value = values[input.name];
    input.defaultValue = input.value; // which has no line breaks any more
  }
  form.dataset.of = id;
  form.dataset.description = description;
  showFailures(form, []);
}

/** The description, which may have lines that an input does not show: as it was, if it was not touched. */
function described(form) {
  const { value, defaultValue } = form.elements.description;
  return value === defaultValue && form.dataset.description !== undefined ? form.dataset.description : value;
}
