// Runs before the first paint, so that a chosen theme does not flash. The modules load after the paint.
try {
  const chosenTheme = localStorage.getItem("theme");
  if (chosenTheme) document.documentElement.dataset.theme = chosenTheme;
} catch {
  // Browsers can forbid storage. Then the system's theme applies.
}
const { then } = document.currentScript.dataset; // a page of text has no script of its own
const pageScripts = then ? [new URL(then, document.baseURI).href] : [];
const loadModules = () => Promise.all([import("./theme-switch.js"), ...pageScripts.map((script) => import(script))]);
if (PerformanceObserver.supportedEntryTypes.includes("paint")) {
  new PerformanceObserver((_paints, observer) => {
    observer.disconnect();
    void loadModules();
  }).observe({ type: "paint", buffered: true });
} else {
  void loadModules();
}
