// The paper's case study: counts of users per URL. All pages start with it.

export const TARGET = { epsilon: "0.349", delta: "1e-5" };
export const OUTLINE = { c_u: "51914", tau: "1" };

/** The smallest whole σ that meets the target, and the smallest whole τ* for this σ: δ is 9.98e-6 at ε = 0.349. */
export const WHOLE = { sigma: "2229", tau_star: "13955" };
