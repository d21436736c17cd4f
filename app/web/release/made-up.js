// Made-up groups on both sides of the threshold, in the shape of the user's table.

const MULTIPLES = [12, 6, 3, 2, 1.5, 1.2, 1, 0.8, 0.5, 0.1]; // of τ*
const PARTS = ["US", "FR", "JP"];

/** The groups: one part per column of the key, counts around τ*, and values within what so many users can add. */
export function madeUpGroups({ tau_star, sigma, aggregates }, keyColumns) {
  const scale = Number(tau_star ?? 5 * Number(sigma)); // public groups have no threshold
  const counts = MULTIPLES.map((multiple) => Math.max(1, Math.round(multiple * scale)));
  const keys = counts.map((_, k) => {
    const parts = Array.from({ length: Math.max(1, keyColumns) }, (_each, j) =>
      j === 0 ? `made-up ${String.fromCharCode("a".charCodeAt(0) + k)}` : PARTS[(k + j) % PARTS.length],
    );
    return parts.length === 1 ? parts[0] : parts;
  });
  const names = aggregates?.names ?? [];
  const values = names.map((name, j) => [name, counts.map((count) => sumOf(count, aggregates.sensitivity, j))]);
  return { keys, counts, values: names.length > 0 ? Object.fromEntries(values) : undefined };
}

/** Half of the range for each user. */
function sumOf(count, { lower, upper }, j) {
  return Math.round((count * (Number(lower[j]) + Number(upper[j]))) / 2);
}
