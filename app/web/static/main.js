// The explorer wired together: the form changes the state, the state asks the service, the answers are shown.

import { showAnswer, showNoAnswer } from "./answer.js";
import { wireCode } from "./code.js";
import { showComparison } from "./compare.js";
import { errorBand, frontier, keepCurves, privacyCurves } from "./curves.js";
import { byId } from "./elements.js";
import { errorsOf, fieldOf, showErrors, showState, wireForm } from "./form.js";
import { showNoPlots, wirePlots } from "./plots.js";
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
  wait();
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
offerThemes(byId("theme"), () => showPlots().catch(showNoPlots));
remember();
ask();
get("version").then(
  ({ service }) => (byId("version").textContent = `Service ${service}.`),
  () => {}, // the answer says already that the service cannot be reached
);

/** Ask the service what the state says; only the last question asked is answered. */
async function ask() {
  asking.abort();
  asking = new AbortController();
  const { signal } = asking;
  const asked = question(state);
  wait();
  const [first, compared] = await Promise.allSettled([
    post(asked.path, asked.body, signal),
    post("compare", { mechanism: outline(state), ...target(state) }, signal),
  ]);
  if (signal.aborted) return;
  const failures = [first, compared].filter(({ status }) => status === "rejected").map(({ reason }) => reason);
  if (failures.length > 0) refuse(failures);
  else show(asked, first.value, compared.value, signal);
}

/** Until there is an answer, nothing of the last one may be taken for it. */
function wait() {
  byId("results").setAttribute("aria-busy", "true");
  byId("copy").disabled = true;
  offerRelease(null);
}

/** Keep the last answer in sight, but say that it is not the answer to what is in the form. */
function refuse(failures) {
  const problems = failures.filter((failure) => failure instanceof Problem);
  const isReached = problems.length === failures.length;
  const errors = isReached ? errorsOf(problems) : [{ pointer: "", detail: "The service cannot be reached." }];
  showErrors(errors);
  showNoAnswer(errors.map(({ pointer }) => fieldOf(pointer)));
  byId("results").classList.add("stale");
  byId("results").setAttribute("aria-busy", "false");
}

/** The answer comes first; a plot that cannot be drawn takes nothing from it. */
async function show(asked, first, compared, signal) {
  const answer = asked.path === "calibrate" ? first : accounted(first, asked.body.mechanism);
  const { c_u, tau } = asked.body.mechanism; // as typed: they may have more digits than a number here
  Object.assign(answer.mechanism, { c_u }, tau === undefined ? {} : { tau });
  const mechanisms = asksOf(compared, answer);
  showErrors([]);
  showAnswer(answer, state.delta);
  showComparison(compared);
  showCode({ ...asked, answer, state });
  showSizes(mechanisms);
  offerRelease(answer);
  byId("copy").disabled = false;
  byId("results").classList.remove("stale");
  byId("results").setAttribute("aria-busy", "false");
  try {
    await showPlots(await points(answer, compared, mechanisms, signal));
  } catch (error) {
    if (!signal.aborted) showNoPlots(error);
  }
}

/** An account as an answer: its mechanism as it was sent, its one point. */
function accounted({ mechanism: { c_u, tau, tau_star, sigma }, points: [{ epsilon, delta }] }, { aggregates }) {
  const mechanism = { c_u, tau, tau_star, sigma, ...(aggregates ? { aggregates: JSON.parse(encode(aggregates)) } : {}) };
  return { mechanism, epsilon, delta, solved: [] };
}

/** The mechanism of each route that has one, and the one of the answer where it is not exact accounting's own choice. */
function asksOf({ routes }, { mechanism, solved }) {
  const found = routes.filter(({ ask }) => ask).map(({ route, ask }) => [route, ask.mechanism]);
  const isGiven = !(solved.includes("sigma") && solved.includes("tau_star"));
  return Object.fromEntries([...found, ...(isGiven ? [["given", mechanism]] : [])]);
}

async function points(answer, compared, mechanisms, signal) {
  const least = compared.routes[0].ask.mechanism.sigma;
  const [curve, edge] = await Promise.all([
    privacyCurves(answer.mechanism, answer.epsilon, signal),
    frontier(outline(state), target(state), least, mechanisms.given?.sigma ?? least, signal),
  ]);
  return { curve, frontier: edge, mechanisms, keep: keepCurves(mechanisms), error: errorBand(answer.mechanism) };
}
