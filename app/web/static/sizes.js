// The user's own group sizes: what would be left of them. All of it is computed here, and nothing of it is sent.

import { ROUTES } from "./compare.js";
import { byId, element } from "./elements.js";
import { keepProbability } from "./normal.js";
import { percent, shown } from "./numbers.js";

const NUMBER = /-?\d[\d_]*(?:\.\d+)?(?:e[+-]?\d+)?/gi;

/** The sizes in a text: every number of it, or the last of each line where lines have words or several columns. */
export function sizesOf(text) {
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== "");
  const plain = lines.length <= 1 || lines.every((line) => !/[^\d\s.,;_eE+-]/.test(line) && (line.match(NUMBER) ?? []).length !== 2);
  const words = lines.flatMap((line) => (plain && !/[a-z]{2}/i.test(line) ? line.match(NUMBER) ?? [] : (line.match(NUMBER) ?? []).slice(-1)));
  return words.map((word) => Number(word.replaceAll("_", ""))).filter((size) => size >= 1);
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
  const { groups, users } = sharesKept(sizes, mechanisms.exact);
  const figure = (label, share) => element("div", { class: "figure" }, element("dt", {}, label), element("dd", {}, percent(share)));
  const rows = Object.entries(mechanisms).map(([route, mechanism]) => {
    const kept = sharesKept(sizes, mechanism);
    const name = element("span", { class: "route" }, ROUTES[route]);
    name.style.setProperty("--swatch", `var(--${route})`);
    return element("tr", {}, element("th", { scope: "row" }, name), ...[kept.groups, kept.users].map((share) => element("td", {}, percent(share))));
  });
  const head = element("tr", {}, ...["Accounting", "Groups", "Users"].map((label) => element("th", { scope: "col" }, label)));
  return [
    element("dl", { class: "shares" }, figure("of groups kept, expected", groups), figure("of users counted in them", users)),
    element("div", { class: "table" }, element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows))),
    element("p", { class: "release-note" }, `${shown(sizes.length).replace(/\.0+$/, "")} groups read; nothing was sent.`),
  ];
}
