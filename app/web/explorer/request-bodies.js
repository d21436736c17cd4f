// The bodies of the explorer's requests, made from its state.

import { typed } from "../shared/service.js";
import { noiseOf } from "./column-noise.js";

/** The mechanism without noise and threshold. */
export function outline(state) {
  return { c_u: typed(state.c_u), tau: typed(state.tau), aggregates: aggregates(state) };
}

/** The privacy target, for /calibrate and /compare. */
export function target(state) {
  return { epsilon: typed(state.epsilon), delta: typed(state.delta) };
}

/** The form's request: calibrate if σ or τ* is empty, otherwise account for the given mechanism. */
export function question(state) {
  const given = { sigma: typed(state.sigma), tau_star: typed(state.tau_star) };
  if (given.sigma === undefined || given.tau_star === undefined) {
    return { path: "calibrate", body: { mechanism: { ...outline(state), ...given }, ...target(state) } };
  }
  const mechanism = { ...outline(state), ...given, aggregates: aggregates(state, Number(given.sigma.text ?? NaN)) };
  return { path: "account/exact", body: { mechanism, epsilon: typed(state.epsilon) } };
}

/** Columns clipped to a range, with caps and independent noise. `sigma` is that of a complete mechanism. */
export function aggregates({ columns, c_u }, sigma) {
  if (columns.length === 0) return undefined;
  const caps = columns.map(({ groups }) => typed(groups) ?? null);
  return {
    names: columns.map(({ name }) => name),
    ...noiseOf(columns, c_u, sigma),
    sensitivity: {
      kind: "box",
      lower: columns.map(({ lower }) => typed(lower) ?? ""),
      upper: columns.map(({ upper }) => typed(upper) ?? ""),
      groups: caps.some((cap) => cap !== null) ? caps : undefined,
    },
  };
}
