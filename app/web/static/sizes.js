// The user's own group sizes: what would be left of them. All of it is computed here, and nothing of it is sent.

import { ROUTES } from "./compare.js";
import { byId, element } from "./elements.js";
import { keepProbability } from "./normal.js";
import { percent } from "./numbers.js";

const PAUSE = 150;
const WHOLE = /^\s*\d+\s*$/;
const GROUPED = /^\d{1,3}([ ,]\d{3})+$/; // 1,234: a number with separators, or two numbers
const GROUPED_TAIL = /[ ,;]\d{1,3}([ ,]\d{3})+$/;
const isNumber = (cell) => Number.isFinite(Number(cell));

/** A line's cells, and whether a comma or a space in it may be one between thousands. */
function rowOf(line) {
  if (WHOLE.test(line)) return { cells: [line.trim()], isPure: true, isUnclear: false };
  const isBracketed = /^\s*[[({]/.test(line);
  const plain = line
    .replace(/^[\s[({]+|[\s\])},;]+$/g, "")
    .replace(/"(\d{1,3}(?:,\d{3})+)"/g, (_, number) => number.replaceAll(",", ""))
    .replace(/(?<=\d)[\u00a0\u202f'’](?=\d{3})/g, "")
    .replaceAll('"', "");
  const isTabbed = plain.includes("\t");
  const cells = isTabbed
    ? plain.split("\t").map((cell) => (GROUPED.test(cell.trim()) ? cell.replace(/[ ,]/g, "") : cell.trim())).filter(Boolean)
    : plain.split(/[\s,;]+/).filter(Boolean);
  const isPure = cells.length > 0 && cells.every(isNumber);
  const isUnclear = !isBracketed && !isTabbed && (isPure ? GROUPED : GROUPED_TAIL).test(plain);
  return { cells, isPure, isUnclear };
}

/**
 * The sizes in a text and how many of its lines were ignored: of lines of numbers alone all numbers; else the last number
 * of each line. What may be one number with separators or several is not guessed at, but ignored.
 */
export function readingOf(text) {
  const rows = text.split("\n").filter((line) => line.trim() !== "").map(rowOf);
  const isList = rows.every(({ isPure }) => isPure);
  const isTable = !isList && rows.length > 1 && rows.every(({ cells }) => cells.length === rows[0].cells.length);
  const sizes = [];
  let ignored = 0;
  for (const { cells, isUnclear } of rows) {
    const last = isList ? undefined : cells.findLast(isNumber);
    const found = isUnclear && !isTable ? [] : isList ? cells : last === undefined ? [] : [last];
    const good = found.map(Number).filter((size) => size >= 1);
    for (const size of good) sizes.push(size);
    if (good.length === 0 || good.length < found.length) ignored += 1;
  }
  return { sizes, ignored };
}

export function sizesOf(text) {
  return readingOf(text).sizes;
}

/** How often each size occurs. */
function tally(sizes) {
  const times = new Map();
  for (const size of sizes) times.set(size, (times.get(size) ?? 0) + 1);
  return times;
}

/** The expected share of groups, and of users counted in them, that a mechanism leaves. */
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

/** Wire the panel up. Returns what shows it for other mechanisms, by route. */
export function wireSizes() {
  let mechanisms = {};
  const area = byId("sizes");
  let reading = summary("");
  let pause = 0;
  const show = () => byId("sizes-result").replaceChildren(...result(reading, mechanisms));
  const readAndShow = () => {
    clearTimeout(pause);
    reading = summary(area.value);
    show();
  };
  const read = async (file) => {
    area.value = await file.text();
    readAndShow();
  };
  area.addEventListener("input", () => {
    clearTimeout(pause);
    pause = setTimeout(readAndShow, PAUSE);
  });
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
    readAndShow();
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

/** The sizes by how often they occur, and what to say of how they were read. */
export function summary(text) {
  const { sizes, ignored } = readingOf(text);
  const times = tally(sizes);
  let [smallest, largest] = [Infinity, 0];
  for (const size of times.keys()) [smallest, largest] = [Math.min(smallest, size), Math.max(largest, size)];
  const whole = (number) => (number < 1e15 ? number.toLocaleString("en-US").replaceAll(",", "\u202f") : String(number));
  const left = ignored > 0 ? `, ${whole(ignored)} ${ignored === 1 ? "line" : "lines"} ignored` : "";
  const span = sizes.length > 0 ? `, smallest ${whole(smallest)}, largest ${whole(largest)}` : "";
  return { times, ignored, said: `${whole(sizes.length)} sizes read${left}${span}; nothing was sent.` };
}

function result({ times, ignored, said }, mechanisms) {
  const read = element("p", { class: "release-note" }, said);
  if (times.size === 0 || !mechanisms.exact) return [element("p", { class: "empty" }, "Nothing to count yet."), ...(ignored > 0 ? [read] : [])];
  const { groups, users } = sharesKept(times, mechanisms.given ?? mechanisms.exact);
  const figure = (label, share) => element("div", { class: "figure" }, element("dt", {}, label), element("dd", {}, percent(share)));
  const rows = Object.entries(mechanisms).map(([route, mechanism]) => {
    const kept = sharesKept(times, mechanism);
    const name = element("span", { class: "route" }, ROUTES[route]);
    return element("tr", { "data-route": route }, element("th", { scope: "row" }, name), ...[kept.groups, kept.users].map((share) => element("td", {}, percent(share))));
  });
  const head = element("tr", {}, ...["Accounting", "Groups", "Users"].map((label) => element("th", { scope: "col" }, label)));
  return [
    element("dl", { class: "shares" }, figure("of groups kept, expected", groups), figure("of users counted in them", users)),
    element("div", { class: "table" }, element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows))),
    read,
  ];
}
