// The explorer: the form changes the state, the state becomes requests, the answers appear in the panels.

import { offerCopyOf } from "../shared/copy-button.js";
import { byId } from "../shared/dom.js";
import { encode, get, post, typed } from "../shared/service.js";
import { onThemeChange } from "../shared/theme-switch.js";
import { showAnswer, showNoAnswer } from "./answer.js";
import { wireCode } from "./code-panel.js";
import { mixedNoise } from "./column-noise.js";
import { showComparison } from "./comparison-table.js";
import { wireEngine } from "./engine-panel.js";
import { wireLevels } from "./levels-panel.js";
import { searchOf, stateOf } from "./page-state.js";
import { errorBand, frontier, keepCurves, privacyCurves } from "./plot-points.js";
import { showNoPlots, wirePlots } from "./plots.js";
import { wirePublished } from "./published-panel.js";
import { showFormErrors, wireForm } from "./question-form.js";
import { showGap } from "./real-releases.js";
import { wireRelease } from "./release-panel.js";
import { outline, question, target } from "./request-bodies.js";
import { wireSizes } from "./sizes-panel.js";

const PAUSE_MS = 200; // after the last keystroke, before a request

const state = stateOf(location.search);
const remember = () => history.replaceState(null, "", searchOf(state));
const step = () => history.pushState(null, "", searchOf(state)); // the browser's Back button undoes it
const showPlots = wirePlots(state, remember);
const showCode = wireCode(state, remember);
const showSizes = wireSizes();
const explainPublished = wirePublished();
const offerRelease = wireRelease();
const levels = wireLevels(state, (isStep) => (isStep ? step() : remember()));
wireEngine();
let asking = new AbortController();
let pause = 0;

const showState = wireForm(state, (isStep) => {
  clearTimeout(pause);
  showWaiting();
  if (isStep) {
    step();
    void ask();
  } else {
    pause = setTimeout(() => {
      remember();
      void ask();
    }, PAUSE_MS);
  }
});
addEventListener("popstate", () => {
  Object.assign(state, stateOf(location.search));
  showState();
  levels.show();
  void ask();
});
onThemeChange(() => showPlots().catch(showNoPlots));
offerCopyOf(byId("copy-link"), () => new URL(searchOf(state), document.baseURI).href);
new ResizeObserver(([{ target }]) => {
  document.documentElement.style.setProperty("--bar", `${target.offsetHeight}px`); // what sticks below the header
}).observe(document.querySelector(".bar"));
remember();
void ask();
get("version").then(
  ({ service }) => {
    byId("version").textContent = `Service ${service}.`;
  },
  () => {}, // the answer already says that the service cannot be reached
);

/** Send the state's requests. A newer call cancels the older ones. */
async function ask() {
  asking.abort();
  asking = new AbortController();
  const { signal } = asking;
  showWaiting();
  void levels.ask(); // they share the privacy target alone, and wait for nothing else
  const mixed = mixedNoise(state.columns);
  if (mixed !== null) return showFailures([mixed]);
  const columns = structuredClone(state.columns); // the form may change before the answers come
  const given = { sigma: typed(state.sigma)?.text, tau_star: typed(state.tau_star)?.text };
  const asked = { ...question(state), draft: outline(state), target: target(state), columns, given };
  const [first, compared] = await Promise.allSettled([
    post(asked.path, asked.body, signal),
    post("compare", { mechanism: asked.draft, ...asked.target }, signal),
  ]);
  if (signal.aborted) return;
  const failures = [first, compared].filter(({ status }) => status === "rejected").map(({ reason }) => reason);
  if (failures.length > 0) showFailures(failures);
  else await show(asked, first.value, compared.value, signal);
}

/** Until there is an answer, nobody can copy or release with the last one. */
function showWaiting() {
  byId("results").setAttribute("aria-busy", "true");
  showCode(null);
  showGap(null);
  offerRelease(null);
  levels.wait();
}

/** Keep the last answer visible, but mark it: it does not belong to the current form. */
function showFailures(failures) {
  showNoAnswer(showFormErrors(failures), failures, state, balance);
  byId("results").classList.add("stale");
  byId("results").setAttribute("aria-busy", "false");
}

/** Show the answer first. It stays if the plots fail. */
async function show(asked, first, { accountings: compared, without_caps }, signal) {
  const answer = asked.path === "calibrate" ? first : accounted(first, asked.body.mechanism);
  const { c_u, tau, aggregates } = asked.body.mechanism; // as typed: a JavaScript number can lose digits
  Object.assign(answer.mechanism, { c_u }, tau === undefined ? {} : { tau });
  if (aggregates) answer.mechanism.aggregates.sensitivity = aggregates.sensitivity;
  const mechanisms = mechanismsOf(compared, answer);
  showFormErrors([]);
  showAnswer(answer, asked, { best: compared[0].price.mechanism, without_caps, balance });
  showGap(answer);
  showComparison(compared);
  showCode({ ...asked, answer });
  showSizes(mechanisms);
  explainPublished(answer);
  offerRelease(answer);
  byId("results").classList.remove("stale");
  byId("results").setAttribute("aria-busy", "false");
  try {
    await showPlots(await plotPoints(asked, answer, compared, mechanisms, signal));
  } catch (error) {
    if (!signal.aborted) showNoPlots(error);
  }
}

function balance() {
  for (const column of state.columns) column.noise = "";
  showState();
  step();
  void ask();
}

/** The answer of /account/exact in the form of a calibration: the mechanism as it was sent, and its one point. */
function accounted({ mechanism: { c_u, tau, tau_star, sigma }, points: [{ epsilon, delta }] }, { aggregates }) {
  const columns = aggregates ? { aggregates: JSON.parse(encode(aggregates)) } : {};
  return { mechanism: { c_u, tau, tau_star, sigma, ...columns }, epsilon, delta, solved: [] };
}

/** The mechanism of each accounting that meets the target, and the answer's mechanism if the user has given a part of it. */
function mechanismsOf(compared, { mechanism, solved }) {
  const needed = compared.filter(({ price }) => price).map(({ accounting, price }) => [accounting, price.mechanism]);
  const isGiven = !(solved.includes("sigma") && solved.includes("tau_star"));
  return Object.fromEntries([...needed, ...(isGiven ? [["given", mechanism]] : [])]);
}

async function plotPoints(asked, answer, compared, mechanisms, signal) {
  const least = compared[0].price.mechanism.sigma;
  const [curve, edge] = await Promise.all([
    privacyCurves(answer.mechanism, answer.epsilon, signal),
    frontier(asked.draft, asked.target, least, mechanisms.given?.sigma ?? least, signal),
  ]);
  return { curve, frontier: edge, mechanisms, keep: keepCurves(mechanisms), error: errorBand(answer.mechanism) };
}
