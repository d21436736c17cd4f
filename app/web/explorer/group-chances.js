// A row for each group with the chance that it is published. Of many groups, those nearest to the threshold.

import { element } from "../shared/dom.js";
import { effectiveTau } from "../shared/effective-tau.js";
import { percent, whole } from "../shared/number-format.js";
import { keepProbability } from "./normal-distribution.js";

const MOST_ROWS = 100;

/** The table. `order` has the places of the groups from the largest to the smallest. */
export function chanceTable({ keys, counts, lines, order }, mechanism) {
  const first = firstShown(counts, order, mechanism.tau_star);
  const last = Math.min(first + MOST_ROWS, order.length);
  const rows = Array.from(order.subarray(first, last), (place) =>
    groupRow(nameOf(keys, lines, place), counts[place], mechanism),
  );
  const larger = first > 0 ? [restRow(`${whole(first)} larger groups`)] : [];
  const smaller = last < order.length ? [restRow(`${whole(order.length - last)} smaller groups`)] : [];
  const heads = ["Group", "Users", "Chance"].map((label) => element("th", { scope: "col" }, label));
  const region = { class: "table chances", tabindex: "0", role: "region", "aria-label": "Chance of each group" };
  const body = element("tbody", {}, ...larger, ...rows, ...smaller);
  return element("div", region, element("table", {}, element("thead", {}, element("tr", {}, ...heads)), body));
}

/** The key of a group, or the line that it stands in. */
export function nameOf(keys, lines, place) {
  return keys === null || keys[place].length === 0 ? `Line ${lines[place]}` : keys[place].join(", ");
}

/** Half of the rows are above the threshold, if there are so many. */
function firstShown(counts, order, tau_star) {
  let [low, high] = [0, order.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (counts[order[middle]] >= tau_star) low = middle + 1;
    else high = middle;
  }
  return Math.max(0, Math.min(low - MOST_ROWS / 2, order.length - MOST_ROWS));
}

function groupRow(name, size, mechanism) {
  const chance = keepProbability(size, mechanism);
  const bar = element("span");
  bar.style.width = `${100 * chance}%`;
  const cell = element("td", {}, inWords(chance, size, mechanism));
  cell.append(element("span", { class: "meter", "aria-hidden": "true" }, bar));
  return element("tr", {}, element("th", { scope: "row" }, name), element("td", {}, whole(size)), cell);
}

function inWords(chance, size, { tau }) {
  return size < Number(effectiveTau(tau)) ? "never, below τ" : chanceText(chance);
}

/** A chance in words that never say 0 or 100 %. */
export function chanceText(chance) {
  if (chance < 0.0005) return "< 0.1 %";
  return chance > 0.9995 ? "> 99.9 %" : percent(chance);
}

function restRow(text) {
  return element("tr", {}, element("td", { colspan: 3, class: "dropped" }, text));
}
