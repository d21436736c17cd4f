// σ and τ* in few digits, as a pair that still meets the target.

import { shown, upwards } from "../shared/number-format.js";
import { effectiveTau } from "./effective-tau.js";

/**
 * The texts of σ and τ*, both rounded up. A larger σ needs a higher τ*: δ_infinite depends on (τ* − τ)/σ alone. So a
 * computed τ* grows with the rounded σ before it is rounded itself, and the pair costs no more than the exact one.
 */
export function usable({ sigma, tau, tau_star }, solved = ["sigma", "tau_star"]) {
  const noise = upwards(sigma);
  const least = Number(effectiveTau(tau ?? 1));
  const grown =
    solved.includes("tau_star") && noise > sigma ? least + above(tau_star - least, noise / sigma) : tau_star;
  return { noise, sigma: shown(noise), tau_star: shown(upwards(grown)) };
}

/** A product that rounding has not made smaller. */
function above(gap, ratio) {
  return gap * ratio * (1 + 2 ** -50);
}
