// The list of budgets, as a tree.

import { byId, element } from "../shared/dom.js";
import { linesOf, treeOf } from "./budget-tree.js";
import { longerOf, releasesText } from "./budget-words.js";
import { gauge, usedPercent } from "./gauge.js";

const ROOM_ABOVE = 80; // pixels above the chosen budget, when the list scrolls to it

let names = new Set();

/** Show all budgets, each with its gauge. A click calls `choose(id)`. The focus stays on its budget. */
export function showBudgets(budgets, chosen, choose) {
  names = new Set(budgets.map(({ id }) => id));
  const list = byId("budgets");
  const focused = list.contains(document.activeElement) ? document.activeElement.dataset.id : null;
  const isOpen = ({ budget, periods }) =>
    [budget, ...periods.map((each) => each.budget)].some(({ id }) => id === chosen);
  const items = linesOf(treeOf(budgets), isOpen).map((line) => item(line, chosen, choose));
  list.replaceChildren(...(items.length > 0 ? items : [element("li", { class: "empty" }, "No budget yet.")]));
  const buttonOf = (id) => [...list.querySelectorAll("button")].find(({ dataset }) => dataset.id === id);
  buttonOf(focused)?.focus({ preventScroll: true });
  const pressed = buttonOf(chosen);
  if (pressed) list.scrollTop = Math.max(0, pressed.parentElement.offsetTop - list.offsetTop - ROOM_ABOVE);
}

/** Whether there is a budget with this name. */
export function isListed(id) {
  return names.has(id);
}

function item({ budget, ancestors, periods, level }, chosen, choose) {
  const { id, used, spent, renews } = budget;
  const attributes = {
    type: "button",
    "data-id": id,
    "aria-pressed": String(id === chosen),
    onclick: () => choose(id),
  };
  const name = element("span", { class: "name" }, id);
  const text =
    renews === null ? `${usedPercent(used)} used · ${releasesText(spent)}` : renewal(budget, periods, ancestors);
  const button = element("button", attributes, name, element("span", { class: "note" }, text));
  // Nothing is charged to a renewed budget itself.
  const made = element("li", {}, button, ...(renews === null ? [gauge(id, used)] : []));
  made.style.setProperty("--level", level);
  return made;
}

/** A renewed budget: how often, how many periods so far, and what limits all of them together. */
function renewal({ renews, parent }, periods, ancestors) {
  const longer = longerOf(ancestors)?.id ?? parent;
  const all = longer === null ? `no limit for all ${renews}s` : `all ${renews}s: ${longer}`;
  return `each ${renews}, ${periods.length} so far · ${all}`;
}
