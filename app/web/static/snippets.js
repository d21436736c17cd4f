// The same question as commands to copy: curl, Python, and the query for the platform's own engine.

import { address, encode } from "./service.js";

export const SNIPPETS = {
  curl: {
    label: "curl",
    note: "Asks the service the question of this page.",
    write: ({ path, body }) =>
      `curl -s ${quoted(address(path))} \\\n  -H 'Content-Type: application/json' \\\n  -d ${quoted(encode(body))}\n`,
  },
  python: {
    label: "Python",
    note: "With httpx; prints the mechanism, which goes into the next request as it is.",
    write: ({ path, body }) => `import httpx

question = ${python(encode(body))}

answer = httpx.post(${JSON.stringify(address(path))}, json=question).raise_for_status().json()
print(answer["mechanism"])
`,
  },
  sql: {
    label: "SQL",
    note:
      "For DuckDB or PostgreSQL. A table views (user_id, url, country) stands for yours. An engine's random() is good for a trial, " +
      "not for publishing: its floating-point noise can give counts away. Then send the counts to /release instead.",
    write: ({ answer, state }) => sql(answer.mechanism, answer, state),
  },
};

function quoted(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** JSON as a Python literal: the three words that differ do not occur in our bodies outside strings. */
function python(json) {
  return json.replaceAll(/("(?:[^"\\]|\\.)*")|\b(true|false|null)\b/g, (all, string, word) =>
    string ?? { true: "True", false: "False", null: "None" }[word],
  );
}

function sql({ c_u, tau, tau_star, sigma }, { epsilon, delta }, { columns }) {
  const names = columns.map(({ name }) => `"${name.replaceAll('"', '""')}"`);
  const clipped = columns.map(
    ({ lower, upper }, k) => `,\n           CAST(ROUND(LEAST(GREATEST(COALESCE(SUM(${names[k]}), 0), ${Number(lower)}), ${Number(upper)})) AS BIGINT) AS ${names[k]}`,
  );
  const listed = names.map((name) => `, ${name}`).join("");
  const summed = names.map((name) => `, SUM(${name}) AS ${name}`).join("");
  const noisy = columns.map(({ noise }, k) => `,\n           ${names[k]} + ${Number(noise) * sigma} * ${NORMAL} AS ${names[k]}`);
  return `-- (ε, δ) = (${epsilon}, ${delta}) for each user, if this runs once.
WITH per_user AS (  -- one record per user and group
    SELECT user_id, url, country${clipped.join("")}
    FROM views
    WHERE user_id IS NOT NULL
    GROUP BY user_id, url, country
), lots AS (
    SELECT user_id, url, country${listed}, random() AS lot
    FROM per_user
), ranked AS (
    SELECT url, country${listed}, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY lot) AS place
    FROM lots
), counted AS (
    SELECT url, country, COUNT(*) AS users${summed}
    FROM ranked
    WHERE place <= ${c_u}  -- C_u: at most so many groups per user, drawn by lot
    GROUP BY url, country
    HAVING COUNT(*) >= ${Math.max(tau, 1)}  -- τ
), noisy AS (
    SELECT url, country,
           users + ${sigma} * ${NORMAL} AS users${noisy.join("")}  -- σ
    FROM counted
)
SELECT url, country, users${listed}
FROM noisy
WHERE users >= ${tau_star}  -- τ*
ORDER BY url, country;
`;
}

// A standard normal draw by Box and Muller; 1 − random() is never 0.
const NORMAL = "sqrt(-2 * ln(1 - random())) * cos(2 * pi() * random())";
