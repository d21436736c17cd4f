// The list of budgets, and the form that makes one or changes its limit.

import { byId, element } from "./elements.js";
import { makeFields, showFailures } from "./fields.js";
import { filled, gauge } from "./gauge.js";
import { put, typed } from "./service.js";

const LIMIT = {
  epsilon: { symbol: "ε", label: "Limit of ε", help: "What all releases together may reach." },
  delta: { symbol: "δ", label: "Limit of δ", help: "At that ε. Keep it far below 1 / number of users." },
  description: { label: "Description", help: "Which data, which users." },
};
const NAME = { budget: { label: "Name", help: "Letters, digits, dots, dashes and underscores." } };

/** Show all budgets, each with its gauge; `choose(id)` is told which one shall be looked at. */
export function showBudgets(budgets, chosen, choose) {
  const items = budgets.map(({ id, used, spent }) => {
    const times = spent.releases === 1 ? "1 release" : `${spent.releases} releases`;
    const name = element("span", { class: "name" }, id);
    const note = element("span", { class: "note" }, `${filled(used)} used · ${times}`);
    const button = element("button", { type: "button", "aria-pressed": String(id === chosen), onclick: () => choose(id) }, name, note);
    return element("li", {}, button, gauge(id, used));
  });
  const nothing = element("li", { class: "empty" }, "No budget yet.");
  byId("budgets").replaceChildren(...(items.length > 0 ? items : [nothing]));
}

/** Let a form make a budget, or change the one that `named()` gives; `done(id)` is told when that is recorded. */
export function wireLimit(form, label, named, done) {
  makeFields(form, named ? LIMIT : { ...NAME, ...LIMIT }, element("button", { class: "primary", type: "submit" }, label));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const value = (name) => form.elements[name].value;
    const id = named?.() ?? value("budget").trim();
    try {
      const limit = { epsilon: typed(value("epsilon")), delta: typed(value("delta")), description: value("description") };
      await put(`budgets/${encodeURIComponent(id)}`, limit);
      showFailures(form, []);
    } catch (failure) {
      return showFailures(form, [failure], (part) => (part === "id" ? "budget" : part));
    }
    done(id);
  });
}

/** Fill a form in with the limit that a budget has. */
export function showLimit(form, { limit, description }) {
  form.elements.epsilon.value = limit.epsilon;
  form.elements.delta.value = limit.delta;
  form.elements.description.value = description;
  showFailures(form, []);
}
