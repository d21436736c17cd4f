// A mechanism as a query, for links to the pages that plan and release with it. `column` is as in the explorer's links.

import { noiseOf } from "../explorer/column-noise.js";
import { numberText } from "./number-text.js";

const ULP = 2 ** -52;
const ROUNDING = 1e-12;

/**
 * The query of a complete mechanism: `c_u=…&tau=…&tau_star=…&sigma=…`, and `column=…` once per further column. `epsilon`,
 * if it is among the numbers, is the one that a certificate states.
 */
export function planQuery({ aggregates, ...numbers }) {
  const query = new URLSearchParams();
  for (const name of ["c_u", "tau", "tau_star", "sigma", "epsilon"]) {
    const text = numberText(numbers[name] ?? "").trim();
    if (text !== "") query.set(name, text);
  }
  if (aggregates?.mu_0 !== undefined) query.set("mu_0", numberText(aggregates.mu_0));
  for (const { name, lower, upper, noise, groups } of columnsOf(aggregates, numbers)) {
    query.append("column", [name, lower, upper, noise, groups].map(escaped).join("~"));
  }
  return query;
}

/** The columns as texts. Balanced noise is left empty, so that it stays balanced when σ changes. */
function columnsOf({ names = [], covariance, sensitivity } = {}, { c_u, sigma } = {}) {
  const columns = names.map((name, j) => ({
    name,
    lower: numberText(sensitivity.lower[j]),
    upper: numberText(sensitivity.upper[j]),
    noise: "",
    groups: String(sensitivity.groups?.[j] ?? ""),
  }));
  const balanced = noiseOf(columns, c_u, Number(sigma)).covariance;
  const isBalanced = columns.every((_, j) => isAsMuch(balanced[j][j], Number(covariance[j][j])));
  return columns.map((column, j) => ({ ...column, noise: isBalanced ? "" : numberText(deviation(covariance[j][j])) }));
}

/** Whether a variance is no less than another one, and hardly more. */
function isAsMuch(variance, other) {
  return variance >= other && variance <= other * (1 + ROUNDING);
}

/** The standard deviation of a variance, rounded up: its square is no less noise. */
export function deviation(variance) {
  const root = Math.sqrt(variance);
  return root * root < variance ? root * (1 + ULP) : root;
}

const escaped = (text) => text.replaceAll("%", "%25").replaceAll("~", "%7E");
