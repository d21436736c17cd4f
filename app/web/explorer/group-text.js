// Groups in a pasted text: their keys, their counts and their further columns. Every box of the page reads text so.

import { hasDecimals, isNumeral, numberIn } from "../shared/number-text.js";
import { parseTable } from "../shared/table-text.js";

const COUNT_NAME =
  /^(users?|num_users|unique_users|user_count|counts?|n|size|people|persons|visitors|uniq.*|distinct.*)$/i;
const OF_AN_INTERVAL = /_(low|estimate|high)$/;
const MOST_LOOKED_AT = 100; // rows, to tell numbers from texts
const MOST_PROBLEMS = 3;

/**
 * The groups of a text as columns: `keys` (null if there are only numbers), `counts`, and `values` by name, with `lines`.
 * `countName` is the name of the column with the counts, if a first line has names. A column of numbers is no part of a
 * key, unless it is the whole key and left of the count. `names` are the further columns. A list of numbers is a list of
 * counts. `isWhole`: counts are users.
 */
export function groupsIn(text, { names = [], isWhole = true } = {}) {
  const table = parseTable(text);
  const groups = { keys: [], counts: [], values: names.map(() => []), lines: [], problems: [...table.problems] };
  const { isList } = table;
  const places = isList ? null : placesOf(table, names);
  if (isList) groups.keys = null;
  if (typeof places === "string") return { ...groups, problems: [{ line: 1, detail: places }, ...groups.problems] };
  groups.countName = places?.countName;
  const columns = isList ? null : [places.count, ...places.values];
  const decimals = decimalsOf(table.rows, columns, isWhole);
  for (const [row, cells] of table.rows.entries()) {
    const line = table.lines[row];
    const texts = isList ? cells : columns.map((place) => cells[place]);
    const numbers = texts.map((text, k) => numberIn(text, decimals[isList ? 0 : k]));
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

/** Whether the points of each column are decimal points. All numbers of a list are one column; users are whole numbers. */
function decimalsOf(rows, columns, isWhole) {
  if (columns === null) return [!isWhole && hasDecimals(rows.flat())];
  return columns.map((place, k) => !(isWhole && k === 0) && hasDecimals(rows.map((cells) => cells[place])));
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
function placesOf(table, names) {
  return table.header === null ? placesByOrder(table, names) : placesByName(table, names);
}

/** The columns of intervals in the service's own tables are left out. They say nothing about keys. */
function placesByName({ header, rows }, names) {
  const found = names.map((name) => header.indexOf(name));
  const isNamed = found.every((place) => place >= 0);
  const isOfInterval = (name) => OF_AN_INTERVAL.test(name) && header.includes(name.replace(OF_AN_INTERVAL, ""));
  const rest = [...header.keys()].filter((place) => !found.includes(place) && !isOfInterval(header[place]));
  const numbers = rest.filter((place) => hasNumbers(rows, place));
  const count = rest.find((place) => COUNT_NAME.test(header[place])) ?? onlyCount(rest, numbers);
  if (count === undefined) {
    const candidates = numbers.map((place) => header[place]).join(" or ");
    return `must say which column is the count, ${candidates}: name it count, and remove the other columns of numbers`;
  }
  const keys = rest.filter((place) => place !== count);
  const isKey = (place) => !numbers.includes(place) || (keys.length === 1 && place < count);
  const left = keys.filter((place) => !isKey(place)).map((place) => header[place]);
  if (left.length > 0) {
    const columns = left.length === 1 ? "a column of numbers that is" : "columns of numbers that are";
    const removed = left.join(" and ");
    return `has ${columns} neither the count, ${header[count]}, nor a further column of the answer: remove ${removed}`;
  }
  return { keys, count, values: isNamed ? found : [], countName: header[count] };
}

/** The only column of numbers; the last column if there is none; of two, the last if the first must be the key. */
function onlyCount(rest, numbers) {
  if (numbers.length > 1 && rest.length > 2) return undefined;
  return numbers.at(-1) ?? rest.at(-1);
}

/** Without names, the count follows the key, and the further columns follow the count. */
function placesByOrder({ rows }, names) {
  const width = rows[0]?.length ?? 0;
  const more = width >= names.length + 2 ? names.length : 0;
  const count = width - 1 - more;
  const [keys, values] = [Array.from({ length: Math.max(count, 0) }, (_, place) => place), []];
  for (let place = count + 1; place < width; place += 1) values.push(place);
  if (keys.length > 1 && keys.some((place) => hasNumbers(rows, place))) {
    return "has more numbers than one count and the further columns of the answer: name the columns in a first line";
  }
  return { keys, count, values };
}

/** Whether most of the first rows have a number there. */
function hasNumbers(rows, place) {
  const cells = rows.slice(0, MOST_LOOKED_AT).map((row) => row[place]);
  return 2 * cells.filter(isNumeral).length > cells.length;
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
