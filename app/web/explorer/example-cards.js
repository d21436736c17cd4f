// The examples: a card for each, with what it is and where it comes from. One click fills in the form.

import { byId, element } from "../shared/dom.js";
import { digits } from "../shared/number-format.js";
import { FIELDS, PRESETS, presetOf } from "./page-state.js";
import { loadRealReleases, showRealRelease, sourceAt } from "./real-releases.js";

/** Make the cards. `chosen()` is called after one has filled in the state. Returns a function that marks the current one. */
export function wireExamples(state, chosen) {
  let examples = PRESETS;

  function choose(name) {
    for (const field of FIELDS) state[field] = examples[name].fields[field] ?? "";
    state.columns = [];
    chosen();
  }

  function mark() {
    const current = presetOf(state, examples);
    for (const button of byId("cards").querySelectorAll("button")) {
      button.setAttribute("aria-pressed", String(button.textContent === current));
    }
    showRealRelease(current);
  }

  function show() {
    byId("cards").replaceChildren(...Object.entries(examples).map(([name, it]) => card(name, it, () => choose(name))));
    mark();
  }

  show();
  loadRealReleases().then(
    (real) => {
      examples = { ...PRESETS, ...real };
      show();
    },
    () => {}, // without them the page works
  );
  return mark;
}

function card(name, { fields: { epsilon, delta, c_u }, about, paper, source = paper && sourceAt(paper) }, onclick) {
  const numbers = `ε = ${digits(epsilon)}, δ = ${digits(delta)}, Cᵤ = ${digits(c_u)}`;
  const written = paper ? `arXiv ${paper}` : "made up for this page";
  const link = source ? element("a", { href: source.address, rel: "noreferrer" }, source.title) : written;
  return element(
    "li",
    { class: "card" },
    element("button", { class: "choice", type: "button", "aria-pressed": "false", onclick }, name),
    element("p", {}, about),
    element("p", { class: "numbers" }, numbers),
    element("p", { class: "source" }, "Source: ", link),
  );
}
