// Groups under the threshold, made up or the user's own: a picture, and what would be published of them, group by group. The
// browser computes it and sends nothing.

import { byId, element } from "../shared/dom.js";
import { percent, shown, whole } from "../shared/number-format.js";
import { ACCOUNTINGS } from "./comparison-table.js";
import { wireDrop } from "./drop-text.js";
import { chanceTable, chanceText, nameOf } from "./group-chances.js";
import { groupsIn, problemText } from "./group-text.js";
import { keepProbability } from "./normal-distribution.js";
import { wirePicture } from "./slide-picture.js";
import { published, publishedErrors } from "./utility.js";

const PAUSE_MS = 150;
const NAMES = [
  ...["home", "news", "sports", "weather", "music", "games", "travel", "science", "chess", "books", "films", "health"],
  ...["garden", "recipes", "history", "maps", "radio", "law", "poems", "trains", "bees", "knots", "fossils", "kites"],
];
const LARGEST = 30; // of the made-up groups, as a multiple of τ*
const DECLINE = 1.4; // size ~ 1/rank^1.4: sizes of web pages decline so
const LEAST_GROUPS = 0.05; // if fewer are expected, the errors of published groups matter to nobody
const SURE = 0.95;

/**
 * Connect the picture and the panel. Returns a function that shows them for other mechanisms, `{ accounting: mechanism }`:
 * `text` is τ* as the answer writes it, and made-up groups stay as they are while `scene` is the same.
 */
export function wireSizes() {
  let mechanisms = {};
  let text = "";
  let made = { scene: null, text: "" };
  const area = byId("sizes");
  let found = null;
  let pause = 0;
  const picture = wirePicture(byId("slide-picture"), (rank) => {
    byId("slide-note").textContent = rank === null ? KEY : about(found, rank, answering(mechanisms));
  });
  byId("slide-note").textContent = KEY;

  function readAndShow() {
    clearTimeout(pause);
    const isOwn = area.value.trim() !== "";
    found = { ...read(isOwn ? area.value : made.text, answering(mechanisms)?.aggregates?.names ?? []), isOwn };
    byId("sizes-error").textContent = problemText(found.problems);
    area.setAttribute("aria-invalid", String(found.problems.length > 0));
    if (found.order.length > 0) picture.showSizes(Array.from(found.order, (place) => found.counts[place]));
    show();
  }

  function show() {
    const mechanism = answering(mechanisms);
    if (mechanism === undefined || found === null) return;
    picture.showThreshold(mechanism, text);
    byId("slide-words").textContent = words(found, mechanism);
    if (byId("own").open) byId("sizes-result").replaceChildren(...result(found, mechanisms, text));
  }

  area.addEventListener("input", () => {
    clearTimeout(pause);
    pause = setTimeout(readAndShow, PAUSE_MS);
  });
  wireDrop(area, byId("sizes-file"), readAndShow);
  byId("sizes-example").addEventListener("click", () => {
    area.value = made.text;
    readAndShow();
  });
  byId("own").addEventListener("toggle", show);
  return (next, nextText, scene) => {
    [mechanisms, text] = [next, nextText];
    if (made.scene === scene) return show();
    made = { scene, text: example(answering(next).tau_star) };
    readAndShow();
  };
}

/** The mechanism of the answer: a given one, or that of exact accounting. */
const answering = ({ given, exact }) => given ?? exact;

const KEY = "Each bar is a group. Those above the line τ* are published, and between the thin lines chance decides.";

function about({ keys, counts, lines, order }, rank, mechanism) {
  const place = order[rank];
  const chance = keepProbability(counts[place], mechanism);
  return `${nameOf(keys, lines, place)}: ${whole(counts[place])} users, ${chanceText(chance)} of all releases show it.`;
}

function words({ times, order, isOwn }, mechanism) {
  if (order.length === 0) return "";
  const { groups, allGroups, usersShare } = published(times, mechanism);
  const all = isOwn ? `your ${whole(allGroups)}` : `${whole(allGroups)} made-up`;
  return `About ${whole(Math.round(groups))} of ${all} groups are published, with ${percent(usersShare)} of their users.`;
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

/** Made-up groups on both sides of a threshold, as a text. */
function example(tau_star) {
  const size = (rank) => Math.max(1, Math.round((LARGEST * Math.max(tau_star, 1)) / rank ** DECLINE));
  return ["topic,users", ...NAMES.map((name, k) => `${name},${size(k + 1)}`)].join("\n");
}

function result(found, mechanisms, text) {
  const { times, sentence, isOwn } = found;
  const note = element(
    "p",
    { class: "release-note" },
    isOwn ? sentence : "These groups are made up around the threshold.",
  );
  if (times.size === 0) return [element("p", { class: "empty" }, "No sizes yet."), note];
  const mechanism = answering(mechanisms);
  const expected = published(times, mechanism);
  const figures = [
    figure("groups published, about", `${whole(Math.round(expected.groups))} of ${whole(expected.allGroups)}`),
    figure("of users are in them", percent(expected.usersShare)),
  ];
  const facts = sentences(expected, times, mechanism, text).map((each) =>
    element("li", {}, each.replaceAll(" %", "\u00a0%")),
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
function sentences({ groups, deviation, allGroups, falseShare }, times, mechanism, text) {
  if (groups < LEAST_GROUPS) return ["Almost certainly no group is published."];
  const [half, most] = publishedErrors(times, mechanism, [0.5, 0.95]);
  return [
    `About ${whole(Math.round(groups))} of ${whole(allGroups)} groups are published, give or take ${some(deviation)}: ` +
      certainty(times, mechanism, allGroups),
    `${percent(falseShare)} of them have fewer than τ* = ${text} users. Noise lifted them.`,
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
