// All budgets on one page: the tree, what each protects and promises, and the periods of those that are renewed.

import { byId, element } from "../shared/dom.js";
import { digits } from "../shared/number-format.js";
import { linesOf, treeOf } from "./budget-tree.js";
import { longerText, promiseText, releasesText, unitOf } from "./budget-words.js";
import { gauge, usedPercent } from "./gauge.js";

/** Show the overview. A click on a name calls `choose(id)`. */
export function showOverview(budgets, choose) {
  const lines = linesOf(treeOf(budgets), () => false);
  byId("overview-budgets").replaceChildren(...lines.map((line) => row(line, choose)));
}

function row({ budget, ancestors, periods, level }, choose) {
  const { id, description, limit, renews, parent } = budget;
  const [above] = ancestors;
  const facts = [
    `Protects ${unitOf(budget)}`,
    `limit δ = ${digits(limit.delta)} at ε = ${limit.epsilon}`,
    ...(parent === null ? [] : [above === undefined ? `below ${parent}, which is not listed` : `below ${parent}`]),
    ...(renews === null ? [promised(budget)] : []),
  ];
  const made = element(
    "li",
    { "data-overview": id },
    element("h3", {}, nameButton(id, choose)),
    ...(description === "" ? [] : [element("p", {}, description)]),
    element("p", { class: "under" }, `${facts.join(" · ")}.`),
    ...(renews === null ? [used(budget)] : renewed(budget, periods, choose)),
    ...(longerText(budget, ancestors) === "" ? [] : [element("p", { class: "longer" }, longerText(budget, ancestors))]),
  );
  made.style.setProperty("--level", level);
  return made;
}

function nameButton(id, choose) {
  return element("button", { class: "name", type: "button", onclick: () => choose(id) }, id);
}

function promised(budget) {
  return budget.promise === null ? "nothing released yet" : `promises ${promiseText(budget)}`;
}

function used({ id, used: share, spent }) {
  const text = `${usedPercent(share)} used · ${releasesText(spent)}`;
  return element("div", { class: "use" }, gauge(id, share), element("p", {}, text));
}

/** Its periods, the latest first. The latest is shown, and the others are one click away. */
function renewed({ renews }, periods, choose) {
  const count = periods.length === 1 ? `one ${renews}` : `${periods.length} ${renews}s`;
  const items = periods.map(({ budget }) =>
    element("li", {}, nameButton(budget.id, choose), used(budget), element("p", {}, `${promised(budget)}.`)),
  );
  const [latest, ...earlier] = items;
  const head = element(
    "p",
    {},
    `Renews each ${renews}: ${periods.length === 0 ? "no release yet" : `${count} so far`}.`,
  );
  if (latest === undefined) return [head];
  const list = element("ul", { class: "periods" }, latest);
  if (earlier.length === 0) return [head, list];
  const summary = element("summary", {}, `Earlier ${renews}s (${earlier.length})`);
  return [head, list, element("details", {}, summary, element("ul", { class: "periods" }, ...earlier))];
}
