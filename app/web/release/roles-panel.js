// What each column of the table is: part of the group key, the number of users, a further column, or left out.

import { byId, element } from "../shared/dom.js";
import { warningsOf } from "./role-proposals.js";

const ROLES = {
  unset: "choose",
  key: "part of the group key, without noise",
  count: "number of users",
  value: "a further column",
  none: "left out",
};
const TYPES = {
  string: "text",
  int64: "whole number",
  float64: "number",
  boolean: "true or false",
  date: "date",
  timestamp: "time",
  decimal: "decimal",
};
const NUMBERS = "number, with noise";

/**
 * Show a row per column, warnings, and the sentence to confirm. `changed()` is called when the user has changed a role or
 * a type, which withdraws the confirmation, or has confirmed. Null hides all of it.
 */
export function showRoles(table, changed) {
  const isThere = table !== null;
  const other = () => {
    table.isConfirmed = false;
    changed();
  };
  byId("roles-place").hidden = !isThere;
  byId("roles").tBodies[0].replaceChildren(...(table?.columns ?? []).map((column) => row(table, column, other)));
  const warnings = isThere ? warningsOf(table) : [];
  byId("roles-warnings").replaceChildren(...warnings.map((text) => element("li", {}, text)));
  byId("roles-confirm").hidden = !isThere || roleFault(table) !== "";
  byId("roles-sentence").textContent = isThere ? sentence(table) : "";
  byId("roles-confirmed").checked = table?.isConfirmed ?? false;
  byId("roles-confirmed").onchange = ({ target }) => {
    table.isConfirmed = target.checked;
    changed();
  };
}

/** What the roles mean, for a person to confirm. */
function sentence({ columns }) {
  const named = (role) => columns.filter((column) => column.role === role).map(shownName);
  const all = (names, one, many) => (names.length === 0 ? [] : [`${listed(names)} ${names.length === 1 ? one : many}`]);
  const parts = [
    "one row is one group",
    ...all(named("count"), "counts people", ""),
    ...all(named("key"), "is the group key, published without noise", "are the group key, published without noise"),
    ...all(named("value"), "is a sum over these people", "are sums over these people"),
    ...all(named("none"), "is left out", "are left out"),
  ];
  return `This is right: ${parts.join("; ")}.`;
}

const shownName = ({ name }) => name || "(no name)";

function listed(names) {
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

function row(table, column, changed) {
  // The type of a group key is the user's choice: guessed from the cells, it would tell something about dropped groups.
  const type = element("td", {}, typeCell(table, column, changed));
  const canLeaveOut = table.cells !== null;
  const isOffered = { unset: column.role === "unset", none: canLeaveOut };
  const options = Object.entries(ROLES).filter(([role]) => isOffered[role] ?? true);
  const role = choice(`Role of ${shownName(column)}`, Object.fromEntries(options), column.role, (value) => {
    if (value === "count") for (const each of table.columns) if (each.role === "count") each.role = "unset";
    column.role = value;
    changed();
  });
  return element(
    "tr",
    {},
    element("th", { scope: "row" }, shownName(column), ...examples(column)),
    element("td", {}, role),
    type,
  );
}

/** The first cells of a column of CSV, or the range that a Parquet file states. Arrow is not read here. */
function examples({ examples: texts = [], range }) {
  const shown = range ? `${range[0]} to ${range[1]}` : texts.map((text) => text || "(empty)").join(", ");
  return shown === "" ? [] : [element("span", { class: "example", title: shown }, shown)];
}

function typeCell({ format }, column, changed) {
  if (column.role === "none" || column.role === "unset") return "–";
  if (column.role !== "key") return NUMBERS;
  if (format !== "csv") return "as in the file";
  return choice(`Type of ${column.name}`, TYPES, column.type, (value) => {
    column.type = value;
    changed();
  });
}

function choice(label, options, chosen, use) {
  const made = Object.entries(options).map(([value, text]) =>
    element("option", { value, selected: value === chosen }, text),
  );
  return element("select", { "aria-label": label, onchange: ({ target }) => use(target.value) }, ...made);
}

/** What is wrong with the roles, in a sentence; empty if nothing is. */
export function roleFault({ columns, cells }) {
  const number = (role) => columns.filter((column) => column.role === role).length;
  const unset = columns.find(({ role }) => role === "unset");
  if (number("count") !== 1) return "Choose the column with the number of users.";
  const asItIs = cells === null ? " This file is sent as it is: a column that is neither must not be in it." : "";
  if (unset) return `Choose what ${shownName(unset)} is. A group key is published as it is, without noise.${asItIs}`;
  if (number("key") === 0) return "Choose at least one column as part of the group key.";
  if (columns.some(({ name, role }) => name === "" && role !== "none"))
    return "A column without a name can only be left out. Write a name into the header line, if it is part of the key.";
  return new Set(columns.map(({ name }) => name)).size < columns.length ? "Two columns have the same name." : "";
}
