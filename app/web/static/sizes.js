// The user's own group sizes: what would be left of them. All of it is computed here, and nothing of it is sent.

import { ROUTES } from "./compare.js";
import { byId, element } from "./elements.js";
import { keepProbability } from "./normal.js";
import { percent, shown } from "./numbers.js";

const isNumber = (cell) => Number.isFinite(Number(cell));

/** The sizes in a text: of a list all numbers; of a table, or of lines with words, the last number of each line. */
export function sizesOf(text) {
  const rows = text.split("\n").map((line) => line.split(/[\s,;]+/).filter(Boolean)).filter((row) => row.length > 0);
  const isTable = rows.length > 1 && rows[0].length > 1 && rows.every((row) => row.length === rows[0].length);
  const isList = !isTable && rows.every((row) => row.every(isNumber));
  const cells = isList ? rows.flat() : rows.map((row) => row.findLast(isNumber));
  return cells.map(Number).filter((size) => size >= 1);
}

/** The expected share of groups, and of users counted in them, that a mechanism leaves. */
export function sharesKept(sizes, mechanism) {
  let groups = 0;
  let users = 0;
  let all = 0;
  for (const size of sizes) {
    const kept = keepProbability(size, mechanism);
    groups += kept;
    users += kept * size;
    all += size;
  }
  return { groups: groups / sizes.length, users: users / all, kept: groups };
}

/** Wire the panel up. Returns what shows it for other mechanisms, by route. */
export function wireSizes() {
  let mechanisms = {};
  const area = byId("sizes");
  const show = () => byId("sizes-result").replaceChildren(...result(sizesOf(area.value), mechanisms));
  const read = async (file) => {
    area.value = await file.text();
    show();
  };
  area.addEventListener("input", show);
  area.addEventListener("dragover", (event) => {
    event.preventDefault();
    area.classList.add("over");
  });
  area.addEventListener("dragleave", () => area.classList.remove("over"));
  area.addEventListener("drop", (event) => {
    area.classList.remove("over");
    if (event.dataTransfer.files.length === 0) return;
    event.preventDefault();
    read(event.dataTransfer.files[0]);
  });
  byId("sizes-file").addEventListener("change", (event) => event.target.files.length > 0 && read(event.target.files[0]));
  byId("sizes-example").addEventListener("click", () => {
    area.value = example(mechanisms.exact?.tau_star ?? 1000);
    show();
  });
  return (next) => {
    mechanisms = next;
    show();
  };
}

/** A long tail around the threshold: the k-th largest group has a k-th of the largest one's users. */
function example(tau_star) {
  const largest = Math.round(20 * tau_star);
  return Array.from({ length: 60 }, (_, k) => Math.max(1, Math.round(largest / (k + 1)))).join("\n");
}

function result(sizes, mechanisms) {
  if (sizes.length === 0 || !mechanisms.exact) return [element("p", { class: "empty" }, "Nothing to count yet.")];
  const { groups, users } = sharesKept(sizes, mechanisms.given ?? mechanisms.exact);
  const figure = (label, share) => element("div", { class: "figure" }, element("dt", {}, label), element("dd", {}, percent(share)));
  const rows = Object.entries(mechanisms).map(([route, mechanism]) => {
    const kept = sharesKept(sizes, mechanism);
    const name = element("span", { class: "route" }, ROUTES[route]);
    return element("tr", { "data-route": route }, element("th", { scope: "row" }, name), ...[kept.groups, kept.users].map((share) => element("td", {}, percent(share))));
  });
  const head = element("tr", {}, ...["Accounting", "Groups", "Users"].map((label) => element("th", { scope: "col" }, label)));
  return [
    element("dl", { class: "shares" }, figure("of groups kept, expected", groups), figure("of users counted in them", users)),
    element("div", { class: "table" }, element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows))),
    element("p", { class: "release-note" }, `${shown(sizes.length).replace(/\.0+$/, "")} groups read; nothing was sent.`),
  ];
}
