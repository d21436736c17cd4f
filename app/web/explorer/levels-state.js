// The tables of one release in the explorer's state, as parts of the page's link, and as the body of a request.

import { typed } from "../shared/service.js";

const PUBLIC = "public"; // in the place of τ

/** What a person sees at first: three levels of one publication. The countries are a list that everybody knows. */
export const FIRST_TABLES = [
  { name: "by_country", c_u: "1", tau: "", share: "1", isPublic: true },
  { name: "by_url", c_u: "16", tau: "1", share: "1", isPublic: false },
  { name: "by_url_and_country", c_u: "16", tau: "1", share: "1", isPublic: false },
];

/** A table with a name that no other one has. */
export function newTable(tables) {
  const names = new Set(tables.map(({ name }) => name));
  let number = tables.length + 1;
  while (names.has(`table_${number}`)) number += 1;
  return { name: `table_${number}`, c_u: "1", tau: "1", share: "1", isPublic: false };
}

/** The tables of a link. */
export function tablesOf(query) {
  return query.getAll("table").map((text) => {
    const [name = "", c_u = "", tau = "", share = ""] = text.split("~").map(unescaped);
    return { name, c_u, tau: tau === PUBLIC ? "" : tau, share, isPublic: tau === PUBLIC };
  });
}

/** Write the tables into a link. */
export function addTables(query, { tables, isBalanced }) {
  for (const { name, c_u, tau, share, isPublic } of tables)
    query.append("table", [name, c_u, isPublic ? PUBLIC : tau, share].map((text) => escaped(text.trim())).join("~"));
  if (isBalanced && tables.length > 0) query.set("shares", "balanced");
}

/** The body for /calibrate and /compare. A table without tau has public groups, so an empty τ is sent, and refused. */
export function tablesBody({ tables, isBalanced, epsilon, delta }) {
  return {
    tables: tables.map(({ name, c_u, tau, share, isPublic }) => ({
      name: name.trim(),
      c_u: typed(c_u),
      tau: isPublic ? undefined : (typed(tau) ?? ""),
      share: isBalanced ? undefined : typed(share),
    })),
    shares: isBalanced ? "balanced" : undefined,
    epsilon: typed(epsilon),
    delta: typed(delta),
  };
}

// A ~ separates the parts of a table in the link.
const escaped = (text) => text.replaceAll("%", "%25").replaceAll("~", "%7E");
const unescaped = (text) => text.replaceAll(/%(25|7E)/gi, (_, code) => (code === "25" ? "%" : "~"));
