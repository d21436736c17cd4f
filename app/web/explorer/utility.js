// What a mechanism would publish of groups of given sizes. POST /utility computes the same, and a test compares them.

import { effectiveTau } from "../shared/effective-tau.js";
import { logTail, tail, tailQuantile } from "./normal-distribution.js";

const CLOSE_ENOUGH = 1e-12;
const MOST_STEPS = 300;
const FAR = 9; // Φ(−9) changes no digit of a share
const LEAST_WEIGHT = 1e-18;

/** t = (τ* − n)/σ of each size n that can be published: P(published | n) = Φ(−t). */
function* places(times, { tau, tau_star, sigma }) {
  const least = effectiveTau(tau);
  for (const [n, count] of times) if (n >= least) yield { n, count, t: (tau_star - n) / sigma };
}

/** Expected numbers of groups and users. `times` maps each size to the number of groups that have it. */
export function published(times, mechanism) {
  const sums = { groups: 0, users: 0, variance: 0, falseGroups: 0, allGroups: 0, allUsers: 0 };
  for (const [n, count] of times) {
    sums.allGroups += count;
    sums.allUsers += count * n;
  }
  for (const { n, count, t } of places(times, mechanism)) {
    const kept = count * tail(t);
    sums.groups += kept;
    sums.users += kept * n;
    sums.variance += kept * tail(-t);
    if (n < mechanism.tau_star) sums.falseGroups += kept;
  }
  return {
    ...sums,
    deviation: Math.sqrt(sums.variance),
    groupsShare: sums.groups / sums.allGroups,
    usersShare: sums.users / sums.allUsers,
    falseShare: sums.groups > 0 ? sums.falseGroups / sums.groups : null,
  };
}

/** Quantiles of |published − true| / true over the published groups; null if no group can be published. */
export function publishedErrors(times, mechanism, quantiles) {
  const parts = mixture(times, mechanism);
  return parts.length === 0 ? null : quantiles.map((q) => mechanism.sigma * quantileOf(parts, q));
}

/** The sizes, each with its share of the published groups. Far below τ* the weights are tiny, so they are logarithms. */
function mixture(times, mechanism) {
  const parts = [...places(times, mechanism)].map((part) => ({ ...part, logKept: logTail(part.t) }));
  let most = -Infinity;
  for (const { count, logKept } of parts) most = Math.max(most, Math.log(count) + logKept);
  for (const part of parts) part.weight = Math.exp(Math.log(part.count) + part.logKept - most);
  const some = parts.filter(({ weight }) => weight > LEAST_WEIGHT);
  let total = 0;
  for (const { weight } of some) total += weight;
  return some.map(({ n, t, logKept, weight }) => ({ n, t, logKept, weight: weight / total, below: tail(-t) }));
}

/**
 * The ρ with P(|v|/(nσ) ≤ ρ) = q: Newton's method for ln ρ, within bounds that close by bisection. At any n, with x = ρn,
 * this probability is at most 2x, and 1 minus it is at most 4Φ(−s) for x = max(t, 0) + s.
 */
function quantileOf(parts, q) {
  const s = tailQuantile((1 - q) / 4);
  let [largest, reach] = [0, 0];
  for (const { n, t } of parts) [largest, reach] = [Math.max(largest, n), Math.max(reach, (Math.max(t, 0) + s) / n)];
  let [low, high] = [Math.log(q / (2 * largest)), Math.log(reach)];
  let at = (low + high) / 2;
  let last = Infinity;
  for (let k = 0; k < MOST_STEPS; k++) {
    const { exceeded, density } = exceeding(parts, Math.exp(at));
    if (exceeded > 1 - q) low = at;
    else high = at;
    const newton = density > 0 ? (exceeded - (1 - q)) / density : Infinity;
    if (Math.min(Math.abs(newton), high - low) < CLOSE_ENOUGH) break;
    const isGood = low < at + newton && at + newton < high && Math.abs(newton) < Math.abs(last) / 2;
    last = isGood ? newton : (low + high) / 2 - at;
    at += last;
  }
  return Math.exp(at);
}

/** P(|v|/(nσ) > ρ) of a published group, and the density of ln ρ. The noise v of a published group is at least tσ. */
function exceeding(parts, rho) {
  let [exceeded, density] = [0, 0];
  for (const { n, t, logKept, weight, below } of parts) {
    const x = rho * n;
    if (x > Math.max(t, 0) + FAR) continue;
    if (t <= 0) {
      const upper = tail(x);
      const share = weight / Math.exp(logKept);
      exceeded += share * (upper + Math.max(0, upper - below));
      density += share * x * bell(x) * (x < -t ? 2 : 1);
    } else if (x <= t) {
      exceeded += weight;
    } else {
      exceeded += weight * Math.exp(logTail(x) - logKept);
      density += weight * x * bell(x, logKept);
    }
  }
  return { exceeded, density };
}

/** φ(x), divided by a number that is given by its logarithm. */
function bell(x, logDivisor = 0) {
  return Math.exp((-x * x) / 2 - logDivisor) / Math.sqrt(2 * Math.PI);
}
