// The user's own group sizes: which share of them a mechanism keeps. The browser computes it and sends nothing.

import { byId, element } from "../shared/dom.js";
import { percent } from "../shared/number-format.js";
import { ACCOUNTINGS } from "./comparison-table.js";
import { summary } from "./group-sizes.js";
import { keepProbability } from "./normal-distribution.js";

const PAUSE_MS = 150;
const EXAMPLE_GROUPS = 60;

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

/** The expected share of groups that a mechanism keeps, and the share of users counted in them. */
function sharesKept(times, mechanism) {
  const sums = { groups: 0, users: 0, all: 0, allUsers: 0 };
  for (const [size, count] of times) {
    const kept = count * keepProbability(size, mechanism);
    sums.groups += kept;
    sums.users += kept * size;
    sums.all += count;
    sums.allUsers += count * size;
  }
  return { groups: sums.groups / sums.all, users: sums.users / sums.allUsers };
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
  const { groups, users } = sharesKept(times, mechanisms.given ?? mechanisms.exact);
  const rows = Object.entries(mechanisms).map(([accounting, mechanism]) => {
    const kept = sharesKept(times, mechanism);
    const name = element("span", { class: "accounting" }, ACCOUNTINGS[accounting]);
    const cells = [kept.groups, kept.users].map((share) => element("td", {}, percent(share)));
    return element("tr", { "data-accounting": accounting }, element("th", { scope: "row" }, name), ...cells);
  });
  const heads = ["Accounting", "Groups", "Users"].map((label) => element("th", { scope: "col" }, label));
  const table = element("table", {}, element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...rows));
  const figures = [figure("of groups kept, expected", groups), figure("of users counted in them", users)];
  return [element("dl", { class: "shares" }, ...figures), element("div", { class: "table" }, table), note];
}

function figure(label, share) {
  return element("div", { class: "figure" }, element("dt", {}, label), element("dd", {}, percent(share)));
}
