// A trial of POST /release: the same dozen groups again and again, side by side.

import { byId, element } from "./elements.js";
import { digits, shown } from "./numbers.js";
import { post, Problem } from "./service.js";

const KEYS = ["a.example", "b.example", "c.example", "d.example", "e.example", "f.example", "g.example", "h.example", "i.example", "j.example", "k.example", "l.example"];
const MULTIPLES = [10, 4, 2, 1.5, 1.25, 1.1, 1, 0.95, 0.8, 0.5, 0.2, 0];
const MOST_SHOWN = 4;

/** The groups of a text: a key, a count and a number per further column, separated by commas or tabs. */
export function groupsOf(text, names) {
  const rows = text.split(/\r?\n/).filter((line) => line.trim() !== "").map((line) => line.split(/[,\t]/).map((cell) => cell.trim()));
  const number = (cell) => (cell === undefined || cell === "" || Number.isNaN(Number(cell)) ? cell ?? null : Number(cell));
  const column = (k) => rows.map((cells) => number(cells[k]));
  return {
    keys: rows.map((cells) => cells[0]),
    counts: column(1),
    values: names.length > 0 ? Object.fromEntries(names.map((name, k) => [name, column(2 + k)])) : undefined,
  };
}

/** Wire the panel up. Returns what takes another answer, whose mechanism will be released with; null while there is none. */
export function wireRelease() {
  let answer = null;
  let isReady = false;
  let isBusy = false;
  let releases = [];
  let sample = "";
  const area = byId("groups");
  const button = byId("release");

  function reset() {
    releases = [];
    sample = answer ? sampleOf(answer.mechanism) : "";
    area.value = sample;
    complain("");
    show();
  }

  function complain(text) {
    byId("groups-error").textContent = text;
    area.setAttribute("aria-invalid", String(text !== ""));
  }

  function show() {
    button.disabled = isBusy || !isReady;
    button.textContent = releases.length === 0 ? "Release" : "Release again";
    byId("release-result").replaceChildren(...(releases.length > 0 ? result(releases) : [element("p", { class: "empty" }, "Nothing released yet.")]));
  }

  button.addEventListener("click", async () => {
    isBusy = true;
    button.disabled = true;
    complain("");
    const earlier = releases; // another list by the time of the answer, if the groups or the mechanism are others
    try {
      const names = answer.mechanism.aggregates?.names ?? [];
      const groups = groupsOf(area.value, names);
      const released = await post("release", { mechanism: answer.mechanism, epsilon: answer.epsilon, groups });
      earlier.push(released);
    } catch (error) {
      const isProblem = error instanceof Problem;
      complain(isProblem ? error.errors.map(({ pointer, detail }) => `${pointer} ${detail}`.trim()).join("; ") : "The service cannot be reached.");
    } finally {
      isBusy = false;
      show();
      button.focus();
    }
  });
  area.addEventListener("input", () => {
    releases = []; // of other groups
    complain("");
    show();
  });
  byId("release-reset").addEventListener("click", reset);
  return (next) => {
    isReady = next !== null;
    button.disabled = isBusy || !isReady;
    if (next === null) return;
    const untouched = area.value === sample;
    const same = JSON.stringify(answer?.mechanism) === JSON.stringify(next.mechanism);
    answer = next;
    const names = ["its key", "its count", ...(next.mechanism.aggregates?.names ?? []).map((name) => `its ${name}`)];
    byId("groups-help").textContent = `One group per line: ${names.join(", then ")}.`;
    if (same) return;
    releases = []; // another mechanism: not comparable
    if (untouched) reset();
    else show();
  };
}

/** Groups on both sides of the threshold. */
function sampleOf({ tau_star, aggregates }) {
  const further = aggregates?.names?.length ?? 0;
  return KEYS.map((key, k) => {
    const count = Math.max(1, Math.round(MULTIPLES[k] * tau_star));
    return [key, count, ...Array(further).fill(Math.round(count / 10))].join(", ");
  }).join("\n");
}

function result(releases) {
  const first = Math.max(0, releases.length - MOST_SHOWN);
  const last = releases.slice(first);
  const names = Object.keys(last[0].groups.values ?? {});
  const columns = [["count", (groups) => groups.counts], ...names.map((name) => [name, (groups) => groups.values[name]])];
  const tables = last.flatMap(({ groups }) => columns.map(([, of]) => new Map(groups.keys.map((key, k) => [String(key), of(groups)[k]]))));
  const keys = [...new Set(tables.flatMap((table) => [...table.keys()]))].sort();
  const heads = ["Group", ...last.flatMap((_, k) => columns.map(([name]) => `Release ${first + k + 1}${names.length > 0 ? `: ${name}` : ""}`))];
  const rows = keys.map((key) => {
    const cells = tables.map((table) => (table.has(key) ? element("td", {}, shown(table.get(key))) : element("td", { class: "dropped" }, "not shown")));
    return element("tr", {}, element("th", { scope: "row" }, key), ...cells);
  });
  const { certificate } = last.at(-1);
  const times = releases.length === 1 ? "One release" : `${releases.length} releases of the same groups`;
  return [
    element(
      "div",
      { class: "table", tabindex: "0", role: "region", "aria-label": "What was released" },
      element(
        "table",
        {},
        element("thead", {}, element("tr", {}, ...heads.map((label) => element("th", { scope: "col" }, label)))),
        element("tbody", {}, ...(rows.length > 0 ? rows : [element("tr", {}, element("td", { colspan: heads.length }, "No group reached the threshold."))])),
      ),
    ),
    element(
      "p",
      { class: "release-note" },
      `${times}. Each is certified (ε, δ) = (${certificate.epsilon}, ${digits(certificate.delta)}) by ${certificate.accounting} accounting; their costs add up.`,
    ),
  ];
}
