// The user's own group sizes: what a mechanism would publish of them, group by group. The browser computes it and sends
// nothing.

import { byId, element } from "../shared/dom.js";
import { percent, shown, shownUp, whole } from "../shared/number-format.js";
import { ACCOUNTINGS } from "./comparison-table.js";
import { wireDrop } from "./drop-text.js";
import { chanceTable } from "./group-chances.js";
import { groupsIn, problemText } from "./group-text.js";
import { keepProbability } from "./normal-distribution.js";
import { published, publishedErrors } from "./utility.js";

const PAUSE_MS = 150;
const EXAMPLE_KEYS = ["news", "sports", "weather", "music", "games", "travel", "science", "chess"];
const EXAMPLE_SIZES = [8, 3, 1.6, 1.15, 1, 0.85, 0.4, 0.05]; // multiples of τ*: on both sides of it
const LEAST_GROUPS = 0.05; // if fewer are expected, the errors of published groups matter to nobody
const SURE = 0.95;

/** Connect the panel. Returns a function that shows it for other mechanisms, `{ accounting: mechanism }`. */
export function wireSizes() {
  let mechanisms = {};
  const area = byId("sizes");
  let found = read("", []);
  let pause = 0;
  const show = () => byId("sizes-result").replaceChildren(...result(found, mechanisms));
  const readAndShow = () => {
    clearTimeout(pause);
    found = read(area.value, mechanisms.exact?.aggregates?.names ?? []);
    byId("sizes-error").textContent = problemText(found.problems);
    area.setAttribute("aria-invalid", String(found.problems.length > 0));
    show();
  };
  area.addEventListener("input", () => {
    clearTimeout(pause);
    pause = setTimeout(readAndShow, PAUSE_MS);
  });
  wireDrop(area, byId("sizes-file"), readAndShow);
  byId("sizes-example").addEventListener("click", () => {
    area.value = example(mechanisms.exact?.tau_star ?? 1000);
    readAndShow();
  });
  return (next) => {
    mechanisms = next;
    show();
  };
}

/** The groups of a text, how often each size occurs, and the groups in the order of their sizes. */
function read(text, names) {
  const { keys, counts, countName, lines, problems } = groupsIn(text, { names });
  const times = new Map();
  for (const size of counts) times.set(size, (times.get(size) ?? 0) + 1);
  const order = Uint32Array.from(counts.keys()).sort((one, other) => counts[other] - counts[one]);
  const sentence = summary(counts, countName, order, problems.length);
  return { keys, counts, lines, problems, times, order, sentence };
}

function summary(counts, name, order, ignored) {
  const origin = name === undefined ? "" : ` from the column ${name}`;
  const skipped = ignored > 0 ? `, ${whole(ignored)} ${ignored === 1 ? "line" : "lines"} not read` : "";
  const span = order.length > 0 ? `, smallest ${whole(counts[order.at(-1)])}, largest ${whole(counts[order[0]])}` : "";
  return `${whole(counts.length)} ${counts.length === 1 ? "size" : "sizes"} read${origin}${skipped}${span}; nothing was sent.`;
}

function example(tau_star) {
  const size = (multiple) => Math.max(1, Math.round(multiple * tau_star));
  return ["topic,users", ...EXAMPLE_KEYS.map((key, k) => `${key},${size(EXAMPLE_SIZES[k])}`)].join("\n");
}

function result(found, mechanisms) {
  const { times, problems, sentence } = found;
  const note = element("p", { class: "release-note" }, sentence);
  if (times.size === 0 || !mechanisms.exact) {
    return [element("p", { class: "empty" }, "No sizes yet."), ...(problems.length > 0 ? [note] : [])];
  }
  const mechanism = mechanisms.given ?? mechanisms.exact;
  const expected = published(times, mechanism);
  const figures = [
    figure("groups published, about", `${whole(Math.round(expected.groups))} of ${whole(expected.allGroups)}`),
    figure("of users are in them", percent(expected.usersShare)),
  ];
  const facts = sentences(expected, times, mechanism).map((text) =>
    element("li", {}, text.replaceAll(" %", "\u00a0%")),
  );
  return [
    element("dl", { class: "shares" }, ...figures),
    element("ul", { class: "facts" }, ...facts),
    chanceTable(found, mechanism),
    element("details", { class: "others" }, element("summary", {}, "With other accountings"), table(times, mechanisms)),
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
  const inner = element("table", {}, element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...rows));
  const region = { class: "table", tabindex: "0", role: "region", "aria-label": "Shares by accounting" };
  return element("div", region, inner);
}

/** How many groups and which, how many of them too small, and how wrong their counts. */
function sentences({ groups, deviation, allGroups, falseShare }, times, mechanism) {
  if (groups < LEAST_GROUPS) return ["Almost certainly no group is published."];
  const [half, most] = publishedErrors(times, mechanism, [0.5, 0.95]);
  return [
    `About ${whole(Math.round(groups))} of ${whole(allGroups)} groups are published, give or take ${some(deviation)}: ` +
      certainty(times, mechanism, allGroups),
    `${percent(falseShare)} of them have fewer than τ* = ${shownUp(mechanism.tau_star)} users. Noise lifted them.`,
    `Half of the published counts are at most ${error(half)} off, and 95 % of them at most ${error(most)}.`,
  ];
}

function certainty(times, mechanism, all) {
  let [sure, never] = [0, 0];
  for (const [n, count] of times) {
    const chance = keepProbability(n, mechanism);
    if (chance >= SURE) sure += count;
    else if (chance <= 1 - SURE) never += count;
  }
  const perhaps = all - sure - never;
  return `${whole(sure)} almost surely, ${whole(perhaps)} perhaps, ${whole(never)} almost surely not.`;
}

function some(number) {
  return number < 100 ? number.toFixed(1) : whole(Math.round(number));
}

function error(relative) {
  return relative < 10 ? percent(relative) : `${shown(100 * relative)} %`;
}

function figure(label, text) {
  return element("div", { class: "figure" }, element("dt", {}, label), element("dd", {}, text));
}
