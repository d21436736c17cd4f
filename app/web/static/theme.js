// Light, dark, or as the system has it; remembered in this browser.

import { element } from "./elements.js";

const NEXT = { auto: "light", light: "dark", dark: "auto" };

/** Let the button go round the themes, and tell whoever draws with the page's colours. */
export function offerThemes(button, changed = () => {}) {
  const show = () => {
    const theme = current();
    button.replaceChildren(element("span", { class: "wide" }, "Theme: "), theme);
    button.setAttribute("aria-label", `Theme: ${theme}. Change to ${NEXT[theme]}`);
  };
  button.addEventListener("click", () => {
    const theme = NEXT[current()];
    if (theme === "auto") {
      delete document.documentElement.dataset.theme;
      remember((storage) => storage.removeItem("theme"));
    } else {
      document.documentElement.dataset.theme = theme;
      remember((storage) => storage.setItem("theme", theme));
    }
    show();
    changed();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
  show();
}

/** Browsers may forbid a page to remember: then the choice holds until the page is left. */
function remember(change) {
  try {
    change(localStorage);
  } catch {
    // nothing is lost but the memory
  }
}

function current() {
  return document.documentElement.dataset.theme ?? "auto";
}
