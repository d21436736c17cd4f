// All that the page shows, as fields of a form and as the query of its URL.

export const FIELDS = ["epsilon", "delta", "c_u", "tau", "sigma", "tau_star"];

export const PRESETS = {
  "URL case study": { epsilon: "0.349", delta: "1e-5", c_u: "51914", tau: "1" },
  "Small app": { epsilon: "1", delta: "1e-6", c_u: "1", tau: "1" },
  "Weekly top pages": { epsilon: "1", delta: "1e-7", c_u: "40", tau: "5" },
};

/** Texts by field, the further columns, the axes drawn the other way, and which code is shown. */
export function stateOf(search) {
  const query = new URLSearchParams(search);
  const given = FIELDS.some((name) => query.has(name));
  const first = given ? {} : PRESETS["URL case study"];
  return {
    ...Object.fromEntries(FIELDS.map((name) => [name, query.get(name) ?? first[name] ?? ""])),
    columns: query.getAll("column").map(columnOf),
    axes: new Set((query.get("axes") ?? "").split(",").filter(Boolean)),
    code: query.get("code") ?? "curl",
  };
}

export function searchOf(state) {
  const query = new URLSearchParams();
  for (const name of FIELDS) if (state[name].trim() !== "" || name === "epsilon") query.set(name, state[name].trim());
  for (const { name, lower, upper, noise } of state.columns) query.append("column", [name, lower, upper, noise].map(escaped).join("~"));
  if (state.axes.size > 0) query.set("axes", [...state.axes].sort().join(","));
  if (state.code !== "curl") query.set("code", state.code);
  return `?${query}`;
}

/** The preset that the state is, if it is one. */
export function presetOf(state) {
  const same = ([, preset]) => state.columns.length === 0 && FIELDS.every((name) => state[name].trim() === (preset[name] ?? ""));
  return Object.entries(PRESETS).find(same)?.[0];
}

/** A ~ separates the parts of a column in the link. */
const escaped = (text) => text.replaceAll("%", "%25").replaceAll("~", "%7E");
const unescaped = (text) => text.replaceAll(/%(25|7E)/gi, (_, code) => (code === "25" ? "%" : "~"));

function columnOf(text) {
  const [name = "", lower = "", upper = "", noise = ""] = text.split("~").map(unescaped);
  return { name, lower, upper, noise };
}
