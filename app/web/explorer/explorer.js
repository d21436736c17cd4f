// The explorer: the form changes the state, the state becomes requests, the answers appear in the panels.

import { offerCopyOf } from "../shared/copy-button.js";
import { byId } from "../shared/dom.js";
import { encode, get, post, typed } from "../shared/service.js";
import { onThemeChange } from "../shared/theme-switch.js";
import { showAnswer, showFigures, showNoAnswer } from "./answer.js";
import { showBet } from "./bet-words.js";
import { wireCode } from "./code-panel.js";
import { mixedNoise } from "./column-noise.js";
import { showComparison } from "./comparison-table.js";
import { wireEngine } from "./engine-panel.js";
import { wireSlider } from "./epsilon-slider.js";
import { wireLevels } from "./levels-panel.js";
import { searchOf, stateOf } from "./page-state.js";
import { errorBand, frontier, keepCurves, privacyCurves } from "./plot-points.js";
import { showNoPlots, wirePlots } from "./plots.js";
import { showFormErrors, wireForm } from "./question-form.js";
import { showGap } from "./real-releases.js";
import { outline, question, target } from "./request-bodies.js";
import { wireSizes } from "./sizes-panel.js";

const PAUSE_MS = 200; // after the last keystroke, before a request

const state = stateOf(location.search);
const remember = () => history.replaceState(null, "", searchOf(state));
const step = () => history.pushState(null, "", searchOf(state)); // the browser's Back button undoes it
const showPlots = wirePlots(state, remember);
const showCode = wireCode(state, remember);
const showSizes = wireSizes();
const levels = wireLevels(state, (isStep) => (isStep ? step() : remember()));
wireEngine();
let asking = new AbortController();
let pause = 0;
let isGliding = false;
let drawing = null; // what the plots are to show; null once they do
let answers = 0;

byId("plots-fold").open ||= state.axes.size > 0;
byId("code-fold").open ||= state.code !== "curl" || state.dialect !== "duckdb";
byId("plots-fold").addEventListener("toggle", () => void draw());
const showSlider = wireSlider(state, () => {
  clearTimeout(pause);
  showWaiting();
  showBet(state, null);
  void glide();
  pause = setTimeout(() => {
    remember();
    void ask();
  }, PAUSE_MS);
});
const showState = wireForm(state, (isStep) => {
  clearTimeout(pause);
  showWaiting();
  showSlider();
  showBet(state, null);
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
  showSlider();
  levels.show();
  void ask();
});
onThemeChange(() => void draw());
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

/** What the state asks, with a copy of it: the form may change before the answers come. */
function asked() {
  const columns = structuredClone(state.columns);
  const given = { sigma: typed(state.sigma)?.text, tau_star: typed(state.tau_star)?.text };
  return { ...question(state), draft: outline(state), target: target(state), columns, given };
}

/**
 * While ε slides: the numbers and the picture follow, as fast as the service answers, one request at a time. The whole answer
 * comes after the last move, and says what is wrong if anything is.
 */
async function glide() {
  if (isGliding) return;
  isGliding = true;
  asking.abort();
  asking = new AbortController();
  const { signal } = asking;
  for (let shown = null; shown !== state.epsilon && !signal.aborted; ) {
    shown = state.epsilon;
    const now = asked();
    const answer = await answered(now, signal).catch(() => null);
    if (signal.aborted || answer === null) break;
    const { few } = showFigures(answer, now);
    showSizes({ given: answer.mechanism }, few.tau_star, scene());
  }
  isGliding = false;
}

/** The certified mechanism: the smallest one, or the given one with its δ. */
async function answered({ path, body }, signal) {
  const found = await post(path, body, signal);
  const answer = path === "calibrate" ? found : accounted(found, body.mechanism);
  const { c_u, tau, aggregates } = body.mechanism; // as typed: a JavaScript number can lose digits
  Object.assign(answer.mechanism, { c_u }, tau === undefined ? {} : { tau });
  if (aggregates) answer.mechanism.aggregates.sensitivity = aggregates.sensitivity;
  return answer;
}

