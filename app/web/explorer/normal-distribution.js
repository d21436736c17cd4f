// The standard normal distribution to about 13 digits, tails included, for estimates about the user's own data.

import { effectiveTau } from "../shared/effective-tau.js";

const SWITCH = 2;

/** erfc(x): the series of erf for small x [DLMF 7.6.2], the continued fraction for large x [DLMF 7.9.1]. */
export function erfc(x) {
  if (x < -6.5) return 2; // to the last digit
  if (x < 0) return 2 - erfc(-x);
  if (x > 27) return 0; // below the smallest double
  return x < SWITCH ? 1 - erfSeries(x) : erfcFraction(x);
}

function erfSeries(x) {
  let term = x;
  let sum = x;
  for (let k = 1; term > sum * 1e-17; k++) {
    term *= (2 * x * x) / (2 * k + 1);
    sum += term;
  }
  return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * sum;
}

function erfcFraction(x) {
  return Math.exp(-x * x) / (Math.sqrt(Math.PI) * fraction(x));
}

function fraction(x) {
  let value = x;
  for (let k = 120; k >= 1; k--) value = x + k / 2 / value;
  return value;
}

/** Φ(−x), the upper tail. */
export function tail(x) {
  return erfc(x / Math.SQRT2) / 2;
}

/** ln Φ(−x), also where Φ(−x) is below the smallest double. */
export function logTail(x) {
  if (x < 5) return Math.log(tail(x));
  return (-x * x) / 2 - Math.log(2 * Math.sqrt(Math.PI) * fraction(x / Math.SQRT2));
}

/** Φ(x). */
export function cdf(x) {
  return tail(-x);
}

/** The x with Φ(−x) = q. √(−2 ln q) is above x and ln Φ(−x) is concave, so Newton's method decreases to x. */
export function tailQuantile(q) {
  if (q > 0.5) return -tailQuantile(1 - q);
  if (q <= 0) return Infinity;
  let x = Math.sqrt(-2 * Math.log(q));
  for (let k = 0; k < 60; k++) {
    const here = tail(x);
    if (here === 0) return x;
    const hazard = Math.exp((-x * x) / 2) / Math.sqrt(2 * Math.PI) / here;
    const step = Math.log(q / here) / hazard;
    x -= step;
    if (Math.abs(step) < 1e-14 * Math.max(1, x)) break;
  }
  return x;
}

/** The probability that a group of n users is published: n must be at least τ, and the noisy count at least τ*. */
export function keepProbability(n, { tau, tau_star, sigma }) {
  return n < effectiveTau(tau) ? 0 : cdf((n - tau_star) / sigma);
}

/** Quantiles of the error of a published count: the noise, given that the noisy count is at least τ*. */
export function publishedError(n, { tau_star, sigma }, quantiles = [0.025, 0.5, 0.975]) {
  const kept = cdf((n - tau_star) / sigma);
  return quantiles.map((quantile) => sigma * tailQuantile((1 - quantile) * kept));
}
