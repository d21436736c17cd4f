// The explorer wired together: the form changes the state, the state asks the service, the answers are shown.

import { showAnswer, showNoAnswer } from "./answer.js";
import { wireCode } from "./code.js";
import { showComparison } from "./compare.js";
import { errorBand, frontier, keepCurves, privacyCurves } from "./curves.js";
import { byId } from "./elements.js";
import { showErrors, showState, wireForm } from "./form.js";
import { wirePlots } from "./plots.js";
import { outline, question, target } from "./questions.js";
import { wireRelease } from "./release.js";
import { encode, get, post, Problem } from "./service.js";
import { wireSizes } from "./sizes.js";
import { searchOf, stateOf } from "./state.js";
import { offerThemes } from "./theme.js";

const PAUSE = 200;

const state = stateOf(location.search);
const remember = () => history.replaceState(null, "", searchOf(state));
const showPlots = wirePlots(state, remember);
const showCode = wireCode(state, remember);
const showSizes = wireSizes();
const offerRelease = wireRelease();
let asking = new AbortController();
let pause = 0;

wireForm(state, (isStep) => {
  clearTimeout(pause);
  if (isStep) {
    history.pushState(null, "", searchOf(state));
    ask();
  } else {
    pause = setTimeout(() => {
      remember();
      ask();
    }, PAUSE);
  }
});
addEventListener("popstate", () => {
  Object.assign(state, stateOf(location.search));
  showState(state);
  ask();
});
offerThemes(byId("theme"), () => showPlots());
remember();
ask();
get("version").then(({ service }) => (byId("version").textContent = `Service ${service}.`));

/** Ask the service what the state says; only the last question asked is answered. */
async function ask() {
  asking.abort();
  asking = new AbortController();
  const { signal } = asking;
  const asked = question(state);
  try {
    const [first, compared] = await Promise.all([
      post(asked.path, asked.body, signal),
      post("compare", { mechanism: outline(state), ...target(state) }, signal),
    ]);
    const answer = asked.path === "calibrate" ? first : accounted(first, asked.body.mechanism);
    answer.mechanism.c_u = asked.body.mechanism.c_u; // as typed: it may have more digits than a number here
    showErrors([]);
    showAnswer(answer, state.delta);
    showComparison(compared);
    const mechanisms = asksOf(compared, answer);
    showCode({ ...asked, answer, state });
    showSizes(mechanisms);
    offerRelease(answer);
    await showPlots(await points(answer, compared, mechanisms, signal));
  } catch (error) {
    if (error.name === "AbortError") return;
    showNoAnswer();
    showErrors(error instanceof Problem ? error.errors : [{ pointer: "", detail: "The service cannot be reached." }]);
    if (!(error instanceof Problem)) throw error;
  }
}

/** An account as an answer: its mechanism as it was sent, its one point. */
function accounted({ mechanism: { c_u, tau, tau_star, sigma }, points: [{ epsilon, delta }] }, { aggregates }) {
  const mechanism = { c_u, tau, tau_star, sigma, ...(aggregates ? { aggregates: JSON.parse(encode(aggregates)) } : {}) };
  return { mechanism, epsilon, delta, solved: [] };
}

/** The mechanism of each route that has one; for exact accounting that of the answer, which may be as given. */
function asksOf({ routes }, answer) {
  const found = routes.filter(({ ask }) => ask).map(({ route, ask }) => [route, route === "exact" ? answer.mechanism : ask.mechanism]);
  return Object.fromEntries(found);
}

async function points(answer, compared, mechanisms, signal) {
  const least = compared.routes[0].ask.mechanism.sigma;
  const [curve, edge] = await Promise.all([
    privacyCurves(answer.mechanism, answer.epsilon, signal),
    frontier(outline(state), target(state), least, signal),
  ]);
  return { curve, frontier: edge, mechanisms, keep: keepCurves(mechanisms), error: errorBand(answer.mechanism) };
}
