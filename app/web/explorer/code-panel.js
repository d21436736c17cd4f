// The code panel: tabs that the arrow keys change, the form of the SQL tab, and a button that copies.

import { offerCopy } from "../shared/copy-button.js";
import { byId, element } from "../shared/dom.js";
import { SNIPPETS } from "./code-snippets.js";
import { sqlQuery, wireSqlForm } from "./sql-query.js";

const LABELS = { curl: "curl", python: "Python", sql: "SQL" };
const NAMES = Object.keys(LABELS);
const STEPS = { ArrowRight: 1, ArrowLeft: -1 };

/**
 * Build the tabs. `chosen()` is called when the user changes the tab or the engine. Returns a function that shows code
 * for a context; with null the last code stays, and nobody can copy it.
 */
export function wireCode(state, chosen) {
  let context = null;
  let isCurrent = false;
  let asking = new AbortController();
  const tabs = NAMES.map((name) => {
    const attributes = { role: "tab", type: "button", id: `tab-${name}`, "aria-controls": "code-panel" };
    return element("button", { ...attributes, onclick: () => choose(name) }, LABELS[name]);
  });

  function choose(name) {
    state.code = name;
    chosen();
    void show();
  }

  async function show() {
    asking.abort();
    asking = new AbortController();
    const { signal } = asking;
    const name = NAMES.includes(state.code) ? state.code : NAMES[0];
    for (const tab of tabs) {
      const isSelected = tab.id === `tab-${name}`;
      tab.setAttribute("aria-selected", String(isSelected));
      tab.tabIndex = isSelected ? 0 : -1;
    }
    byId("code-panel").setAttribute("aria-labelledby", `tab-${name}`);
    byId("sql-form").hidden = name !== "sql";
    byId("copy").disabled = true;
    if (context === null) return;
    const snippet = SNIPPETS[name];
    try {
      fill(snippet ? { text: snippet.write(context), note: snippet.note } : await sqlQuery(context, signal));
    } catch (failure) {
      if (!signal.aborted) throw failure;
    }
  }

  function fill({ text, note }) {
    byId("code").textContent = text;
    byId("code-note").textContent = note;
    byId("copy").disabled = !isCurrent || text === "";
  }

  byId("code-tabs").append(...tabs);
  byId("code-tabs").addEventListener("keydown", ({ key }) => {
    if (!(key in STEPS)) return;
    const next = NAMES[(NAMES.indexOf(state.code) + STEPS[key] + NAMES.length) % NAMES.length];
    choose(next);
    byId(`tab-${next}`).focus();
  });
  offerCopy(byId("copy"), byId("code"));
  wireSqlForm(state, () => {
    chosen();
    void show();
  });
  void show();
  return (next) => {
    isCurrent = next !== null;
    byId("copy").disabled = true;
    if (!isCurrent) return;
    context = next;
    void show();
  };
}
