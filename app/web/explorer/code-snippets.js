// The form's request as code to copy: curl, Python, and SQL for the platform's own engine.

import { address, curlCommand } from "../shared/curl-command.js";
import { encode, typed } from "../shared/service.js";
import { effectiveTau } from "./effective-tau.js";

export const SNIPPETS = {
  curl: {
    label: "curl",
    note: "Sends the request of this page.",
    write: ({ path, body }) => curlCommand(path, body),
  },
  python: {
    label: "Python",
    note: "With httpx. Prints the mechanism, ready for the next request.",
    write: ({ path, body }) => `import httpx

question = ${python(encode(body))}

answer = httpx.post(${JSON.stringify(address(path))}, json=question).raise_for_status().json()
print(answer["mechanism"])
`,
  },
  sql: {
    label: "SQL",
    note:
      "Prints the query that bounds each user and counts the groups, for a table views (user_id, url, country). Also for " +
      "postgres, spark, snowflake and bigquery. Send its result to /release; or let gsh publish do all of it.",
    write: ({ answer, columns }) => boundingCommand(answer.mechanism, columns),
  },
};

/** JSON as a Python literal: true, false and null have other names. */
function python(json) {
  return json.replaceAll(
    /("(?:[^"\\]|\\.)*")|\b(true|false|null)\b/g,
    (_all, string, word) => string ?? { true: "True", false: "False", null: "None" }[word],
  );
}

/** The command that writes the query. The library has the only generator of it. */
function boundingCommand({ c_u, tau }, columns) {
  const sums = columns.flatMap((column) => [...sum(column), ...cap(column)]);
  const least = effectiveTau(tau) > 1 ? [`--tau ${effectiveTau(tau)}`] : [];
  const options = ["--from views --user user_id --by url,country", `--c-u ${c_u}`, ...least, ...sums];
  return `gsh bound --dialect duckdb ${options.join(" \\\n  ")}\n`;
}

/** A column of whole numbers counts in units of 1, any other in units of 2⁻¹⁰. */
function sum({ name, lower, upper }) {
  const isWhole = [lower, upper].every((bound) => Number.isSafeInteger(Number(bound)));
  const bounds = `--sum ${quoted(`${name}=${Number(lower)}:${Number(upper)}`)}`;
  return isWhole ? [bounds] : [bounds, `--sum-unit ${quoted(`${name}=${2 ** -10}`)}`];
}

/** In how many groups one user changes the column, if it has a cap. A typed cap keeps all its digits. */
function cap({ name, groups }) {
  const most = typed(groups);
  if (most === undefined) return [];
  return [`--cap ${quoted(`${name}=${Number.isSafeInteger(Number(most)) ? Number(most) : most}`)}`];
}

/** A word for a POSIX shell. */
function quoted(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
