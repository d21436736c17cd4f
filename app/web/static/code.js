// The code panel: tabs by the keyboard's arrows too, and a button that copies.

import { offerCopy } from "./copying.js";
import { byId, element } from "./elements.js";
import { SNIPPETS } from "./snippets.js";

/** Wire up the tabs; `chosen(name)` is told which is shown. Returns what shows the code for a context. */
export function wireCode(state, chosen) {
  let context = null;
  const tabs = Object.entries(SNIPPETS).map(([name, { label }]) =>
    element("button", { role: "tab", type: "button", id: `tab-${name}`, "aria-controls": "code-panel", onclick: () => choose(name) }, label),
  );
  const names = Object.keys(SNIPPETS);

  function choose(name, focus = false) {
    state.code = name;
    chosen();
    show();
    if (focus) byId(`tab-${name}`).focus();
  }

  function show() {
    const name = names.includes(state.code) ? state.code : names[0];
    for (const tab of tabs) {
      const selected = tab.id === `tab-${name}`;
      tab.setAttribute("aria-selected", String(selected));
      tab.tabIndex = selected ? 0 : -1;
    }
    byId("code-panel").setAttribute("aria-labelledby", `tab-${name}`);
    byId("code-note").textContent = SNIPPETS[name].note;
    byId("code").textContent = context ? SNIPPETS[name].write(context) : "";
  }

  byId("code-tabs").append(...tabs);
  byId("code-tabs").addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step) choose(names[(names.indexOf(state.code) + step + names.length) % names.length], true);
  });
  offerCopy(byId("copy"), byId("code"));
  show();
  return (next) => {
    context = next;
    show();
  };
}
