// A button that copies text.

import { element } from "./dom.js";

const SHOWN_MS = 1500;

/** Make a button copy the text of an element. */
export function offerCopy(button, source) {
  offerCopyOf(button, () => source.textContent);
}

/** Make a button copy the text that a function gives at the click. */
export function offerCopyOf(button, textOf) {
  const label = button.textContent;
  button.addEventListener("click", async () => {
    await copyText(textOf());
    button.textContent = "Copied";
    setTimeout(() => {
      button.textContent = label;
    }, SHOWN_MS);
  });
}

/** Browsers give the clipboard only to pages with TLS or on this machine. Other pages can copy a selection. */
async function copyText(text) {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const source = element("pre", { class: "visually-hidden" }, text);
  source.style.whiteSpace = "pre"; // a line stays a line
  document.body.append(source);
  getSelection().selectAllChildren(source);
  document.execCommand("copy");
  source.remove();
}
