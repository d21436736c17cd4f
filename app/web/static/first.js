// Before the first paint, so that a chosen theme does not flash; the modules are asked for once the page is painted.
try {
  const chosenTheme = localStorage.getItem("theme");
  if (chosenTheme) document.documentElement.dataset.theme = chosenTheme;
} catch {
  // a browser may forbid pages to remember: then the theme is the system's
}
const modules = document.currentScript.dataset.then;
const load = () => import(new URL(modules, document.baseURI).href);
if (PerformanceObserver.supportedEntryTypes.includes("paint")) {
  new PerformanceObserver((_paints, observer) => {
    observer.disconnect();
    load();
  }).observe({ type: "paint", buffered: true });
} else {
  load();
}
