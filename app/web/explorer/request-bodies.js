// The bodies of the explorer's requests, made from its state.

import { Digits, typed } from "../shared/service.js";

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

/** Columns clipped to a range, with independent noise. The noise is a multiple of σ; absolute if σ is given. */
function aggregates(state, sigma) {
  const columns = state.columns;
  if (columns.length === 0) return undefined;
  const spreads = columns.map(({ noise }) => variance(noise, sigma));
  const diagonal = spreads.map((spread, row) => columns.map((_, column) => (row === column ? spread : 0)));
  return {
    names: columns.map(({ name }) => name),
    [sigma === undefined ? "relative_covariance" : "covariance"]: diagonal,
    sensitivity: {
      kind: "box",
      lower: columns.map(({ lower }) => typed(lower) ?? ""),
      upper: columns.map(({ upper }) => typed(upper) ?? ""),
    },
  };
}

function variance(noise, sigma = 1) {
  const given = typed(noise) ?? "";
  return given instanceof Digits && Number.isFinite(sigma) ? (Number(given.text) * sigma) ** 2 : String(noise);
}
