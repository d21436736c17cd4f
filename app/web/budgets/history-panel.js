// The history of a budget, page by page, and its verification.

import { byId, download, element } from "../shared/dom.js";
import { errorsOf } from "../shared/forms.js";
import { digits, scientific, shown } from "../shared/number-format.js";
import { get, getAs } from "../shared/service.js";
import { ZIP } from "./answer-files.js";
import { fileName } from "./file-name.js";
import { makerOf, timeOf } from "./record-words.js";

const PAGE = 20;
const PRINTED = 1000; // the most entries that the service sends at once

/** Connect the panel. Returns a function that shows the newest entries of a budget, and gives them; `signal` aborts it. */
export function wireHistory() {
  let path = "";
  let before = null;
  let budgetSignal;

  /** Append the next page. The signal aborts it if the user has left the budget. */
  async function showPage(size = PAGE) {
    const [from, signal] = [before, budgetSignal];
    const query = `limit=${size}${from === null ? "" : `&before=${from}`}`;
    byId("older").disabled = true;
    try {
      const { entries, before: next } = await get(`${path}/charges?${query}`, signal);
      const [body] = byId("history").tBodies;
      if (from === null) body.replaceChildren();
      body.append(...entries.map(row));
      byId("older").hidden = next === null;
      before = next;
      return entries;
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

  /** Save histories, certificates, verification and heads in one archive. */
  async function saveBundle() {
    const id = decodeURIComponent(path.slice("budgets/".length));
    download(fileName(`${id}-bundle`, "zip"), ZIP, await getAs(ZIP, `${path}/bundle`, budgetSignal));
  }

  /** Load all entries, and print them: nothing of a history is left out on paper. */
  async function printAll() {
    while (before !== null) await showPage(PRINTED);
    document.body.classList.add("prints-history");
    print();
    document.body.classList.remove("prints-history");
  }

  function say(text, isFault = false) {
    byId("verified").textContent = text;
    byId("verified").classList.toggle("error", isFault);
  }

  function showFailure(failure) {
    if (failure.name !== "AbortError") say(errorsOf(failure)[0].detail, true);
  }

  byId("older").addEventListener("click", () => showPage().catch(showFailure));
  byId("print-history").addEventListener("click", () => printAll().catch(showFailure));
  byId("bundle").addEventListener("click", () => saveBundle().catch(showFailure));
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
  const cells = [timeOf(at), ...CELLS[kind](details), hashOf(hash)];
  const head = element("th", { scope: "row" }, String(number));
  return element("tr", { "data-kind": kind }, head, ...cells.map((cell) => element("td", {}, cell)));
}

/** The beginning of a hash; on paper all of it. */
function hashOf(hash) {
  return element("code", { title: hash }, hash.slice(0, 8), element("span", { class: "rest" }, hash.slice(8)));
}

/** The cells of each kind of entry: what happened, noise cost, threshold cost, idempotency key. */
const CELLS = {
  created: (details) => [described(`Created: ${limitText(details)}`, details), "", "", ""],
  changed: (details) => [
    described(`Changed: ${limitText(details)}`, details, changesText(details.changes ?? [])),
    "",
    "",
    "",
  ],
  charge: (details) => [
    described(`${releaseText(details.release)}${throughText(details)}`, details),
    amount(details.mu_squared),
    amount(details.hazard),
    keyText(details),
  ],
  redrawn: (details) => [described("Drawn again: nobody had its answer", details), "", "", keyText(details)],
  surveyed: (details) => [described(surveyText(details), details), "", "", keyText(details)],
  committed: (details) => [described(commitText(details), details), "", "", keyText(details)],
  requested: (details) => [
    described(`Waits for an approval: ${requestText(details)}`, details),
    "",
    "",
    keyText(details),
  ],
  approved: (details) => [described("Approved", details), "", "", ""],
  refused: (details) => [described("Refused", details), "", "", ""],
};

/** What an entry says, and below it why and by whom it was made, as far as it is known. */
function described(text, { reason, by }, change = "") {
  const notes = [change, reason ? `Reason: ${reason}` : "", by ? `By ${makerOf(by)}` : ""].filter(
    (note) => note !== "",
  );
  return element("div", {}, text, ...notes.map((note) => element("p", { class: "note" }, note)));
}

/** What another access key must approve: each change as before → after, or a release. */
function requestText({ changes, release }) {
  return changes ? changesText(changes) : releaseText(release);
}

function changesText(changes) {
  return changes.map(({ field, before, after }) => `${field} ${valueText(before)} → ${valueText(after)}`).join(", ");
}

function valueText(value) {
  if (value === null) return "none";
  return typeof value === "object" ? "another proportion" : typeof value === "number" ? digits(value) : String(value);
}

/** The descendant that a release was charged to, if it was not this budget. */
function throughText({ through }) {
  return through ? `, through ${through.budget}` : "";
}

function keyText({ through, idempotency_key = through?.idempotency_key ?? "" }) {
  return element("span", { class: "key", title: idempotency_key }, idempotency_key);
}

function surveyText({ digest }) {
  return `Bounds chosen from a survey: digest\u00a0${digest.slice(0, 8)}…`;
}

function commitText({ sha256, rows }) {
  const number = rows === null ? "" : rows === 1 ? "1 row, " : `${rows} rows, `;
  return `Committed: ${number}digest\u00a0${sha256.slice(0, 8)}…`;
}

/** The bounds and the noise of a release. One of several tables has those of each. */
function releaseText({ survey, ...release }) {
  if (survey)
    return `Survey with σ\u00a0${survey.map(({ sigma }) => brief(sigma)).join(", ")}, then ${releaseText(release)}`;
  if (release.tables === undefined) return tableText(release);
  return `${release.tables.length} tables: ${release.tables.map(tableText).join("; ")}`;
}

function tableText({ c_u, tau, tau_star, sigma, mu_0, capped = [] }) {
  const threshold = tau_star === undefined ? "no threshold" : `τ\u00a0${tau}, τ*\u00a0${brief(tau_star)}`;
  const columns = capped.map((part) => `, μ₀\u00a0${brief(part.mu_0)} in ${part.groups}\u00a0groups`).join("");
  return `C_u\u00a0${digits(c_u)}, σ\u00a0${brief(sigma)}, ${threshold}${mu_0 ? `, μ₀\u00a0${brief(mu_0)}` : ""}${columns}`;
}

function limitText({ epsilon, delta, proportion, privacy_unit, period }) {
  const split = proportion
    ? `, noise cost : threshold cost = ${scientific(proportion.mu_squared, 3)} : ${scientific(proportion.hazard, 3)}`
    : "";
  const unit = privacy_unit ? ` per\u00a0${[privacy_unit, ...(period ? [period] : [])].join("-")}` : "";
  return `ε\u00a0${digits(epsilon)}, δ\u00a0${digits(delta)}${unit}${split}`;
}

/** All digits of a short number; a rounded form of a long one. */
function brief(value) {
  return String(value).length <= 8 ? digits(value) : shown(value);
}

function amount(value) {
  return element("span", { title: String(value) }, value === 0 ? "0" : scientific(value, 4));
}
