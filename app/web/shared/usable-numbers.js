// σ and τ* in few digits, as a pair that still meets the target.

import { effectiveTau } from "./effective-tau.js";
import { digits, shown, upwards } from "./number-format.js";

const MOST_DIGITS = 17;
const MOST_TYPED = 12; // characters: a longer number is from a preset or a link, and has no room in a figure

/**
 * The texts of σ and τ*. A `given` number keeps its digits, unless it is long. Others are rounded up. A larger σ needs a higher
 * τ*: δ_infinite depends on (τ* − τ)/σ alone. So a computed τ* grows with the rounded σ before it is rounded itself, and
 * at a given τ* the rounded σ stays below `largest_sigma`. The pair costs no more than the exact one.
 */
export function usable({ sigma, tau, tau_star }, { given = {}, largest_sigma } = {}) {
  const [typedSigma, typedTauStar] = [given.sigma, given.tau_star].map((text) => text?.length <= MOST_TYPED && text);
  const noise = typedSigma ? sigma : upwardsWithin(sigma, largest_sigma ?? Infinity);
  const least = Number(effectiveTau(tau ?? 1));
  const grown = noise > sigma ? least + above(tau_star - least, noise / sigma) : tau_star;
  return {
    noise,
    sigma: typedSigma ? digits(typedSigma) : noise === upwards(sigma) ? shown(noise) : digits(noise),
    tau_star: typedTauStar ? digits(typedTauStar) : shown(upwards(grown)),
  };
}

/** A σ in as few digits as fit between two bounds. */
function upwardsWithin(sigma, most) {
  if (upwards(sigma) <= most) return upwards(sigma);
  for (let digits = 4; digits < MOST_DIGITS; digits += 1) {
    const near = Number(sigma.toPrecision(digits));
    const step = 10 ** (Math.floor(Math.log10(sigma)) + 1 - digits);
    const found = near >= sigma ? near : Number((near + step).toPrecision(digits));
    if (sigma <= found && found <= most) return found;
  }
  return sigma;
}

/** A product that rounding has not made smaller. */
function above(gap, ratio) {
  return gap * ratio * (1 + 2 ** -50);
}
