// A table that the user pastes or opens: its format, its columns, and the bytes to send. Nothing is sent from here.

import { whole } from "../shared/number-format.js";
import { decimalMark, hasDecimals, isAmbiguous, numeralFault, plainCell } from "../shared/number-text.js";
import { arrowColumns } from "./arrow-columns.js";
import { readRows, TableFault, writeRows } from "./csv-text.js";
import { inUtf8, kindOf, textOf } from "./file-kind.js";
import { parquetColumns } from "./parquet-columns.js";
import { withRoles } from "./role-proposals.js";

const MOST_CHECKED = 1 << 24; // bytes of CSV that the page reads as a whole
const HEAD = 1 << 20;
const MOST_EXAMPLES = 3; // rows
const WHOLE = /^\d+$/;
const NUMBER = /^-?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i;
const LIKE_NUMBER = /^[-+]?[\d.,'_\s]*\d[\d.,'_\s]*%?$/; // also with separators, which the service refuses
const FORMATS = { csv: "CSV", parquet: "Parquet", arrow: "Arrow" };

/**
 * A table: `format`, `columns` with a `name`, a `kind` and a proposed `role`, and the number of `rows` if it is known.
 * `isConfirmed`: a person has said that the roles are right.
 */
export async function tableOf(file) {
  const kind = await kindOf(file);
  if (kind === "parquet") return binary("parquet", file, () => parquetColumns(file));
  if (kind !== "csv") return binary("arrow", file, () => arrowColumns(file, kind === "arrow"));
  const blob = await inUtf8(file);
  return blob.size > MOST_CHECKED ? longCsv(blob) : csv(blob, readRows(await textOf(blob)));
}

async function binary(format, blob, read) {
  let found;
  try {
    found = await read();
  } catch {
    throw new TableFault(`The ${FORMATS[format]} file is damaged or incomplete.`);
  }
  const columns = withRoles(found.columns, () => [], false);
  return { format, blob, rows: found.rows, cells: null, columns, isConfirmed: false };
}

function csv(blob, rows, isWhole = true) {
  const [head, ...body] = rows;
  const names = namesOf(head);
  if (body.length === 0) throw new TableFault("The table has a header line and no rows.");
  const texts = names.map((_, k) => body.map(({ cells }) => cells[k].text.trim()));
  const kinds = names.map((name, k) => ({
    name,
    kind: kindOfCells(texts[k], isWhole),
    examples: texts[k].slice(0, MOST_EXAMPLES),
  }));
  const columns = withRoles(kinds, (k) => texts[k], isWhole);
  return { format: "csv", blob, rows: body.length, cells: rows, columns, isConfirmed: false };
}

/** The header line is enough for a long file. It is sent as it is, so its separator must be a comma. */
async function longCsv(blob) {
  const text = await textOf(blob.slice(0, HEAD), true);
  const rows = readRows(wholeLines(text));
  if (rows[0].cells[0].text.trim() === "") throw new TableFault("must have the names of the columns.", rows[0].line);
  if (!text.split("\n", 1)[0].includes(","))
    throw new TableFault("A file of this size must have commas between cells.");
  return { ...csv(blob, rows, false), rows: null, cells: null };
}

/** The beginning of a text up to the last line that ends outside of quotes. */
function wholeLines(text) {
  let quotes = text.split('"').length - 1;
  for (let end = text.length - 1; end >= 0; end -= 1) {
    if (text[end] === '"') quotes -= 1;
    if (text[end] === "\n" && quotes % 2 === 0) return text.slice(0, end);
  }
  throw new TableFault("The header line is too long.");
}

function namesOf(head) {
  const names = head?.cells.map(({ text }) => text.trim()) ?? [];
  if (names.length === 0) throw new TableFault("There is no table yet.");
  // pandas writes its index first, without a name.
  if (names.some((name, k) => (name === "" && k > 0) || NUMBER.test(name)) || names.join("") === "") {
    throw new TableFault("must have the names of the columns.", head.line);
  }
  return names;
}

/**
 * What the cells of a column look like. It only helps to guess a role: the user decides. `isWritten`: the page writes the
 * numbers again, so they may have separators and decimal commas.
 */
