// What published numbers mean: the interval of each, why it is not symmetric near the threshold, and the total.

import { groupsIn, problemText } from "../explorer/group-text.js";
import { inSymbols } from "../explorer/service-words.js";
import { byId, element } from "../shared/dom.js";
import { asSentence, errorsOf } from "../shared/forms.js";
import { digits, shown, whole } from "../shared/number-format.js";
import { post } from "../shared/service.js";

const PAUSE_MS = 200;
const MOST_ROWS = 200;
const COUNT = "count";
const GRID = -20; // noisy counts are multiples of a power of two, at most 2⁻²⁰ σ
const NEAR = 3; // in σ: farther above τ*, the interval is symmetric to three digits

/**
 * Connect the panel. `complainOfMechanism` shows a problem of the mechanism, or takes it away. Returns a function that takes the
 * next mechanism.
 */
export function wirePublished(complainOfMechanism) {
  let mechanism = null;
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
    const given = mechanism.aggregates?.names ?? [];
    const read = published(groupsIn(area.value, { names: given, isWhole: false }), mechanism);
    complain(problemText(read.problems));
    if (read.counts.length === 0) return show([empty()]);
    const names = given.filter((_, j) => read.values[j].length === read.counts.length);
    const values = Object.fromEntries(names.map((name) => [name, read.values[given.indexOf(name)]]));
    const body = { mechanism, level: Number(level.value), counts: read.counts, values, total: true };
    try {
      const found = await post("intervals", body, signal);
      if (signal.aborted) return;
      complainOfMechanism(null);
      show(result(read, found, mechanism, values));
    } catch (failure) {
      if (signal.aborted) return;
      const isOfMechanism = errorsOf(failure).some(({ pointer }) => pointer.startsWith("/mechanism"));
      complainOfMechanism(isOfMechanism ? failure : null);
      if (!isOfMechanism) complain(asSentence(inSymbols(errorsOf(failure)[0].detail)));
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
    const [tau_star, sigma] = [mechanism.tau_star, mechanism.sigma].map(Number);
    const far = Math.ceil(tau_star + 8 * sigma);
    area.value = ["group,count", `near,${Math.ceil(tau_star + 0.3 * sigma)}`, `far,${far}`].join("\n");
    void ask();
  });
  return (next) => {
    mechanism = next;
    void ask();
  };
}

const empty = () => element("p", { class: "empty" }, "No published counts yet.");

/** The groups whose count the mechanism can have published. The others are problems, each with its line. */
function published(read, mechanism) {
  const [sigma, tau_star] = [Number(mechanism.sigma), Number(mechanism.tau_star)];
  if (!(sigma > 0 && tau_star > 0)) return read; // the service says what is wrong with them
  const least = tau_star - 2 ** Math.floor(Math.log2(sigma) + GRID); // as the service: one step may come from rounding
  const kept = [...read.counts.keys()].filter((k) => read.counts[k] >= least);
  if (kept.length === read.counts.length) return read;
  const detail = `has a count below τ* = ${digits(tau_star)}: this mechanism did not publish it`;
  const isKept = new Set(kept);
  const wrong = read.lines.filter((_, k) => !isKept.has(k)).map((line) => ({ line, detail }));
  const only = (list) => (list?.length > 0 ? kept.map((k) => list[k]) : list);
  return {
    ...read,
    keys: only(read.keys),
    counts: only(read.counts),
    lines: only(read.lines),
    values: read.values.map(only),
    problems: [...read.problems, ...wrong].sort((one, other) => one.line - other.line),
  };
}

function result(
  { keys, lines, counts, countName },
  { level, counts: found, values: others, total, intervals_cover: cover },
  mechanism,
  values,
) {
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
  const rest =
    more > 0 ? [element("tr", {}, element("td", { colspan: 4, class: "dropped" }, `${whole(more)} more`))] : [];
  const from = countName === undefined || columns.length > 1 ? "" : ` ${countName}`;
  const heads = ["Group", `Published${from}`, "Best guess", `${percentage} interval`];
  const head = element("tr", {}, ...heads.map((text) => element("th", { scope: "col" }, text)));
  const region = { class: "table", tabindex: "0", role: "region", "aria-label": "Intervals of published counts" };
  const table = element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows, ...rest));
  return [
    element("div", region, table),
    explanation(counts, found, mechanism, name),
    ...negative(columns, mechanism.aggregates),
    ...totals(columns, counts.length),
    element("p", { class: "help" }, cover),
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
function explanation(counts, { low, high }, mechanism, name) {
  const [tau_star, sigma] = [Number(mechanism.tau_star), Number(mechanism.sigma)];
  let nearest = 0;
  for (const [k, count] of counts.entries()) if (count < counts[nearest]) nearest = k;
  const distance = (counts[nearest] - tau_star) / sigma;
  const [down, up] = [counts[nearest] - low[nearest], high[nearest] - counts[nearest]];
  const text =
    distance < NEAR
      ? `${name(nearest)} is ${distance.toFixed(1)} σ above τ*. Here a small group is published only if its noise is ` +
        "high, so published counts are too large on average. " +
        reach(down, up)
      : `All counts are far above τ*, so the intervals are symmetric: ± ${whole(Math.ceil(up))}.`;
  return element("p", { class: "why" }, text);
}

/** How far the interval goes from the published count. Next to τ* it can lie below it as a whole. */
function reach(down, up) {
  if (up >= 0) return `The interval goes ${whole(Math.ceil(down))} down and ${whole(Math.ceil(up))} up.`;
  return `The true count is smaller than the published one: by ${whole(Math.floor(-up))} to ${whole(Math.ceil(down))}.`;
}

/** Why the best guesses do not add up to the sum; empty if they do. */
function apart(column, guesses, estimate) {
  const added = guesses.reduce((sum, each) => sum + Math.round(each), 0);
  if (column !== COUNT || Math.abs(added - estimate) <= guesses.length) return "";
  return (
    ` The best guesses add up to ${whole(added)}: each one is too low as often as too high, but not by as much. So the ` +
    "sum is estimated from all counts together."
  );
}

/** Why a number of a column is negative although no user adds a negative one: noise has either sign. */
function negative(columns, aggregates) {
  const isPositive = (name) => Number(aggregates?.sensitivity.lower[aggregates.names.indexOf(name)]) >= 0;
  const names = columns
    .filter(([name, numbers]) => name !== COUNT && isPositive(name) && numbers.some((number) => number < 0))
    .map(([name]) => name);
  if (names.length === 0) return [];
  const text =
    `Some published numbers of ${names.join(" and ")} are below 0. Noise can make a small true number negative. Keep ` +
    "them: without them a sum would be too large.";
  return [element("p", { class: "why" }, text)];
}

function totals(columns, groups) {
  if (groups < 2) return [];
  return columns.map(([column, , { estimate: guesses }, { estimate, low, high, method }]) => {
    const about = method === "exact" ? "" : " This interval is an approximation for many groups.";
    const sum = `Sum of ${column} over these ${whole(groups)} groups: `;
    const strong = element("strong", {}, guess(column, estimate));
    return element(
      "p",
      { class: "sum" },
      sum,
      strong,
      `, ${span(column, low, high)}. Dropped groups are not in it.${about}${apart(column, guesses, estimate)}`,
    );
  });
}
