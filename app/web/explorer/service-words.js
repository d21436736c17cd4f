// The words of the service's errors, with the symbols of the page and with few digits.

import { shownDown, shownUp } from "../shared/number-format.js";
import { Problem } from "../shared/service.js";

export const SYMBOLS = { sigma: "σ", tau_star: "τ*", epsilon: "ε", delta: "δ", c_u: "C_u", mu_0: "μ₀" };

const MANY_DIGITS = /^(?=.*[.e]).{7,}$/;

/** A detail in the words of the page. A bound with many digits is rounded to its safe side. */
export function inSymbols(detail) {
  return detail
    .replace(/(?<=at least )[\d.e+-]+/, (number) => few(number, shownUp))
    .replace(/(?<=(?:at most|below) )[\d.e+-]+/, (number) => few(number, shownDown))
    .replace(/\b(sigma|tau_star|epsilon|delta|c_u|mu_0)\b/g, (name) => SYMBOLS[name]);
}

const few = (number, rounded) => (MANY_DIGITS.test(number) ? rounded(Number(number)) : number);

/** A failed request with its details in the words of the page. */
export function withSymbols(failure) {
  if (!(failure instanceof Problem)) return failure;
  const errors = failure.errors.map(({ pointer, detail }) => ({ pointer, detail: inSymbols(detail) }));
  return new Problem({ type: failure.type, detail: failure.message, errors }, failure.status);
}