function kindOfCells(texts, isWritten) {
  const [mark, isDecimal] = [decimalMark(texts), hasDecimals(texts)];
  const plain = isWritten ? (text) => plainCell(text, mark) : (text) => (isNumber(text, isDecimal) ? text : null);
  if (texts.every((text) => WHOLE.test(plain(text)))) return "whole";
  if (texts.every((text) => text === "" || plain(text) !== null)) return "number";
  const likeNumbers = texts.filter((text) => LIKE_NUMBER.test(text)).length;
  return 2 * likeNumbers >= texts.filter((text) => text !== "").length ? "other" : "text";
}

/** A number of the service's CSV. `isDecimal`: another cell of the column shows that points are decimal points. */
function isNumber(text, isDecimal) {
  return NUMBER.test(text) && (isDecimal || !isAmbiguous(text));
}

/** What was left out without being asked for: the index that pandas writes as a first column. Empty if nothing was. */
export function leftOut({ columns }) {
  const indexes = columns.filter(({ isIndex, role }) => isIndex && role === "none");
  return indexes.length === 0 ? "" : "The first column only numbers the rows, as pandas writes them. It is left out.";
}

/** The table in words: "8 rows, 3 columns, CSV". */
export function described({ format, rows, columns }) {
  const number = (count, noun) => `${whole(count)} ${noun}${count === 1 ? "" : "s"}`;
  return [...(rows === null ? [] : [number(rows, "row")]), number(columns.length, "column"), FORMATS[format]].join(
    ", ",
  );
}

/** The members of the request that say what each column is. */
export function rolesOf({ format, columns }) {
  const named = (role) => columns.filter((column) => column.role === role).map(({ name }) => name);
  const types = { count: () => "int64", value: () => "float64", key: ({ type }) => type };
  const kept = columns.filter(({ role }) => role !== "none");
  return {
    count_column: named("count")[0],
    key_columns: named("key"),
    csv_types:
      format === "csv"
        ? Object.fromEntries(kept.map((column) => [column.name, types[column.role](column)]))
        : undefined,
  };
}

/** The bytes to send: without columns that are left out. A fault says in which line a number is none. */
export function bytesOf({ cells, columns, blob }) {
  if (cells === null) return blob;
  const kept = columns.map((column, k) => ({ ...column, k })).filter(({ role }) => role !== "none");
  const [, ...body] = cells;
  checkKeys(body, kept);
  for (const column of kept) column.mark = decimalMark(body.map(({ cells: row }) => row[column.k].text.trim()));
  const rows = body.map((row) => kept.map((column) => sent(row, column)));
  const names = kept.map(({ name }) => ({ text: name, isQuoted: false }));
  return new Blob([writeRows([names, ...rows])], { type: "text/csv" });
}

/** No two rows have the same group key. An empty cell is null, and an empty text in quotes is not. */
function checkKeys(body, kept) {
  const keys = kept.filter(({ role }) => role === "key");
  const lines = new Map();
  for (const { line, cells } of body) {
    const key = JSON.stringify(
      keys.map(({ k }) => (cells[k].text === "" && !cells[k].isQuoted ? null : cells[k].text)),
    );
    if (lines.has(key)) throw new TableFault(`has the same group key as line ${lines.get(key)}.`, line);
    lines.set(key, line);
  }
}

function sent({ line, cells }, { name, role, k, mark }) {
  if (role === "key") return cells[k];
  const text = cells[k].text.trim();
  const plain = plainCell(text, role === "count" ? "" : mark);
  if (plain !== null && (role !== "count" || WHOLE.test(plain))) return { text: plain, isQuoted: false };
  const asWhole = `can be read in two ways: write ${text.replace(/[.,]/, "")}, without a separator`;
  const fault = isAmbiguous(text) ? (role === "count" ? asWhole : numeralFault(text)) : "";
  if (fault !== "") throw new TableFault(`${name} ${fault}.`, line);
  const wanted = role === "count" ? "a whole number, such as 1200" : "a number, such as -1.5";
  throw new TableFault(`${name} must be ${wanted}.`, line);
}
