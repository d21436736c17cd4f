// A trial of POST /release with made-up data: the same groups, released again and again, in one table.

import { byId, element } from "../shared/dom.js";
import { showErrors } from "../shared/forms.js";
import { fewUp, shown } from "../shared/number-format.js";
import { Problem, post, problemWith } from "../shared/service.js";
import { groupsIn, problemText } from "./group-text.js";

const MULTIPLES = [10, 4, 2, 1.5, 1.25, 1.1, 1, 0.95, 0.8, 0.5, 0.2, 0]; // of τ*: sample groups on both sides of it
const MOST_SHOWN = 4;

/** The body's `groups`. A key of one part is a text, a longer one a list. */
function groupsOf({ keys, counts, values }, names) {
  return {
    keys: keys.map((parts) => (parts.length === 1 ? parts[0] : parts)),
    counts,
    values: names.length > 0 ? Object.fromEntries(names.map((name, j) => [name, values[j]])) : undefined,
  };
}

/** Connect the panel. Returns a function that takes the next answer to release with; null while there is none. */
export function wireRelease() {
  let answer = null;
  let isReady = false;
  let isBusy = false;
  let releases = [];
  let sample = "";
  const form = byId("release-form");
  const area = byId("groups");
  const button = byId("release");

  function reset() {
    releases = [];
    sample = answer ? sampleOf(answer.mechanism) : "";
    area.value = sample;
    complain();
    show();
  }

  function complain(...failures) {
    showErrors(form, failures.map(byColumn), () => "groups");
  }

  function show() {
    button.disabled = isBusy || !isReady;
    button.textContent = releases.length === 0 ? "Release" : "Release again";
    const empty = element("p", { class: "empty" }, "No release yet.");
    byId("release-result").replaceChildren(...(releases.length > 0 ? result(releases) : [empty]));
  }

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const names = answer.mechanism.aggregates?.names ?? [];
    const read = groupsIn(area.value, { names, hasKeys: true });
    if (read.problems.length > 0) return complain(problemWith("groups", problemText(read.problems)));
    isBusy = true;
    button.disabled = true;
    complain();
    const earlier = releases; // if the groups or the mechanism change meanwhile, `releases` is another list
    try {
      const groups = groupsOf(read, names);
      earlier.push(await post("release", { mechanism: answer.mechanism, epsilon: answer.epsilon, groups }));
    } catch (failure) {
      complain(failure);
    } finally {
      isBusy = false;
      show();
      button.focus();
    }
  });
  area.addEventListener("input", () => {
    releases = []; // they belong to other groups
    complain();
    show();
  });
  byId("release-reset").addEventListener("click", reset);
  return (next) => {
    isReady = next !== null;
    button.disabled = isBusy || !isReady;
    if (next === null) return;
    const isUntouched = area.value === sample;
    const isSame = JSON.stringify(answer?.mechanism) === JSON.stringify(next.mechanism);
    answer = next;
    const parts = ["group key", "count", ...(next.mechanism.aggregates?.names ?? [])];
    byId("groups-help").textContent =
      `One group per line: ${parts.join(", ")}. The key may have several parts, and a first line may name the columns.`;
    if (isSame) return;
    releases = []; // they belong to another mechanism
    if (isUntouched) reset();
    else show();
  };
}

/** Errors name a column of the text, not a JSON pointer: "/groups/counts must be …" becomes "Counts must be …". */
function byColumn(failure) {
  if (!(failure instanceof Problem)) return failure;
  const errors = failure.errors.map(({ pointer, detail }) => {
    const [list, name] = pointer.split("/").slice(2);
    const subject = { keys: "Group keys", counts: "Counts", values: name }[list ?? ""];
    return { pointer, detail: subject ? `${subject} ${detail}` : detail };
  });
  return new Problem({ detail: failure.message, errors }, failure.status);
}

/** Made-up groups around τ*. A user adds a tenth of the range to a column on average. */
function sampleOf({ tau_star, aggregates }) {
  const { lower = [], upper = [] } = aggregates?.sensitivity ?? {};
  const lines = MULTIPLES.map((multiple, k) => {
    const count = Math.max(1, Math.round(multiple * tau_star));
    const key = `${String.fromCharCode("a".charCodeAt(0) + k)}.example`;
    const sums = lower.map((least, j) => Math.round(count * (0.9 * Number(least) + 0.1 * Number(upper[j]))));
    return [key, count, ...sums].join(", ");
  });
  return lines.join("\n");
}

/** A table with the last releases next to each other, and their certificate. */
function result(releases) {
  const first = Math.max(0, releases.length - MOST_SHOWN);
  const last = releases.slice(first);
  const names = Object.keys(last[0].groups.values ?? {});
  const columns = last.flatMap(({ groups }, k) => {
    const title = `Release ${first + k + 1}`;
    const column = (head, numbers) => ({
      head,
      byKey: new Map(groups.keys.map((key, n) => [String(key), numbers[n]])),
    });
    if (names.length === 0) return [column(title, groups.counts)];
    const sums = names.map((name) => column(`${title}: ${name}`, groups.values[name]));
    return [column(`${title}: count`, groups.counts), ...sums];
  });
  const keys = [...new Set(columns.flatMap(({ byKey }) => [...byKey.keys()]))].sort();
  const heads = ["Group", ...columns.map(({ head }) => head)].map((head) => element("th", { scope: "col" }, head));
  const rows = keys.map((key) => {
    const cells = columns.map(({ byKey }) => numberCell(byKey.get(key)));
    return element("tr", {}, element("th", { scope: "row" }, key), ...cells);
  });
  const none = element("tr", {}, element("td", { colspan: heads.length }, "No group reached the threshold."));
  const body = element("tbody", {}, ...(rows.length > 0 ? rows : [none]));
  const table = element("table", {}, element("thead", {}, element("tr", {}, ...heads)), body);
  const region = { class: "table", tabindex: "0", role: "region", "aria-label": "Released groups" };
  return [element("div", region, table), element("p", { class: "release-note" }, certified(releases))];
}

function numberCell(number) {
  return number === undefined ? element("td", { class: "dropped" }, "not shown") : element("td", {}, shown(number));
}

function certified(releases) {
  const { epsilon, delta, accounting } = releases.at(-1).certificate;
  const times = releases.length === 1 ? "One release" : `${releases.length} releases of the same groups`;
  return `${times}. Each is certified ε = ${epsilon}, δ ≤ ${fewUp(delta)} by ${accounting} accounting; their costs add up.`;
}
