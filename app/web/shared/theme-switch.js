// The header's theme button: light, dark, or the system's theme. The choice is stored in this browser.

import { byId, element } from "./dom.js";

const NEXT = { auto: "light", light: "dark", dark: "auto" };
const root = document.documentElement;
const systemIsDark = matchMedia("(prefers-color-scheme: dark)");

/** Call a function each time the colours of the page change. */
export function onThemeChange(changed) {
  document.addEventListener("themechange", changed);
}

export function isDark() {
  const theme = currentTheme();
  return theme === "auto" ? systemIsDark.matches : theme === "dark";
}

function currentTheme() {
  return root.dataset.theme ?? "auto";
}

function choose(theme) {
  if (theme === "auto") delete root.dataset.theme;
  else root.dataset.theme = theme;
  try {
    if (theme === "auto") localStorage.removeItem("theme");
    else localStorage.setItem("theme", theme);
  } catch {
    // Browsers can forbid storage. Then the choice lasts until the user leaves the page.
  }
}

function showChoice() {
  const theme = currentTheme();
  byId("theme").replaceChildren(element("span", { class: "wide" }, "Theme: "), theme);
  byId("theme").setAttribute("aria-label", `Theme: ${theme}. Change to ${NEXT[theme]}`);
}

const announce = () => document.dispatchEvent(new Event("themechange"));

byId("theme").addEventListener("click", () => {
  choose(NEXT[currentTheme()]);
  showChoice();
  announce();
});
systemIsDark.addEventListener("change", announce);
showChoice();
byId("theme").disabled = false; // until now a click would have been lost
