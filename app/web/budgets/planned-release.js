// A planned release: its texts as typed, the link that holds them, and the mechanism that they mean.

import { mixedNoise } from "../explorer/column-noise.js";
import { FIELDS, searchOf, stateOf } from "../explorer/page-state.js";
import { aggregates } from "../explorer/request-bodies.js";
import { numberText } from "../shared/number-text.js";
import { Problem, post, typed } from "../shared/service.js";

export const WAYS = {
  given: "noise and threshold that I have",
  each: "ε and δ of each release",
  all: "equal shares of what remains",
};
const NO_STATE = { ...Object.fromEntries(FIELDS.map((name) => [name, ""])), tables: [], axes: new Set(), code: "curl" };
const TEXTS = ["c_u", "tau", "sigma", "tau_star", "mu_0", "epsilon", "delta", "times"];

/** Whether a link says anything about a release. */
const hasPlan = (query) => ["c_u", "sigma", "epsilon"].some((name) => query.has(name));

/** The plan in a link. Texts that the link lacks are empty, or those of `defaults` if it has none at all. */
export function planOf(query, defaults) {
  const isGiven = hasPlan(query);
  const texts = TEXTS.map((name) => [name, query.get(name) ?? (isGiven ? undefined : defaults[name]) ?? ""]);
  const plan = Object.fromEntries(texts);
  const way = query.get("way") ?? (isGiven ? "given" : (defaults.way ?? "given"));
  return {
    ...plan,
    times: plan.times || "1",
    way: way in WAYS ? way : "given",
    columns: stateOf(`?${query}`).columns, // in the explorer's format
  };
}

/** The link of a plan for a budget: all texts that are not empty, and the columns in the explorer's format. */
export function linkOf(budget, { columns, way, ...texts }) {
  const parts = { budget, ...texts, ...(way === "given" ? {} : { way }) };
  const query = new URLSearchParams(Object.entries(parts).filter(([, text]) => text.trim() !== ""));
  for (const column of new URLSearchParams(searchOf({ ...NO_STATE, columns })).getAll("column")) {
    query.append("column", column);
  }
  return query;
}

/** The plan of a release that a budget has paid for; null for several tables, surveys and columns with caps. */
export function planOfCharged({ c_u, tau, tau_star, sigma, mu_0, tables, survey, capped }) {
  if (tables !== undefined || survey !== undefined || capped !== undefined) return null;
  const numbers = { c_u, tau, tau_star, sigma, mu_0: mu_0 || "" };
  return Object.fromEntries(Object.entries(numbers).map(([name, value]) => [name, numberText(value ?? "")]));
}

/** The mechanism without noise and threshold. Its columns have the noise that the plan gives them, or balanced noise. */
export function draftOf(plan) {
  return { c_u: typed(plan.c_u), tau: typed(plan.tau), aggregates: columnsOf(plan) };
}

/** The same plan with balanced noise. Noise in the columns' own units is that of one σ: another σ needs other noise. */
export function balanced(plan) {
  const isRelative = plan.columns.some(({ noise }) => noise.includes("σ"));
  return isRelative ? plan : { ...plan, columns: plan.columns.map((column) => ({ ...column, noise: "" })) };
}

/** The mechanism with the noise and the threshold of the plan. */
export function givenMechanism(plan) {
  const [sigma, tau_star] = [typed(plan.sigma), typed(plan.tau_star)];
  const columns = columnsOf(plan, Number(sigma?.text ?? NaN));
  return { c_u: typed(plan.c_u), tau: typed(plan.tau), tau_star, sigma, aggregates: columns };
}

/** The complete mechanism: as given, or with the smallest noise for the ε and δ of the plan or for a budget's remainder. */
export async function solved(plan, budget, signal) {
  const problem = columnProblem(plan);
  if (problem !== null) throw problem;
  if (plan.way === "given") return givenMechanism(plan);
  const draft = draftOf(plan);
  const target =
    plan.way === "each"
      ? { epsilon: typed(plan.epsilon), delta: typed(plan.delta) }
      : { budget, releases: typed(plan.times) };
  const { mechanism } = await post("calibrate", { mechanism: draft, ...target }, signal);
  return { ...mechanism, c_u: draft.c_u }; // as typed: a JavaScript number can lose digits
}

/** Whether a group must reach a threshold. Without one, the release is Gaussian noise on public groups. */
export function hasThreshold({ way, tau, tau_star }) {
  return way !== "given" || tau.trim() !== "" || tau_star.trim() !== "";
}

/** What is wrong with the columns before any request: ranges that are missing, or noise of two kinds. Null if nothing is. */
export function columnProblem(plan) {
  return withoutRange(plan) ?? mixedNoise(plan.columns);
}

function withoutRange({ columns }) {
  const errors = columns.flatMap((column, j) =>
    ["lower", "upper"]
      .filter((end) => column[end].trim() === "")
      .map((end) => ({ pointer: `/aggregates/sensitivity/${end}/${j}`, detail: "is needed" })),
  );
  return errors.length > 0 ? new Problem({ errors }) : null;
}

function columnsOf(plan, sigma) {
  if (plan.columns.length > 0) return aggregates(plan, sigma);
  return plan.mu_0.trim() === "" ? undefined : { mu_0: typed(plan.mu_0) };
}
