// What published numbers mean: the interval of each, why it is not symmetric near the threshold, and the total.

import { byId, element } from "../shared/dom.js";
import { errorsOf } from "../shared/forms.js";
import { shown, shownUp, whole } from "../shared/number-format.js";
import { post } from "../shared/service.js";
import { groupsIn, problemText } from "./group-text.js";

const PAUSE_MS = 200;
const MOST_ROWS = 200;
const COUNT = "count";
const NEAR = 3; // in σ: farther above τ*, the interval is symmetric to three digits

/** Connect the panel. Returns a function that takes the next answer; null while there is none. */
export function wirePublished() {
  let answer = null;
  let asking = new AbortController();
  let pause = 0;
  const area = byId("published");
  const level = byId("level");

  const complain = (text) => {
    byId("published-error").textContent = text;
    area.setAttribute("aria-invalid", String(text !== ""));
  };

  async function ask() {
    asking.abort();
    asking = new AbortController();
    const { signal } = asking;
    const given = answer?.mechanism.aggregates?.names ?? [];
    const read = groupsIn(area.value, { names: given, isWhole: false });
    complain(problemText(read.problems));
    if (answer === null || read.counts.length === 0) return show([empty()]);
    const names = given.filter((_, j) => read.values[j].length === read.counts.length);
    const values = Object.fromEntries(names.map((name) => [name, read.values[given.indexOf(name)]]));
    const body = { mechanism: answer.mechanism, level: Number(level.value), counts: read.counts, values, total: true };
    try {
      const found = await post("intervals", body, signal);
      if (!signal.aborted) show(result(read, found, answer.mechanism, values));
    } catch (failure) {
      if (signal.aborted) return;
      complain(inWords(errorsOf(failure)[0], answer.mechanism));
      show([empty()]);
    }
  }

  const show = (parts) => byId("published-result").replaceChildren(...parts);
  area.addEventListener("input", () => {
    clearTimeout(pause);
    pause = setTimeout(ask, PAUSE_MS);
  });
  level.addEventListener("change", ask);
  byId("published-example").addEventListener("click", () => {
    if (answer === null) return;
    const { tau_star, sigma } = answer.mechanism;
    const far = Math.ceil(tau_star + 8 * sigma);
    area.value = ["group,count", `near,${Math.ceil(tau_star + 0.3 * sigma)}`, `far,${far}`].join("\n");
    void ask();
  });
  return (next) => {
    answer = next ?? answer;
    if (next !== null && area.value.trim() !== "") void ask();
  };
}

const empty = () => element("p", { class: "empty" }, "No published counts yet.");

/** The service names the place in the request. Here it is a line of the text. */
function inWords({ pointer, detail }, { tau_star }) {
  if (pointer.startsWith("/counts")) return `A published count is at least τ* = ${shownUp(tau_star)}.`;
  return detail;
}

function result({ keys, lines, counts }, { level, counts: found, values: others, total }, mechanism, values) {
  const percentage = `${Number((100 * level).toPrecision(6))} %`;
  const name = (k) => (keys === null || keys[k].length === 0 ? `Line ${lines[k]}` : keys[k].join(", "));
  const columns = [[COUNT, counts, found, total.counts]];
  for (const [column, numbers] of Object.entries(values)) {
    columns.push([column, numbers, others[column], total.values[column]]);
  }
  const rows = counts.slice(0, MOST_ROWS).flatMap((_, k) =>
    columns.map(([column, numbers, { low, estimate, high }]) => {
      const label = columns.length > 1 ? `${name(k)}: ${column}` : name(k);
      return row(label, column, numbers[k], estimate[k], low[k], high[k]);
    }),
  );
  const more = counts.length - MOST_ROWS;
  const rest = more > 0 ? [element("tr", {}, element("td", { colspan: 4, class: "dropped" }, `${more} more`))] : [];
  const heads = ["Group", "Published", "Best guess", `${percentage} interval`];
  const head = element("tr", {}, ...heads.map((text) => element("th", { scope: "col" }, text)));
  const region = { class: "table", tabindex: "0", role: "region", "aria-label": "Intervals of published counts" };
  const table = element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows, ...rest));
  return [
    element("div", region, table),
    explanation(counts, found, mechanism, name),
    ...totals(columns, counts.length),
  ];
}

function row(label, column, number, estimate, low, high) {
  const cells = [shown(number), guess(column, estimate), span(column, low, high)].map((text) =>
    element("td", {}, text),
  );
  return element("tr", {}, element("th", { scope: "row" }, label), ...cells);
}

// A count is a whole number of users: its interval is rounded outwards.
const guess = (column, estimate) => (column === COUNT ? whole(Math.round(estimate)) : shown(estimate));
const span = (column, low, high) =>
  column === COUNT ? `${whole(Math.floor(low))} to ${whole(Math.ceil(high))}` : `${shown(low)} to ${shown(high)}`;

/** Why the interval of the count nearest to τ* is not symmetric; or that all are. */
function explanation(counts, { low, high }, { tau_star, sigma }, name) {
  let nearest = 0;
  for (const [k, count] of counts.entries()) if (count < counts[nearest]) nearest = k;
  const distance = (counts[nearest] - tau_star) / sigma;
  const [down, up] = [counts[nearest] - low[nearest], high[nearest] - counts[nearest]];
  const text =
    distance < NEAR
      ? `${name(nearest)} is ${distance.toFixed(1)} σ above τ*. Here a small group is published only if its noise is ` +
        "high, so published counts are too large on average. " +
        `The interval goes ${whole(Math.ceil(down))} down and ${whole(Math.ceil(up))} up.`
      : `All counts are far above τ*, so the intervals are symmetric: ± ${whole(Math.ceil(up))}.`;
  return element("p", { class: "why" }, text);
}

function totals(columns, groups) {
  if (groups < 2) return [];
  return columns.map(([column, , , { estimate, low, high, method }]) => {
    const about = method === "exact" ? "" : " This interval is an approximation for many groups.";
    const sum = `Sum of ${column} over these ${groups} groups: `;
    const strong = element("strong", {}, guess(column, estimate));
    return element(
      "p",
      { class: "sum" },
      sum,
      strong,
      `, ${span(column, low, high)}. Dropped groups are not in it.${about}`,
    );
  });
}
