// The releases of a budget, page by page, with their certificates and their answers.

import { byId, element } from "../shared/dom.js";
import { errorsOf, makeFields, showErrors } from "../shared/forms.js";
import { bytes } from "../shared/number-format.js";
import { get, problemWith } from "../shared/service.js";
import { FORMATS, saveAnswer, saveTables, ZIP } from "./answer-files.js";
import { wireCertificate } from "./certificate-dialog.js";
import { usedPercent } from "./gauge.js";
import { makerOf, timeOf } from "./record-words.js";

const PAGE = 10;
const STATES = {
  made: "made here",
  open: "open: another engine makes it",
  committed: "committed",
  charged: "charged only",
};

const SEVERAL = { name: "several tables (zip)", mediaType: ZIP };

const FIND = { key: { label: "Find by idempotency key" } };

/**
 * Connect the panel. Returns a function that shows the newest releases of a budget; `signal` aborts its requests.
 * `choose(id)` shows another budget, in which a release was found.
 */
export function wireReleases(choose) {
  const showCertificate = wireCertificate();
  let budget = null;
  let before = null;
  let budgetSignal;
  const choices = Object.entries(FORMATS).map(([value, { name }]) => element("option", { value }, name));
  byId("format").replaceChildren(...choices);

  /** Append the next page. The signal aborts it if the user has left the budget. */
  async function showPage() {
    const [from, signal] = [before, budgetSignal];
    const query = { budget: budget.id, limit: PAGE, ...(from === null ? {} : { before: from }) };
    byId("more-releases").disabled = true;
    try {
      const { releases, before: next } = await get(`releases?${new URLSearchParams(query)}`, signal);
      const items = releases.map(item);
      if (from === null) byId("releases").replaceChildren(...(items.length > 0 ? items : [nothing()]));
      else byId("releases").append(...items);
      byId("format-field").hidden = byId("releases").querySelector(".answer") === null;
      byId("more-releases").hidden = next === null;
      before = next;
      return items;
    } finally {
      if (!signal.aborted) byId("more-releases").disabled = false;
    }
  }

  function item(release) {
    const error = element("p", { class: "error", role: "alert" });
    const certificate = action("Certificate", release, error, () => showCertificate(release.key, budgetSignal));
    const answer = action("Download answer", release, error, () =>
      release.answer.media_type === ZIP ? saveTables(release.key) : saveAnswer(release.key, byId("format").value),
    );
    answer.classList.add("answer");
    const hasAnswer = release.answer !== null && release.answer.erased_at === null;
    return element(
      "li",
      { "data-state": release.state },
      element("div", { class: "title" }, element("h3", {}, release.key), stateOf(release)),
      ...(release.description ? [element("p", { class: "description" }, release.description)] : []),
      ...(release.labels.length > 0 ? [labels(release.labels)] : []),
      element("p", { class: "known" }, ...facts(release, usedText(release, budget))),
      element("div", { class: "row" }, certificate, ...(hasAnswer ? [answer] : [])),
      error,
    );
  }

  /** Show one release alone, found by its name. The list comes back with an empty name. */
  async function find(key) {
    if (key === "") {
      before = null;
      return showPage();
    }
    const release = await get(`releases/${encodeURIComponent(key)}`, budgetSignal);
    if (release.budget !== budget.id) await choose(release.budget);
    byId("releases").replaceChildren(item(release));
    byId("format-field").hidden = byId("releases").querySelector(".answer") === null;
    byId("more-releases").hidden = true;
  }

  makeFields(byId("find"), FIND, element("button", { class: "quiet", type: "submit" }, "Find"));
  byId("find").addEventListener("submit", async (event) => {
    event.preventDefault();
    showErrors(byId("find"), []);
    try {
      await find(byId("find").elements.key.value.trim());
    } catch (failure) {
      if (failure.name === "AbortError") return;
      const isUnknown = failure.status === 404;
      showErrors(
        byId("find"),
        [isUnknown ? problemWith("key", "names no release that you may see") : failure],
        () => "key",
      );
    }
  });

  byId("more-releases").addEventListener("click", async () => {
    try {
      byId("releases-error").textContent = "";
      const [first] = await showPage();
      first?.querySelector("button").focus(); // the button can be hidden now
    } catch (failure) {
      if (failure.name !== "AbortError") byId("releases-error").textContent = errorsOf(failure)[0].detail;
    }
  });
  return async (next, signal) => {
    budget = next;
    before = null;
    budgetSignal = signal;
    byId("releases-error").textContent = "";
    await showPage();
  };
}

/** A button of a release. While it works it is disabled; a failure is shown in `error`. */
function action(label, { key }, error, work) {
  const attributes = { class: "quiet", type: "button", "aria-label": `${label} of ${key}` };
  const button = element("button", attributes, label);
  button.addEventListener("click", async () => {
    button.disabled = true;
    error.textContent = "";
    try {
      const shown = await work();
      button.disabled = false;
      button.focus({ preventScroll: true }); // a dialog gives the focus back to where it was
      shown?.();
    } catch (failure) {
      button.disabled = false;
      button.focus({ preventScroll: true });
      if (failure.name !== "AbortError") error.textContent = errorsOf(failure)[0].detail;
    }
  });
  return button;
}

function stateOf({ state }) {
  return element("p", { class: "state" }, STATES[state]);
}

function nothing() {
  return element("li", { class: "empty" }, "This budget has paid for no release yet.");
}

function labels(texts) {
  return element("ul", { class: "labels", "aria-label": "Labels" }, ...texts.map((text) => element("li", {}, text)));
}

/** Time, maker, cost, and what is known about the output, with dots between them. */
function facts({ at, by, entry, answer, committed }, used) {
  const known = [
    timeOf(at),
    ...(by ? [`by ${makerOf(by)}`] : []),
    used,
    `entry ${entry}`,
    ...(answer ? answerFacts(answer) : []),
    ...(committed ? committedFacts(committed) : []),
  ];
  return known.flatMap((fact, k) => (k === 0 ? [fact] : [" · ", fact]));
}

function answerFacts({ media_type, size, erased_at }) {
  const stored = [...Object.values(FORMATS), SEVERAL].find(({ mediaType }) => mediaType === media_type);
  if (erased_at === null) return [`${bytes(size)} of ${stored?.name ?? "Arrow"}`]; // an Arrow stream has no file here
  return [element("strong", {}, "the answer was erased at ", timeOf(erased_at), "; its certificate stays")];
}

function committedFacts({ digest, rows }) {
  const number = rows === null ? [] : [rows === 1 ? "1 row" : `${rows} rows`];
  return [...number, element("span", { title: digest }, `digest ${digest.slice(0, 8)}…`)];
}

/** What a release used of the budget that is shown; the period that paid, if that one is renewed. */
function usedText(release, budget) {
  if (release.budget !== budget.id) return `of ${release.budget}`;
  return `${usedPercent(shareOf(release, budget))} of the budget`;
}

/** The share of the budget, as the gauge counts it: of the cap that it fills more, and no more than is used in all. */
function shareOf({ mu_squared, hazard }, { limit, used }) {
  const share = (cost, cap) => (cost > 0 ? cost / cap : 0);
  return Math.min(Math.max(share(mu_squared, limit.mu_squared), share(hazard, limit.hazard)), used);
}
