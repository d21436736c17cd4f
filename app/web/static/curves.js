// The points of the plots: privacy curves and the frontier from the service, what happens to the data from normal.js.

import { keepProbability, publishedError } from "./normal.js";
import { post } from "./service.js";

const STEPS = 60;
const MOST_USERS = 1e100;
const MOST_TIMES = 20; // a given σ further out than this many times the least is not drawn with the others

/** δ(ε) of the mechanism by both accountings, from 0 to twice its ε. */
export async function privacyCurves(mechanism, epsilon, signal) {
  const top = epsilon > 0 ? epsilon : 0.5;
  const epsilons = Array.from({ length: 2 * STEPS + 1 }, (_, k) => (top * k) / STEPS);
  const accounts = ["account/exact", "account/add-deltas"].map((path) => post(path, { mechanism, epsilon: epsilons }, signal));
  const [exact, added] = (await Promise.all(accounts)).map(({ points }) => points.map(({ delta }) => delta));
  return { epsilons, exact, added, ratio: exact.map((delta, k) => added[k] / delta) };
}

/** The smallest τ* at each σ from the least to past the given one, by both accountings; closer together where the curve bends. */
export async function frontier(draft, target, least, given, signal) {
  const times = given <= MOST_TIMES * least ? (1.1 * given) / least : 1.3;
  const width = Math.max(1.3, times) - 1;
  const sigma = Array.from({ length: STEPS + 1 }, (_, k) => least * (1 + width * (k / STEPS) ** 2.5));
  const answer = await post("calibrate", { mechanism: { ...draft, sigma }, ...target }, signal);
  const of = (solution) => solution?.mechanism.tau_star ?? null;
  return { sigma, exact: answer.frontier.map((point) => of(point.solution)), added: answer.frontier.map((point) => of(point.comparison)) };
}

/** Sizes from low to high: whole numbers where there are few. */
function sizes(low, high, steps = 160) {
  const first = Math.max(1, Math.floor(low));
  const last = Math.max(first + 1, Math.ceil(high));
  const step = Math.max(1, (last - first) / steps);
  return Array.from({ length: Math.floor((last - first) / step) + 1 }, (_, k) => first + k * step);
}

/** The probability of being kept by true size, for each route's mechanism. */
export function keepCurves(mechanisms) {
  const far = MOST_TIMES * mechanisms.exact.sigma;
  const all = Object.entries(mechanisms).filter(([route, { sigma }]) => route !== "given" || sigma <= far).map(([, mechanism]) => mechanism);
  const low = Math.min(...all.map(({ tau_star, sigma }) => tau_star - 3.5 * sigma));
  const high = Math.max(...all.map(({ tau_star, sigma }) => tau_star + 3.5 * sigma));
  const n = sizes(low, high);
  return { n, kept: Object.fromEntries(Object.entries(mechanisms).map(([route, mechanism]) => [route, n.map((size) => keepProbability(size, mechanism))])) };
}

/** The relative error of a published count by true size: median, and the band that holds 95 %. */
export function errorBand(mechanism) {
  const { tau, tau_star, sigma } = mechanism;
  const last = tau_star + 12 * sigma;
  const n = last < MOST_USERS ? sizes(Math.max(tau, tau_star - 1.5 * sigma), last) : []; // Plotly has no axis for more
  const errors = n.map((size) => publishedError(size, mechanism).map((error) => error / size));
  return { n, low: errors.map(([low]) => low), median: errors.map(([, median]) => median), high: errors.map(([, , high]) => high) };
}
