// Before the first paint, so that a chosen theme does not flash; the modules are asked for once the page is painted.
const chosenTheme = localStorage.getItem("theme");
if (chosenTheme) document.documentElement.dataset.theme = chosenTheme;
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
