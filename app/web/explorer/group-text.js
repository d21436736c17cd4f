// Groups in a pasted text: their keys, their counts and their further columns. Every box of the page reads text so.

import { numberIn, parseTable } from "../shared/table-text.js";

const COUNT_NAMES = ["count", "counts", "users", "user_count", "n", "size"];
const MOST_PROBLEMS = 3;

/**
 * The groups of a text as columns: `keys` (null if there are only numbers), `counts`, and `values` by name, with `lines`.
 * `names` are the further columns. A list of numbers is a list of counts, unless `hasKeys`. `isWhole`: counts are users.
 */
export function groupsIn(text, { names = [], hasKeys = false, isWhole = true } = {}) {
  const table = parseTable(text);
  const groups = { keys: [], counts: [], values: names.map(() => []), lines: [], problems: [...table.problems] };
  const isList = table.isList && !hasKeys;
  const places = isList ? null : placesOf(table, names, hasKeys);
  if (isList) groups.keys = null;
  if (typeof places === "string") return { ...groups, problems: [{ line: 1, detail: places }, ...groups.problems] };
  for (const [row, cells] of table.rows.entries()) {
    const line = table.lines[row];
    const numbers = (isList ? cells : [places.count, ...places.values].map((place) => cells[place])).map(numberIn);
    const detail =
      numbers.find((each) => each.detail)?.detail ?? (isWhole && wrongCount(isList ? numbers : [numbers[0]]));
    if (detail) groups.problems.push({ line, detail });
    else if (isList) for (const { number } of numbers) add(groups, line, number);
    else {
      add(groups, line, numbers[0].number);
      groups.keys.push(places.keys.map((place) => cells[place]));
      for (const [j, { number }] of numbers.slice(1).entries()) groups.values[j].push(number);
    }
  }
  groups.problems.sort((one, other) => one.line - other.line);
  return groups;
}

function add(groups, line, count) {
  groups.counts.push(count);
  groups.lines.push(line);
}

function wrongCount(numbers) {
  return numbers.every(({ number }) => Number.isInteger(number) && number >= 1)
    ? ""
    : "has a count that is not a whole number, at least 1";
}

/** Which cells are the key, the count and the further columns; a text if they cannot be found. */
function placesOf({ header, rows }, names, hasKeys) {
  const width = header?.length ?? rows[0]?.length ?? 0;
  const all = Array.from({ length: width }, (_, place) => place);
  const found = header ? names.map((name) => header.indexOf(name)) : [];
  const isNamed = header !== null && found.every((place) => place >= 0);
  if (hasKeys && header && !isNamed) return `must name every column: ${names.join(", ")}`;
  if (isNamed) {
    const rest = all.filter((place) => !found.includes(place));
    const count = rest.find((place) => COUNT_NAMES.includes(header[place].toLowerCase())) ?? lastNumber(rest, rows);
    const keys = rest.filter((place) => place !== count);
    return hasKeys && keys.length === 0 ? "must have a group key" : { keys, count, values: found };
  }
  const wanted = ["group key", "count", ...names];
  if (hasKeys && width < wanted.length) return `must have these cells: ${wanted.join(", ")}`;
  const more = width >= wanted.length ? names.length : 0;
  const count = width - 1 - more;
  return { keys: all.slice(0, count), count, values: more > 0 ? all.slice(count + 1) : [] };
}

/** The last column with a number in the first row, else the last column. */
function lastNumber(places, rows) {
  return places.findLast((place) => rows.length > 0 && numberIn(rows[0][place]).number !== undefined) ?? places.at(-1);
}

/** The problems as a text: "Line 2 has …; line 5 …; and 3 more lines." Empty if there are none. */
export function problemText(problems) {
  const said = problems.slice(0, MOST_PROBLEMS).map(({ line, detail }) => `Line ${line} ${detail}.`);
  const more = problems.length - said.length;
  return [
    ...said,
    ...(more > 0 ? [more === 1 ? "One more line has a problem." : `${more} more lines have problems.`] : []),
  ].join(" ");
}
