// The explorer's state: the form's texts and the choices on the page. The URL's query holds the same state.

import { OUTLINE, TARGET } from "../shared/case-study.js";
import { inSigmas } from "./column-noise.js";
import { addTables, tablesOf } from "./levels-state.js";

export const FIELDS = ["epsilon", "delta", "c_u", "tau", "sigma", "tau_star"];

/** The page's own examples, the first one at first: texts by field, and what the card says. `paper` is a number of arXiv. */
export const PRESETS = {
  "Pages of a week": {
    fields: { epsilon: "1", delta: "1e-6", c_u: "8", tau: "1" },
    about: "Users per page in one week, at most 8 pages each.",
  },
  "Small app": {
    fields: { epsilon: "1", delta: "1e-6", c_u: "1", tau: "1" },
    about: "Users per country. Each user is in one group.",
  },
  "Weekly top pages": {
    fields: { epsilon: "1", delta: "1e-7", c_u: "40", tau: "5" },
    about: "Users per page in one week, at most 40 pages each.",
  },
  "URL case study": {
    fields: { ...TARGET, ...OUTLINE },
    about: "Users per URL: the case study of the paper.",
    paper: "2202.01100",
  },
};

/** The state from a query: texts by field, columns, tables, axes that are not drawn in their default way, code tab. */
export function stateOf(search) {
  const query = new URLSearchParams(search);
  const isGiven = FIELDS.some((name) => query.has(name));
  const defaults = isGiven ? {} : PRESETS["Pages of a week"].fields;
  return {
    ...Object.fromEntries(FIELDS.map((name) => [name, query.get(name) ?? defaults[name] ?? ""])),
    columns: query.getAll("column").map(columnOf),
    tables: tablesOf(query),
    isBalanced: query.get("shares") === "balanced",
    axes: new Set((query.get("axes") ?? "").split(",").filter(Boolean)),
    code: query.get("code") ?? "curl",
    dialect: query.get("dialect") ?? "duckdb",
  };
}

/** The state as a query. */
export function searchOf(state) {
  const query = new URLSearchParams();
  for (const name of FIELDS) if (state[name].trim() !== "" || name === "epsilon") query.set(name, state[name].trim());
  for (const { name, lower, upper, noise, groups } of state.columns)
    query.append("column", [name, lower, upper, noise, groups].map(escaped).join("~"));
  addTables(query, state);
  if (state.axes.size > 0) query.set("axes", [...state.axes].sort().join(","));
  if (state.code !== "curl") query.set("code", state.code);
  if (state.dialect !== "duckdb") query.set("dialect", state.dialect);
  return `?${query}`;
}

/** The name of the preset that equals the state, if any. */
export function presetOf(state, presets) {
  const same = ([, { fields }]) =>
    state.columns.length === 0 && FIELDS.every((name) => state[name].trim() === (fields[name] ?? ""));
  return Object.entries(presets).find(same)?.[0];
}

// A ~ separates the parts of a column in the link.
const escaped = (text) => text.replaceAll("%", "%25").replaceAll("~", "%7E");
const unescaped = (text) => text.replaceAll(/%(25|7E)/gi, (_, code) => (code === "25" ? "%" : "~"));

/** A column of a link. Links of earlier versions have four parts, the last one a multiple of σ. */
function columnOf(text) {
  const parts = text.split("~").map(unescaped);
  const [name = "", lower = "", upper = "", noise = "", groups = ""] = parts;
  return { name, lower, upper, noise: parts.length === 4 ? inSigmas(noise) : noise, groups };
}
