// The list of budgets.

import { byId, element } from "../shared/dom.js";
import { gauge, usedPercent } from "./gauge.js";

const ROOM_ABOVE = 80; // pixels above the chosen budget, when the list scrolls to it

/** Show all budgets, each with its gauge. A click calls `choose(id)`. The focus stays on its budget. */
export function showBudgets(budgets, chosen, choose) {
  const list = byId("budgets");
  const focused = list.contains(document.activeElement) ? document.activeElement.dataset.id : null;
  const items = budgets.map((budget) => item(budget, chosen, choose));
  list.replaceChildren(...(items.length > 0 ? items : [element("li", { class: "empty" }, "No budget yet.")]));
  const buttonOf = (id) => [...list.querySelectorAll("button")].find(({ dataset }) => dataset.id === id);
  buttonOf(focused)?.focus({ preventScroll: true });
  const pressed = buttonOf(chosen);
  if (pressed) list.scrollTop = Math.max(0, pressed.parentElement.offsetTop - list.offsetTop - ROOM_ABOVE);
}

/** Whether the list shows a budget with this name. */
export function isListed(id) {
  return [...byId("budgets").querySelectorAll("button")].some(({ dataset }) => dataset.id === id);
}

function item({ id, used, spent }, chosen, choose) {
  const times = spent.releases === 1 ? "1 release" : `${spent.releases} releases`;
  const attributes = {
    type: "button",
    "data-id": id,
    "aria-pressed": String(id === chosen),
    onclick: () => choose(id),
  };
  const name = element("span", { class: "name" }, id);
  const note = element("span", { class: "note" }, `${usedPercent(used)} used · ${times}`);
  return element("li", {}, element("button", attributes, name, note), gauge(id, used));
}