/** All that the form says apart from ε: made-up groups stay while it stays. */
function scene() {
  const { epsilon, ...others } = target(state);
  return encode([outline(state), others, state.sigma, state.tau_star]);
}

/** Send the state's requests. A newer call cancels the older ones. */
async function ask() {
  asking.abort();
  asking = new AbortController();
  const { signal } = asking;
  showWaiting();
  showBet(state, null);
  void levels.ask(); // they share the privacy target alone, and wait for nothing else
  const mixed = mixedNoise(state.columns);
  if (mixed !== null) return showFailures([mixed]);
  const now = asked();
  const [first, compared] = await Promise.allSettled([
    answered(now, signal),
    post("compare", { mechanism: now.draft, ...now.target }, signal),
  ]);
  if (signal.aborted) return;
  const failures = [first, compared].filter(({ status }) => status === "rejected").map(({ reason }) => reason);
  if (failures.length > 0) showFailures(failures);
  else await show(now, first.value, compared.value, signal);
}

/** Until there is an answer, nobody can copy the last one, and nobody hears of it. */
function showWaiting() {
  byId("answer-live").setAttribute("aria-busy", "true");
  byId("results").setAttribute("aria-busy", "true");
  showCode(null);
  showGap(null);
  levels.wait();
}

/** Keep the last answer visible, but mark it: it does not belong to the current form. */
function showFailures(failures) {
  showNoAnswer(showFormErrors(failures), failures, state, balance);
  byId("results").classList.add("stale");
  showReady();
}

function showReady() {
  for (const id of ["results", "answer-live"]) byId(id).setAttribute("aria-busy", "false");
}

/** Show the answer first. It stays if the plots fail. */
async function show(now, answer, { accountings: compared, without_caps }, signal) {
  const mechanisms = mechanismsOf(compared, answer);
  showFormErrors([]);
  const few = showAnswer(answer, now, { best: compared[0].price.mechanism, without_caps, balance });
  showGap(answer);
  showComparison(compared);
  showCode({ ...now, answer });
  showSizes(mechanisms, few.tau_star, scene());
  byId("results").classList.remove("stale");
  showReady();
  drawing = () => plotPoints(now, answer, compared, mechanisms, few.tau_star, signal);
  await Promise.all([draw(), showWins(answer.mechanism, signal)]);
  if (signal.aborted) return;
  answers += 1;
  byId("results").dataset.answers = String(answers);
}

async function showWins(mechanism, signal) {
  try {
    const { points } = await post("account/exact", { mechanism, epsilon: 0 }, signal);
    showBet(state, points[0].delta);
  } catch {
    // The sentence then has the promise alone.
  }
}

/** The plots are drawn while their fold is open, and Plotly is loaded when it is opened first. */
async function draw() {
  if (!byId("plots-fold").open) return;
  const points = drawing;
  drawing = null;
  try {
    await showPlots(points === null ? undefined : await points());
  } catch (error) {
    if (error.name !== "AbortError") showNoPlots(error);
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

/** What the plots show. `text` is τ* as the answer writes it. */
async function plotPoints(now, answer, compared, mechanisms, text, signal) {
  const least = compared[0].price.mechanism.sigma;
  const [curve, edge] = await Promise.all([
    privacyCurves(answer.mechanism, answer.epsilon, signal),
    frontier(now.draft, now.target, least, mechanisms.given?.sigma ?? least, signal),
  ]);
  return {
    curve,
    frontier: edge,
    mechanisms,
    keep: keepCurves(mechanisms),
    error: errorBand(answer.mechanism),
    target: { epsilon: answer.epsilon, delta: Number(now.target.delta) },
    answer: answer.mechanism,
    text,
  };
}
