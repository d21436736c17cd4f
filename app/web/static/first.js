// Before the first paint, so that a chosen theme does not flash; the rest is asked for once the page is painted.
const chosenTheme = localStorage.getItem("theme");
if (chosenTheme) document.documentElement.dataset.theme = chosenTheme;
const modules = document.currentScript.dataset.then;
if (modules) requestAnimationFrame(() => setTimeout(() => import(new URL(modules, document.baseURI).href)));
