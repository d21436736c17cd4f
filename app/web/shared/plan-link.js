// A mechanism as a query, for links to the pages that plan and release with it. `column` is as in the explorer's links.

const ULP = 2 ** -52;

/** The query of a complete mechanism: `c_u=…&tau=…&tau_star=…&sigma=…`, and `column=…` once per further column. */
export function planQuery({ aggregates, ...numbers }) {
  const query = new URLSearchParams();
  for (const name of ["c_u", "tau", "tau_star", "sigma"]) {
    if (numbers[name] !== undefined && numbers[name] !== null) query.set(name, String(numbers[name]));
  }
  if (aggregates?.mu_0 !== undefined) query.set("mu_0", String(aggregates.mu_0));
  for (const column of columnsOf(aggregates)) query.append("column", column.map(escaped).join("~"));
  return query;
}

function columnsOf({ names = [], covariance, sensitivity } = {}) {
  return names.map((name, j) => [
    name,
    String(sensitivity.lower[j]),
    String(sensitivity.upper[j]),
    String(deviation(covariance[j][j])),
    String(sensitivity.groups?.[j] ?? ""),
  ]);
}

/** The standard deviation of a variance, rounded up: its square is no less noise. */
export function deviation(variance) {
  const root = Math.sqrt(variance);
  return root * root < variance ? root * (1 + ULP) : root;
}

const escaped = (text) => text.replaceAll("%", "%25").replaceAll("~", "%7E");
