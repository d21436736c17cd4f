// Several tables in one release, as requests: calibrated together, priced together, sent together.

import { columnProblem } from "../budgets/planned-release.js";
import { aggregates } from "../explorer/request-bodies.js";
import { Problem, post, typed } from "../shared/service.js";
import { madeUpGroups } from "./made-up.js";
import { bytesOf, rolesOf } from "./table-file.js";

/** Noise and threshold of each table: `{ name, mechanism, share }`. Each has its share of ε and δ, or of a budget. */
export async function solvedTables(entries, plan, budget, signal) {
  const errors = entries.flatMap(({ plan: own }, k) => inTable(columnProblem(own)?.errors ?? [], k));
  if (errors.length > 0) throw new Problem({ errors });
  const drafts = entries.map(draftOf);
  const target =
    plan.way === "all"
      ? { budget, releases: typed(plan.times) }
      : { epsilon: typed(plan.epsilon), delta: typed(plan.delta) };
  const { tables, shares } = await post("calibrate", { tables: drafts, ...target }, signal);
  return tables.map(({ name, mu_squared: _square, hazard: _hazard, ...mechanism }, k) => ({
    name,
    share: shares[k],
    mechanism: { ...mechanism, c_u: drafts[k].c_u }, // as typed: a JavaScript number can lose digits
  }));
}

const inTable = (errors, k) => errors.map(({ pointer, detail }) => ({ pointer: `/tables/${k}${pointer}`, detail }));

/** A table without tau has public groups, so an empty τ is sent, and refused. */
function draftOf({ name, plan: { c_u, tau, share, columns, isPublic } }) {
  return {
    name: name.trim(),
    c_u: typed(c_u),
    tau: isPublic ? undefined : (typed(tau) ?? ""),
    share: typed(share),
    aggregates: aggregates({ columns, c_u }),
  };
}

/** The tables for /account/exact and for the preview of a budget. */
export const pricedTables = (solved) => solved.map(({ name, mechanism }) => ({ name, ...mechanism }));

/** The tables of a release. The groups of a file are the list of public groups. */
export function sentTables(entries, solved) {
  return entries.map(({ table, plan }, k) => ({
    name: solved[k].name,
    mechanism: solved[k].mechanism,
    ...rolesOf(table),
    public_keys: plan.isPublic ? "posted" : undefined,
  }));
}

/** The same with made-up groups, for /release. */
export function madeUpTables(entries, solved) {
  return solved.map(({ name, mechanism }, k) => ({
    name,
    mechanism,
    groups: madeUpGroups(mechanism, entries[k].table.columns.filter(({ role }) => role === "key").length),
    public_keys: entries[k].plan.isPublic ? "posted" : undefined,
  }));
}

/** One part for each table. A fault in a file says in which. */
export function appendTables(form, entries, solved) {
  for (const [k, { table }] of entries.entries()) {
    try {
      form.append("table", bytesOf(table), solved[k].name);
    } catch (failure) {
      failure.message = `${solved[k].name}: ${failure.message}`;
      throw failure;
    }
  }
}
