// The history of a budget, page by page, and its verification.

import { byId, element } from "../shared/dom.js";
import { errorsOf } from "../shared/forms.js";
import { digits, scientific, shown } from "../shared/number-format.js";
import { get } from "../shared/service.js";

const PAGE = 20;

/** Connect the panel. Returns a function that shows the newest entries of a budget; `signal` aborts its requests. */
export function wireHistory() {
  let path = "";
  let before = null;
  let budgetSignal;

  /** Append the next page. The signal aborts it if the user has left the budget. */
  async function showPage() {
    const [from, signal] = [before, budgetSignal];
    const query = `limit=${PAGE}${from === null ? "" : `&before=${from}`}`;
    byId("older").disabled = true;
    try {
      const { entries, before: next } = await get(`${path}/charges?${query}`, signal);
      const [body] = byId("history").tBodies;
      if (from === null) body.replaceChildren();
      body.append(...entries.map(row));
      byId("older").hidden = next === null;
      before = next;
    } finally {
      if (!signal.aborted) byId("older").disabled = false;
    }
  }

  async function verify() {
    const signal = budgetSignal;
    say("Verifying…");
    const { intact, entries, head, fault } = await get(`${path}/verify`, signal);
    const number = entries === 1 ? "1 entry" : `${entries} entries`;
    if (intact) say(`Intact: ${number}, every hash and every sum. The last hash is ${head}`);
    else say(`${fault.number ? `Entry ${fault.number}` : "The budget"} ${fault.detail}.`, true);
  }

  function say(text, isFault = false) {
    byId("verified").textContent = text;
    byId("verified").classList.toggle("error", isFault);
  }

  function showFailure(failure) {
    if (failure.name !== "AbortError") say(errorsOf(failure)[0].detail, true);
  }

  byId("older").addEventListener("click", () => showPage().catch(showFailure));
  byId("verify").addEventListener("click", () => verify().catch(showFailure));
  return (id, signal) => {
    path = `budgets/${encodeURIComponent(id)}`;
    before = null;
    budgetSignal = signal;
    say("");
    return showPage();
  };
}

function row({ number, kind, at, details, hash }) {
  const cells = [
    element("time", { datetime: at }, at.replace("T", " ").replace("Z", " UTC")),
    ...(kind === "charge" ? chargeCells(details) : [limitText(kind, details), "", "", ""]),
    element("code", { title: hash }, hash.slice(0, 8)),
  ];
  const head = element("th", { scope: "row" }, String(number));
  return element("tr", { "data-kind": kind }, head, ...cells.map((cell) => element("td", {}, cell)));
}

function chargeCells({ release, mu_squared, hazard, idempotency_key }) {
  const key = idempotency_key ?? ""; // only access keys with the scope admin see it
  const shownKey = element("span", { class: "key", title: key }, key);
  return [releaseText(release), amount(mu_squared), amount(hazard), shownKey];
}

function releaseText({ c_u, tau, tau_star, sigma, mu_0 }) {
  const threshold = tau_star === undefined ? "no threshold" : `τ\u00a0${tau}, τ*\u00a0${brief(tau_star)}`;
  return `C_u\u00a0${c_u}, σ\u00a0${brief(sigma)}, ${threshold}${mu_0 ? `, μ₀\u00a0${brief(mu_0)}` : ""}`;
}

function limitText(kind, { epsilon, delta, proportion }) {
  const split = proportion
    ? `, noise cost : threshold cost = ${scientific(proportion.mu_squared, 3)} : ${scientific(proportion.hazard, 3)}`
    : "";
  return `${kind === "created" ? "Created" : "Changed"}: ε\u00a0${epsilon}, δ\u00a0${digits(delta)}${split}`;
}

/** All digits of a short number; a rounded form of a long one. */
function brief(value) {
  return String(value).length <= 8 ? String(value) : shown(value);
}

function amount(value) {
  return element("span", { title: String(value) }, value === 0 ? "0" : scientific(value, 4));
}
