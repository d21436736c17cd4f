// A stored release: when it was made, and the names of its columns. The table on the page may be another one.

import { answerPath } from "../budgets/answer-files.js";
import { get, getAs } from "../shared/service.js";
import { readRows } from "./csv-text.js";

const WITH_INTERVAL = 4; // a number, and the three columns of its interval

/** A time of the service for people: 2026-11-18 02:47:50 UTC. */
export const when = (at) => at.replace("T", " ").replace(/(\.\d+)?Z$/, " UTC");

/** The stored `answer`, and the `names` of its key columns and of its count, from the header line of its table. */
export async function storedRelease(key) {
  const [answer, table] = await Promise.all([get(answerPath(key)), getAs("text/csv", answerPath(key))]);
  return { answer, names: await namesIn(table, answer) };
}

/** The same for each table of a release of several, with its `name`. */
export async function storedTables(key) {
  return Promise.all(
    answersOf(await get(answerPath(key))).map(async ({ name, answer }) => {
      const table = await getAs("text/csv", answerPath(key, name));
      return { name, answer, names: await namesIn(table, answer) };
    }),
  );
}

/** The answer of each table of several, with its `name` and with what the certificate says about it. */
export const answersOf = ({ tables, certificate }) =>
  tables.map(({ name, ...answer }, k) => ({ name, answer: { ...answer, certificate: certificate.tables[k] } }));

async function namesIn(table, { groups, intervals }) {
  const [header] = readRows(await table.text());
  const names = header.cells.map((cell) => cell.text);
  const numbers = 1 + Object.keys(groups.values ?? {}).length;
  const keys = names.length - numbers * (intervals ? WITH_INTERVAL : 1);
  return { keys: names.slice(0, keys), count: names[keys] };
}
