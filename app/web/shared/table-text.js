// A pasted table: CSV, tabs, semicolons or spaces between cells, with or without a line of names. Nothing is guessed:
// a line that can be read in two ways is a problem with its number.

import { isLikeNumber, isNumeral } from "./number-text.js";

const PLAIN = /^\s*\d+\s*$/;
const THOUSANDS = /\d{1,3}(,\d{3})+(?!\d)/g;
const UNCLEAR = /(^|[\s,])\d{1,3}([ ,'’\u00a0\u2009\u202f]\d{3})+$/; // a,1,200: two parts of a key and 200, or a and 1200
const UNCLEAR_IN_LIST = /(^|[\s,])\d{1,3}[ ,'’\u00a0\u2009\u202f]\d{3}(?=[\s,]|$)/; // 1,200,90: three numbers, or 1200 and 90
const BRACKETED = /^[[({]/;

/**
 * The cells of a text: `header` (null without one), `rows` of cells, `lines` with their line numbers, and `problems`,
 * each with a `line` and a `detail`. `isList` says that there are only numbers. A first line without numbers is a header.
 */
export function parseTable(text) {
  const { separator, records } = recordsIn(text.replace(/^\ufeff/, ""));
  const table = { header: null, rows: [], lines: [], problems: [], isList: false };
  if (records.length === 0) return table;
  const isHeader = records.length > 1 && !records[0].cells.some(isLikeNumber);
  const body = isHeader ? records.slice(1) : records;
  table.isList = !isHeader && body.every(({ cells }) => cells.every(isNumeral));
  const width = isHeader && separator !== " " ? records[0].cells.length : usualWidth(body);
  if (isHeader) table.header = headerOf(records[0], separator, width);
  for (const { line, cells, unclear } of body) {
    const isRagged = !table.isList && cells.length !== width;
    const isTwofold = UNCLEAR.test(unclear) || (UNCLEAR_IN_LIST.test(unclear) && cells.every(isNumeral));
    const isUnclear = isTwofold && (table.header === null || separator === " ");
    if (isRagged) table.problems.push({ line, detail: ragged(cells, width, unclear) });
    else if (isUnclear) table.problems.push({ line, detail: ONE_OR_TWO });
    else {
      table.rows.push(cells);
      table.lines.push(line);
    }
  }
  return table;
}

const ONE_OR_TWO =
  "can be read as one number or as two: write numbers without separators between thousands, or name the columns in a first line";

function ragged(cells, width, raw) {
  const reason = /\d,\d{3}/.test(raw) ? ": write numbers without separators between thousands" : "";
  return `has ${cells.length} ${cells.length === 1 ? "cell" : "cells"}, and others have ${width}${reason}`;
}

/** The number of cells that most lines have, and the larger one of two. */
function usualWidth(records) {
  const times = new Map();
  for (const { cells } of records) times.set(cells.length, (times.get(cells.length) ?? 0) + 1);
  return [...times].sort(([one, n], [other, m]) => m - n || other - one)[0][0];
}

/** With spaces between cells, the names must be as many words as there are cells. */
function headerOf({ cells }, separator, width) {
  const names = separator === " " ? cells.flatMap((cell) => cell.split(" ")) : cells;
  return names.length === width ? names : null;
}

/** The lines that are not empty, split into cells. `unclear` is the text in which a comma or a space may mean two things. */
function recordsIn(text) {
  const isQuoted = text.includes('"');
  const separator = separatorOf(isQuoted ? text.replace(/"[^"]*"/g, '""') : text);
  const all = isQuoted && separator !== " " ? quotedRecords(text, separator) : plainRecords(text, separator);
  return { separator, records: all.filter(({ cells }) => cells.some((cell) => cell !== "")) };
}

/** A semicolon must be in every line: it may be a part of keys. A comma between thousands does not separate cells. */
function separatorOf(text) {
  if (text.includes("\t")) return "\t";
  if (!/[;,]/.test(text)) return " ";
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  if (lines.every((line) => line.includes(";"))) return ";";
  const separates = (line) => line.replace(BRACKETED.test(line.trim()) ? "" : THOUSANDS, "").includes(",");
  return lines.some(separates) ? "," : " ";
}

function plainRecords(text, separator) {
  return text.split("\n").map((line, index) => {
    if (PLAIN.test(line)) return { line: index + 1, cells: [line.trim()], unclear: "" };
    return { line: index + 1, ...recordOf(line.trim(), separator) };
  });
}

function recordOf(line, separator) {
  const raw = line.replace(/^[\s[({]+|[\s\])},;]+$/g, "");
  const cells = separator === " " ? wordsOf(raw) : raw.split(separator).map((cell) => cell.trim());
  return { cells, unclear: BRACKETED.test(line) || separator === "\t" || separator === ";" ? "" : raw };
}

/** Spaces may be in a key: all words before the numbers at the end are one cell. */
function wordsOf(line) {
  const words = line.replaceAll('"', "").split(/\s+/);
  const last = words.findLastIndex((word) => !isLikeNumber(word));
  return last < 1 ? words : [words.slice(0, last + 1).join(" "), ...words.slice(last + 1)];
}

/** Records with quoted cells, which may contain separators, doubled quotes and line breaks [RFC 4180]. */
function quotedRecords(text, separator) {
  const end = `(${separator}|\\r?\\n|$)`;
  const cell = new RegExp(
    `[^\\S\\n${separator}]*(?:"((?:[^"]|"")*)"[^\\n${separator}]*?|([^\\n${separator}]*?))${end}`,
    "y",
  );
  const records = [];
  let [line, next, cells, raw] = [1, 1, [], ""];
  for (let at = 0; at <= text.length; ) {
    cell.lastIndex = at;
    const [all, quoted, plain, ending] = cell.exec(text);
    at += all.length;
    next += all.split("\n").length - 1;
    cells.push((quoted?.replaceAll('""', '"') ?? plain).trim());
    raw += (quoted === undefined ? plain : '""') + (ending === separator ? separator : "");
    if (ending === separator) continue;
    records.push({ line, cells, unclear: separator === "," ? raw.trim() : "" });
    [line, cells, raw] = [next, [], ""];
    if (ending === "") break;
  }
  return records;
}
