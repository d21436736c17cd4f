// What releases cost, in words: one number at a stated other.

import { digits, shownUp } from "../shared/number-format.js";

/** The ε of releases, rounded up. */
export function epsilonOf({ epsilon }) {
  return epsilon === null ? "no finite ε" : `ε = ${shownUp(epsilon)}`;
}

/** The ε of releases at the δ of the limit. Their δ holds at another ε, so the two would be no pair. */
export function epsilonAt({ delta }, cost) {
  return `${epsilonOf(cost)} at δ = ${digits(delta)}`;
}
