// The noise of further columns, as typed: empty for balanced noise, a standard deviation in the column's own unit, or a
// multiple of σ such as "2 σ". All columns have the same kind of noise.

import { Digits, Problem, typed, typedNumber } from "../shared/service.js";

const SIGMAS = /\s*σ$/;

/** A number as the text of a multiple of σ. Links of earlier versions have the number alone. */
export const inSigmas = (number) => (number.trim() === "" ? "" : `${number} σ`);

/** A problem at each field that is not of the kind of the others; null if there is none. */
export function mixedNoise(columns) {
  const given = columns.map(({ noise }) => noise.trim());
  const at = (isWrong, detail) =>
    given.flatMap((text, j) => (isWrong(text) ? [{ pointer: pointerTo(j), detail }] : []));
  if (given.every((text) => text === "")) return null;
  const missing = at((text) => text === "", "give the noise of every column, or of none");
  const inSigma = at((text) => SIGMAS.test(text), "give the noise of every column in σ, or of none");
  if (missing.length > 0) return new Problem({ errors: missing });
  return inSigma.length > 0 && inSigma.length < given.length ? new Problem({ errors: inSigma }) : null;
}

const pointerTo = (index) => `/mechanism/aggregates/covariance/${index}`;

/**
 * The noise as members of `aggregates`. A complete mechanism needs numbers: `sigma` is then its σ, and undefined before.
 */
export function noiseOf(columns, c_u, sigma) {
  if (columns.some(({ noise }) => noise.trim() !== "")) {
    const isRelative = columns.some(({ noise }) => SIGMAS.test(noise.trim()));
    const scale = isRelative && sigma !== undefined ? sigma : 1;
    const spreads = columns.map(({ noise }) => variance(noise.trim().replace(SIGMAS, ""), scale));
    return { [isRelative && sigma === undefined ? "relative_covariance" : "covariance"]: diagonal(spreads) };
  }
  if (sigma === undefined) return { noise: "balanced" };
  return { covariance: diagonal(columns.map((column) => balanced(column, c_u, sigma))) };
}

function diagonal(spreads) {
  return spreads.map((spread, row) => spreads.map((_, column) => (row === column ? spread : 0)));
}

/** The square, with the sign: the service refuses noise below 0. It also refuses text that is not a number. */
function variance(text, scale) {
  const number = typed(text);
  return number instanceof Digits ? possible(Number(number) * Math.abs(Number(number)) * scale ** 2) : text;
}

/** Balanced noise as the service computes it: every column takes the same share of μ² as the count. */
function balanced({ lower, upper, groups }, c_u, sigma) {
  const reach = Math.max(Math.abs(typedNumber(lower)), Math.abs(typedNumber(upper)));
  const share = groups.trim() === "" ? 1 : typedNumber(groups) / typedNumber(String(c_u));
  const spread = reach ** 2 * share * sigma ** 2;
  return spread > 0 ? possible(spread) : 1;
}

/** If σ, C_u, a bound or a cap is not a number, the service refuses that one. The variance then does not matter. */
function possible(spread) {
  return Number.isNaN(spread) ? 1 : spread;
}
