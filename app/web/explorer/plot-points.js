// The points of the plots. The service computes privacy; normal-distribution.js computes the effect on the data.

import { effectiveTau } from "../shared/effective-tau.js";
import { post } from "../shared/service.js";
import { keepProbability, publishedError } from "./normal-distribution.js";

const STEPS = 60;
const MOST_USERS = 1e100;
const MOST_TIMES = 20; // a given σ above this multiple of the smallest σ does not fit on the same axis

/** δ(ε) of the mechanism by exact accounting and by adding deltas, from 0 to twice its ε. */
export async function privacyCurves(mechanism, epsilon, signal) {
  const top = epsilon > 0 ? epsilon : 0.5;
  const epsilons = Array.from({ length: 2 * STEPS + 1 }, (_, k) => (top * k) / STEPS);
  const accounts = ["account/exact", "account/add-deltas"].map((path) =>
    post(path, { mechanism, epsilon: epsilons }, signal),
  );
  const [exact, added] = (await Promise.all(accounts)).map(({ points }) => points.map(({ delta }) => delta));
  return { epsilons, exact, added, ratio: exact.map((delta, k) => added[k] / delta) };
}

/** The smallest τ* at each σ, from the smallest σ to above the given one. The points are denser at the small σ. */
export async function frontier(draft, target, least, given, signal) {
  const times = given <= MOST_TIMES * least ? (1.1 * given) / least : 1.3;
  const width = Math.max(1.3, times) - 1;
  const sigma = Array.from({ length: STEPS + 1 }, (_, k) => least * (1 + width * (k / STEPS) ** 2.5));
  const answer = await post("calibrate", { mechanism: { ...draft, sigma }, ...target }, signal);
  const of = (solution) => solution?.mechanism.tau_star ?? null;
  const exact = answer.frontier.map((point) => of(point.solution));
  const added = answer.frontier.map((point) => of(point.comparison));
  return { sigma, exact, added };
}

/** Group sizes from low to high, in steps of at least 1. */
function sizes(low, high, steps = 160) {
  const first = Math.max(1, Math.floor(low));
  const last = Math.max(first + 1, Math.ceil(high));
  const step = Math.max(1, (last - first) / steps);
  return Array.from({ length: Math.floor((last - first) / step) + 1 }, (_, k) => first + k * step);
}

/** The probability that a group is kept, by true size, for the mechanism of each accounting. */
export function keepCurves(mechanisms) {
  const far = MOST_TIMES * mechanisms.exact.sigma;
  const all = Object.entries(mechanisms)
    .filter(([accounting, { sigma }]) => accounting !== "given" || sigma <= far)
    .map(([, mechanism]) => mechanism);
  const low = Math.min(...all.map(({ tau_star, sigma }) => tau_star - 3.5 * sigma));
  const high = Math.max(...all.map(({ tau_star, sigma }) => tau_star + 3.5 * sigma));
  const n = sizes(low, high);
  const curve = (mechanism) => n.map((size) => keepProbability(size, mechanism));
  const curves = Object.entries(mechanisms).map(([accounting, mechanism]) => [accounting, curve(mechanism)]);
  return { n, kept: Object.fromEntries(curves) };
}

/** The relative error of a published count, by true size: the median and a 95 % band. */
export function errorBand(mechanism) {
  const { tau, tau_star, sigma } = mechanism;
  const last = tau_star + 12 * sigma;
  const n = last < MOST_USERS ? sizes(Math.max(effectiveTau(tau), tau_star - 1.5 * sigma), last) : []; // Plotly cannot draw a longer axis
  const errors = n.map((size) => publishedError(size, mechanism).map((error) => error / size));
  return {
    n,
    low: errors.map(([low]) => low),
    median: errors.map(([, median]) => median),
    high: errors.map(([, , high]) => high),
  };
}
