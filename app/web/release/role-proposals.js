// Proposals for the roles of columns, and warnings about columns and rows that are easily mistaken. A person confirms.

import { plainCell } from "../shared/number-text.js";

const COUNT_NAME = /^(users|num_users|user_count|count|counts|n|people|persons|visitors|uniq.*|distinct.*)$/i;
const ID_WORDS = new Set([
  "id",
  "ids",
  "uid",
  "uuid",
  "guid",
  "userid",
  "customerid",
  "hash",
  "phone",
  "cookie",
  "ssn",
]);
const ID_NAME = /^(user|customer|client|member|person|visitor|account|device|session)$/i; // in the singular
const ID = /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/i; // a UUID
const ADDRESS_WORDS = new Set(["email", "mail", "emails"]);
const ADDRESS = /^[^\s@]+@[^\s@]+\.[^\s@]+$/;
const TOTAL_NAME = /^(grand[ _]?|sub[ _-]?)?(totals?|sum)$/i;
const TOTAL = /^((grand |sub-?)?totals?|sum|all|overall|gesamt|summe|insgesamt|ensemble|totale|totaal|suma)$/i;
const INDEX_NAME = /^(unnamed(: ?\d+)?|index|level_\d+|__index_level_\d+__|row_?(id|no|nr|number)?|#)$/i;
const PANDAS_NAME = /^(unnamed(: ?\d+)?|level_\d+|__index_level_\d+__|index)?$/i; // also none
const FEWEST_ROWS = 3; // fewer numbers in a row are an index by chance

const WARNINGS = {
  index: "looks like the numbers of the rows, not like a count of people",
  pandas: "looks like an index of pandas. It must not be in the file: write it again with index=False",
  unnamed: "must have a name in the header line if it is part of the group key. Else leave it out",
  address: "has e-mail addresses. A group key is published as it is: an address names a person",
  id: "looks like ids. An id is no count, and as a group key it may name a person",
  total: "looks like a total of other columns",
};

/**
 * The columns with a `role` and a `warning`. The count is the column with such a name, else the only one of whole
 * numbers; numbers after it are further values. A group key is published without noise, so only texts become one by
 * themselves. Whatever has a warning gets no role: the user chooses. `textsOf(k)` are the cells of a column, if they are
 * known. `canLeaveOut`: an index of pandas is left out, and `isIndex` says so.
 */
export function withRoles(columns, textsOf, canLeaveOut) {
  const suspicions = columns.map((column, k) => suspicion(column, textsOf(k), canLeaveOut));
  const isCount = ({ kind }, k) => kind === "whole" && suspicions[k] === "";
  const named = columns.findIndex((column, k) => isCount(column, k) && COUNT_NAME.test(column.name));
  const whole = [...columns.keys()].filter((k) => isCount(columns[k], k));
  const count = named < 0 && whole.length === 1 ? whole[0] : named;
  const roleOf = ({ kind }, k) => {
    if (suspicions[k] === "left out") return "none";
    if (suspicions[k] !== "") return "unset";
    if (k === count) return "count";
    if (kind === "text") return "key";
    return count >= 0 && k > count && kind !== "other" ? "value" : "unset";
  };
  return columns.map((column, k) => ({
    ...column,
    type: "string",
    role: roleOf(column, k),
    isIndex: suspicions[k] === "left out",
    warning: WARNINGS[suspicions[k]] ?? "",
  }));
}

/** What a column may be besides a group key or a number of people; empty if nothing. */
function suspicion({ name, kind }, texts, canLeaveOut) {
  if (PANDAS_NAME.test(name)) {
    if (kind === "whole" && (name !== "index" || isSequence(texts))) return canLeaveOut ? "left out" : "pandas";
    if (name === "") return "unnamed";
  }
  const words = name
    .replaceAll(/([a-z])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^a-z0-9]+/);
  if (INDEX_NAME.test(name) || (kind === "whole" && isSequence(texts))) return "index";
  if (words.some((word) => ADDRESS_WORDS.has(word)) || texts.some((text) => ADDRESS.test(text))) return "address";
  if (words.includes("e") && words.includes("mail")) return "address";
  if (ID_NAME.test(name) || ID_WORDS.has(words.at(-1)) || texts.some((text) => ID.test(text))) return "id";
  return TOTAL_NAME.test(name) ? "total" : "";
}

/** Whether the numbers go up by one, from 0 or 1. */
function isSequence(texts) {
  const first = Number(texts[0]);
  return (
    texts.length >= FEWEST_ROWS && (first === 0 || first === 1) && texts.every((text, k) => Number(text) === first + k)
  );
}

/** Warnings about the columns and rows of a table with its roles as they are now, as sentences. */
export function warningsOf({ columns, cells }) {
  const used = columns.filter(({ role, warning }) => warning !== "" && role !== "none");
  return [
    ...used.map(({ name, warning }) => `${name || "The column without a name"} ${warning}.`),
    ...totals(columns, cells),
  ];
}

/** A row that is named like a total, or whose count is the sum of all others. */
function totals(columns, cells) {
  const body = cells?.slice(1) ?? [];
  const keys = [...columns.keys()].filter((k) => columns[k].role === "key");
  const count = columns.findIndex(({ role }) => role === "count");
  const counts = count < 0 ? [] : body.map((row) => Number(plainCell(row.cells[count].text.trim(), "") ?? Number.NaN));
  const all = counts.reduce((sum, each) => sum + each, 0);
  const isSum = (k) => counts.length > FEWEST_ROWS && counts[k] > 0 && 2 * counts[k] === all;
  const isNamed = (row) => keys.some((k) => TOTAL.test(row.cells[k].text.trim()));
  const found = body.find((row, k) => isNamed(row) || isSum(k));
  return found === undefined
    ? []
    : [`Line ${found.line} looks like a total of other rows. Each row must be one group, or people are counted twice.`];
}
