// The history of a budget, page by page, and whether it is as it was recorded.

import { byId, element } from "./elements.js";
import { errorsOf } from "./fields.js";
import { digits, scientific, shown } from "./numbers.js";
import { get } from "./service.js";

const PAGE = 20;

/** Wire up the panel. Returns what shows the history of a budget from its latest entry; with `signal` it is left. */
export function wireHistory() {
  let path = "";
  let before = null;
  let leaving;

  /** The next entries, after those that are there; of a budget that was left meanwhile nothing is shown. */
  async function page() {
    const [from, signal] = [before, leaving];
    byId("older").disabled = true;
    try {
      const { entries, before: next } = await get(`${path}/charges?limit=${PAGE}${from === null ? "" : `&before=${from}`}`, signal);
      if (from === null) byId("history").tBodies[0].replaceChildren();
      byId("history").tBodies[0].append(...entries.map(row));
      byId("older").hidden = next === null;
      before = next;
    } finally {
      if (!signal.aborted) byId("older").disabled = false;
    }
  }

  async function verify() {
    const signal = leaving;
    say("Verifying…");
    const { intact, entries, head, fault } = await get(`${path}/verify`, signal);
    if (intact) say(`Intact: ${entries === 1 ? "1 entry" : `${entries} entries`}, every hash and every sum. The last hash is ${head}`);
    else say(`${fault.number ? `Entry ${fault.number}` : "The budget"} ${fault.detail}.`, true);
  }

  const say = (text, isFault = false) => {
    byId("verified").textContent = text;
    byId("verified").classList.toggle("error", isFault);
  };
  const failed = (failure) => failure.name === "AbortError" || say(errorsOf(failure)[0].detail, true);

  byId("older").addEventListener("click", () => page().catch(failed));
  byId("verify").addEventListener("click", () => verify().catch(failed));
  return (id, signal) => {
    path = `budgets/${encodeURIComponent(id)}`;
    before = null;
    leaving = signal;
    say("");
    return page();
  };
}

function row({ number, kind, at, details, hash }) {
  const cells = [
    element("time", { datetime: at }, at.replace("T", " ").replace("Z", " UTC")),
    kind === "charge" ? released(details.release) : limited(kind, details),
    ...(kind === "charge" ? [amount(details.mu_squared), amount(details.hazard), element("span", { class: "key", title: details.key ?? "" }, details.key ?? "")] : ["", "", ""]),
    element("code", { title: hash }, hash.slice(0, 8)),
  ];
  return element("tr", { "data-kind": kind }, element("th", { scope: "row" }, String(number)), ...cells.map((cell) => element("td", {}, cell)));
}

function released({ c_u, tau, tau_star, sigma, mu_0 }) {
  const threshold = tau_star === undefined ? "no threshold" : `τ\u00a0${tau}, τ*\u00a0${brief(tau_star)}`;
  return `C_u\u00a0${c_u}, σ\u00a0${brief(sigma)}, ${threshold}${mu_0 ? `, μ₀\u00a0${brief(mu_0)}` : ""}`;
}

function limited(kind, { epsilon, delta, proportion }) {
  const division = proportion ? `, S : D as ${scientific(proportion.mu_squared, 3)} : ${scientific(proportion.hazard, 3)}` : "";
  return `${kind === "created" ? "Made" : "Changed"}: ε\u00a0${epsilon}, δ\u00a0${digits(delta)}${division}`;
}

/** As it was given where that is short. */
function brief(value) {
  return String(value).length <= 8 ? String(value) : shown(value);
}

function amount(value) {
  return element("span", { title: String(value) }, value === 0 ? "0" : scientific(value, 4));
}
