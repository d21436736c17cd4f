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
      "For DuckDB or PostgreSQL. Replace the table views (user_id, url, country) with yours. Use random() of an engine only " +
      "for a trial: its floating-point noise can reveal true counts. To publish, send the counts to /release.",
    write: ({ answer, columns }) => sql(answer.mechanism, answer, columns),
  },
};

/** JSON as a Python literal: true, false and null have other names. */
function python(json) {
  return json.replaceAll(
    /("(?:[^"\\]|\\.)*")|\b(true|false|null)\b/g,
    (_all, string, word) => string ?? { true: "True", false: "False", null: "None" }[word],
  );
}

// Inside the query, columns have names that start with _, so that a column called place or users does not collide.
function sql({ c_u, tau, tau_star, sigma, aggregates }, { epsilon, delta }, columns) {
  const inner = columns.map((_, k) => `_sum${k + 1}`);
  const outer = distinct(
    columns.map(({ name }) => name),
    ["url", "country", "users"],
  );
  const clipped = columns.map((column, k) => `,\n           ${clip(column)} AS ${inner[k]}`).join("");
  const listed = inner.map((name) => `, ${name}`).join("");
  const summed = inner.map((name) => `, SUM(${name}) AS ${name}`).join("");
  const noises = inner.map((_, k) => Math.sqrt(aggregates.covariance[k][k]));
  const noisy = inner.map((name, k) => `,\n           ${name} + ${noises[k]} * ${NORMAL} AS ${name}`).join("");
  const caps = columns.map(({ groups }) => typed(groups));
  const capped = inner.map((name, k) => (caps[k] ? `,\n           ${cap(name, caps[k])}` : `, ${name}`)).join("");
  const named = inner.map((name, k) => `, ${name} AS ${identifier(outer[k])}`).join("");
  return `-- (ε, δ) = (${epsilon}, ${delta}) for each user, if this runs once.
WITH per_user AS (  -- one record per user and group
    SELECT views.user_id AS _user, views.url AS _url, views.country AS _country${clipped}
    FROM views
    WHERE views.user_id IS NOT NULL
    GROUP BY views.user_id, views.url, views.country
), lots AS (
    SELECT _user, _url, _country${listed}, random() AS _lot
    FROM per_user
), ranked AS (
    SELECT _user, _url, _country${listed}, _lot, ROW_NUMBER() OVER (PARTITION BY _user ORDER BY _lot) AS _place
    FROM lots
), bounded AS (
    SELECT _url, _country${capped}
    FROM ranked
    WHERE _place <= ${c_u}  -- C_u: at most this many groups per user, chosen at random
), counted AS (
    SELECT _url, _country, COUNT(*) AS _users${summed}
    FROM bounded
    GROUP BY _url, _country
    HAVING COUNT(*) >= ${effectiveTau(tau)}  -- τ
), noisy AS (
    SELECT _url, _country,
           _users + ${sigma} * ${NORMAL} AS _users${noisy}  -- σ
    FROM counted
)
SELECT _url AS url, _country AS country, _users AS users${named}
FROM noisy
WHERE _users >= ${tau_star}  -- τ*
ORDER BY _url, _country;
`;
}

/** One user's part of a group's sum. Clipping is the last step, so that the result stays within the bounds. */
function clip({ name, lower, upper }) {
  const [low, high] = [Number(lower), Number(upper)];
  const whole = Number.isSafeInteger(low) && Number.isSafeInteger(high);
  const sum = `COALESCE(SUM(views.${identifier(name)}), 0)`;
  return whole
    ? `CAST(LEAST(GREATEST(ROUND(${sum}), ${low}), ${high}) AS BIGINT)`
    : `LEAST(GREATEST(CAST(${sum} AS DOUBLE PRECISION), ${low}), ${high})`;
}

/** A column that one user changes in few groups: the first ones in which it is not 0. In the others it becomes 0. */
function cap(name, groups) {
  const place = `ROW_NUMBER() OVER (PARTITION BY _user ORDER BY ${name} = 0, _lot)`;
  return `CASE WHEN ${place} <= ${groups} THEN ${name} ELSE 0 END AS ${name}`;
}

function identifier(name) {
  return `"${name.replaceAll('"', '""')}"`;
}

/** Names that differ from the taken ones and from each other, in any letter case. */
function distinct(names, taken) {
  const used = new Set(taken);
  return names.map((name) => {
    let free = name;
    for (let k = 2; used.has(free.toLowerCase()); k++) free = `${name}_${k}`;
    used.add(free.toLowerCase());
    return free;
  });
}

// A standard normal draw by the Box–Muller transform. 1 − random() is never 0.
const NORMAL = "sqrt(-2 * ln(1 - random())) * cos(2 * pi() * random())";
