// A bet: a coin decides whether your records are in the data, and a stranger who knows all others reads the table and
// guesses. docs/generate/meaning_page.py has the same two formulas, with their reason.

const BETS = 1000;

/** How many of 1000 bets (ε, δ) lets him win: 1000 (e^ε + δ)/(1 + e^ε), rounded up. */
export function winsAllowed(epsilon, delta) {
  const inverse = Math.exp(-epsilon); // e^ε may be larger than every double
  return Math.min(BETS, Math.ceil((BETS * (1 + delta * inverse)) / (1 + inverse)));
}

/** How many of 1000 bets he wins against one mechanism, at most: 1000 (1 + δ)/2, rounded up, with its δ at ε = 0. */
export function winsAgainst(deltaAtZero) {
  return Math.min(BETS, Math.ceil((BETS * (1 + deltaAtZero)) / 2));
}
