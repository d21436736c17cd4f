// The user's own group sizes: what a mechanism would publish of them. The browser computes it and sends nothing.

import { byId, element } from "../shared/dom.js";
import { percent, shown, whole } from "../shared/number-format.js";
import { ACCOUNTINGS } from "./comparison-table.js";
import { summary } from "./group-sizes.js";
import { published, publishedErrors } from "./utility.js";

const PAUSE_MS = 150;
const EXAMPLE_GROUPS = 60;
const LEAST_GROUPS = 0.05; // if fewer are expected, the errors of published groups matter to nobody

/** Connect the panel. Returns a function that shows it for other mechanisms, `{ accounting: mechanism }`. */
export function wireSizes() {
  let mechanisms = {};
  const area = byId("sizes");
  let found = summary("");
  let pause = 0;
  const show = () => byId("sizes-result").replaceChildren(...result(found, mechanisms));
  const readAndShow = () => {
    clearTimeout(pause);
    found = summary(area.value);
    show();
  };
  const open = async (file) => {
    area.value = await file.text();
    readAndShow();
  };
  area.addEventListener("input", () => {
    clearTimeout(pause);
    pause = setTimeout(readAndShow, PAUSE_MS);
  });
  area.addEventListener("dragover", (event) => {
    event.preventDefault();
    area.classList.add("over");
  });
  area.addEventListener("dragleave", () => area.classList.remove("over"));
  area.addEventListener("drop", async (event) => {
    area.classList.remove("over");
    const [file] = event.dataTransfer.files;
    if (!file) return;
    event.preventDefault();
    await open(file);
  });
  byId("sizes-file").addEventListener("change", async (event) => {
    const [file] = event.target.files;
    if (file) await open(file);
  });
  byId("sizes-example").addEventListener("click", () => {
    area.value = example(mechanisms.exact?.tau_star ?? 1000);
    readAndShow();
  });
  return (next) => {
    mechanisms = next;
    show();
  };
}

/** A long tail around the threshold: the k-th largest group has 1/k of the users of the largest one. */
function example(tau_star) {
  const largest = Math.round(20 * tau_star);
  return Array.from({ length: EXAMPLE_GROUPS }, (_, k) => Math.max(1, Math.round(largest / (k + 1)))).join("\n");
}

function result({ times, ignored, sentence }, mechanisms) {
  const note = element("p", { class: "release-note" }, sentence);
  if (times.size === 0 || !mechanisms.exact) {
    return [element("p", { class: "empty" }, "No sizes yet."), ...(ignored > 0 ? [note] : [])];
  }
  const mechanism = mechanisms.given ?? mechanisms.exact;
  const expected = published(times, mechanism);
  const figures = [
    figure("of groups published", expected.groupsShare),
    figure("of users in them", expected.usersShare),
  ];
  const facts = sentences(expected, times, mechanism).map((text) =>
    element("li", {}, text.replaceAll(" %", "\u00a0%")),
  );
  return [
    element("dl", { class: "shares" }, ...figures),
    element("ul", { class: "facts" }, ...facts),
    element("div", { class: "table" }, table(times, mechanisms)),
    note,
  ];
}

/** The shares of groups and users for the mechanism of each accounting. */
function table(times, mechanisms) {
  const rows = Object.entries(mechanisms).map(([accounting, mechanism]) => {
    const { groupsShare, usersShare } = published(times, mechanism);
    const name = element("span", { class: "accounting" }, ACCOUNTINGS[accounting]);
    const cells = [groupsShare, usersShare].map((share) => element("td", {}, percent(share)));
    return element("tr", { "data-accounting": accounting }, element("th", { scope: "row" }, name), ...cells);
  });
  const heads = ["Accounting", "Groups", "Users"].map((label) => element("th", { scope: "col" }, label));
  return element("table", {}, element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...rows));
}

/** How many groups, how many of them too small, and how wrong their counts. */
function sentences({ groups, deviation, allGroups, falseShare }, times, mechanism) {
  if (groups < LEAST_GROUPS) return ["Almost certainly no group is published."];
  const [half, most] = publishedErrors(times, mechanism, [0.5, 0.95]);
  return [
    `About ${some(groups)} of ${whole(allGroups)} groups are published, give or take ${some(deviation)}.`,
    `${percent(falseShare)} of them have fewer than τ* = ${shown(mechanism.tau_star)} users. Noise lifted them.`,
    `Half of the published counts are at most ${error(half)} off, and 95 % of them at most ${error(most)}.`,
  ];
}

function some(number) {
  return number < 100 ? number.toFixed(1) : whole(Math.round(number));
}

function error(relative) {
  return relative < 10 ? percent(relative) : `${shown(100 * relative)} %`;
}

function figure(label, share) {
  return element("div", { class: "figure" }, element("dt", {}, label), element("dd", {}, percent(share)));
}
