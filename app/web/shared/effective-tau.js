// The smallest size of a group that the mechanism can publish.

/** max(τ, 1): τ = 0 acts as τ = 1, because empty groups are never listed. A typed τ keeps all its digits. */
export function effectiveTau(tau) {
  return Number(tau) >= 1 ? tau : 1;
}
