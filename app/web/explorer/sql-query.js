// The query for the platform's own engine, and the form with the names in it. The service has the only generator of it.

import { byId } from "../shared/dom.js";
import { effectiveTau } from "../shared/effective-tau.js";
import { makeFields, showErrors } from "../shared/forms.js";
import { post, typed, typedNumber } from "../shared/service.js";

const DIALECTS = {
  duckdb: "DuckDB",
  postgres: "PostgreSQL",
  spark: "Spark",
  snowflake: "Snowflake",
  bigquery: "BigQuery",
  presto: "Presto",
  trino: "Trino",
};
const FIELDS = {
  dialect: { label: "Engine", options: DIALECTS },
  source: { label: "Table", value: "views" },
  user: { label: "User column", value: "user_id" },
  by: { label: "Group columns", value: "url, country" },
};
const PAUSE_MS = 200;

/** Make the form. `changed()` is called on changes. Names stay in this page; the link has the engine. */
export function wireSqlForm(state, changed) {
  const form = byId("sql-form");
  let pause = 0;
  makeFields(form, FIELDS);
  form.elements.dialect.value = state.dialect in DIALECTS ? state.dialect : "duckdb";
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", () => {
    state.dialect = form.elements.dialect.value;
    clearTimeout(pause);
    pause = setTimeout(changed, PAUSE_MS);
  });
}

/** The query for a mechanism and its columns, and a note about it. Errors appear in the form: then there is no query. */
export async function sqlQuery({ answer: { mechanism }, columns }, signal) {
  const form = byId("sql-form");
  const by = form.elements.by.value.split(",").map((name) => name.trim());
  const body = {
    dialect: form.elements.dialect.value,
    source: form.elements.source.value.trim(),
    user: form.elements.user.value.trim(),
    by: by.filter((name) => name !== ""),
    c_u: mechanism.c_u,
    tau: effectiveTau(mechanism.tau),
    sums: columns.map(sum),
  };
  try {
    const found = await post("bound", body, signal);
    showErrors(form, []);
    return { text: found.query, note: note(found, body.source) };
  } catch (failure) {
    signal.throwIfAborted();
    showErrors(form, [failure], (pointer) => pointer.split("/")[1]);
    return { text: "", note: "There is no query yet: see the error." };
  }
}

/** A column of whole numbers counts in units of 1, any other in units of 2⁻¹⁰. */
function sum({ name, lower, upper, groups }) {
  const isWhole = [lower, upper].every((bound) => Number.isSafeInteger(typedNumber(bound)));
  return {
    name,
    lower: typed(lower),
    upper: typed(upper),
    unit: isWhole ? undefined : 2 ** -10,
    groups: typed(groups),
  };
}

function note({ columns, is_executed, dialect }, source) {
  const needed = columns.map(({ name, role, type }) => `${name} (${role}, ${type})`).join(", ");
  const units = columns.filter(({ unit }) => unit !== null && unit !== 1).map(({ name, unit }) => `${name} by ${unit}`);
  const inUnits = units.length > 0 ? ` Multiply the result: ${units.join(", ")}.` : "";
  const tested = is_executed
    ? ""
    : ` It was not run on ${DIALECTS[dialect]} here; its first line says how it was tested.`;
  return `${source} needs these columns: ${needed}. The query bounds each user and adds no noise.${inUnits}${tested}`;
}
