// Group sizes in a pasted text: read them, and count how often each occurs.

import { whole } from "../shared/number-format.js";

const WHOLE = /^\s*\d+\s*$/;
const GROUPED = /^\d{1,3}([ ,]\d{3})+$/; // 1,234: one number with a separator, or two numbers
const GROUPED_TAIL = /[ ,;]\d{1,3}([ ,]\d{3})+$/;
const isNumber = (cell) => Number.isFinite(Number(cell));

/** The cells of a line. The line is unclear if a comma or a space in it may separate thousands. */
function rowOf(line) {
  if (WHOLE.test(line)) return { cells: [line.trim()], isPure: true, isUnclear: false };
  const isBracketed = /^\s*[[({]/.test(line);
  const plain = line
    .replace(/^[\s[({]+|[\s\])},;]+$/g, "")
    .replace(/"(\d{1,3}(?:,\d{3})+)"/g, (_, number) => number.replaceAll(",", ""))
    .replace(/(?<=\d)[\u00a0\u202f'’](?=\d{3})/g, "")
    .replaceAll('"', "");
  const isTabbed = plain.includes("\t");
  const cells = isTabbed ? plain.split("\t").map(withoutSeparators) : plain.split(/[\s,;]+/);
  const filled = cells.filter(Boolean);
  const isPure = filled.length > 0 && filled.every(isNumber);
  const isUnclear = !isBracketed && !isTabbed && (isPure ? GROUPED : GROUPED_TAIL).test(plain);
  return { cells: filled, isPure, isUnclear };
}

/** A tab separates the cells, so a comma or a space inside a cell separates thousands. */
function withoutSeparators(cell) {
  return GROUPED.test(cell.trim()) ? cell.replace(/[ ,]/g, "") : cell.trim();
}

/**
 * The sizes in a text, and the number of ignored lines. If all lines hold only numbers, every number is a size. Otherwise
 * the last number of each line is one. A line that can be read as one number or as several is ignored, not guessed.
 */
export function sizesIn(text) {
  const rows = text
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map(rowOf);
  const isList = rows.every(({ isPure }) => isPure);
  const isTable = !isList && rows.length > 1 && rows.every(({ cells }) => cells.length === rows[0].cells.length);
  const sizes = [];
  let ignored = 0;
  for (const { cells, isUnclear } of rows) {
    const candidates = isList ? cells : cells.filter(isNumber).slice(-1);
    const found = isUnclear && !isTable ? [] : candidates;
    const good = found.map(Number).filter((size) => size >= 1);
    for (const size of good) sizes.push(size);
    if (good.length === 0 || good.length < found.length) ignored += 1;
  }
  return { sizes, ignored };
}

/** How often each size occurs, and a sentence about the text. */
export function summary(text) {
  const { sizes, ignored } = sizesIn(text);
  const times = new Map();
  for (const size of sizes) times.set(size, (times.get(size) ?? 0) + 1);
  let [smallest, largest] = [Infinity, 0];
  for (const size of times.keys()) [smallest, largest] = [Math.min(smallest, size), Math.max(largest, size)];
  const skipped = ignored > 0 ? `, ${whole(ignored)} ${ignored === 1 ? "line" : "lines"} ignored` : "";
  const span = sizes.length > 0 ? `, smallest ${whole(smallest)}, largest ${whole(largest)}` : "";
  return { times, ignored, sentence: `${whole(sizes.length)} sizes read${skipped}${span}; nothing was sent.` };
}
