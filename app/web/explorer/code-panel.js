// The code panel: tabs that the arrow keys change, and a button that copies.

import { offerCopy } from "../shared/copy-button.js";
import { byId, element } from "../shared/dom.js";
import { SNIPPETS } from "./code-snippets.js";

const NAMES = Object.keys(SNIPPETS);
const STEPS = { ArrowRight: 1, ArrowLeft: -1 };

/** Build the tabs. `chosen()` is called when the user changes the tab. Returns a function that shows code for a context. */
export function wireCode(state, chosen) {
  let context = null;
  const tabs = NAMES.map((name) => {
    const attributes = { role: "tab", type: "button", id: `tab-${name}`, "aria-controls": "code-panel" };
    return element("button", { ...attributes, onclick: () => choose(name) }, SNIPPETS[name].label);
  });

  function choose(name) {
    state.code = name;
    chosen();
    show();
  }

  function show() {
    const name = NAMES.includes(state.code) ? state.code : NAMES[0];
    for (const tab of tabs) {
      const isSelected = tab.id === `tab-${name}`;
      tab.setAttribute("aria-selected", String(isSelected));
      tab.tabIndex = isSelected ? 0 : -1;
    }
    byId("code-panel").setAttribute("aria-labelledby", `tab-${name}`);
    byId("code-note").textContent = SNIPPETS[name].note;
    byId("code").textContent = context ? SNIPPETS[name].write(context) : "";
  }

  byId("code-tabs").append(...tabs);
  byId("code-tabs").addEventListener("keydown", ({ key }) => {
    if (!(key in STEPS)) return;
    const next = NAMES[(NAMES.indexOf(state.code) + STEPS[key] + NAMES.length) % NAMES.length];
    choose(next);
    byId(`tab-${next}`).focus();
  });
  offerCopy(byId("copy"), byId("code"));
  show();
  return (next) => {
    context = next;
    show();
  };
}
